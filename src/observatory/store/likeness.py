"""Vectors in memory: the signs of every document's embedding, compared by counting the bits that differ.

A million of them take 48 MB, in blocks that are filled and never copied; a comparison touches each once, in a
thread, without the interpreter's lock for most of it. They stand in the order of their turns, so that one
that was made anew is found: the older is struck out. Bounded: who asked least lately goes first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from observatory.store.embedding import BYTES

SIZE = 65_536  # of a block
MOST = 4_000_000  # vectors of all tenants together: some 200 MB
FAR = np.uint16(1_000)  # no two of 256 bits differ so much

Numbers = NDArray[np.int64]
Signs = NDArray[np.uint64]


class Told(NamedTuple):
    """Vectors as the store gives them: turns, numbers and the signs in a row."""

    turns: Numbers
    seqs: Numbers
    signs: Signs


def told(turns: str, seqs: str, signs: str) -> Told:
    """From numbers with commas between and hexadecimal signs."""
    rows = np.frombuffer(bytes.fromhex(signs), dtype=np.uint64).reshape(-1, BYTES // 8)
    made = Told(_numbers(turns), _numbers(seqs), rows)
    order = np.argsort(made.turns, kind="stable")
    return Told(made.turns[order], made.seqs[order], made.signs[order])


def _numbers(text: str) -> Numbers:
    return np.array(text.split(","), dtype=np.int64)


class Block:
    def __init__(self) -> None:
        self.turns = np.zeros(SIZE, dtype=np.int64)
        self.seqs = np.zeros(SIZE, dtype=np.int64)  # 0 where it was struck out
        self.signs = np.zeros((SIZE, BYTES // 8), dtype=np.uint64)
        self.count = 0


class Vectors:
    """Of one tenant."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.turn = 0  # of the last one, and its number
        self.seq = 0
        self.is_whole = True  # false when the oldest had to go
        self._moved: dict[int, tuple[Block, int]] = {}  # those whose turn is not their number

    def __len__(self) -> int:
        return sum(block.count for block in self.blocks)

    def add(self, more: Told) -> None:
        for place in np.flatnonzero(more.turns != more.seqs):
            self._strike(int(more.seqs[place]))
        start, size = 0, len(more.turns)
        while start < size:
            if not self.blocks or self.blocks[-1].count == SIZE:
                self.blocks.append(Block())
            block = self.blocks[-1]
            end = min(size, start + SIZE - block.count)
            here = slice(block.count, block.count + end - start)
            block.turns[here], block.seqs[here] = more.turns[start:end], more.seqs[start:end]
            block.signs[here] = more.signs[start:end]
            for place in np.flatnonzero(block.turns[here] != block.seqs[here]):
                at = block.count + int(place)
                self._moved[int(block.seqs[at])] = (block, at)
            block.count += end - start
            start = end
        if size:
            self.turn, self.seq = int(more.turns[-1]), int(more.seqs[-1])

    def _strike(self, seq: int) -> None:
        found = self._moved.pop(seq, None) or self._place(seq)
        if found is not None:
            found[0].seqs[found[1]] = 0

    def _place(self, seq: int) -> tuple[Block, int] | None:
        """Where it stands with its number as its turn."""
        for block in self.blocks:
            if block.count and block.turns[0] <= seq <= block.turns[block.count - 1]:
                at = int(np.searchsorted(block.turns[: block.count], seq))
                if block.seqs[at] == seq:
                    return block, at
        return None

    def scan(self, query: bytes, after: int, until: int, among: Numbers | None, limit: int) -> list[int]:
        """Numbers of the nearest, nearest and newest first; `among` is sorted."""
        wanted = np.frombuffer(query, dtype=np.uint64)
        found: list[tuple[NDArray[np.uint16], Numbers]] = []
        for signs, seqs in self._parts(among):
            far = np.bitwise_count(signs ^ wanted).sum(axis=1, dtype=np.uint16)
            far[(seqs <= after) | (seqs > until) | (seqs == 0)] = FAR
            if len(far) > limit:
                best = np.argpartition(far, limit)[:limit]
                far, seqs = far[best], seqs[best]
            found.append((far, seqs))
        if not found:
            return []
        far = np.concatenate([one[0] for one in found])
        seqs = np.concatenate([one[1] for one in found])
        order = np.lexsort((-seqs, far))[:limit]
        return [int(seqs[place]) for place in order if far[place] < FAR]

    def _parts(self, among: Numbers | None) -> Iterator[tuple[Signs, Numbers]]:
        for block in list(self.blocks):
            count = block.count
            if among is None:
                yield block.signs[:count], block.seqs[:count]
                continue
            first, last = np.searchsorted(among, (block.turns[0], block.turns[count - 1] + 1))
            here = among[first:last]
            at = np.searchsorted(block.turns[:count], here)
            at = at[(block.turns[at] == here) & (block.seqs[at] == here)]
            yield block.signs[at], block.seqs[at]
        if among is not None:
            moved = [place for one, place in list(self._moved.items()) if _has(among, one)]
            if moved:
                signs = np.stack([block.signs[at] for block, at in moved])
                yield signs, np.array([block.seqs[at] for block, at in moved], dtype=np.int64)


def _has(among: Numbers, number: int) -> bool:
    at = int(np.searchsorted(among, number))
    return at < len(among) and int(among[at]) == number


class Likeness:
    """The vectors of all tenants that were asked about lately."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._tenants: OrderedDict[str, Vectors] = OrderedDict()

    def of(self, tenant_id: str, head: int) -> Vectors:
        """What is known of a tenant; nothing when it knows more than the store: that was made anew."""
        kept = self._tenants.get(tenant_id)
        if kept is None or kept.turn > head:
            kept = self._tenants[tenant_id] = Vectors()
        self._tenants.move_to_end(tenant_id)
        return kept

    def trim(self) -> None:
        total = sum(len(kept) for kept in self._tenants.values())
        while total > self._most and len(self._tenants) > 1:
            total -= len(self._tenants.popitem(last=False)[1])
        for kept in self._tenants.values():
            while total > self._most and len(kept.blocks) > 1:
                total -= kept.blocks.pop(0).count
                kept.is_whole = False
