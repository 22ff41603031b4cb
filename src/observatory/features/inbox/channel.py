"""One agent's connection: deliveries ready to be sent on it, in order and repeated until acknowledged.

Law: the inbox in the database is the source of truth. A channel begins by reading what is pending, receives
what the dispatcher hands it, and reads again when it could not keep up: its buffer has at most `BUFFER`
deliveries or `BUFFER_BYTES`, regardless of its agent. What a kill switch withholds is not lost; it follows
when the switch is released. What is not acknowledged within a round is sent again in the next.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import msgspec

from observatory.errors import QueueFull
from observatory.pipeline.ports import InboxDelivery, PendingFilter
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import delivery_id
from observatory.protocol.otel import format_traceparent, read_context
from observatory.runtime.wait_for_wakeup import wait_for_wakeup

RETRY_S = 0.25
AGAIN = 1_000  # deliveries sent again in one round, the oldest first
BUFFER = 1_000
BUFFER_BYTES = 512 << 10


def item_of(delivery: InboxDelivery) -> dict[str, Any]:
    """A delivery in the form that every kind of channel sends."""
    traced = delivery.trace_id is not None and delivery.span_id is not None
    sender = {"agent_id": delivery.sender_id, "entity_id": delivery.sender_entity}
    return {
        "delivery_id": delivery_id((delivery.sequence_number, delivery.agent_no)),
        "sequence_number": delivery.sequence_number,
        "kind": delivery.kind,
        "session_id": delivery.session_id,
        "created_at": from_ns(delivery.created_ns),
        "traceparent": format_traceparent(str(delivery.trace_id), str(delivery.span_id)) if traced else None,
        "tracestate": _state_of(delivery.raw),
        "message_id": delivery.message_id,
        "message_type": delivery.message_type,
        "sender": sender if delivery.sender_entity is not None else None,
        "message": None if delivery.raw is None else msgspec.Raw(delivery.raw),
        "body": msgspec.Raw(delivery.body.encode() if delivery.body else b"{}"),
    }


class _Metadata(msgspec.Struct):
    traceparent: Any = None
    tracestate: Any = None


class _Carrier(msgspec.Struct):
    metadata: _Metadata | None = None


def _state_of(raw: bytes | None) -> str | None:
    """The `tracestate` in an envelope's metadata, if valid by W3C."""
    if raw is None or b'"tracestate"' not in raw:
        return None
    try:
        carried = msgspec.json.decode(raw, type=_Carrier).metadata
    except msgspec.DecodeError:
        return None
    context = None if carried is None else read_context(carried.traceparent, carried.tracestate)
    return None if context is None else context.state


def _weight(delivery: InboxDelivery) -> int:
    return len(delivery.raw or b"") + len(delivery.body or "") + 512


class DeliveryPage(msgspec.Struct, frozen=True):
    """Some deliveries of an inbox; `end` is the last number read when there may be more."""

    found: list[InboxDelivery]
    end: int | None


class DeliveryChannel:
    """One connection of one agent. `next` returns the deliveries to send on it, in order."""

    def __init__(
        self,
        agent_no: int,
        read: Callable[[PendingFilter], Awaitable[DeliveryPage]],
        redelivery_s: float,
        stopped: bool = False,
        access_version: int = 0,
    ) -> None:
        self.agent_no = agent_no
        self._access_version = access_version
        self._read, self._redelivery_s = read, redelivery_s
        self._stopped = stopped
        self._cursor = 0  # sent on this connection up to here
        self._withheld: int | None = None  # the first number a kill switch withheld
        self._buffer: deque[InboxDelivery] = deque()
        self._bytes = 0
        self._behind = True  # the database has more than the buffer
        self._floor = 0  # what was sent before the last round; sent again if still pending in the next
        self._round_at = time.monotonic() + redelivery_s
        self._wake = asyncio.Event()
        self._access_changed = False
        self.is_doubtful = False  # the key must be checked again before anything more is sent
        self.closing = False
        self.again = 0  # deliveries sent again on this connection

    @property
    def is_behind(self) -> bool:
        return self._behind

    @property
    def waiting(self) -> int:
        return len(self._buffer)

    def hand(self, delivery: InboxDelivery) -> None:
        """Called in order. What does not fit is read from the database later."""
        if self._behind:
            return
        full = len(self._buffer) >= BUFFER or self._bytes >= BUFFER_BYTES
        if full:
            self._behind = True
        else:
            self._buffer.append(delivery)
            self._bytes += _weight(delivery)
        self._wake.set()

    def fall_behind(self) -> None:
        self._behind = True
        self._wake.set()

    def rule(self, stopped: bool) -> None:
        if stopped != self._stopped:
            self._stopped = stopped
            self._wake.set()

    def look(self, access_version: int) -> None:
        """When access has changed, makes `next` return, so that the endpoint checks the key again."""
        if access_version != self._access_version:
            self._access_version = access_version
            self._access_changed = self.is_doubtful = True
            self._wake.set()

    def close(self) -> None:
        self.closing = True
        self._wake.set()

    async def next(self, wait_s: float) -> list[InboxDelivery]:
        """Deliveries to send now; empty when `wait_s` has passed or the endpoint must check the key."""
        until = time.monotonic() + wait_s
        while not self.closing:
            self._wake.clear()
            with suppress(QueueFull):  # a prompt could not be marked as given: retry shortly
                if found := await self._take():
                    return found
            if self._access_changed or time.monotonic() >= until:
                self._access_changed = False
                return []
            left = min(until, self._round_at) - time.monotonic()
            await wait_for_wakeup(self._wake, max(0.0, min(left, RETRY_S) if self._behind else left))
        return []

    async def _take(self) -> list[InboxDelivery]:
        if self._withheld is not None and not self._stopped and (found := await self._released()):
            return found
        while self._behind and not self._buffer:
            if found := await self._caught_up():
                return found
        found = self._passed([one for one in self._buffer if one.sequence_number > self._cursor])
        self._empty()
        if not found and time.monotonic() >= self._round_at:
            return await self._again()
        return found

    async def _caught_up(self) -> list[InboxDelivery]:
        """A page from the database. What is handed over from now on is committed after it, or is in it."""
        self._behind = False
        is_whole = False
        try:
            page = await self._page(after=self._cursor)
            is_whole = page.end is None
        finally:
            if not is_whole:
                self._behind = True
                self._empty()
        found = self._passed(page.found)
        self._cursor = max(self._cursor, page.end or 0)
        return found

    async def _released(self) -> list[InboxDelivery]:
        """The kill switch was released: what it withheld follows, in order."""
        assert self._withheld is not None
        page = await self._page(after=self._withheld - 1, until=self._cursor, kind="message")
        self._withheld = None if page.end is None else page.end + 1
        return page.found

    async def _again(self) -> list[InboxDelivery]:
        """Deliveries that were sent a round ago and are still not acknowledged."""
        self._round_at = time.monotonic() + self._redelivery_s
        floor, self._floor = self._floor, self._cursor
        found: list[InboxDelivery] = []
        after: int | None = 0
        while floor and after is not None and len(found) < AGAIN and sum(map(_weight, found)) < BUFFER_BYTES:
            page = await self._page(after=after, until=floor)
            found += page.found
            after = page.end
        passed = [one for one in found if not self._withholds(one)]
        self.again += len(passed)
        return passed

    async def _page(self, after: int, until: int | None = None, kind: str | None = None) -> DeliveryPage:
        self.is_doubtful = True  # unlike what is handed over, a page carries no access version
        return await self._read(PendingFilter(agent_no=self.agent_no, after=after, until=until, kind=kind))

    def _empty(self) -> None:
        self._buffer.clear()
        self._bytes = 0

    def _passed(self, found: list[InboxDelivery]) -> list[InboxDelivery]:
        if found:
            self._cursor = found[-1].sequence_number
        return [one for one in found if not self._withholds(one)]

    def _withholds(self, delivery: InboxDelivery) -> bool:
        if not self._stopped or delivery.kind != "message":
            return False
        if self._withheld is None or delivery.sequence_number < self._withheld:
            self._withheld = delivery.sequence_number
        return True
