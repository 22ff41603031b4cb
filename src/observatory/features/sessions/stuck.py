"""Which sessions are stuck: silent, or with an action pending, for longer than they may be (ruling 27).

Pure over a session's row, its members' rows and the last words of both. A session whose last word is terminal
has ended; one whose last word asks for nothing (a heartbeat, an alert, a text) waits for nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

import msgspec

# Last words after which somebody is to go on.
WORK = frozenset({"decision_log", "decision_request", "decision_response"})
Contents = Mapping[int, tuple[str, bytes | None]]


class _Action(msgspec.Struct):
    status: str | None = None


class _Control(msgspec.Struct):
    is_terminal: bool | None = None


class _Words(msgspec.Struct):
    action: _Action | None = None
    control: _Control | None = None


class Stuck(NamedTuple):
    reason: Literal["silent", "pending"]
    since_ns: int
    agent_no: int | None  # whose action is pending


def asked_of(session: Mapping[str, Any], members: Iterable[Mapping[str, Any]], before_ns: int) -> set[int]:
    """Numbers of the messages one must know to judge this session; none when nobody is late."""
    late = {member["last_seq"] for member in members if member["arrived_ns"] < before_ns}
    late.discard(0)
    return late | {session["last_seq"]} if late or session["last_ns"] < before_ns else set()


def stuck_of(
    session: Mapping[str, Any], members: Iterable[Mapping[str, Any]], contents: Contents, before_ns: int
) -> Stuck | None:
    """`before_ns` is how long ago somebody must have spoken last to be late."""
    kind, words = _words(session["last_seq"], contents)
    if words.control is not None and words.control.is_terminal:
        return None
    pending = [
        member
        for member in members
        if 0 < member["arrived_ns"] < before_ns and _is_pending(member["last_seq"], contents)
    ]
    if pending:
        oldest = min(pending, key=lambda member: member["arrived_ns"])
        return Stuck("pending", oldest["arrived_ns"], oldest["agent_no"])
    if session["last_ns"] < before_ns and kind in WORK:
        return Stuck("silent", session["last_ns"], None)
    return None


def _words(number: int, contents: Contents) -> tuple[str, _Words]:
    kind, raw = contents.get(number, ("", None))
    if raw is None or kind != "decision_log":
        return kind, _Words()
    try:
        return kind, msgspec.json.decode(raw, type=_Words)
    except msgspec.MsgspecError:  # archived bytes were valid once; whatever they are now, nobody is blamed
        return kind, _Words()


def _is_pending(number: int, contents: Contents) -> bool:
    action = _words(number, contents)[1].action
    return action is not None and action.status == "pending"
