"""Steps as columns: joined whatever they came in, looked up, and grouped as one would by hand."""

from __future__ import annotations

import random

import numpy as np
import pytest

from observatory.features.graph.types_spread import StepColumns
from observatory.features.graph.types_step_table import StepTable, grouped, is_among


def steps(*numbers: int) -> StepColumns:
    return StepColumns.of(
        (seq, seq, -seq, 1, seq % 3, 0, seq / 4, seq, 0, None, f"tool {seq}") for seq in numbers
    )


def test_steps_that_came_in_parts_are_found_in_order() -> None:
    sheaf = StepTable()
    assert len(sheaf.steps) == 0 and 3 not in sheaf
    assert sheaf.add(steps(3, 9)) == [3, 9]
    sheaf.add(steps(1, 5))
    assert sheaf.steps.seq.tolist() == [1, 3, 5, 9]
    sheaf.add(steps(4))
    assert sheaf.known({9, 4, 7}).tool.tolist() == ["tool 4", "tool 9"]
    assert sheaf.step(5)[:5] == (5, 1, 2, 0, 1.25) and sheaf.step(5).tool == "tool 5"
    with pytest.raises(KeyError):
        sheaf.step(6)


@pytest.mark.parametrize("far", [1, 1 << 50])
def test_what_is_among_others_however_far_apart_they_are(far: int) -> None:
    numbers = np.array([1, 2, 3, 4 * far, 5 * far], np.int64)
    assert numbers[is_among(numbers, {2, 4 * far, 9})].tolist() == [2, 4 * far]
    assert not is_among(numbers, ()).any()


@pytest.mark.parametrize("spread", [3, 1 << 40])
def test_groups_are_those_made_by_hand_also_where_keys_are_huge(spread: int) -> None:
    for seed in range(20):
        dice = random.Random(seed)
        values = [dice.randrange(-spread, spread) for _ in range(4)]
        rows = [tuple(dice.choice(values) for _ in range(3)) for _ in range(dice.randrange(1, 30))]
        found: dict[tuple[int, ...], list[int]] = {}
        for place, row in enumerate(rows):
            found.setdefault(row, []).append(place)
        firsts, groups, counts = grouped(*(np.array(key, np.int64) for key in zip(*rows, strict=True)))
        assert firsts.tolist() == [places[0] for places in found.values()]
        assert counts.tolist() == [len(places) for places in found.values()]
        assert [rows[firsts[group]] for group in groups.tolist()] == rows
