"""What a step cost: the corridor's own rule, as a fold needs it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observatory.pipeline.step_cost import MAX_COST, StepCost, cost_of, cost_of_step
from observatory.protocol.decision_log import StateDelta


@pytest.mark.parametrize(
    ("figure", "cost", "before", "found"),
    [
        (None, None, 1.0, None),
        (1.0, None, 0.0, StepCost(1.0, 1.0, False)),
        (1.5, None, 1.0, StepCost(0.5, 1.5, False)),
        (0.5, None, 1.0, StepCost(0.0, 0.5, True)),
        (3.0, 0.25, 1.0, StepCost(2.0, 3.0, False)),
        (3.0, 0.0, 1.0, StepCost(2.0, 3.0, False)),
        (1.0, 5.0, 1.0, StepCost(5.0, 1.0, False)),
        (0.5, 5.0, 1.0, StepCost(5.0, 0.5, True)),
        (None, 0.25, 1.0, StepCost(0.25, 1.25, False)),
        (None, -2.0, 1.0, StepCost(0.0, 1.0, False)),
        (1e300, None, 0.0, StepCost(MAX_COST, 1e300, False)),
    ],
)
def test_a_step_costs_what_it_says_or_what_the_figure_grew_whichever_is_more_s202(
    figure: float | None, cost: float | None, before: float, found: StepCost | None
) -> None:
    assert cost_of_step(StateDelta(cumulative_session_cost=figure, cost=cost), before) == found


def test_a_message_without_a_delta_reports_nothing_s202() -> None:
    assert cost_of_step(None, 1.0) is None


@given(st.lists(st.integers(0, 1_000), max_size=50))
def test_figures_that_only_rise_cost_their_last_s202(steps: list[int]) -> None:
    total, costs = 0.0, 0.0
    for figure in sorted(steps):
        found = cost_of_step(StateDelta(cumulative_session_cost=float(figure)), total)
        assert found is not None and not found.fell
        total, costs = found.total, costs + found.cost
    assert costs == (max(steps) if steps else 0.0)


AMOUNT = st.none() | st.floats(-10, 10) | st.floats(-1e18, 1e18)


@given(AMOUNT, AMOUNT, st.floats(-1e6, 1e6))
def test_boards_and_alerts_count_a_step_as_caps_do_s1271(
    figure: float | None, cost: float | None, before: float
) -> None:
    """S1271: what counts for a cap is what is shown, and what a burn rate is made of."""
    delta = StateDelta(cumulative_session_cost=figure, cost=cost)
    found = cost_of_step(delta, before)
    assert (None if found is None else found.cost) == cost_of(delta, before)
