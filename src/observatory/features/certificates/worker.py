"""Certificates at work: who showed which is noted behind the requests, and what ends soon is a level.

Laws: noting costs a request one look into memory; it is written at first sight of a key with a certificate
and then once a minute, all that came within a second together, and when the store is away it waits, bounded.
What was not verified never comes here.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol

from observatory.errors import ObservatoryError
from observatory.features.alerting.evaluation import Reading, Readings
from observatory.features.certificates.commands import Shown, note
from observatory.features.certificates.inventory import Entry, bound_of, days_left, inventory
from observatory.pipeline.state import Principal
from observatory.protocol.certificates import Certificate
from observatory.protocol.clock import from_ns
from observatory.runtime import worker_context as home
from observatory.runtime.metrics import Measure
from observatory.runtime.tls import Tls

AGAIN_S = 60.0
MOST_KNOWN = 10_000  # pairs of key and certificate whose last note is remembered
MOST_WAITING = 2_000  # certificates that wait to be written; beyond it a note comes again with the next use
RETRY_S = 5.0
TOGETHER_S = (
    1.0  # a thousand agents, noted one by one, would each cost the tenant's lane a look at all places
)
SEEN_S = 3_600.0  # one nobody showed for so long was rotated out, for all the metric knows
log = logging.getLogger("observatory.tls")


class Home(home.Home, Protocol):
    @property
    def clock(self) -> Callable[[], int]: ...


class Certificates:
    def __init__(self, house: Home, tls: Tls | None) -> None:
        self._house, self.tls = house, tls
        self._noted: OrderedDict[tuple[str, str, str], tuple[float, int]] = OrderedDict()
        self._waiting: dict[tuple[str, str], Shown] = {}
        self._wake = asyncio.Event()

    def note(self, who: Principal) -> None:
        """Somebody is known by a key and has proved to hold a certificate."""
        shown = who.certificate
        assert shown is not None
        key = (who.tenant_id, shown.fingerprint, who.key_id)
        now = time.monotonic()
        before = self._noted.get(key)
        if before is not None and now - before[0] < AGAIN_S:
            return
        place = key[:2]
        if place not in self._waiting and len(self._waiting) >= MOST_WAITING:
            return
        self._noted[key] = (now, shown.not_after_ns)
        self._noted.move_to_end(key)
        if len(self._noted) > MOST_KNOWN:
            self._noted.popitem(last=False)
        waiting = self._waiting.get(place)
        keys = (who.key_id, *(() if waiting is None else waiting.key_ids))
        self._waiting[place] = Shown(shown, self._house.clock(), tuple(dict.fromkeys(keys)))
        self._wake.set()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            try:
                await self.write()
                await asyncio.sleep(TOGETHER_S)
            except ObservatoryError as error:
                log.warning("certificates that were shown wait to be noted: %s", error)
                await asyncio.sleep(RETRY_S)

    async def write(self) -> int:
        """How many were noted; raises what the committer raises, and then nothing is forgotten."""
        self._wake.clear()
        by_tenant: dict[str, list[Shown]] = {}
        for (tenant_id, _), one in self._waiting.items():
            by_tenant.setdefault(tenant_id, []).append(one)
        done = 0
        for tenant_id, shown in by_tenant.items():
            act = note(self._house.principal_of_house(tenant_id), shown, self._house.clock())
            try:
                [verdict] = await self._house.committer.submit(tenant_id, [act])
            except ObservatoryError:
                self._wake.set()
                raise
            if verdict.code != 200:
                log.warning("certificates of %s could not be noted (%s)", tenant_id, verdict.code)
            for one in shown:
                place = (tenant_id, one.certificate.fingerprint)
                if self._waiting.get(place) is one:
                    del self._waiting[place]
            done += len(shown)
        return done

    async def entries(self, tenant_id: str, now_ns: int) -> list[Entry]:
        """The tenant's inventory: the gateway's own, and what its own agents and people showed."""
        rows: Any = self._house.store.rows
        shown = await rows(tenant_id, "certificates")
        bound = bound_of(await rows(tenant_id, "agent_certificates", removed_ns=None))
        agents = (
            await rows(tenant_id, "agents", certificate=[row["fingerprint"] for row in shown])
            if shown
            else []
        )
        speakers: dict[str, list[str]] = {}
        for row in agents:
            speakers.setdefault(row["certificate"], []).append(row["agent_id"])
        server, authorities = self.configured
        days = self._house.settings.certificate_days
        return inventory(server, authorities, shown, speakers, bound, now_ns, days)

    @property
    def configured(self) -> tuple[Certificate | None, tuple[Certificate, ...]]:
        return (None, ()) if self.tls is None else (self.tls.loaded.server, self.tls.loaded.authorities)

    async def readings(self, tenant_id: str, now_ns: int) -> Readings:
        """For alert rules: 1 when one in use ends soon or could not be replaced, 2 once it has ended."""
        found: Readings = {}
        for one in await self.entries(tenant_id, now_ns):
            value = {"expiring": 1, "expired": 2}.get(one.standing, 0)
            broken = self.tls.problem if one.use == "server" and self.tls is not None else None
            if not one.is_used or not (value or broken):
                continue
            facts = one.certificate
            figures = {
                "use": one.use,
                "subject": facts.subject[:200],
                "fingerprint": facts.fingerprint,
                "ends": from_ns(facts.not_after_ns),
                "days_left": str(days_left(facts, now_ns)),
                "agents": ", ".join(one.agents[:5]),
            }
            if broken:
                figures["problem"] = broken[:256]
            found[f"certificate:{one.use}:{facts.fingerprint[:16]}"] = Reading(max(value, 1), figures)
        return found

    def measures(self) -> list[Measure]:
        made = [] if self.tls is None else self.tls.measures()
        made.append(
            Measure("observatory_certificates_waiting", "gauge", "Waiting to be noted", len(self._waiting))
        )
        since = time.monotonic() - SEEN_S
        ends = [at for seen, at in self._noted.values() if seen >= since]
        if ends:
            made.append(
                Measure(
                    "observatory_certificate_seconds_left",
                    "gauge",
                    "Until the soonest certificate of this use ends; negative once it has",
                    (min(ends) - time.time_ns()) / 1e9,
                    {"use": "client"},
                )
            )
        return made
