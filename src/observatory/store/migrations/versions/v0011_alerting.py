"""Alert rules and scaling triggers, and how each stands for each of its subjects.

How far the trail was judged is a row of `knobs`. A rule keeps its row when it is removed; a standing is
renewed in place, and what was told of it stands in the record.
"""

from alembic import op

revision = "0011"
down_revision = "0010"

OWNED = ("alert_rules", "alert_states")

TABLES = [
    """CREATE TABLE alert_rules (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), rule_id TEXT NOT NULL, purpose TEXT NOT NULL,
        name TEXT NOT NULL, condition TEXT NOT NULL, scope TEXT NOT NULL, target TEXT, compare TEXT NOT NULL,
        threshold DOUBLE PRECISION NOT NULL, window_s BIGINT NOT NULL, for_s BIGINT NOT NULL,
        cooldown_s BIGINT NOT NULL, severity TEXT NOT NULL, direction TEXT, amount BIGINT,
        endpoint_ids TEXT NOT NULL, enabled INTEGER NOT NULL, muted_until_ns BIGINT NOT NULL,
        since_seq BIGINT NOT NULL, created_ns BIGINT NOT NULL, created_by TEXT NOT NULL,
        updated_ns BIGINT NOT NULL, updated_by TEXT NOT NULL, removed_ns BIGINT,
        PRIMARY KEY (tenant_id, rule_id))""",
    "CREATE UNIQUE INDEX alert_rules_name ON alert_rules (tenant_id, purpose, name) WHERE removed_ns IS NULL",
    """CREATE TABLE alert_states (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), state_key TEXT NOT NULL,
        rule_id TEXT NOT NULL, subject TEXT NOT NULL, state TEXT NOT NULL, value TEXT NOT NULL,
        link TEXT NOT NULL, times BIGINT NOT NULL, fired_ns BIGINT NOT NULL, told_ns BIGINT NOT NULL,
        is_told INTEGER NOT NULL, raised_seq BIGINT NOT NULL, resolved_ns BIGINT, resolved_seq BIGINT,
        cleared_seq BIGINT NOT NULL, updated_ns BIGINT NOT NULL, PRIMARY KEY (tenant_id, state_key))""",
    "CREATE INDEX alert_states_firing ON alert_states (tenant_id, raised_seq) WHERE state = 'firing'",
    "CREATE INDEX alert_states_newest ON alert_states (tenant_id, updated_ns)",
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
