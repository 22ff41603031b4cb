"""The projector, the analyst's loop: a cursor per tenant over the record, folds, one transaction a batch.

Law: it never stops and never counts twice. While a database is away it waits and retries. A batch that fails
otherwise is folded again, then in halves until the failing event is alone; then only the folds that fail on
it skip it, and it is counted. It yields to the gateway: while far more arrives than it can fold it rests
(`backpressure.py`).

Nothing is done twice: a tenant is claimed before anything of it is read, and kept while it has work, because
its cached data serves the next batch; an analyst that is behind on several offers them to others in turn.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from itertools import combinations

from observatory.derived.ports import Commits, DerivedWriter
from observatory.derived.seen import Batch, DerivedWrite, Finding, Fold
from observatory.errors import NotDurable
from observatory.pipeline.ports import CommitNotice
from observatory.runtime.backpressure import AnalystBackpressure
from observatory.runtime.record_reader import BatchReader, time_of
from observatory.runtime.wait_for_wakeup import wait_for_wakeup

log = logging.getLogger("observatory.analyst")
PAGE = 500
LOOK_S = 0.2  # a quiet record is folded a few messages at a time, not each by itself
MAX_PAUSE_S = 5.0
LOST_S = 1.0  # pause for a tenant that another analyst folds or is offered
IDLE_S = 5.0  # a claim is released when nothing was folded for this long
TURN_S = (
    10.0  # after this long one of several tenants is offered to others while it has more than a page to do
)
MAX_CLAIMS = 500  # of one analyst: a database supports some thousands
REFRESH_S = 60.0  # cached data of agents may change: their type, their cluster


class Projector:
    def __init__(
        self,
        store: Commits,
        derived: DerivedWriter,
        folds: Sequence[Fold],
        page: int = PAGE,
        look_s: float = LOOK_S,
        busy: Callable[[], float] = time.monotonic,
    ) -> None:
        """`busy` returns how long this process has used the cores so far."""
        self._store, self._derived, self._folds = store, derived, folds
        self._page, self._look_s, self._busy = page, look_s, busy
        self._reading = BatchReader(store)
        self._cursors: dict[str, int] = {}
        self._limits: dict[str, int] = {}  # smaller batches of a tenant that failed lately
        self._failed: dict[str, int] = {}  # the cursor at which it last failed
        self._heads: dict[str, int] = {}
        self._heads_at = 0.0  # when they were read
        self._rest_until: dict[str, float] = {}  # of tenants that another analyst has
        self._claims: dict[str, tuple[float, float]] = {}  # tenant -> when claimed, when last folded
        self._stale: set[str] = set()  # tenants another analyst advanced since we folded them
        self._look_at = 0.0
        self._giving_way, self._mine = AnalystBackpressure(), frozenset[str]()
        self._wake = asyncio.Event()
        self.skipped = 0

    def heard(self, notice: CommitNotice) -> None:
        """The database notified of a commit: no need to poll for it."""
        self._heads[notice.tenant_id] = max(notice.sequence_number, self._heads.get(notice.tenant_id, 0))
        self._heads_at = asyncio.get_running_loop().time()
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        refresh_at, pause_s = loop.time() + REFRESH_S, 0.25
        while True:
            began = self._busy()
            try:
                moved = await self.round()
            except NotDurable as error:
                self._forget()
                log.warning("the analyst waits for the database: %s", error)
                await asyncio.sleep(pause_s)
                pause_s = min(MAX_PAUSE_S, pause_s * 2)
                continue
            pause_s = 0.25
            if loop.time() > refresh_at:
                refresh_at = loop.time() + REFRESH_S
                self._reading.forget()
            if not moved:
                await self._rest()
            elif rest_s := self._rest_s(self._busy() - began):
                await asyncio.sleep(rest_s)

    def _rest_s(self, worked_s: float) -> float:
        mine = frozenset(one for one in self._claims if one in self._cursors and one in self._heads)
        if mine != self._mine:  # sums over other tenants cannot be compared
            self._giving_way, self._mine = AnalystBackpressure(), mine
        head, cursor = sum(self._heads[one] for one in mine), sum(self._cursors[one] for one in mine)
        return self._giving_way.rest_s(self._heads_at, worked_s, head, cursor)

    async def _rest(self) -> None:
        """Wait for a notified commit, or until the next poll."""
        await wait_for_wakeup(self._wake, self._look_at - asyncio.get_running_loop().time())
        self._wake.clear()

    async def round(self) -> bool:
        """Fold one page of every tenant that has one; whether there was any."""
        now = asyncio.get_running_loop().time()
        if now >= self._look_at:
            if not await self._derived.ready():
                self._forget()
            self._heads = await self._store.heads()
            self._look_at = now + self._look_s
            self._heads_at = now
        moved = False
        for tenant_id, head in list(self._heads.items()):
            if self._rest_until.get(tenant_id, 0.0) > now:
                continue
            if tenant_id in self._claims or self._cursors.get(tenant_id, -1) < head:
                moved = await self._take(tenant_id, head, now) or moved
        return moved

    async def _take(self, tenant_id: str, head: int, now: float) -> bool:
        """Fold a page of a tenant, if we can claim it and it has one; whether there was any."""
        if not await self._claim(tenant_id, now):
            return False
        cursor = await self._cursor(tenant_id)
        if cursor >= head:
            if now >= self._claims[tenant_id][1] + IDLE_S:
                await self._release(tenant_id)
            return False
        if tenant_id in self._stale:
            self._forget()
        await self._advance(tenant_id, cursor)
        if tenant_id in self._claims:
            await self._keep(tenant_id, head, now)
        return True

    async def _claim(self, tenant_id: str, now: float) -> bool:
        if not await self._derived.claim(tenant_id):
            self._claims.pop(tenant_id, None)
            self._rest_until[tenant_id] = now + LOST_S
            return False
        if tenant_id not in self._claims:
            self._claims[tenant_id] = (now, now - IDLE_S)
            if tenant_id in self._cursors:
                seq = (await self._derived.progress(tenant_id)).seq
                if seq != self._cursors[tenant_id]:  # the cached data is not what is stored
                    self._cursors[tenant_id] = seq
                    self._stale.add(tenant_id)
        return True

    async def _keep(self, tenant_id: str, head: int, now: float) -> None:
        """Keep the claim for the next page, or offer the tenant to others when we are behind on several."""
        since, _ = self._claims[tenant_id]
        self._claims[tenant_id] = (since, now)
        is_behind = head - self._cursors.get(tenant_id, head) > self._page
        if len(self._claims) > MAX_CLAIMS:
            await self._release(tenant_id)
        elif is_behind and len(self._claims) > 1 and now >= since + TURN_S:
            await self._release(tenant_id)
            self._rest_until[tenant_id] = now + 2 * LOST_S

    async def _release(self, tenant_id: str) -> None:
        del self._claims[tenant_id]
        await self._derived.release(tenant_id)

    async def _cursor(self, tenant_id: str) -> int:
        """Where to continue: from the beginning when the folded data is not of this record."""
        if tenant_id not in self._cursors:
            progress = await self._derived.progress(tenant_id)
            if progress.at_ns:
                rows = await self._store.committed(tenant_id, progress.seq - 1, 1)
                if not rows or time_of(rows[0]) != progress.at_ns:
                    log.warning("the derived data of %s is of another record; it is rebuilt", tenant_id)
                    await self._derived.restart(tenant_id)
                    return 0
            self._cursors[tenant_id] = progress.seq
        return self._cursors[tenant_id]

    async def _advance(self, tenant_id: str, after: int) -> None:
        limit = self._limits.get(tenant_id, self._page)
        rows = await self._store.committed(tenant_id, after, limit)
        if not rows:
            return
        try:
            batch, at_ns, unread = await self._reading.batch(tenant_id, after, rows)
            puts, findings = await self._fold(batch)
            done = await self._derived.apply(
                tenant_id, after, batch.until, at_ns, puts, findings, (0, unread)
            )
        except NotDurable:
            raise
        except Exception as error:  # noqa: BLE001  whatever a fold may raise: the analyst continues
            self._forget()
            await self._reduce_batch(tenant_id, after, len(rows), error)
            return
        if not done:
            await self._lost(tenant_id)
            return
        self._cursors[tenant_id] = batch.until
        if tenant_id in self._limits:
            self._limits[tenant_id] = limit * 2
            if limit * 2 >= self._page:
                del self._limits[tenant_id]

    async def _fold(self, batch: Batch) -> tuple[list[DerivedWrite], list[Finding]]:
        puts: list[DerivedWrite] = []
        findings: list[Finding] = []
        for fold in self._folds:
            rows, found = await fold.fold(batch)
            puts += rows
            findings += found
        return puts, findings

    async def _reduce_batch(self, tenant_id: str, after: int, size: int, error: Exception) -> None:
        """Retry the batch once, then in halves; a single event is skipped by the folds that fail on it."""
        if self._failed.get(tenant_id) != after:
            self._failed[tenant_id] = after
            return
        if size > 1:
            self._limits[tenant_id] = size // 2
            return
        self.skipped += 1
        if self.skipped < 10 or self.skipped % 1_000 == 0:
            log.warning(
                "event %d of %s was skipped (%s), %d skipped so far",
                after + 1,
                tenant_id,
                type(error).__name__,
                self.skipped,
            )
        await self._skip(tenant_id, after)

    async def _skip(self, tenant_id: str, after: int) -> None:
        """Write what the folds that succeed make of this event; nothing when it cannot be read."""
        made: list[tuple[list[DerivedWrite], list[Finding]]] = []
        at_ns = 0
        try:
            rows = await self._store.committed(tenant_id, after, 1)
            batch, at_ns, _ = await self._reading.batch(tenant_id, after, rows)
            made = [await self._tried(fold, batch) for fold in self._folds]
        except NotDurable:
            raise
        except Exception:  # noqa: BLE001  no fold can use it
            log.debug("event %d of %s cannot be read", after + 1, tenant_id)
        if not await self._apply_most(tenant_id, after, at_ns, [one for one in made if one[0] or one[1]]):
            await self._lost(tenant_id)
            return
        self._forget()
        self._cursors[tenant_id] = after + 1

    async def _apply_most(
        self, tenant_id: str, after: int, at_ns: int, made: list[tuple[list[DerivedWrite], list[Finding]]]
    ) -> bool:
        """Write the rows of all folds; if the store refuses, of all but one, all but two, and so on."""
        for size in range(len(made), 0, -1):
            for kept in combinations(made, size):
                puts = [put for one in kept for put in one[0]]
                findings = [finding for one in kept for finding in one[1]]
                try:
                    return await self._derived.apply(
                        tenant_id, after, after + 1, at_ns, puts, findings, (1, 0)
                    )
                except NotDurable:
                    raise
                except Exception:  # noqa: BLE001  a row of one of these
                    continue
        return await self._derived.apply(tenant_id, after, after + 1, at_ns, [], [], (1, 0))

    async def _tried(self, fold: Fold, batch: Batch) -> tuple[list[DerivedWrite], list[Finding]]:
        try:
            return await fold.fold(batch)
        except NotDurable:
            raise
        except Exception:  # noqa: BLE001
            fold.forget()
            return [], []

    async def _lost(self, tenant_id: str) -> None:
        """Another analyst moved the cursor: our cached data is not what is stored."""
        self._forget()
        self._rest_until[tenant_id] = asyncio.get_running_loop().time() + LOST_S
        if tenant_id in self._claims:
            await self._release(tenant_id)

    def _forget(self) -> None:
        self._cursors.clear()
        self._stale.clear()
        for fold in self._folds:
            fold.forget()
