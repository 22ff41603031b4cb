"""Webhooks out: endpoints, their secrets, deliveries and attempts.

A cursor never goes back, whoever asks: what was looked at is not queued twice. One event is one delivery to
an endpoint, by a unique key; one attempt has one number, and is final. A secret that is over is emptied.
"""

from alembic import op

revision = "0009"
down_revision = "0008"

OWNED = ("webhook_endpoints", "webhook_secrets", "webhook_deliveries", "webhook_attempts")

TABLES = [
    """CREATE TABLE webhook_endpoints (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), endpoint_id TEXT NOT NULL, name TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('webhook', 'slack', 'email')), url TEXT NOT NULL,
        events TEXT NOT NULL, filters TEXT NOT NULL, rate_per_min BIGINT NOT NULL, schedule_s TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('active', 'disabled')), disabled_reason TEXT,
        cursor_seq BIGINT NOT NULL, failures BIGINT NOT NULL DEFAULT 0, paused_until_ns BIGINT,
        last_ok_ns BIGINT, last_failed_ns BIGINT, created_ns BIGINT NOT NULL, created_by TEXT NOT NULL,
        changed_ns BIGINT NOT NULL, removed_ns BIGINT, PRIMARY KEY (tenant_id, endpoint_id))""",
    "CREATE UNIQUE INDEX webhook_endpoints_name ON webhook_endpoints (tenant_id, name) "
    "WHERE removed_ns IS NULL",
    """CREATE TABLE webhook_secrets (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), endpoint_id TEXT NOT NULL,
        secret_no BIGINT NOT NULL, secret TEXT NOT NULL, created_ns BIGINT NOT NULL, ends_ns BIGINT,
        PRIMARY KEY (tenant_id, endpoint_id, secret_no))""",
    """CREATE TABLE webhook_deliveries (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), delivery_id TEXT NOT NULL,
        endpoint_id TEXT NOT NULL, event_seq BIGINT NOT NULL, event_type TEXT NOT NULL, extra TEXT,
        state TEXT NOT NULL CHECK (state IN ('waiting', 'delivered', 'dead')), attempts BIGINT NOT NULL,
        tries BIGINT NOT NULL, next_ns BIGINT, round_ns BIGINT NOT NULL, created_ns BIGINT NOT NULL,
        ended_ns BIGINT, last_code BIGINT, last_detail TEXT, PRIMARY KEY (tenant_id, delivery_id))""",
    "CREATE UNIQUE INDEX webhook_deliveries_event ON webhook_deliveries (tenant_id, endpoint_id, event_seq)",
    "CREATE INDEX webhook_deliveries_due ON webhook_deliveries (tenant_id, endpoint_id, next_ns) "
    "WHERE state = 'waiting'",
    """CREATE TABLE webhook_attempts (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), delivery_id TEXT NOT NULL,
        attempt BIGINT NOT NULL, at_ns BIGINT NOT NULL, took_ms BIGINT NOT NULL, ok SMALLINT NOT NULL,
        code BIGINT, detail TEXT NOT NULL, excerpt TEXT NOT NULL,
        PRIMARY KEY (tenant_id, delivery_id, attempt))""",
]

BACK = "NEW.cursor_seq < OLD.cursor_seq"
SENTENCE = "the cursor of an endpoint never goes back"

SQLITE = [
    f"CREATE TRIGGER webhook_endpoints_go_on BEFORE UPDATE ON webhook_endpoints WHEN {BACK} "
    f"BEGIN SELECT RAISE(ABORT, '{SENTENCE}'); END",
    "CREATE TRIGGER webhook_attempts_no_update BEFORE UPDATE ON webhook_attempts "
    "BEGIN SELECT RAISE(ABORT, 'webhook_attempts is append-only'); END",
]
SQLITE += [
    f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} "
    f"BEGIN SELECT RAISE(ABORT, '{table} keeps its rows'); END"
    for table in OWNED
]

POSTGRES = [
    f"""CREATE FUNCTION refuse_webhook_rollback() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN
         IF {BACK} THEN
           RAISE EXCEPTION '{SENTENCE}' USING ERRCODE = 'integrity_constraint_violation';
         END IF;
         RETURN NEW;
       END $$""",
    "CREATE TRIGGER webhook_endpoints_go_on BEFORE UPDATE ON webhook_endpoints "
    "FOR EACH ROW EXECUTE FUNCTION refuse_webhook_rollback()",
    "CREATE TRIGGER webhook_attempts_append_only BEFORE UPDATE ON webhook_attempts "
    "FOR EACH ROW EXECUTE FUNCTION refuse_change()",
]
for _table in OWNED:
    _mine = "tenant_id = current_setting('app.tenant')"
    _rights = "SELECT, INSERT" if _table == "webhook_attempts" else "SELECT, INSERT, UPDATE"
    POSTGRES += [
        f"CREATE TRIGGER {_table}_no_delete BEFORE DELETE ON {_table} "
        "FOR EACH ROW EXECUTE FUNCTION refuse_change()",
        f"CREATE TRIGGER {_table}_no_truncate BEFORE TRUNCATE ON {_table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()",
        f"GRANT {_rights} ON {_table} TO observatory_app",
        f"ALTER TABLE {_table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {_table} FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY tenant ON {_table} USING ({_mine}) WITH CHECK ({_mine})",
    ]


def upgrade() -> None:
    lite = op.get_context().dialect.name == "sqlite"
    for statement in TABLES:
        op.execute(statement)
    for statement in SQLITE if lite else POSTGRES:
        op.execute(statement)
