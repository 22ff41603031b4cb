"""What operators gave to agents: the capabilities and clusters whose work they get (S1145)."""

from alembic import op

revision = "0018c"
down_revision = "0020"

TABLE = """CREATE TABLE grants (
    tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), entity_id TEXT NOT NULL, address TEXT NOT NULL,
    agent_id TEXT NOT NULL, granted_ns BIGINT NOT NULL, granted_by TEXT NOT NULL, removed_ns BIGINT,
    PRIMARY KEY (tenant_id, entity_id, address))"""
SQLITE = [
    "CREATE TRIGGER grants_no_delete BEFORE DELETE ON grants "
    "BEGIN SELECT RAISE(ABORT, 'grants keeps its rows'); END"
]
_MINE = "tenant_id = current_setting('app.tenant')"
POSTGRES = [
    "CREATE TRIGGER grants_no_delete BEFORE DELETE ON grants FOR EACH ROW EXECUTE FUNCTION refuse_change()",
    "CREATE TRIGGER grants_no_truncate BEFORE TRUNCATE ON grants "
    "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()",
    "GRANT SELECT, INSERT, UPDATE ON grants TO observatory_app",
    "ALTER TABLE grants ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE grants FORCE ROW LEVEL SECURITY",
    f"CREATE POLICY tenant ON grants USING ({_MINE}) WITH CHECK ({_MINE})",
]


def upgrade() -> None:
    lite = op.get_context().dialect.name == "sqlite"
    for statement in [TABLE, *(SQLITE if lite else POSTGRES)]:
        op.execute(statement)
