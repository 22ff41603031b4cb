"""Runs counted into bins, the last of each job, and changes that say what they saw; on both databases."""

from __future__ import annotations

import msgspec
import pytest

from observatory.features.schedule import commands as jobs
from observatory.pipeline.state import HOME_TENANT
from observatory.protocol.clock import from_ns
from observatory.protocol.responses import Refused
from tests.contract.clockwork import HOUR, MINUTE, START, Clockwork
from tests.contract.conftest import OTHER_TENANT, Harness
from tests.job_samples import SPEC


@pytest.mark.req(215, 216)
def test_runs_are_counted_by_bin_and_the_last_of_each_are_found_s640(harness: Harness) -> None:
    """S640: by state, and whether by hand; of another tenant nothing."""
    one = Clockwork(harness)
    sweep, scrub = one.make(), one.make(name="scrub", cron="*/20 * * * *")
    for minute in range(10, 70, 10):
        one.look(START + minute * MINUTE)
    ids = [sweep["job_id"], scrub["job_id"]]
    found = harness.read(harness.store.runs_counted(HOME_TENANT, ids, START, START + 2 * HOUR, HOUR))
    assert sorted((ids.index(job), (at - START) // HOUR, manual, n) for job, at, _, manual, n in found) == [
        (0, 0, False, 5),
        (0, 1, False, 1),
        (1, 0, False, 2),
        (1, 1, False, 1),
    ]
    part = harness.read(harness.store.runs_counted(HOME_TENANT, ids[1:], START, START + HOUR, 30 * MINUTE))
    assert sorted((at - START) // MINUTE for _, at, _, _, _ in part) == [0, 30]
    last = harness.read(harness.store.runs_recent(HOME_TENANT, ids, 2))
    last.sort(key=lambda run: ids.index(run["job_id"]))
    assert [(ids.index(run["job_id"]), (run["scheduled_for"] - START) // MINUTE) for run in last] == [
        (0, 60),
        (0, 50),
        (1, 60),
        (1, 40),
    ]
    assert harness.read(harness.store.runs_recent(HOME_TENANT, [], 2)) == []
    assert harness.read(harness.store.runs_counted(OTHER_TENANT, ids, START, START + HOUR, HOUR)) == []
    assert harness.read(harness.store.runs_recent(OTHER_TENANT, ids, 2)) == []


def test_who_did_not_see_the_newest_change_of_a_job_changes_nothing_s642(harness: Harness) -> None:
    """S642: and who says nothing is asked nothing."""
    one = Clockwork(harness)
    job = one.make()
    seen = from_ns(job["updated_ns"])
    admin = harness.admin()
    mine = msgspec.structs.replace(SPEC, intent="sweep it well")
    theirs = msgspec.structs.replace(SPEC, intent="sweep it twice")
    one.now_ns += MINUTE
    (first,) = one.at_its_time(jobs.change(admin, job["job_id"], theirs, one.now_ns, seen))
    assert first.code == 200
    (second,) = one.at_its_time(jobs.change(admin, job["job_id"], mine, one.now_ns, seen))
    assert second.code == 409 and isinstance(second.answer, Refused) and second.answer.reason == "stale"
    assert one.job(job["job_id"])["intent"] == "sweep it twice"
    newest = from_ns(one.job(job["job_id"])["updated_ns"])
    (third,) = one.at_its_time(jobs.change(admin, job["job_id"], mine, one.now_ns, newest))
    (fourth,) = one.at_its_time(jobs.change(admin, job["job_id"], theirs, one.now_ns))
    assert (third.code, fourth.code) == (200, 200)
