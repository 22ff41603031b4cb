"""A page of sessions with all that stands beside them, read for the topic `sessions` in its own time.

It reads and changes nothing but what it remembers itself: what is known meanwhile stays as it is until the
page is taken. Goals and trails are read on from the number read last: a line that did not change is never
read again. So every page read must be taken; after one that was not, another reader begins anew.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from observatory.errors import StoreError
from observatory.features.sessions.routes import LastWord, standing_of
from observatory.features.sessions.rows import agents_of, caps_of, halts_of, sealed_of
from observatory.features.sessions.status import Caps
from observatory.features.sessions.stuck import Stuck
from observatory.features.sessions.types_lines import SessionLine
from observatory.http.app_state import House
from observatory.http.live_reads import touches

STANDING_NS = 5_000_000_000
KNOWN_NS = 60_000_000_000  # last words are read again after so long: they may have been shredded
MOST_LINES = 5_000  # read at a time
Row = dict[str, Any]


class Page(NamedTuple):
    rows: list[Row]
    lines: dict[int, SessionLine]  # those that changed
    is_anew: bool  # all that was known of lines counts no more
    agents: Mapping[int, Row]
    paused: Mapping[int, int]
    deciding: Collection[int]
    caps: Caps
    sealed: Collection[str]
    stuck: dict[int, Stuck] | None  # None: not looked at this time


class PageReader:
    def __init__(self, house: House, tenant_id: str, shown: int) -> None:
        self._house, self._tenant_id, self._most = house, tenant_id, shown
        self._looked_ns = self._known_ns = 0
        self._known: dict[int, LastWord] = {}
        self._was_free = True  # of budgets
        self._turn: int | None = None  # lines are known up to here

    def has_ended(self, number: int) -> bool:
        """Whether this last word, if it was read, was terminal."""
        word = self._known.get(number)
        return word is not None and word.has_ended

    async def read(self, now_ns: int, lines: Mapping[int, SessionLine], agents: Mapping[int, Row]) -> Page:
        """`lines` and `agents` are what is known of them."""
        house, tenant_id, turn = self._house, self._tenant_id, self._turn
        self._turn = None  # a page that is not read to its end is read again
        rows = await touches(house).sessions_lately(tenant_id, self._most)
        caps = await caps_of(house, tenant_id)
        stuck = None
        if not 0 <= now_ns - self._looked_ns < STANDING_NS:
            if not 0 <= now_ns - self._known_ns < KNOWN_NS:
                self._known, self._known_ns = {}, now_ns
            stuck = await standing_of(house, tenant_id, rows, self._known)
            self._looked_ns = now_ns
        if not caps.is_empty and (stuck is not None or self._was_free):
            agents = {}  # what they spent may have changed; without a budget it is not shown
        self._was_free = caps.is_empty
        new: dict[int, SessionLine] = {}
        is_anew = False
        with suppress(StoreError):  # insight away: what is known of it stays
            new, is_anew, turn = await self._lines(rows, lines, turn)
        known = {**new} if is_anew else {**lines, **new}
        crew = {number for line in known.values() for number in line.agents}
        there = {number: agents[number] for number in crew if number in agents}
        there |= await agents_of(house, tenant_id, crew - there.keys())
        halts, sealed = await halts_of(house, tenant_id), await sealed_of(house, tenant_id, rows)
        self._turn = turn
        return Page(rows, new, is_anew, there, *halts, caps, sealed, stuck)

    async def _lines(
        self, rows: list[Row], known: Mapping[int, SessionLine], turn: int | None
    ) -> tuple[dict[int, SessionLine], bool, int]:
        derived, tenant_id = self._house.derived, self._tenant_id
        folded = (await derived.progress(tenant_id)).seq
        is_anew = turn is None or folded < turn  # the first time, or it is folded anew
        turn = folded if turn is None or is_anew else turn
        found: dict[int, SessionLine] = {}
        for line in await derived.session_lines_since(tenant_id, turn, MOST_LINES):
            found[line.session_no] = line
            turn = max(turn, line.turn)
        # Whatever was folded of these has a line; one that came back after a while is read once.
        there = found if is_anew else {**known, **found}
        left = [
            row["session_no"] for row in rows if row["first_seq"] <= folded and row["session_no"] not in there
        ]
        if left:
            found |= await derived.session_lines(tenant_id, left)
        return found, is_anew, turn
