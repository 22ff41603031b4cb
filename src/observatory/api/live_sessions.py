"""The topic `sessions`: the most recently active sessions as the list shows them (S289).

New messages touch sessions by number; once a second the newest page is read again for what changed without
a message (a hold's end, a loop's). Who falls out of the page is removed. Whether a session stands still is
looked at every few seconds, and at once for one that did.
"""

from __future__ import annotations

from typing import Any

from observatory.api.house import House
from observatory.api.live_reading import touches
from observatory.api.sessions import LastWord, session_item, standing_of
from observatory.daemons.feed_channel import Key, Look
from observatory.projections.stuck import Stuck

SHOWN = 1_000
MOST_TOUCHED = 2_000
STANDING_NS = 5_000_000_000
KNOWN_NS = 60_000_000_000  # last words are read again after so long: they may have been shredded
Row = dict[str, Any]


class SessionsSource:
    def __init__(self, house: House, tenant_id: str, shown: int = SHOWN) -> None:
        self._house, self._tenant_id, self._most = house, tenant_id, shown
        self._rows: dict[int, Row] = {}
        self._stuck: dict[int, Stuck] = {}
        self._looked_ns = self._known_ns = 0
        self._known: dict[int, LastWord] = {}
        self._seen = 0

    async def look(self, head: int, now_ns: int, again: bool) -> Look:
        if again or head - self._seen > MOST_TOUCHED:
            made = await self._page(now_ns)
        else:
            made = await self._since(head)
        self._seen = head
        return made

    async def close(self) -> None: ...

    async def _page(self, now_ns: int) -> Look:
        rows = await touches(self._house).sessions_lately(self._tenant_id, self._most)
        if not 0 <= now_ns - self._looked_ns < STANDING_NS:
            if not 0 <= now_ns - self._known_ns < KNOWN_NS:
                self._known, self._known_ns = {}, now_ns
            self._stuck = await standing_of(self._house, self._tenant_id, rows, self._known)
            self._looked_ns = now_ns
        self._rows = {row["session_no"]: row for row in rows}
        return Look([self._record(row) for row in rows], whole=True)

    async def _since(self, head: int) -> Look:
        rows = await touches(self._house).sessions_touched(self._tenant_id, self._seen, head)
        stood = [row for row in rows if row["session_no"] in self._stuck]
        if stood:
            for row in stood:
                del self._stuck[row["session_no"]]
            self._stuck |= await standing_of(self._house, self._tenant_id, stood)
        self._rows |= {row["session_no"]: row for row in rows if row["messages"]}
        gone: list[Key] = []
        over = len(self._rows) - self._most
        if over > 0:
            for row in sorted(self._rows.values(), key=lambda row: int(row["last_seq"]))[:over]:
                del self._rows[row["session_no"]]
                gone.append(("session", row["session_id"]))
        return Look([self._record(row) for row in rows if row["session_no"] in self._rows], gone)

    def _record(self, row: Row) -> Row:
        shown = session_item(row, self._stuck.get(row["session_no"]))
        return {"kind": "session", "id": row["session_id"], **shown}
