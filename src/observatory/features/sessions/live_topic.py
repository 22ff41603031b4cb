"""The live topic `sessions`: the most recently active sessions as the list shows them (S289, S305).

Sessions with new messages are sent by the poll that finds them. Changes without a message (the end of a hold
or loop, a pause, a goal) are on a page that is read once a second, concurrently with the polls: it takes many
queries, and none of them may delay a message. Only records that differ are rebuilt, a portion at each poll.
Sessions that fall off the page are removed. Whether a session is stuck is checked every few seconds, and at
once for one that was; after that check every record is rebuilt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from observatory.features.sessions.pages import SessionsPage, SessionsPageReader
from observatory.features.sessions.queries_rows import SessionContext, session_item, stuck_sessions
from observatory.features.sessions.stuck import StuckSession
from observatory.features.sessions.types_lines import SessionLine
from observatory.features.sessions.types_status import Caps
from observatory.http.app_state import AppState
from observatory.http.live_reads import touches
from observatory.runtime.feed_channel import Key, SourceChanges

SHOWN = 1_000
MAX_TOUCHED = 2_000
MAX_LINES = 5_000
PORTION = 250  # records rebuilt per poll in addition to touched ones: about five milliseconds
PLACES = 2  # decimal places of a share that many sessions have in common
Row = dict[str, Any]


class SessionsSource:
    def __init__(self, app: AppState, tenant_id: str, shown: int = SHOWN) -> None:
        self._app, self._tenant_id, self._most = app, tenant_id, shown
        self._rows: dict[int, Row] = {}
        self._stuck: dict[int, StuckSession] = {}
        self._lines: dict[int, SessionLine] = {}
        self._context = SessionContext(self._lines, {}, {}, (), Caps(()))
        self._seen: int | None = None  # None: the next poll sends everything
        self._pages = SessionsPageReader(app, tenant_id, shown)
        self._reading: asyncio.Task[SessionsPage] | None = None
        self._fresh: set[int] = set()  # touched since the page read began: newer than the page
        self._stale: dict[int, None] = {}  # to be rebuilt, the most urgent first

    async def look(self, head: int, now_ns: int, again: bool) -> SourceChanges:
        seen, self._seen = self._seen, None
        if seen is None or head - seen > MAX_TOUCHED:
            found = await self._whole(now_ns)
        else:
            found = await self._since(seen, head, now_ns, again)
        self._seen = head
        return found

    async def close(self) -> None:
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            self._pages = SessionsPageReader(self._app, self._tenant_id, self._most)

    async def _whole(self, now_ns: int) -> SourceChanges:
        await self.close()
        self._fresh.clear()
        self._take(await self._read(now_ns))
        self._stale.clear()
        return SourceChanges([self._record(row) for row in self._rows.values()], whole=True)

    async def _read(self, now_ns: int) -> SessionsPage:
        return await self._pages.read(now_ns, self._lines, self._context.agents)

    async def _since(self, seen: int, head: int, now_ns: int, again: bool) -> SourceChanges:
        if again and self._reading is None:
            self._fresh.clear()
            self._reading = asyncio.create_task(self._read(now_ns))
        is_quiet = head == seen
        rows = [] if is_quiet else await self._touched(seen, head)
        page, reading = None, self._reading
        if reading is not None and (
            is_quiet or reading.done()
        ):  # without new messages, waiting delays no one
            page = await reading
            self._reading = None
        gone = self._put(rows)
        if page is not None:
            gone += self._take(page)
        numbers = {row["session_no"]: None for row in rows}
        remaining = [number for number in self._stale if number not in numbers]
        portion = remaining if is_quiet else remaining[:PORTION]
        self._stale = dict.fromkeys(remaining[len(portion) :])
        numbers |= dict.fromkeys(portion)
        records = [self._record(self._rows[number]) for number in numbers if number in self._rows]
        return SourceChanges(records, gone, soon=self._reading is not None or bool(self._stale))

    async def _touched(self, seen: int, head: int) -> list[Row]:
        rows = await touches(self._app).sessions_touched(self._tenant_id, seen, head)
        were_stuck = [row for row in rows if row["session_no"] in self._stuck]
        if were_stuck:
            still_stuck = await stuck_sessions(self._app, self._tenant_id, were_stuck)
            for row in were_stuck:
                del self._stuck[row["session_no"]]
            self._stuck |= still_stuck
        return [row for row in rows if row["messages"]]

    def _put(self, rows: list[Row]) -> list[Key]:
        touched = {row["session_no"]: row for row in rows}
        self._rows |= touched
        self._fresh |= touched.keys()
        return self._cut()

    def _cut(self) -> list[Key]:
        """Remove the sessions beyond the page, the longest silent first."""
        gone: list[Key] = []
        over = len(self._rows) - self._most
        if over > 0:
            for row in sorted(self._rows.values(), key=lambda row: int(row["last_seq"]))[:over]:
                del self._rows[row["session_no"]]
                gone.append(("session", row["session_id"]))
        return gone

    def _take(self, page: SessionsPage) -> list[Key]:
        """Replace known rows by the page, except those touched while it was read; returns removed keys."""
        before, context, known = self._rows, self._context, self._fresh
        rows = {row["session_no"]: row for row in page.rows if row["session_no"] not in known}
        changed = {number for number, row in rows.items() if before.get(number) != row}
        self._rows = rows | {number: before[number] for number in known if number in before}
        gone: list[Key] = [
            ("session", row["session_id"]) for number, row in before.items() if number not in self._rows
        ]
        gone += self._cut()
        if page.is_rebuilt:
            self._lines.clear()
        self._lines |= page.lines
        if len(self._lines) > MAX_LINES:
            current = {number: line for number, line in self._lines.items() if number in self._rows}
            self._lines.clear()
            self._lines |= current
        if page.stuck is not None:
            from_page = {number: stuck for number, stuck in page.stuck.items() if number not in known}
            self._stuck = from_page | {no: stuck for no, stuck in self._stuck.items() if no in known}
        self._context = SessionContext(
            self._lines, page.agents, page.paused, page.deciding, page.caps, page.sealed
        )
        changed |= page.lines.keys() | _differing(context, self._context, self._rows)
        # Shared values, such as a tenant's cap, are not compared per session: all are rebuilt.
        is_all = (
            page.stuck is not None or page.is_rebuilt or not (context.caps.is_empty and page.caps.is_empty)
        )
        self._stale = dict.fromkeys(changed) | self._stale | (dict.fromkeys(self._rows) if is_all else {})
        return gone

    def _record(self, row: Row) -> Row:
        number = row["session_no"]
        ended = self._pages.has_ended(row["last_seq"])
        item = session_item(row, self._stuck.get(number), self._context, ended, PLACES)
        return {"kind": "session", "id": row["session_id"], **item}


def _differing(before: SessionContext, now: SessionContext, rows: Mapping[int, Row]) -> set[int]:
    """Numbers of sessions whose pauses or pending decisions changed, or that were sealed."""
    changed = {
        number
        for number in {*before.paused, *now.paused}
        if before.paused.get(number) != now.paused.get(number)
    }
    changed |= set(before.deciding) ^ set(now.deciding)
    sealed = set(before.sealed) ^ set(now.sealed)
    return changed | {number for number, row in rows.items() if sealed and row["session_id"] in sealed}
