"""The generated half of the untouched set; the other half is written by hand in `untouched_hand.jsonl`.

Law: written without sight of the detector; the same list every time.
"""

from __future__ import annotations

from random import Random
from typing import Any

from bench.trajectories.untouched_loops import loops
from bench.trajectories.untouched_normals import normals

SEED = 20260611


def trajectories() -> list[dict[str, Any]]:
    rng = Random(SEED)
    return loops(rng) + normals(rng)
