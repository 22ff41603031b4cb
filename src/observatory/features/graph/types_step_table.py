"""Steps collected session by session, and vectorized lookups and sums over many of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from observatory.features.graph.types_spread import Ints, SpreadStep, StepColumns

TABLE = 1 << 24  # bytes at most for a lookup table; numpy would switch to sorting much earlier


class StepTable:
    """Steps added in parts. Reading rows after an addition joins the parts; numbers are always current."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        self._parts: list[StepColumns] = []

    def __contains__(self, seq: int) -> bool:
        return seq in self.numbers

    def add(self, steps: StepColumns) -> list[int]:
        """Returns the numbers added."""
        added: list[int] = steps.seq.tolist()
        self.numbers.update(added)
        self._parts.append(steps)
        return added

    @property
    def steps(self) -> StepColumns:
        """All of them, in order of their numbers."""
        if not self._parts:
            return StepColumns.of(())
        if len(self._parts) > 1:
            joined = StepColumns.joined(self._parts)
            self._parts = [joined.taken(np.argsort(joined.seq, kind="stable"))]
        return self._parts[0]

    def known(self, numbers: Collection[int]) -> StepColumns:
        """Those of these steps that were added, in order."""
        mask = is_among(self.steps.seq, numbers)
        return self.steps if mask.all() else self.steps.taken(mask)

    def step(self, seq: int) -> SpreadStep:
        """Raises KeyError when it was not added."""
        if seq not in self.numbers:
            raise KeyError(seq)
        steps = self.steps
        place = int(np.searchsorted(steps.seq, seq))
        return SpreadStep(
            *(getattr(steps, name)[place : place + 1].tolist()[0] for name in SpreadStep._fields)
        )


def array_of(numbers: Collection[int]) -> Ints:
    return np.fromiter(numbers, np.int64, len(numbers))


def is_among(numbers: Ints, others: Collection[int]) -> Any:
    """A mask: which of these numbers are among the others."""
    values = array_of(others)
    is_near = len(values) > 0 and int(values.max()) - int(values.min()) < TABLE
    return np.isin(numbers, values, kind="table" if is_near else None)


def grouped(*keys: Ints) -> tuple[Ints, Ints, Ints]:
    """Groups rows that are equal in all keys. Returns the first row of each group, in order; the group of
    each row; and the size of each group."""
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
