"""What was spent: by whom and on what, in a grid, by branch of a session, and where figures do not agree.

Sums come from minute counters, a moment behind the record; a session's branches from the archive itself.
Times are taken down to the minute. Money is in whatever unit agents report; rules S235–S242.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, Router, get
from litestar.enums import MediaType
from litestar.params import FromPath, FromQuery, QueryParameter

from observatory.features.costs import heatmap
from observatory.features.costs.branches import branches
from observatory.features.costs.heatmap import MINUTE_NS, money
from observatory.features.costs.routes_branches import branch_costs
from observatory.features.costs.routes_burn_rate import cost_burn
from observatory.features.fleet.routes import time_of
from observatory.features.fleet.types_traffic import Dimension, Key, Spent
from observatory.features.graph.loader import Loaded, load, session_row
from observatory.http.answers import (
    Cursor,
    Limit,
    Refusal,
    json,
    not_ours,
    page,
    read_cursor,
    sealed,
    unsealed,
)
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import agent_entity_id, canonical_uuid

DAY, LONGEST = 24 * 60, 31 * 24 * 60  # minutes
MOST_BRANCHES = 500
MOST_WITHIN = 5_000
Row = dict[str, Any]
Since = Annotated[str | None, QueryParameter(description="From that time on; a day ago if left out.")]
Until = Annotated[str | None, QueryParameter(description="Up to that time; now if left out.")]


@get("/costs", summary="Who or what spent how much, the dearest first", operation_id="list_costs")
async def list_costs(
    request: Call,
    house: Here,
    by: FromQuery[Literal["agent", "session", "cluster", "type", "tool", "model"]] = "agent",
    since: Since = None,
    until: Until = None,
    agent: Annotated[str | None, QueryParameter(description="Only its own, by session.")] = None,
    session: Annotated[str | None, QueryParameter(description="Only of it, by agent.")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    """Cluster, type, tool and model are what messages named; null stands for those that named none."""
    who = await need(request, house, "read")
    first, last = _span(house, since, until)
    after = _read(cursor, by)
    if agent is not None or session is not None:
        of = await _within(house, who.tenant_id, by, agent, session)
        span_ns = (first * MINUTE_NS, (last + 1) * MINUTE_NS)
        rows = await house.derived.spent_within(who.tenant_id, *span_ns, MOST_WITHIN, **of)
        messages, tokens = (sum(row.messages for row in rows), sum(row.tokens for row in rows))
        total = Spent("", messages, tokens, sum(row.cost for row in rows))
        if after is not None:  # dearest first, then by number, as the store told them
            rows = [row for row in rows if (-row.cost, int(row.key)) > (-after[0], int(after[1]))]
    else:
        total = await house.derived.spent_in_all(who.tenant_id, first, last)
        rows = await house.derived.spent_by(who.tenant_id, by, first, last, limit + 1, after)
    names = await names_of(house, who.tenant_id, by, [row.key for row in rows])
    items = [
        {
            "id": names.get(row.key),
            "cost": money(row.cost),
            "share": round(row.cost / total.cost, 6) if total.cost > 0 else 0.0,
            "tokens": row.tokens,
            "messages": row.messages,
        }
        for row in rows[:limit]
    ]
    return json(
        {
            "by": by,
            "since": from_ns(first * MINUTE_NS),
            "until": from_ns((last + 1) * MINUTE_NS),
            "total": {"cost": money(total.cost), "tokens": total.tokens, "messages": total.messages},
            "items": items,
            "next_cursor": _cursor(rows[limit - 1].cost, rows[limit - 1].key) if len(rows) > limit else None,
        }
    )


@get("/costs/heatmap", summary="Cost in a grid of who and when", operation_id="cost_heatmap")
async def cost_heatmap(
    request: Call,
    house: Here,
    by: FromQuery[Literal["cluster", "agent", "session"]] = "cluster",
    bucket: FromQuery[Literal["minute", "hour"]] = "minute",
    since: Annotated[
        str | None, QueryParameter(description="60 minutes or 24 hours ago if left out.")
    ] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=200, description="Rows, the dearest.")] = 50,
) -> Response[bytes]:
    """The dearest rows; all others are one row, so that every column adds up."""
    who = await need(request, house, "read")
    width, tenant_id = heatmap.WIDTH[bucket], who.tenant_id
    end = house.clock() // MINUTE_NS // width
    start = end - heatmap.USUAL[bucket] + 1
    if since is not None:
        start = time_of("since", since) // MINUTE_NS // width
        if start > end:
            raise Refusal(400, "bad_range", "since lies in the future")
        if end - start >= heatmap.MOST[bucket]:
            most = heatmap.MOST[bucket]
            raise Refusal(
                400, "bad_range", f"a grid has at most {most} columns: ask for hours, or a later time"
            )
    first, last = start * width, end * width + width - 1
    rows = await house.derived.spent_by(tenant_id, by, first, last, limit)
    keys = [row.key for row in rows if row.cost > 0]
    found = await names_of(house, tenant_id, by, keys)
    cells = await house.derived.cells(tenant_id, by, keys, first, last, width)
    sums = await house.derived.column_sums(tenant_id, first, last, width)
    names = {key: found.get(key) for key in keys}
    shown = heatmap.grid(names, cells, range(start, end + 1), sums, width)
    return json({"by": by, "bucket": bucket, **shown})


@get("/costs/gaps", summary="Where reported and computed costs differ", operation_id="cost_gaps")
async def cost_gaps(
    request: Call,
    house: Here,
    session: FromQuery[str | None] = None,
    agent: FromQuery[str | None] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    """Newest first: a cumulative figure that fell, or that is not what the steps add up to."""
    who = await need(request, house, "read")
    tenant_id, before = who.tenant_id, read_cursor(cursor)
    session_no = agent_no = None
    if session is not None:
        named = canonical_uuid(session) or session
        session_no = await _number(house, tenant_id, "sessions", "session_no", session_id=named)
    if agent is not None:
        entity_id = agent_entity_id(tenant_id, agent)
        agent_no = await _number(house, tenant_id, "agents", "agent_no", entity_id=entity_id)
    rows = await house.derived.cost_gaps(tenant_id, before, limit + 1, session_no, agent_no)
    sessions = await names_of(house, tenant_id, "session", [row.session_no for row in rows])
    agents = await names_of(house, tenant_id, "agent", [row.agent_no for row in rows])
    items = [
        {
            "sequence_number": row.seq,
            "session_id": sessions.get(row.session_no),
            "agent_id": agents.get(row.agent_no),
            "kind": row.kind,
            "reported": money(row.reported),
            "computed": money(row.computed),
            "gap": money(row.gap),
            "at": from_ns(row.at_ns),
        }
        for row in rows
    ]
    return json(page(items, limit, rows[limit - 1].seq if len(rows) > limit else None))


@get(
    "/sessions/{session_id:str}/costs",
    summary="A session's cost by branch and by agent",
    operation_id="session_costs",
)
async def session_costs(
    request: Call,
    house: Here,
    session_id: FromPath[str],
    limit: Annotated[int, QueryParameter(ge=1, le=MOST_BRANCHES)] = 100,
) -> Response[bytes]:
    """Branches by what their steps added, the dearest first; `cost_5m` is what each took in five minutes."""
    who = await need(request, house, "read")
    session = await session_row(house, who.tenant_id, session_id)
    loaded = await load(house, who.tenant_id, session, is_glance=True)
    body = await asyncio.to_thread(_branches, loaded, house.clock(), limit)
    return Response(msgspec.json.encode(body), media_type=MediaType.JSON)


def _branches(loaded: Loaded, now_ns: int, limit: int) -> Row:
    graph = loaded.graph
    nodes = graph.nodes(now_ns)
    shown = branches(nodes, now_ns)
    agents = sorted(graph.agents(now_ns, loaded.paused), key=lambda row: (-row["cost"], row["agent_id"]))
    return {
        "session_id": loaded.session["session_id"],
        "as_of": from_ns(now_ns),
        "truncated": loaded.truncated,
        "reported": money(loaded.session["cost"]),
        **shown,
        "branches": shown["branches"][:limit],
        "branches_count": len(shown["branches"]),
        "agents": [
            {
                "agent_id": row["agent_id"],
                "cost": money(row["cost"]),
                "tokens": row["tokens"],
                "steps": row["steps"],
            }
            for row in agents
        ],
        "fell": [node["id"] for node in nodes if "cost_decreased" in node.get("flags", ())],
    }


# --- words for numbers, and times ---


async def names_of(house: House, tenant_id: str, by: Dimension, keys: Iterable[Key]) -> dict[Key, str | None]:
    """What people call these; nothing for what has no name."""
    wanted = [key for key in keys if key not in (0, "")]
    if by not in ("agent", "session"):
        return {key: str(key) for key in wanted}
    table, number, name = (
        ("agents", "agent_no", "agent_id") if by == "agent" else ("sessions", "session_no", "session_id")
    )
    rows = await house.store.rows(tenant_id, table, **{number: sorted(wanted)}) if wanted else []
    return {row[number]: row[name] for row in rows}


async def _within(
    house: House, tenant_id: str, by: Dimension, agent: str | None, session: str | None
) -> dict[str, int]:
    if agent is not None and session is None and by == "session":
        entity_id = agent_entity_id(tenant_id, agent)
        return {"agent_no": await _number(house, tenant_id, "agents", "agent_no", entity_id=entity_id)}
    if session is not None and agent is None and by == "agent":
        named = canonical_uuid(session) or session
        return {"session_no": await _number(house, tenant_id, "sessions", "session_no", session_id=named)}
    raise Refusal(400, "bad_request", "an agent's costs are told by session, and a session's by agent")


async def _number(house: House, tenant_id: str, table: str, column: str, **name: str) -> int:
    """-1 for what is not known: nothing is found of it."""
    rows = await house.store.rows(tenant_id, table, **name)
    return int(rows[0][column]) if rows else -1


def _span(house: House, since: str | None, until: str | None) -> tuple[int, int]:
    """First and last minute, both inclusive."""
    last = (house.clock() if until is None else time_of("until", until)) // MINUTE_NS
    first = last - DAY if since is None else time_of("since", since) // MINUTE_NS
    if first > last:
        raise Refusal(400, "bad_range", "since must not lie after until")
    if last - first > LONGEST:
        raise Refusal(400, "bad_range", "at most 31 days at once; give a later since")
    return first, last


def _cursor(cost: float, key: Key) -> str:
    return sealed(msgspec.json.encode((cost, key)))


def _read(cursor: str | None, by: Dimension) -> tuple[float, Key] | None:
    if cursor is None:
        return None
    kind: Any = tuple[float, int] if by in ("agent", "session") else tuple[float, str]
    try:
        found: tuple[float, Key] = msgspec.json.decode(unsealed(cursor), type=kind)
    except (ValueError, msgspec.DecodeError) as error:
        raise not_ours() from error
    if isinstance(found[1], int) and not 0 <= found[1] < 1 << 62:
        raise not_ours()
    return found


costs = Router(
    path="/v1",
    route_handlers=[list_costs, cost_heatmap, cost_burn, cost_gaps, branch_costs, session_costs],
    tags=["Costs"],
)
