"""What a span of time cost by causal branch, over all sessions (rule S701).

The dearest sessions of the time are read whole from the archive; all others are told as one sum. Branches
here do not overlap, so that everything adds up.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec
from litestar import Response, get
from litestar.params import FromQuery, QueryParameter

from observatory.features.costs.branch_periods import lines
from observatory.features.costs.heatmap import MINUTE_NS, money
from observatory.features.costs.routes_burn_rate import LONGEST
from observatory.features.fleet.routes import time_of
from observatory.features.fleet.types import AgentCost
from observatory.features.graph.loader import Loaded, load, session_row
from observatory.http.answers import Refusal, json
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.protocol.clock import from_ns

HOUR = 60  # minutes
LONGEST_SPAN = 31 * 24 * HOUR
READ_WHOLE = 24  # sessions
MOST_AGENTS = 5_000  # of one session
Row = dict[str, Any]


class LineItem(msgspec.Struct, kw_only=True):
    """A step and what follows from it until the next fork; `share` is of all that was spent."""

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
    elsewhere: float  # of sessions and steps that were not read, and of branches beyond `limit`


LINE_ANSWERS: dict[str, Any] = {"branch_costs": LinesAnswer}


@get("/costs/branches", summary="What a time cost by causal branch", operation_id="branch_costs")
async def branch_costs(
    request: Call,
    house: Here,
    since: Annotated[str | None, QueryParameter(description="An hour ago if left out.")] = None,
    until: Annotated[str | None, QueryParameter(description="Now if left out.")] = None,
    session: FromQuery[str | None] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=500)] = 100,
) -> Response[bytes]:
    """The dearest first. Sums are of whole minutes, a moment behind the record."""
    who = await need(request, house, "read")
    tenant_id = who.tenant_id
    last = (house.clock() if until is None else time_of("until", until)) // MINUTE_NS
    first = last - HOUR if since is None else time_of("since", since) // MINUTE_NS
    if first > last:
        raise Refusal(400, "bad_range", "since must not lie after until")
    if last - first > LONGEST_SPAN:
        raise Refusal(400, "bad_range", "at most 31 days at once; give a later since")
    start_ns, end_ns = first * MINUTE_NS, (last + 1) * MINUTE_NS
    if session is None:
        total = (await house.derived.spent_in_all(tenant_id, first, last)).cost
        sessions = await _dearest(house, tenant_id, first, last)
    else:
        sessions = [await session_row(house, tenant_id, session)]
        here = {"session_no": sessions[0]["session_no"]}
        # Of a very long session only the newest steps are read; what the others cost is told as elsewhere.
        total = sum(
            row.cost
            for row in await house.derived.spent_within(tenant_id, start_ns, end_ns, MOST_AGENTS, **here)
        )
    found: list[Row] = []
    for row in sessions:
        loaded = await load(house, tenant_id, row, is_glance=True)
        told = await asyncio.to_thread(_lines, loaded, house.clock(), start_ns, end_ns)
        found += [line | {"session_id": row["session_id"]} for line in told]
    found.sort(key=lambda line: (-line["cost"], line["sequence_number"]))
    shown = found[:limit]
    known = sum(line["cost"] for line in found)
    # Counters and archive may be a moment apart: a branch is never more than all.
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


def _lines(loaded: Loaded, now_ns: int, start_ns: int, end_ns: int) -> list[Row]:
    return lines(loaded.graph.nodes(now_ns), start_ns, end_ns)


async def _dearest(house: House, tenant_id: str, first: int, last: int) -> list[Row]:
    spent = await house.derived.spent_by(tenant_id, "session", first, last, READ_WHOLE)
    numbers = [row.key for row in spent if row.cost > 0]
    rows = await house.store.rows(tenant_id, "sessions", session_no=numbers) if numbers else []
    return [row for row in rows if row["messages"] <= LONGEST]
