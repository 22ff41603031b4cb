"""The tuning part: trajectories made with a fixed seed, family by family, and hand-written ones.

The same list every time. The detector is tuned on these and on nothing else.
"""

from __future__ import annotations

from bench.trajectories.format import HERE, Trajectory, from_dicts, load
from bench.trajectories.hand import Hand
from bench.trajectories.tuning_loops import LOOPS
from bench.trajectories.tuning_normals import NORMALS

EACH = 14


def generated() -> list[Trajectory]:
    made = []
    for label, families in (("loop", LOOPS), ("normal", NORMALS)):
        for family in families:
            for number in range(EACH):
                hand = Hand(number, family.__name__)
                family(hand)
                made.append(
                    {
                        "name": f"{family.__name__}-{number}",
                        "family": family.__name__,
                        "label": label,
                        "steps": hand.steps,
                        "polling_tools": hand.polling,
                    }
                )
    return from_dicts(made, "tuning.py")


def tuning() -> list[Trajectory]:
    return generated() + load(HERE / "tuning_hand.jsonl")
