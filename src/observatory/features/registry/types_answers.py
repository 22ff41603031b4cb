"""Response types of the registry: agents, capabilities, routes, breakers, edges and versions."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class AgentItem(msgspec.Struct, kw_only=True):
    """`capabilities`: those it receives work for; `granted`: those an operator granted (clusters too);
    `requested`: those it claims and does not receive work for."""

    agent_id: str
    entity_id: str
    entity_type: Literal["agent"]
    tenant_id: str
    display_name: str
    agent_type: str | None
    capability_version: str | None
    cluster_id: str | None
    model: str | None
    provider: str | None
    hub_address: str | None
    capabilities: list[str]
    granted: list[str]
    requested: list[str]
    owner: str | None
    team_id: str | None
    workspace_id: str | None
    trust_level: Literal["tenant_verified", "federation_verified", "unverified"]
    state: Literal["idle", "active", "alert_entropy", "schema_violation", "dead", "blocked"]
    colour: str
    mark: str
    state_reason: str
    liveness: Literal["healthy", "zombie", "evicted", "unknown"]
    status: str | None
    task: dict[str, Any] | None
    usage: dict[str, Any] | None
    last_heartbeat_at: str | None
    paused_at: str | None  # in all sessions, by a person
    paused_by: str | None
    evicted_at: str | None
    ghost: bool
    messages: int
    first_seen_at: str
    last_seen_at: str | None
    certificate: str | None
    """Fingerprint of the certificate it last connected with."""


class HeartbeatAnswer(msgspec.Struct, kw_only=True):
    agent_id: str
    entity_id: str
    liveness: Literal["healthy"]
    status: str | None
    heartbeat_at: str
    chained: bool


class CapabilityItem(msgspec.Struct, kw_only=True):
    """One entry of the capability directory; evicted agents are counted separately."""

    capability: str
    is_agent_type: bool
    healthy: int
    unknown: int
    zombie: int
    evicted: int
    total: int
    versions: dict[str, int]
    models: dict[str, int]
    trust_levels: dict[str, int]
    clusters: dict[str, int]
    breaker: Literal["closed", "open", "half_open"] | None
    weights: dict[str, float] | None


class RouteItem(msgspec.Struct, kw_only=True):
    capability: str
    weights: dict[str, float]
    shares: dict[str, float]
    updated_at: str
    updated_by: str


class BreakerItem(msgspec.Struct, kw_only=True):
    capability: str
    state: Literal["closed", "open", "half_open"]
    successes: int
    failures: int
    window_started_at: str
    opened_at: str | None
    reason: str | None
    forced_by: str | None


class EdgeItem(msgspec.Struct, kw_only=True, rename={"from_": "from"}):
    from_: str | None
    from_entity_id: str | None
    to: str | None
    to_entity_id: str | None
    messages: int
    messages_60s: int
    rate_per_s: float
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    unacknowledged: int
    status: Literal["Healthy", "Alert", "Blocked"]
    reason: str | None


class LeaveAnswer(msgspec.Struct, kw_only=True):
    session_id: str
    agent_id: str
    state: Literal["left", "already_left"]


class Evicted(msgspec.Struct, kw_only=True):
    agent_id: str
    entity_id: str
    evicted: bool


class VersionItem(msgspec.Struct, kw_only=True):
    agent_type: str
    version: str
    status: Literal["current", "previous", "retired", "unknown"]
    fields: list[str] | None
    updated_at: str | None = None
    updated_by: str | None = None
