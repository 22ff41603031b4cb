"""Settings of the detectors: what is taken, and every fault of what is not."""

from __future__ import annotations

from typing import Any

import pytest

from observatory.features.loops.types import merged_detectors
from observatory.protocol.tenant_config import DetectorSettings

NOW = DetectorSettings()


def test_what_is_left_out_stays_and_null_is_the_default_s187() -> None:
    before = DetectorSettings(window=9, stuck_s=5)
    after, faults = merged_detectors(before, {"window": None, "loop_below": 0.3, "loops": {"rounds": 7}})
    assert faults == [] and after is not None
    assert (after.window, after.stuck_s, after.loop_below, after.loops.rounds) == (5, 5, 0.3, 7)
    assert after.loops.cycle_rounds == NOW.loops.cycle_rounds


@pytest.mark.parametrize(
    "asked",
    [
        {"window": 1},
        {"window": 51},
        {"window": True},
        {"window": "5"},
        {"loop_below": -0.1},
        {"loop_below": 1.5},
        {"loop_below": 0.6},
        {"warning_up_to": 0.2},
        {"n_min": 6},
        {"window": 2},
        {"stuck_s": 0},
        {"discrepancy_gap": 2},
        {"loops": {"rounds": 1}},
        {"loops": {"no_such": 1}},
        {"loops": 5},
        {"no_such": 1},
    ],
)
def test_what_cannot_be_meant_is_refused_s187(asked: dict[str, Any]) -> None:
    after, faults = merged_detectors(NOW, asked)
    assert after is None and len(faults) == 1 and faults[0].problem


def test_every_fault_is_told_s187() -> None:
    after, faults = merged_detectors(NOW, {"window": 0, "loop_below": 0.9, "stuck_s": "x", "wrong": 1})
    assert after is None
    assert [fault.path for fault in faults] == ["window", "stuck_s", "$", "loop_below"]
