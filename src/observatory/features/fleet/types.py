"""Response types of the map and of the cost pages, for the OpenAPI document."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from observatory.features.fleet.regions import ClusterPlace
from observatory.features.fleet.types_node_states import NodeState

EdgeStatus = Literal["Healthy", "Alert", "Blocked"]
FleetLevel = Literal["cluster", "group", "agent"]


class RegionItem(msgspec.Struct, kw_only=True):
    region: str
    name: str
    lat: float
    lon: float


class NodeAlarm(msgspec.Struct, kw_only=True):
    kind: str
    severity: Literal["critical", "warning"]
    text: str | None
    since: str | None
    session_id: str | None
    detector: str | None
    entropy_score: float | None


class GroupAlarm(NodeAlarm, kw_only=True):
    agent_id: str


class HudAlarm(NodeAlarm, kw_only=True, rename={"source": "from"}):
    on: Literal["node", "edge"]
    id: str
    cluster_id: str | None
    source: str | None
    to: str | None


class Sign(msgspec.Struct, kw_only=True):
    """A state shown by colour, mark and shape: never by its colour alone."""

    state: NodeState
    colour: str
    mark: str
    shape: str
    flashing: bool


class FleetNode(Sign, kw_only=True):
    id: str
    agent_id: str
    entity_id: str
    name: str
    agent_type: str | None
    cluster_id: str | None
    rule: int
    reason: str
    liveness: Literal["healthy", "zombie", "evicted", "unknown"]
    ghost: bool
    last_seen_at: str | None
    messages_60s: float
    rate_per_s: float
    failures_60s: float
    cost_per_min: float
    alarms: list[NodeAlarm]
    region: RegionItem | UnsetType | None = UNSET


class Summed(Sign, kw_only=True):
    agents: int
    ghosts: int
    states: dict[NodeState, int]
    messages_60s: float
    rate_per_s: float
    failures_60s: float
    cost_per_min: float


class FleetGroup(Summed, kw_only=True):
    id: str
    level: FleetLevel
    name: str
    cluster_id: str | None
    agent_type: str | None
    internal_per_s: float
    region: RegionItem | None
    alarms: list[GroupAlarm]
    alarms_count: int


class FleetLayer(Summed, kw_only=True):
    """A hull of the layout: an agent type, or a region with its clusters."""

    id: str
    name: str
    lat: float | UnsetType = UNSET
    lon: float | UnsetType = UNSET
    clusters: list[str] | UnsetType = UNSET


class FleetEdge(msgspec.Struct, kw_only=True, rename={"source": "from"}):
    """`edges` is how many were merged into this one; percentiles are then those of the slowest."""

    source: str
    to: str | None
    address: str | None
    kinds: list[Literal["message", "causal"]]
    edges: int
    messages: int
    messages_60s: float
    rate_per_s: float
    failures: int
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    latency_mean_ms: float | None
    unacknowledged: int
    status: EdgeStatus
    reason: str | None


class Throughput(msgspec.Struct, kw_only=True):
    messages_60s: float
    rate_per_s: float
    failures_60s: float
    violations_60s: float
    cost_per_min: float
    edges: int


class ForkItem(msgspec.Struct, kw_only=True):
    session_id: str | None
    sequence_number: int
    agent_id: str | None
    at: str
    children: int
    to: list[str]


class FleetAnswer(msgspec.Struct, kw_only=True):
    """`nodes` is empty when the answer is by group or cluster; `note` says why."""

    as_of: str
    folded_until: str | None
    replayed: bool
    minute: dict[str, str] | None
    layout: Literal["logical", "geographic"]
    level: FleetLevel
    aggregated: bool
    note: str | None
    agents: int
    nodes: list[FleetNode]
    groups: list[FleetGroup]
    groups_count: int
    edges: list[FleetEdge]
    edges_count: int
    layers: list[FleetLayer]
    unplaced: list[str]
    alarms: list[HudAlarm]
    throughput: Throughput
    forks: list[ForkItem]


class PlacedCluster(RegionItem, kw_only=True):
    cluster_id: str
    by: Literal["name", "operator"]


class RegionsAnswer(msgspec.Struct, kw_only=True):
    clusters: dict[str, ClusterPlace]
    placed: list[PlacedCluster]
    unplaced: list[str]
    known: list[RegionItem]
    updated_at: str | None
    updated_by: str | None


class CostItem(msgspec.Struct, kw_only=True):
    id: str | None
    cost: float
    share: float
    tokens: int
    messages: int


class CostsAnswer(msgspec.Struct, kw_only=True):
    by: Literal["agent", "session", "cluster", "type", "tool", "model"]
    since: str
    until: str
    total: dict[str, float]
    items: list[CostItem]
    next_cursor: str | None


class HeatRow(msgspec.Struct, kw_only=True):
    id: str | None
    total: float
    values: list[float]


class HeatmapAnswer(msgspec.Struct, kw_only=True):
    by: Literal["cluster", "agent", "session"]
    bucket: Literal["minute", "hour"]
    columns: list[str]
    rows: list[HeatRow]
    others: list[float]
    totals: list[float]
    max: float
    total: float


class Burn(msgspec.Struct, kw_only=True):
    per_min_5m: float
    per_min_1h: float


class BurnItem(Burn, kw_only=True):
    id: str | None


class AgentCost(msgspec.Struct, kw_only=True):
    agent_id: str | None
    cost: float


class BranchItem(msgspec.Struct, kw_only=True):
    step: str
    step_id: str
    sequence_number: int
    parent: str | None
    agent_id: str | None
    intent: str | None
    depth: int
    steps: int
    cost: float
    branch_cost: float
    share: float
    cost_5m: float
    agents: list[AgentCost]


class Hottest(msgspec.Struct, kw_only=True):
    session_id: str
    agent_id: str | None
    cost_5m: float
    branch: BranchItem | None
    costs: str


class BudgetBurn(Burn, kw_only=True):
    """`soft_in_s` and `hard_in_s` are 0 when the cap is reached, null while nothing burns."""

    budget_id: str
    scope: Literal["tenant", "cluster", "session", "agent"]
    target: str
    period: Literal["none", "daily", "monthly"]
    soft: float | None
    hard: float | None
    whose: str | None
    spent: float
    remaining: float | None
    share: float
    resets_at: str | None
    soft_in_s: float | None
    hard_in_s: float | None
    soft_at: str | None
    hard_at: str | None
    hottest: Hottest | None


class BurnAnswer(msgspec.Struct, kw_only=True):
    as_of: str
    tenant: Burn
    clusters: list[BurnItem]
    sessions: list[BurnItem]
    agents: list[BurnItem]
    budgets: list[BudgetBurn]


class GapItem(msgspec.Struct, kw_only=True):
    sequence_number: int
    session_id: str | None
    agent_id: str | None
    kind: Literal["fell", "differs"]
    reported: float
    computed: float
    gap: float
    at: str


class GapList(msgspec.Struct, kw_only=True):
    items: list[GapItem]
    next_cursor: str | None


class SessionAgentCost(AgentCost, kw_only=True):
    tokens: int
    steps: int


class SessionCosts(msgspec.Struct, kw_only=True):
    session_id: str
    as_of: str
    truncated: bool
    reported: float
    cost: float
    steps: int
    branches: list[BranchItem]
    branches_count: int
    hottest: list[str]
    agents: list[SessionAgentCost]
    fell: list[str]


FLEET_ANSWERS: dict[str, Any] = {
    "fleet_map": FleetAnswer,
    "get_regions": RegionsAnswer,
    "put_regions": RegionsAnswer,
    "list_costs": CostsAnswer,
    "cost_heatmap": HeatmapAnswer,
    "cost_burn": BurnAnswer,
    "cost_gaps": GapList,
    "session_costs": SessionCosts,
}
