"""Piggybacking: commands that append no event are committed in the transaction of the next batch.

Laws: a piggybacked command appends no event, so the head stays and what is computed meanwhile remains
valid; it is decided under the tenant's lock, after the batch it joins; commands of one tenant that join
together are decided over one batch state, in order. If that transaction fails, the batch and each tenant's
commands are run separately, and only the failing one is refused. Without a batch to join they are committed
alone, at once.

A checkpoint is such a command. Under load there is one per thousand events: a separate transaction with
its own sync, during which nothing could be computed, cost 10 % of the throughput.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from observatory.pipeline.commit.request import Chunk, IngestRequest
from observatory.pipeline.message_event import ServiceInfo
from observatory.pipeline.pipeline import PipelineBatch
from observatory.pipeline.ports import Transaction
from observatory.pipeline.state import BatchState, Command, Submission, SubmissionResult, TransactionChanges
from observatory.pipeline.write_path import WritePath


class Piggyback:
    """A tenant's commands that are piggybacked together."""

    def __init__(self, tenant_id: str) -> None:
        self.tenant_id = tenant_id
        self._parts: list[Chunk] = []
        self._items: list[Submission] = []
        self.verdicts: Sequence[SubmissionResult] = ()
        self.is_done = False  # decided, and its transaction is committed

    def add(self, parts: Iterable[Chunk]) -> None:
        for part in parts:
            self._parts.append(part)
            self._items += [one for one in part.judged() if isinstance(one, Command)]

    @property
    def items(self) -> Sequence[Submission]:
        return self._items

    def decide(
        self,
        path: WritePath,
        service: ServiceInfo,
        transaction: Transaction,
        now_ns: int,
        batch_state: BatchState | None,
    ) -> None:
        """`batch_state` is that of the batch it is committed with."""
        batch = PipelineBatch(path, service, self.tenant_id, self._items, now_ns)
        known = None
        if batch_state is not None and batch_state.tenant.tenant_id == self.tenant_id:
            known = BatchState(
                batch_state.tenant, batch_state.head, batch_state.tenant_config
            )  # the tenant's configuration need not be read again
        memory = transaction.load(self.tenant_id, batch.read_set(), known)
        changes = TransactionChanges()
        verdicts = batch.think(memory, changes)
        if changes.audit:
            raise RuntimeError("a piggybacked command must not append events")
        if changes.writes:
            transaction.save(memory, changes)
        self.verdicts = verdicts

    def answered(self) -> list[IngestRequest]:
        """Its requests that are complete now."""
        rest = iter(self.verdicts)
        return [part.request for part in self._parts if part.answer(list(islice(rest, part.count)))]


class PiggybackQueue:
    """The waiting commands of a lane. The caller holds the lane's lock."""

    def __init__(self, mixes_tenants: bool) -> None:
        self._mixes_tenants = mixes_tenants
        self._waiting: dict[str, Piggyback] = {}

    def __contains__(self, tenant_id: object) -> bool:
        return tenant_id in self._waiting

    def wait(self, tenant_id: str, parts: Iterable[Chunk]) -> None:
        self._waiting.setdefault(tenant_id, Piggyback(tenant_id)).add(parts)

    def board(self, tenant_id: str) -> list[Piggyback]:
        """Remove and return those that may join a batch of this tenant."""
        if self._mixes_tenants:
            piggybacks, self._waiting = list(self._waiting.values()), {}
            return piggybacks
        piggyback = self._waiting.pop(tenant_id, None)
        return [] if piggyback is None else [piggyback]
