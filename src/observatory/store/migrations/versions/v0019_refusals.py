"""Refusals that are counted: a row for each key and reason, with the right edge of the tree over them."""

from alembic import op

revision = "0019"
down_revision = "0018"

TABLES = [
    """CREATE TABLE refusals (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), key_id TEXT NOT NULL, kind TEXT NOT NULL,
        sender_id TEXT NOT NULL, sender_type TEXT NOT NULL, began_ns BIGINT NOT NULL,
        last_ns BIGINT NOT NULL, in_full BIGINT NOT NULL, counted BIGINT NOT NULL, peaks {bytes} NOT NULL,
        agent_id TEXT, PRIMARY KEY (tenant_id, key_id, kind))""",
    # What of an agent is counted against its quota.
    "CREATE INDEX decisions_pending_of ON decisions (tenant_id, agent_no) WHERE state = 'pending'",
    "CREATE INDEX jobs_asked_by ON jobs (tenant_id, asked_by) "
    "WHERE asked_by IS NOT NULL AND state = 'active'",
]

SQLITE = [
    "CREATE TRIGGER refusals_no_delete BEFORE DELETE ON refusals "
    "BEGIN SELECT RAISE(ABORT, 'refusals keeps its rows'); END"
]
_MINE = "tenant_id = current_setting('app.tenant')"
POSTGRES = [
    "CREATE TRIGGER refusals_no_delete BEFORE DELETE ON refusals "
    "FOR EACH ROW EXECUTE FUNCTION refuse_change()",
    "CREATE TRIGGER refusals_no_truncate BEFORE TRUNCATE ON refusals "
    "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()",
    "GRANT SELECT, INSERT, UPDATE ON refusals TO observatory_app",
    "ALTER TABLE refusals ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE refusals FORCE ROW LEVEL SECURITY",
    f"CREATE POLICY tenant ON refusals USING ({_MINE}) WITH CHECK ({_MINE})",
]


def upgrade() -> None:
    lite = op.get_context().dialect.name == "sqlite"
    for statement in [*TABLES, *(SQLITE if lite else POSTGRES)]:
        op.execute(statement.replace("{bytes}", "BLOB" if lite else "BYTEA"))
