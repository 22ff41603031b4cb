"""Who of several gateways does a thing: whoever holds its lease.

Law: it only saves work. What a leader writes must be right without it, or is fenced: written only while its
epoch is the newest, in the same transaction (`state.Wants.leases`). Time is the database's; this process's
own monotonic clock only says when to ask again, counted from before the asking, so a pause of any length is
noticed by the first look after it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable

from observatory.errors import ObservatoryError
from observatory.features.schedule.types_rows import Leases
from observatory.protocol.identity import mint

# A lease is renewed after a third of its time; whoever has it not asks once a second.
RENEW = 1 / 3
ASK_S = 1.0
# Each gateway holds one of its own: who is there, and when it was last in touch with the database.
PRESENT = "gateway/"
PRESENT_S = 9.0
log = logging.getLogger("observatory.leader")


class Leader:
    """One name's lease, as one process knows it."""

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
        """The epoch while this process holds the lease, taking or renewing it when needed; else None.

        A database that cannot be asked leaves a lease standing until its time is over.
        """
        now = self._clock()
        if now < self._ask_at:
            return self.epoch if now < self._over_at else None
        try:
            epoch = await self._leases.hold_lease(self.name, self.holder, self.lease_s)
        except ObservatoryError as error:
            log.warning("whether this gateway leads in %s is not known: %s", self.name, error)
            self._ask_at = self._clock() + ASK_S
            if self._clock() >= self._over_at:
                self.epoch = None
            return self.epoch
        if epoch != self.epoch:
            told = "leads" if epoch is not None else "no longer leads"
            log.info("this gateway %s in %s (epoch %s)", told, self.name, epoch or self.epoch)
        self.epoch = epoch
        self._over_at = now + self.lease_s
        self._ask_at = self._clock() + (ASK_S if epoch is None else self.lease_s * RENEW)
        return epoch

    async def keep(self) -> None:
        """A daemon: the lease is renewed, or waited for, also while its work takes long; freed at the end."""
        try:
            while True:
                await self.lead()
                await asyncio.sleep(ASK_S)
        finally:
            await self.resign()

    def doubt(self) -> None:
        """A fenced write was refused: ask the database before anything else is done."""
        self._ask_at = self._clock()

    async def resign(self, rest_s: float = 0.0) -> None:
        """Free the lease, so that another need not wait for its end; a database that is away ends it too.

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
            log.warning("the lease of %s ends by itself: %s", self.name, error)


def presence(leases: Leases, port: int) -> Leader:
    """This gateway's own lease, by the name of its machine and its port: a restart takes it over."""
    return Leader(leases, f"{PRESENT}{socket.gethostname()}:{port or os.getpid()}", PRESENT_S)
