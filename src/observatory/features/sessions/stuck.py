"""Detects stuck sessions: silent, or with an action pending, for longer than allowed (ruling 27).

Pure over a session's row, its members' rows and the last messages of both. A session whose last message is
terminal has ended; one whose last message needs no answer (a heartbeat, an alert, a text) is not waiting.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

import msgspec

# Types of a last message after which more is expected.
WORK = frozenset({"decision_log", "decision_request", "decision_response"})
Contents = Mapping[int, tuple[str, bytes | None]]


class _Action(msgspec.Struct):
    status: str | None = None


class _Control(msgspec.Struct):
    is_terminal: bool | None = None


class _Log(msgspec.Struct):
    action: _Action | None = None
    control: _Control | None = None


class StuckSession(NamedTuple):
    reason: Literal["silent", "pending"]
    since_ns: int
    agent_no: int | None  # whose action is pending


def needed_messages(
    session: Mapping[str, Any], members: Iterable[Mapping[str, Any]], before_ns: int
) -> set[int]:
    """Numbers of the messages needed to judge this session; none when no one is late."""
    late = {member["last_seq"] for member in members if member["arrived_ns"] < before_ns}
    late.discard(0)
    return late | {session["last_seq"]} if late or session["last_ns"] < before_ns else set()


def stuck_of(
    session: Mapping[str, Any], members: Iterable[Mapping[str, Any]], contents: Contents, before_ns: int
) -> StuckSession | None:
    """A session or member whose last message is older than `before_ns` is late."""
    kind, log = _log(session["last_seq"], contents)
    if log.control is not None and log.control.is_terminal:
        return None
    pending = [
        member
        for member in members
        if 0 < member["arrived_ns"] < before_ns and _is_pending(member["last_seq"], contents)
    ]
    if pending:
        oldest = min(pending, key=lambda member: member["arrived_ns"])
        return StuckSession("pending", oldest["arrived_ns"], oldest["agent_no"])
    if session["last_ns"] < before_ns and kind in WORK:
        return StuckSession("silent", session["last_ns"], None)
    return None


def _log(number: int, contents: Contents) -> tuple[str, _Log]:
    kind, raw = contents.get(number, ("", None))
    if raw is None or kind != "decision_log":
        return kind, _Log()
    try:
        return kind, msgspec.json.decode(raw, type=_Log)
    except (
        msgspec.MsgspecError
    ):  # archived bytes were valid once; if unreadable now, the session is not blamed
        return kind, _Log()


def _is_pending(number: int, contents: Contents) -> bool:
    action = _log(number, contents)[1].action
    return action is not None and action.status == "pending"
