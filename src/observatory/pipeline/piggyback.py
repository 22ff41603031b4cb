"""Acts that add nothing to the record ride: they are decided in the transaction of whatever is written next.

Laws: what rides appends no event, so the head is where it was and what is thought about meanwhile stays
true; it is decided under the tenant's lock, behind the batch it rides with; acts of one tenant that ride
together are decided over one memory, in order. If a ride fails, the batch and each tenant's acts are run by
themselves, and only whose fault it was is refused. Without a batch to ride with they go alone, at once.

A checkpoint is such an act. Under load there is one for every thousand events: a transaction of its own,
synced by itself, with nothing thought about meanwhile, took a tenth of the rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from observatory.pipeline.message_event import Service
from observatory.pipeline.pipeline import Batch
from observatory.pipeline.ports import Transaction
from observatory.pipeline.request import Parcel, Part
from observatory.pipeline.state import Act, Changes, Memory, Submission, Verdict


class Rider:
    """A tenant's acts that ride together."""

    def __init__(self, tenant_id: str) -> None:
        self.tenant_id = tenant_id
        self._parts: list[Part] = []
        self._items: list[Submission] = []
        self.verdicts: Sequence[Verdict] = ()
        self.is_done = False  # decided, and the transaction it was decided in is durable

    def add(self, parts: Iterable[Part]) -> None:
        for part in parts:
            self._parts.append(part)
            self._items += [one for one in part.judged() if isinstance(one, Act)]

    @property
    def items(self) -> Sequence[Submission]:
        return self._items

    def decide(self, service: Service, transaction: Transaction, now_ns: int, beside: Memory | None) -> None:
        """`beside` is the memory of the batch it rides with."""
        batch = Batch(service, self.tenant_id, self._items, now_ns)
        known = None
        if beside is not None and beside.tenant.tenant_id == self.tenant_id:
            known = Memory(beside.tenant, beside.head, beside.rulebook)  # the rules need not be read again
        memory = transaction.load(self.tenant_id, batch.wants(), known)
        changes = Changes()
        verdicts = batch.think(memory, changes)
        if changes.audit:
            raise RuntimeError("what rides adds nothing to the record")
        if changes.writes:
            transaction.save(memory, changes)
        self.verdicts = verdicts

    def answered(self) -> list[Parcel]:
        """Those of its parcels that are whole now."""
        rest = iter(self.verdicts)
        return [part.parcel for part in self._parts if part.answer(list(islice(rest, part.count)))]


class Riders:
    """Those of a lane who wait. Whoever calls holds the lane's lock."""

    def __init__(self, mixes_tenants: bool) -> None:
        self._mixes_tenants = mixes_tenants
        self._waiting: dict[str, Rider] = {}

    def __contains__(self, tenant_id: object) -> bool:
        return tenant_id in self._waiting

    def wait(self, tenant_id: str, parts: Iterable[Part]) -> None:
        self._waiting.setdefault(tenant_id, Rider(tenant_id)).add(parts)

    def board(self, tenant_id: str) -> list[Rider]:
        """Those who may ride with a batch of this tenant; they wait no more."""
        if self._mixes_tenants:
            riders, self._waiting = list(self._waiting.values()), {}
            return riders
        rider = self._waiting.pop(tenant_id, None)
        return [] if rider is None else [rider]
