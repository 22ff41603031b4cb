"""Federation: the peers a tenant knows, the newest head of each one's log, and what witnesses signed of ours.

A head only grows: a smaller size, or another root for the same size, is refused here too, whoever asks. A
cosignature is final. Heads outlive the peer's row: who comes back under the same name goes on from there.
"""

from alembic import op

revision = "0007"
down_revision = "0006"

OWNED = ("peers", "peer_heads", "cosignatures")

TABLES = [
    """CREATE TABLE peers (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), peer_id TEXT NOT NULL, name TEXT NOT NULL,
        origin TEXT NOT NULL, vkey TEXT NOT NULL, url TEXT, log_url TEXT, created_ns BIGINT NOT NULL,
        created_by TEXT NOT NULL, removed_ns BIGINT, forgone_size BIGINT, forgone_root {bytes},
        PRIMARY KEY (tenant_id, peer_id))""",
    "CREATE UNIQUE INDEX peers_name ON peers (tenant_id, name) WHERE removed_ns IS NULL",
    "CREATE UNIQUE INDEX peers_origin ON peers (tenant_id, origin) WHERE removed_ns IS NULL",
    """CREATE TABLE peer_heads (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), origin TEXT NOT NULL, size BIGINT NOT NULL,
        root {bytes} NOT NULL, note {bytes} NOT NULL, cosignature TEXT NOT NULL, seen_ns BIGINT NOT NULL,
        fork_kind TEXT, fork_size BIGINT, fork_root {bytes}, fork_note {bytes}, fork_ns BIGINT,
        PRIMARY KEY (tenant_id, origin))""",
    """CREATE TABLE cosignatures (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), size BIGINT NOT NULL, name TEXT NOT NULL,
        peer_id TEXT NOT NULL, line TEXT NOT NULL, seen_s BIGINT NOT NULL, kept_ns BIGINT NOT NULL,
        PRIMARY KEY (tenant_id, size, name))""",
    "CREATE INDEX cosignatures_peer ON cosignatures (tenant_id, peer_id, size)",
]

BACK = "NEW.size < OLD.size OR (NEW.size = OLD.size AND NEW.root <> OLD.root) OR NEW.origin <> OLD.origin"
SENTENCE = "the head of a log never goes back"

SQLITE = [
    f"CREATE TRIGGER peer_heads_only_grow BEFORE UPDATE ON peer_heads WHEN {BACK} "
    f"BEGIN SELECT RAISE(ABORT, '{SENTENCE}'); END",
    "CREATE TRIGGER cosignatures_no_update BEFORE UPDATE ON cosignatures "
    "BEGIN SELECT RAISE(ABORT, 'cosignatures is append-only'); END",
]
SQLITE += [
    f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} "
    f"BEGIN SELECT RAISE(ABORT, '{table} keeps its rows'); END"
    for table in OWNED
]

POSTGRES = [
    f"""CREATE FUNCTION refuse_rollback() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN
         IF {BACK} THEN
           RAISE EXCEPTION '{SENTENCE}' USING ERRCODE = 'integrity_constraint_violation';
         END IF;
         RETURN NEW;
       END $$""",
    "CREATE TRIGGER peer_heads_only_grow BEFORE UPDATE ON peer_heads "
    "FOR EACH ROW EXECUTE FUNCTION refuse_rollback()",
    "CREATE TRIGGER cosignatures_append_only BEFORE UPDATE ON cosignatures "
    "FOR EACH ROW EXECUTE FUNCTION refuse_change()",
]
for _table in OWNED:
    _mine = "tenant_id = current_setting('app.tenant')"
    _rights = "SELECT, INSERT" if _table == "cosignatures" else "SELECT, INSERT, UPDATE"
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
        op.execute(statement.replace("{bytes}", "BLOB" if lite else "BYTEA"))
    for statement in SQLITE if lite else POSTGRES:
        op.execute(statement)
