"""Audit events: their names, severities and struct.

Law: every event name is listed in `SEVERITY`; the numbers are the seed's ten rows and, by the same scale, the
rest (ruling 9). An audit event has exactly the seed's keys and contains no floats (ruling 34): scores and
money are decimal text, latency is whole milliseconds.
"""

from typing import Any, Final, Literal

from msgspec import Struct

DEBUG: Final = 5
INFO: Final = 9
NOTICE: Final = 10  # a person decided or changed something
WARN: Final = 13
ERROR: Final = 17
FATAL: Final = 21

SEVERITY: Final[dict[str, int]] = {
    # the seed's table
    "heartbeat": DEBUG,
    "message_delivered": INFO,
    "message_read": INFO,
    "agent_connected": INFO,
    "agent_disconnected": INFO,
    "decision_made": NOTICE,
    "policy_evaluated": NOTICE,
    "action_executed": NOTICE,
    "error": ERROR,
    "security_violation": FATAL,
    # the write pipeline
    "message_held": INFO,
    "message_released": INFO,
    "message_rejected": WARN,
    "message_refused": WARN,
    "message_rerouted": WARN,
    "message_undeliverable": ERROR,
    "schema_violation": WARN,
    "refusals_counted": WARN,
    "version_unknown": WARN,
    "version_registered": NOTICE,
    "version_retired": NOTICE,
    "causal_cycle_refused": WARN,
    "parent_unknown": WARN,
    "cost_decreased": WARN,
    # entropy
    "entropy_alert": ERROR,
    "entropy_warning": WARN,
    "entropy_recovered": INFO,
    "entropy_discrepancy": WARN,
    "loop_detected": ERROR,
    "loop_ended": INFO,
    "injection_suspected": WARN,
    # budgets
    "budget_set": NOTICE,
    "budget_warning": WARN,
    "budget_exceeded": ERROR,
    # interventions by people
    "hitl_intervention": NOTICE,
    "hitl_reversed": NOTICE,
    "gate_opened": NOTICE,
    "gate_expired": WARN,
    "decision_cancelled": NOTICE,
    "decision_expired": WARN,
    "pause_acknowledged": INFO,
    "pause_confirmed": INFO,
    "kill_switch_requested": WARN,
    "kill_switch_engaged": FATAL,
    "kill_switch_released": WARN,
    "instruction_issued": NOTICE,
    "instruction_sent": INFO,
    "fact_marked_false": WARN,
    "fact_quarantined": WARN,
    "drift_reconciled": NOTICE,
    "fact_mark_undone": NOTICE,
    "annotation_added": NOTICE,
    "annotation_removed": NOTICE,
    "step_reviewed": NOTICE,
    "view_saved": NOTICE,
    "view_removed": NOTICE,
    # registry and routing
    "agent_registered": INFO,
    "agent_evicted": WARN,
    "agent_recovered": INFO,
    "agent_joined_room": INFO,
    "agent_left_room": INFO,
    "route_changed": NOTICE,
    "breaker_opened": ERROR,
    "breaker_half_opened": WARN,
    "breaker_closed": INFO,
    "policy_changed": NOTICE,
    "setting_changed": NOTICE,
    # tenants, people, keys
    "tenant_created": NOTICE,
    "user_created": NOTICE,
    "user_disabled": NOTICE,
    "user_signed_in": NOTICE,
    "user_signed_out": NOTICE,
    "login_issued": NOTICE,
    "key_created": NOTICE,
    "key_revoked": NOTICE,
    "permission_granted": NOTICE,
    "permission_denied": WARN,
    "role_changed": NOTICE,
    "capability_granted": NOTICE,
    "certificate_bound": NOTICE,
    "certificate_unbound": NOTICE,
    # scheduler and integrations
    "job_created": NOTICE,
    "job_changed": NOTICE,
    "job_fired": INFO,
    "job_missed": WARN,
    "schedule_resumed": NOTICE,
    "reminder_scheduled": INFO,
    "lead_resigned": NOTICE,
    "dead_lettered": ERROR,
    "dead_letter_retried": NOTICE,
    "dead_letter_discarded": NOTICE,
    "webhook_received": INFO,
    "webhook_refused": WARN,
    "hook_created": NOTICE,
    "hook_changed": NOTICE,
    "hook_secret_rotated": NOTICE,
    "hook_removed": NOTICE,
    "webhook_created": NOTICE,
    "webhook_changed": NOTICE,
    "webhook_removed": NOTICE,
    "webhook_secret_rotated": NOTICE,
    "webhook_enabled": NOTICE,
    "webhook_disabled": WARN,
    "webhook_tested": NOTICE,
    "webhook_replayed": NOTICE,
    "alert_rule_changed": NOTICE,
    "alert_raised": ERROR,
    "alert_resolved": INFO,
    "alert_tested": NOTICE,
    "scaling_triggered": WARN,
    "exporter_created": NOTICE,
    "exporter_changed": NOTICE,
    "exporter_rewound": WARN,
    "exporter_removed": NOTICE,
    "export_refused": ERROR,
    # decision trail and transparency log
    "thought_session_started": NOTICE,
    "thought_recorded": INFO,
    "thought_chain_verified": NOTICE,
    "thought_session_sealed": NOTICE,
    "thought_session_ended": NOTICE,
    "thoughts_shredded": NOTICE,
    "chain_broken": FATAL,
    "checkpoint_witnessed": INFO,
    "peer_added": NOTICE,
    "peer_removed": NOTICE,
    "peer_key_changed": NOTICE,
    "peer_fork_detected": FATAL,
    "log_key_rotated": NOTICE,
    "rollback_accepted": FATAL,
    "payload_shredded": NOTICE,
    "export_created": NOTICE,
    "mcp_tool_called": INFO,
    "service_started": INFO,
    "service_stopped": INFO,
}

# Counts one minute's refusals of a key and reason beyond the first few; has their severity.
REFUSALS_COUNTED: Final = "refusals_counted"

_ALERT: Final[dict[str, int]] = {
    "info": INFO,
    "warning": WARN,
    "error": ERROR,
    "critical": FATAL,
}
_RANGES: Final = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")


def severity_text(number: int) -> str:
    """OTel's short name of a severity number, 1 to 24, four numbers per name."""
    if not 1 <= number <= 24:
        raise ValueError("a severity number must be between 1 and 24")
    return _RANGES[(number - 1) // 4]


def alert_severity(severity: str) -> int:
    """The severity number of a status alert."""
    return _ALERT[severity]


class SchemaViolationEvent(Struct, frozen=True, kw_only=True):
    """A message was refused because it breaks the contract. Only its hash is stored."""

    agent_id: str | None
    capability_version: str | None
    violation_reason: str
    raw_payload_hash: str
    event_type: Literal["schema_violation"] = "schema_violation"


class RepeatedPattern(Struct, frozen=True, kw_only=True):
    intent: str | None
    tool_call: str | None
    action_status: str | None


class EntropyAlertEvent(Struct, frozen=True, kw_only=True):
    """A session is looping. The seed's keys; on the live channel the score is a number."""

    session_id: str
    agent_id: str
    entropy_score: float
    window_size: int
    repeated_pattern: RepeatedPattern
    occurrence_count: int
    detector: Literal["ratio", "fingerprint"] = "ratio"
    event_type: Literal["entropy_alert"] = "entropy_alert"


class HITLInterventionEvent(Struct, frozen=True, kw_only=True):
    """A person intervened."""

    command: Literal["pause", "unpause", "rewrite", "inject", "cancel", "approve", "edit", "reject"]
    operator_id: str
    session_id: str
    agent_id: str
    issued_at: str
    message_id: str | None = None
    before_hash: str | None = None
    after_hash: str | None = None
    reversed_at: str | None = None
    event_type: Literal["hitl_intervention"] = "hitl_intervention"


class HashChain(Struct, frozen=True, kw_only=True):
    event_hash: str
    previous_hash: str
    sequence_number: int


class AuditEvent(Struct, frozen=True, kw_only=True):
    """An audit event as served."""

    audit_event_id: str
    timestamp: str
    observed_timestamp: str
    trace_id: str
    span_id: str
    parent_span_id: str | None
    severity_number: int
    severity_text: str
    body: dict[str, Any]
    resource: dict[str, Any]
    attributes: dict[str, Any]
    hash_chain: HashChain
    trace_flags: int = 1
