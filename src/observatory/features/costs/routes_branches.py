"""Cost by causal branch in a time range, over all sessions (rule S701).

The most expensive sessions of the range are read from the archive; all others are returned as one sum.
Branches here do not overlap, so that everything adds up.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec
from litestar import Response, get
from litestar.params import FromQuery, QueryParameter

from observatory.features.costs.branch_periods import cost_lines
from observatory.features.costs.heatmap import money
from observatory.features.costs.routes_burn_rate import LONGEST
from observatory.features.costs.types_burn import MINUTE_NS
from observatory.features.fleet.types import AgentCost
from observatory.features.fleet.types_traffic import SpendingReads
from observatory.features.graph.queries_session import LoadedSession, load, session_row
from observatory.http.answers import Refusal, json, time_of
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.protocol.clock import from_ns

HOUR = 60  # minutes
LONGEST_SPAN = 31 * 24 * HOUR
READ_WHOLE = 24  # sessions
MAX_AGENTS = 5_000  # of one session
Row = dict[str, Any]


class LineItem(msgspec.Struct, kw_only=True):
    """A step and what follows it until the next fork; `share` is of the total."""

    session_id: str
    step: str
    sequence_number: int
    agent_id: str | None
    intent: str | None
    depth: int
    cost: float
    share: float
    tokens: int
    steps: int
    agents: list[AgentCost]


class LinesAnswer(msgspec.Struct, kw_only=True):
    since: str
    until: str
    total: float
    items: list[LineItem]
    items_count: int
    sessions_read: int
    elsewhere: float  # cost of sessions and steps that were not read, and of branches beyond `limit`


LINE_ANSWERS: dict[str, Any] = {"branch_costs": LinesAnswer}


@get("/costs/branches", summary="List costs by causal branch", operation_id="branch_costs")
async def branch_costs(
    request: Call,
    app: Here,
    since: Annotated[str | None, QueryParameter(description="Default: an hour ago.")] = None,
    until: Annotated[str | None, QueryParameter(description="Default: now.")] = None,
    session: FromQuery[str | None] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=500)] = 100,
) -> Response[bytes]:
    """The most expensive first. Sums are of whole minutes, slightly behind the record."""
    who = await require_permission(request, app, "read")
    tenant_id = who.tenant_id
    last = (app.clock() if until is None else time_of("until", until)) // MINUTE_NS
    first = last - HOUR if since is None else time_of("since", since) // MINUTE_NS
    if first > last:
        raise Refusal(400, "bad_range", "since must not be after until")
    if last - first > LONGEST_SPAN:
        raise Refusal(400, "bad_range", "at most 31 days per request; use a later since")
    start_ns, end_ns = first * MINUTE_NS, (last + 1) * MINUTE_NS
    if session is None:
        total = (await app.derived.queries(SpendingReads).spent_in_all(tenant_id, first, last)).cost
        sessions = await _most_expensive(app, tenant_id, first, last)
    else:
        sessions = [await session_row(app, tenant_id, session)]
        here = {"session_no": sessions[0]["session_no"]}
        # Of a very long session only the newest steps are read; the cost of the others is in `elsewhere`.
        rows = await app.derived.queries(SpendingReads).spent_within(
            tenant_id, start_ns, end_ns, MAX_AGENTS, **here
        )
        total = sum(row.cost for row in rows)
    found: list[Row] = []
    for row in sessions:
        loaded = await load(app, tenant_id, row, is_glance=True)
        session_lines = await asyncio.to_thread(_lines, loaded, app.clock(), start_ns, end_ns)
        found += [line | {"session_id": row["session_id"]} for line in session_lines]
    found.sort(key=lambda line: (-line["cost"], line["sequence_number"]))
    shown = found[:limit]
    known = sum(line["cost"] for line in found)
    # Counters and archive may differ briefly: a branch is never more than the total.
    total = max(known, total)
    return json(
        {
            "since": from_ns(start_ns),
            "until": from_ns(end_ns),
            "total": money(total),
            "items": [
                line | {"share": round(line["cost"] / total, 6) if total > 0 else 0.0} for line in shown
            ],
            "items_count": len(found),
            "sessions_read": len(sessions),
            "elsewhere": money(total - sum(line["cost"] for line in shown)),
        }
    )


def _lines(loaded: LoadedSession, now_ns: int, start_ns: int, end_ns: int) -> list[Row]:
    return cost_lines(loaded.graph.nodes(now_ns), start_ns, end_ns)


async def _most_expensive(app: AppState, tenant_id: str, first: int, last: int) -> list[Row]:
    spent = await app.derived.queries(SpendingReads).spent_by(tenant_id, "session", first, last, READ_WHOLE)
    numbers = [row.key for row in spent if row.cost > 0]
    rows = await app.store.rows(tenant_id, "sessions", session_no=numbers) if numbers else []
    return [row for row in rows if row["messages"] <= LONGEST]
