"""Reads of causality in the derived store: children that named a step before it came, and descendants."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select

from observatory.derived.tables import links, steps
from observatory.store.fetches import TENANT, Fetches, portions
from observatory.store.lists import any_named

DEEPEST = 20_000  # descendants looked at; a larger set counts as reaching everything
# Run with every batch.
_AWAITED = select(links.c.seq, links.c.parent_key).where(
    links.c.tenant_id == TENANT, any_named(links.c.parent_key, "keys")
)


class CauseReads(Fetches):
    async def awaited(self, tenant_id: str, keys: Collection[int]) -> list[tuple[int, int]]:
        """(number of the child, key) of folded links to any of these keys of names or spans."""
        found: list[tuple[int, int]] = []
        for some in portions(sorted(keys)):
            rows = await self.fetch(tenant_id, _AWAITED, tenant=tenant_id, keys=some)
            found += [(row[0], row[1]) for row in rows]
        return found

    async def descendant_keys(self, tenant_id: str, seq: int) -> set[int] | None:
        """Keys of the names and spans of a step and its descendants; None when they are too many."""
        down = (
            select(steps.c.name_key, steps.c.span_key)
            .where(steps.c.tenant_id == tenant_id, steps.c.seq == seq)
            .cte("down", recursive=True)
        )
        mine = links.c.tenant_id == tenant_id, links.c.parent_key.in_([down.c.name_key, down.c.span_key])
        child = steps.c.tenant_id == tenant_id, steps.c.seq == links.c.seq
        down = down.union(select(steps.c.name_key, steps.c.span_key).where(*mine, *child))
        rows = await self.fetch(tenant_id, select(down.c.name_key, down.c.span_key).limit(DEEPEST + 1))
        return None if len(rows) > DEEPEST else {key for row in rows for key in row}
