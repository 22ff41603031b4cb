"""Commands on jobs: create, change, pause, resume, remove. Every change is on record.

Law: a job has a time (a cron line in a zone, or one moment), a target and a message. Its next firing is
computed when it is created, changed or resumed, from then on: nothing earlier is made up for. Whether it
fires is decided by `commands_firing.py`, under the same lock; so a job that is paused or removed here does
not fire after this commit. Past firings stay in its runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from observatory.features.schedule import cron as schedule
from observatory.features.schedule.cron import Misfire, Overlap
from observatory.pipeline.concurrency import conflict_if_stale
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.pipeline.system_message import TargetKind
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import mint
from observatory.protocol.responses import Refused

Row = dict[str, Any]
State = Literal["active", "paused", "done"]
# A job's columns in its events; the payload is in the job's row, and in the messages it becomes.
EVENT_COLUMNS = (
    "job_id", "name", "kind", "cron", "zone", "target_kind", "target_name", "intent", "session_id", "misfire",
    "overlap", "jitter_s", "grace_s", "max_tries", "state",
)  # fmt: skip


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A job's settings, as validated by the route."""

    name: str
    kind: Literal["cron", "once"]
    cron: str | None
    zone: str
    at_ns: int | None
    target_kind: TargetKind
    target_name: str
    intent: str
    payload: str  # JSON of an object
    session_id: str | None
    misfire: Misfire
    overlap: Overlap
    jitter_s: int
    grace_s: int
    max_tries: int


def row_of(who_id: str, tenant_id: str, job_id: str, spec: JobSpec, now_ns: int) -> Row:
    """A job's row before its first firing is planned."""
    return {
        "tenant_id": tenant_id,
        "job_id": job_id,
        **msgspec.structs.asdict(spec),
        "state": "active",
        "version": 1,
        "next_for_ns": None,
        "next_ns": None,
        "last_for_ns": None,
        "last_outcome": None,
        "last_ns": None,
        "last_seq": None,
        "failures": 0,
        "runs": 0,
        "open_runs": 0,
        "queued": 0,
        "asked_by": None,
        "created_ns": now_ns,
        "created_by": who_id,
        "updated_ns": now_ns,
        "updated_by": who_id,
        "removed_ns": None,
        "asked_seq": None,
    }


def next_firing(row: Row, now_ns: int) -> Row:
    """Its next firing, from now on."""
    first = schedule.first_of(row, now_ns) if row["state"] == "active" else None
    return {
        "next_for_ns": None if first is None else first.for_ns,
        "next_ns": None if first is None else first.fire_ns,
    }


def create(who: Principal, spec: JobSpec, now_ns: int) -> Command:
    """A name that is taken is refused by the route, and in a race by the store."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = row_of(who.entity_id, who.tenant_id, mint("job_", now_ns), spec, uow.now_ns)
        row |= next_firing(row, uow.now_ns)
        uow.memory.rows.setdefault("jobs", {})[row["job_id"]] = row
        summary = f"job {spec.name} created by {who.entity_id}"
        event = gateway_event(who.tenant_id, "job_created", summary, uow.now_ns, who, job_detail(row))
        return SubmissionResult(201, row, [event], [RowWrite("jobs", row)])

    return Command(who, now_ns, decide, size=len(spec.payload) + 1_024)


def job_detail(row: Row) -> dict[str, Any]:
    at_ns = row["at_ns"]
    return {name: row[name] for name in EVENT_COLUMNS} | {"at": None if at_ns is None else from_ns(at_ns)}


def change(who: Principal, job_id: str, spec: JobSpec, now_ns: int, was: str | None = None) -> Command:
    """Replace all settings of a job. It fires by its new times from now on; a paused job stays paused.

    `was`: see `stale`.
    """

    def decide(uow: UnitOfWork, row: Row) -> Row | Refused:
        if row["asked_by"] is not None:
            return Refused(
                reason="not_changeable", detail="an agent requested this reminder; it can only be removed"
            )
        refused = conflict_if_stale(was, row["updated_ns"])
        if refused is not None and isinstance(refused.answer, Refused):
            return refused.answer
        values: Row = msgspec.structs.asdict(spec)
        if row["state"] == "done":
            values["state"] = "active"
        return values | next_firing(row | values, uow.now_ns)

    return _act(who, job_id, "changed", now_ns, decide, size=len(spec.payload) + 1_024)


def pause(who: Principal, job_id: str, now_ns: int) -> Command:
    def decide(uow: UnitOfWork, row: Row) -> Row | Refused:
        if row["state"] != "active":
            return Refused(reason="not_active", detail=f"this job is {row['state']}")
        return {"state": "paused", "next_for_ns": None, "next_ns": None}

    return _act(who, job_id, "paused", now_ns, decide)


def resume(who: Principal, job_id: str, now_ns: int) -> Command:
    """A one-time job whose moment passed meanwhile fires at once."""

    def decide(uow: UnitOfWork, row: Row) -> Row | Refused:
        if row["state"] != "paused":
            return Refused(reason="not_paused", detail=f"this job is {row['state']}")
        return {"state": "active", **next_firing(row | {"state": "active"}, uow.now_ns)}

    return _act(who, job_id, "resumed", now_ns, decide)


def remove(who: Principal, job_id: str, now_ns: int) -> Command:
    def decide(uow: UnitOfWork, row: Row) -> Row | Refused:
        return {"removed_ns": uow.now_ns, "state": "done", "next_for_ns": None, "next_ns": None}

    return _act(who, job_id, "removed", now_ns, decide)


def _act(
    who: Principal,
    job_id: str,
    verb: str,
    now_ns: int,
    change: Callable[[UnitOfWork, Row], Row | Refused],
    size: int = 1_024,
) -> Command:
    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = uow.memory.rows.get("jobs", {}).get(job_id)
        if row is None or row["removed_ns"] is not None:
            return unknown()
        values = change(uow, row)
        if isinstance(values, Refused):
            return SubmissionResult(409, values)
        values |= {"version": row["version"] + 1, "updated_ns": uow.now_ns, "updated_by": who.entity_id}
        where = {"tenant_id": who.tenant_id, "job_id": job_id, "version": row["version"]}
        before = job_detail(row)
        row |= values
        detail = {"change": verb, **job_detail(row)}
        if verb == "changed":
            detail["before"] = {name: before[name] for name in before if before[name] != detail[name]}
        summary = f"job {row['name']} {verb} by {who.entity_id}"
        event = gateway_event(who.tenant_id, "job_changed", summary, uow.now_ns, who, detail)
        return SubmissionResult(200, row, [event], [RowWrite("jobs", values, where)])

    read_set = ReadSet()
    read_set.row("jobs", job_id)
    return Command(who, now_ns, decide, read_set, size)


def unknown() -> SubmissionResult:
    return SubmissionResult(404, Refused(reason="not_found", detail="no job of this tenant has that id"))
