"""Steps as they are fed, session by session, and what is looked up and summed over many of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from observatory.features.graph.types_spread import Ints, Step, Steps

TABLE = 1 << 24  # bytes at most for a table of what is among them, which numpy would sort for much sooner


class Sheaf:
    """Whoever asks for rows after more was fed pays for the joining; until then numbers are all there is."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        self._parts: list[Steps] = []

    def __contains__(self, seq: int) -> bool:
        return seq in self.numbers

    def add(self, steps: Steps) -> list[int]:
        """The numbers that came."""
        came: list[int] = steps.seq.tolist()
        self.numbers.update(came)
        self._parts.append(steps)
        return came

    @property
    def steps(self) -> Steps:
        """All of them, in order of their numbers."""
        if not self._parts:
            return Steps.of(())
        if len(self._parts) > 1:
            joined = Steps.joined(self._parts)
            self._parts = [joined.taken(np.argsort(joined.seq, kind="stable"))]
        return self._parts[0]

    def known(self, numbers: Collection[int]) -> Steps:
        """Of these steps those that came, in order."""
        mask = among(self.steps.seq, numbers)
        return self.steps if mask.all() else self.steps.taken(mask)

    def step(self, seq: int) -> Step:
        """KeyError when it did not come."""
        if seq not in self.numbers:
            raise KeyError(seq)
        steps = self.steps
        place = int(np.searchsorted(steps.seq, seq))
        return Step(*(getattr(steps, name)[place : place + 1].tolist()[0] for name in Step._fields))


def array_of(numbers: Collection[int]) -> Ints:
    return np.fromiter(numbers, np.int64, len(numbers))


def among(numbers: Ints, others: Collection[int]) -> Any:
    """A mask: which of these are among the others."""
    values = array_of(others)
    is_near = len(values) > 0 and int(values.max()) - int(values.min()) < TABLE
    return np.isin(numbers, values, kind="table" if is_near else None)


def grouped(*keys: Ints) -> tuple[Ints, Ints, Ints]:
    """Rows alike in all keys are one group: the first row of each group, in the order of these; of each row
    its group; and how many rows each group has."""
    whole, width = np.zeros(len(keys[0]), np.int64), 1
    for key in keys:
        least, most = int(key.min(initial=0)), int(key.max(initial=0))
        span = most - least + 1
        if width * span >= 1 << 62:
            _, whole = np.unique(whole, return_inverse=True)
            _, key = np.unique(key, return_inverse=True)
            least, width, span = 0, len(whole) + 1, len(whole) + 1
        whole = whole * span + (key - least)
        width *= span
    _, firsts, groups, counts = np.unique(whole, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(firsts)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return firsts[order], rank[groups], counts[order]
