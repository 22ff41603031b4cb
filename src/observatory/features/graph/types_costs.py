"""What each step of a session added to its cost (ruling 19), by the rule in step_cost.py.

Pure, over steps in sequence order: a cumulative figure is compared with that agent's previous one in the
session. A refused step costs nothing; a figure that falls costs nothing and is flagged.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from observatory.derived.seen import FoldMessage
from observatory.pipeline.step_cost import cost_of_step


class StepCosts(msgspec.Struct):
    """By sequence number."""

    cost: dict[int, float] = {}
    # The step whose figure this one was compared with: a change there changes the cost here.
    previous: dict[int, int] = {}
    fell: set[int] = msgspec.field(default_factory=set)


def step_costs(steps: Sequence[FoldMessage]) -> StepCosts:
    costs = StepCosts(cost=dict.fromkeys([seen.seq for seen in steps], 0.0))
    last: dict[str, tuple[int, float]] = {}
    for seen in steps:
        log = seen.log
        if log is None or seen.state == "refused":
            continue
        earlier, before = last.get(seen.agent_id, (0, 0.0))
        found = cost_of_step(log.state_delta, before)
        if found is None:
            continue
        seq, (cost, total, fell) = seen.seq, found
        costs.cost[seq], costs.previous[seq] = cost, earlier
        last[seen.agent_id] = (seq, total)
        if fell:
            costs.fell.add(seq)
    return costs
