"""What each step of a session added to its cost (ruling 19), by the one rule of spending.py.

Pure, over steps in sequence order: a cumulative figure is held against that agent's last one in the session.
What was refused cost nothing, and a figure that falls costs nothing and is flagged.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from observatory.features.costs.step_cost import spent
from observatory.runtime.seen import Seen


class Costs(msgspec.Struct):
    """By sequence number."""

    cost: dict[int, float] = {}
    # The step whose figure this one was held against: other content there changes the cost here.
    previous: dict[int, int] = {}
    fell: set[int] = msgspec.field(default_factory=set)


def step_costs(steps: Sequence[Seen]) -> Costs:
    costs = Costs(cost=dict.fromkeys([seen.seq for seen in steps], 0.0))
    last: dict[str, tuple[int, float]] = {}
    for seen in steps:
        log = seen.log
        if log is None or seen.state == "refused":
            continue
        earlier, before = last.get(seen.agent_id, (0, 0.0))
        found = spent(log.state_delta, before)
        if found is None:
            continue
        seq, (cost, total, fell) = seen.seq, found
        costs.cost[seq], costs.previous[seq] = cost, earlier
        last[seen.agent_id] = (seq, total)
        if fell:
            costs.fell.add(seq)
    return costs
