"""Firing: what the leader does about jobs whose time has come. Each act is one transaction.

Laws. A run is one row for one (job, time), inserted before anything is sent; its message has an id that
follows from job, time and attempt, so a run that was cut off is sent again by whoever leads next and is a
repeat. Every act here carries its leader's epoch and changes nothing once that is not the newest. An attempt
that was refused is followed by another with a new id, until the job's `max_tries`; then the run is a dead
letter. A run by hand goes the same way, beside the job's own times.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from observatory.features.schedule import commands_dead_letters as dead_letters
from observatory.features.schedule import cron as schedule
from observatory.features.schedule import events as job_events
from observatory.features.schedule.commands import unknown
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Draft, Principal, Submission, Verdict, Wants
from observatory.pipeline.system_message import Target, message_id_of, summons, unsayable
from observatory.protocol.answers import Accepted, Refused, Rejected
from observatory.protocol.identity import NAMESPACE

Row = dict[str, Any]
LEASE = "scheduler"
SENDER = "sys_scheduler"
SECOND = schedule.SECOND
# After so long a refused run is tried again; the last one counts for all that follow.
AGAIN_S = (10, 60, 300, 900, 3_600)
AT_ONCE = 1  # by any clock: that of whoever made the run may have been wrong
LOOK_AGAIN_NS = 2 * SECOND  # at a run that waits for the one before
RUN_BYTES = 1_024  # about what one run adds to a transaction
MOST_OPEN = 10  # runs of one job that wait in line; more are skipped
STALE = Refused(reason="stale_epoch", detail="another gateway leads the schedule now")
LATER = Verdict(200, None)


def fire(who: Principal, job: Row, epoch: int, now_ns: int, handed_on: bool = False) -> Act:
    """`job` as it was read; `handed_on`: what it sent last waits with another than it was sent to.

    Answers with the runs to be sent now. Its times are counted here, before the tenant's lock is taken: after
    a long silence that takes a while, and holds for as long as the job has not changed.
    """
    plan = _plan(job, now_ns)

    def decide(desk: Desk, row: Row) -> Verdict:
        seen = ("version", "next_for_ns", "last_seq")
        if row["state"] != "active" or any(row[name] != job[name] for name in seen):
            return LATER  # somebody was faster, or it is another job by now: it is found again
        if not plan.runs and not plan.missed:
            return LATER
        # A clock that had run ahead has dealt with some of them (S1165).
        known = desk.memory.rows.get("job_runs", {})
        times = tuple(
            at_ns for at_ns in plan.runs if run_id_of(who.tenant_id, row["job_id"], at_ns) not in known
        )
        runs, skipped = _lined_up(desk, row, times, who, epoch, now_ns, handed_on)
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
        events = [job_events.fired(who, row, run, desk.now_ns) for run in due]
        if plan.missed:
            events.append(job_events.missed(who, row, plan, desk.now_ns))
        events += [job_events.skipped(who, row, run, desk.now_ns) for run in skipped]
        row |= values
        writes = [Write("jobs", values, where)]
        if runs:
            writes.append(Write("job_runs", runs[0], more=tuple(runs[1:])))
        return Verdict(200, due, events, writes)

    act = _fenced(who, job["job_id"], epoch, now_ns, decide, job=job)
    for at_ns in plan.runs:
        act.wants.row("job_runs", run_id_of(who.tenant_id, job["job_id"], at_ns))
    act.size += RUN_BYTES * len(plan.runs)
    return act


def _plan(job: Row, now_ns: int) -> schedule.Plan:
    """Nothing yet for one whose zone is known no more: it waits, and is seen to be late."""
    try:
        return schedule.plan(job, now_ns)
    except schedule.BadSchedule:
        return schedule.Plan((), 0, None, None)


def _lined_up(
    desk: Desk,
    row: Row,
    times: tuple[int, ...],
    who: Principal,
    epoch: int,
    now_ns: int,
    handed_on: bool,
) -> tuple[list[Row], list[Row]]:
    """A run for each time, sent now, in line or skipped by the job's `overlap`; and those skipped."""
    runs, skipped = list[Row](), list[Row]()
    waiting = row["open_runs"]
    busy = row["overlap"] != "allow" and (waiting > 0 or handed_on or is_at_work(desk, row))
    for at_ns in times:
        run = new_run(row, at_ns, who, epoch, now_ns)
        if busy and (row["overlap"] == "skip" or waiting >= MOST_OPEN):
            reason = "the run before is still at work" if row["overlap"] == "skip" else "too many wait"
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


def is_at_work(desk: Desk, row: Row) -> bool:
    """Whether what was sent last is held, waits for somebody, or was not acknowledged yet."""
    number = row["last_seq"]
    if number is None:
        return False
    held = desk.memory.rows.get("holds", {}).get(number)
    if held is not None:
        return bool(held["state"] == "held")
    given = desk.memory.rows.get("deliveries", {})
    mine = [delivery for (seq, _), delivery in given.items() if seq == number]
    return any(one["acked_ns"] is None and one["ended_ns"] is None for one in mine)


def run_id_of(tenant_id: str, job_id: str, at_ns: int) -> str:
    """One time of a job has one run."""
    return f"run_{uuid.uuid5(NAMESPACE, f'{tenant_id}/{job_id}/{at_ns}')}"


def new_run(row: Row, at_ns: int, who: Principal, epoch: int, now_ns: int, manual: bool = False) -> Row:
    """What it sends is kept with it: a job that is changed later does not change it."""
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


def run_now(who: Principal, job_id: str, now_ns: int) -> Act:
    """By a person, beside its times; paused or not. Whoever leads sends it with its next look."""

    def decide(desk: Desk) -> Verdict:
        row = desk.memory.rows.get("jobs", {}).get(job_id)
        if row is None or row["removed_ns"] is not None:
            return unknown()
        if row["payload"] is None:
            detail = "this reminder was sent, and what it carried was let go"
            return Verdict(409, Refused(reason="not_active", detail=detail))
        if row["open_runs"] >= MOST_OPEN:
            detail = f"{MOST_OPEN} runs of this job wait already"
            return Verdict(409, Refused(reason="too_many_runs", detail=detail))
        at_ns = desk.now_ns if desk.now_ns % SECOND else desk.now_ns + 1  # never a time of a cron line
        run = new_run(row, at_ns, who, 0, desk.now_ns, manual=True)
        values = {"runs": row["runs"] + 1, "open_runs": row["open_runs"] + 1}
        row |= values
        where = {"tenant_id": who.tenant_id, "job_id": job_id}
        events = [job_events.fired(who, row, run, desk.now_ns)]
        return Verdict(202, run, events, [Write("jobs", values, where), Write("job_runs", run)])

    wants = Wants()
    wants.row("jobs", job_id)
    return Act(who, now_ns, decide, wants)


def call(house: Principal, run: Row, now_ns: int) -> Submission:
    """The message of a run. Made again it is the same, byte for byte. One that cannot be made is a breach:
    refused like any, so that it ends as a letter and holds up no other."""
    try:
        body = msgspec.json.decode(run["body"])
    except (msgspec.DecodeError, RecursionError):
        return unsayable(house, run["body"].encode(), now_ns)
    return summons(
        house,
        message_id=message_id_of(run["tenant_id"], run["job_id"], run["scheduled_for"], run["attempt"]),
        sender=SENDER,
        target=Target(*body["target"]),
        intent=body["intent"],
        payload=body["payload"],
        session_id=body["session_id"],
        at_ns=run["scheduled_for"],
        now_ns=now_ns,
    )


def settle(who: Principal, run: Row, verdict: Verdict, epoch: int, now_ns: int) -> Act:
    """What came of sending it: `verdict` is the corridor's."""

    def decide(desk: Desk, row: Row) -> Verdict:
        known = desk.memory.rows.get("job_runs", {}).get(run["run_id"])
        if known is None or known["state"] != "due" or known["attempt"] != run["attempt"]:
            return LATER
        answer = verdict.answer
        if isinstance(answer, Accepted):
            return _sent(desk, row, known, answer)
        return _refused(desk, row, known, verdict.code, answer)

    return _fenced(who, run["job_id"], epoch, now_ns, decide, run=run)


def _sent(desk: Desk, row: Row, run: Row, answer: Accepted) -> Verdict:
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
        "ended_ns": desk.now_ns,
    }
    values: Row = {
        "last_outcome": outcome,
        "last_ns": desk.now_ns,
        "last_seq": answer.sequence_number,
        "failures": 0,
        "open_runs": row["open_runs"] - 1,
    }
    if row["asked_by"] is not None and row["state"] == "done":
        values["payload"] = None  # the message has it now: what is shredded there is not kept here
    return _settled(row, run, values, ended, outcome)


def _refused(desk: Desk, row: Row, run: Row, code: int, answer: object) -> Verdict:
    """Once more later, under a new id; or never."""
    said = answer.reason if isinstance(answer, Refused | Rejected) else "failed"
    rule = getattr(answer, "rule_id", None)
    reason = f"{said} by rule {rule}" if rule else str(said)
    tries = run["attempt"] + 1
    again_ns = desk.now_ns + AGAIN_S[min(run["attempt"], len(AGAIN_S) - 1)] * SECOND
    ended: Row = {
        "state": "refused",
        "attempt": tries,
        "next_try_ns": again_ns,
        "code": code,
        "reason": reason,
    }
    values: Row = {"last_outcome": "refused", "last_ns": desk.now_ns}
    if tries < row["max_tries"]:
        return _settled(row, run, values, ended, "refused")
    ended |= {"state": "dead", "next_try_ns": None, "ended_ns": desk.now_ns}
    values |= {"last_outcome": "dead", "failures": row["failures"] + 1, "open_runs": row["open_runs"] - 1}
    event, letter = dead_letters.bury(
        desk,
        kind="job",
        source_id=row["job_id"],
        source_name=row["name"],
        subject_id=run["run_id"],
        reason=f"refused {tries} times, at last: {reason}",
        preview=str(run["body"]),
        now_ns=desk.now_ns,
        asked_seq=run["asked_seq"],
    )
    done = _settled(row, run, values, ended, "dead")
    return Verdict(200, "dead", [event], [*done.writes, letter])


def _settled(row: Row, run: Row, values: Row, ended: Row, answer: str) -> Verdict:
    tenant_id = run["tenant_id"]
    mine = {"tenant_id": tenant_id, "job_id": run["job_id"], "scheduled_for": run["scheduled_for"]}
    attempt = run["attempt"]
    row |= values
    run |= ended
    writes = [Write("job_runs", ended, mine | {"attempt": attempt})]
    if values:
        writes.append(Write("jobs", values, {"tenant_id": tenant_id, "job_id": run["job_id"]}))
    return Verdict(200, answer, writes=writes)


def ready(who: Principal, run: Row, job: Row, epoch: int, now_ns: int, handed_on: bool = False) -> Act:
    """Whether a run that waits in line, or was refused before, is to be sent now: then it is the answer."""

    def decide(desk: Desk, row: Row) -> Verdict:
        known = desk.memory.rows.get("job_runs", {}).get(run["run_id"])
        if known is None or known["state"] not in ("queued", "refused") or row["last_seq"] != job["last_seq"]:
            return LATER
        queued = known["state"] == "queued"
        left = {"queued": row["queued"] - queued}
        if row["removed_ns"] is not None:
            gone = {"state": "skipped", "next_try_ns": None, "body": None, "reason": "its job was removed"}
            return _settled(
                row, known, left | {"open_runs": row["open_runs"] - 1}, gone | {"ended_ns": now_ns}, "skipped"
            )
        at_work = handed_on or is_at_work(desk, row)
        in_turn = row["open_runs"] - row["queued"] == 0 and not at_work
        if row["state"] == "paused" or (queued and not in_turn):
            return _settled(row, known, {}, {"next_try_ns": now_ns + LOOK_AGAIN_NS}, "waits")
        events = [job_events.fired(who, row, known, desk.now_ns)] if queued else []
        done = _settled(row, known, left, {"state": "due", "next_try_ns": AT_ONCE}, "due")
        return Verdict(200, known, events, done.writes)

    return _fenced(who, run["job_id"], epoch, now_ns, decide, job=job, run=run)


def revive(who: Principal, letter: Row, now_ns: int) -> Act:
    """A dead run once more, by a person: one attempt, under a new id."""
    job_id, run_id = letter["source_id"], letter["subject_id"]

    def again(desk: Desk, _letter: Row) -> tuple[list[Draft], list[Write]] | Refused:
        row = desk.memory.rows.get("jobs", {}).get(job_id)
        run = desk.memory.rows.get("job_runs", {}).get(run_id)
        if row is None or run is None or run["state"] != "dead" or row["removed_ns"] is not None:
            return Refused(reason="not_active", detail="its job was removed, or it was tried again already")
        values = {"open_runs": row["open_runs"] + 1}
        back = {"state": "due", "next_try_ns": AT_ONCE, "ended_ns": None}
        return [], _settled(row, run, values, back, "due").writes

    wants = Wants()
    wants.row("jobs", job_id)
    wants.row("job_runs", run_id)
    return dead_letters.retry(who, letter, now_ns, again, wants)


def _fenced(
    who: Principal,
    job_id: str,
    epoch: int,
    now_ns: int,
    decide: Callable[[Desk, Row], Verdict],
    job: Row | None = None,
    run: Row | None = None,
) -> Act:
    """An act of the leader. The lease cannot change hands before it is written."""

    def fenced(desk: Desk) -> Verdict:
        if desk.memory.leases.get(LEASE) != epoch:
            return Verdict(409, STALE)
        row = desk.memory.rows.get("jobs", {}).get(job_id)
        return LATER if row is None else decide(desk, row)

    wants = Wants(leases={LEASE})
    wants.row("jobs", job_id)
    if run is not None:
        wants.row("job_runs", run["run_id"])
    if job is not None and job["overlap"] != "allow" and job["last_seq"] is not None:
        wants.row("deliveries", job["last_seq"])
        wants.row("holds", job["last_seq"])
    return Act(who, now_ns, fenced, wants)
