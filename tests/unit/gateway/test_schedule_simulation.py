"""Three schedulers, their leader paused, killed and misled by its clock: every time exactly once."""

from __future__ import annotations

import os

import pytest

from tests.unit.gateway.clockworks import HOUR, MINUTE, START, Fleet, spec

SEEDS = int(os.environ.get("SEEDS", "120"))  # thousands in `make soak`
LONG = HOUR


@pytest.mark.parametrize("part", range(3))
def test_every_time_of_every_job_exactly_once_whatever_happens_to_the_leaders_s460(part: int) -> None:
    """S460, S462, S463, S471: no time twice, none left out, no two messages for one; stale writes refused."""
    stale = moved = 0
    for seed in range(part, SEEDS, 3):
        fleet = Fleet(seed, [spec(cron="*/10 * * * *"), spec(cron="*/25 * * * *", jitter_s=90)])
        fleet.disturb(200, START + LONG)
        fleet.settle(START + LONG + HOUR)  # as far as a clock that ran ahead may have fired
        expected = {("job_0", START + n * 10 * MINUTE) for n in range(1, 13)}
        times = {(run["job_id"], run["scheduled_for"]) for run in fleet.runs()}
        assert expected <= times, seed
        assert all(run["state"] == "sent" for run in fleet.runs()), seed
        messages = [run["message_id"] for run in fleet.runs()]
        assert len(set(messages)) == len(messages) == len(fleet.database.sent), seed
        for row in fleet.database.tables["jobs"].values():
            assert (row["open_runs"], row["queued"]) == (0, 0), seed
        stale += fleet.database.stale
        moved += fleet.moves
    assert moved and stale, "a run in which no stale leader wrote proves nothing"


def test_refusals_end_in_a_letter_or_a_message_never_in_both_s472() -> None:
    """S472: with half of all messages refused; each try has an id of its own."""
    for seed in range(SEEDS // 3):
        fleet = Fleet(seed, [spec(cron="*/10 * * * *", max_tries=2)], refusing=0.5)
        fleet.disturb(150, START + LONG)
        fleet.settle(START + LONG + HOUR)
        letters = {row["subject_id"] for row in fleet.database.tables["dead_letters"].values()}
        dead = {run["run_id"] for run in fleet.runs() if run["state"] == "dead"}
        assert letters == dead, seed
        sent = [verdict for _, verdict in fleet.database.sent.values() if verdict.code == 202]
        assert len(sent) == len(fleet.runs()) - len(dead), seed
        assert {run["state"] for run in fleet.runs()} <= {"sent", "dead"}
