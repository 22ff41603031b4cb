"""Webhooks in: the hooks a tenant has opened to the outside, the log of what called, and deliveries known.

A hook is found by its id alone by whoever presents it: who calls has no key. A delivery is remembered for
good, so that none becomes two messages. Of a call that was not valid no body is ever stored; that of a valid
one may go again, and so may the message once it is in the archive.
"""

from alembic import op

revision = "0010"
down_revision = "0009"

OWNED = ("hooks", "hook_calls", "hook_deliveries")

TABLES = [
    """CREATE TABLE hooks (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), hook_id TEXT NOT NULL, name TEXT NOT NULL,
        scheme TEXT NOT NULL, mapping TEXT NOT NULL, window_s BIGINT NOT NULL, state TEXT NOT NULL,
        version BIGINT NOT NULL, secret TEXT, old_secret TEXT, old_until_ns BIGINT,
        valid_calls BIGINT NOT NULL, invalid_calls BIGINT NOT NULL, missing_calls BIGINT NOT NULL,
        last_signature TEXT, refused_count BIGINT NOT NULL, refused_ns BIGINT, called_ns BIGINT,
        created_ns BIGINT NOT NULL,
        created_by TEXT NOT NULL, updated_ns BIGINT NOT NULL, updated_by TEXT NOT NULL, removed_ns BIGINT,
        PRIMARY KEY (tenant_id, hook_id))""",
    "CREATE INDEX hooks_id ON hooks (hook_id)",  # who calls names no tenant
    "CREATE UNIQUE INDEX hooks_name ON hooks (tenant_id, name) WHERE removed_ns IS NULL",
    """CREATE TABLE hook_calls (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), call_id TEXT NOT NULL, hook_id TEXT NOT NULL,
        at_ns BIGINT NOT NULL, caller TEXT, signature TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT,
        delivery_id TEXT, message_id TEXT, message_seq BIGINT, session_id TEXT, body_hash TEXT,
        body_bytes BIGINT, body {bytes}, body_cut BIGINT NOT NULL, headers TEXT, message {bytes},
        calls BIGINT NOT NULL, repeats BIGINT NOT NULL, repeated_ns BIGINT,
        PRIMARY KEY (tenant_id, call_id))""",
    "CREATE INDEX hook_calls_hook ON hook_calls (tenant_id, hook_id, call_id)",
    "CREATE INDEX hook_calls_taken ON hook_calls (tenant_id, call_id) WHERE outcome = 'taken'",
    "CREATE INDEX hook_calls_body ON hook_calls (tenant_id, at_ns) "
    "WHERE body IS NOT NULL AND message_seq IS NULL",
    "CREATE INDEX hook_calls_message ON hook_calls (tenant_id, message_seq) WHERE message_seq IS NOT NULL",
    """CREATE TABLE hook_deliveries (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), delivery_key TEXT NOT NULL,
        hook_id TEXT NOT NULL, call_id TEXT NOT NULL, PRIMARY KEY (tenant_id, delivery_key))""",
]

SQLITE = [
    "CREATE TRIGGER hook_deliveries_no_update BEFORE UPDATE ON hook_deliveries "
    "BEGIN SELECT RAISE(ABORT, 'hook_deliveries is append-only'); END",
]
SQLITE += [
    f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} "
    f"BEGIN SELECT RAISE(ABORT, '{table} keeps its rows'); END"
    for table in OWNED
]

POSTGRES = [
    "CREATE TRIGGER hook_deliveries_append_only BEFORE UPDATE ON hook_deliveries "
    "FOR EACH ROW EXECUTE FUNCTION refuse_change()",
]
for _table in OWNED:
    _mine = "tenant_id = current_setting('app.tenant')"
    _seen = f"{_mine} OR hook_id = current_setting('app.presented')" if _table == "hooks" else _mine
    _rights = "SELECT, INSERT" if _table == "hook_deliveries" else "SELECT, INSERT, UPDATE"
    POSTGRES += [
        f"CREATE TRIGGER {_table}_no_delete BEFORE DELETE ON {_table} "
        "FOR EACH ROW EXECUTE FUNCTION refuse_change()",
        f"CREATE TRIGGER {_table}_no_truncate BEFORE TRUNCATE ON {_table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()",
        f"GRANT {_rights} ON {_table} TO observatory_app",
        f"ALTER TABLE {_table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {_table} FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY tenant ON {_table} USING ({_seen}) WITH CHECK ({_mine})",
    ]


def upgrade() -> None:
    lite = op.get_context().dialect.name == "sqlite"
    for statement in TABLES:
        op.execute(statement.replace("{bytes}", "BLOB" if lite else "BYTEA"))
    for statement in SQLITE if lite else POSTGRES:
        op.execute(statement)
