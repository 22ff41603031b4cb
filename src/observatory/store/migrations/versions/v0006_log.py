"""The tenant's log: hashes above the leaves, checkpoints that were signed, and the keys that signed them.

All three are append-only. The leaves lie with the events. Each checkpoint names the size of the one
before it, and no two name the same: whoever seals, the checkpoints of a tenant are one line and never a
fork.
"""

from alembic import op

revision = "0006"
down_revision = "0005"

OWNED = ("log_nodes", "checkpoints", "log_keys")

TABLES = [
    """CREATE TABLE log_nodes (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), level BIGINT NOT NULL,
        position BIGINT NOT NULL, hash {bytes} NOT NULL, PRIMARY KEY (tenant_id, level, position)){lean}""",
    """CREATE TABLE checkpoints (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), size BIGINT NOT NULL,
        previous_size BIGINT NOT NULL, root {bytes} NOT NULL, note {bytes} NOT NULL,
        signed_ns BIGINT NOT NULL, PRIMARY KEY (tenant_id, size), UNIQUE (tenant_id, previous_size),
        CHECK (size > previous_size))""",
    """CREATE TABLE log_keys (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), key_id TEXT NOT NULL,
        public_key {bytes} NOT NULL, since BIGINT NOT NULL, created_ns BIGINT NOT NULL,
        PRIMARY KEY (tenant_id, key_id))""",
]

SQLITE = [
    f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
    f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    for table in OWNED
    for verb in ("UPDATE", "DELETE")
]

POSTGRES: list[str] = []
for _table in OWNED:
    _mine = "tenant_id = current_setting('app.tenant')"
    POSTGRES += [
        f"CREATE TRIGGER {_table}_append_only BEFORE UPDATE OR DELETE ON {_table} "
        "FOR EACH ROW EXECUTE FUNCTION refuse_change()",
        f"CREATE TRIGGER {_table}_no_truncate BEFORE TRUNCATE ON {_table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()",
        f"GRANT SELECT, INSERT ON {_table} TO observatory_app",
        f"ALTER TABLE {_table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {_table} FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY tenant ON {_table} USING ({_mine}) WITH CHECK ({_mine})",
    ]


def upgrade() -> None:
    lite = op.get_context().dialect.name == "sqlite"
    for statement in TABLES:
        statement = statement.replace("{bytes}", "BLOB" if lite else "BYTEA")
        op.execute(statement.replace("{lean}", " WITHOUT ROWID" if lite else ""))
    for statement in SQLITE if lite else POSTGRES:
        op.execute(statement)
