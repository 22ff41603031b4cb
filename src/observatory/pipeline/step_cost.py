"""The cost of a step (ruling 19), by the same rule as the write path.

A step costs what it reports in `state_delta.cost` or the growth of its agent's cumulative figure in the
session, whichever is more, so that neither hides the other. A figure that falls is kept and costs nothing; a
negative cost gives nothing back.
"""

from __future__ import annotations

from typing import NamedTuple

from observatory.protocol.decision_log import StateDelta

# An upper bound that keeps sums finite whatever an agent reports.
MAX_COST = 1e15
MAX_TOKENS = 1_000_000_000  # per step, so that sums stay within 64 bits


class StepCost(NamedTuple):
    cost: float  # of this step
    total: float  # what the agent's next figure is compared with
    fell: bool  # the cumulative figure was lower than the one before


def cost_of_step(delta: StateDelta | None, before: float) -> StepCost | None:
    """None when the step reports no cost; `before` is the total of its agent in its session so far."""
    if delta is None:
        return None
    figure, cost = delta.cumulative_session_cost, delta.cost
    if figure is None:
        if cost is None:
            return None
        cost = min(max(0.0, cost), MAX_COST)
        return StepCost(cost, before + cost, False)
    step = figure - before
    if cost is not None and cost > step:
        step = cost
    if not 0.0 < step < MAX_COST:  # tested first: most are in bounds
        step = min(max(0.0, step), MAX_COST)
    return StepCost(step, figure, figure < before)


def tokens_of(delta: StateDelta | None) -> int:
    """Tokens a forwarded step used; 0 when it does not report them."""
    return 0 if delta is None else min(delta.tokens_consumed or 0, MAX_TOKENS)


# An upper bound that keeps sums finite whatever an agent reports.
MAX_AMOUNT = 1e15


def cost_of(delta: StateDelta, before: float) -> float | None:
    """What a message adds to its agent's spending; None when it reports no cost.

    The larger of the step's cost and the growth of the cumulative figure, so that neither hides the other. A
    figure that falls, or a negative cost, gives nothing back.
    """
    total, cost = delta.cumulative_session_cost, delta.cost
    if total is None and cost is None:
        return None
    growth = 0.0 if total is None else total - before
    return min(max(0.0, growth, cost or 0.0), MAX_AMOUNT)
