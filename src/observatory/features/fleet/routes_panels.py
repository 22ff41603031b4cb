"""Fleet Command's panels: throughput, latency by region, health of gateway, bus and database (S303–S307).

Throughput counts committed messages by the gateway's clock: folded seconds, plus what is not folded yet from
the archive, so that it is current and messages of other gateways count. Latency is measured by the gateway
itself: from the creation of a delivery to its acknowledgement; no agent's clock is trusted.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, Router, get
from litestar.params import FromQuery, QueryParameter

from observatory.derived.ports import FoldProgress
from observatory.errors import ObservatoryError, StoreError
from observatory.features.fleet.panels import SECOND, Flow, flow, latencies
from observatory.features.fleet.regions import cluster_region
from observatory.features.fleet.routes_regions import places_of
from observatory.features.fleet.types_traffic import MapReads
from observatory.features.insight.queries import status_of
from observatory.features.schedule.queries_clock_health import ClockHealth, clock_health
from observatory.features.sessions.queries_rows import membership_reads
from observatory.features.transparency.queries_health import LogHealth, log_health
from observatory.http.answers import json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.health import HealthPart, HealthStatus
from observatory.http.permissions import require_permission
from observatory.pipeline.state import HOME_TENANT
from observatory.protocol.clock import from_ns

SAMPLED = 20_000  # latencies are taken from this many acknowledgements, the newest
UNFOLDED = 20_000  # numbers the analyst has not folded yet that are counted from the archive
TRIES = 3
SLOW_PING_MS, LATE_S, FULL = 250.0, 10.0, 0.5
MEASURED = "from the creation of a delivery to its acknowledgement by the receiver, by the gateway's clock"
RANK: dict[str, int] = {"ok": 0, "degraded": 1, "down": 2}
Row = dict[str, Any]


class ThroughputPoint(msgspec.Struct, kw_only=True):
    at: str
    messages: int
    failures: int
    violations: int


class ThroughputAnswer(msgspec.Struct, kw_only=True):
    """60 points, oldest first, the last one still running. Failures are known once a message is folded."""

    window: Literal["60s", "1h"]
    bucket_s: int
    as_of: str
    folded_until: str | None
    rate_per_s: float
    messages: int
    failures: int
    violations: int
    points: list[ThroughputPoint]


class LatencySpread(msgspec.Struct, kw_only=True):
    count: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    max_ms: float | None
    histogram: list[int]


class RegionLatency(LatencySpread, kw_only=True):
    region: str
    name: str
    lat: float | None
    lon: float | None


class LatencyAnswer(msgspec.Struct, kw_only=True):
    """`histogram` has one bucket more than `edges_ms`: for everything slower than the last edge."""

    minutes: int
    as_of: str
    measured: str
    sampled: int
    truncated: bool
    edges_ms: list[int]
    regions: list[RegionLatency]
    all: LatencySpread


class GatewayHealth(HealthPart, kw_only=True):
    up_since: str
    version: str
    waiting: int
    waiting_bytes: int
    queue_limit: int
    last_commit_ok: bool
    rate_per_s: float
    live_clients: int


class BusHealth(HealthPart, kw_only=True):
    """`address`, `away_since` and `last_error` are given for NATS only; never a user or a password."""

    kind: Literal["memory", "nats"]
    connected: bool
    address: str | None = None
    away_since: str | None = None
    last_error: str | None = None


class DatabaseHealth(HealthPart, kw_only=True):
    """`size_bytes` is given to the home tenant only: other tenants share the database."""

    dialect: Literal["sqlite", "postgresql"]
    ping_ms: float | None
    size_bytes: int | None


class InsightHealth(HealthPart, kw_only=True):
    enabled: bool
    running: bool
    behind: int
    lag_s: float | None
    folded_until: str | None


class FleetHealth(msgspec.Struct, kw_only=True):
    as_of: str
    status: HealthStatus
    gateway: GatewayHealth
    bus: BusHealth
    database: DatabaseHealth
    insight: InsightHealth
    log: LogHealth
    clock: ClockHealth


IN_PROCESS: Row = {
    "status": "ok",
    "text": "In process: it wakes this gateway's readers; other gateways' commits are found in the database.",
    "kind": "memory",
    "connected": True,
    "address": None,
    "away_since": None,
    "last_error": None,
}


@get("/fleet/throughput", summary="Messages by second or by minute", operation_id="fleet_throughput")
async def fleet_throughput(
    request: Call, app: Here, window: FromQuery[Literal["60s", "1h"]] = "60s"
) -> Response[bytes]:
    tenant_id, now_ns = (await require_permission(request, app, "read")).tenant_id, app.clock()
    bucket_s = 1 if window == "60s" else 60
    found, folded = await flow_of(app, tenant_id, now_ns, 60 * bucket_s)
    points = found.points(now_ns, bucket_s)
    return json(
        {
            "window": window,
            "bucket_s": bucket_s,
            "as_of": from_ns(now_ns),
            "folded_until": from_ns(folded.at_ns) if folded.at_ns else None,
            "rate_per_s": found.rate(now_ns),
            **{name: sum(point[name] for point in points) for name in ("messages", "failures", "violations")},
            "points": points,
        }
    )


async def flow_of(app: AppState, tenant_id: str, now_ns: int, window_s: int) -> tuple[Flow, FoldProgress]:
    """Traffic of the last `window_s` seconds. Comparing the cursor prevents counting a message twice while
    the fold proceeds."""
    last = now_ns // SECOND
    folded, counts = FoldProgress(), []
    try:
        for _ in range(TRIES):
            folded = await app.derived.progress(tenant_id)
            counts = await app.derived.queries(MapReads).seconds(tenant_id, last - window_s, last + 1)
            now = await app.derived.progress(tenant_id)
            if now.seq == folded.seq:
                break
            folded = now
    except StoreError:  # fall back to the record alone
        folded, counts = FoldProgress(), []
    head, _ = await app.store.head(tenant_id)
    after = max(folded.seq, head - UNFOLDED)
    left = await membership_reads(app).counts_after(tenant_id, after, UNFOLDED) if after < head else {}
    return flow(counts, left), folded


@get("/fleet/latency", summary="How long deliveries take, by region", operation_id="fleet_latency")
async def fleet_latency(
    request: Call,
    app: Here,
    minutes: Annotated[int, QueryParameter(ge=1, le=1_440, description="How far back, in minutes.")] = 60,
) -> Response[bytes]:
    """Of the newest 20,000 acknowledged deliveries of that time, by the region of the receiver's cluster."""
    tenant_id, now_ns = (await require_permission(request, app, "read")).tenant_id, app.clock()
    taken = await app.store.latencies(tenant_id, now_ns - minutes * 60 * SECOND, SAMPLED)
    places = (await places_of(app, tenant_id))[0]
    agents = await app.store.rows(tenant_id, "agents") if taken else []
    where = {row["agent_no"]: cluster_region(row["cluster_id"], places) for row in agents}
    spread = await asyncio.to_thread(
        lambda: latencies((spent_ns, where.get(agent_no)) for _, agent_no, spent_ns in taken)
    )
    head = {
        "minutes": minutes,
        "as_of": from_ns(now_ns),
        "measured": MEASURED,
        "sampled": len(taken),
        "truncated": len(taken) == SAMPLED,
    }
    return json(head | spread)


@get("/fleet/health", summary="Gateway, bus, database and insight", operation_id="fleet_health")
async def fleet_health(request: Call, app: Here) -> Response[bytes]:
    tenant_id = (await require_permission(request, app, "read")).tenant_id
    database = await _database(app, tenant_id)
    insight = await _insight(app, tenant_id)
    parts = {
        "gateway": await _gateway(app, tenant_id),
        "bus": app.bus_health() if app.bus_health is not None else IN_PROCESS,
        "database": database,
        "insight": insight,
        "log": await log_health(app, tenant_id),
        "clock": await _clock(app, tenant_id),
    }
    worst = max((part["status"] for part in parts.values()), key=RANK.__getitem__)
    return json({"as_of": from_ns(app.clock()), "status": worst, **parts})


async def _clock(app: AppState, tenant_id: str) -> Row:
    try:
        return await clock_health(app, tenant_id)
    except StoreError:
        return {
            "status": "down",
            "text": "The record cannot be read, so the clock cannot be checked against it.",
            "shows": from_ns(app.clock()),
            "parted_s": round(app.wall.offset_ns / SECOND, 3),
            "is_firing": False,
            "newest_event_at": None,
            "behind_record_s": 0.0,
            "jobs_ahead": 0,
            "runs_ahead": 0,
            "farthest_next_at": None,
        }


async def _gateway(app: AppState, tenant_id: str) -> Row:
    committer, now_ns = app.committer, app.clock()
    waiting, size = committer.waiting
    share = max(waiting / committer.max_messages, size / committer.max_bytes)
    status: HealthStatus = "ok"
    text = "Accepting messages." if not waiting else f"Accepting messages; {waiting} waiting to be stored."
    if committer.is_store_failing:
        status, text = "down", "The last commit was not durable: messages are refused, not lost."
    elif share > FULL:
        status, text = "degraded", f"Its queue is {share:.0%} full: {waiting} messages waiting to be stored."
    rate = 0.0
    try:
        rate = (await flow_of(app, tenant_id, now_ns, 60))[0].rate(now_ns)
    except StoreError:
        status, text = "down", "The gateway cannot read its database."
    return {
        "status": status,
        "text": text,
        "up_since": from_ns(app.started_ns),
        "version": app.settings.service_version,
        "waiting": waiting,
        "waiting_bytes": size,
        "queue_limit": committer.max_messages,
        "last_commit_ok": not committer.is_store_failing,
        "rate_per_s": rate,
        "live_clients": app.feed.clients(tenant_id),
    }


async def _database(app: AppState, tenant_id: str) -> Row:
    began = time.perf_counter()
    name = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}.get(app.store.dialect, app.store.dialect)
    made: Row = {"dialect": app.store.dialect, "ping_ms": None, "size_bytes": None}
    try:
        await app.store.ping()
        made["ping_ms"] = round((time.perf_counter() - began) * 1_000, 3)
        if tenant_id == HOME_TENANT:
            with suppress(StoreError):  # the PostgreSQL role may lack the permission
                made["size_bytes"] = await membership_reads(app).size_bytes()
    except ObservatoryError:
        return {"status": "down", "text": f"{name} does not respond; nothing can be stored."} | made
    slow = made["ping_ms"] > SLOW_PING_MS
    text = f"{name} responds in {made['ping_ms']:.0f} ms" + (", slowly." if slow else ".")
    return {"status": "degraded" if slow else "ok", "text": text} | made


async def _insight(app: AppState, tenant_id: str) -> Row:
    enabled, running = app.settings.insight, app.analyst.alive
    made: Row = {"enabled": enabled, "running": running, "behind": 0, "lag_s": None, "folded_until": None}
    try:
        found = await status_of(app, tenant_id)
    except StoreError:
        return {"status": "down", "text": "The derived store cannot be read; the record is complete."} | made
    made |= {"behind": found.lag_messages, "lag_s": found.lag_s, "folded_until": found.cursor_at}
    if not enabled:
        return {"status": "ok", "text": "Disabled: no goals, rates, search or costs by minute."} | made
    if not running:
        return {"status": "down", "text": "The analyst is not running; it restarts automatically."} | made
    if found.lag_s > LATE_S:
        text = f"The analyst is {found.lag_s:.0f} s behind: maps, costs and search are that old."
        return {"status": "degraded", "text": text} | made
    return {"status": "ok", "text": "The analyst keeps up with the record."} | made


PANEL_ANSWERS: dict[str, Any] = {
    "fleet_throughput": ThroughputAnswer,
    "fleet_latency": LatencyAnswer,
    "fleet_health": FleetHealth,
}
panels = Router(
    path="/v1", route_handlers=[fleet_throughput, fleet_latency, fleet_health], tags=["Fleet Command"]
)
