"""Acts of exporters: where a tenant's events go by OTLP, how far each has come, and what was not taken.

Law: who makes, changes, moves or removes one is on record; names of headers are told, values never. The
cursor goes on from exactly where the batch began or not at all, so of two that sent the same one counts. A
person who moves it begins a new round, and whoever still works on the round before writes nothing. Progress
and failures write no event: they would have to be sent in their turn. An event the backend refused for good
is told once, as `export_refused`; of one that tells of a refusal the refusal is only counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from observatory.features.exporters.types_settings import Filters, Wire
from observatory.pipeline.concurrency import stale
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Principal, Verdict, Wants
from observatory.protocol.answers import Refused
from observatory.protocol.identity import mint

MOST: Final = 16
LONGEST: Final = 300  # of a problem that is kept
NOT_FOUND: Final = "no exporter of this tenant has that id"
Row = dict[str, Any]


class NewExporter(NamedTuple):
    """`after` is the last event that is not sent; None means: what is there now."""

    name: str
    protocol: Wire
    url: str
    headers: Mapping[str, str]
    filters: Filters
    after: int | None


class Change(NamedTuple):
    """What is None stays. Headers, once given, are all there are."""

    name: str | None = None
    protocol: Wire | None = None
    url: str | None = None
    headers: Mapping[str, str] | None = None
    filters: Filters | None = None


class Refusal(NamedTuple):
    """What a backend would not take: one event, or so many of a batch without a word which."""

    first: int
    last: int
    records: int
    reason: str
    is_echo: bool  # nothing but events that tell of refusals


class Progress(NamedTuple):
    exporter_id: str
    rounds: int
    after: int  # where it began
    until: int
    sent: int
    filtered: int
    refusals: tuple[Refusal, ...] = ()


class Failure(NamedTuple):
    """Nothing was taken: why, how often in a row, and when it is tried again."""

    exporter_id: str
    rounds: int
    problem: str
    failures: int
    next_ns: int


def _wants(tenant_id: str) -> Wants:
    wants = Wants()
    wants.row("exporters", tenant_id)
    return wants


def _live(desk: Desk, tenant_id: str) -> dict[str, Row]:
    rows = desk.memory.rows.setdefault("exporters", {})
    return {key: row for (owner, key), row in rows.items() if owner == tenant_id and not row["removed_ns"]}


def _unknown() -> Verdict:
    return Verdict(404, Refused(reason="not_found", detail=NOT_FOUND))


def _taken() -> Verdict:
    return Verdict(409, Refused(reason="name_taken", detail="another exporter is called so already"))


def create(who: Principal, new: NewExporter, now_ns: int) -> Act:
    def decide(desk: Desk) -> Verdict:
        known, head = _live(desk, who.tenant_id), desk.memory.head.sequence_number
        if any(row["name"] == new.name for row in known.values()):
            return _taken()
        if len(known) >= MOST:
            detail = f"a tenant has at most {MOST} exporters"
            return Verdict(409, Refused(reason="too_many_exporters", detail=detail))
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
            "created_ns": desk.now_ns,
            "created_by": who.entity_id,
            "updated_ns": desk.now_ns,
            "removed_ns": None,
        }
        desk.memory.rows["exporters"][who.tenant_id, row["exporter_id"]] = row  # for others of this batch
        summary = f"exporter {new.name} made by {who.entity_id}"
        event = notice(who.tenant_id, "exporter_created", summary, desk.now_ns, who, told(row))
        return Verdict(201, row, [event], [Write("exporters", row)])

    return Act(who, now_ns, decide, _wants(who.tenant_id), size=8_192)


def told(row: Row) -> Row:
    """What of an exporter stands in the record: of its URL the host, of its headers the names."""
    parts = urlsplit(row["url"])
    return {name: row[name] for name in ("exporter_id", "name", "protocol", "state", "cursor")} | {
        "backend": f"{parts.scheme}://{parts.netloc}",
        "headers": sorted(msgspec.json.decode(row["headers"])),
        "filters": msgspec.json.decode(row["filters"]),
    }


def _changed(
    desk: Desk, who: Principal, row: Row, event_type: str, verb: str, values: Row, **more: Any
) -> Verdict:
    values = values | {"updated_ns": desk.now_ns}
    row |= values
    summary = f"exporter {row['name']} {verb} by {who.entity_id}"
    event = notice(who.tenant_id, event_type, summary, desk.now_ns, who, told(row) | more)
    where = {"tenant_id": who.tenant_id, "exporter_id": row["exporter_id"]}
    return Verdict(200, row, [event], [Write("exporters", values, where)])


# A person has done something about it: what went wrong before is no reason to wait.
WELL: Final[Row] = {"failures": 0, "next_ns": None, "problem": None, "problem_ns": None}


def change(who: Principal, exporter_id: str, wish: Change, now_ns: int, was: str | None = None) -> Act:
    """Another host is told nothing the last one was trusted with: headers must be given anew."""

    def decide(desk: Desk) -> Verdict:
        known = _live(desk, who.tenant_id)
        row = known.get(exporter_id)
        if row is None:
            return _unknown()
        refused = stale(was, row["updated_ns"])
        if refused is not None:
            return refused
        if any(one["name"] == wish.name for key, one in known.items() if key != exporter_id):
            return _taken()
        values: Row = {name: value for name, value in wish._asdict().items() if value is not None}
        headers = wish.headers
        if headers is None and wish.url is not None and _host(wish.url) != _host(row["url"]):
            headers = {}
        if headers is not None:
            values["headers"] = msgspec.json.encode(headers).decode()
        if wish.filters is not None:
            values["filters"] = msgspec.json.encode(wish.filters).decode()
        changes = sorted(name for name, value in values.items() if value != row[name])
        if not changes:
            return Verdict(200, row)
        return _changed(desk, who, row, "exporter_changed", "changed", values | WELL, changes=changes)

    return Act(who, now_ns, decide, _wants(who.tenant_id), size=8_192)


def _host(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


def halt(who: Principal, exporter_id: str, is_halted: bool, now_ns: int) -> Act:
    """Pause or resume. Nothing is lost by a pause: it goes on from where it was.

    To resume one that is failing means: do not wait for its time.
    """
    state, verb = ("paused", "paused") if is_halted else ("active", "resumed")

    def decide(desk: Desk) -> Verdict:
        row = _live(desk, who.tenant_id).get(exporter_id)
        if row is None:
            return _unknown()
        if row["state"] == state and (is_halted or not row["failures"]):
            return Verdict(200, row)
        return _changed(desk, who, row, "exporter_changed", verb, {"state": state} | WELL, changes=["state"])

    return Act(who, now_ns, decide, _wants(who.tenant_id))


def rewind(who: Principal, exporter_id: str, to: int, now_ns: int) -> Act:
    """The next event that is sent has this number; one past the last means: only what comes from now on."""

    def decide(desk: Desk) -> Verdict:
        row, head = _live(desk, who.tenant_id).get(exporter_id), desk.memory.head.sequence_number
        if row is None:
            return _unknown()
        if to > head + 1:
            detail = f"the record reaches {head}; an exporter can be moved to {head + 1} at most"
            return Verdict(422, Refused(reason="beyond_the_record", detail=detail))
        values = {"cursor": to - 1, "rounds": row["rounds"] + 1} | WELL
        return _changed(desk, who, row, "exporter_rewound", "moved", values, before=row["cursor"])

    return Act(who, now_ns, decide, _wants(who.tenant_id))


def remove(who: Principal, exporter_id: str, now_ns: int) -> Act:
    """Its headers go at once; its row stays for the record."""

    def decide(desk: Desk) -> Verdict:
        row = _live(desk, who.tenant_id).get(exporter_id)
        if row is None:
            return _unknown()
        values = {"removed_ns": desk.now_ns, "headers": "{}", "state": "removed"}
        verdict = _changed(desk, who, row, "exporter_removed", "removed", values)
        verdict.answer = {"exporter_id": exporter_id, "removed": True}
        return verdict

    return Act(who, now_ns, decide, _wants(who.tenant_id))


def progress(who: Principal, made: Progress, now_ns: int) -> Act:
    """Answered with the row as it is afterwards, or None when this was somebody else's to write."""

    def decide(desk: Desk) -> Verdict:
        row = _live(desk, who.tenant_id).get(made.exporter_id)
        if row is None or (row["rounds"], row["cursor"]) != (made.rounds, made.after):
            return Verdict(200, None)
        values: Row = {
            "cursor": made.until,
            "sent": row["sent"] + made.sent,
            "filtered": row["filtered"] + made.filtered,
            "refused": row["refused"] + sum(one.records for one in made.refusals),
        } | WELL
        if made.sent:
            values["sent_ns"] = desk.now_ns
        row |= values
        events = [
            notice(who.tenant_id, "export_refused", _said(row, one), desk.now_ns, who, _refused(row, one))
            for one in made.refusals
            if not one.is_echo
        ]
        where = {"tenant_id": who.tenant_id, "exporter_id": made.exporter_id}
        return Verdict(200, row, events, [Write("exporters", values, where)])

    return Act(who, now_ns, decide, _wants(who.tenant_id))


def _said(row: Row, one: Refusal) -> str:
    which = (
        f"event {one.first}" if one.first == one.last else f"{one.records} of events {one.first}–{one.last}"
    )
    return f"{which} not taken by the backend of exporter {row['name']}"


def _refused(row: Row, one: Refusal) -> Row:
    return {
        "exporter_id": row["exporter_id"],
        "name": row["name"],
        "first_sequence": one.first,
        "last_sequence": one.last,
        "refused": one.records,
        "reason": one.reason[:LONGEST],
    }


def fail(who: Principal, failure: Failure, now_ns: int) -> Act:
    """It could not be sent now; what went wrong last and when it is tried again can be seen by all."""

    def decide(desk: Desk) -> Verdict:
        row = _live(desk, who.tenant_id).get(failure.exporter_id)
        if row is None or row["rounds"] != failure.rounds:
            return Verdict(200, None)
        values = {
            "failures": failure.failures,
            "next_ns": failure.next_ns,
            "problem": failure.problem[:LONGEST],
            "problem_ns": desk.now_ns,
        }
        row |= values
        where = {"tenant_id": who.tenant_id, "exporter_id": failure.exporter_id}
        return Verdict(200, row, writes=[Write("exporters", values, where)])

    return Act(who, now_ns, decide, _wants(who.tenant_id))
