"""The figures asked of the loop detector, on the parts it was tuned on and on the part nobody tuned on."""

from __future__ import annotations

from bench import loops
from bench.trajectories.format import Trajectory, opened, untouched
from bench.trajectories.tuning import tuning


def fits(trajectories: list[Trajectory]) -> None:
    score, _ = loops.scored(trajectories, loops.detector)
    assert score.f1 >= loops.F1_ASKED, score
    assert score.precision >= loops.PRECISION_ASKED, score


def test_the_tuning_part_is_large_and_the_same_every_time() -> None:
    trajectories = tuning()
    assert len(trajectories) >= 200 and trajectories == tuning()


def test_s192_and_s193_hold_on_the_tuning_part() -> None:
    fits(tuning())


def test_s192_and_s193_hold_on_the_part_that_was_opened() -> None:
    trajectories = opened()
    assert len(trajectories) >= 200 and trajectories == opened()
    fits(trajectories)


def test_s192_and_s193_hold_on_the_untouched_part() -> None:
    trajectories = untouched()
    assert trajectories, "the untouched part is missing"
    tuned = {one.family for one in tuning() + opened()}
    assert len({one.family for one in trajectories} - tuned) >= 4, "families that occur only there"
    fits(trajectories)
