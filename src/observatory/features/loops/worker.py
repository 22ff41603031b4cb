"""The findings worker: submits the analyst's findings to the pipeline, each once and in order.

Law: it decides nothing. The cursor is written by the commands themselves; it is read once a tenant, so a
restart costs one row. A derived store that cannot be read is retried at the next poll.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from observatory.errors import ObservatoryError
from observatory.features.loops import commands_findings as loop_alarms
from observatory.features.loops.types_findings import FindingReads
from observatory.runtime import worker_context as home
from observatory.runtime.metrics import Measure, PollCounter
from observatory.runtime.worker_context import TenantWatch

# Findings of a tenant per poll; the rest follows at the next one.
LIMIT = 500
EVERY_S = 0.5
log = logging.getLogger("observatory.alarms")


class FindingsContext(home.WorkerContext, Protocol):
    @property
    def clock(self) -> Callable[[], int]: ...


class FindingsWorker:
    def __init__(self, app: FindingsContext, findings: FindingReads) -> None:
        self._app, self._findings = app, findings
        self._watch = TenantWatch(app.store)
        self._cursors: dict[str, int] = {}
        self._polls = PollCounter("alarms")
        self._recorded = 0

    def measures(self) -> list[Measure]:
        recorded = Measure(
            "observatory_alerts_sent_total", "counter", "Detector findings recorded as events", self._recorded
        )
        return [recorded, *self._polls.measures()]

    async def run(self) -> None:
        """Runs separately from the other workers: no deadline waits for a slow derived store."""
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                await self.look(self._app.clock())
            except ObservatoryError as error:  # found again at the next poll
                log.warning("findings worker paused: store unavailable: %s", error)

    async def look(self, now_ns: int) -> int:
        """Returns how many were recorded; raises what the stores and the committer raise."""
        self._polls.look()
        recorded = 0
        for tenant_id, head in await self._watch.awake():
            folded = (await self._findings.progress(tenant_id)).seq
            found = await self._findings.findings(tenant_id, await self._cursor(tenant_id), LIMIT)
            if not found:
                if folded >= head:
                    self._watch.rest(tenant_id, head)
                continue
            principal = self._app.gateway_principal(tenant_id)
            commands = [loop_alarms.record_finding(principal, finding, now_ns) for finding in found]
            verdicts = await self._app.committer.submit(tenant_id, commands)
            recorded += sum(verdict.answer == 1 for verdict in verdicts)
            self._recorded += len(verdicts)
            self._cursors[tenant_id] = found[-1].finding_id
        return recorded

    async def _cursor(self, tenant_id: str) -> int:
        if tenant_id not in self._cursors:
            rows = await self._app.store.rows(tenant_id, "knobs", name=loop_alarms.CURSOR)
            self._cursors[tenant_id] = int(rows[0]["value"]) if rows else 0
        return self._cursors[tenant_id]
