"""Jobs: what people put on the schedule, and how they change it. Every change is an act and on record.

Law: a job says when (a cron line in a zone, or one moment), to whom, and what. Its next firing is worked out
when it is made, changed or resumed, from then on: nothing before is made up for. Whether it fires is decided
by `firing.py`, under the same lock; so a job that is paused or removed here fires no more from this commit
on. What was fired stays in its runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from observatory.features.schedule import cron as schedule
from observatory.features.schedule.cron import Misfire, Overlap
from observatory.pipeline.concurrency import stale
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Principal, Verdict, Wants
from observatory.pipeline.system_message import TargetKind
from observatory.protocol.answers import Refused
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import mint

Row = dict[str, Any]
State = Literal["active", "paused", "done"]
# What the record says of a job; the payload is in the job's row, and in the messages it becomes.
TOLD = (
    "job_id", "name", "kind", "cron", "zone", "target_kind", "target_name", "intent", "session_id", "misfire",
    "overlap", "jitter_s", "grace_s", "max_tries", "state",
)  # fmt: skip


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a person says of a job; checked by the door."""

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
    """A job before its first firing is planned."""
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


def planned(row: Row, now_ns: int) -> Row:
    """Its next firing, from now on."""
    first = schedule.first_of(row, now_ns) if row["state"] == "active" else None
    return {
        "next_for_ns": None if first is None else first.for_ns,
        "next_ns": None if first is None else first.fire_ns,
    }


def create(who: Principal, spec: JobSpec, now_ns: int) -> Act:
    """A name that is taken is refused by the door, and by the store whoever was faster."""

    def decide(desk: Desk) -> Verdict:
        row = row_of(who.entity_id, who.tenant_id, mint("job_", now_ns), spec, desk.now_ns)
        row |= planned(row, desk.now_ns)
        desk.memory.rows.setdefault("jobs", {})[row["job_id"]] = row
        summary = f"job {spec.name} made by {who.entity_id}"
        event = notice(who.tenant_id, "job_created", summary, desk.now_ns, who, told(row))
        return Verdict(201, row, [event], [Write("jobs", row)])

    return Act(who, now_ns, decide, size=len(spec.payload) + 1_024)


def told(row: Row) -> dict[str, Any]:
    at_ns = row["at_ns"]
    return {name: row[name] for name in TOLD} | {"at": None if at_ns is None else from_ns(at_ns)}


def change(who: Principal, job_id: str, spec: JobSpec, now_ns: int, was: str | None = None) -> Act:
    """The whole of it anew. It fires by its new times from now on, paused or not as it was.

    `was`: see `stale`.
    """

    def decide(desk: Desk, row: Row) -> Row | Refused:
        if row["asked_by"] is not None:
            return Refused(
                reason="not_changeable", detail="an agent asked for this reminder; it can be removed"
            )
        refused = stale(was, row["updated_ns"])
        if refused is not None and isinstance(refused.answer, Refused):
            return refused.answer
        values: Row = msgspec.structs.asdict(spec)
        if row["state"] == "done":
            values["state"] = "active"
        return values | planned(row | values, desk.now_ns)

    return _act(who, job_id, "changed", now_ns, decide, size=len(spec.payload) + 1_024)


def pause(who: Principal, job_id: str, now_ns: int) -> Act:
    def decide(desk: Desk, row: Row) -> Row | Refused:
        if row["state"] != "active":
            return Refused(reason="not_active", detail=f"this job is {row['state']}")
        return {"state": "paused", "next_for_ns": None, "next_ns": None}

    return _act(who, job_id, "paused", now_ns, decide)


def resume(who: Principal, job_id: str, now_ns: int) -> Act:
    """A one-time job whose moment came meanwhile fires at once."""

    def decide(desk: Desk, row: Row) -> Row | Refused:
        if row["state"] != "paused":
            return Refused(reason="not_paused", detail=f"this job is {row['state']}")
        return {"state": "active", **planned(row | {"state": "active"}, desk.now_ns)}

    return _act(who, job_id, "resumed", now_ns, decide)


def remove(who: Principal, job_id: str, now_ns: int) -> Act:
    def decide(desk: Desk, row: Row) -> Row | Refused:
        return {"removed_ns": desk.now_ns, "state": "done", "next_for_ns": None, "next_ns": None}

    return _act(who, job_id, "removed", now_ns, decide)


def _act(
    who: Principal,
    job_id: str,
    verb: str,
    now_ns: int,
    change: Callable[[Desk, Row], Row | Refused],
    size: int = 1_024,
) -> Act:
    def decide(desk: Desk) -> Verdict:
        row = desk.memory.rows.get("jobs", {}).get(job_id)
        if row is None or row["removed_ns"] is not None:
            return unknown()
        values = change(desk, row)
        if isinstance(values, Refused):
            return Verdict(409, values)
        values |= {"version": row["version"] + 1, "updated_ns": desk.now_ns, "updated_by": who.entity_id}
        where = {"tenant_id": who.tenant_id, "job_id": job_id, "version": row["version"]}
        before = told(row)
        row |= values
        detail = {"change": verb, **told(row)}
        if verb == "changed":
            detail["before"] = {name: before[name] for name in before if before[name] != detail[name]}
        summary = f"job {row['name']} {verb} by {who.entity_id}"
        event = notice(who.tenant_id, "job_changed", summary, desk.now_ns, who, detail)
        return Verdict(200, row, [event], [Write("jobs", values, where)])

    wants = Wants()
    wants.row("jobs", job_id)
    return Act(who, now_ns, decide, wants, size)


def unknown() -> Verdict:
    return Verdict(404, Refused(reason="not_found", detail="no job of this tenant has that id"))
