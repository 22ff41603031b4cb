"""The data deleted with a message's bytes, in the SQL of both databases (ruling 39, rules S450–S456, S790).

In addition to its payload: the task in an agent's last heartbeat, the body of the webhook that became the
message, and the content of its reminder: the job, its runs and their dead letters. A reminder whose step is
shredded is still delivered on time, with `{"shredded": true}` as its content.

Law: no statement here reads what it deletes: data corrupted outside the gateway is deleted as well.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from observatory.pipeline.ports import SqlStatement
from observatory.store.lists import padded

EMPTY: Final = '{"shredded": true}'
LETTER: Final = "shredded, with the message that asked for it"

UNSHREDDED: Final = "SELECT key FROM payloads WHERE raw IS NOT NULL AND key IN"
SHRED: Final = "UPDATE payloads SET raw=NULL, salt=NULL, shredded_by=? WHERE shredded_by IS NULL AND key IN"
# Prefixes of the writes that delete the text of thoughts: after them the write-ahead log must be truncated.
FORGET: Final = ("UPDATE thought_records SET content=", "UPDATE thought_sessions SET intent=")

PG_SHRED: Final = """
UPDATE payloads SET raw = NULL, salt = NULL, shredded_by = $2
WHERE tenant_id = $1 AND shredded_by IS NULL AND sequence_number = ANY($3::bigint[])"""


def _run(array: str, build: str, payload: str) -> str:
    """A run's body as `firing.new_run` writes it, from its job; the existing one is not read."""
    return (
        f"(SELECT {build}('target', {array}(j.target_kind, j.target_name), 'intent', j.intent, "
        f"'payload', {payload}, 'session_id', j.session_id) FROM jobs j "
        "WHERE j.tenant_id = job_runs.tenant_id AND j.job_id = job_runs.job_id)"
    )


LITE_RUN: Final = _run("json_array", "json_object", f"json('{EMPTY}')")
PG_RUN: Final = _run("json_build_array", "json_build_object", f"'{EMPTY}'::json").replace(
    " FROM jobs j", "::text FROM jobs j"
)


def _related_updates(run: str) -> tuple[tuple[str, str], ...]:
    """Updates without their WHERE clause, and the column that names the message."""
    return (
        ("UPDATE pulses SET task = NULL, usage = NULL, message_seq = NULL", "message_seq"),
        ("UPDATE hook_calls SET body = NULL", "message_seq"),
        (f"UPDATE jobs SET payload = CASE WHEN payload IS NULL THEN NULL ELSE '{EMPTY}' END", "asked_seq"),
        (f"UPDATE job_runs SET body = CASE WHEN body IS NULL THEN NULL ELSE {run} END", "asked_seq"),
        (f"UPDATE dead_letters SET preview = '{LETTER}'", "asked_seq"),
    )


LITE: Final = _related_updates(LITE_RUN)
POSTGRES: Final = tuple(
    f"{sql} WHERE tenant_id = $1 AND {column} = ANY($2::bigint[])" for sql, column in _related_updates(PG_RUN)
)


def marked(values: Collection[Any]) -> str:
    return "(" + ",".join("?" * len(values)) + ")"


def on_sqlite(tenant_id: str, base: int, ordered_by: int, numbers: Sequence[int]) -> list[SqlStatement]:
    """`base`: the high bits of this tenant's keys."""
    numbers = padded(numbers)
    marks, keys = marked(numbers), [base | number for number in numbers]
    related = [
        SqlStatement(f"{sql} WHERE tenant_id = ? AND {column} IN {marks}", [tenant_id, *numbers])
        for sql, column in LITE
    ]
    return [SqlStatement(f"{SHRED} {marks}", [ordered_by, *keys], must_hit=True), *related]


def on_postgres(tenant_id: str, ordered_by: int, numbers: Sequence[int]) -> list[SqlStatement]:
    related = [SqlStatement(sql, [tenant_id, list(numbers)]) for sql in POSTGRES]
    return [SqlStatement(PG_SHRED, [tenant_id, ordered_by, list(numbers)], must_hit=True), *related]
