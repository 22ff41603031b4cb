"""Insight: scores of sessions and messages, detector settings, what people note about steps and facts."""

from alembic import op

revision = "0004"
down_revision = "0003"

OWNED = ("knobs", "annotations", "fact_marks", "reconciliations", "saved_views", "reviews")

ADDED = [
    "ALTER TABLE sessions ADD COLUMN entropy DOUBLE PRECISION",
    "ALTER TABLE sessions ADD COLUMN entropy_window TEXT",
    "ALTER TABLE sessions ADD COLUMN severity TEXT NOT NULL DEFAULT 'normal'",
    "ALTER TABLE sessions ADD COLUMN alert_seq BIGINT",
    "ALTER TABLE sessions ADD COLUMN alert_count BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE sessions ADD COLUMN loop_ns BIGINT",
    "ALTER TABLE sessions ADD COLUMN loop_seq BIGINT",
    "ALTER TABLE sessions ADD COLUMN loop_detector TEXT",
    "ALTER TABLE sessions ADD COLUMN loop_agent_no BIGINT",
    "ALTER TABLE sessions ADD COLUMN loops TEXT",
    # Alarms are few among many sessions.
    "CREATE INDEX sessions_severe ON sessions (tenant_id, session_no) WHERE severity <> 'normal'",
    "CREATE INDEX sessions_looping ON sessions (tenant_id, session_no) WHERE loop_ns IS NOT NULL",
    "ALTER TABLE messages ADD COLUMN entropy DOUBLE PRECISION",
]

TABLES = [
    """CREATE TABLE knobs (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), name TEXT NOT NULL, value TEXT NOT NULL,
        updated_ns BIGINT NOT NULL, updated_by TEXT NOT NULL, PRIMARY KEY (tenant_id, name))""",
    """CREATE TABLE annotations (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), annotation_id TEXT NOT NULL,
        sequence_number BIGINT NOT NULL, session_no BIGINT NOT NULL, author_id TEXT NOT NULL, label TEXT,
        category TEXT, text TEXT, created_ns BIGINT NOT NULL, removed_ns BIGINT,
        PRIMARY KEY (tenant_id, annotation_id))""",
    "CREATE INDEX annotations_session ON annotations (tenant_id, session_no, sequence_number)",
    """CREATE TABLE fact_marks (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), mark_id TEXT NOT NULL,
        fact_key BIGINT NOT NULL, fact_id BIGINT NOT NULL, note TEXT, marked_by TEXT NOT NULL,
        marked_ns BIGINT NOT NULL, undone_ns BIGINT, PRIMARY KEY (tenant_id, mark_id))""",
    "CREATE INDEX fact_marks_fact ON fact_marks (tenant_id, fact_key)",
    """CREATE TABLE reconciliations (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), reconciliation_id TEXT NOT NULL,
        subject_key BIGINT NOT NULL, subject TEXT NOT NULL, value TEXT NOT NULL, scope TEXT NOT NULL,
        decided_by TEXT NOT NULL, decided_ns BIGINT NOT NULL, PRIMARY KEY (tenant_id, reconciliation_id))""",
    "CREATE INDEX reconciliations_subject ON reconciliations (tenant_id, subject_key)",
    """CREATE TABLE saved_views (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), view_id TEXT NOT NULL, owner_id TEXT NOT NULL,
        name TEXT NOT NULL, query TEXT NOT NULL, shared SMALLINT NOT NULL DEFAULT 0,
        created_ns BIGINT NOT NULL, removed_ns BIGINT, PRIMARY KEY (tenant_id, view_id))""",
    "CREATE INDEX saved_views_live ON saved_views (tenant_id, owner_id) WHERE removed_ns IS NULL",
    """CREATE TABLE reviews (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), sequence_number BIGINT NOT NULL,
        verdict TEXT NOT NULL, note TEXT, reviewed_by TEXT NOT NULL, reviewed_ns BIGINT NOT NULL,
        PRIMARY KEY (tenant_id, sequence_number))""",
]

POSTGRES: list[str] = []
for _table in OWNED:
    _mine = "tenant_id = current_setting('app.tenant')"
    POSTGRES += [
        f"GRANT SELECT, INSERT, UPDATE ON {_table} TO observatory_app",
        f"ALTER TABLE {_table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {_table} FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY tenant ON {_table} USING ({_mine}) WITH CHECK ({_mine})",
    ]


def upgrade() -> None:
    lite = op.get_context().dialect.name == "sqlite"
    for statement in (*ADDED, *TABLES):
        op.execute(statement)
    for statement in () if lite else POSTGRES:
        op.execute(statement)
