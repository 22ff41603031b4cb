"""A reminder knows the number of the message that asked for it, and so do its runs and their dead letters.

So what it carries goes when that message is shredded, as everything else of it does. The number of those that
are there is in the id of their job; where the message was shredded before, what they carry goes now.
"""

from alembic import op

from observatory.store.shredding import EMPTY, LETTER, LITE_RUN, PG_RUN

revision = "0014"
down_revision = "0013"

ASKED = ("jobs", "job_runs", "dead_letters")
COLUMNS = [f"ALTER TABLE {table} ADD COLUMN asked_seq BIGINT" for table in ASKED]
INDEXES = [
    f"CREATE INDEX {table}_asked ON {table} (tenant_id, asked_seq) WHERE asked_seq IS NOT NULL"
    for table in ASKED
]
# The lowest 40 bits of a UUIDv7 of ours: ten hexadecimal digits.
_DIGITS = [f"(instr('0123456789abcdef', substr(job_id, -{n + 1}, 1)) - 1) * {16**n}" for n in range(10)]
LITE_NUMBER = " + ".join(_DIGITS)
PG_NUMBER = "('x' || right(job_id, 10))::bit(40)::bigint"


def _link(number: str) -> list[str]:
    of_job = "SELECT j.asked_seq FROM jobs j WHERE j.tenant_id = {0}.tenant_id AND j.job_id = {0}.{1}"
    return [
        f"UPDATE jobs SET asked_seq = {number} WHERE asked_by IS NOT NULL",
        f"UPDATE job_runs SET asked_seq = ({of_job.format('job_runs', 'job_id')})",
        f"UPDATE dead_letters SET asked_seq = ({of_job.format('dead_letters', 'source_id')}) "
        "WHERE kind = 'job'",
    ]


def _empty(run: str, gone: str) -> list[str]:
    """`gone`: whether the message of a table's row was shredded."""
    return [
        f"UPDATE jobs SET payload = '{EMPTY}' WHERE payload IS NOT NULL AND {gone.format('jobs')}",
        f"UPDATE job_runs SET body = {run} WHERE body IS NOT NULL AND {gone.format('job_runs')}",
        f"UPDATE dead_letters SET preview = '{LETTER}' WHERE {gone.format('dead_letters')}",
    ]


LITE_GONE = (
    "EXISTS (SELECT 1 FROM payloads p JOIN chain_heads h ON h.tenant_id = {0}.tenant_id "
    "WHERE p.key = ((h.tenant_no << 40) | {0}.asked_seq) AND p.shredded_by IS NOT NULL)"
)
PG_GONE = (
    "EXISTS (SELECT 1 FROM payloads p WHERE p.tenant_id = {0}.tenant_id "
    "AND p.sequence_number = {0}.asked_seq AND p.shredded_by IS NOT NULL)"
)
_SHUT = (*ASKED, "payloads")
SQLITE = [*_link(LITE_NUMBER), *_empty(LITE_RUN, LITE_GONE)]
POSTGRES = [
    *(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY" for table in _SHUT),  # they are of every tenant
    *_link(PG_NUMBER),
    *_empty(PG_RUN, PG_GONE),
    *(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY" for table in _SHUT),
]


def upgrade() -> None:
    lite = op.get_context().dialect.name == "sqlite"
    for statement in [*COLUMNS, *(SQLITE if lite else POSTGRES), *INDEXES]:
        op.execute(statement)
