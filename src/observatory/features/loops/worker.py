"""The alarm daemon: hands the analyst's findings to the corridor, each once and in order.

Law: it decides nothing. Where it was is written by the acts themselves; it reads that once a tenant and goes
on from there, so a restart costs one row. A derived store that cannot be read is asked again next time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from observatory.errors import ObservatoryError
from observatory.features.loops import commands_findings as loop_alarms
from observatory.features.loops.types_findings import Findings
from observatory.runtime import worker_context as home
from observatory.runtime.metrics import Looks, Measure
from observatory.runtime.worker_context import Watch

# So many of a tenant at a time; the rest follows at the next look.
LIMIT = 500
EVERY_S = 0.5
log = logging.getLogger("observatory.alarms")


class Home(home.Home, Protocol):
    @property
    def clock(self) -> Callable[[], int]: ...


class Alarms:
    def __init__(self, house: Home, findings: Findings) -> None:
        self._house, self._findings = house, findings
        self._watch = Watch(house.store)
        self._cursors: dict[str, int] = {}
        self._looks = Looks("alarms")
        self._told = 0

    def measures(self) -> list[Measure]:
        told = Measure("observatory_alarms_told_total", "counter", "Findings put on record", self._told)
        return [told, *self._looks.measures()]

    async def run(self) -> None:
        """The daemon, apart from the house's clock: no deadline waits for a slow derived store."""
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                await self.look(self._house.clock())
            except ObservatoryError as error:  # found again next time
                log.warning("alarms of the analyst wait: %s", error)

    async def look(self, now_ns: int) -> int:
        """How many were told of; raises what the stores and the committer raise."""
        self._looks.look()
        told = 0
        for tenant_id, head in await self._watch.awake():
            folded = (await self._findings.progress(tenant_id)).seq
            found = await self._findings.findings(tenant_id, await self._cursor(tenant_id), LIMIT)
            if not found:
                if folded >= head:
                    self._watch.rest(tenant_id, head)
                continue
            who = self._house.principal_of_house(tenant_id)
            acts = [loop_alarms.tell(who, finding, now_ns) for finding in found]
            verdicts = await self._house.committer.submit(tenant_id, acts)
            told += sum(verdict.answer == 1 for verdict in verdicts)
            self._told += len(verdicts)
            self._cursors[tenant_id] = found[-1].finding_id
        return told

    async def _cursor(self, tenant_id: str) -> int:
        if tenant_id not in self._cursors:
            rows = await self._house.store.rows(tenant_id, "knobs", name=loop_alarms.CURSOR)
            self._cursors[tenant_id] = int(rows[0]["value"]) if rows else 0
        return self._cursors[tenant_id]
