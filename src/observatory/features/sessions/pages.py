"""Reads a page of sessions with all derived columns, concurrently, for the live topic `sessions`.

It changes nothing but its own cache: the topic's state stays as it is until the page is taken.
Session lines are read incrementally from the last number: an unchanged line is never read again. So every
page must be taken; after one that was not, a new reader starts from the beginning.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from observatory.errors import StoreError
from observatory.features.sessions.queries_rows import (
    LastMessage,
    agents_of,
    caps_of,
    pauses_and_decisions,
    stuck_sessions,
)
from observatory.features.sessions.stuck import StuckSession
from observatory.features.sessions.types_lines import SessionLine, SessionLineReads
from observatory.features.sessions.types_status import Caps
from observatory.features.thoughts.queries_seals import sealed_of
from observatory.http.app_state import AppState
from observatory.http.live_reads import touches

STANDING_NS = 5_000_000_000
KNOWN_NS = 60_000_000_000  # cached last messages are read again after this: they may have been shredded
MAX_LINES = 5_000  # read at a time
Row = dict[str, Any]


class SessionsPage(NamedTuple):
    rows: list[Row]
    lines: dict[int, SessionLine]  # those that changed
    is_rebuilt: bool  # previously known lines are discarded
    agents: Mapping[int, Row]
    paused: Mapping[int, int]
    deciding: Collection[int]
    caps: Caps
    sealed: Collection[str]
    stuck: dict[int, StuckSession] | None  # None: not checked this time


class SessionsPageReader:
    def __init__(self, app: AppState, tenant_id: str, shown: int) -> None:
        self._app, self._tenant_id, self._most = app, tenant_id, shown
        self._looked_ns = self._known_ns = 0
        self._known: dict[int, LastMessage] = {}
        self._was_free = True  # of budgets at the previous read
        self._turn: int | None = None  # lines are known up to here

    def has_ended(self, number: int) -> bool:
        """Whether this last message, if it was read, was terminal."""
        last = self._known.get(number)
        return last is not None and last.has_ended

    async def read(
        self, now_ns: int, lines: Mapping[int, SessionLine], agents: Mapping[int, Row]
    ) -> SessionsPage:
        """Read a page; `lines` and `agents` are those already known."""
        app, tenant_id, turn = self._app, self._tenant_id, self._turn
        self._turn = None  # after an incomplete read, everything is read again
        rows = await touches(app).sessions_lately(tenant_id, self._most)
        caps = await caps_of(app, tenant_id)
        stuck = None
        if not 0 <= now_ns - self._looked_ns < STANDING_NS:
            if not 0 <= now_ns - self._known_ns < KNOWN_NS:
                self._known, self._known_ns = {}, now_ns
            stuck = await stuck_sessions(app, tenant_id, rows, self._known)
            self._looked_ns = now_ns
        if not caps.is_empty and (stuck is not None or self._was_free):
            agents = {}  # their spending may have changed; without a budget it is not shown
        self._was_free = caps.is_empty
        new: dict[int, SessionLine] = {}
        is_rebuilt = False
        with suppress(StoreError):  # derived store unavailable: known lines stay
            new, is_rebuilt, turn = await self._lines(rows, lines, turn)
        known = {**new} if is_rebuilt else {**lines, **new}
        crew = {number for line in known.values() for number in line.agents}
        present = {number: agents[number] for number in crew if number in agents}
        present |= await agents_of(app, tenant_id, crew - present.keys())
        halts, sealed = await pauses_and_decisions(app, tenant_id), await sealed_of(app, tenant_id, rows)
        self._turn = turn
        return SessionsPage(rows, new, is_rebuilt, present, *halts, caps, sealed, stuck)

    async def _lines(
        self, rows: list[Row], known: Mapping[int, SessionLine], turn: int | None
    ) -> tuple[dict[int, SessionLine], bool, int]:
        derived, tenant_id = self._app.derived, self._tenant_id
        folded = (await derived.progress(tenant_id)).seq
        is_rebuilt = turn is None or folded < turn  # the first read, or the derived store is being rebuilt
        turn = folded if turn is None or is_rebuilt else turn
        new: dict[int, SessionLine] = {}
        for line in await derived.queries(SessionLineReads).session_lines_since(tenant_id, turn, MAX_LINES):
            new[line.session_no] = line
            turn = max(turn, line.turn)
        # Every folded session has a line; one that reappeared on the page is read once.
        present = new if is_rebuilt else {**known, **new}
        missing = [
            row["session_no"]
            for row in rows
            if row["first_seq"] <= folded and row["session_no"] not in present
        ]
        if missing:
            new |= await derived.queries(SessionLineReads).session_lines(tenant_id, missing)
        return new, is_rebuilt, turn
