"""The one allowed change of a thought record: its words become nothing, with the number of the order.

The same of a session's intent. Nothing of bytes is left of content, nothing of text of an intent, and
neither comes back; every hash, id and time stays as it was, so that chain, seal and log verify as before.
What holds of a session beside it is what revision 0005 said. A verification is known by the number of its
event: one of before this revision that no seal stands over has to be made again. A pulse knows which
message said what it says, so that it goes with it.
"""

from alembic import op

from observatory.store.migrations.versions.v0005_thoughts import FIXED, SETTLED, STAYS

revision = "0013"
down_revision = "0012"

COLUMNS = [
    "ALTER TABLE thought_records ADD COLUMN shredded_by BIGINT",
    "ALTER TABLE thought_sessions ADD COLUMN intent_shredded_by BIGINT",
    "ALTER TABLE thought_sessions ADD COLUMN verified_by BIGINT",
    "ALTER TABLE pulses ADD COLUMN message_seq BIGINT",
    "CREATE INDEX thought_records_kept ON thought_records (tenant_id, sequence_number) "
    "WHERE shredded_by IS NULL",
]
KEPT = (
    "tenant_id", "session_id", "record_index", "record_id", "task_id", "type", "author", "created_at", "refs",
    "event_ids", "predecessor_chain_hash", "content_hash", "chain_hash", "parent_chain_hash",
    "sequence_number", "audit_event_id",
)  # fmt: skip
SENTENCE = "of a thought record only the words go, once, by an order"


def _changed(columns: tuple[str, ...], differs: str) -> str:
    return " OR ".join(f"NEW.{column} {differs} OLD.{column}" for column in columns)


def _of_record(differs: str, length: str) -> str:
    return (
        f"OLD.shredded_by IS NOT NULL OR NEW.shredded_by IS NULL OR {length}(NEW.content) <> 0 "
        f"OR {_changed(KEPT, differs)}"
    )


def _of_session(differs: str) -> str:
    fixed = tuple(one for one in FIXED if one != "intent")
    # An intent stays, or goes in the name of an order; and once it is gone nothing of it changes.
    intent = (
        f"(NEW.intent {differs} OLD.intent OR NEW.intent_shredded_by {differs} OLD.intent_shredded_by) AND "
        "(OLD.intent_shredded_by IS NOT NULL OR NEW.intent_shredded_by IS NULL OR NEW.intent <> '')"
    )
    return (
        f"{_changed(fixed, differs)} OR ({intent}) "
        f"OR (OLD.sealed_ns IS NOT NULL AND ({_changed((*SETTLED, 'verified_by'), differs)})) "
        f"OR (OLD.ended_ns IS NOT NULL AND NEW.ended_ns {differs} OLD.ended_ns)"
    )


ANEW = "UPDATE thought_sessions SET verified_records = NULL WHERE sealed_ns IS NULL"

SQLITE = [
    ANEW,
    "DROP TRIGGER thought_records_no_update",
    f"CREATE TRIGGER thought_records_shred BEFORE UPDATE ON thought_records "
    f"WHEN {_of_record('IS NOT', 'length')} BEGIN SELECT RAISE(ABORT, '{SENTENCE}'); END",
    "DROP TRIGGER thought_sessions_fixed",
    f"CREATE TRIGGER thought_sessions_fixed BEFORE UPDATE ON thought_sessions "
    f"WHEN {_of_session('IS NOT')} BEGIN SELECT RAISE(ABORT, '{STAYS}'); END",
]


def _function(name: str, test: str, sentence: str) -> str:
    return f"""CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN
         IF {test} THEN
           RAISE EXCEPTION '{sentence}' USING ERRCODE = 'integrity_constraint_violation';
         END IF;
         RETURN NEW;
       END $$"""


POSTGRES = [
    "ALTER TABLE thought_sessions NO FORCE ROW LEVEL SECURITY",  # it is of every tenant
    ANEW,
    "ALTER TABLE thought_sessions FORCE ROW LEVEL SECURITY",
    _function("refuse_other_shredding", _of_record("IS DISTINCT FROM", "octet_length"), SENTENCE),
    _function("refuse_unsealing", _of_session("IS DISTINCT FROM"), STAYS),
    "DROP TRIGGER thought_records_append_only ON thought_records",
    "CREATE TRIGGER thought_records_shred BEFORE UPDATE ON thought_records "
    "FOR EACH ROW EXECUTE FUNCTION refuse_other_shredding()",
    "CREATE TRIGGER thought_records_no_delete BEFORE DELETE ON thought_records "
    "FOR EACH ROW EXECUTE FUNCTION refuse_change()",
    "GRANT UPDATE (content, shredded_by) ON thought_records TO observatory_app",
]


def upgrade() -> None:
    lite = op.get_context().dialect.name == "sqlite"
    for statement in [*COLUMNS, *(SQLITE if lite else POSTGRES)]:
        op.execute(statement)
