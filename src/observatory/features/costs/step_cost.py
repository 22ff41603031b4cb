"""What a step cost (ruling 19), as the corridor counts it.

A step costs what it says in `state_delta.cost` or what its agent's cumulative figure has grown in the
session, whichever is more, so that neither hides the other. A figure that falls is kept and costs nothing; a
negative cost gives nothing back.
"""

from __future__ import annotations

from typing import NamedTuple

from observatory.protocol.decision_log import StateDelta

# More than anybody spends: keeps sums finite whatever an agent claims.
MOST = 1e15
MOST_TOKENS = 1_000_000_000  # of one step, likewise: sums stay within 64 bits


class Spent(NamedTuple):
    cost: float  # of this step
    total: float  # what the agent's next figure is held against
    fell: bool  # the cumulative figure was lower than the one before


def spent(delta: StateDelta | None, before: float) -> Spent | None:
    """None when the step reports no cost; `before` is the total of its agent in its session so far."""
    if delta is None:
        return None
    figure, cost = delta.cumulative_session_cost, delta.cost
    if figure is None:
        if cost is None:
            return None
        cost = min(max(0.0, cost), MOST)
        return Spent(cost, before + cost, False)
    step = figure - before
    if cost is not None and cost > step:
        step = cost
    if not 0.0 < step < MOST:  # asked first: most are in bounds
        step = min(max(0.0, step), MOST)
    return Spent(step, figure, figure < before)


def tokens_of(delta: StateDelta | None) -> int:
    """What a step that went on used; nothing when it does not say."""
    return 0 if delta is None else min(delta.tokens_consumed or 0, MOST_TOKENS)
