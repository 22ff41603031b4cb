"""The schedule on both databases: one run for a time, whoever tries; what is late, in line, refused."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from observatory.errors import StatementFailed
from observatory.features.inbox import commands as inbox
from observatory.features.policies import commands as rulemaking
from observatory.features.registry import commands_eviction as reaping
from observatory.features.schedule import commands as jobs
from observatory.features.schedule import commands_firing as firing
from observatory.features.schedule import commands_from_now as from_now
from observatory.features.schedule import worker as scheduler
from observatory.pipeline import dead_letters
from observatory.pipeline.ports import PendingFilter
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import HOME_TENANT, Command, SubmissionResult
from observatory.protocol.identity import delivery_id
from observatory.protocol.tenant_config import Match, PolicyRule
from tests.contract.clockwork import HOUR, MINUTE, START, Clockwork, Killed
from tests.contract.conftest import OTHER_TENANT, Harness
from tests.job_samples import SPEC
from tests.samples import decision_log


@pytest.mark.req(126, 112, 215)
def test_a_job_fires_at_its_times_and_reaches_its_agent_s460(harness: Harness) -> None:
    """S460, S464: the run, its message in the agent's inbox, and what the record says."""
    one = Clockwork(harness)
    harness.send(_step("sweeper"))
    job = one.make()
    assert job["next_for_ns"] == START + 10 * MINUTE
    one.look(START + 9 * MINUTE)
    assert one.runs() == []
    one.look(START + 10 * MINUTE)
    (run,) = one.runs()
    assert (run["state"], run["attempt"], run["body"], run["epoch"]) == ("sent", 0, None, 1)
    (event,) = one.sent()
    assert event["body"]["message_id"] == run["message_id"]
    assert event["attributes"]["av.sender.entity_id"] == firing.SENDER
    stored = harness.read(harness.store.message(HOME_TENANT, run["message_id"]))
    assert stored is not None and stored.raw is not None
    said = json.loads(stored.raw)
    assert said["payload"]["content"] == "sweep the floor"
    assert said["metadata"]["payload"] == {"room": 7}
    (delivery,) = harness.read(harness.store.rows(HOME_TENANT, "deliveries"))
    assert (delivery["kind"], delivery["state"]) == ("message", "pending")
    (fired,) = one.received("job_fired")
    assert (fired["job_id"], fired["manual"]) == (job["job_id"], False)
    one.look(START + 10 * MINUTE + 1)
    one.look(START + 20 * MINUTE)
    assert one.times() == [10, 20] and len(one.sent()) == 2
    row = one.job(job["job_id"])
    assert (row["runs"], row["open_runs"], row["last_outcome"], row["failures"]) == (2, 0, "sent", 0)


def test_the_store_takes_a_time_of_a_job_once_s460(harness: Harness) -> None:
    """S460: past every act: the key itself refuses the second, and a run keeps its time."""
    one = Clockwork(harness)
    job = one.make()
    run = firing.new_run(job, START, harness.admin(), 0, START)

    def insert() -> Command:
        return Command(
            harness.admin(),
            START,
            lambda uow: SubmissionResult(200, None, writes=[RowWrite("job_runs", run)]),
        )

    harness.submit(insert())
    with pytest.raises(StatementFailed):
        harness.submit(insert())
    assert harness.refuses("UPDATE job_runs SET scheduled_for = 1")
    assert harness.refuses("DELETE FROM job_runs") and harness.refuses("DELETE FROM jobs")


STEPS = ["before act 1", "after act 1", "before message 1", "after message 1", "before act 2", "after act 2"]


@pytest.mark.req(126)
def test_a_run_cut_off_anywhere_is_finished_by_the_next_leader_once_s463(harness: Harness) -> None:
    """S463: the message that was sent is a repeat when it is sent again: one firing, one message."""
    harness.send(_step("sweeper"))
    for number, step in enumerate(STEPS, 1):
        at_ns = START + number * HOUR
        first, second = Clockwork(harness, lease_s=0.0), Clockwork(harness)
        job = first.make(name=step, kind="once", cron=None, at_ns=at_ns)
        first.cut = step
        with suppress(Killed):
            first.look(at_ns)
        second.look(at_ns + 1)
        second.look(at_ns + MINUTE)
        harness.read(second.leader.resign())
        assert [run["state"] for run in second.runs()] == ["sent"] * number, step
        assert len(second.sent()) == len(second.received("job_fired")) == number, step
        row = second.job(job["job_id"])
        assert (row["open_runs"], row["runs"], row["state"]) == (0, 1, "done"), step
    assert second.received("security_violation") == []


@pytest.mark.req(126, 233)
def test_what_a_leader_of_yesterday_writes_is_refused_s462(harness: Harness) -> None:
    """S462: it was paused past its lease; whatever it does next changes nothing, and it learns of it."""
    old, new = Clockwork(harness, lease_s=0.0), Clockwork(harness)
    job = old.make()
    epoch = harness.read(old.leader.lead())
    assert epoch == 1
    new.look(START)
    assert new.leader.epoch == 2
    who = old.gateway_principal(HOME_TENANT)
    row = old.job(job["job_id"])
    head = harness.read(harness.store.head(HOME_TENANT))
    run = firing.new_run(row, START + 10 * MINUTE, who, 1, START)
    acts = [
        firing.fire(who, row, 1, START + 10 * MINUTE),
        firing.settle(who, run, SubmissionResult(503, None), 1, START),
        firing.recheck_run(who, run, row, 1, START),
    ]
    verdicts = old.at_its_time(*acts)
    assert [(one.code, one.answer.reason) for one in verdicts] == [(409, "stale_epoch")] * 3
    assert old.runs() == [] and harness.read(harness.store.head(HOME_TENANT)) == head
    old.leader.epoch = 1
    old.leader._ask_at = old.leader._over_at = 1e9  # it has not noticed the time that passed
    old.look(START + 10 * MINUTE)
    assert old.scheduler.counts["stale"] == 1 and old.runs() == []
    old.look(START + 10 * MINUTE)
    assert old.leader.epoch is None, "it asked"
    new.look(START + 10 * MINUTE)
    assert new.times() == [10]


def test_what_is_late_is_dealt_with_as_its_job_says_s468(harness: Harness) -> None:
    """S468: a gateway that was away for an hour; nothing is made up for twice."""
    one = Clockwork(harness)
    for misfire in ("skip", "run_once", "run_all"):
        one.make(misfire=misfire, name=misfire)
    one.look(START + 66 * MINUTE)
    assert sorted(one.times()) == [10, 20, 30, 40, 50, 60, 60]
    missed = {body["name"]: body["missed"] for body in one.received("job_missed")}
    assert missed == {"skip": 6, "run_once": 5}
    one.look(START + 66 * MINUTE)
    assert len(one.runs()) == 7 and len(one.sent()) == 7


@pytest.mark.req(126)
def test_a_clock_that_jumps_fires_nothing_twice_s471(harness: Harness) -> None:
    """S471: an hour back: nothing until it is caught up with; an hour forward: as after an absence."""
    one = Clockwork(harness)
    one.make()
    one.look(START + 10 * MINUTE)
    for minute in (-50, 5, 10):
        one.look(START + minute * MINUTE)
    assert one.times() == [10]
    one.look(START + 70 * MINUTE)
    assert one.times() == [10, 70], "run_once: the newest of those it jumped over"
    one.look(START + 20 * MINUTE)
    one.look(START + 71 * MINUTE)
    assert one.times() == [10, 70]
    one.look(START + 80 * MINUTE)
    assert one.times() == [10, 70, 80]


@pytest.mark.parametrize("overlap", ["skip", "queue"])
def test_a_run_that_is_still_at_work_holds_up_the_next_s469(harness: Harness, overlap: str) -> None:
    """S469: until the agent has acknowledged the one before: then what waited goes."""
    one = Clockwork(harness)
    harness.send(_step("sweeper"))
    job = one.make(overlap=overlap)
    for minute in (10, 20, 30):
        one.look(START + minute * MINUTE)
    states = [run["state"] for run in one.runs()]
    assert states == ["sent", *(["skipped"] * 2 if overlap == "skip" else ["queued"] * 2)]
    assert len(one.sent()) == 1
    assert len(one.received("job_missed")) == (2 if overlap == "skip" else 0)
    _acknowledge(harness)
    one.look(START + 31 * MINUTE)
    one.look(START + 32 * MINUTE)
    states = [run["state"] for run in one.runs()]
    assert states == (["sent", "skipped", "skipped"] if overlap == "skip" else ["sent", "sent", "queued"])
    if overlap == "queue":
        _acknowledge(harness)
    one.look(START + 40 * MINUTE)
    last = [run["state"] for run in one.runs()][-2:]
    assert last == (["skipped", "sent"] if overlap == "skip" else ["sent", "queued"])
    assert one.job(job["job_id"])["queued"] == (0 if overlap == "skip" else 1)


def test_what_was_handed_on_is_still_at_work_s469(harness: Harness) -> None:
    """S469: sent to a capability nobody had; whoever came later has it now, and has not acknowledged."""
    one = Clockwork(harness)
    job = one.make(overlap="skip", target_kind="capability", target_name="sweepers")
    one.look(START + 10 * MINUTE)
    harness.send(_step("sweeper"))
    (parked,) = harness.read(harness.store.stranded(HOME_TENANT, 0, "type:sweepers", 10))
    harness.submit(
        reaping.reroute_delivery(harness.admin(), parked, None, "type:sweepers", harness.now(), None)
    )
    one.look(START + 20 * MINUTE)
    assert [run["state"] for run in one.runs()] == ["sent", "skipped"]
    _acknowledge(harness)
    one.look(START + 30 * MINUTE)
    assert [run["state"] for run in one.runs()][-1] == "sent"
    (last,) = harness.read(harness.store.runs_page(HOME_TENANT, job["job_id"], START + 20 * MINUTE, 1))
    acked = harness.read(harness.store.acknowledged(HOME_TENANT, [last["message_seq"]]))
    assert acked[last["message_seq"]] is not None


def test_a_line_has_an_end_s469(sqlite_harness: Harness) -> None:
    """S469: runs that wait are bounded; what is beyond is skipped and told."""
    one = Clockwork(sqlite_harness)
    sqlite_harness.send(_step("sweeper"))
    one.make(overlap="queue")
    for minute in range(10, 150, 10):
        one.look(START + minute * MINUTE)
    states = [run["state"] for run in one.runs()]
    assert (states.count("queued"), states.count("skipped")) == (firing.MAX_OPEN, 3)


@pytest.mark.req(217, 112)
def test_a_run_that_is_refused_is_tried_again_and_dies_with_a_letter_s472(harness: Harness) -> None:
    """S472, S483: by rule; each try has an id of its own; the letter brings it back to life once."""
    one = Clockwork(harness)
    harness.send(_step("sweeper"))
    match = Match(sender=(firing.SENDER,))
    rule = PolicyRule(rule_id="pol_no_clock", position=1, effect="deny", match=match)
    _rule(harness, rule)
    job = one.make(max_tries=2)
    one.look(START + 10 * MINUTE)
    (run,) = one.runs()
    assert (run["state"], run["attempt"], run["code"]) == ("refused", 1, 403)
    assert run["reason"] == "policy_denied by rule pol_no_clock"
    one.look(START + 10 * MINUTE + 9 * 10**9)
    assert one.runs()[0]["attempt"] == 1, "not before its time"
    one.look(START + 10 * MINUTE + 11 * 10**9)
    (run,) = one.runs()
    assert (run["state"], run["attempt"]) == ("dead", 2)
    row = one.job(job["job_id"])
    assert (row["failures"], row["last_outcome"], row["open_runs"]) == (1, "dead", 0)
    (letter,) = harness.read(harness.store.rows(HOME_TENANT, "dead_letters"))
    assert (letter["kind"], letter["state"], letter["subject_id"]) == ("job", "dead", run["run_id"])
    assert letter["reason"] == "refused 2 times, last reason: policy_denied by rule pol_no_clock"
    assert '"room":7' in letter["preview"].replace(" ", "")
    (received,) = one.received("dead_lettered")
    assert received["letter_id"] == letter["letter_id"] and "preview" not in received
    harness.submit(rulemaking.remove_rule(harness.admin(), rule.rule_id, True, harness.now()))
    answers = harness.submit(*(firing.revive(harness.admin(), letter, harness.now()) for _ in range(2)))
    assert [one.code for one in answers] == [200, 409]
    one.look(START + 12 * MINUTE)
    (run,) = one.runs()
    assert run["state"] == "sent" and len(one.sent()) == 1
    assert one.job(job["job_id"])["failures"] == 0
    (verdict,) = harness.submit(dead_letters.discard(harness.admin(), letter["letter_id"], harness.now()))
    assert (verdict.code, verdict.answer.reason) == (409, "already_ended")
    assert len(one.received("dead_letter_retried")) == 1


def test_a_job_is_paused_changed_run_and_removed_and_all_of_it_is_told_s474(harness: Harness) -> None:
    """S474, S475: from the commit on; nothing that fell into a pause is made up for."""
    one = Clockwork(harness)
    job_id = one.make()["job_id"]
    admin = harness.admin()

    def do(act: Command) -> SubmissionResult:
        return one.at_its_time(act)[0]

    assert do(jobs.resume(admin, job_id, START)).answer.reason == "not_paused"
    assert do(jobs.pause(admin, job_id, START)).code == 200
    one.look(START + 25 * MINUTE)
    assert one.runs() == []
    assert do(firing.run_now(admin, job_id, START)).code == 202, "by hand, paused or not"
    one.look(START + 26 * MINUTE)
    assert [(run["manual"], run["state"]) for run in one.runs()] == [(1, "sent")]
    assert do(jobs.resume(admin, job_id, START)).answer["next_for_ns"] == START + 30 * MINUTE
    changed = do(jobs.change(admin, job_id, _spec(cron="0 * * * *", name="hourly"), START))
    assert changed.answer["next_for_ns"] == START + HOUR and changed.answer["version"] == 4
    assert do(jobs.remove(admin, job_id, START)).code == 200
    one.look(START + HOUR)
    assert len(one.runs()) == 1
    for act in (jobs.remove, jobs.pause, firing.run_now):
        assert do(act(admin, job_id, START)).code == 404
    received = one.received("job_changed")
    assert [body["change"] for body in received] == ["paused", "resumed", "changed", "removed"]
    assert received[2]["before"] == {"cron": "*/10 * * * *", "name": "sweep"}
    assert one.make()["name"] == "sweep", "its name is free again"


def test_a_moment_fires_once_and_its_job_is_done_s473(harness: Harness) -> None:
    """S473: one that is over when it is asked for fires at once."""
    one = Clockwork(harness)
    once = one.make(kind="once", cron=None, at_ns=START + 5 * MINUTE, name="once")
    over = one.make(kind="once", cron=None, at_ns=START - HOUR, name="over")
    one.look(START + 1)
    assert [run["job_id"] for run in one.runs()] == [over["job_id"]]
    for minute in (5, 6, 60):
        one.look(START + minute * MINUTE)
    assert len(one.runs()) == 2 and len(one.sent()) == 2
    assert {one.job(job["job_id"])["state"] for job in (once, over)} == {"done"}


def test_many_at_once_go_in_shares_and_quiet_tenants_cost_nothing_s484(
    sqlite_harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S484: jobs of one minute in as many looks as there are shares; who has none is not asked about."""
    assert scheduler.LIMIT == 200
    monkeypatch.setattr(scheduler, "LIMIT", 20)
    harness, one = sqlite_harness, Clockwork(sqlite_harness)
    harness.create_tenant(OTHER_TENANT)
    specs = [_spec(name=f"job {number}") for number in range(45)]
    one.at_its_time(*(jobs.create(harness.admin(), spec, START) for spec in specs))
    one.now_ns = START + 10 * MINUTE
    looks = 1
    while harness.read(one.scheduler.look(one.now_ns)):
        looks += 1
    assert looks == 3 and len(one.sent()) == 45
    asked: list[str] = []
    real = harness.store.earliest

    async def counted(tenant_id: str) -> int | None:
        asked.append(tenant_id)
        return await real(tenant_id)

    harness.store.earliest = counted
    for _ in range(5):
        harness.read(one.scheduler.look(one.now_ns + 1))
    assert OTHER_TENANT not in asked and len(asked) <= 1


def test_what_cannot_be_said_or_taken_now_holds_up_nobody_s472(
    sqlite_harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of which no message can be made is refused, the next is sent; a corridor that is shut is left."""
    monkeypatch.setattr(scheduler, "LIMIT", 2)
    one = Clockwork(sqlite_harness)
    one.make(name="bad", payload='{"n": 1e999}')
    one.make(name="good")
    with monkeypatch.context() as shut:
        shut.setattr(scheduler, "NOT_NOW", range(1_000))
        assert not one.harness.read(one.scheduler.look(START + 10 * MINUTE)), "not asked again at once"
    one.look(START + 10 * MINUTE)
    assert sorted(run["state"] for run in one.runs()) == ["refused", "sent"]


def test_no_tenant_sees_or_fires_anothers_jobs_s460(harness: Harness) -> None:
    """S460: rows are the tenant's own, on the way in and on the way out."""
    one = Clockwork(harness)
    job = one.make()
    harness.create_tenant(OTHER_TENANT)
    assert harness.read(harness.store.jobs_page(OTHER_TENANT, None, 10, None, None)) == []
    assert harness.read(harness.store.earliest(OTHER_TENANT)) is None
    stranger = harness.admin(OTHER_TENANT)
    for act in (jobs.pause(stranger, job["job_id"], START), firing.run_now(stranger, job["job_id"], START)):
        assert harness.submit(act, tenant_id=OTHER_TENANT)[0].code == 404


def _spec(**given: Any) -> jobs.JobSpec:
    return msgspec.structs.replace(SPEC, **given)


def _step(agent_id: str) -> dict[str, Any]:
    identity = {"agent_id": agent_id, "agent_type": "sweepers"}
    return decision_log(identity=identity, meta={"parent_step_id": None})


def _acknowledge(harness: Harness) -> None:
    """Whatever waits for the sweeper."""
    (agent,) = harness.read(harness.store.rows(HOME_TENANT, "agents", agent_id="sweeper"))
    waiting = harness.read(harness.store.pending(HOME_TENANT, PendingFilter(agent_no=agent["agent_no"]), 100))
    facts = {(one.sequence_number, one.agent_no): one for one in waiting}
    ids = [delivery_id(key) for key in facts]
    assert ids and harness.submit(inbox.ack(harness.admin(), agent["entity_id"], ids, facts, harness.now()))


def _rule(harness: Harness, rule: PolicyRule) -> None:
    assert harness.submit(rulemaking.create_rule(harness.admin(), rule, False, harness.now()))[0].code == 201


YEAR = 365 * 24 * HOUR


def go_on(one: Clockwork) -> Any:
    """What the operator's act does with whatever a clock that ran ahead has put off."""
    found = one.harness.read(one.store.jobs_ahead(HOME_TENANT, one.now_ns + from_now.JOBS_NS, 100))
    runs = one.harness.read(one.store.runs_ahead(HOME_TENANT, one.now_ns + from_now.RUNS_NS, 100))
    return one.at_its_time(from_now.continue_from_now(one.harness.admin(), found, runs, YEAR, one.now_ns))[
        0
    ].answer


def test_after_a_clock_that_ran_a_year_ahead_schedules_go_on_from_now_s1165(harness: Harness) -> None:
    """S1165: by their next time from the present; what the wrong year fired is not fired again."""
    one = Clockwork(harness)
    harness.send(_step("sweeper"))
    job = one.make()
    one.look(START + YEAR + 10 * MINUTE)
    fired_by_it = one.times()
    one.look(START + 20 * MINUTE)
    assert one.times() == fired_by_it, "it waits for a year"
    assert go_on(one) == {"jobs": 1, "runs": 0}
    assert one.job(job["job_id"])["next_for_ns"] == START + 30 * MINUTE
    (received,) = one.received("schedule_resumed")
    assert (received["jobs"], received["names"], received["clock_was_set_by_s"]) == (
        1,
        ["sweep"],
        365 * 86_400,
    )
    one.look(START + 30 * MINUTE)
    assert set(one.times()) - set(fired_by_it) == {30}
    assert go_on(one) == {"jobs": 0, "runs": 0}
    one.look(START + YEAR + 10 * MINUTE)
    one.look(START + YEAR + 20 * MINUTE)
    later = [at - YEAR // MINUTE for at in one.times() if at > 30]
    assert later == [10, 20], "the time it had fired by the wrong clock is not fired twice"


def test_a_paused_job_and_a_run_that_was_refused_by_a_wrong_clock_go_on_too_s1165(harness: Harness) -> None:
    """S1165: whichever way something waits for a time that nobody waits for."""
    one = Clockwork(harness)
    harness.send(_step("sweeper"))
    job = one.make(overlap="queue")
    rule = PolicyRule(rule_id="r1", position=1, effect="deny", match=Match(recipient=("sweeper",)))
    harness.submit(rulemaking.create_rule(harness.admin(), rule, True, harness.now()))
    one.look(START + YEAR + 10 * MINUTE)
    (run,) = one.runs()
    assert run["state"] == "refused" and run["next_try_ns"] > START + YEAR
    one.now_ns = START + 20 * MINUTE
    one.at_its_time(jobs.pause(harness.admin(), job["job_id"], one.now_ns))
    one.at_its_time(jobs.resume(harness.admin(), job["job_id"], one.now_ns))
    assert one.job(job["job_id"])["next_for_ns"] > START + YEAR, "resumed, it still waits for a year"
    (found,) = harness.read(one.store.jobs_ahead(HOME_TENANT, one.now_ns + from_now.JOBS_NS, 100))
    assert found["job_id"] == job["job_id"]
    assert go_on(one) == {"jobs": 1, "runs": 1}
    (run,) = one.runs()
    assert run["next_try_ns"] == firing.AT_ONCE
    assert one.job(job["job_id"])["next_for_ns"] == START + 30 * MINUTE


def test_nothing_fires_while_the_wall_clock_has_parted_from_the_steady_one_s1164(harness: Harness) -> None:
    """S1164: minutes ahead or back; a person says that it is right, or it is put right."""
    one = Clockwork(harness)
    harness.send(_step("sweeper"))
    one.make()
    one.look(START + 5 * MINUTE)
    one.steady_ns = one.now_ns
    one.look(START + YEAR)
    assert one.runs() == [] and one.wall.is_clock_off
    assert one.wall.believed(one.now_ns) == START + 5 * MINUTE
    one.look(START - HOUR)
    assert one.wall.is_clock_off
    one.steady_ns = START + 10 * MINUTE
    one.look(START + 10 * MINUTE)
    assert one.times() == [10] and not one.wall.is_clock_off
    one.look(START + HOUR)
    assert one.times() == [10]
    one.wall.accept()
    one.look(START + HOUR)
    assert len(one.times()) > 1
