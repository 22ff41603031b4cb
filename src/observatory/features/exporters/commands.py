"""Commands on exporters: create, change, pause, move, remove, and record progress and failures.

Invariants: every create, change, move and removal is audited with header names, never values. The cursor
advances only from exactly where the batch began, so of two gateways that sent the same batch one counts.
Moving it by hand starts a new round, and workers of the previous round write nothing. Progress and failures
write no event: it would have to be exported in turn. An event the backend rejects for good is recorded once,
as `export_refused`; the rejection of such an event is only counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from observatory.features.exporters.types_settings import ExportProtocol, Filters
from observatory.pipeline.concurrency import conflict_if_stale
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol.identity import mint
from observatory.protocol.responses import Refused

MAX_EXPORTERS: Final = 16
LONGEST: Final = 300  # characters of a problem that are stored
NOT_FOUND: Final = "no exporter of this tenant has that id"
Row = dict[str, Any]


class NewExporter(NamedTuple):
    """`after` is the last event that is not sent; None means the current head."""

    name: str
    protocol: ExportProtocol
    url: str
    headers: Mapping[str, str]
    filters: Filters
    after: int | None


class ExporterChange(NamedTuple):
    """None keeps the value. Headers replace all previous ones."""

    name: str | None = None
    protocol: ExportProtocol | None = None
    url: str | None = None
    headers: Mapping[str, str] | None = None
    filters: Filters | None = None


class ExportRefusal(NamedTuple):
    """What a backend rejected: one event, or a number of a batch without saying which."""

    first: int
    last: int
    records: int
    reason: str
    is_echo: bool  # only events that themselves record refusals


class ExportProgress(NamedTuple):
    exporter_id: str
    rounds: int
    after: int  # where the batch began
    until: int
    sent: int
    filtered: int
    refusals: tuple[ExportRefusal, ...] = ()


class ExportFailure(NamedTuple):
    """Nothing was accepted: why, how many times in a row, and when the next attempt is."""

    exporter_id: str
    rounds: int
    problem: str
    failures: int
    next_ns: int


def _read_set(tenant_id: str) -> ReadSet:
    read_set = ReadSet()
    read_set.row("exporters", tenant_id)
    return read_set


def _live(uow: UnitOfWork, tenant_id: str) -> dict[str, Row]:
    rows = uow.memory.rows.setdefault("exporters", {})
    return {key: row for (owner, key), row in rows.items() if owner == tenant_id and not row["removed_ns"]}


def _unknown() -> SubmissionResult:
    return SubmissionResult(404, Refused(reason="not_found", detail=NOT_FOUND))


def _name_taken() -> SubmissionResult:
    return SubmissionResult(
        409, Refused(reason="name_taken", detail="an exporter with that name already exists")
    )


def create(who: Principal, new: NewExporter, now_ns: int) -> Command:
    def decide(uow: UnitOfWork) -> SubmissionResult:
        known, head = _live(uow, who.tenant_id), uow.memory.head.sequence_number
        if any(row["name"] == new.name for row in known.values()):
            return _name_taken()
        if len(known) >= MAX_EXPORTERS:
            detail = f"a tenant has at most {MAX_EXPORTERS} exporters"
            return SubmissionResult(409, Refused(reason="too_many_exporters", detail=detail))
        row: Row = {
            "tenant_id": who.tenant_id,
            "exporter_id": mint("exp_", now_ns),
            "name": new.name,
            "protocol": new.protocol,
            "url": new.url,
            "headers": msgspec.json.encode(new.headers).decode(),
            "filters": msgspec.json.encode(new.filters).decode(),
            "state": "active",
            "cursor": head if new.after is None else min(new.after, head),
            "rounds": 0,
            "sent": 0,
            "filtered": 0,
            "refused": 0,
            "sent_ns": None,
            "failures": 0,
            "next_ns": None,
            "problem": None,
            "problem_ns": None,
            "created_ns": uow.now_ns,
            "created_by": who.entity_id,
            "updated_ns": uow.now_ns,
            "removed_ns": None,
        }
        uow.memory.rows["exporters"][who.tenant_id, row["exporter_id"]] = (
            row  # for later commands of this batch
        )
        summary = f"exporter {new.name} created by {who.entity_id}"
        event = gateway_event(
            who.tenant_id, "exporter_created", summary, uow.now_ns, who, exporter_detail(row)
        )
        return SubmissionResult(201, row, [event], [RowWrite("exporters", row)])

    return Command(who, now_ns, decide, _read_set(who.tenant_id), size=8_192)


def exporter_detail(row: Row) -> Row:
    """The audited part of an exporter: of its URL the host, of its headers the names."""
    parts = urlsplit(row["url"])
    return {name: row[name] for name in ("exporter_id", "name", "protocol", "state", "cursor")} | {
        "backend": f"{parts.scheme}://{parts.netloc}",
        "headers": sorted(msgspec.json.decode(row["headers"])),
        "filters": msgspec.json.decode(row["filters"]),
    }


def _changed(
    uow: UnitOfWork, who: Principal, row: Row, event_type: str, verb: str, values: Row, **more: Any
) -> SubmissionResult:
    values = values | {"updated_ns": uow.now_ns}
    row |= values
    summary = f"exporter {row['name']} {verb} by {who.entity_id}"
    event = gateway_event(who.tenant_id, event_type, summary, uow.now_ns, who, exporter_detail(row) | more)
    where = {"tenant_id": who.tenant_id, "exporter_id": row["exporter_id"]}
    return SubmissionResult(200, row, [event], [RowWrite("exporters", values, where)])


# After an operator's change, earlier failures are no reason to wait.
HEALTHY: Final[Row] = {"failures": 0, "next_ns": None, "problem": None, "problem_ns": None}


def change(
    who: Principal, exporter_id: str, changed: ExporterChange, now_ns: int, was: str | None = None
) -> Command:
    """Another host gets none of the previous headers: they must be given again."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        known = _live(uow, who.tenant_id)
        row = known.get(exporter_id)
        if row is None:
            return _unknown()
        refused = conflict_if_stale(was, row["updated_ns"])
        if refused is not None:
            return refused
        if any(one["name"] == changed.name for key, one in known.items() if key != exporter_id):
            return _name_taken()
        values: Row = {name: value for name, value in changed._asdict().items() if value is not None}
        headers = changed.headers
        if headers is None and changed.url is not None and _host(changed.url) != _host(row["url"]):
            headers = {}
        if headers is not None:
            values["headers"] = msgspec.json.encode(headers).decode()
        if changed.filters is not None:
            values["filters"] = msgspec.json.encode(changed.filters).decode()
        changes = sorted(name for name, value in values.items() if value != row[name])
        if not changes:
            return SubmissionResult(200, row)
        return _changed(uow, who, row, "exporter_changed", "changed", values | HEALTHY, changes=changes)

    return Command(who, now_ns, decide, _read_set(who.tenant_id), size=8_192)


def _host(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


def set_paused(who: Principal, exporter_id: str, is_halted: bool, now_ns: int) -> Command:
    """Pause or resume. A pause loses nothing: it continues where it stopped.

    Resuming a failing exporter retries it at once.
    """
    state, verb = ("paused", "paused") if is_halted else ("active", "resumed")

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = _live(uow, who.tenant_id).get(exporter_id)
        if row is None:
            return _unknown()
        if row["state"] == state and (is_halted or not row["failures"]):
            return SubmissionResult(200, row)
        return _changed(
            uow, who, row, "exporter_changed", verb, {"state": state} | HEALTHY, changes=["state"]
        )

    return Command(who, now_ns, decide, _read_set(who.tenant_id))


def rewind(who: Principal, exporter_id: str, to: int, now_ns: int) -> Command:
    """The number of the next event to send; one past the head means only new events."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row, head = _live(uow, who.tenant_id).get(exporter_id), uow.memory.head.sequence_number
        if row is None:
            return _unknown()
        if to > head + 1:
            detail = f"the last event is {head}; an exporter can be moved to {head + 1} at most"
            return SubmissionResult(422, Refused(reason="beyond_the_record", detail=detail))
        values = {"cursor": to - 1, "rounds": row["rounds"] + 1} | HEALTHY
        return _changed(uow, who, row, "exporter_rewound", "moved", values, before=row["cursor"])

    return Command(who, now_ns, decide, _read_set(who.tenant_id))


def remove(who: Principal, exporter_id: str, now_ns: int) -> Command:
    """Its headers are deleted at once; its row stays for the record."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = _live(uow, who.tenant_id).get(exporter_id)
        if row is None:
            return _unknown()
        values = {"removed_ns": uow.now_ns, "headers": "{}", "state": "removed"}
        verdict = _changed(uow, who, row, "exporter_removed", "removed", values)
        verdict.answer = {"exporter_id": exporter_id, "removed": True}
        return verdict

    return Command(who, now_ns, decide, _read_set(who.tenant_id))


def progress(who: Principal, made: ExportProgress, now_ns: int) -> Command:
    """Returns the row afterwards, or None when another gateway or round has written already."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = _live(uow, who.tenant_id).get(made.exporter_id)
        if row is None or (row["rounds"], row["cursor"]) != (made.rounds, made.after):
            return SubmissionResult(200, None)
        values: Row = {
            "cursor": made.until,
            "sent": row["sent"] + made.sent,
            "filtered": row["filtered"] + made.filtered,
            "refused": row["refused"] + sum(one.records for one in made.refusals),
        } | HEALTHY
        if made.sent:
            values["sent_ns"] = uow.now_ns
        row |= values
        events = [
            gateway_event(
                who.tenant_id,
                "export_refused",
                _refusal_summary(row, one),
                uow.now_ns,
                who,
                _refusal_detail(row, one),
            )
            for one in made.refusals
            if not one.is_echo
        ]
        where = {"tenant_id": who.tenant_id, "exporter_id": made.exporter_id}
        return SubmissionResult(200, row, events, [RowWrite("exporters", values, where)])

    return Command(who, now_ns, decide, _read_set(who.tenant_id))


def _refusal_summary(row: Row, one: ExportRefusal) -> str:
    which = (
        f"event {one.first}" if one.first == one.last else f"{one.records} of events {one.first}–{one.last}"
    )
    return f"{which} rejected by the backend of exporter {row['name']}"


def _refusal_detail(row: Row, one: ExportRefusal) -> Row:
    return {
        "exporter_id": row["exporter_id"],
        "name": row["name"],
        "first_sequence": one.first,
        "last_sequence": one.last,
        "refused": one.records,
        "reason": one.reason[:LONGEST],
    }


def fail(who: Principal, failure: ExportFailure, now_ns: int) -> Command:
    """Sending failed; stores the problem and the time of the next attempt."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = _live(uow, who.tenant_id).get(failure.exporter_id)
        if row is None or row["rounds"] != failure.rounds:
            return SubmissionResult(200, None)
        values = {
            "failures": failure.failures,
            "next_ns": failure.next_ns,
            "problem": failure.problem[:LONGEST],
            "problem_ns": uow.now_ns,
        }
        row |= values
        where = {"tenant_id": who.tenant_id, "exporter_id": failure.exporter_id}
        return SubmissionResult(200, row, writes=[RowWrite("exporters", values, where)])

    return Command(who, now_ns, decide, _read_set(who.tenant_id))
