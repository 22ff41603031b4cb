"""What each reading route answers, as structs: the source of the OpenAPI document's response bodies."""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar

import msgspec

from observatory.features.access.types import (
    Disabled,
    EndedLogin,
    KeyItem,
    LoginAnswer,
    LoginItem,
    NewTenantAnswer,
    PersonItem,
    Revoked,
    RoleAnswer,
    TenantItem,
    UserItem,
    Whoami,
)
from observatory.features.alerting.routes_tray import AlertNotice
from observatory.features.alerting.types import ALERT_RULE_ANSWERS
from observatory.features.archive.routes_violations import VIOLATION_ANSWERS
from observatory.features.backup.routes import EXPORT_ANSWERS
from observatory.features.budgets.routes import BudgetItem, RemovedBudget
from observatory.features.cascade.types import CASCADE_ANSWERS
from observatory.features.certificates.routes import CERTIFICATE_ANSWERS
from observatory.features.costs.routes_branches import LINE_ANSWERS
from observatory.features.decisions.routes_settings import DecisionSettingsAnswer
from observatory.features.decisions.routes_waiting import WaitingAnswer
from observatory.features.exporters.types import EXPORTER_ANSWERS
from observatory.features.facts.types_answers import FACT_ANSWERS
from observatory.features.fleet.routes_panels import PANEL_ANSWERS
from observatory.features.fleet.types import FLEET_ANSWERS
from observatory.features.graph.types import DAG_ANSWERS
from observatory.features.hooks.types import HOOK_ANSWERS
from observatory.features.inbox.commands import Acked
from observatory.features.instructions.routes import InstructionsAnswer, InstructionsIssued, InstructionsItem
from observatory.features.kill_switch.enforcement import KillSwitchStanding
from observatory.features.kill_switch.routes import (
    ArmedKillSwitch,
    ConfirmedKillSwitch,
    KillSwitchList,
    ReleasedKillSwitch,
)
from observatory.features.loops.routes import AlertItem
from observatory.features.loops.routes_settings import DetectorAnswer
from observatory.features.otlp.counters import OTLP_ANSWERS
from observatory.features.policies.routes import PolicyItem, PolicyList, RemovedPolicy
from observatory.features.policies.routes_dry_run import DryRunAnswer
from observatory.features.redaction.routes import REDACTION_ANSWERS
from observatory.features.redaction.shredded import ShreddedBy
from observatory.features.registry.types_grants import GrantItem, GrantsAnswer, RoutingSettingsAnswer
from observatory.features.relay.commands import Commanded
from observatory.features.relay.routes_agents import ROOM_ANSWERS, AgentSession
from observatory.features.relay.types import HoldItem, InterventionItem
from observatory.features.schedule.types import SCHEDULE_ANSWERS
from observatory.features.search.types import SEARCH_ANSWERS
from observatory.features.sessions.routes import SessionAnswer
from observatory.features.sessions.rows import SessionItem
from observatory.features.thoughts.types import THOUGHT_ANSWERS
from observatory.features.transparency.types import LOG_ANSWERS
from observatory.features.transparency.types_peers import PEER_ANSWERS
from observatory.features.verification.routes import VerifyAnswer
from observatory.features.webhooks.types import WEBHOOK_ANSWERS
from observatory.http.insight import InsightStatus
from observatory.protocol.events import AuditEvent
from observatory.protocol.messages import ContextRef, DecisionOption, RiskLevel

Item = TypeVar("Item")


class Page(msgspec.Struct, Generic[Item], kw_only=True):
    """Every list: `next_cursor` is null when there is nothing more."""

    items: list[Item]
    next_cursor: str | None


class MessageItem(msgspec.Struct, kw_only=True):
    message_id: str
    session_id: str
    step_id: str
    sequence_number: int
    message_type: str
    state: Literal["forwarded", "held", "rejected", "refused"]
    parents: list[str]
    parent_inferred: bool
    interrupt_signal: Literal["pause", "rewrite"] | None
    rewritten: bool
    shredded: ShreddedBy | None = None
    message: dict[str, Any] | None


class AgentItem(msgspec.Struct, kw_only=True):
    """`capabilities` are those whose work it gets, `granted` what an operator gave it (clusters too), and
    `requested` what it claims and does not get."""

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
    paused_at: str | None  # everywhere, by a person
    paused_by: str | None
    evicted_at: str | None
    ghost: bool
    messages: int
    first_seen_at: str
    last_seen_at: str | None
    certificate: str | None
    """Fingerprint of the one it last spoke with."""


class HeartbeatAnswer(msgspec.Struct, kw_only=True):
    agent_id: str
    entity_id: str
    liveness: Literal["healthy"]
    status: str | None
    heartbeat_at: str
    chained: bool


class CapabilityItem(msgspec.Struct, kw_only=True):
    """One entry of the Yellow Pages; evicted agents are counted by themselves."""

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


class DecisionItem(msgspec.Struct, kw_only=True):
    """A decision as it was asked and how it stands; the words are null once they were shredded."""

    decision_id: str
    state: Literal["pending", "answered", "expired", "cancelled", "executing", "succeeded", "failed"]
    user_id: str
    agent_id: str | None
    entity_id: str | None
    session_id: str
    message_id: str | None
    sequence_number: int
    title: str | None
    description: str | None
    options: list[DecisionOption]
    context_refs: list[ContextRef]
    risk: RiskLevel | None
    deadline: str | None
    auto_option_id: str | None
    requested_at: str
    selected_option_id: str | None
    answered_by: str | None
    answered_at: str | None
    response_sequence_number: int | None
    action_id: str | None
    updated_at: str


class VersionItem(msgspec.Struct, kw_only=True):
    agent_type: str
    version: str
    status: Literal["current", "previous", "retired", "unknown"]
    fields: list[str] | None
    updated_at: str | None = None
    updated_by: str | None = None


class Health(msgspec.Struct, kw_only=True):
    status: str
    detail: str | None = None
    database: str | None = None
    waiting: int | None = None


class InboxSender(msgspec.Struct, kw_only=True):
    agent_id: str
    entity_id: str


class InboxItem(msgspec.Struct, kw_only=True):
    """The same on the socket (with `type: "delivery"`), in a stream and in a poll."""

    delivery_id: str
    sequence_number: int
    kind: str
    session_id: str | None
    created_at: str
    traceparent: str | None
    tracestate: str | None
    message_id: str | None
    message_type: str | None
    sender: InboxSender | None
    message: dict[str, Any] | None
    body: dict[str, Any]


class InboxAnswer(msgspec.Struct, kw_only=True):
    items: list[InboxItem]


ANSWERS: dict[str, Any] = (
    CASCADE_ANSWERS
    | CERTIFICATE_ANSWERS
    | FLEET_ANSWERS
    | PANEL_ANSWERS
    | ROOM_ANSWERS
    | FACT_ANSWERS
    | DAG_ANSWERS
    | LOG_ANSWERS
    | PEER_ANSWERS
    | HOOK_ANSWERS
    | ALERT_RULE_ANSWERS
    | SCHEDULE_ANSWERS
    | WEBHOOK_ANSWERS
    | EXPORTER_ANSWERS
    | OTLP_ANSWERS
    | REDACTION_ANSWERS
    | SEARCH_ANSWERS
    | THOUGHT_ANSWERS
    | EXPORT_ANSWERS
    | VIOLATION_ANSWERS
    | LINE_ANSWERS
    | {
        "agent_sessions": Page[AgentSession],
        "list_alerts": Page[AlertNotice],
        "list_waiting": WaitingAnswer,
        "read_inbox": InboxAnswer,
        "ack_inbox": Acked,
        "list_messages": Page[MessageItem],
        "get_message": MessageItem,
        "audit_trace": Page[AuditEvent],
        "audit_tenant": Page[AuditEvent],
        "audit_entity": Page[AuditEvent],
        "audit_verify": VerifyAnswer,
        "list_agents": Page[AgentItem],
        "get_agent": AgentItem,
        "register_agent": AgentItem,
        "evict_agent": Evicted,
        "heartbeat": HeartbeatAnswer,
        "list_capabilities": Page[CapabilityItem],
        "list_routes": Page[RouteItem],
        "put_route": RouteItem,
        "list_breakers": Page[BreakerItem],
        "set_breaker": BreakerItem,
        "list_edges": Page[EdgeItem],
        "leave_session": LeaveAnswer,
        "pause": Commanded,
        "unpause": Commanded,
        "rewrite": Commanded,
        "inject": Commanded,
        "cancel": Commanded,
        "approve": Commanded,
        "edit": Commanded,
        "reject": Commanded,
        "undo": Commanded,
        "list_holds": Page[HoldItem],
        "list_interventions": Page[InterventionItem],
        "list_sessions": Page[SessionItem],
        "list_stuck_sessions": Page[SessionItem],
        "get_session": SessionAnswer,
        "entropy_alerts": Page[AlertItem],
        "get_detectors": DetectorAnswer,
        "put_detectors": DetectorAnswer,
        "get_routing_settings": RoutingSettingsAnswer,
        "put_routing_settings": RoutingSettingsAnswer,
        "list_grants": Page[GrantItem],
        "change_grants": GrantsAnswer,
        "get_decision_settings": DecisionSettingsAnswer,
        "put_decision_settings": DecisionSettingsAnswer,
        "pending_decisions": Page[DecisionItem],
        "list_decisions": Page[DecisionItem],
        "get_decision": DecisionItem,
        "respond_decision": DecisionItem,
        "cancel_decision": DecisionItem,
        "list_versions": Page[VersionItem],
        "put_versions": Page[VersionItem],
        "list_tenants": Page[TenantItem],
        "create_tenant": NewTenantAnswer,
        "list_users": Page[UserItem],
        "list_people": Page[PersonItem],
        "create_user": UserItem,
        "disable_user": Disabled,
        "list_keys": Page[KeyItem],
        "create_key": KeyItem,
        "revoke_key": Revoked,
        "change_role": RoleAnswer,
        "list_kill_switches": KillSwitchList,
        "get_kill_switch": KillSwitchStanding,
        "audit_acts": Page[AuditEvent],
        "arm_kill_switch": ArmedKillSwitch,
        "confirm_kill_switch": ConfirmedKillSwitch,
        "release_kill_switch": ReleasedKillSwitch,
        "list_instructions": Page[InstructionsItem],
        "get_instructions": InstructionsAnswer,
        "put_instructions": InstructionsIssued,
        "roll_back_instructions": InstructionsIssued,
        "list_policies": PolicyList,
        "create_policy": PolicyItem,
        "order_policies": PolicyList,
        "replace_policy": PolicyItem,
        "remove_policy": RemovedPolicy,
        "try_policies": DryRunAnswer,
        "list_budgets": Page[BudgetItem],
        "put_budget": BudgetItem,
        "remove_budget": RemovedBudget,
        "create_login": LoginAnswer,
        "list_logins": Page[LoginItem],
        "end_login": EndedLogin,
        "whoami": Whoami,
        "insight_status": InsightStatus,
        "healthz": Health,
        "readyz": Health,
    }
)
