"""Cost routes: spending by agent, session or label, as a grid, by branch of a session, and discrepancies.

Sums come from minute counters, slightly behind the record; a session's branches come from the archive itself.
Times are rounded down to the minute. Money is in whatever unit agents report; rules S235–S241.
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
from observatory.features.costs.heatmap import money
from observatory.features.costs.routes_branches import branch_costs
from observatory.features.costs.routes_burn_rate import cost_burn
from observatory.features.costs.types_burn import MINUTE_NS
from observatory.features.fleet.types_traffic import Dimension, Key, SpendingReads, SpendingRow
from observatory.features.graph.queries_session import LoadedSession, load, session_row
from observatory.http.answers import (
    Cursor,
    Limit,
    Refusal,
    decode_cursor,
    encode_cursor,
    invalid_cursor,
    json,
    page,
    read_cursor,
    time_of,
)
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import agent_entity_id, canonical_uuid

DAY, LONGEST = 24 * 60, 31 * 24 * 60  # minutes
MAX_BRANCHES = 500
MAX_WITHIN = 5_000
Row = dict[str, Any]
Since = Annotated[str | None, QueryParameter(description="From this time on. Default: a day ago.")]
Until = Annotated[str | None, QueryParameter(description="Up to this time. Default: now.")]


@get("/costs", summary="List costs, the most expensive first", operation_id="list_costs")
async def list_costs(
    request: Call,
    app: Here,
    by: FromQuery[Literal["agent", "session", "cluster", "type", "tool", "model"]] = "agent",
    since: Since = None,
    until: Until = None,
    agent: Annotated[str | None, QueryParameter(description="Only this agent's costs, by session.")] = None,
    session: Annotated[str | None, QueryParameter(description="Only this session's costs, by agent.")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    """Cluster, type, tool and model are those messages named; null stands for messages that named none."""
    who = await require_permission(request, app, "read")
    first, last = _span(app, since, until)
    after = _read(cursor, by)
    if agent is not None or session is not None:
        of = await _within(app, who.tenant_id, by, agent, session)
        span_ns = (first * MINUTE_NS, (last + 1) * MINUTE_NS)
        rows = await app.derived.queries(SpendingReads).spent_within(
            who.tenant_id, *span_ns, MAX_WITHIN, **of
        )
        messages, tokens = (sum(row.messages for row in rows), sum(row.tokens for row in rows))
        total = SpendingRow("", messages, tokens, sum(row.cost for row in rows))
        if after is not None:  # most expensive first, then by number, as the store returns them
            rows = [row for row in rows if (-row.cost, int(row.key)) > (-after[0], int(after[1]))]
    else:
        total = await app.derived.queries(SpendingReads).spent_in_all(who.tenant_id, first, last)
        rows = await app.derived.queries(SpendingReads).spent_by(
            who.tenant_id, by, first, last, limit + 1, after
        )
    names = await names_of(app, who.tenant_id, by, [row.key for row in rows])
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


@get("/costs/heatmap", summary="Cost heatmap by time", operation_id="cost_heatmap")
async def cost_heatmap(
    request: Call,
    app: Here,
    by: FromQuery[Literal["cluster", "agent", "session"]] = "cluster",
    bucket: FromQuery[Literal["minute", "hour"]] = "minute",
    since: Annotated[str | None, QueryParameter(description="Default: 60 minutes or 24 hours ago.")] = None,
    limit: Annotated[
        int, QueryParameter(ge=1, le=200, description="Number of rows, the most expensive.")
    ] = 50,
) -> Response[bytes]:
    """The most expensive rows; all others are one row, so that every column adds up."""
    who = await require_permission(request, app, "read")
    width, tenant_id = heatmap.WIDTH[bucket], who.tenant_id
    end = app.clock() // MINUTE_NS // width
    start = end - heatmap.DEFAULT_COLUMNS[bucket] + 1
    if since is not None:
        start = time_of("since", since) // MINUTE_NS // width
        if start > end:
            raise Refusal(400, "bad_range", "since is in the future")
        if end - start >= heatmap.MAX_COLUMNS[bucket]:
            most = heatmap.MAX_COLUMNS[bucket]
            raise Refusal(
                400, "bad_range", f"a grid has at most {most} columns: use bucket=hour or a later since"
            )
    first, last = start * width, end * width + width - 1
    rows = await app.derived.queries(SpendingReads).spent_by(tenant_id, by, first, last, limit)
    keys = [row.key for row in rows if row.cost > 0]
    found = await names_of(app, tenant_id, by, keys)
    cells = await app.derived.queries(SpendingReads).cells(tenant_id, by, keys, first, last, width)
    sums = await app.derived.queries(SpendingReads).column_sums(tenant_id, first, last, width)
    names = {key: found.get(key) for key in keys}
    shown = heatmap.grid(names, cells, range(start, end + 1), sums, width)
    return json({"by": by, "bucket": bucket, **shown})


@get(
    "/costs/gaps", summary="List discrepancies between reported and computed costs", operation_id="cost_gaps"
)
async def cost_gaps(
    request: Call,
    app: Here,
    session: FromQuery[str | None] = None,
    agent: FromQuery[str | None] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    """Newest first: a cumulative figure that fell, or that differs from the sum of the steps."""
    who = await require_permission(request, app, "read")
    tenant_id, before = who.tenant_id, read_cursor(cursor)
    session_no = agent_no = None
    if session is not None:
        named = canonical_uuid(session) or session
        session_no = await _number(app, tenant_id, "sessions", "session_no", session_id=named)
    if agent is not None:
        entity_id = agent_entity_id(tenant_id, agent)
        agent_no = await _number(app, tenant_id, "agents", "agent_no", entity_id=entity_id)
    rows = await app.derived.queries(SpendingReads).cost_gaps(
        tenant_id, before, limit + 1, session_no, agent_no
    )
    sessions = await names_of(app, tenant_id, "session", [row.session_no for row in rows])
    agents = await names_of(app, tenant_id, "agent", [row.agent_no for row in rows])
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
    app: Here,
    session_id: FromPath[str],
    limit: Annotated[int, QueryParameter(ge=1, le=MAX_BRANCHES)] = 100,
) -> Response[bytes]:
    """Branches by the cost of their steps, the most expensive first; `cost_5m` is each one's last five
    minutes."""
    who = await require_permission(request, app, "read")
    session = await session_row(app, who.tenant_id, session_id)
    loaded = await load(app, who.tenant_id, session, is_glance=True)
    body = await asyncio.to_thread(_branches, loaded, app.clock(), limit)
    return Response(msgspec.json.encode(body), media_type=MediaType.JSON)


def _branches(loaded: LoadedSession, now_ns: int, limit: int) -> Row:
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


# --- names for numbers, and time ranges ---


async def names_of(
    app: AppState, tenant_id: str, by: Dimension, keys: Iterable[Key]
) -> dict[Key, str | None]:
    """Display names of these keys; keys without a name are left out."""
    named_keys = [key for key in keys if key not in (0, "")]
    if by not in ("agent", "session"):
        return {key: str(key) for key in named_keys}
    table, number, name = (
        ("agents", "agent_no", "agent_id") if by == "agent" else ("sessions", "session_no", "session_id")
    )
    rows = await app.store.rows(tenant_id, table, **{number: sorted(named_keys)}) if named_keys else []
    return {row[number]: row[name] for row in rows}


async def _within(
    app: AppState, tenant_id: str, by: Dimension, agent: str | None, session: str | None
) -> dict[str, int]:
    if agent is not None and session is None and by == "session":
        entity_id = agent_entity_id(tenant_id, agent)
        return {"agent_no": await _number(app, tenant_id, "agents", "agent_no", entity_id=entity_id)}
    if session is not None and agent is None and by == "agent":
        named = canonical_uuid(session) or session
        return {"session_no": await _number(app, tenant_id, "sessions", "session_no", session_id=named)}
    raise Refusal(
        400, "bad_request", "an agent's costs can only be listed by session, and a session's by agent"
    )


async def _number(app: AppState, tenant_id: str, table: str, column: str, **name: str) -> int:
    """-1 for an unknown name: nothing matches it."""
    rows = await app.store.rows(tenant_id, table, **name)
    return int(rows[0][column]) if rows else -1


def _span(app: AppState, since: str | None, until: str | None) -> tuple[int, int]:
    """First and last minute, both inclusive."""
    last = (app.clock() if until is None else time_of("until", until)) // MINUTE_NS
    first = last - DAY if since is None else time_of("since", since) // MINUTE_NS
    if first > last:
        raise Refusal(400, "bad_range", "since must not be after until")
    if last - first > LONGEST:
        raise Refusal(400, "bad_range", "at most 31 days per request; use a later since")
    return first, last


def _cursor(cost: float, key: Key) -> str:
    return encode_cursor(msgspec.json.encode((cost, key)))


def _read(cursor: str | None, by: Dimension) -> tuple[float, Key] | None:
    if cursor is None:
        return None
    kind: Any = tuple[float, int] if by in ("agent", "session") else tuple[float, str]
    try:
        found: tuple[float, Key] = msgspec.json.decode(decode_cursor(cursor), type=kind)
    except (ValueError, msgspec.DecodeError) as error:
        raise invalid_cursor() from error
    if isinstance(found[1], int) and not 0 <= found[1] < 1 << 62:
        raise invalid_cursor()
    return found


costs = Router(
    path="/v1",
    route_handlers=[list_costs, cost_heatmap, cost_burn, cost_gaps, branch_costs, session_costs],
    tags=["Costs"],
)
