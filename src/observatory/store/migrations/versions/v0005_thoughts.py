"""Thoughts: sessions of the decision trail, their records and tasks, and the tree that seals them.

A record and a node are final when written. What the corridor decides under the lock is held here too: one
record for an index and none left out, none after the seal, no task closed but by a reflection of its own, and
no seal but over a session whose last record is a reflection written right after a verification, with no task
left open.
"""

from alembic import op

revision = "0005"
down_revision = "0004"

OWNED = ("thought_records", "merkle_nodes", "thought_tasks", "thought_sessions")
FINAL = ("thought_records", "merkle_nodes")
# Of a session's row, once and for all; and what its seal settles.
FIXED = (
    "tenant_id", "session_id", "caller", "opened_by", "intent", "task_id", "started_at", "genesis",
    "sequence_number", "predecessor_session_id", "predecessor_chain_hash", "proof_grade",
)  # fmt: skip
SETTLED = ("records", "open_tasks", "last_chain_hash", "verified_records", "sealed_ns", "root")

TABLES = [
    """CREATE TABLE thought_records (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), session_id TEXT NOT NULL,
        record_index BIGINT NOT NULL, record_id TEXT NOT NULL, task_id TEXT NOT NULL,
        type TEXT NOT NULL CHECK (type IN ('plan', 'analysis', 'decision', 'reflection')),
        content {bytes} NOT NULL, author TEXT NOT NULL, created_at TEXT NOT NULL, refs TEXT NOT NULL,
        event_ids TEXT NOT NULL, predecessor_chain_hash TEXT, content_hash TEXT NOT NULL,
        chain_hash TEXT NOT NULL, parent_chain_hash TEXT NOT NULL, sequence_number BIGINT NOT NULL,
        audit_event_id TEXT NOT NULL, PRIMARY KEY (tenant_id, session_id, record_index),
        UNIQUE (tenant_id, record_id))""",
    "CREATE UNIQUE INDEX thought_records_event ON thought_records (tenant_id, sequence_number)",
    """CREATE TABLE merkle_nodes (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), session_id TEXT NOT NULL,
        level BIGINT NOT NULL, node_index BIGINT NOT NULL, hash {bytes} NOT NULL,
        PRIMARY KEY (tenant_id, session_id, level, node_index))""",
    """CREATE TABLE thought_tasks (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), task_key TEXT NOT NULL,
        session_id TEXT NOT NULL, task_id TEXT NOT NULL, proof_grade SMALLINT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('open', 'closed')), opened_by TEXT NOT NULL,
        opened_ns BIGINT NOT NULL, closed_by TEXT, closed_ns BIGINT, PRIMARY KEY (tenant_id, task_key))""",
    "CREATE INDEX thought_tasks_name ON thought_tasks (tenant_id, task_id, opened_by, opened_ns)",
    "CREATE INDEX thought_tasks_open ON thought_tasks (tenant_id, session_id) WHERE state = 'open'",
    """CREATE TABLE thought_sessions (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), session_id TEXT NOT NULL,
        session_no BIGINT NOT NULL, caller TEXT NOT NULL, opened_by TEXT NOT NULL, intent TEXT NOT NULL,
        task_id TEXT NOT NULL, started_at TEXT NOT NULL, genesis TEXT NOT NULL,
        sequence_number BIGINT NOT NULL, predecessor_session_id TEXT, predecessor_chain_hash TEXT,
        proof_grade SMALLINT NOT NULL, records BIGINT NOT NULL, open_tasks BIGINT NOT NULL,
        last_chain_hash TEXT NOT NULL, verified_records BIGINT, sealed_ns BIGINT, root TEXT,
        ended_ns BIGINT, PRIMARY KEY (tenant_id, session_id))""",
    "CREATE INDEX thought_sessions_newest ON thought_sessions (tenant_id, sequence_number)",
    "CREATE INDEX thought_sessions_sealed ON thought_sessions (tenant_id, session_id) "
    "WHERE sealed_ns IS NOT NULL",
]

_SEALED = (
    "SELECT 1 FROM thought_sessions s WHERE s.tenant_id = NEW.tenant_id AND s.session_id = NEW.session_id "
    "AND s.sealed_ns IS NOT NULL"
)
_CLOSING = (
    "SELECT 1 FROM thought_records r WHERE r.tenant_id = NEW.tenant_id AND r.session_id = NEW.session_id "
    "AND r.record_index = NEW.records - 1 AND r.type = 'reflection'"
)
_OPEN = (
    "SELECT 1 FROM thought_tasks t WHERE t.tenant_id = NEW.tenant_id AND t.session_id = NEW.session_id "
    "AND t.state = 'open'"
)
_TOO_EARLY = (
    f"OLD.sealed_ns IS NULL AND NEW.sealed_ns IS NOT NULL AND (NOT EXISTS ({_CLOSING}) "
    "OR NEW.verified_records IS NULL OR NEW.verified_records <> NEW.records - 1 OR NEW.root IS NULL "
    f"OR NEW.open_tasks > 0 OR EXISTS ({_OPEN}))"
)
# A copy writes records before their session: there is no row yet.
_OUT_OF_TURN = (
    "SELECT 1 FROM thought_sessions s WHERE s.tenant_id = NEW.tenant_id AND s.session_id = NEW.session_id "
    "AND s.records <> NEW.record_index"
)
_REFLECTION = (
    "SELECT 1 FROM thought_records r WHERE r.tenant_id = NEW.tenant_id AND r.record_id = NEW.closed_by "
    "AND r.session_id = NEW.session_id AND r.task_id = NEW.task_id AND r.type = 'reflection'"
)
_NOT_CLOSED_SO = f"NEW.state = 'closed' AND NOT EXISTS ({_REFLECTION})"
IN_TURN = "a record follows the last one of its session"
BY_REFLECTION = "a task is closed by a reflection of its own"
NOT_YET = "a session is sealed only after a verification and its closing reflection"


def _changed(columns: tuple[str, ...], differs: str) -> str:
    return " OR ".join(f"NEW.{column} {differs} OLD.{column}" for column in columns)


def _lite(name: str, when: str, table: str, test: str, sentence: str) -> str:
    test = f"WHEN {test} " if test else ""
    return (
        f"CREATE TRIGGER {name} BEFORE {when} ON {table} {test}BEGIN SELECT RAISE(ABORT, '{sentence}'); END"
    )


def _of_session(differs: str) -> str:
    return (
        f"{_changed(FIXED, differs)} OR (OLD.sealed_ns IS NOT NULL AND ({_changed(SETTLED, differs)})) "
        f"OR (OLD.ended_ns IS NOT NULL AND NEW.ended_ns {differs} OLD.ended_ns)"
    )


STAYS = "what a session began with, and its seal, stay as they are"
SQLITE = [
    _lite(f"{table}_no_{verb.lower()}", verb, table, "", f"{table} is append-only")
    for table in FINAL
    for verb in ("UPDATE", "DELETE")
]
SQLITE += [
    _lite(f"{table}_not_sealed", "INSERT", table, f"EXISTS ({_SEALED})", "this session is sealed")
    for table in FINAL
]
SQLITE += [
    _lite(f"{table}_no_delete", "DELETE", table, "", f"{table} keeps its rows")
    for table in ("thought_tasks", "thought_sessions")
]
SQLITE += [
    _lite("thought_sessions_fixed", "UPDATE", "thought_sessions", _of_session("IS NOT"), STAYS),
    _lite("thought_sessions_seal", "UPDATE", "thought_sessions", _TOO_EARLY, NOT_YET),
    _lite("thought_tasks_closed", "UPDATE", "thought_tasks", "OLD.state = 'closed'", "this task is closed"),
    _lite("thought_tasks_reflection", "UPDATE", "thought_tasks", _NOT_CLOSED_SO, BY_REFLECTION),
    _lite("thought_records_turn", "INSERT", "thought_records", f"EXISTS ({_OUT_OF_TURN})", IN_TURN),
]


def _function(name: str, test: str, sentence: str) -> str:
    return f"""CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN
         IF {test} THEN
           RAISE EXCEPTION '{sentence}' USING ERRCODE = 'integrity_constraint_violation';
         END IF;
         RETURN NEW;
       END $$"""


POSTGRES = [
    _function("refuse_after_seal", f"EXISTS ({_SEALED})", "this session is sealed"),
    _function("refuse_unsealing", _of_session("IS DISTINCT FROM"), STAYS),
    _function("refuse_early_seal", _TOO_EARLY, NOT_YET),
    _function("refuse_reopening", "OLD.state = 'closed'", "this task is closed"),
    _function("refuse_other_closing", _NOT_CLOSED_SO, BY_REFLECTION),
    _function("refuse_out_of_turn", f"EXISTS ({_OUT_OF_TURN})", IN_TURN),
]
POSTGRES += [
    f"CREATE TRIGGER {table}_{name} BEFORE {verb} ON {table} FOR EACH {each} EXECUTE FUNCTION {function}()"
    for table, name, verb, each, function in (
        *((table, "append_only", "UPDATE OR DELETE", "ROW", "refuse_change") for table in FINAL),
        *((table, "not_sealed", "INSERT", "ROW", "refuse_after_seal") for table in FINAL),
        *((table, "no_truncate", "TRUNCATE", "STATEMENT", "refuse_change") for table in OWNED),
        *((table, "no_delete", "DELETE", "ROW", "refuse_change") for table in OWNED[2:]),
        ("thought_sessions", "fixed", "UPDATE", "ROW", "refuse_unsealing"),
        ("thought_sessions", "seal", "UPDATE", "ROW", "refuse_early_seal"),
        ("thought_tasks", "closed", "UPDATE", "ROW", "refuse_reopening"),
        ("thought_tasks", "reflection", "UPDATE", "ROW", "refuse_other_closing"),
        ("thought_records", "turn", "INSERT", "ROW", "refuse_out_of_turn"),
    )
]
for _table in OWNED:
    _mine = "tenant_id = current_setting('app.tenant')"
    _rights = "SELECT, INSERT" if _table in FINAL else "SELECT, INSERT, UPDATE"
    POSTGRES += [
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
