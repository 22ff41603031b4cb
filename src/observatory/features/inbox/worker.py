"""The dispatcher: hands committed deliveries to the open channels of agents. One per process.

Law: at least once, in order of their numbers within a session, repeated until acknowledged. On every bus
notification for a tenant with open channels it reads once what is new, for all agents, and hands it to the
channels; it also polls every 250 ms, so that rows of other gateways arrive. An injected prompt is marked as
given before any channel gets it. How a channel sends its share is in `channel.py`.
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
from observatory.features.inbox.channel import DeliveryChannel, DeliveryPage
from observatory.pipeline.ports import (
    Archive,
    Bus,
    CommittedDelivery,
    Directory,
    Inbox,
    InboxDelivery,
    KillSwitchCoverage,
    PendingFilter,
)
from observatory.pipeline.state import Command, Principal, Submission, SubmissionResult
from observatory.protocol.identity import DeliveryKey
from observatory.runtime.metrics import Measure, PollCounter
from observatory.runtime.wait_for_wakeup import wait_for_wakeup

log = logging.getLogger("observatory.dispatcher")
POLL_S = 0.25
GAP_S = 0.002  # between two polls: a busy tenant commits more often than necessary to poll
RULES_S = 0.9  # maximum age of what is known of kill switches and access: with the poll below a second
ARRIVALS = 500
CONTENTS = 50  # numbers read with their content at once, for all agents they go to
PAGE = 32  # pending deliveries read at once for one channel
Submit = Callable[[str, Sequence[Submission]], Awaitable[list[SubmissionResult]]]
Enqueue = Callable[[str, Sequence[Submission]], Any]


class DispatcherReads(Archive, Directory, Inbox, Protocol):
    """The stores the dispatcher reads."""


class _TenantChannels:
    """One tenant's open channels, and up to which number its deliveries were handed out."""

    def __init__(self, tenant_id: str, head: int) -> None:
        self.tenant_id = tenant_id
        self.cursor: DeliveryKey = (head, 1 << 62)
        self.channels: dict[int, list[DeliveryChannel]] = {}
        self.stops = KillSwitchCoverage()
        self.rules_read_at = self.polled_at = 0.0

    def all(self) -> list[DeliveryChannel]:
        return [channel for group in self.channels.values() for channel in group]


class Dispatcher:
    def __init__(
        self,
        books: DispatcherReads,
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
        self._tenants: dict[str, _TenantChannels] = {}
        self._wake = asyncio.Event()
        self._due: set[str] = set()
        self._pending_disconnects: deque[Command] = deque(maxlen=10_000)
        self._polls = PollCounter("dispatcher")
        self._handed = self._again = 0

    def measures(self) -> list[Measure]:
        channels = [channel for tenant in self._tenants.values() for channel in tenant.all()]
        again = self._again + sum(channel.again for channel in channels)
        waiting = sum(channel.waiting for channel in channels)
        behind = sum(channel.is_behind for channel in channels)
        return [
            Measure("observatory_agent_channels", "gauge", "Open agent channels", len(channels)),
            Measure("observatory_deliveries_total", "counter", "Deliveries handed to channels", self._handed),
            Measure("observatory_redeliveries_total", "counter", "Deliveries sent again", again),
            Measure("observatory_deliveries_waiting", "gauge", "Deliveries ready in channels", waiting),
            Measure("observatory_channels_behind", "gauge", "Channels that read the database", behind),
            Measure(
                "observatory_channel_disconnects_pending",
                "gauge",
                "Channel disconnects not recorded yet",
                len(self._pending_disconnects),
            ),
            *self._polls.measures(),
        ]

    @property
    def channels(self) -> int:
        return sum(len(tenant.all()) for tenant in self._tenants.values())

    @asynccontextmanager
    async def open(self, tenant_id: str, welcome: inbox.ConnectedAgent) -> AsyncIterator[DeliveryChannel]:
        tenant = self._tenants.get(tenant_id)
        if tenant is None:
            head, _ = await self._books.head(tenant_id)
            tenant = self._tenants.setdefault(tenant_id, _TenantChannels(tenant_id, head))
        channel = DeliveryChannel(
            welcome.agent_no, partial(self.page, tenant_id), self.redelivery_s, welcome.stopped
        )
        group = tenant.channels.setdefault(welcome.agent_no, [])
        group.append(channel)
        try:
            yield channel
        finally:
            self._again += channel.again
            group.remove(channel)
            if not group:
                tenant.channels.pop(welcome.agent_no, None)
            if not tenant.channels:
                self._tenants.pop(tenant_id, None)

    def part(self, command: Command) -> None:
        """Enqueues the event that a channel closed. Never waits: the caller may be cancelled already."""
        try:
            self._enqueue(command.principal.tenant_id, [command])
        except QueueFull:
            self._pending_disconnects.append(command)
        except GatewayStopped:
            log.info("a channel closed after the gateway had stopped writing")

    def close(self) -> None:
        """Shutdown: closes every channel, so that no request waits for it."""
        for tenant in self._tenants.values():
            for channel in tenant.all():
                channel.close()

    async def page(self, tenant_id: str, where: PendingFilter) -> DeliveryPage:
        """Pending deliveries that may be sent."""
        rows = await self._books.pending(tenant_id, where, PAGE)
        end = rows[-1].sequence_number if len(rows) == PAGE else None
        return DeliveryPage(await self._given(tenant_id, rows), end)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen())
            polled = 0.0
            while True:
                self._polls.look()
                due, self._due = self._due, set()
                now = time.monotonic()
                due |= {one.tenant_id for one in self._tenants.values() if now - one.polled_at >= POLL_S}
                if now - polled >= POLL_S:
                    polled = now
                    owed, self._pending_disconnects = (
                        self._pending_disconnects,
                        deque(maxlen=self._pending_disconnects.maxlen),
                    )
                    for command in owed:
                        self.part(command)
                for tenant_id in due & self._tenants.keys():
                    await self._advance(self._tenants[tenant_id])
                await asyncio.sleep(GAP_S)
                await wait_for_wakeup(self._wake, POLL_S)
                self._wake.clear()

    async def _listen(self) -> None:
        async for notice in self._bus.subscribe():
            if notice.tenant_id in self._tenants:
                self._due.add(notice.tenant_id)
                self._wake.set()

    async def _advance(self, tenant: _TenantChannels) -> None:
        tenant.polled_at = time.monotonic()
        try:
            if time.monotonic() - tenant.rules_read_at > RULES_S:
                await self._read_rules(tenant)
            while True:
                rows = await self._books.arrivals(tenant.tenant_id, tenant.cursor, ARRIVALS)
                if rows:
                    await self._hand_out(tenant, rows)
                    tenant.cursor = rows[-1][0], rows[-1][1]
                if len(rows) < ARRIVALS:
                    return
        except (StoreError, QueueFull) as error:  # the rows stay; channels read the database themselves
            log.warning("deliveries paused: store unavailable: %s", error)
            for channel in tenant.all():
                channel.fall_behind()

    async def _read_rules(self, tenant: _TenantChannels) -> None:
        """Reads which agents are stopped, and the access version of the tenant."""
        tenant.rules_read_at = time.monotonic()
        tenant.stops = await self._books.stops(tenant.tenant_id)
        heads = await self._books.rows(tenant.tenant_id, "chain_heads")
        version = heads[0]["access_version"] if heads else 0
        for channel in tenant.all():
            channel.rule(tenant.stops.covers(channel.agent_no))
            channel.look(version)

    async def _hand_out(self, tenant: _TenantChannels, rows: list[CommittedDelivery]) -> None:
        if any(row.kind in ("stop", "start") for row in rows):
            await self._read_rules(tenant)
        keys_by_number: dict[int, list[DeliveryKey]] = {}
        for number, agent_no, _, state, access_version in rows:
            channels = tenant.channels.get(agent_no, ())
            for channel in channels:
                channel.look(access_version)
            if state == "pending" and not all(channel.is_behind for channel in channels):
                keys_by_number.setdefault(number, []).append((number, agent_no))
        numbers = list(keys_by_number)
        for start in range(0, len(numbers), CONTENTS):
            keys = [key for number in numbers[start : start + CONTENTS] for key in keys_by_number[number]]
            found = await self._books.deliveries(tenant.tenant_id, keys, True)
            for delivery in await self._given(tenant.tenant_id, found):
                for channel in tenant.channels.get(delivery.agent_no, ()):
                    channel.hand(delivery)
                    self._handed += 1

    async def _given(self, tenant_id: str, found: list[InboxDelivery]) -> list[InboxDelivery]:
        """Marks injected prompts as given before they are sent; withdrawn ones are left out."""
        fresh = [
            (one.sequence_number, one.agent_no)
            for one in found
            if one.kind == "inject" and one.given_ns is None
        ]
        if not fresh:
            return found
        gateway = Principal(tenant_id=tenant_id, role="admin", key_id="sys_gateway")
        [verdict] = await self._submit(tenant_id, [inbox.mark_given(gateway, fresh, self._clock())])
        if verdict.code != 200:
            raise NotDurable("injected prompts could not be marked as given")
        refused = set(fresh) - set(verdict.answer)
        return [one for one in found if (one.sequence_number, one.agent_no) not in refused]
