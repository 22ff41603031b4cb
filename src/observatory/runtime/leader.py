"""Leader election among gateways: a job is done by the gateway that holds its lease.

Law: it only saves work. What a leader writes must be right without it, or is fenced: written only while its
epoch is the newest, in the same transaction (`ReadSet.leases`). Time is the database's; this process's
own monotonic clock only says when to ask again, counted from before the request, so a pause of any length is
noticed by the first check after it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable

from observatory.errors import ObservatoryError
from observatory.pipeline.ports import Leases
from observatory.protocol.identity import mint

# A lease is renewed after a third of its time; a gateway without it asks once a second.
RENEW = 1 / 3
ASK_S = 1.0
# Each gateway also holds its own lease: it shows which gateways are up and when each last reached the
# database.
PRESENT = "gateway/"
PRESENT_S = 9.0
log = logging.getLogger("observatory.leader")


class Leader:
    """The lease of one name, as this process knows it."""

    def __init__(
        self,
        leases: Leases,
        name: str,
        lease_s: float = 15.0,
        holder: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._leases, self.name, self.lease_s, self._clock = leases, name, lease_s, clock
        self.holder = holder or mint("gtw_", time.time_ns())
        self.epoch: int | None = None
        self._ask_at = self._over_at = clock()

    async def lead(self) -> int | None:
        """The epoch while this process holds the lease, acquiring or renewing it when needed; else None.

        While the database cannot be reached, a lease stays in force until it expires.
        """
        now = self._clock()
        if now < self._ask_at:
            return self.epoch if now < self._over_at else None
        try:
            epoch = await self._leases.hold_lease(self.name, self.holder, self.lease_s)
        except ObservatoryError as error:
            log.warning("it is not known whether this gateway is the leader of %s: %s", self.name, error)
            self._ask_at = self._clock() + ASK_S
            if self._clock() >= self._over_at:
                self.epoch = None
            return self.epoch
        if epoch != self.epoch:
            role = "is now the leader" if epoch is not None else "is no longer the leader"
            log.info("this gateway %s of %s (epoch %s)", role, self.name, epoch or self.epoch)
        self.epoch = epoch
        self._over_at = now + self.lease_s
        self._ask_at = self._clock() + (ASK_S if epoch is None else self.lease_s * RENEW)
        return epoch

    async def keep(self) -> None:
        """A worker's loop: renew the lease or wait for it, also during long work; release it at the end."""
        try:
            while True:
                await self.lead()
                await asyncio.sleep(ASK_S)
        finally:
            await self.resign()

    def doubt(self) -> None:
        """A fenced write was refused: check the lease before anything else is done."""
        self._ask_at = self._clock()

    async def resign(self, rest_s: float = 0.0) -> None:
        """Release the lease, so that another gateway need not wait for its end; if that fails it expires.

        For `rest_s` this process does not ask for it again.
        """
        if self.epoch is None:
            return
        self.epoch = None
        self._over_at = self._clock()
        self._ask_at = self._over_at + rest_s
        try:
            await self._leases.end_lease(self.name, self.holder)
        except ObservatoryError as error:
            log.warning("the lease of %s cannot be released and expires by itself: %s", self.name, error)


def presence(leases: Leases, port: int) -> Leader:
    """This gateway's own lease, named by its machine and port: a restart takes it over."""
    return Leader(leases, f"{PRESENT}{socket.gethostname()}:{port or os.getpid()}", PRESENT_S)
