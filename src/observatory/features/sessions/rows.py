"""Sessions as a table shows them: their own row, and beside it goal, agents, cap and one word (S300–S304).

What stands beside comes from the derived store (goal, confidence, trail, first agents: a moment behind,
nothing where insight is off) and from the record (pauses, decisions, budgets). It is read once for all rows
of an answer; the live topic keeps it and reads on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import msgspec

from observatory.errors import StoreError
from observatory.features.budgets import stage as budget
from observatory.features.fleet.types_membership import Rooms
from observatory.features.sessions.status import Cap, Caps, SessionStatus, status_of
from observatory.features.sessions.stuck import Stuck
from observatory.features.sessions.types_lines import SessionLine
from observatory.features.thoughts.types_rows import Thoughts
from observatory.http.app_state import House
from observatory.protocol.clock import from_ns
from observatory.protocol.rulebook import Budget, BudgetScope

Row = dict[str, Any]


class SessionCap(msgspec.Struct, kw_only=True):
    """Of the budgets that bind a session the one used up most; `share` of the hard cap, else of the soft."""

    budget_id: str
    scope: BudgetScope
    target: str
    soft: float | None
    hard: float | None
    spent: float
    share: float


class SessionItem(msgspec.Struct, kw_only=True):
    session_id: str
    trace_id: str
    messages: int
    held: int
    agents_count: int
    first_sequence_number: int
    last_sequence_number: int
    started_at: str
    last_at: str
    cost: float
    entropy_score: float | None
    severity: Literal["normal", "warning", "loop"]
    loop_detected_at: str | None
    stuck: bool
    stuck_reason: Literal["silent", "pending"] | None
    stuck_since: str | None
    goal: str | None
    confidence: float | None
    entropy_trail: list[float]
    cap: SessionCap | None
    agent_names: list[str]
    paused: int
    status: SessionStatus
    sealed: bool = False  # its thoughts are under a Merkle root


class Beside(NamedTuple):
    """What a tenant's lines show beside the rows of sessions, by number."""

    lines: Mapping[int, SessionLine]
    agents: Mapping[int, Row]
    paused: Mapping[int, int]
    deciding: Collection[int]
    caps: Caps
    sealed: Collection[str] = ()  # ids


def rooms(house: House) -> Rooms:
    store = house.store
    assert isinstance(store, Rooms)  # a promise of every store
    return store


async def beside(house: House, tenant_id: str, rows: list[Row]) -> Beside:
    lines = await lines_of(house, tenant_id, [row["session_no"] for row in rows])
    agents = await agents_of(house, tenant_id, {number for line in lines.values() for number in line.agents})
    halts, caps = await halts_of(house, tenant_id), await caps_of(house, tenant_id)
    return Beside(lines, agents, *halts, caps, await sealed_of(house, tenant_id, rows))


async def sealed_of(house: House, tenant_id: str, rows: list[Row]) -> set[str]:
    store = house.store
    assert isinstance(store, Thoughts)  # a promise of every store
    return await store.sealed_among(tenant_id, [row["session_id"] for row in rows])


async def is_sealed(house: House, tenant_id: str, session_id: str, number: int) -> bool:
    """Whether a step came before its session's thoughts were closed and sealed: later ones are not meant."""
    store = house.store
    assert isinstance(store, Thoughts)  # a promise of every store
    before = await store.sealed_before(tenant_id, session_id)
    return before is not None and number < before


async def lines_of(house: House, tenant_id: str, numbers: list[int]) -> dict[int, SessionLine]:
    """Without them a list of sessions is poorer, not gone."""
    with suppress(StoreError):
        return await house.derived.session_lines(tenant_id, numbers) if numbers else {}
    return {}


async def agents_of(house: House, tenant_id: str, numbers: Collection[int]) -> dict[int, Row]:
    found: dict[int, Row] = {}
    wanted = sorted(numbers)
    for start in range(0, len(wanted), 500):
        for row in await house.store.rows(tenant_id, "agents", agent_no=wanted[start : start + 500]):
            found[row["agent_no"]] = row
    return found


async def halts_of(house: House, tenant_id: str) -> tuple[dict[int, int], set[int]]:
    return await rooms(house).paused_in(tenant_id), await rooms(house).deciding_in(tenant_id)


async def caps_of(house: House, tenant_id: str) -> Caps:
    rows = await house.store.rows(tenant_id, "budgets", removed_ns=None)
    spend = {row["budget_id"]: row for row in await house.store.rows(tenant_id, "spend")} if rows else {}
    now_ns = house.clock()
    made = []
    for row in rows:
        known = msgspec.convert({field: row[field] for field in Budget.__struct_fields__}, Budget)
        spent = budget.standing(known, spend.get(known.budget_id), now_ns)[0]
        made.append(Cap(known.budget_id, known.scope, known.target, known.soft, known.hard, spent))
    return Caps(made)


def session_item(
    row: Row, stuck: Stuck | None, around: Beside, ended: bool = False, places: int | None = None
) -> Row:
    """`ended` is what is known of its last word where nothing was folded; `places` round what all share."""
    number = row["session_no"]
    line = around.lines.get(number)
    crew = [] if line is None else [around.agents[one] for one in line.agents if one in around.agents]
    paused = around.paused.get(number, 0)
    if line is not None and line.last_seq >= row["last_seq"]:
        ended = bool(line.ended)
    return {
        "session_id": row["session_id"],
        "trace_id": row["trace_id"],
        "messages": row["messages"],
        "held": row["held"],
        "agents_count": row["agents"],
        "first_sequence_number": row["first_seq"],
        "last_sequence_number": row["last_seq"],
        "started_at": from_ns(row["started_ns"]),
        "last_at": from_ns(row["last_ns"]),
        "cost": round(row["cost"], 9),
        "entropy_score": row["entropy"],
        "severity": row["severity"],
        "loop_detected_at": None if row["loop_ns"] is None else from_ns(row["loop_ns"]),
        "stuck": stuck is not None,
        "stuck_reason": None if stuck is None else stuck.reason,
        "stuck_since": None if stuck is None else from_ns(stuck.since_ns),
        "goal": None if line is None else line.goal,
        "confidence": None if line is None else line.confidence,
        "entropy_trail": [] if line is None else line.scores,
        "cap": around.caps.tightest(row, crew, places),
        "agent_names": [agent["agent_id"] for agent in crew],
        "paused": paused,
        "status": status_of(
            row, ended=ended, paused=paused, deciding=number in around.deciding, stuck=stuck is not None
        ),
        "sealed": row["session_id"] in around.sealed,
    }
