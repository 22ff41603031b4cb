"""Reads the tenant's log: tiles, its right edge, roots of any size, inclusion and consistency proofs.

Everything comes from committed rows. Tiles of a given width never change and are cached, so a proof over a
million events reads a tile or two. Inconsistent rows raise `LogBroken`: they are reported, never repaired.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable

from observatory.features.transparency.types_log import LogBroken, LogRows
from observatory.ledger import merkle, tiles
from observatory.ledger.merkle import Range
from observatory.ledger.tiles import HASH, WIDTH, TileEdge

MAX_CACHED = 1_024  # tiles, at most 8 KiB each
PAGE = 4_096  # leaves read at a time


class LogTree:
    def __init__(self, rows: LogRows) -> None:
        self.rows = rows
        self._cache: OrderedDict[tuple[str, int, int, int], bytes] = OrderedDict()

    async def tile(self, tenant_id: str, level: int, index: int, size: int) -> bytes:
        """The hashes of a tile as a log of this size has it; `size` must be committed."""
        width = tiles.width_of(level, index, size)
        for name in ((tenant_id, level, index, WIDTH), (tenant_id, level, index, width)):
            cached = self._cache.get(name)
            if cached is not None:
                self._cache.move_to_end(name)
                return cached[: width * HASH]
        self._cache[name] = hashes = await self._hashes(tenant_id, level, index * WIDTH, width)
        if len(self._cache) > MAX_CACHED:
            self._cache.popitem(last=False)
        return hashes

    async def _hashes(self, tenant_id: str, level: int, first: int, count: int) -> bytes:
        hashes = await self.rows.hashes(tenant_id, level, first, count)
        if len(hashes) != count * HASH:
            raise LogBroken(f"hashes of the log from {first} on are missing at level {level}")
        return hashes

    async def leaves(self, tenant_id: str, first: int, count: int) -> list[bytes]:
        return tiles.cut(await self._hashes(tenant_id, 0, first, count))

    async def edge(self, tenant_id: str, size: int) -> TileEdge:
        """The right edge of a log of this size, read from the store."""
        spans = tiles.edge_spans(size)
        levels = await asyncio.gather(
            *(self._hashes(tenant_id, one.level, one.index * WIDTH, one.width) for one in spans)
        )
        return TileEdge(
            size, [(one.level, tiles.cut(hashes)) for one, hashes in zip(spans, levels, strict=True)]
        )

    async def root(self, tenant_id: str, size: int, known: TileEdge | None = None) -> bytes:
        """The root of any committed size. `known`: an edge at or before it, up to which nodes are stored."""
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
        names = sorted(tiles.needed(ranges))
        hashes = await asyncio.gather(*(self.tile(tenant_id, *one, size) for one in names))
        by_name = dict(zip(names, hashes, strict=True))
        return [tiles.hash_of(span, lambda level, index: by_name[level, index]) for span in ranges]
