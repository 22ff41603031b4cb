"""The bus between gateways: notices go to readers in this process at once, and by NATS to the others.

Law: as in memory, a notice is a level. Of each tenant the newest is sent, nothing queues behind a slow
network, and `publish` never waits. What another gateway says only wakes: the number told on is read from
the record, so a false notice can cost one look and nothing else. After every new connection all levels are
said again, and the others are asked for theirs, for NATS keeps none of them.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from observatory.bus.memory import MemoryBus
from observatory.bus.nats_line import NatsLine
from observatory.errors import StoreError
from observatory.pipeline.ports import Notice
from observatory.protocol.nats_wire import failures

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

log = logging.getLogger("observatory.nats")
GAP_S = 0.005  # between two messages: a busy gateway commits more often than others need be woken
LEVELS = 500  # tenants in one message
HEARD = 10_000  # tenants waiting to be looked at; who is left out is found by the clock
_TENANT = re.compile(r"[!-~]{1,128}").fullmatch
Head = Callable[[str], Awaitable[tuple[int, str]]]


class _Levels(msgspec.Struct):
    """No level at all is a question: who says it has just come, and has missed what the others said."""

    house: str
    gateway: str
    levels: dict[str, int]


class NatsBus:
    """`house` says which database this gateway stands on, `head` how far a tenant's record reaches there."""

    def __init__(
        self, line: NatsLine, local: MemoryBus, head: Head, house: Callable[[], Awaitable[str]]
    ) -> None:
        self.local = local
        self._line, self._head, self._house_of = line, head, house
        self._gateway = secrets.token_hex(8)
        self._house = ""
        self._levels: dict[str, int] = {}
        self._unsaid: set[str] = set()
        self._heard: dict[str, int] = {}
        self._speak, self._look = asyncio.Event(), asyncio.Event()
        self.said = self.heard = 0

    def publish(self, notice: Notice) -> None:
        self.local.publish(notice)
        if notice.sequence_number > self._levels.get(notice.tenant_id, 0):
            self._levels[notice.tenant_id] = notice.sequence_number
            self._unsaid.add(notice.tenant_id)
            self._speak.set()

    def subscribe(self) -> AsyncIterator[Notice]:
        return self.local.subscribe()

    async def run(self) -> None:
        """The daemon: say what is new here, and tell on what is new elsewhere."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tell_on())
            await self._line.serve(self._work)

    async def _work(self, client: Client) -> None:
        self._house = self._house or await self._house_of()
        notices = self._line.address.notice
        hearing = await client.subscribe(notices, cb=self._hear)
        try:
            await client.publish(notices, msgspec.json.encode(_Levels(self._house, self._gateway, {})))
            self._say_all()
            await self._say(client)
        finally:
            with suppress(*failures()):
                await hearing.unsubscribe()

    def _say_all(self) -> None:
        self._unsaid.update(self._levels)
        self._speak.set()

    async def _say(self, client: Client) -> None:
        while True:
            await self._speak.wait()
            self._speak.clear()
            while self._unsaid:
                named = [self._unsaid.pop() for _ in range(min(len(self._unsaid), LEVELS))]
                levels = {tenant_id: self._levels[tenant_id] for tenant_id in named}
                told = _Levels(self._house, self._gateway, levels)
                await client.publish(self._line.address.notice, msgspec.json.encode(told))
                self.said += len(named)
            await client.flush()
            await asyncio.sleep(GAP_S)

    async def _hear(self, message: Msg) -> None:
        try:
            told = msgspec.json.decode(message.data, type=_Levels)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return  # noise: whoever it is learns nothing, and the clock wakes readers all the same
        if told.house != self._house or told.gateway == self._gateway or len(told.levels) > LEVELS:
            return
        if not told.levels:
            self._say_all()
        for tenant_id, number in told.levels.items():
            known = max(self._levels.get(tenant_id, 0), self._heard.get(tenant_id, 0))
            if number > known and len(self._heard) < HEARD and _TENANT(tenant_id):
                self._heard[tenant_id] = number
                self._look.set()

    async def _tell_on(self) -> None:
        while True:
            await self._look.wait()
            self._look.clear()
            while self._heard:
                tenant_id = next(iter(self._heard))
                del self._heard[tenant_id]
                with suppress(StoreError):  # found by the clock when the database is back
                    number, _ = await self._head(tenant_id)
                    if number:
                        self.local.publish(Notice(tenant_id, number))
                        self.heard += 1
