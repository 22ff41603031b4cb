"""Row statements: events state the rows a command wrote, so that the record suffices to recompute them.

Law: one declaration per table. The event contains the key and `plain` columns as they are, only the SHA-256
of `hashed` ones, and no other column: not secrets, payloads or counters. The statement is one text attribute
of the first event the command appends; `observatory verify --state` compares the rows with the newest
statement of each column (ADR-041). A column is declared only where every write of it comes with an event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import EventDraft

ATTRIBUTE: Final = "av.state"
NEW: Final = "@new"  # a member of a stated row that is not a column: the row was created here
RENAMED: Final = "@renamed"  # likewise: the row's new key


class StatedColumns(NamedTuple):
    key: tuple[str, ...]
    plain: tuple[str, ...]
    hashed: tuple[str, ...] = ()
    only: frozenset[str] = frozenset()  # only these keys, in a table with other, unaudited rows
    is_whole: bool = False  # whether columns an upsert omits are empty

    @property
    def columns(self) -> tuple[str, ...]:
        return self.plain + self.hashed


def _stated(
    key: str, plain: str, hashed: str = "", only: Iterable[str] = (), is_whole: bool = False
) -> StatedColumns:
    return StatedColumns(
        tuple(key.split()), tuple(plain.split()), tuple(hashed.split()), frozenset(only), is_whole
    )


MADE: Final = "created_ns created_by"
CHANGED: Final = "updated_ns updated_by removed_ns"
STATED_TABLES: Final[dict[str, StatedColumns]] = {
    "tenants": _stated("tenant_id", "created_ns disabled_ns", "display_name"),
    "users": _stated("user_id", "role created_ns disabled_ns", "name display_name"),
    "api_keys": _stated(
        "key_id",
        f"role scopes user_id agent_id {MADE} expires_ns revoked_ns",
        "public_id key_hash label",
    ),
    "agent_certificates": _stated("entity_id", "agent_id kind bound_ns bound_by removed_ns", "value"),
    "logins": _stated("login_id", "user_id kind key_id created_ns expires_ns ended_ns", "token_hash"),
    "grants": _stated("entity_id address", "agent_id granted_ns granted_by removed_ns"),
    "policies": _stated(
        "rule_id",
        f"position effect matches quorum deadline_s on_expiry enabled created_ns {CHANGED}",
        "note",
    ),
    "budgets": _stated("budget_id", f"scope target soft hard period created_ns {CHANGED}"),
    "routes": _stated("capability", "weights updated_ns updated_by"),
    "kill_switches": _stated(
        "kill_id",
        "scope target state requested_by created_ns expires_ns engaged_ns released_ns updated_ns",
        "reason",
    ),
    "instructions": _stated("agent_type version", MADE, "text note"),
    "versions": _stated("agent_type version", "status updated_ns updated_by", "fields"),
    "knobs": _stated(
        "name",
        "updated_ns updated_by",
        "value",
        only=("decisions", "detectors", "redaction", "regions", "retention", "routing"),
    ),
    "annotations": _stated(
        "annotation_id", "sequence_number author_id created_ns removed_ns", "label category text"
    ),
    "fact_marks": _stated("mark_id", "fact_id marked_by marked_ns undone_ns", "note"),
    "reconciliations": _stated("reconciliation_id", "scope decided_by decided_ns", "subject value"),
    "saved_views": _stated("view_id", "owner_id shared created_ns removed_ns", "name query"),
    "reviews": _stated("sequence_number", "verdict reviewed_by reviewed_ns", "note"),
    "peer_heads": _stated("origin", "size fork_kind fork_size", "root note fork_root", is_whole=True),
    "peers": _stated("peer_id", f"name origin vkey {MADE} removed_ns"),
    "jobs": _stated(
        "job_id",
        "kind cron zone at_ns target_kind target_name session_id misfire overlap jitter_s grace_s max_tries "
        f"asked_by asked_seq {MADE} {CHANGED}",
        "name intent payload",
    ),
    "job_runs": _stated("job_id scheduled_for", f"run_id manual {MADE}"),
    "dead_letters": _stated("letter_id", "kind source_id subject_id created_ns", "source_name reason"),
    "webhook_endpoints": _stated(
        "endpoint_id", f"kind events filters rate_per_min schedule_s state {MADE} removed_ns", "name url"
    ),
    "hooks": _stated(
        "hook_id", f"scheme window_s state version {MADE} {CHANGED}", "name mapping"
    ),
    "alert_rules": _stated(
        "rule_id",
        "purpose condition scope target compare threshold window_s for_s cooldown_s severity direction "
        f"amount endpoint_ids enabled muted_until_ns {MADE} {CHANGED}",
        "name",
    ),
    "exporters": _stated("exporter_id", f"protocol {MADE} removed_ns", "name url filters"),
}  # fmt: skip


def attach_statements(events: Sequence[EventDraft], writes: Sequence[RowWrite]) -> None:
    """Attach the statements of these writes to the first event; free of cost when there are none."""
    if not events or not writes:
        return
    rows = [row for write in writes if write.table in STATED_TABLES for row in _rows(write)]
    if rows:
        attach_rows(events[0], rows)


def attach_rows(event: EventDraft, rows: Sequence[tuple[str, dict[str, Any]]]) -> None:
    by_table: dict[str, list[dict[str, Any]]] = {}
    for table, row in rows:
        by_table.setdefault(table, []).append(row)
    event.attributes = {**event.attributes, ATTRIBUTE: msgspec.json.encode(by_table, order="sorted").decode()}


def _rows(write: RowWrite) -> Iterable[tuple[str, dict[str, Any]]]:
    declared = STATED_TABLES[write.table]
    for values in (write.values, *write.more):
        is_new = write.where is None and (not write.key or declared.is_whole)
        for row in _keyed(declared, values, write.where, is_new):
            yield write.table, row


def stated_row(table: str, row: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The statement of a complete row, for events appended before the result is known."""
    declared = STATED_TABLES[table]
    return table, {name: row[name] for name in declared.key} | {
        name: stated_value(declared, name, row[name]) for name in declared.columns
    }


def _keyed(
    declared: StatedColumns, values: Mapping[str, Any], where: Mapping[str, Any] | None, is_new: bool
) -> Iterable[dict[str, Any]]:
    columns = {
        name: stated_value(declared, name, values[name]) for name in declared.columns if name in values
    }
    keys: list[dict[str, Any]] = [{}]
    for name in declared.key:
        value = values.get(name) if where is None else where.get(name)
        each = value if isinstance(value, list | tuple) else [value]
        keys = [row_key | {name: one} for row_key in keys for one in each]
    for row_key in keys:
        if None in row_key.values() or (declared.only and not declared.only & set(row_key.values())):
            continue
        yield row_key | columns | ({NEW: 1} if is_new else {}) | _renamed(declared, values, where)


def _renamed(
    declared: StatedColumns, values: Mapping[str, Any], where: Mapping[str, Any] | None
) -> dict[str, Any]:
    new = None if where is None else next((values[one] for one in declared.key if one in values), None)
    return {} if new is None else {RENAMED: new}


def stated_value(declared: StatedColumns, name: str, value: Any) -> Any:
    """A column's value as stated; None, integers and text stay as they are."""
    if value is None:
        return None
    if name in declared.hashed:
        raw = value.encode() if isinstance(value, str) else bytes(value)
        return "sha256:" + sha256(raw).hexdigest()
    if isinstance(value, float):
        return repr(value)  # decimal text: audit events hold no floats
    return int(value) if isinstance(value, bool) else value
