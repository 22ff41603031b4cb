"""The topic `sessions`: the most recently active sessions as the list shows them (S289, S305).

New messages touch sessions by number; once a second the newest page is read again for what changed without
a message (a hold's end, a loop's, a pause). Who falls out of the page is removed. Whether a session stands
still is looked at every few seconds, and at once for one that did. Goals and trails are read on from the
number read last: a line that did not change is never read again.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from observatory.api.house import House
from observatory.api.live_reading import touches
from observatory.api.session_rows import Beside, agents_of, caps_of, halts_of, sealed_of, session_item
from observatory.api.sessions import LastWord, standing_of
from observatory.daemons.feed_channel import Key, Look
from observatory.errors import StoreError
from observatory.insight.session_lines import SessionLine
from observatory.projections.session_status import Caps
from observatory.projections.stuck import Stuck

SHOWN = 1_000
MOST_TOUCHED = 2_000
STANDING_NS = 5_000_000_000
KNOWN_NS = 60_000_000_000  # last words are read again after so long: they may have been shredded
MOST_LINES = 5_000  # read at a time, and kept
PLACES = 2  # of a share that many sessions have in common
Row = dict[str, Any]


class SessionsSource:
    def __init__(self, house: House, tenant_id: str, shown: int = SHOWN) -> None:
        self._house, self._tenant_id, self._most = house, tenant_id, shown
        self._rows: dict[int, Row] = {}
        self._stuck: dict[int, Stuck] = {}
        self._looked_ns = self._known_ns = 0
        self._known: dict[int, LastWord] = {}
        self._seen = 0
        self._lines: dict[int, SessionLine] = {}
        self._turn: int | None = None  # lines are known up to here
        self._agents: dict[int, Row] = {}
        self._beside = Beside(self._lines, self._agents, {}, (), Caps(()))

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
            self._agents.clear()  # what they spent and are called may have changed
            self._looked_ns = now_ns
        self._rows = {row["session_no"]: row for row in rows}
        await self._stand_beside(rows)
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

    async def _stand_beside(self, rows: list[Row]) -> None:
        house, tenant_id = self._house, self._tenant_id
        with suppress(StoreError):  # insight away: what is known of it stays
            await self._read_on(rows)
        crew = {number for line in self._lines.values() for number in line.agents} - self._agents.keys()
        self._agents |= await agents_of(house, tenant_id, crew)
        paused, deciding = await halts_of(house, tenant_id)
        caps, sealed = await caps_of(house, tenant_id), await sealed_of(house, tenant_id, rows)
        self._beside = Beside(self._lines, self._agents, paused, deciding, caps, sealed)

    async def _read_on(self, rows: list[Row]) -> None:
        derived, tenant_id = self._house.derived, self._tenant_id
        folded = (await derived.progress(tenant_id)).seq
        if self._turn is None or folded < self._turn:  # the first time, or it is folded anew
            self._lines.clear()
            self._turn = folded
        for line in await derived.session_lines_since(tenant_id, self._turn, MOST_LINES):
            self._lines[line.session_no] = line
            self._turn = max(self._turn, line.turn)
        # Whatever was folded of these has a line; one that came back after a while is read once.
        left = [
            one for one, row in self._rows.items() if row["first_seq"] <= folded and one not in self._lines
        ]
        if left:
            self._lines |= await derived.session_lines(tenant_id, left)
        if len(self._lines) > MOST_LINES:
            kept = {number: line for number, line in self._lines.items() if number in self._rows}
            self._lines.clear()
            self._lines |= kept

    def _record(self, row: Row) -> Row:
        number = row["session_no"]
        word = self._known.get(row["last_seq"])
        ended = word is not None and word.has_ended
        shown = session_item(row, self._stuck.get(number), self._beside, ended, PLACES)
        return {"kind": "session", "id": row["session_id"], **shown}
