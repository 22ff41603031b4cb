"""Items of the session table: the session's row plus goal, agents, cap and status (S300–S304).

The added columns come from the derived store (goal, confidence, trail, first agents: slightly behind, empty
without the derived store) and from the record (pauses, decisions, budgets). They are read once for all rows
of an answer; the live topic caches them and reads incrementally.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import msgspec

from observatory.errors import StoreError
from observatory.features.archive.queries_content import read_contents
from observatory.features.budgets.types import current_spend
from observatory.features.sessions.stuck import StuckSession, needed_messages, stuck_of
from observatory.features.sessions.types_lines import SessionLine, SessionLineReads
from observatory.features.sessions.types_membership import MembershipReads
from observatory.features.sessions.types_status import Cap, Caps, SessionStatus, status_of
from observatory.features.thoughts.queries_seals import sealed_of
from observatory.http.app_state import AppState
from observatory.http.setting_rows import detectors_of
from observatory.protocol.clock import from_ns
from observatory.protocol.tenant_config import Budget, BudgetScope

Row = dict[str, Any]


class SessionCap(msgspec.Struct, kw_only=True):
    """The most used of the budgets that apply to a session; `share` of the hard cap, else of the soft."""

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


class SessionContext(NamedTuple):
    """The added columns of a tenant's session table, by session number."""

    lines: Mapping[int, SessionLine]
    agents: Mapping[int, Row]
    paused: Mapping[int, int]
    deciding: Collection[int]
    caps: Caps
    sealed: Collection[str] = ()  # ids


def membership_reads(app: AppState) -> MembershipReads:
    store = app.store
    assert isinstance(store, MembershipReads)  # every store implements it
    return store


async def session_context(app: AppState, tenant_id: str, rows: list[Row]) -> SessionContext:
    lines = await lines_of(app, tenant_id, [row["session_no"] for row in rows])
    agents = await agents_of(app, tenant_id, {number for line in lines.values() for number in line.agents})
    halts, caps = await pauses_and_decisions(app, tenant_id), await caps_of(app, tenant_id)
    return SessionContext(lines, agents, *halts, caps, await sealed_of(app, tenant_id, rows))


async def lines_of(app: AppState, tenant_id: str, numbers: list[int]) -> dict[int, SessionLine]:
    """Derived lines; empty if the derived store fails, so that the list still loads."""
    with suppress(StoreError):
        return (
            await app.derived.queries(SessionLineReads).session_lines(tenant_id, numbers) if numbers else {}
        )
    return {}


async def agents_of(app: AppState, tenant_id: str, numbers: Collection[int]) -> dict[int, Row]:
    agents: dict[int, Row] = {}
    ordered = sorted(numbers)
    for start in range(0, len(ordered), 500):
        for row in await app.store.rows(tenant_id, "agents", agent_no=ordered[start : start + 500]):
            agents[row["agent_no"]] = row
    return agents


async def pauses_and_decisions(app: AppState, tenant_id: str) -> tuple[dict[int, int], set[int]]:
    return await membership_reads(app).paused_in(tenant_id), await membership_reads(app).deciding_in(
        tenant_id
    )


async def caps_of(app: AppState, tenant_id: str) -> Caps:
    rows = await app.store.rows(tenant_id, "budgets", removed_ns=None)
    spend = {row["budget_id"]: row for row in await app.store.rows(tenant_id, "spend")} if rows else {}
    now_ns = app.clock()
    caps = []
    for row in rows:
        limit = msgspec.convert({field: row[field] for field in Budget.__struct_fields__}, Budget)
        spent = current_spend(limit, spend.get(limit.budget_id), now_ns)[0]
        caps.append(Cap(limit.budget_id, limit.scope, limit.target, limit.soft, limit.hard, spent))
    return Caps(caps)


def session_item(
    row: Row,
    stuck: StuckSession | None,
    context: SessionContext,
    ended: bool = False,
    places: int | None = None,
) -> Row:
    """`ended`: its last message was terminal (for rows without a line); `places` rounds shared figures."""
    number = row["session_no"]
    line = context.lines.get(number)
    crew = [] if line is None else [context.agents[one] for one in line.agents if one in context.agents]
    paused = context.paused.get(number, 0)
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
        "cap": context.caps.tightest(row, crew, places),
        "agent_names": [agent["agent_id"] for agent in crew],
        "paused": paused,
        "status": status_of(
            row, ended=ended, paused=paused, deciding=number in context.deciding, stuck=stuck is not None
        ),
        "sealed": row["session_id"] in context.sealed,
    }


async def session_items(app: AppState, tenant_id: str, rows: list[Row]) -> list[Row]:
    last_messages: dict[int, LastMessage] = {}
    stuck = await stuck_sessions(app, tenant_id, rows, last_messages)
    context = await session_context(app, tenant_id, rows)
    return [
        session_item(row, stuck.get(row["session_no"]), context, has_ended(row, last_messages))
        for row in rows
    ]


class LastMessage(NamedTuple):
    """What of a session's or member's last message decides whether it is stuck."""

    kind: str
    raw: bytes | None
    has_ended: bool


def has_ended(row: Row, last_messages: dict[int, LastMessage]) -> bool:
    last = last_messages.get(row["last_seq"])
    return last is not None and last.has_ended


async def stuck_sessions(
    app: AppState,
    tenant_id: str,
    rows: list[dict[str, Any]],
    known: dict[int, LastMessage] | None = None,
) -> dict[int, StuckSession]:
    """The stuck ones of these sessions, by number. Those whose messages cannot be read in time are left out.

    `known` are last messages read before: they are not read again, and those no longer needed are dropped.
    """
    stuck_ns = (await detectors_of(app, tenant_id)).stuck_s * 1_000_000_000
    before_ns = app.clock() - stuck_ns
    old = [row for row in rows if row["started_ns"] < before_ns]
    if not old:
        return {}
    members: dict[int, list[dict[str, Any]]] = {row["session_no"]: [] for row in old}
    for member in await app.store.rows(tenant_id, "members", session_no=list(members)):
        members[member["session_no"]].append(member)
    needed = {row["session_no"]: needed_messages(row, members[row["session_no"]], before_ns) for row in old}
    late = [row for row in old if needed[row["session_no"]]]
    known = {} if known is None else known
    for number in known.keys() - set().union(*needed.values()):
        del known[number]
    known |= await last_messages(app, tenant_id, [row["last_seq"] for row in late], known)
    # An ended session is not stuck, so its members' messages are not read.
    open_rows = [row for row in late if row["last_seq"] in known and not known[row["last_seq"]].has_ended]
    others = [number for row in open_rows for number in sorted(needed[row["session_no"]])]
    known |= await last_messages(app, tenant_id, others, known)
    contents = {number: (last.kind, last.raw) for number, last in known.items()}
    all_stuck = {
        row["session_no"]: stuck_of(row, members[row["session_no"]], contents, before_ns)
        for row in old
        if row["last_seq"] in contents
    }
    return {number: stuck for number, stuck in all_stuck.items() if stuck is not None}


async def last_messages(
    app: AppState, tenant_id: str, numbers: list[int], known: dict[int, LastMessage]
) -> dict[int, LastMessage]:
    return await read_contents(app, tenant_id, [one for one in numbers if one not in known], last_message)


def last_message(kind: str, raw: bytes | None) -> LastMessage:
    if raw is None or kind != "decision_log":
        return LastMessage(kind, None, False)
    try:
        log = msgspec.json.decode(raw, type=LastLog)
    except (
        msgspec.MsgspecError
    ):  # archived bytes were valid once; if unreadable now, the session is not blamed
        return LastMessage(kind, None, False)
    ended = log.control is not None and bool(log.control.is_terminal)
    return LastMessage(kind, msgspec.json.encode(log), ended)


class MessageAction(msgspec.Struct, omit_defaults=True):
    status: str | None = None


class MessageControl(msgspec.Struct, omit_defaults=True):
    is_terminal: bool | None = None


class LastLog(msgspec.Struct, omit_defaults=True):
    action: MessageAction | None = None
    control: MessageControl | None = None
