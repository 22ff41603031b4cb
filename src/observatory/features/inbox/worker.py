"""The dispatcher: from committed deliveries to the open channels of agents. One in a process.

Law: at least once, in order of their numbers within a session, again until acknowledged. On every notice of
the bus for a tenant with open channels it asks once for what is new, whoever it is for, and hands it to the
channels; it also looks by itself every 250 ms, so that another gateway's rows arrive. An injected prompt is
marked as given before any channel gets it. What a channel does with its share is in `channel.py`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Protocol

from observatory.errors import GatewayStopped, NotDurable, QueueFull, StoreError
from observatory.features.inbox import commands as inbox
from observatory.features.inbox.channel import Channel, Page
from observatory.pipeline.ports import Archive, Arrived, Bus, Delivery, Directory, Inbox, Pending, Stops
from observatory.pipeline.state import Act, Principal, Submission, Verdict
from observatory.runtime.metrics import Looks, Measure
from observatory.runtime.wait_for_wakeup import woken

log = logging.getLogger("observatory.dispatcher")
LOOK_S = 0.25
GAP_S = 0.002  # between two looks: a busy tenant commits more often than anybody need ask
RULES_S = 0.9  # how old the word on kill-switches and access may be: with the look below a second
ARRIVALS = 500
CONTENTS = 50  # numbers read with their content at once, for all agents they go to
PAGE = 32  # pending deliveries read at once for one channel
Submit = Callable[[str, Sequence[Submission]], Awaitable[list[Verdict]]]
Enqueue = Callable[[str, Sequence[Submission]], Any]


class Books(Archive, Directory, Inbox, Protocol):
    """What the dispatcher reads."""


class Room:
    """One tenant's open channels, and how far its deliveries were handed out."""

    def __init__(self, tenant_id: str, head: int) -> None:
        self.tenant_id = tenant_id
        self.cursor: inbox.Key = (head, 1 << 62)
        self.channels: dict[int, list[Channel]] = {}
        self.stops = Stops()
        self.ruled_at = self.looked_at = 0.0

    def all(self) -> list[Channel]:
        return [channel for group in self.channels.values() for channel in group]


class Dispatcher:
    def __init__(
        self,
        books: Books,
        bus: Bus,
        submit: Submit,
        enqueue: Enqueue,
        redelivery_s: float,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._books, self._bus = books, bus
        self._submit, self._enqueue = submit, enqueue
        self.redelivery_s = redelivery_s
        self._clock = clock
        self._rooms: dict[str, Room] = {}
        self._wake = asyncio.Event()
        self._due: set[str] = set()
        self._owed: deque[Act] = deque(maxlen=10_000)
        self._looks = Looks("dispatcher")
        self._handed = self._again = 0

    def measures(self) -> list[Measure]:
        channels = [channel for room in self._rooms.values() for channel in room.all()]
        again = self._again + sum(channel.again for channel in channels)
        waiting = sum(channel.waiting for channel in channels)
        behind = sum(channel.is_behind for channel in channels)
        return [
            Measure("observatory_agent_channels", "gauge", "Channels of agents", len(channels)),
            Measure("observatory_deliveries_total", "counter", "Deliveries handed to channels", self._handed),
            Measure("observatory_redeliveries_total", "counter", "Deliveries sent again", again),
            Measure("observatory_deliveries_waiting", "gauge", "Deliveries ready in channels", waiting),
            Measure("observatory_channels_behind", "gauge", "Channels that read the database", behind),
            Measure("observatory_partings_owed", "gauge", "Closings not written yet", len(self._owed)),
            *self._looks.measures(),
        ]

    @property
    def channels(self) -> int:
        return sum(len(room.all()) for room in self._rooms.values())

    @asynccontextmanager
    async def open(self, tenant_id: str, welcome: inbox.Welcome) -> AsyncIterator[Channel]:
        room = self._rooms.get(tenant_id)
        if room is None:
            head, _ = await self._books.head(tenant_id)
            room = self._rooms.setdefault(tenant_id, Room(tenant_id, head))
        channel = Channel(welcome.agent_no, partial(self.page, tenant_id), self.redelivery_s, welcome.stopped)
        group = room.channels.setdefault(welcome.agent_no, [])
        group.append(channel)
        try:
            yield channel
        finally:
            self._again += channel.again
            group.remove(channel)
            if not group:
                room.channels.pop(welcome.agent_no, None)
            if not room.channels:
                self._rooms.pop(tenant_id, None)

    def part(self, act: Act) -> None:
        """Hand in the news that a channel closed. Never waits: the caller may be cancelled already."""
        try:
            self._enqueue(act.principal.tenant_id, [act])
        except QueueFull:
            self._owed.append(act)
        except GatewayStopped:
            log.info("a channel closed after the gateway had stopped to write")

    def close(self) -> None:
        """The process ends: every channel is let go, so that nobody waits for it."""
        for room in self._rooms.values():
            for channel in room.all():
                channel.close()

    async def page(self, tenant_id: str, where: Pending) -> Page:
        """Pending deliveries that may be sent."""
        rows = await self._books.pending(tenant_id, where, PAGE)
        end = rows[-1].sequence_number if len(rows) == PAGE else None
        return Page(await self._given(tenant_id, rows), end)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen())
            looked = 0.0
            while True:
                self._looks.look()
                due, self._due = self._due, set()
                now = time.monotonic()
                due |= {one.tenant_id for one in self._rooms.values() if now - one.looked_at >= LOOK_S}
                if now - looked >= LOOK_S:
                    looked = now
                    owed, self._owed = self._owed, deque(maxlen=self._owed.maxlen)
                    for act in owed:
                        self.part(act)
                for tenant_id in due & self._rooms.keys():
                    await self._advance(self._rooms[tenant_id])
                await asyncio.sleep(GAP_S)
                await woken(self._wake, LOOK_S)
                self._wake.clear()

    async def _listen(self) -> None:
        async for notice in self._bus.subscribe():
            if notice.tenant_id in self._rooms:
                self._due.add(notice.tenant_id)
                self._wake.set()

    async def _advance(self, room: Room) -> None:
        room.looked_at = time.monotonic()
        try:
            if time.monotonic() - room.ruled_at > RULES_S:
                await self._rule(room)
            while True:
                rows = await self._books.arrivals(room.tenant_id, room.cursor, ARRIVALS)
                if rows:
                    await self._hand_out(room, rows)
                    room.cursor = rows[-1][0], rows[-1][1]
                if len(rows) < ARRIVALS:
                    return
        except (StoreError, QueueFull) as error:  # the rows stay; whoever waits reads the database itself
            log.warning("agents wait for the database: %s", error)
            for channel in room.all():
                channel.fall_behind()

    async def _rule(self, room: Room) -> None:
        """Who is stopped, and whether anybody's access changed."""
        room.ruled_at = time.monotonic()
        room.stops = await self._books.stops(room.tenant_id)
        heads = await self._books.rows(room.tenant_id, "chain_heads")
        version = heads[0]["access_version"] if heads else 0
        for channel in room.all():
            channel.rule(room.stops.covers(channel.agent_no))
            channel.look(version)

    async def _hand_out(self, room: Room, rows: list[Arrived]) -> None:
        if any(row.kind in ("stop", "start") for row in rows):
            await self._rule(room)
        wanted: dict[int, list[inbox.Key]] = {}
        for number, agent_no, _, state, access_version in rows:
            channels = room.channels.get(agent_no, ())
            for channel in channels:
                channel.look(access_version)
            if state == "pending" and not all(channel.is_behind for channel in channels):
                wanted.setdefault(number, []).append((number, agent_no))
        numbers = list(wanted)
        for start in range(0, len(numbers), CONTENTS):
            keys = [key for number in numbers[start : start + CONTENTS] for key in wanted[number]]
            found = await self._books.deliveries(room.tenant_id, keys, True)
            for delivery in await self._given(room.tenant_id, found):
                for channel in room.channels.get(delivery.agent_no, ()):
                    channel.hand(delivery)
                    self._handed += 1

    async def _given(self, tenant_id: str, found: list[Delivery]) -> list[Delivery]:
        """Injected prompts are marked as given before anyone sends them; those withdrawn are left out."""
        fresh = [
            (one.sequence_number, one.agent_no)
            for one in found
            if one.kind == "inject" and one.given_ns is None
        ]
        if not fresh:
            return found
        house = Principal(tenant_id=tenant_id, role="admin", key_id="sys_gateway")
        [verdict] = await self._submit(tenant_id, [inbox.take(house, fresh, self._clock())])
        if verdict.code != 200:
            raise NotDurable("what was injected could not be marked as given")
        refused = set(fresh) - set(verdict.answer)
        return [one for one in found if (one.sequence_number, one.agent_no) not in refused]
