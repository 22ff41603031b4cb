"""A session's status, and the budget nearest to its cap: numbered rules, pure (S302, S304).

The first rule that applies gives the status: 1 ended, 2 paused, 3 looping, 4 waiting, 5 stuck, 6 running.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, get_args

SessionStatus = Literal["ended", "paused", "looping", "waiting", "stuck", "running"]
STATUSES: tuple[SessionStatus, ...] = get_args(SessionStatus)
Row = Mapping[str, Any]


def status_of(session: Row, *, ended: bool, paused: int, deciding: bool, stuck: bool) -> SessionStatus:
    """`ended`: its last message was terminal. While a message is held, the session has not ended."""
    if ended and not session["held"]:
        return "ended"
    if paused:
        return "paused"
    if session["severity"] == "loop" or session["loop_ns"] is not None:
        return "looping"
    if session["held"] or deciding:
        return "waiting"
    return "stuck" if stuck else "running"


class Cap(NamedTuple):
    """A budget with its spending; for the target `*`, `spent` is taken from each session's or agent's row."""

    budget_id: str
    scope: str
    target: str
    soft: float | None
    hard: float | None
    spent: float


class Caps:
    """A tenant's caps by scope and target."""

    def __init__(self, caps: Iterable[Cap]) -> None:
        self._by: dict[tuple[str, str], list[Cap]] = {}
        for cap in caps:
            target = "" if cap.scope == "tenant" else cap.target
            self._by.setdefault((cap.scope, target), []).append(cap)

    @property
    def is_empty(self) -> bool:
        return not self._by

    def tightest(self, session: Row, crew: Iterable[Row], places: int | None = None) -> dict[str, Any] | None:
        """The most used cap that applies to this session; of equals the smaller one.

        `crew` are rows of its agents. With `places`, the share is rounded and `spent` derived from it: a
        figure that all sessions share would otherwise change every row at every message.
        """
        if not self._by:
            return None
        applicable = [
            *self._by.get(("tenant", ""), ()),
            *self._by.get(("session", session["session_id"]), ()),
        ]
        applicable += [cap._replace(spent=session["spent"]) for cap in self._by.get(("session", "*"), ())]
        for agent in crew:
            for name in {agent["agent_id"], agent["entity_id"]}:
                applicable += self._by.get(("agent", name), ())
            applicable += [cap._replace(spent=agent["cost"]) for cap in self._by.get(("agent", "*"), ())]
            applicable += self._by.get(("cluster", agent["cluster_id"] or ""), ())
        if not applicable:
            return None
        return _cap_item(max(applicable, key=lambda cap: (_share(cap), -(_limit(cap)))), places)


def _limit(cap: Cap) -> float:
    limit = cap.hard if cap.hard is not None else cap.soft
    return limit or 0.0


def _share(cap: Cap) -> float:
    """A cap of zero is used up."""
    limit = _limit(cap)
    return max(0.0, cap.spent) / limit if limit else 1.0


def _cap_item(cap: Cap, places: int | None) -> dict[str, Any]:
    share, spent = round(_share(cap), 6), round(max(0.0, cap.spent), 9)
    if places is not None:
        share = round(share, places)
        spent = round(share * _limit(cap), 9)
    return cap._asdict() | {"spent": spent, "share": share}
