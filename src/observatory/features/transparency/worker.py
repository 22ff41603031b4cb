"""The sealer: signs how far each tenant's record reaches, at most a second or 1,000 events behind it.

Laws: it reads committed leaves only. What it is about to sign is first noted beside the key (`Marks`),
then kept in the database with the hashes it settles, in one transaction, and only then can anybody see
it. It never signs less than was signed, nor anything that does not go on from it: a record that reaches
less far, or has another history (a restored backup), leaves that tenant's log unsigned, with a sentence,
until somebody starts the gateway with `--accept-rollback`. Killed anywhere in between, it finds on start
what it was about to sign and goes on from there. Of several gateways that share key and marks any may
seal; each step is written by one.
"""

from __future__ import annotations

import asyncio
import logging
import time

import msgspec

from observatory.errors import ObservatoryError, StoreError
from observatory.features.transparency import commands as checkpoints
from observatory.features.transparency.log_key import Backwards, Keyring, Mark, Marks, UnderWay
from observatory.features.transparency.log_opening import RESTORE, Known, Opener, Refusal, Witnesses, key_row
from observatory.features.transparency.log_tree import PAGE, Tree
from observatory.features.transparency.types_log import LogBroken, LogRows
from observatory.ledger import note
from observatory.ledger.tiles import Edge, Node
from observatory.pipeline.ports import Bus
from observatory.pipeline.state import Principal
from observatory.runtime import worker_context as home
from observatory.runtime.metrics import Looks, Measure
from observatory.runtime.wait_for_wakeup import woken
from observatory.runtime.worker_context import Watch

MANY = 1_000  # so many unsigned events are not waited for
PACE_S = 0.5  # fewer are, so long: one checkpoint is for all of them
LOOK_S = 0.5  # rows whose notice was lost
PROMISED_S = 1.0
# Of several gateways one seals a tenant as long as it keeps up; who comes second looks again after so long.
THEIRS_S = 0.4
# What rows raise that somebody bent: the log is broken, and it is that tenant's alone.
BENT = (LogBroken, TypeError, ValueError, OverflowError)
log = logging.getLogger("observatory.sealer")


class _Step(msgspec.Struct):
    """A tenant's next checkpoint, before it is signed."""

    tenant_id: str
    log: Known
    edge: Edge
    nodes: list[Node]
    root: bytes


class Sealer:
    def __init__(
        self,
        house: home.Home,
        bus: Bus,
        rows: LogRows,
        keyring: Keyring | None,
        marks: Marks,
        accepts: bool = False,
    ) -> None:
        self._house, self._bus, self._rows = house, bus, rows
        self.tree = Tree(rows)
        self._opener = Opener(house, self.tree, keyring, marks, accepts)
        self._watch = Watch(house.store)
        self._logs: dict[str, Known] = {}
        self._behind: dict[str, float] = {}
        self._theirs: dict[str, float] = {}  # tenants another gateway has just sealed, and until when it may
        self._moved, self._urgent = asyncio.Event(), asyncio.Event()
        self._turn = asyncio.Lock()  # a key changes between two looks, never within one
        self.refused: dict[str, Refusal] = {}
        self._waiting: dict[str, int] = {}  # events of a tenant under no checkpoint, when last looked
        self._looks = Looks("sealer")

    def ask(self, witnesses: Witnesses) -> None:
        """Whom to ask before a log is gone on with."""
        self._opener.witnesses = witnesses

    @property
    def keyring(self) -> Keyring | None:
        return self._opener.keyring

    @property
    def marks(self) -> Marks:
        return self._opener.marks

    async def origin(self, tenant_id: str) -> str:
        return await self._opener.origin(tenant_id)

    @property
    def unsigned_age_s(self) -> float:
        """Of the oldest event that this gateway has not seen signed; 0 when there is none."""
        return max((time.monotonic() - since for since in self._behind.values()), default=0.0)

    @property
    def size(self) -> int:
        """Events under checkpoints, of all tenants."""
        return sum(known.size for known in self._logs.values())

    def measures(self) -> list[Measure]:
        figures = (
            ("unsigned_age_seconds", "Age of the oldest event under no checkpoint", self.unsigned_age_s),
            ("unsigned_events", "Events under no checkpoint, when last looked", sum(self._waiting.values())),
            ("size", "Events under signed checkpoints, of all tenants", self.size),
            ("refused", "Tenants whose log is not signed", len(self.refused)),
        )
        told = [Measure(f"observatory_log_{name}", "gauge", text, value) for name, text, value in figures]
        return [*told, *self._looks.measures()]

    async def run(self) -> None:
        """The daemon: woken by commits, and by the clock."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen())
            while True:
                try:
                    is_behind = await self.look(is_patient=True)
                except ObservatoryError as error:  # the database is away, or stopping: found again next time
                    log.warning("the log waits to be signed: %s", error)
                    is_behind = False
                if is_behind:
                    continue
                await woken(self._moved, LOOK_S)
                await woken(self._urgent, PACE_S)
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
        """Sign what is not signed; whether more waits already. Who is patient leaves a tenant to the gateway
        that sealed it just now."""
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
                self._stumbled(tenant_id, error)
                continue
            if found is not None:
                step, head = found
                steps.append(step)
                is_behind = is_behind or step.edge.size < head
        if steps and not await self._seal(steps):
            is_behind = False  # not at once again: nothing may be storable now
        if ring is not None and ring.previous_public_key is not None:
            await self._finish_rotation(ring)
        return is_behind

    def _stumbled(self, tenant_id: str, error: BaseException) -> None:
        """One tenant's log is broken, or has to wait: the others' are signed all the same."""
        if isinstance(error, BENT):
            told = (
                str(error) if isinstance(error, LogBroken) else "a cell of the log does not hold what it must"
            )
            self._refuse(tenant_id, Refusal("broken", f"{told}; {RESTORE}"))
        elif isinstance(error, ObservatoryError):
            self._logs.pop(tenant_id, None)
            log.warning("the log of %s waits to be signed: %s", tenant_id, error)
        else:
            raise error

    async def _next(self, tenant_id: str, head: int) -> tuple[_Step, int] | None:
        """The tenant's next checkpoint and how far the record reaches; None when there is nothing to sign."""
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

    async def _known(self, tenant_id: str, head: int) -> tuple[Known, int] | None:
        """The log, and how far the record reaches: what opening told of in it is signed at once."""
        known = self._logs.get(tenant_id)
        if known is not None and known.size <= head:
            return known, head
        if known is None and tenant_id in self.refused:
            return None
        found = await self._opener.open(tenant_id)
        if isinstance(found, Refusal):
            self._refuse(tenant_id, found)
            return None
        self._logs[tenant_id] = found
        return found, (await self._rows.head(tenant_id))[0]

    def reopen(self, tenant_id: str) -> None:
        """A witness contradicts: the log is opened anew before anything more of it is signed."""
        self._logs.pop(tenant_id, None)
        self._theirs.pop(tenant_id, None)
        self._watch.wake(tenant_id)
        self._moved.set()

    def _leave(self, tenant_id: str) -> None:
        """Read anew, and not at once: whoever was faster goes on as a rule."""
        self._logs.pop(tenant_id, None)
        self._theirs[tenant_id] = time.monotonic() + THEIRS_S

    def _refuse(self, tenant_id: str, refusal: Refusal) -> None:
        self._logs.pop(tenant_id, None)
        self._behind.setdefault(tenant_id, time.monotonic())
        self.refused[tenant_id] = refusal
        log.error("the log of %s is not signed: %s", tenant_id, refusal.sentence)

    async def _step(self, tenant_id: str, known: Known, head: int) -> _Step | None:
        kept = await self._rows.checkpoint(tenant_id)
        if (kept.size if kept else 0) != known.size or (kept and kept.root != known.root):
            self._leave(tenant_id)  # another gateway sealed, or the record is another by now
            return None
        edge = known.edge.copy()
        count = min(max(PAGE, known.noted - edge.size), head - edge.size)
        nodes = edge.extend(await self.tree.leaves(tenant_id, edge.size, count))
        return _Step(tenant_id, known, edge, nodes, edge.root())

    async def _seal(self, steps: list[_Step]) -> bool:
        """Noted beside the key, signed, kept, and then known: in this order. Whether nobody stumbled."""
        origins = {step.tenant_id: await self.origin(step.tenant_id) for step in steps}
        marks = {step.tenant_id: Mark(origins[step.tenant_id], step.edge.size, step.root) for step in steps}
        try:
            await asyncio.to_thread(self.marks.advance, marks)
        except Backwards:  # whoever shares the key signed further just now
            for step in steps:
                self._leave(step.tenant_id)
            return True
        except OSError as error:
            raise StoreError(f"what is signed cannot be noted: {error.strerror}") from error
        done = await asyncio.gather(
            *(self._keep(step, origins[step.tenant_id]) for step in steps), return_exceptions=True
        )
        for step, failure in zip(steps, done, strict=True):
            if failure is not None:
                self._stumbled(step.tenant_id, failure)
        return not any(done)

    async def _keep(self, step: _Step, origin: str) -> None:
        ring, known, tenant_id = self.keyring, step.log, step.tenant_id
        assert ring is not None  # else nothing is known that could be gone on with
        text = note.checkpoint(origin, step.edge.size, step.root)
        # The first checkpoint under a new key is signed by the one before as well.
        signed = note.sign(text, ring.signers(origin, both=known.size < known.since))
        first = None if known.keys else key_row(origin, ring.public_key)
        draft = checkpoints.Draft(known.size, step.edge.size, step.root, signed, tuple(step.nodes), first)
        who = self._house.principal_of_house(tenant_id)
        verdicts = await self._house.committer.submit(
            tenant_id, [checkpoints.seal(who, draft, time.time_ns())]
        )
        if verdicts[0].code != 200:
            self._leave(tenant_id)  # somebody was faster, or nothing can be stored now
            return
        known.edge, known.root = step.edge, step.root
        if first is not None:
            known.keys = [first]
        self._behind.pop(tenant_id, None)
        self._waiting.pop(tenant_id, None)

    async def rotate(self, who: Principal) -> str:
        """A new key, told of in every tenant's record; the new vkey of the asker's log."""
        ring = self.keyring
        if ring is None or self.refused:
            raise LogBroken("a key is not followed by another while a log of this house is not signed")
        async with self._turn:
            if await asyncio.to_thread(ring.refresh):
                self._logs.clear()
            await self._check_settled(ring)
            await asyncio.to_thread(ring.rotate)
            self._logs.clear()  # each is opened anew, and told of the new key there if not here
            for tenant_id in await home.tenants(self._house.store):
                asker = who if tenant_id == who.tenant_id else self._house.principal_of_house(tenant_id)
                keys, _ = await self._opener.keys(tenant_id)
                if keys:
                    await self._opener.rotate(asker, await self.origin(tenant_id), keys)
        self._moved.set()
        return note.vkey(await self.origin(who.tenant_id), ring.public_key)

    async def _check_settled(self, ring: Keyring) -> None:
        """No log may still wait for the checkpoint that leads to the key in force: it would never get it."""
        if ring.previous_public_key is not None:
            raise UnderWay
        for tenant_id in await home.tenants(self._house.store):
            keys, since = await self._opener.keys(tenant_id)
            kept = await self._rows.checkpoint(tenant_id)
            if keys and keys[-1].public_key != ring.public_key:
                raise LogBroken("the key here is not the one in force; bring that one here first")
            if since > (kept.size if kept else 0):
                raise UnderWay

    async def _finish_rotation(self, ring: Keyring) -> None:
        """Once every log has a checkpoint that both keys signed, the old private key is dropped."""
        for tenant_id in await self._house.store.heads():
            known = self._logs.get(tenant_id)
            if known is None:
                if tenant_id not in self.refused:
                    return
            elif known.keys and (not known.is_signed_by(ring.public_key) or known.size < known.since):
                return
        await asyncio.to_thread(ring.settle)
