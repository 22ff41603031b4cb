"""The in-memory vector index: sign bits of every document's embedding, compared by Hamming distance.

A million vectors take 48 MB, in blocks that are filled and never copied; a scan reads each once, in a thread,
mostly without the interpreter lock. They are ordered by turn, so that a changed vector is found and its older
entry removed. Bounded: the least recently used tenant is dropped first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from observatory.store.embedding import BYTES

SIZE = 65_536  # vectors per block
MAX_VECTORS = 4_000_000  # vectors of all tenants together: about 200 MB
MAX_DISTANCE = np.uint16(1_000)  # larger than any distance of 256 bits

Numbers = NDArray[np.int64]
Signs = NDArray[np.uint64]


class VectorRows(NamedTuple):
    """Vectors as read from the store: turns, sequence numbers and sign bits."""

    turns: Numbers
    seqs: Numbers
    signs: Signs


def parse_vectors(turns: str, seqs: str, signs: str) -> VectorRows:
    """Parse comma-separated numbers and hexadecimal sign bits."""
    rows = np.frombuffer(bytes.fromhex(signs), dtype=np.uint64).reshape(-1, BYTES // 8)
    parsed = VectorRows(_numbers(turns), _numbers(seqs), rows)
    order = np.argsort(parsed.turns, kind="stable")
    return VectorRows(parsed.turns[order], parsed.seqs[order], parsed.signs[order])


def _numbers(text: str) -> Numbers:
    return np.array(text.split(","), dtype=np.int64)


class VectorBlock:
    def __init__(self) -> None:
        self.turns = np.zeros(SIZE, dtype=np.int64)
        self.seqs = np.zeros(SIZE, dtype=np.int64)  # 0 where removed
        self.signs = np.zeros((SIZE, BYTES // 8), dtype=np.uint64)
        self.count = 0


class TenantVectors:
    """The vectors of one tenant."""

    def __init__(self) -> None:
        self.blocks: list[VectorBlock] = []
        self.turn = 0  # of the last vector, and its sequence number
        self.seq = 0
        self.is_whole = True  # False when the oldest were dropped
        self._moved: dict[
            int, tuple[VectorBlock, int]
        ] = {}  # vectors whose turn differs from their sequence number

    def __len__(self) -> int:
        return sum(block.count for block in self.blocks)

    def add(self, more: VectorRows) -> None:
        for place in np.flatnonzero(more.turns != more.seqs):
            self._remove(int(more.seqs[place]))
        start, size = 0, len(more.turns)
        while start < size:
            if not self.blocks or self.blocks[-1].count == SIZE:
                self.blocks.append(VectorBlock())
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

    def _remove(self, seq: int) -> None:
        found = self._moved.pop(seq, None) or self._place(seq)
        if found is not None:
            found[0].seqs[found[1]] = 0

    def _place(self, seq: int) -> tuple[VectorBlock, int] | None:
        """The position of an unchanged vector, whose turn is its sequence number."""
        for block in self.blocks:
            if block.count and block.turns[0] <= seq <= block.turns[block.count - 1]:
                at = int(np.searchsorted(block.turns[: block.count], seq))
                if block.seqs[at] == seq:
                    return block, at
        return None

    def scan(self, query: bytes, after: int, until: int, among: Numbers | None, limit: int) -> list[int]:
        """Sequence numbers of the nearest vectors, nearest first, then newest first; `among` is sorted."""
        wanted = np.frombuffer(query, dtype=np.uint64)
        found: list[tuple[NDArray[np.uint16], Numbers]] = []
        for signs, seqs in self._parts(among):
            far = np.bitwise_count(signs ^ wanted).sum(axis=1, dtype=np.uint16)
            far[(seqs <= after) | (seqs > until) | (seqs == 0)] = MAX_DISTANCE
            if len(far) > limit:
                best = np.argpartition(far, limit)[:limit]
                far, seqs = far[best], seqs[best]
            found.append((far, seqs))
        if not found:
            return []
        far = np.concatenate([one[0] for one in found])
        seqs = np.concatenate([one[1] for one in found])
        order = np.lexsort((-seqs, far))[:limit]
        return [int(seqs[place]) for place in order if far[place] < MAX_DISTANCE]

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


class VectorIndex:
    """The vectors of recently searched tenants."""

    def __init__(self, most: int = MAX_VECTORS) -> None:
        self._most = most
        self._tenants: OrderedDict[str, TenantVectors] = OrderedDict()

    def of(self, tenant_id: str, head: int) -> TenantVectors:
        """The vectors of a tenant; empty if they are ahead of the store, which was then rebuilt."""
        kept = self._tenants.get(tenant_id)
        if kept is None or kept.turn > head:
            kept = self._tenants[tenant_id] = TenantVectors()
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
