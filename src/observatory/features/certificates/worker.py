"""The certificate worker: records presented certificates, and reports expiry as a level for alert rules.

Recording costs a request one memory lookup; rows are written when a key is first seen with a certificate and
then once a minute, batched over a second. When the store is unavailable they wait, bounded. Only verified
certificates reach this code.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol

from observatory.errors import ObservatoryError
from observatory.features.alerting.types_readings import LevelReading, LevelReadings
from observatory.features.certificates.commands import PresentedCertificate, record_presented
from observatory.features.certificates.inventory import InventoryEntry, bindings_of, days_left, inventory
from observatory.pipeline.state import Principal
from observatory.protocol.certificates import Certificate
from observatory.protocol.clock import from_ns
from observatory.runtime import worker_context as home
from observatory.runtime.metrics import Measure
from observatory.runtime.tls import Tls

AGAIN_S = 60.0
MAX_KNOWN = 10_000  # (key, certificate) pairs whose last write is remembered
MAX_WAITING = 2_000  # certificates waiting to be written; beyond it the next use retries
RETRY_S = 5.0
TOGETHER_S = 1.0  # without batching, each of a thousand agents would make the tenant's lane read all slots
SEEN_S = 3_600.0  # one not presented for this long counts as rotated out for the metric
log = logging.getLogger("observatory.tls")


class CertificateWorkerContext(home.WorkerContext, Protocol):
    @property
    def clock(self) -> Callable[[], int]: ...


class CertificateWorker:
    def __init__(self, app: CertificateWorkerContext, tls: Tls | None) -> None:
        self._app, self.tls = app, tls
        self._noted: OrderedDict[tuple[str, str, str], tuple[float, int]] = OrderedDict()
        self._waiting: dict[tuple[str, str], PresentedCertificate] = {}
        self._wake = asyncio.Event()

    def note(self, who: Principal) -> None:
        """An authenticated caller presented a certificate."""
        presented = who.certificate
        assert presented is not None
        key = (who.tenant_id, presented.fingerprint, who.key_id)
        now = time.monotonic()
        before = self._noted.get(key)
        if before is not None and now - before[0] < AGAIN_S:
            return
        certificate_key = key[:2]
        if certificate_key not in self._waiting and len(self._waiting) >= MAX_WAITING:
            return
        self._noted[key] = (now, presented.not_after_ns)
        self._noted.move_to_end(key)
        if len(self._noted) > MAX_KNOWN:
            self._noted.popitem(last=False)
        waiting = self._waiting.get(certificate_key)
        keys = (who.key_id, *(() if waiting is None else waiting.key_ids))
        self._waiting[certificate_key] = PresentedCertificate(
            presented, self._app.clock(), tuple(dict.fromkeys(keys))
        )
        self._wake.set()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            try:
                await self.write()
                await asyncio.sleep(TOGETHER_S)
            except ObservatoryError as error:
                log.warning("presented certificates are not stored yet: %s", error)
                await asyncio.sleep(RETRY_S)

    async def write(self) -> int:
        """How many were written; raises what the committer raises, and then nothing is lost."""
        self._wake.clear()
        by_tenant: dict[str, list[PresentedCertificate]] = {}
        for (tenant_id, _), one in self._waiting.items():
            by_tenant.setdefault(tenant_id, []).append(one)
        done = 0
        for tenant_id, presented in by_tenant.items():
            act = record_presented(self._app.gateway_principal(tenant_id), presented, self._app.clock())
            try:
                [verdict] = await self._app.committer.submit(tenant_id, [act])
            except ObservatoryError:
                self._wake.set()
                raise
            if verdict.code != 200:
                log.warning(
                    "presented certificates of tenant %s could not be stored (%s)", tenant_id, verdict.code
                )
            for one in presented:
                certificate_key = (tenant_id, one.certificate.fingerprint)
                if self._waiting.get(certificate_key) is one:
                    del self._waiting[certificate_key]
            done += len(presented)
        return done

    async def entries(self, tenant_id: str, now_ns: int) -> list[InventoryEntry]:
        """The tenant's inventory: the gateway's own, and what its agents and users presented."""
        rows: Any = self._app.store.rows
        presented = await rows(tenant_id, "certificates")
        bound = bindings_of(await rows(tenant_id, "agent_certificates", removed_ns=None))
        agents = (
            await rows(tenant_id, "agents", certificate=[row["fingerprint"] for row in presented])
            if presented
            else []
        )
        speakers: dict[str, list[str]] = {}
        for row in agents:
            speakers.setdefault(row["certificate"], []).append(row["agent_id"])
        server, authorities = self.configured
        days = self._app.settings.certificate_days
        return inventory(server, authorities, presented, speakers, bound, now_ns, days)

    @property
    def configured(self) -> tuple[Certificate | None, tuple[Certificate, ...]]:
        return (None, ()) if self.tls is None else (self.tls.loaded.server, self.tls.loaded.authorities)

    async def readings(self, tenant_id: str, now_ns: int) -> LevelReadings:
        """For alert rules: 1 when one in use expires soon or could not be replaced, 2 once it has expired."""
        found: LevelReadings = {}
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
            found[f"certificate:{one.use}:{facts.fingerprint[:16]}"] = LevelReading(max(value, 1), figures)
        return found

    def measures(self) -> list[Measure]:
        measures = [] if self.tls is None else self.tls.measures()
        measures.append(
            Measure(
                "observatory_certificates_waiting",
                "gauge",
                "Presented certificates waiting to be stored",
                len(self._waiting),
            )
        )
        since = time.monotonic() - SEEN_S
        ends = [at for seen, at in self._noted.values() if seen >= since]
        if ends:
            measures.append(
                Measure(
                    "observatory_certificate_seconds_left",
                    "gauge",
                    "Seconds until the earliest expiry of this use; negative once expired",
                    (min(ends) - time.time_ns()) / 1e9,
                    {"use": "client"},
                )
            )
        return measures
