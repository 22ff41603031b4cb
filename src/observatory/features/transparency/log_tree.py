"""The tenant's log, read: tiles, its right edge, roots of any size, inclusion and consistency proofs.

Everything comes out of committed rows. Tiles of a width never change and are kept, so a proof over a
million events reads a tile or two. What does not fit together is `LogBroken`, with a sentence: it is
told, never papered over.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable

from observatory.features.transparency.types_log import LogBroken, LogRows
from observatory.ledger import merkle, tiles
from observatory.ledger.merkle import Range
from observatory.ledger.tiles import HASH, WIDTH, Edge

KEPT = 1_024  # tiles, at most 8 KiB each
PAGE = 4_096  # leaves read at a time


class Tree:
    def __init__(self, rows: LogRows) -> None:
        self.rows = rows
        self._kept: OrderedDict[tuple[str, int, int, int], bytes] = OrderedDict()

    async def tile(self, tenant_id: str, level: int, index: int, size: int) -> bytes:
        """The hashes of a tile as a log of this size has it; `size` must be committed."""
        width = tiles.width_of(level, index, size)
        for name in ((tenant_id, level, index, WIDTH), (tenant_id, level, index, width)):
            kept = self._kept.get(name)
            if kept is not None:
                self._kept.move_to_end(name)
                return kept[: width * HASH]
        self._kept[name] = hashes = await self._hashes(tenant_id, level, index * WIDTH, width)
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return hashes

    async def _hashes(self, tenant_id: str, level: int, first: int, count: int) -> bytes:
        hashes = await self.rows.hashes(tenant_id, level, first, count)
        if len(hashes) != count * HASH:
            raise LogBroken(f"hashes of the log from {first} on are missing at level {level}")
        return hashes

    async def leaves(self, tenant_id: str, first: int, count: int) -> list[bytes]:
        return tiles.cut(await self._hashes(tenant_id, 0, first, count))

    async def edge(self, tenant_id: str, size: int) -> Edge:
        """The right edge of a log of this size, read anew."""
        spans = tiles.edge_spans(size)
        found = await asyncio.gather(
            *(self._hashes(tenant_id, one.level, one.index * WIDTH, one.width) for one in spans)
        )
        return Edge(size, [(one.level, tiles.cut(hashes)) for one, hashes in zip(spans, found, strict=True)])

    async def root(self, tenant_id: str, size: int, known: Edge | None = None) -> bytes:
        """The root of any committed size. `known` is an edge not beyond it, where nodes are settled up to."""
        if known is None:
            return (await self.edge(tenant_id, size)).root()
        edge = known.copy()
        while edge.size < size:
            edge.extend(await self.leaves(tenant_id, edge.size, min(PAGE, size - edge.size)))
        return edge.root()

    async def inclusion(self, tenant_id: str, index: int, size: int) -> list[bytes]:
        return await self._proof(tenant_id, merkle.inclusion_path(index, size), size)

    async def consistency(self, tenant_id: str, old: int, new: int) -> list[bytes]:
        return await self._proof(tenant_id, merkle.consistency_path(old, new), new)

    async def _proof(self, tenant_id: str, ranges: Iterable[Range], size: int) -> list[bytes]:
        ranges = list(ranges)
        wanted = sorted(tiles.needed(ranges))
        found = await asyncio.gather(*(self.tile(tenant_id, *one, size) for one in wanted))
        held = dict(zip(wanted, found, strict=True))
        return [tiles.hash_of(span, lambda level, index: held[level, index]) for span in ranges]
