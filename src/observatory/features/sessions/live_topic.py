"""The topic `sessions`: the most recently active sessions as the list shows them (S289, S305).

New messages touch sessions by number and are told by the look that finds them. What changes without a message
(a hold's end, a loop's, a pause, a goal) stands on a page that is read once a second beside the looks: it
takes many queries, and none of them may keep a message waiting. Only what differs is built anew, a portion at
each look. Who falls out of the page is removed. Whether a session stands still is looked at every few
seconds, and at once for one that did; with it every record is built again, whatever its parts say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from observatory.features.sessions.pages import Page, PageReader
from observatory.features.sessions.routes import standing_of
from observatory.features.sessions.rows import Beside, session_item
from observatory.features.sessions.status import Caps
from observatory.features.sessions.stuck import Stuck
from observatory.features.sessions.types_lines import SessionLine
from observatory.http.app_state import House
from observatory.http.live_reads import touches
from observatory.runtime.feed_channel import Key, Look

SHOWN = 1_000
MOST_TOUCHED = 2_000
MOST_LINES = 5_000
PORTION = 250  # records built at a look beside those that messages touched: some five milliseconds
PLACES = 2  # of a share that many sessions have in common
Row = dict[str, Any]


class SessionsSource:
    def __init__(self, house: House, tenant_id: str, shown: int = SHOWN) -> None:
        self._house, self._tenant_id, self._most = house, tenant_id, shown
        self._rows: dict[int, Row] = {}
        self._stuck: dict[int, Stuck] = {}
        self._lines: dict[int, SessionLine] = {}
        self._beside = Beside(self._lines, {}, {}, (), Caps(()))
        self._seen: int | None = None  # None: whatever was told, the next look tells everything
        self._pages = PageReader(house, tenant_id, shown)
        self._reading: asyncio.Task[Page] | None = None
        self._fresh: set[int] = set()  # touched since the page began to be read: known better than by it
        self._stale: dict[int, None] = {}  # to be built anew, the most urgent first

    async def look(self, head: int, now_ns: int, again: bool) -> Look:
        seen, self._seen = self._seen, None
        if seen is None or head - seen > MOST_TOUCHED:
            made = await self._whole(now_ns)
        else:
            made = await self._since(seen, head, now_ns, again)
        self._seen = head
        return made

    async def close(self) -> None:
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            self._pages = PageReader(self._house, self._tenant_id, self._most)

    async def _whole(self, now_ns: int) -> Look:
        await self.close()
        self._fresh.clear()
        self._take(await self._read(now_ns))
        self._stale.clear()
        return Look([self._record(row) for row in self._rows.values()], whole=True)

    async def _read(self, now_ns: int) -> Page:
        return await self._pages.read(now_ns, self._lines, self._beside.agents)

    async def _since(self, seen: int, head: int, now_ns: int, again: bool) -> Look:
        if again and self._reading is None:
            self._fresh.clear()
            self._reading = asyncio.create_task(self._read(now_ns))
        is_quiet = head == seen
        rows = [] if is_quiet else await self._touched(seen, head)
        page, reading = None, self._reading
        if reading is not None and (is_quiet or reading.done()):  # when nothing came nobody waits
            page = await reading
            self._reading = None
        gone = self._put(rows)
        if page is not None:
            gone += self._take(page)
        numbers = {row["session_no"]: None for row in rows}
        left = [number for number in self._stale if number not in numbers]
        portion = left if is_quiet else left[:PORTION]
        self._stale = dict.fromkeys(left[len(portion) :])
        numbers |= dict.fromkeys(portion)
        made = [self._record(self._rows[number]) for number in numbers if number in self._rows]
        return Look(made, gone, soon=self._reading is not None or bool(self._stale))

    async def _touched(self, seen: int, head: int) -> list[Row]:
        rows = await touches(self._house).sessions_touched(self._tenant_id, seen, head)
        stood = [row for row in rows if row["session_no"] in self._stuck]
        if stood:
            found = await standing_of(self._house, self._tenant_id, stood)
            for row in stood:
                del self._stuck[row["session_no"]]
            self._stuck |= found
        return [row for row in rows if row["messages"]]

    def _put(self, rows: list[Row]) -> list[Key]:
        mine = {row["session_no"]: row for row in rows}
        self._rows |= mine
        self._fresh |= mine.keys()
        return self._cut()

    def _cut(self) -> list[Key]:
        """Those beyond the page, the longest silent first."""
        gone: list[Key] = []
        over = len(self._rows) - self._most
        if over > 0:
            for row in sorted(self._rows.values(), key=lambda row: int(row["last_seq"]))[:over]:
                del self._rows[row["session_no"]]
                gone.append(("session", row["session_id"]))
        return gone

    def _take(self, page: Page) -> list[Key]:
        """The page in place of what is known, but for what was touched while it was read; who is gone."""
        before, around, known = self._rows, self._beside, self._fresh
        rows = {row["session_no"]: row for row in page.rows if row["session_no"] not in known}
        changed = {number for number, row in rows.items() if before.get(number) != row}
        self._rows = rows | {number: before[number] for number in known if number in before}
        gone: list[Key] = [
            ("session", row["session_id"]) for number, row in before.items() if number not in self._rows
        ]
        gone += self._cut()
        if page.is_anew:
            self._lines.clear()
        self._lines |= page.lines
        if len(self._lines) > MOST_LINES:
            kept = {number: line for number, line in self._lines.items() if number in self._rows}
            self._lines.clear()
            self._lines |= kept
        if page.stuck is not None:
            theirs = {number: stuck for number, stuck in page.stuck.items() if number not in known}
            self._stuck = theirs | {no: stuck for no, stuck in self._stuck.items() if no in known}
        self._beside = Beside(self._lines, page.agents, page.paused, page.deciding, page.caps, page.sealed)
        changed |= page.lines.keys() | _differing(around, self._beside, self._rows)
        # What all have in common is not followed into each of them.
        is_all = page.stuck is not None or page.is_anew or not (around.caps.is_empty and page.caps.is_empty)
        self._stale = dict.fromkeys(changed) | self._stale | (dict.fromkeys(self._rows) if is_all else {})
        return gone

    def _record(self, row: Row) -> Row:
        number = row["session_no"]
        ended = self._pages.has_ended(row["last_seq"])
        shown = session_item(row, self._stuck.get(number), self._beside, ended, PLACES)
        return {"kind": "session", "id": row["session_id"], **shown}


def _differing(before: Beside, now: Beside, rows: Mapping[int, Row]) -> set[int]:
    """Numbers of sessions that are paused or wait otherwise than before, or were sealed."""
    found = {
        number
        for number in {*before.paused, *now.paused}
        if before.paused.get(number) != now.paused.get(number)
    }
    found |= set(before.deciding) ^ set(now.deciding)
    sealed = set(before.sealed) ^ set(now.sealed)
    return found | {number for number, row in rows.items() if sealed and row["session_id"] in sealed}
