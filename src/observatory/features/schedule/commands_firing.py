"""Commands of the schedule's leader: fire due jobs, send and settle their runs. Each is one transaction.

Laws. A run is one row for one (job, time), inserted before anything is sent; its message id is derived from
job, time and attempt, so an interrupted run is sent again by the next leader and deduplicated. Every command
carries its leader's epoch and changes nothing once there is a newer one. A refused attempt is followed by
another with a new id, until the job's `max_tries`; then the run is a dead letter. A manual run takes the same
path, off schedule.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from observatory.features.schedule import cron as schedule
from observatory.features.schedule import events as job_events
from observatory.features.schedule.commands import unknown
from observatory.pipeline import dead_letters
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import (
    Command,
    EventDraft,
    Principal,
    ReadSet,
    Submission,
    SubmissionResult,
    UnitOfWork,
)
from observatory.pipeline.system_message import (
    MessageTarget,
    message_id_of,
    system_message,
    unreadable_message,
)
from observatory.protocol.identity import NAMESPACE
from observatory.protocol.responses import Accepted, Refused, Rejected

Row = dict[str, Any]
LEASE = "scheduler"
SENDER = "sys_scheduler"
SECOND = schedule.SECOND
# Delays before a refused run is retried; the last one applies to all later attempts.
RETRY_S = (10, 60, 300, 900, 3_600)
AT_ONCE = 1  # due by any clock: the clock by which the run was created may have been wrong
RECHECK_NS = 2 * SECOND  # for a run that waits for the previous one
RUN_BYTES = 1_024  # roughly what one run adds to a transaction
MAX_OPEN = 10  # waiting runs of one job; more are skipped
STALE = Refused(reason="stale_epoch", detail="another gateway leads the schedule now")
NOT_DUE = SubmissionResult(200, None)


def fire(who: Principal, job: Row, epoch: int, now_ns: int, handed_on: bool = False) -> Command:
    """`job` is the row as read; `handed_on`: its last message was rerouted and waits with another agent.

    Answers with the runs to send now. Its times are computed here, before the tenant's lock is taken: after
    a long outage that takes a while, and the result is valid as long as the job has not changed.
    """
    plan = _plan(job, now_ns)

    def decide(uow: UnitOfWork, row: Row) -> SubmissionResult:
        compared = ("version", "next_for_ns", "last_seq")
        if row["state"] != "active" or any(row[name] != job[name] for name in compared):
            return NOT_DUE  # another gateway was faster, or the job has changed: the next poll finds it again
        if not plan.runs and not plan.missed:
            return NOT_DUE
        # A clock that ran ahead has already fired some of them (S1165).
        known = uow.memory.rows.get("job_runs", {})
        times = tuple(
            at_ns for at_ns in plan.runs if run_id_of(who.tenant_id, row["job_id"], at_ns) not in known
        )
        runs, skipped = _make_runs(uow, row, times, who, epoch, now_ns, handed_on)
        due = [run for run in runs if run["state"] == "due"]
        open_runs = [run for run in runs if run["state"] in ("due", "queued")]
        following = plan.following
        values: Row = {
            "next_for_ns": None if following is None else following.for_ns,
            "next_ns": None if following is None else following.fire_ns,
            "last_for_ns": max(row["last_for_ns"] or 0, plan.last or 0),
            "runs": row["runs"] + len(due),
            "open_runs": row["open_runs"] + len(open_runs),
            "queued": row["queued"] + len(open_runs) - len(due),
        }
        if following is None:
            values["state"] = "done"
        if skipped or plan.missed:
            values |= {"last_outcome": "skipped" if skipped else "missed", "last_ns": now_ns}
        where = {"tenant_id": who.tenant_id, "job_id": row["job_id"], "next_for_ns": row["next_for_ns"]}
        events = [job_events.fired(who, row, run, uow.now_ns) for run in due]
        if plan.missed:
            events.append(job_events.missed(who, row, plan, uow.now_ns))
        events += [job_events.skipped(who, row, run, uow.now_ns) for run in skipped]
        row |= values
        writes = [RowWrite("jobs", values, where)]
        if runs:
            writes.append(RowWrite("job_runs", runs[0], more=tuple(runs[1:])))
        return SubmissionResult(200, due, events, writes)

    act = _fenced(who, job["job_id"], epoch, now_ns, decide, job=job)
    for at_ns in plan.runs:
        act.read_set.row("job_runs", run_id_of(who.tenant_id, job["job_id"], at_ns))
    act.size += RUN_BYTES * len(plan.runs)
    return act


def _plan(job: Row, now_ns: int) -> schedule.FiringPlan:
    """An empty plan for a job whose zone is no longer known: it waits, and shows up as late."""
    try:
        return schedule.plan(job, now_ns)
    except schedule.BadSchedule:
        return schedule.FiringPlan((), 0, None, None)


def _make_runs(
    uow: UnitOfWork,
    row: Row,
    times: tuple[int, ...],
    who: Principal,
    epoch: int,
    now_ns: int,
    handed_on: bool,
) -> tuple[list[Row], list[Row]]:
    """A run for each time: due, queued or skipped by the job's `overlap`; and the skipped ones."""
    runs, skipped = list[Row](), list[Row]()
    waiting = row["open_runs"]
    busy = row["overlap"] != "allow" and (waiting > 0 or handed_on or is_at_work(uow, row))
    for at_ns in times:
        run = new_run(row, at_ns, who, epoch, now_ns)
        if busy and (row["overlap"] == "skip" or waiting >= MAX_OPEN):
            reason = (
                "the previous run is still in progress" if row["overlap"] == "skip" else "too many runs wait"
            )
            run |= {
                "state": "skipped",
                "reason": reason,
                "next_try_ns": None,
                "body": None,
                "ended_ns": now_ns,
            }
            skipped.append(run)
        else:
            waiting += 1
            if busy:
                run |= {"state": "queued", "next_try_ns": now_ns}
            busy = row["overlap"] != "allow"
        runs.append(run)
    return runs, skipped


def is_at_work(uow: UnitOfWork, row: Row) -> bool:
    """Whether the last message is held, parked, or not acknowledged yet."""
    number = row["last_seq"]
    if number is None:
        return False
    held = uow.memory.rows.get("holds", {}).get(number)
    if held is not None:
        return bool(held["state"] == "held")
    deliveries = uow.memory.rows.get("deliveries", {})
    own = [delivery for (seq, _), delivery in deliveries.items() if seq == number]
    return any(one["acked_ns"] is None and one["ended_ns"] is None for one in own)


def run_id_of(tenant_id: str, job_id: str, at_ns: int) -> str:
    """Each time of a job has one run, so the id is derived from both."""
    return f"run_{uuid.uuid5(NAMESPACE, f'{tenant_id}/{job_id}/{at_ns}')}"


def new_run(row: Row, at_ns: int, who: Principal, epoch: int, now_ns: int, manual: bool = False) -> Row:
    """The message's content is stored with the run: later changes of the job do not change it."""
    body = {
        "target": [row["target_kind"], row["target_name"]],
        "intent": row["intent"],
        "payload": msgspec.Raw((row["payload"] or "{}").encode()),
        "session_id": row["session_id"],
    }
    return {
        "tenant_id": row["tenant_id"],
        "job_id": row["job_id"],
        "scheduled_for": at_ns,
        "run_id": run_id_of(row["tenant_id"], row["job_id"], at_ns),
        "epoch": epoch,
        "state": "due",
        "attempt": 0,
        "next_try_ns": AT_ONCE,
        "manual": int(manual),
        "body": msgspec.json.encode(body).decode(),
        "message_id": None,
        "session_id": row["session_id"],
        "message_seq": None,
        "code": None,
        "reason": None,
        "created_ns": now_ns,
        "created_by": who.entity_id,
        "ended_ns": None,
        "asked_seq": row["asked_seq"],
    }


def run_now(who: Principal, job_id: str, now_ns: int) -> Command:
    """Create a manual run, off schedule, paused or not. The leader sends it on its next poll."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = uow.memory.rows.get("jobs", {}).get(job_id)
        if row is None or row["removed_ns"] is not None:
            return unknown()
        if row["payload"] is None:
            detail = "this reminder was sent, and its payload was released"
            return SubmissionResult(409, Refused(reason="not_active", detail=detail))
        if row["open_runs"] >= MAX_OPEN:
            detail = f"{MAX_OPEN} runs of this job are already waiting"
            return SubmissionResult(409, Refused(reason="too_many_runs", detail=detail))
        at_ns = (
            uow.now_ns if uow.now_ns % SECOND else uow.now_ns + 1
        )  # never a whole second, so never a time of a cron line
        run = new_run(row, at_ns, who, 0, uow.now_ns, manual=True)
        values = {"runs": row["runs"] + 1, "open_runs": row["open_runs"] + 1}
        row |= values
        where = {"tenant_id": who.tenant_id, "job_id": job_id}
        events = [job_events.fired(who, row, run, uow.now_ns)]
        return SubmissionResult(
            202, run, events, [RowWrite("jobs", values, where), RowWrite("job_runs", run)]
        )

    read_set = ReadSet()
    read_set.row("jobs", job_id)
    return Command(who, now_ns, decide, read_set)


def message_of_run(gateway: Principal, run: Row, now_ns: int) -> Submission:
    """The message of a run, the same byte for byte each time. One that cannot be built is submitted as a
    breach: it is refused, so that the run ends as a dead letter and delays no other."""
    try:
        body = msgspec.json.decode(run["body"])
    except (msgspec.DecodeError, RecursionError):
        return unreadable_message(gateway, run["body"].encode(), now_ns)
    return system_message(
        gateway,
        message_id=message_id_of(run["tenant_id"], run["job_id"], run["scheduled_for"], run["attempt"]),
        sender=SENDER,
        target=MessageTarget(*body["target"]),
        intent=body["intent"],
        payload=body["payload"],
        session_id=body["session_id"],
        at_ns=run["scheduled_for"],
        now_ns=now_ns,
    )


def settle(who: Principal, run: Row, verdict: SubmissionResult, epoch: int, now_ns: int) -> Command:
    """Record the outcome of sending a run: `verdict` is the pipeline's."""

    def decide(uow: UnitOfWork, row: Row) -> SubmissionResult:
        known = uow.memory.rows.get("job_runs", {}).get(run["run_id"])
        if known is None or known["state"] != "due" or known["attempt"] != run["attempt"]:
            return NOT_DUE
        answer = verdict.answer
        if isinstance(answer, Accepted):
            return _sent(uow, row, known, answer)
        return _refused(uow, row, known, verdict.code, answer)

    return _fenced(who, run["job_id"], epoch, now_ns, decide, run=run)


def _sent(uow: UnitOfWork, row: Row, run: Row, answer: Accepted) -> SubmissionResult:
    outcome = "held" if answer.state == "held" else "sent"
    ended: Row = {
        "state": outcome,
        "next_try_ns": None,
        "body": None,
        "message_id": answer.message_id,
        "session_id": answer.session_id,
        "message_seq": answer.sequence_number,
        "code": 202,
        "reason": None,
        "ended_ns": uow.now_ns,
    }
    values: Row = {
        "last_outcome": outcome,
        "last_ns": uow.now_ns,
        "last_seq": answer.sequence_number,
        "failures": 0,
        "open_runs": row["open_runs"] - 1,
    }
    if row["asked_by"] is not None and row["state"] == "done":
        values["payload"] = None  # it is in the message now: shredding the message must leave no copy here
    return _settled(row, run, values, ended, outcome)


def _refused(uow: UnitOfWork, row: Row, run: Row, code: int, answer: object) -> SubmissionResult:
    """Retry later under a new id, or give up."""
    why = answer.reason if isinstance(answer, Refused | Rejected) else "failed"
    rule = getattr(answer, "rule_id", None)
    reason = f"{why} by rule {rule}" if rule else str(why)
    tries = run["attempt"] + 1
    again_ns = uow.now_ns + RETRY_S[min(run["attempt"], len(RETRY_S) - 1)] * SECOND
    ended: Row = {
        "state": "refused",
        "attempt": tries,
        "next_try_ns": again_ns,
        "code": code,
        "reason": reason,
    }
    values: Row = {"last_outcome": "refused", "last_ns": uow.now_ns}
    if tries < row["max_tries"]:
        return _settled(row, run, values, ended, "refused")
    ended |= {"state": "dead", "next_try_ns": None, "ended_ns": uow.now_ns}
    values |= {"last_outcome": "dead", "failures": row["failures"] + 1, "open_runs": row["open_runs"] - 1}
    event, letter = dead_letters.create_dead_letter(
        uow,
        kind="job",
        source_id=row["job_id"],
        source_name=row["name"],
        subject_id=run["run_id"],
        reason=f"refused {tries} time{'' if tries == 1 else 's'}, last reason: {reason}",
        preview=str(run["body"]),
        now_ns=uow.now_ns,
        asked_seq=run["asked_seq"],
    )
    done = _settled(row, run, values, ended, "dead")
    return SubmissionResult(200, "dead", [event], [*done.writes, letter])


def _settled(row: Row, run: Row, values: Row, ended: Row, answer: str) -> SubmissionResult:
    tenant_id = run["tenant_id"]
    own = {"tenant_id": tenant_id, "job_id": run["job_id"], "scheduled_for": run["scheduled_for"]}
    attempt = run["attempt"]
    row |= values
    run |= ended
    writes = [RowWrite("job_runs", ended, own | {"attempt": attempt})]
    if values:
        writes.append(RowWrite("jobs", values, {"tenant_id": tenant_id, "job_id": run["job_id"]}))
    return SubmissionResult(200, answer, writes=writes)


def recheck_run(
    who: Principal, run: Row, job: Row, epoch: int, now_ns: int, handed_on: bool = False
) -> Command:
    """Decide whether a queued or refused run is sent now: then it is the answer."""

    def decide(uow: UnitOfWork, row: Row) -> SubmissionResult:
        known = uow.memory.rows.get("job_runs", {}).get(run["run_id"])
        if known is None or known["state"] not in ("queued", "refused") or row["last_seq"] != job["last_seq"]:
            return NOT_DUE
        queued = known["state"] == "queued"
        remaining = {"queued": row["queued"] - queued}
        if row["removed_ns"] is not None:
            gone = {"state": "skipped", "next_try_ns": None, "body": None, "reason": "its job was removed"}
            return _settled(
                row,
                known,
                remaining | {"open_runs": row["open_runs"] - 1},
                gone | {"ended_ns": now_ns},
                "skipped",
            )
        at_work = handed_on or is_at_work(uow, row)
        in_turn = row["open_runs"] - row["queued"] == 0 and not at_work
        if row["state"] == "paused" or (queued and not in_turn):
            return _settled(row, known, {}, {"next_try_ns": now_ns + RECHECK_NS}, "waits")
        events = [job_events.fired(who, row, known, uow.now_ns)] if queued else []
        done = _settled(row, known, remaining, {"state": "due", "next_try_ns": AT_ONCE}, "due")
        return SubmissionResult(200, known, events, done.writes)

    return _fenced(who, run["job_id"], epoch, now_ns, decide, job=job, run=run)


def revive(who: Principal, letter: Row, now_ns: int) -> Command:
    """Retry a dead run: one attempt, under a new id."""
    job_id, run_id = letter["source_id"], letter["subject_id"]

    def again(uow: UnitOfWork, _letter: Row) -> tuple[list[EventDraft], list[RowWrite]] | Refused:
        row = uow.memory.rows.get("jobs", {}).get(job_id)
        run = uow.memory.rows.get("job_runs", {}).get(run_id)
        if row is None or run is None or run["state"] != "dead" or row["removed_ns"] is not None:
            return Refused(reason="not_active", detail="its job was removed, or it was already retried")
        values = {"open_runs": row["open_runs"] + 1}
        back = {"state": "due", "next_try_ns": AT_ONCE, "ended_ns": None}
        return [], _settled(row, run, values, back, "due").writes

    read_set = ReadSet()
    read_set.row("jobs", job_id)
    read_set.row("job_runs", run_id)
    return dead_letters.retry(who, letter, now_ns, again, read_set)


def _fenced(
    who: Principal,
    job_id: str,
    epoch: int,
    now_ns: int,
    decide: Callable[[UnitOfWork, Row], SubmissionResult],
    job: Row | None = None,
    run: Row | None = None,
) -> Command:
    """A command of the leader. The lease cannot change hands before it is written."""

    def fenced(uow: UnitOfWork) -> SubmissionResult:
        if uow.memory.leases.get(LEASE) != epoch:
            return SubmissionResult(409, STALE)
        row = uow.memory.rows.get("jobs", {}).get(job_id)
        return NOT_DUE if row is None else decide(uow, row)

    read_set = ReadSet(leases={LEASE})
    read_set.row("jobs", job_id)
    if run is not None:
        read_set.row("job_runs", run["run_id"])
    if job is not None and job["overlap"] != "allow" and job["last_seq"] is not None:
        read_set.row("deliveries", job["last_seq"])
        read_set.row("holds", job["last_seq"])
    return Command(who, now_ns, fenced, read_set)
