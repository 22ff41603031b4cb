"""Exporters: where a tenant's events go by OTLP, and how far each has come.

A cursor only grows, whoever asks, unless a person moves it: that is a new round (`rounds`), and whatever an
exporter that is still at work on the round before would write is refused. Headers are secrets: they are
written here and shown to nobody. A removed exporter keeps its row, without them.
"""

from alembic import op

revision = "0012"
down_revision = "0011"

TABLE = """CREATE TABLE exporters (
    tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), exporter_id TEXT NOT NULL, name TEXT NOT NULL,
    protocol TEXT NOT NULL, url TEXT NOT NULL, headers TEXT NOT NULL, filters TEXT NOT NULL,
    state TEXT NOT NULL, cursor BIGINT NOT NULL, rounds BIGINT NOT NULL, sent BIGINT NOT NULL,
    filtered BIGINT NOT NULL, refused BIGINT NOT NULL, sent_ns BIGINT, failures BIGINT NOT NULL,
    next_ns BIGINT, problem TEXT, problem_ns BIGINT, created_ns BIGINT NOT NULL, created_by TEXT NOT NULL,
    updated_ns BIGINT NOT NULL, removed_ns BIGINT,
    PRIMARY KEY (tenant_id, exporter_id))"""
NAMES = "CREATE UNIQUE INDEX exporters_name ON exporters (tenant_id, name) WHERE removed_ns IS NULL"

BACK = "NEW.rounds < OLD.rounds OR (NEW.rounds = OLD.rounds AND NEW.cursor < OLD.cursor)"
SENTENCE = "an exporter goes back only when a person says so"

SQLITE = [
    f"CREATE TRIGGER exporters_only_grow BEFORE UPDATE ON exporters WHEN {BACK} "
    f"BEGIN SELECT RAISE(ABORT, '{SENTENCE}'); END",
    "CREATE TRIGGER exporters_no_delete BEFORE DELETE ON exporters "
    "BEGIN SELECT RAISE(ABORT, 'exporters keeps its rows'); END",
]

_MINE = "tenant_id = current_setting('app.tenant')"
POSTGRES = [
    f"""CREATE FUNCTION refuse_going_back() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN
         IF {BACK} THEN
           RAISE EXCEPTION '{SENTENCE}' USING ERRCODE = 'integrity_constraint_violation';
         END IF;
         RETURN NEW;
       END $$""",
    "CREATE TRIGGER exporters_only_grow BEFORE UPDATE ON exporters "
    "FOR EACH ROW EXECUTE FUNCTION refuse_going_back()",
    "CREATE TRIGGER exporters_no_delete BEFORE DELETE ON exporters "
    "FOR EACH ROW EXECUTE FUNCTION refuse_change()",
    "CREATE TRIGGER exporters_no_truncate BEFORE TRUNCATE ON exporters "
    "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()",
    "GRANT SELECT, INSERT, UPDATE ON exporters TO observatory_app",
    "ALTER TABLE exporters ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE exporters FORCE ROW LEVEL SECURITY",
    f"CREATE POLICY tenant ON exporters USING ({_MINE}) WITH CHECK ({_MINE})",
]


def upgrade() -> None:
    for statement in (TABLE, NAMES):
        op.execute(statement)
    for statement in SQLITE if op.get_context().dialect.name == "sqlite" else POSTGRES:
        op.execute(statement)
