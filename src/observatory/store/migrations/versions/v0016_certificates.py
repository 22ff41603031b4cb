"""Certificates: which an agent is bound to, which were shown, and with which each agent last spoke.

Those that were shown have numbered places, so that a tenant never keeps more than there are; a new one takes
the place of the one that was not seen for longest.
"""

from alembic import op

revision = "0016"
down_revision = "0015"

OWNED = ("agent_certificates", "certificates")

TABLES = [
    "ALTER TABLE agents ADD COLUMN certificate TEXT",
    """CREATE TABLE agent_certificates (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), entity_id TEXT NOT NULL,
        agent_id TEXT NOT NULL, kind TEXT NOT NULL, value TEXT NOT NULL, bound_ns BIGINT NOT NULL,
        bound_by TEXT NOT NULL, removed_ns BIGINT, PRIMARY KEY (tenant_id, entity_id))""",
    """CREATE TABLE certificates (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), slot BIGINT NOT NULL,
        fingerprint TEXT NOT NULL, subject TEXT NOT NULL, issuer TEXT NOT NULL, serial TEXT NOT NULL,
        names TEXT NOT NULL, not_before_ns BIGINT NOT NULL, not_after_ns BIGINT NOT NULL,
        first_seen_ns BIGINT NOT NULL, last_seen_ns BIGINT NOT NULL, key_ids TEXT NOT NULL,
        PRIMARY KEY (tenant_id, slot))""",
]

SQLITE = [
    f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} "
    f"BEGIN SELECT RAISE(ABORT, '{table} keeps its rows'); END"
    for table in OWNED
]
POSTGRES = []
for _table in OWNED:
    _mine = "tenant_id = current_setting('app.tenant')"
    POSTGRES += [
        f"CREATE TRIGGER {_table}_no_delete BEFORE DELETE ON {_table} "
        "FOR EACH ROW EXECUTE FUNCTION refuse_change()",
        f"CREATE TRIGGER {_table}_no_truncate BEFORE TRUNCATE ON {_table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()",
        f"GRANT SELECT, INSERT, UPDATE ON {_table} TO observatory_app",
        f"ALTER TABLE {_table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {_table} FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY tenant ON {_table} USING ({_mine}) WITH CHECK ({_mine})",
    ]


def upgrade() -> None:
    lite = op.get_context().dialect.name == "sqlite"
    for statement in [*TABLES, *(SQLITE if lite else POSTGRES)]:
        op.execute(statement)
