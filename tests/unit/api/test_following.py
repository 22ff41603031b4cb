"""Sessions are read before they are wanted, and what is fed is what was wanted (S938)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any, cast

from observatory.features.facts.types import fact_number
from observatory.features.graph.queries_walk import follow, merge_sessions, split_by_session
from observatory.features.graph.types_spread import (
    Columns,
    CrossingColumns,
    FactColumns,
    LinkColumns,
    Spread,
    SpreadReads,
    StepColumns,
    UseColumns,
)


def spread(sessions: Collection[int], each: int, cut: bool = False) -> Spread:
    """So many steps a session; the last of each leads on, and its fact is used there."""
    steps, uses, facts, links, abroad = [], [], [], [], []
    for number in sorted(sessions):
        for place in range(each):
            seq = number * 100 + place
            steps.append((seq, seq * 10, -seq, number, 1, 0, 0.5, seq, 0, None, "search"))
            links.append((seq, (seq - 1) * 10, number, 0))
        facts.append((fact_number(number * 100, 0), number))
        uses.append((1, number, fact_number(number * 100, 0), number * 100 + 100, 1.0, number + 1, 0))
        abroad.append((number, number + 1, (number * 100 + each - 1) * 10, number * 100 + 100, 0))
    return Spread(
        StepColumns.of(steps),
        LinkColumns.of(links),
        FactColumns.of(facts),
        UseColumns.of(uses),
        CrossingColumns.of(abroad),
        cut,
    )


def plain(found: Spread) -> list[object]:
    """To be compared."""
    return [list(one.rows()) if isinstance(one, Columns) else one for one in found]


class Row:
    """Wants one session after the other, up to a last one."""

    def __init__(self, last: int) -> None:
        self.wanted, self.loaded, self.last = {1}, set[int](), last
        self.fed: list[Spread] = []

    def feed(self, found: Any, sessions: set[int]) -> None:
        self.loaded |= sessions
        self.fed.append(found)
        self.wanted = {max(sessions) + 1} if max(sessions) < self.last else set()


class Store:
    def __init__(self, each: int, leads_on: bool = True, cut_at: int = 10_000) -> None:
        self.each, self.leads_on, self.cut_at = each, leads_on, cut_at
        self.read: list[set[int]] = []

    async def spread(self, _tenant: str, sessions: Collection[int], _after: int, _limit: int) -> Spread:
        self.read.append(set(sessions))
        return spread(sessions, self.each, cut=len(sessions) > self.cut_at)

    async def led_to(self, _tenant: str, sessions: Collection[int], _after: int, most: int) -> dict[int, int]:
        first = max(sessions) + (1 if self.leads_on else 1_000)
        return dict.fromkeys(range(first, first + most), self.each)


def followed(row: Row, store: Store, most: int = 100_000) -> bool:
    return asyncio.run(follow(row, cast(SpreadReads, store), store.spread, "tnt", 1, most))


def test_a_row_of_sessions_takes_few_reads_and_is_fed_one_by_one_s938() -> None:
    """S938"""
    row, store = Row(100), Store(10)
    assert not followed(row, store)
    assert list(map(plain, row.fed)) == [plain(spread({number}, 10)) for number in range(1, 101)]
    assert len(store.read) <= 10
    assert len([number for some in store.read for number in some]) <= 2 * 100


def test_what_leads_nowhere_is_not_read_again_and_again_s938() -> None:
    """S938: in vain at most as much is read as was of use."""
    row, store = Row(50), Store(10, leads_on=False)
    assert not followed(row, store)
    assert len(row.fed) == 50
    assert sum(map(len, store.read)) <= 2 * 50


def test_what_was_cut_is_read_by_itself_and_bounds_hold_s938() -> None:
    """S938, S250"""
    row, store = Row(20), Store(10, cut_at=1)
    assert not followed(row, store)
    assert list(map(plain, row.fed)) == [plain(spread({number}, 10)) for number in range(1, 21)]
    row = Row(100)
    assert followed(row, Store(10), most=55)
    assert len(row.fed) == 6
    row = Row(100)
    assert followed(row, Store(10, cut_at=0), most=1_000)  # cut by itself: told, and gone on with
    assert len(row.fed) == 100


def test_parts_of_sessions_are_together_what_was_read_at_once_s938() -> None:
    """S938"""
    whole = spread({1, 2, 3}, 4)
    parts = split_by_session(whole, {1, 2, 3, 4})
    assert plain(parts[2]) == plain(spread({2}, 4))
    assert plain(parts[4]) == plain(spread((), 4))
    assert plain(merge_sessions([parts[1], parts[2], parts[3]])) == plain(whole)
    mixed = whole._replace(steps=whole.steps.taken([1, 2, 5, 0]))  # whatever the order they were read in
    assert [seq for seq, *_ in split_by_session(mixed, {1, 2})[1].steps.rows()] == [101, 102, 100]
