"""What the database itself enforces and offers: append-only triggers, the seed's indexes, its view, RLS."""

from alembic import op

revision = "0002"
down_revision = "0001"

OWNED = ("tenants", "chain_heads", "users", "api_keys", "logins", "versions", "agents", "sessions", "members")

SQLITE = [
    "CREATE INDEX audit_log_time ON audit_log (tenant_no, ts_ns)",
    "CREATE INDEX audit_log_severe ON audit_log (tenant_no, severity) WHERE severity >= 17",
    "CREATE INDEX audit_log_sender ON audit_log (sender_key) WHERE sender_key IS NOT NULL",
    "CREATE INDEX audit_log_recipient ON audit_log (recipient_key) WHERE recipient_key IS NOT NULL",
    # The seed's table for the seed's queries: the same columns, read out of the exact record.
    """CREATE VIEW audit_events AS SELECT
        json_extract(CAST(a.record AS TEXT), '$.audit_event_id') AS audit_event_id,
        h.tenant_id AS tenant_id, a.key & 1099511627775 AS sequence_number,
        json_extract(CAST(a.record AS TEXT), '$.timestamp') AS timestamp,
        json_extract(CAST(a.record AS TEXT), '$.observed_timestamp') AS observed_timestamp,
        s.trace_id AS trace_id, json_extract(CAST(a.record AS TEXT), '$.span_id') AS span_id,
        json_extract(CAST(a.record AS TEXT), '$.parent_span_id') AS parent_span_id,
        json_extract(CAST(a.record AS TEXT), '$.trace_flags') AS trace_flags,
        a.severity AS severity_number,
        json_extract(CAST(a.record AS TEXT), '$.severity_text') AS severity_text,
        json_extract(CAST(a.record AS TEXT), '$.body') AS body,
        json_extract(CAST(a.record AS TEXT), '$.resource') AS resource,
        json_extract(CAST(a.record AS TEXT), '$.attributes') AS attributes,
        json_extract(CAST(a.record AS TEXT), '$.hash_chain.event_hash') AS event_hash,
        json_extract(CAST(a.record AS TEXT), '$.hash_chain.previous_hash') AS previous_hash,
        a.record AS record, a.leaf_hash AS leaf_hash
      FROM chain_heads h JOIN sessions s ON s.tenant_id = h.tenant_id
      JOIN audit_log a ON a.session_key = (h.tenant_no << 40) | s.session_no""",
]
SQLITE += [
    f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
    f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    for table in ("audit_log", "messages")
    for verb in ("UPDATE", "DELETE")
]
# Ruling 39: a payload's one allowed change is bytes and salt to NULL, naming the event that ordered it.
SQLITE += [
    "CREATE TRIGGER payloads_no_delete BEFORE DELETE ON payloads "
    "BEGIN SELECT RAISE(ABORT, 'payloads is append-only'); END",
    """CREATE TRIGGER payloads_only_shred BEFORE UPDATE ON payloads
       WHEN NOT (NEW.key = OLD.key AND NEW.raw IS NULL AND NEW.salt IS NULL
                 AND OLD.shredded_by IS NULL AND NEW.shredded_by IS NOT NULL)
       BEGIN SELECT RAISE(ABORT, 'a payload can only be shredded, by an ordered event'); END""",
]

POSTGRES = [
    "CREATE INDEX audit_events_trace ON audit_events (trace_id)",
    "CREATE INDEX audit_events_time ON audit_events (tenant_id, timestamp)",
    "CREATE INDEX audit_events_severe ON audit_events (tenant_id, severity_number) "
    "WHERE severity_number >= 17",
    # A longer pending list: more of the merging is left to autovacuum, behind the commits.
    "CREATE INDEX audit_events_body ON audit_events USING gin (body) WITH (gin_pending_list_limit = 16384)",
    "CREATE INDEX audit_events_attributes ON audit_events USING gin (attributes) "
    "WITH (gin_pending_list_limit = 16384)",
    # jsonb operators are not leakproof, so under row level security the GIN indexes serve only who may pass
    # it; the gateway finds an entity's events by key.
    "CREATE INDEX audit_events_sender ON audit_events (tenant_id, sender_key, sequence_number) "
    "WHERE sender_key IS NOT NULL",
    "CREATE INDEX audit_events_recipient ON audit_events (tenant_id, recipient_key, sequence_number) "
    "WHERE recipient_key IS NOT NULL",
    """CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN
         RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
       END $$""",
    """CREATE FUNCTION only_shred() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN
         IF NEW.tenant_id = OLD.tenant_id AND NEW.sequence_number = OLD.sequence_number AND NEW.raw IS NULL
            AND NEW.salt IS NULL AND OLD.shredded_by IS NULL AND NEW.shredded_by IS NOT NULL THEN RETURN NEW;
         END IF;
         RAISE EXCEPTION 'a payload can only be shredded, by an ordered event'
           USING ERRCODE = 'integrity_constraint_violation';
       END $$""",
    "CREATE TRIGGER payloads_only_shred BEFORE UPDATE ON payloads FOR EACH ROW EXECUTE FUNCTION only_shred()",
]
POSTGRES += [
    f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table} "
    "FOR EACH ROW EXECUTE FUNCTION refuse_change()"
    for table in ("audit_events", "messages")
]
POSTGRES.append(
    "CREATE TRIGGER payloads_no_delete BEFORE DELETE ON payloads "
    "FOR EACH ROW EXECUTE FUNCTION refuse_change()"
)
POSTGRES += [
    f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} "
    "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
    for table in ("audit_events", "messages", "payloads")
]
# The working role owns nothing and passes no policy. Without the missing-ok flag a forgotten
# `app.tenant` is an error, not an empty result.
POSTGRES.append(
    """DO $$ BEGIN
         IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'observatory_app') THEN
           CREATE ROLE observatory_app NOLOGIN NOSUPERUSER NOBYPASSRLS;
         END IF; END $$"""
)
# An owner whom the administrator already gave the role may not grant it, and need not.
POSTGRES.append(
    """DO $$ BEGIN
         SET LOCAL ROLE observatory_app;
         RESET ROLE;
       EXCEPTION WHEN insufficient_privilege THEN
         GRANT observatory_app TO CURRENT_USER;
       END $$"""
)
POSTGRES.append("GRANT SELECT ON house, alembic_version TO observatory_app")
for _table in (*OWNED, "audit_events", "messages", "payloads"):
    _rights = "SELECT, INSERT" if _table in ("audit_events", "messages") else "SELECT, INSERT, UPDATE"
    _mine = "tenant_id = current_setting('app.tenant')"
    _seen = {
        # A key or login row shows itself to whoever presents its public part or token's hash.
        "api_keys": f"{_mine} OR public_id = current_setting('app.presented')",
        "logins": f"{_mine} OR encode(token_hash, 'hex') = current_setting('app.presented')",
        "tenants": f"{_mine} OR current_setting('app.tenant') = 'tnt_default'",
        "chain_heads": f"{_mine} OR current_setting('app.tenant') = 'tnt_default'",
    }.get(_table, _mine)
    POSTGRES += [
        f"GRANT {_rights} ON {_table} TO observatory_app",
        f"ALTER TABLE {_table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {_table} FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY tenant ON {_table} USING ({_seen}) WITH CHECK ({_mine})",
    ]


def upgrade() -> None:
    for statement in SQLITE if op.get_context().dialect.name == "sqlite" else POSTGRES:
        op.execute(statement)
