"""The gateway's connection to NATS: monitored, and reconnected when it breaks.

Law: without NATS the gateway is slower, but nothing is lost. Only work carried by NATS waits for it, and is
restarted on the next connection. Only the address without user, password or token is ever displayed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from observatory.protocol.nats import NatsAddress
from observatory.protocol.nats_connection import (
    NatsConnection,
    NatsUnavailable,
    ServerRotation,
    close,
    failures,
    is_forbidden,
    reason_of,
    wait_disconnected,
)

if TYPE_CHECKING:
    from nats.aio.client import Client

log = logging.getLogger("observatory.nats")
RETRY_DELAYS_S = (0.1, 0.25, 0.5, 1.0, 2.0)  # between two attempts; the last one repeats
Work = Callable[["Client"], Awaitable[None]]


class NatsLink:
    """The one connection for everything this gateway does over NATS."""

    def __init__(
        self, address: NatsAddress, clock: Callable[[], int] = time.time_ns, authority: str = ""
    ) -> None:
        self.address = address
        self._clock = clock
        self._servers = ServerRotation(address.servers, authority)
        self._wire: NatsConnection | None = None
        self._up = asyncio.Event()
        self.away_since_ns: int | None = clock()
        self.last_error = ""
        self.trouble = ""  # of the current connection
        self.connections = 0

    @property
    def client(self) -> Client | None:
        """The client of the open connection, if there is one."""
        return None if self._wire is None else self._wire.client

    async def run(self) -> None:
        """The background worker: connects, waits until the connection breaks, connects again."""
        tries = 0
        while True:
            try:
                wire = await self._servers.connect("observatory gateway", self._record_error)
            except NatsUnavailable as error:
                self._disconnected(str(error), first=tries == 0)
                await asyncio.sleep(RETRY_DELAYS_S[min(tries, len(RETRY_DELAYS_S) - 1)])
                tries += 1
                continue
            tries = 0
            self._connected(wire)
            try:
                await wait_disconnected(wire)
            finally:
                self._wire = None
                self._up.clear()
                self.away_since_ns = self._clock()
                await close(wire)

    def _record_error(self, error: BaseException) -> None:
        self.last_error = reason_of(error)
        if is_forbidden(error):
            self.trouble = self.last_error
            log.error("NATS: %s", self.trouble)

    def _connected(self, wire: NatsConnection) -> None:
        self._wire, self.away_since_ns, self.trouble = wire, None, ""
        self.connections += 1
        self._up.set()
        log.info("NATS connected: %s", self.address.shown)

    def _disconnected(self, reason: str, first: bool) -> None:
        if first or reason != self.last_error:
            log.warning(
                "NATS unreachable (%s: %s); the gateway continues without it, more slowly; nothing is lost",
                self.address.shown,
                reason,
            )
        self.last_error = reason

    async def serve(self, work: Work) -> None:
        """Run `work` on every connection, one after another, forever; it is cancelled when the connection
        breaks."""
        while True:
            await self._up.wait()
            wire = self._wire
            if wire is None:
                continue
            await self._run_on(wire, work)

    async def _run_on(self, wire: NatsConnection, work: Work) -> None:
        working = asyncio.ensure_future(work(wire.client))
        closed = asyncio.ensure_future(wire.closed.wait())
        try:
            await asyncio.wait([working, closed], return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
        except NatsUnavailable as error:
            log.warning("NATS: %s; restarting", error)
            await asyncio.sleep(RETRY_DELAYS_S[0])
        except failures() as error:
            is_new = reason_of(error) != self.last_error
            self._record_error(error)
            log.log(logging.INFO if is_new else logging.DEBUG, "NATS: %s; restarting", self.last_error)
            if wire.client.is_closed:
                wire.closed.set()
            else:
                await asyncio.sleep(RETRY_DELAYS_S[-1])
        finally:
            for task in (working, closed):
                task.cancel()
            await asyncio.gather(working, closed, return_exceptions=True)
