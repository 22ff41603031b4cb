"""The sealer: signs checkpoints of each tenant's record, at most a second or 1,000 events behind it.

Laws: it reads committed leaves only. What it is about to sign is first written to `Marks` next to the key,
then stored in the database with the hashes it settles, in one transaction, and only then visible. It never
signs less than was signed, nor anything that does not extend it: a shorter record, or one with another
history (a restored backup), leaves that tenant's log unsigned, with a reason, until the gateway is started
with `--accept-rollback`. If killed in between, it finds on start what it was about to sign and continues from
there. Of several gateways that share key and marks any may seal; each step is written by one.
"""

from __future__ import annotations

import asyncio
import logging
import time

import msgspec

from observatory.errors import ObservatoryError, StoreError
from observatory.features.transparency import commands as checkpoints
from observatory.features.transparency.log_opening import RESTORE, LogOpener, OpenedLog, WitnessHeads, key_row
from observatory.features.transparency.log_tree import PAGE, LogTree
from observatory.features.transparency.types_log import LogBroken, LogRefusal, LogRows
from observatory.ledger import note
from observatory.ledger.tiles import TileEdge, TileNode
from observatory.pipeline.ports import Bus
from observatory.pipeline.state import Principal
from observatory.runtime import worker_context as home
from observatory.runtime.log_key import Keyring, LogMark, LogMarks, MarkRollback, RotationInProgress
from observatory.runtime.metrics import Measure, PollCounter
from observatory.runtime.wait_for_wakeup import wait_for_wakeup
from observatory.runtime.worker_context import TenantWatch

MANY = 1_000  # this many unsigned events are signed at once
PACE_S = 0.5  # fewer wait this long, so that one checkpoint covers them
LOOK_S = 0.5  # polling interval, for lost notifications
PROMISED_S = 1.0
# One of several gateways seals a tenant as long as it keeps up; the others retry after this time.
THEIRS_S = 0.4
# Errors that tampered rows raise: that tenant's log alone is broken.
BENT = (LogBroken, TypeError, ValueError, OverflowError)
log = logging.getLogger("observatory.sealer")


class _Step(msgspec.Struct):
    """A tenant's next checkpoint, before it is signed."""

    tenant_id: str
    log: OpenedLog
    edge: TileEdge
    nodes: list[TileNode]
    root: bytes


class Sealer:
    def __init__(
        self,
        app: home.WorkerContext,
        bus: Bus,
        rows: LogRows,
        keyring: Keyring | None,
        marks: LogMarks,
        accepts: bool = False,
    ) -> None:
        self._app, self._bus, self._rows = app, bus, rows
        self.tree = LogTree(rows)
        self._opener = LogOpener(app, self.tree, keyring, marks, accepts)
        self._watch = TenantWatch(app.store)
        self._logs: dict[str, OpenedLog] = {}
        self._behind: dict[str, float] = {}
        self._theirs: dict[
            str, float
        ] = {}  # tenants that another gateway sealed just now, and how long to leave them to it
        self._moved, self._urgent = asyncio.Event(), asyncio.Event()
        self._turn = asyncio.Lock()  # a key changes between two polls, never within one
        self.refused: dict[str, LogRefusal] = {}
        self._waiting: dict[str, int] = {}  # a tenant's unsigned events at the last poll
        self._looks = PollCounter("sealer")

    def ask(self, witnesses: WitnessHeads) -> None:
        """Set the witnesses that are asked before a log is extended."""
        self._opener.witnesses = witnesses

    @property
    def keyring(self) -> Keyring | None:
        return self._opener.keyring

    @property
    def marks(self) -> LogMarks:
        return self._opener.marks

    async def origin(self, tenant_id: str) -> str:
        return await self._opener.origin(tenant_id)

    @property
    def unsigned_age_s(self) -> float:
        """Age of the oldest event that this gateway has not seen signed; 0 when there is none."""
        return max((time.monotonic() - since for since in self._behind.values()), default=0.0)

    @property
    def size(self) -> int:
        """Events under checkpoints, of all tenants."""
        return sum(known.size for known in self._logs.values())

    def measures(self) -> list[Measure]:
        figures = (
            ("unsigned_age_seconds", "Age of the oldest event under no checkpoint", self.unsigned_age_s),
            ("unsigned_events", "Events under no checkpoint at the last poll", sum(self._waiting.values())),
            ("size", "Events under signed checkpoints, of all tenants", self.size),
            ("refused", "Tenants whose log is not signed", len(self.refused)),
        )
        measures = [Measure(f"observatory_log_{name}", "gauge", text, value) for name, text, value in figures]
        return [*measures, *self._looks.measures()]

    async def run(self) -> None:
        """The worker's loop: woken by commits and by a timer."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen())
            while True:
                try:
                    is_behind = await self.look(is_patient=True)
                except ObservatoryError as error:  # database unavailable, or stopping: found by the next poll
                    log.warning("sealing postponed: %s", error)
                    is_behind = False
                if is_behind:
                    continue
                await wait_for_wakeup(self._moved, LOOK_S)
                await wait_for_wakeup(self._urgent, PACE_S)
                self._moved.clear()
                self._urgent.clear()

    async def _listen(self) -> None:
        async for notice in self._bus.subscribe():
            known = self._logs.get(notice.tenant_id)
            size = 0 if known is None else known.size
            if notice.sequence_number > size:
                self._behind.setdefault(notice.tenant_id, time.monotonic())
                self._moved.set()
            if notice.sequence_number >= size + MANY:
                self._urgent.set()

    async def look(self, is_patient: bool = False) -> bool:
        """Sign unsigned events; returns whether more already wait. With `is_patient` a tenant is left to the
        gateway that sealed it just now."""
        async with self._turn:
            return await self._look(is_patient)

    async def _look(self, is_patient: bool) -> bool:
        self._looks.look()
        ring = self.keyring
        if ring is not None and await asyncio.to_thread(ring.refresh):
            self._logs.clear()
        steps, is_behind = [], False
        for tenant_id, head in await self._watch.awake():
            if is_patient and self._theirs.get(tenant_id, 0.0) > time.monotonic():
                continue
            try:
                found = await self._next(tenant_id, head)
            except (ObservatoryError, *BENT) as error:
                self._failed(tenant_id, error)
                continue
            if found is not None:
                step, head = found
                steps.append(step)
                is_behind = is_behind or step.edge.size < head
        if steps and not await self._seal(steps):
            is_behind = False  # no immediate retry: the store may be unavailable
        if ring is not None and ring.previous_public_key is not None:
            await self._finish_rotation(ring)
        return is_behind

    def _failed(self, tenant_id: str, error: BaseException) -> None:
        """One tenant's log is broken or must wait; those of other tenants are signed nevertheless."""
        if isinstance(error, BENT):
            problem = str(error) if isinstance(error, LogBroken) else "a cell of the log has an invalid value"
            self._refuse(tenant_id, LogRefusal("broken", f"{problem}; {RESTORE}"))
        elif isinstance(error, ObservatoryError):
            self._logs.pop(tenant_id, None)
            log.warning("sealing the log of %s postponed: %s", tenant_id, error)
        else:
            raise error

    async def _next(self, tenant_id: str, head: int) -> tuple[_Step, int] | None:
        """The tenant's next checkpoint and the record's head; None when there is nothing to sign."""
        found = await self._known(tenant_id, head)
        if found is None:
            return None
        known, head = found
        self._waiting[tenant_id] = head - known.size
        if head == known.size:
            self._behind.pop(tenant_id, None)
            del self._waiting[tenant_id]
            self._watch.rest(tenant_id, head)
            return None
        self._behind.setdefault(tenant_id, time.monotonic())
        step = await self._step(tenant_id, known, head)
        return None if step is None else (step, head)

    async def _known(self, tenant_id: str, head: int) -> tuple[OpenedLog, int] | None:
        """The opened log and the record's head; events that opening recorded are signed at once."""
        known = self._logs.get(tenant_id)
        if known is not None and known.size <= head:
            return known, head
        if known is None and tenant_id in self.refused:
            return None
        found = await self._opener.open(tenant_id)
        if isinstance(found, LogRefusal):
            self._refuse(tenant_id, found)
            return None
        self._logs[tenant_id] = found
        return found, (await self._rows.head(tenant_id))[0]

    def reopen(self, tenant_id: str) -> None:
        """After a witness contradicts: the log is opened again before more of it is signed."""
        self._logs.pop(tenant_id, None)
        self._theirs.pop(tenant_id, None)
        self._watch.wake(tenant_id)
        self._moved.set()

    def _leave(self, tenant_id: str) -> None:
        """Open the log again later: the gateway that was faster usually continues."""
        self._logs.pop(tenant_id, None)
        self._theirs[tenant_id] = time.monotonic() + THEIRS_S

    def _refuse(self, tenant_id: str, refusal: LogRefusal) -> None:
        self._logs.pop(tenant_id, None)
        self._behind.setdefault(tenant_id, time.monotonic())
        self.refused[tenant_id] = refusal
        log.error("the log of %s is not signed: %s", tenant_id, refusal.sentence)

    async def _step(self, tenant_id: str, known: OpenedLog, head: int) -> _Step | None:
        stored = await self._rows.checkpoint(tenant_id)
        if (stored.size if stored else 0) != known.size or (stored and stored.root != known.root):
            self._leave(tenant_id)  # another gateway sealed, or the record was replaced
            return None
        edge = known.edge.copy()
        count = min(max(PAGE, known.noted - edge.size), head - edge.size)
        nodes = edge.extend(await self.tree.leaves(tenant_id, edge.size, count))
        return _Step(tenant_id, known, edge, nodes, edge.root())

    async def _seal(self, steps: list[_Step]) -> bool:
        """Write the marks, sign, store, then update the cache, in this order; whether all succeeded."""
        origins = {step.tenant_id: await self.origin(step.tenant_id) for step in steps}
        marks = {
            step.tenant_id: LogMark(origins[step.tenant_id], step.edge.size, step.root) for step in steps
        }
        try:
            await asyncio.to_thread(self.marks.advance, marks)
        except MarkRollback:  # another gateway with the same key signed further just now
            for step in steps:
                self._leave(step.tenant_id)
            return True
        except OSError as error:
            raise StoreError(
                f"the marks of signed checkpoints cannot be written: {error.strerror}"
            ) from error
        done = await asyncio.gather(
            *(self._keep(step, origins[step.tenant_id]) for step in steps), return_exceptions=True
        )
        for step, failure in zip(steps, done, strict=True):
            if failure is not None:
                self._failed(step.tenant_id, failure)
        return not any(done)

    async def _keep(self, step: _Step, origin: str) -> None:
        ring, known, tenant_id = self.keyring, step.log, step.tenant_id
        assert ring is not None  # without a keyring no log is opened
        text = note.checkpoint(origin, step.edge.size, step.root)
        # The first checkpoint under a new key is also signed by the previous key.
        signed = note.sign(text, ring.signers(origin, both=known.size < known.since))
        first = None if known.keys else key_row(origin, ring.public_key)
        draft = checkpoints.CheckpointDraft(
            known.size, step.edge.size, step.root, signed, tuple(step.nodes), first
        )
        who = self._app.gateway_principal(tenant_id)
        verdicts = await self._app.committer.submit(
            tenant_id, [checkpoints.store_checkpoint(who, draft, time.time_ns())]
        )
        if verdicts[0].code != 200:
            self._leave(tenant_id)  # another gateway was faster, or the store is unavailable
            return
        known.edge, known.root = step.edge, step.root
        if first is not None:
            known.keys = [first]
        self._behind.pop(tenant_id, None)
        self._waiting.pop(tenant_id, None)

    async def rotate(self, who: Principal) -> str:
        """Rotate to a new key, recorded in every tenant's record; returns the vkey of the caller's log."""
        ring = self.keyring
        if ring is None or self.refused:
            raise LogBroken("the key cannot be rotated while a log of this deployment is not signed")
        async with self._turn:
            if await asyncio.to_thread(ring.refresh):
                self._logs.clear()
            await self._check_settled(ring)
            await asyncio.to_thread(ring.rotate)
            self._logs.clear()  # each is opened again, which records the new key if the loop below does not
            for tenant_id in await home.active_tenants(self._app.store):
                asker = who if tenant_id == who.tenant_id else self._app.gateway_principal(tenant_id)
                keys, _ = await self._opener.keys(tenant_id)
                if keys:
                    await self._opener.rotate(asker, await self.origin(tenant_id), keys)
        self._moved.set()
        return note.vkey(await self.origin(who.tenant_id), ring.public_key)

    async def _check_settled(self, ring: Keyring) -> None:
        """No log may still lack the checkpoint that leads to the current key: it would never get it."""
        if ring.previous_public_key is not None:
            raise RotationInProgress
        for tenant_id in await home.active_tenants(self._app.store):
            keys, since = await self._opener.keys(tenant_id)
            stored = await self._rows.checkpoint(tenant_id)
            if keys and keys[-1].public_key != ring.public_key:
                raise LogBroken("the key here is not the current one; copy the current one here first")
            if since > (stored.size if stored else 0):
                raise RotationInProgress

    async def _finish_rotation(self, ring: Keyring) -> None:
        """Once every log has a checkpoint that both keys signed, the old private key is dropped."""
        for tenant_id in await self._app.store.heads():
            known = self._logs.get(tenant_id)
            if known is None:
                if tenant_id not in self.refused:
                    return
            elif known.keys and (not known.is_signed_by(ring.public_key) or known.size < known.since):
                return
        await asyncio.to_thread(ring.settle)
