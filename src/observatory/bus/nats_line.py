"""The gateway's connection to NATS: kept, made again when it breaks, and told of.

Law: NATS away means slower, never lost. Nobody waits for it but those whose work it carries, and what they
had begun is begun anew on the next connection. Only the address without user, password or token is shown.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from observatory.protocol.nats import Address
from observatory.protocol.nats_wire import NoNats, Rotation, Wire, close, ended, failures, is_forbidden, why

if TYPE_CHECKING:
    from nats.aio.client import Client

log = logging.getLogger("observatory.nats")
AGAIN_S = (0.1, 0.25, 0.5, 1.0, 2.0)  # between two tries; the last one stays
Work = Callable[["Client"], Awaitable[None]]


class NatsLine:
    """One for all that this gateway does over NATS."""

    def __init__(
        self, address: Address, clock: Callable[[], int] = time.time_ns, authority: str = ""
    ) -> None:
        self.address = address
        self._clock = clock
        self._servers = Rotation(address.servers, authority)
        self._wire: Wire | None = None
        self._up = asyncio.Event()
        self.away_since_ns: int | None = clock()
        self.last_error = ""
        self.trouble = ""  # of the connection there is
        self.connections = 0

    @property
    def client(self) -> Client | None:
        """The open connection, if there is one now."""
        return None if self._wire is None else self._wire.client

    async def run(self) -> None:
        """The daemon: connect, wait until that breaks, connect again."""
        tries = 0
        while True:
            try:
                wire = await self._servers.connect("observatory gateway", self._note)
            except NoNats as error:
                self._away(str(error), first=tries == 0)
                await asyncio.sleep(AGAIN_S[min(tries, len(AGAIN_S) - 1)])
                tries += 1
                continue
            tries = 0
            self._here(wire)
            try:
                await ended(wire)
            finally:
                self._wire = None
                self._up.clear()
                self.away_since_ns = self._clock()
                await close(wire)

    def _note(self, error: BaseException) -> None:
        self.last_error = why(error)
        if is_forbidden(error):
            self.trouble = self.last_error
            log.error("NATS: %s", self.trouble)

    def _here(self, wire: Wire) -> None:
        self._wire, self.away_since_ns, self.trouble = wire, None, ""
        self.connections += 1
        self._up.set()
        log.info("NATS is here: %s", self.address.shown)

    def _away(self, reason: str, first: bool) -> None:
        if first or reason != self.last_error:
            log.warning(
                "NATS is away (%s: %s); the gateway works without it, more slowly, and nothing is lost",
                self.address.shown,
                reason,
            )
        self.last_error = reason

    async def serve(self, work: Work) -> None:
        """Run `work` on every connection, one after another, for ever; it is cancelled when that breaks."""
        while True:
            await self._up.wait()
            wire = self._wire
            if wire is None:
                continue
            await self._served(wire, work)

    async def _served(self, wire: Wire, work: Work) -> None:
        working = asyncio.ensure_future(work(wire.client))
        closed = asyncio.ensure_future(wire.closed.wait())
        try:
            await asyncio.wait([working, closed], return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
        except NoNats as error:
            log.warning("NATS: %s; begun again", error)
            await asyncio.sleep(AGAIN_S[0])
        except failures() as error:
            is_new = why(error) != self.last_error
            self._note(error)
            log.log(logging.INFO if is_new else logging.DEBUG, "NATS: %s; begun again", self.last_error)
            if wire.client.is_closed:
                wire.closed.set()
            else:
                await asyncio.sleep(AGAIN_S[-1])
        finally:
            for task in (working, closed):
                task.cancel()
            await asyncio.gather(working, closed, return_exceptions=True)
