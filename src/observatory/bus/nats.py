"""The bus between gateways: notices reach readers in this process at once, and other gateways over NATS.

Law: as in the in-process bus, a notice is a level. Only the newest of each tenant is sent, nothing queues
behind a slow network, and `publish` never waits. A notice from another gateway only wakes: the number passed
on is read from the record, so a false notice costs one read and nothing else. After every new connection all
levels are sent again, and the others are asked for theirs, because NATS stores none of them.
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
from observatory.bus.nats_link import NatsLink
from observatory.errors import StoreError
from observatory.pipeline.ports import CommitNotice
from observatory.protocol.nats_connection import failures

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

log = logging.getLogger("observatory.nats")
GAP_S = 0.005  # between two messages: a busy gateway commits more often than others need to be woken
MAX_LEVELS = 500  # tenants in one message
MAX_PENDING_LEVELS = 10_000  # tenants waiting to be read; readers of others wake by their timer
_TENANT = re.compile(r"[!-~]{1,128}").fullmatch
Head = Callable[[str], Awaitable[tuple[int, str]]]


class _Levels(msgspec.Struct):
    """The message on the wire. Without levels it is a request: a gateway that has just connected asks for
    them."""

    house: str
    gateway: str
    levels: dict[str, int]


class NatsBus:
    """`database_id` returns the id of this gateway's database, `head` how far a tenant's record reaches."""

    def __init__(
        self, line: NatsLink, local: MemoryBus, head: Head, database_id: Callable[[], Awaitable[str]]
    ) -> None:
        self.local = local
        self.line, self._head, self._database_id_of = line, head, database_id
        self._gateway = secrets.token_hex(8)
        self._database_id = ""
        self._levels: dict[str, int] = {}
        self._unsent: set[str] = set()
        self._pending_levels: dict[str, int] = {}
        self._send_wanted, self._read_wanted = asyncio.Event(), asyncio.Event()
        self.said = self.heard = 0

    def publish(self, notice: CommitNotice) -> None:
        self.local.publish(notice)
        if notice.sequence_number > self._levels.get(notice.tenant_id, 0):
            self._levels[notice.tenant_id] = notice.sequence_number
            self._unsent.add(notice.tenant_id)
            self._send_wanted.set()

    def subscribe(self) -> AsyncIterator[CommitNotice]:
        return self.local.subscribe()

    async def run(self) -> None:
        """The background worker: sends what is new here, and forwards what is new elsewhere to local
        readers."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._forward_received())
            await self.line.serve(self._work)

    async def _work(self, client: Client) -> None:
        self._database_id = self._database_id or await self._database_id_of()
        notices = self.line.address.notice
        subscription = await client.subscribe(notices, cb=self._on_message)
        try:
            await client.publish(notices, msgspec.json.encode(_Levels(self._database_id, self._gateway, {})))
            self._resend_all()
            await self._send_levels(client)
        finally:
            with suppress(*failures()):
                await subscription.unsubscribe()

    def _resend_all(self) -> None:
        self._unsent.update(self._levels)
        self._send_wanted.set()

    async def _send_levels(self, client: Client) -> None:
        while True:
            await self._send_wanted.wait()
            self._send_wanted.clear()
            while self._unsent:
                tenants = [self._unsent.pop() for _ in range(min(len(self._unsent), MAX_LEVELS))]
                levels = {tenant_id: self._levels[tenant_id] for tenant_id in tenants}
                message_levels = _Levels(self._database_id, self._gateway, levels)
                await client.publish(self.line.address.notice, msgspec.json.encode(message_levels))
                self.said += len(tenants)
            await client.flush()
            await asyncio.sleep(GAP_S)

    async def _on_message(self, message: Msg) -> None:
        try:
            message_levels = msgspec.json.decode(message.data, type=_Levels)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return  # invalid: ignored without a reply; readers wake by their timer anyway
        if (
            message_levels.house != self._database_id
            or message_levels.gateway == self._gateway
            or len(message_levels.levels) > MAX_LEVELS
        ):
            return
        if not message_levels.levels:
            self._resend_all()
        for tenant_id, number in message_levels.levels.items():
            known = max(self._levels.get(tenant_id, 0), self._pending_levels.get(tenant_id, 0))
            if number > known and len(self._pending_levels) < MAX_PENDING_LEVELS and _TENANT(tenant_id):
                self._pending_levels[tenant_id] = number
                self._read_wanted.set()

    async def _forward_received(self) -> None:
        while True:
            await self._read_wanted.wait()
            self._read_wanted.clear()
            while self._pending_levels:
                tenant_id = next(iter(self._pending_levels))
                del self._pending_levels[tenant_id]
                with suppress(StoreError):  # read by timer when the database is back
                    number, _ = await self._head(tenant_id)
                    if number:
                        self.local.publish(CommitNotice(tenant_id, number))
                        self.heard += 1
