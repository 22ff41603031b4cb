"""The publisher: a cursor over committed rows that feeds live readers.

It publishes only what the archive holds. The bus merely wakes it; it also polls every 250 ms, so a second
gateway's rows are published without a shared bus. Per tenant with readers the newest rows are
kept in a bounded ring, so that many readers cost one read; a reader behind the ring reads the
archive `after=seq` or has to resync.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from observatory.errors import StoreError
from observatory.pipeline.ports import Archive, Bus, EventFilter, MessageFilter, StoredEvent, StoredMessage
from observatory.runtime.metrics import Measure, PollCounter
from observatory.runtime.wait_for_wakeup import wait_for_wakeup

log = logging.getLogger("observatory.publisher")
POLL_S = 0.25
PAGE = 500
HELD = b'"held_sequence_number":'
SHREDDED = b'"shredded_sequence_numbers":['
_sections = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class CommittedRow(msgspec.Struct, frozen=True):
    """One committed event, and the message it archived, if any."""

    sequence_number: int
    event: StoredEvent
    message: StoredMessage | None


class RowFeed:
    """The newest rows of one tenant, shared by its live readers."""

    def __init__(self, tenant_id: str, head: int, size: int) -> None:
        self.tenant_id = tenant_id
        self.head = head
        self.rows: deque[CommittedRow] = deque(maxlen=size)
        self.readers = 0
        self.looked_at = 0.0
        # Frames that readers built from these rows, for other readers at the same cursor. Cleared with the
        # next rows: they may shred what was sent.
        self.frames: dict[Hashable, Any] = {}
        self._moved = asyncio.Event()

    def extend(self, rows: list[CommittedRow]) -> None:
        self.frames = {}
        self.rows.extend(rows)
        gone = {number: row.sequence_number for row in rows for number in _shredded(row.event.record)}
        if gone:  # drop it from the cached rows too
            self.rows = deque((_without(row, gone) for row in self.rows), maxlen=self.rows.maxlen)
        self.head = rows[-1].sequence_number
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def after(self, cursor: int, limit: int) -> list[CommittedRow] | None:
        """Rows after the cursor from the ring; None when the ring no longer reaches back to it."""
        if cursor >= self.head:
            return []
        if not self.rows or self.rows[0].sequence_number > cursor + 1:
            return None
        start = cursor + 1 - self.rows[0].sequence_number
        return [self.rows[i] for i in range(start, min(start + limit, len(self.rows)))]

    async def wait(self, cursor: int) -> None:
        while self.head <= cursor:
            await self._moved.wait()


class _ShredOrder(msgspec.Struct):
    shredded_sequence_numbers: list[int] = []


class _Event(msgspec.Struct):
    body: _ShredOrder


def _shredded(record: bytes) -> list[int]:
    if SHREDDED not in record:
        return []
    return msgspec.json.decode(record, type=_Event).body.shredded_sequence_numbers


def _without(row: CommittedRow, gone: dict[int, int]) -> CommittedRow:
    message = row.message
    if message is None or message.sequence_number not in gone:
        return row
    by = gone[message.sequence_number]
    bare = msgspec.structs.replace(message, raw=None, rewritten=None, shredded_by=by)
    return msgspec.structs.replace(row, message=bare)


class Publisher:
    def __init__(self, archive: Archive, bus: Bus, ring: int) -> None:
        self._archive = archive
        self._bus = bus
        self._ring = ring
        self._feeds: dict[str, RowFeed] = {}
        self._news: dict[str, int] = {}  # the heads of these tenants, as notified by the bus
        self._wake = asyncio.Event()
        self._looks = PollCounter("publisher")
        self._rows_sent = 0

    def measures(self) -> list[Measure]:
        return [
            Measure("observatory_live_readers", "gauge", "Live readers", self.readers),
            Measure("observatory_live_feeds", "gauge", "Tenants with live readers", len(self._feeds)),
            Measure("observatory_live_rows_total", "counter", "Rows sent to live readers", self._rows_sent),
            *self._looks.measures(),
        ]

    @property
    def readers(self) -> int:
        return sum(feed.readers for feed in self._feeds.values())

    @asynccontextmanager
    async def feed(self, tenant_id: str) -> AsyncIterator[RowFeed]:
        feed = self._feeds.get(tenant_id)
        if feed is None:
            head, _ = await self._archive.head(tenant_id)
            feed = self._feeds.setdefault(tenant_id, RowFeed(tenant_id, head, self._ring))
        feed.readers += 1
        try:
            yield feed
        finally:
            feed.readers -= 1
            if not feed.readers:
                self._feeds.pop(tenant_id, None)
                self._news.pop(tenant_id, None)

    async def page(self, tenant_id: str, after: int, limit: int = PAGE) -> list[CommittedRow]:
        """Committed rows after a cursor, from the archive: for readers that are far behind."""
        events = await self._archive.events(tenant_id, EventFilter(after=after), limit, False)
        if not events:
            return []
        span = MessageFilter(after=after, before=events[-1].sequence_number + 1)
        messages = await self._archive.messages(tenant_id, span, limit, False)
        by_number = {message.sequence_number: message for message in messages}
        for event in events:
            if HELD in event.record:  # released now, archived earlier: sent again in its new state
                number = int(event.record.partition(HELD)[2].partition(b",")[0].rstrip(b"}"))
                span = MessageFilter(after=number - 1, before=number + 1)
                released = await self._archive.messages(tenant_id, span, 1, False)
                if released:
                    by_number[event.sequence_number] = released[0]
        return [
            CommittedRow(event.sequence_number, event, by_number.get(event.sequence_number))
            for event in events
        ]

    async def run(self) -> None:
        """The worker's loop: advance the feeds that have readers, each when the bus or the clock says so."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen())
            while True:
                self._looks.look()
                for feed in [feed for feed in self._feeds.values() if self._is_due(feed)]:
                    await self._advance(feed)
                await wait_for_wakeup(self._wake, POLL_S)
                self._wake.clear()

    async def _listen(self) -> None:
        async for notice in self._bus.subscribe():
            if notice.tenant_id in self._feeds:
                self._news[notice.tenant_id] = notice.sequence_number
                self._wake.set()

    def _is_due(self, feed: RowFeed) -> bool:
        is_notified = self._news.get(feed.tenant_id, 0) > feed.head
        return is_notified or time.monotonic() - feed.looked_at >= POLL_S

    async def _advance(self, feed: RowFeed) -> None:
        feed.looked_at = time.monotonic()
        try:
            is_all = False
            while not is_all and (rows := await self.page(feed.tenant_id, feed.head)):
                feed.extend(rows)
                self._rows_sent += len(rows)
                is_all = len(rows) < PAGE  # rows committed meanwhile are published next
        except StoreError as error:  # the database is away: readers wait, nothing is lost
            log.warning("live readers wait for the database: %s", error)


def item_of(message: StoredMessage) -> dict[str, object]:
    """A message as lists and the live channel show it: the agent's content, or a person's rewrite."""
    content = message.raw if message.rewritten is None else message.rewritten
    signal = "pause" if message.state == "held" else None
    return {
        "message_id": message.message_id,
        "session_id": message.session_id,
        "step_id": message.step_id,
        "sequence_number": message.sequence_number,
        "message_type": message.message_type,
        "state": message.state,
        "parents": message.parents.split("\n") if message.parents else [],
        "parent_inferred": message.parent_inferred,
        # Set by the gateway for what it held or rewrote; an agent's own is in the message (ruling 24).
        "interrupt_signal": signal if message.rewritten is None else "rewrite",
        "rewritten": message.rewritten is not None,
        # The event that shredded its bytes; who and why is returned when the message is read by id.
        "shredded": None if message.shredded_by is None else {"event": message.shredded_by},
        "message": None if content is None or message.raw is None else scored(content, message.entropy),
    }


def scored(content: bytes, entropy: float | None) -> msgspec.Raw:
    """The content with the computed score in its place and the agent's own next to it (ruling 15).

    Everything else stays byte for byte; content that was not scored is returned as it is.
    """
    if entropy is None:
        return msgspec.Raw(content)
    sections = _sections(content)
    if sections.get("cognition", b"null") == b"null":  # a person's rewrite may have none
        return msgspec.Raw(content)
    cognition = _sections(sections["cognition"])
    reported = cognition.get("entropy_score")
    cognition["entropy_score"] = msgspec.Raw(msgspec.json.encode(entropy))
    cognition["reported_entropy_score"] = msgspec.Raw(b"null") if reported is None else reported
    sections["cognition"] = msgspec.Raw(msgspec.json.encode(cognition))
    return msgspec.Raw(msgspec.json.encode(sections))
