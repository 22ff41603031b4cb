"""Tables and columns for building queries in two dialects.

The DDL itself is in `migrations/`; the contract suite reads and writes every table on both databases,
so a difference between them is found there. Small tables are the same on both. The three big ones
differ: on SQLite one packed key (ADR-024), on PostgreSQL the seed's columns.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Integer, LargeBinary, MetaData, Table, Text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP

SHARED = MetaData()
SQLITE = MetaData()
POSTGRES = MetaData()


def _table(metadata: MetaData, name: str, spec: str) -> Table:
    kinds = {"t": Text, "i": BigInteger, "s": Integer, "b": LargeBinary, "f": Float, "j": JSONB}
    columns = []
    for word in spec.split():
        column, kind = word.split(":")
        columns.append(Column(column, TIMESTAMP(timezone=True) if kind == "z" else kinds[kind]()))
    return Table(name, metadata, *columns)


tenants = _table(SHARED, "tenants", "tenant_id:t display_name:t created_ns:i disabled_ns:i")
chain_heads = _table(
    SHARED,
    "chain_heads",
    "tenant_id:t tenant_no:i sequence_number:i event_hash:t sessions:i agents:i access_version:i "
    "rulebook_version:i",
)
users = _table(
    SHARED, "users", "tenant_id:t user_id:t name:t display_name:t role:t created_ns:i disabled_ns:i"
)
api_keys = _table(
    SHARED,
    "api_keys",
    "tenant_id:t key_id:t public_id:t key_hash:b role:t scopes:t user_id:t agent_id:t label:t created_ns:i "
    "created_by:t expires_ns:i revoked_ns:i",
)
logins = _table(
    SHARED,
    "logins",
    "tenant_id:t login_id:t token_hash:b user_id:t kind:t created_ns:i expires_ns:i ended_ns:i key_id:t "
    "seen_ns:i",
)
versions = _table(
    SHARED, "versions", "tenant_id:t agent_type:t version:t status:t fields:t updated_ns:i updated_by:t"
)
agents = _table(
    SHARED,
    "agents",
    "tenant_id:t agent_no:i entity_id:t agent_id:t agent_type:t capability_version:t cluster_id:t model:t "
    "provider:t hub_address:t trust_level:t first_seen_ns:i last_seen_ns:i violation_ns:i messages:i "
    "display_name:t capabilities:t owner_id:t team_id:t workspace_id:t evicted_ns:i cost:f "
    "instructions_version:i certificate:t paused_ns:i paused_by:t pause_seq:i",
)
sessions = _table(
    SHARED,
    "sessions",
    "tenant_id:t session_no:i session_id:t trace_id:t first_seq:i last_seq:i started_ns:i last_ns:i "
    "messages:i held:i agents:i cost:f spent:f rejected:i entropy:f entropy_window:t severity:t alert_seq:i "
    "alert_count:i loop_ns:i loop_seq:i loop_detector:t loop_agent_no:i loops:t",
)
members = _table(
    SHARED,
    "members",
    "tenant_id:t session_no:i agent_no:i last_step:t last_seq:i messages:i tokens:i cost:f paused_ns:i "
    "paused_by:t pause_seq:i arrived_ns:i",
)
holds = _table(
    SHARED,
    "holds",
    "tenant_id:t sequence_number:i session_no:i agent_no:i message_id:t step_id:t name:t span_id:t "
    "message_type:t agent_type:t cluster_id:t cause:t reason:t recipient:t state:t gate:i waits:t digest:b "
    "rewrite_seq:i quorum:i approvals:t requested_by:t bound:i deadline_ns:i on_expiry:t held_ns:i "
    "ended_ns:i ended_by:t released_seq:i key_id:t key_maker:t",
)
rewrites = _table(
    SHARED,
    "rewrites",
    "tenant_id:t sequence_number:i message_seq:i raw:b digest:b created_ns:i undone_ns:i",
)
interventions = _table(
    SHARED,
    "interventions",
    "tenant_id:t sequence_number:i intervention_id:t command:t operator_id:t session_no:i agent_no:i "
    "message_id:t message_seq:i before_hash:t after_hash:t note:t issued_ns:i reversed_ns:i "
    "acknowledged_ns:i confirmed_ns:i proven:i",
)
deliveries = _table(
    SHARED,
    "deliveries",
    "tenant_id:t sequence_number:i agent_no:i sender_no:i session_no:i kind:t address:t message_seq:i "
    "body:t state:t created_ns:i given_ns:i acked_ns:i ended_ns:i",
)
pulses = _table(
    SHARED,
    "pulses",
    "tenant_id:t agent_no:i heartbeat_ns:i status:t chained_ns:i task:t usage:t message_seq:i",
)
decisions = _table(
    SHARED,
    "decisions",
    "tenant_id:t decision_id:t request_seq:i session_no:i agent_no:i user_id:t state:t options:t "
    "deadline_ns:i auto_option:t option_id:t answered_by:t answered_ns:i response_seq:i action_id:t "
    "created_ns:i updated_ns:i",
)
policies = _table(
    SHARED,
    "policies",
    "tenant_id:t rule_id:t position:i effect:t matches:t quorum:i deadline_s:i on_expiry:t note:t "
    "created_ns:i updated_ns:i updated_by:t removed_ns:i enabled:s",
)
budgets = _table(
    SHARED,
    "budgets",
    "tenant_id:t budget_id:t scope:t target:t soft:f hard:f period:t created_ns:i updated_ns:i "
    "updated_by:t removed_ns:i",
)
spend = _table(SHARED, "spend", "tenant_id:t budget_id:t spent:f period_ns:i soft_seq:i")
routes = _table(SHARED, "routes", "tenant_id:t capability:t weights:t updated_ns:i updated_by:t")
breakers = _table(
    SHARED,
    "breakers",
    "tenant_id:t capability:t state:t window_ns:i successes:i failures:i opened_ns:i probe_seq:i reason:t "
    "forced_by:t",
)
kill_switches = _table(
    SHARED,
    "kill_switches",
    "tenant_id:t kill_id:t scope:t target:t state:t token_hash:b reason:t requested_by:t created_ns:i "
    "expires_ns:i engaged_ns:i released_ns:i updated_ns:i",
)
instructions = _table(
    SHARED,
    "instructions",
    "tenant_id:t agent_type:t version:i text:t note:t created_ns:i created_by:t",
)
knobs = _table(SHARED, "knobs", "tenant_id:t name:t value:t updated_ns:i updated_by:t")
step_annotations = _table(
    SHARED,
    "annotations",
    "tenant_id:t annotation_id:t sequence_number:i session_no:i author_id:t label:t category:t text:t "
    "created_ns:i removed_ns:i",
)
fact_marks = _table(
    SHARED,
    "fact_marks",
    "tenant_id:t mark_id:t fact_key:i fact_id:i note:t marked_by:t marked_ns:i undone_ns:i",
)
reconciliations = _table(
    SHARED,
    "reconciliations",
    "tenant_id:t reconciliation_id:t subject_key:i subject:t value:t scope:t decided_by:t decided_ns:i",
)
saved_views = _table(
    SHARED,
    "saved_views",
    "tenant_id:t view_id:t owner_id:t name:t query:t shared:s created_ns:i removed_ns:i",
)
reviews = _table(
    SHARED, "reviews", "tenant_id:t sequence_number:i verdict:t note:t reviewed_by:t reviewed_ns:i"
)
# Records and nodes before their session: nothing is inserted under a seal, not even by `observatory copy`.
thought_records = _table(
    SHARED,
    "thought_records",
    "tenant_id:t session_id:t record_index:i record_id:t task_id:t type:t content:b author:t created_at:t "
    "refs:t event_ids:t predecessor_chain_hash:t content_hash:t chain_hash:t parent_chain_hash:t "
    "sequence_number:i audit_event_id:t shredded_by:i",
)
merkle_nodes = _table(SHARED, "merkle_nodes", "tenant_id:t session_id:t level:i node_index:i hash:b")
thought_tasks = _table(
    SHARED,
    "thought_tasks",
    "tenant_id:t task_key:t session_id:t task_id:t proof_grade:s state:t opened_by:t opened_ns:i closed_by:t "
    "closed_ns:i",
)
thought_sessions = _table(
    SHARED,
    "thought_sessions",
    "tenant_id:t session_id:t session_no:i caller:t opened_by:t intent:t task_id:t started_at:t genesis:t "
    "sequence_number:i predecessor_session_id:t predecessor_chain_hash:t proof_grade:s records:i "
    "open_tasks:i last_chain_hash:t verified_records:i sealed_ns:i root:t ended_ns:i intent_shredded_by:i "
    "verified_by:i",
)
log_nodes = _table(SHARED, "log_nodes", "tenant_id:t level:i position:i hash:b")
checkpoints = _table(SHARED, "checkpoints", "tenant_id:t size:i previous_size:i root:b note:b signed_ns:i")
log_keys = _table(SHARED, "log_keys", "tenant_id:t key_id:t public_key:b since:i created_ns:i")
peers = _table(
    SHARED,
    "peers",
    "tenant_id:t peer_id:t name:t origin:t vkey:t url:t log_url:t created_ns:i created_by:t removed_ns:i "
    "forgone_size:i forgone_root:b",
)
peer_heads = _table(
    SHARED,
    "peer_heads",
    "tenant_id:t origin:t size:i root:b note:b cosignature:t seen_ns:i fork_kind:t fork_size:i fork_root:b "
    "fork_note:b fork_ns:i",
)
cosignatures = _table(SHARED, "cosignatures", "tenant_id:t size:i name:t peer_id:t line:t seen_s:i kept_ns:i")
jobs = _table(
    SHARED,
    "jobs",
    "tenant_id:t job_id:t name:t kind:t cron:t zone:t at_ns:i target_kind:t target_name:t intent:t payload:t "
    "session_id:t misfire:t overlap:t jitter_s:i grace_s:i max_tries:i state:t version:i next_for_ns:i "
    "next_ns:i last_for_ns:i last_outcome:t last_ns:i last_seq:i failures:i runs:i open_runs:i queued:i "
    "asked_by:t created_ns:i created_by:t updated_ns:i updated_by:t removed_ns:i asked_seq:i",
)
job_runs = _table(
    SHARED,
    "job_runs",
    "tenant_id:t job_id:t scheduled_for:i run_id:t epoch:i state:t attempt:i next_try_ns:i manual:s body:t "
    "message_id:t session_id:t message_seq:i code:i reason:t created_ns:i created_by:t ended_ns:i "
    "asked_seq:i",
)
dead_letters = _table(
    SHARED,
    "dead_letters",
    "tenant_id:t letter_id:t kind:t source_id:t source_name:t subject_id:t reason:t preview:t state:t "
    "created_ns:i ended_ns:i ended_by:t asked_seq:i",
)
webhook_endpoints = _table(
    SHARED,
    "webhook_endpoints",
    "tenant_id:t endpoint_id:t name:t kind:t url:t events:t filters:t rate_per_min:i schedule_s:t state:t "
    "disabled_reason:t cursor_seq:i failures:i paused_until_ns:i last_ok_ns:i last_failed_ns:i created_ns:i "
    "created_by:t changed_ns:i removed_ns:i",
)
webhook_secrets = _table(
    SHARED, "webhook_secrets", "tenant_id:t endpoint_id:t secret_no:i secret:t created_ns:i ends_ns:i"
)
webhook_deliveries = _table(
    SHARED,
    "webhook_deliveries",
    "tenant_id:t delivery_id:t endpoint_id:t event_seq:i event_type:t extra:t state:t attempts:i tries:i "
    "next_ns:i round_ns:i created_ns:i ended_ns:i last_code:i last_detail:t",
)
webhook_attempts = _table(
    SHARED,
    "webhook_attempts",
    "tenant_id:t delivery_id:t attempt:i at_ns:i took_ms:i ok:s code:i detail:t excerpt:t",
)
hooks = _table(
    SHARED,
    "hooks",
    "tenant_id:t hook_id:t name:t scheme:t mapping:t window_s:i state:t version:i secret:t old_secret:t "
    "old_until_ns:i valid_calls:i invalid_calls:i missing_calls:i last_signature:t refused_count:i "
    "refused_ns:i called_ns:i created_ns:i created_by:t updated_ns:i updated_by:t removed_ns:i",
)
hook_calls = _table(
    SHARED,
    "hook_calls",
    "tenant_id:t call_id:t hook_id:t at_ns:i caller:t signature:t outcome:t reason:t delivery_id:t "
    "message_id:t message_seq:i session_id:t body_hash:t body_bytes:i body:b body_cut:i headers:t message:b "
    "calls:i repeats:i repeated_ns:i",
)
hook_deliveries = _table(SHARED, "hook_deliveries", "tenant_id:t delivery_key:t hook_id:t call_id:t")
alert_rules = _table(
    SHARED,
    "alert_rules",
    "tenant_id:t rule_id:t purpose:t name:t condition:t scope:t target:t compare:t threshold:f window_s:i "
    "for_s:i cooldown_s:i severity:t direction:t amount:i endpoint_ids:t enabled:s muted_until_ns:i "
    "since_seq:i created_ns:i created_by:t updated_ns:i updated_by:t removed_ns:i",
)
alert_states = _table(
    SHARED,
    "alert_states",
    "tenant_id:t state_key:t rule_id:t subject:t state:t value:t link:t times:i fired_ns:i told_ns:i "
    "is_told:s raised_seq:i resolved_ns:i resolved_seq:i cleared_seq:i updated_ns:i",
)
exporters = _table(
    SHARED,
    "exporters",
    "tenant_id:t exporter_id:t name:t protocol:t url:t headers:t filters:t state:t cursor:i rounds:i sent:i "
    "filtered:i refused:i sent_ns:i failures:i next_ns:i problem:t problem_ns:i created_ns:i created_by:t "
    "updated_ns:i removed_ns:i",
)
agent_grants = _table(
    SHARED,
    "grants",
    "tenant_id:t entity_id:t address:t agent_id:t granted_ns:i granted_by:t removed_ns:i",
)
certificates = _table(
    SHARED,
    "agent_certificates",
    "tenant_id:t entity_id:t agent_id:t kind:t value:t bound_ns:i bound_by:t removed_ns:i",
)
certificates = _table(
    SHARED,
    "certificates",
    "tenant_id:t slot:i fingerprint:t subject:t issuer:t serial:t names:t not_before_ns:i not_after_ns:i "
    "first_seen_ns:i last_seen_ns:i key_ids:t",
)
refusals = _table(
    SHARED,
    "refusals",
    "tenant_id:t key_id:t kind:t sender_id:t sender_type:t began_ns:i last_ns:i in_full:i counted:i peaks:b "
    "agent_id:t",
)
house = _table(SHARED, "house", "name:t value:t")
leases = _table(SHARED, "leases", "name:t holder:t epoch:i expires_ns:i ticked_ns:i")

audit_log = _table(
    SQLITE,
    "audit_log",
    "key:i tenant_no:i ts_ns:i severity:s session_key:i sender_key:i recipient_key:i record:b leaf_hash:b",
)
lite_messages = _table(
    SQLITE,
    "messages",
    "key:i message_id:t step_id:t session_no:i message_type:t state:t parents:t parent_inferred:s warnings:t "
    "dedupe:i digest:b entropy:f",
)
lite_payloads = _table(SQLITE, "payloads", "key:i raw:b salt:b shredded_by:i")

audit_events = _table(
    POSTGRES,
    "audit_events",
    "audit_event_id:t tenant_id:t sequence_number:i timestamp:z observed_timestamp:z trace_id:t span_id:t "
    "parent_span_id:t trace_flags:s severity_number:s severity_text:t body:j resource:j attributes:j "
    "event_hash:t previous_hash:t record:b leaf_hash:b sender_key:i recipient_key:i",
)
pg_messages = _table(
    POSTGRES,
    "messages",
    "tenant_id:t sequence_number:i message_id:t step_id:t session_no:i message_type:t state:t parents:t "
    "parent_inferred:s warnings:t dedupe:i digest:b entropy:f",
)
pg_payloads = _table(POSTGRES, "payloads", "tenant_id:t sequence_number:i raw:b salt:b shredded_by:i")

# Columns that order rows by age, whichever of these a table has; ids break ties.
AGE = (
    "created_ns", "updated_ns", "issued_ns", "marked_ns", "decided_ns", "sequence_number", "session_no",
    "agent_no", "tenant_id", "user_id", "key_id", "login_id", "agent_type", "version", "name",
)  # fmt: skip
# The small tables commands may write and `Directory.rows` may read.
SMALL = SHARED.tables
# Every table that belongs to a tenant: RLS on PostgreSQL, copied by `observatory copy`; parents first.
OWNED = tuple(name for name in SMALL if name not in ("house", "leases"))
BIG = ("audit_events", "messages", "payloads")
