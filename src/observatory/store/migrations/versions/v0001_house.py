"""The tables of the house: small ones alike on both databases, the three big ones per dialect.

There are no downgrades: a safety copy is made before an upgrade on SQLite, and PostgreSQL has its own
backups. A migration that has landed is never edited.
"""

from alembic import op

revision = "0001"
down_revision = None

SMALL = [
    "CREATE TABLE house (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE tenants (
        tenant_id TEXT PRIMARY KEY, display_name TEXT NOT NULL, created_ns BIGINT NOT NULL,
        disabled_ns BIGINT)""",
    """CREATE TABLE chain_heads (
        tenant_id TEXT PRIMARY KEY REFERENCES tenants (tenant_id), tenant_no BIGINT NOT NULL UNIQUE,
        sequence_number BIGINT NOT NULL, event_hash TEXT NOT NULL, sessions BIGINT NOT NULL,
        agents BIGINT NOT NULL, access_version BIGINT NOT NULL, rulebook_version BIGINT NOT NULL)""",
    """CREATE TABLE users (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), user_id TEXT NOT NULL, name TEXT NOT NULL,
        display_name TEXT NOT NULL, role TEXT NOT NULL, created_ns BIGINT NOT NULL, disabled_ns BIGINT,
        PRIMARY KEY (tenant_id, user_id), UNIQUE (tenant_id, name))""",
    """CREATE TABLE api_keys (
        tenant_id TEXT NOT NULL, key_id TEXT NOT NULL, public_id TEXT NOT NULL UNIQUE,
        key_hash {bytes} NOT NULL, role TEXT NOT NULL, scopes TEXT NOT NULL, user_id TEXT,
        agent_id TEXT, label TEXT NOT NULL,
        created_ns BIGINT NOT NULL, created_by TEXT NOT NULL, expires_ns BIGINT, revoked_ns BIGINT,
        PRIMARY KEY (tenant_id, key_id),
        FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, user_id))""",
    """CREATE TABLE logins (
        tenant_id TEXT NOT NULL, login_id TEXT NOT NULL, token_hash {bytes} NOT NULL UNIQUE,
        user_id TEXT NOT NULL, kind TEXT NOT NULL, created_ns BIGINT NOT NULL, expires_ns BIGINT NOT NULL,
        ended_ns BIGINT, PRIMARY KEY (tenant_id, login_id),
        FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, user_id))""",
    """CREATE TABLE versions (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), agent_type TEXT NOT NULL,
        version TEXT NOT NULL, status TEXT NOT NULL, fields TEXT, updated_ns BIGINT NOT NULL,
        updated_by TEXT NOT NULL, PRIMARY KEY (tenant_id, agent_type, version))""",
    """CREATE TABLE agents (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), agent_no BIGINT NOT NULL,
        entity_id TEXT NOT NULL, agent_id TEXT NOT NULL, agent_type TEXT, capability_version TEXT,
        cluster_id TEXT, model TEXT, provider TEXT, hub_address TEXT, trust_level TEXT NOT NULL,
        first_seen_ns BIGINT NOT NULL, last_seen_ns BIGINT NOT NULL, violation_ns BIGINT,
        messages BIGINT NOT NULL, PRIMARY KEY (tenant_id, entity_id), UNIQUE (tenant_id, agent_no))""",
    """CREATE TABLE sessions (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), session_no BIGINT NOT NULL,
        session_id TEXT NOT NULL, trace_id TEXT NOT NULL, first_seq BIGINT NOT NULL, last_seq BIGINT NOT NULL,
        started_ns BIGINT NOT NULL, last_ns BIGINT NOT NULL, messages BIGINT NOT NULL,
        PRIMARY KEY (tenant_id, session_id), UNIQUE (tenant_id, session_no))""",
    "CREATE INDEX sessions_trace ON sessions (tenant_id, trace_id)",
    """CREATE TABLE members (
        tenant_id TEXT NOT NULL, session_no BIGINT NOT NULL, agent_no BIGINT NOT NULL, last_step TEXT,
        last_seq BIGINT NOT NULL, messages BIGINT NOT NULL, tokens BIGINT NOT NULL,
        cost DOUBLE PRECISION NOT NULL, PRIMARY KEY (tenant_id, session_no, agent_no)){lean}""",
]

# key = tenant_no * 2^40 + sequence_number: the key starts with the tenant and one b-tree does for
# identity, order and tenancy (ADR-024).
SQLITE = [
    """CREATE TABLE audit_log (
        key INTEGER PRIMARY KEY, tenant_no INTEGER NOT NULL, ts_ns INTEGER NOT NULL,
        severity INTEGER NOT NULL, session_key INTEGER NOT NULL, sender_key INTEGER, recipient_key INTEGER,
        record BLOB NOT NULL, leaf_hash BLOB NOT NULL)""",
    """CREATE TABLE messages (
        key INTEGER PRIMARY KEY REFERENCES audit_log (key), message_id TEXT NOT NULL, step_id TEXT NOT NULL,
        session_no INTEGER NOT NULL, message_type TEXT NOT NULL, state TEXT NOT NULL, parents TEXT,
        parent_inferred INTEGER NOT NULL, warnings TEXT, dedupe INTEGER NOT NULL, digest BLOB NOT NULL)""",
    """CREATE TABLE payloads (
        key INTEGER PRIMARY KEY REFERENCES messages (key), raw BLOB, salt BLOB, shredded_by INTEGER)""",
    "CREATE INDEX messages_dedupe ON messages (dedupe)",
    "CREATE INDEX audit_log_session ON audit_log (session_key)",
]

# A row is 2 to 3 KB; from 2 KB on PostgreSQL would compress each in vain, which costs a third of the insert.
POSTGRES = [
    """CREATE TABLE audit_events (
        audit_event_id TEXT NOT NULL, tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id),
        sequence_number BIGINT NOT NULL, timestamp TIMESTAMPTZ NOT NULL,
        observed_timestamp TIMESTAMPTZ NOT NULL DEFAULT now(), trace_id CHAR(32) NOT NULL,
        span_id CHAR(16) NOT NULL, parent_span_id CHAR(16), trace_flags SMALLINT DEFAULT 1,
        severity_number SMALLINT NOT NULL, severity_text TEXT NOT NULL, body JSONB NOT NULL,
        resource JSONB NOT NULL, attributes JSONB NOT NULL, event_hash TEXT NOT NULL,
        previous_hash TEXT NOT NULL, record BYTEA NOT NULL, leaf_hash BYTEA NOT NULL,
        sender_key BIGINT, recipient_key BIGINT,
        PRIMARY KEY (tenant_id, audit_event_id), UNIQUE (tenant_id, sequence_number))
        WITH (toast_tuple_target = 8160)""",
    """CREATE TABLE messages (
        tenant_id TEXT NOT NULL, sequence_number BIGINT NOT NULL, message_id TEXT NOT NULL,
        step_id TEXT NOT NULL, session_no BIGINT NOT NULL, message_type TEXT NOT NULL, state TEXT NOT NULL,
        parents TEXT, parent_inferred SMALLINT NOT NULL, warnings TEXT, dedupe BIGINT NOT NULL,
        digest BYTEA NOT NULL, PRIMARY KEY (tenant_id, sequence_number))""",
    """CREATE TABLE payloads (
        tenant_id TEXT NOT NULL, sequence_number BIGINT NOT NULL, raw BYTEA, salt BYTEA, shredded_by BIGINT,
        PRIMARY KEY (tenant_id, sequence_number))""",
    "CREATE INDEX messages_dedupe ON messages (tenant_id, dedupe)",
]


def upgrade() -> None:
    lite = op.get_context().dialect.name == "sqlite"
    for statement in SMALL:
        op.execute(
            statement.replace("{bytes}", "BLOB" if lite else "BYTEA").replace(
                "{lean}", " WITHOUT ROWID" if lite else ""
            )
        )
    for statement in SQLITE if lite else POSTGRES:
        op.execute(statement)
