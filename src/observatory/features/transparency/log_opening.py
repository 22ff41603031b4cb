"""Before a tenant's log is gone on with: everything that stands from before is looked at again.

Law: the stored hashes must give the root of the last checkpoint; what was signed last (`Marks`, outside
the database) must be the beginning of this very record; the key must be the one that signed it, or follow
it. What was lost can be accepted by who starts the gateway, and the record tells of it; what is broken
cannot.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Literal, Protocol

import msgspec

from observatory.errors import StoreError
from observatory.features.transparency import commands as checkpoints
from observatory.features.transparency.commands import KeyRow
from observatory.features.transparency.log_key import Keyring, Mark, Marks
from observatory.features.transparency.log_tree import Tree
from observatory.features.transparency.types_log import LogBroken, bytes_of, number_of
from observatory.ledger import note
from observatory.ledger.tiles import Edge
from observatory.pipeline.state import HOME_TENANT, Principal
from observatory.runtime import worker_context as home

log = logging.getLogger("observatory.sealer")
ACCEPT = "start the gateway once with --accept-rollback to go on from what there is"
RESTORE = "restore the database from a good copy"


class Refusal(msgspec.Struct, frozen=True):
    """Why a tenant's log is not signed."""

    kind: Literal["rollback", "key", "marks", "broken"]
    sentence: str


class Known(msgspec.Struct):
    """A log whose checkpoints this gateway may go on from."""

    edge: Edge
    root: bytes
    keys: list[KeyRow]  # in the order they came
    since: int  # the event from which the key in force signs
    noted: int = 0  # so many events were about to be signed: less is never signed again

    @property
    def size(self) -> int:
        return self.edge.size

    def is_signed_by(self, public_key: bytes) -> bool:
        return bool(self.keys) and self.keys[-1].public_key == public_key


def key_row(origin: str, public_key: bytes) -> KeyRow:
    return KeyRow(note.key_id(origin, public_key).hex(), public_key, note.vkey(origin, public_key))


def _of_another(mark: Mark | None, origin: str) -> Refusal | None:
    """A mark of another log says nothing of this one: whoever changed its name would have turned it off."""
    if mark is None or mark.origin == origin:
        return None
    told = "what is noted beside the key as signed last is of a log with another name: was log_name changed?"
    return Refusal("marks", f"{told} Set it back, or {ACCEPT}")


class Witnesses(Protocol):
    """Those who cosigned our logs: what they saw was signed, whatever was restored here."""

    async def heads(self, tenant_id: str) -> list[Mark]: ...

    async def forgo(self, tenant_id: str) -> None:
        """What they have is accepted as lost."""


class Opener:
    def __init__(
        self, house: home.Home, tree: Tree, keyring: Keyring | None, marks: Marks, accepts: bool
    ) -> None:
        """`accepts`: what was lost is accepted, once for each tenant, and audited."""
        self._house, self._tree, self._rows = house, tree, tree.rows
        self.keyring, self.marks, self._accepts = keyring, marks, accepts
        self._prefix = ""
        self._spent: set[str] = set()  # tenants for which something lost was accepted since the start
        self.witnesses: Witnesses | None = None

    async def origin(self, tenant_id: str) -> str:
        """The log's name, which is its key's too: the house's, and the tenant."""
        if not self._prefix:
            self._prefix = self._house.settings.log_name or await self._house_name()
        return f"{self._prefix}/{tenant_id}"

    async def _house_name(self) -> str:
        """By the home tenant's first event: the same for every gateway of the house, wherever it is moved."""
        first = await self._rows.hashes(HOME_TENANT, 0, 0, 1)
        if not first:
            raise StoreError("the house has no first event yet")
        return f"observatory.local/{first[:6].hex()}"

    async def keys(self, tenant_id: str) -> tuple[list[KeyRow], int]:
        """Those that signed this log, in the order they came, and since when the last one does."""
        origin, rows = await self.origin(tenant_id), await self._rows.rows(tenant_id, "log_keys")
        rows.sort(key=lambda row: number_of(row["since"]))
        since = number_of(rows[-1]["since"]) if rows else 0
        return [key_row(origin, bytes_of(row["public_key"])) for row in rows], since

    async def open(self, tenant_id: str) -> Known | Refusal:
        kept = await self._rows.checkpoint(tenant_id)
        size, root = (kept.size, kept.root) if kept else (0, Edge().root())
        try:
            edge = await self._tree.edge(tenant_id, size)
        except LogBroken as error:
            return Refusal("broken", f"{error}; {RESTORE}")
        if edge.root() != root:
            return Refusal("broken", f"its hashes do not give the root that was signed; {RESTORE}")
        origin, (keys, since) = await self.origin(tenant_id), await self.keys(tenant_id)
        mark = await asyncio.to_thread(self.marks.of, tenant_id)
        known = Known(edge, root, keys, since, mark.size if mark else 0)
        try:
            lost = _of_another(mark, origin) or await self._lost(tenant_id, known, mark)
            if lost is None and self.witnesses is not None:
                for seen in await self.witnesses.heads(tenant_id):
                    lost = await self._lost(tenant_id, known, seen)
                    if lost is not None:
                        mark = seen
                        break
        except LogBroken as error:
            return Refusal("broken", f"{error}; {RESTORE}")
        if lost is None:
            return await self._with_newest_key(tenant_id, origin, known)
        if not self._accepts or tenant_id in self._spent:
            return lost
        return await self._accepted(tenant_id, origin, known, mark, lost)

    async def _lost(self, tenant_id: str, known: Known, mark: Mark | None) -> Refusal | None:
        if mark is None:
            if known.size and self.keyring is not None:
                told = "what was signed last is not noted beside the key, so it cannot be gone on from"
                return Refusal("marks", f"{told}; {ACCEPT}")
            return self._keyless(known)
        # Read after the mark: whoever noted it had seen that many committed.
        head, _ = await self._rows.head(tenant_id)
        if mark.size > head:
            told = f"{mark.size:,} events were signed and the record holds {head:,}: is it a restored backup?"
            return Refusal("rollback", f"{told} {RESTORE}, or {ACCEPT}")
        beyond = known.edge if mark.size >= known.size else None
        if await self._tree.root(tenant_id, mark.size, beyond) != mark.root:
            told = f"the first {mark.size:,} events are not those that were signed"
            return Refusal("rollback", f"{told}; {RESTORE}, or {ACCEPT}")
        return self._keyless(known)

    def _keyless(self, known: Known) -> Refusal | None:
        ring = self.keyring
        if ring is not None and (
            not known.keys
            or known.is_signed_by(ring.public_key)
            or (ring.previous_public_key and known.is_signed_by(ring.previous_public_key))
        ):
            return None
        told = "the key that signs it is not here; bring it here, or set log_key to where it lies"
        return Refusal("key", f"{told}; if it is lost, {ACCEPT}")

    async def _with_newest_key(self, tenant_id: str, origin: str, known: Known) -> Known | Refusal:
        """A rotation may not have come to this tenant yet."""
        ring = self.keyring
        assert ring is not None
        if not known.keys or known.is_signed_by(ring.public_key):
            return known
        await self.rotate(self._house.principal_of_house(tenant_id), origin, known.keys)
        return await self.open(tenant_id)

    async def rotate(self, who: Principal, origin: str, keys: list[KeyRow]) -> None:
        assert self.keyring is not None
        new = key_row(origin, self.keyring.public_key)
        act = checkpoints.rotate(who, new, [key.vkey for key in keys], time.time_ns())
        verdicts = await self._house.committer.submit(who.tenant_id, [act])
        if verdicts[0].code != 200:
            raise StoreError("the new key could not be made known")

    async def _accepted(
        self, tenant_id: str, origin: str, known: Known, mark: Mark | None, lost: Refusal
    ) -> Known | Refusal:
        """Told in the record first, then forgotten beside the key. A key that was followed stays so."""
        ring = self.keyring
        if ring is None:
            return lost
        if ring.public_key in [key.public_key for key in known.keys[:-1]]:
            told = "the key here was followed by another; bring that one here"
            return Refusal("key", f"{told}; if it is lost, move the old key file away first, then {ACCEPT}")
        is_new = bool(known.keys) and not known.is_signed_by(ring.public_key)
        after = Mark(origin, known.size, known.root)
        act = checkpoints.accept(
            self._house.principal_of_house(tenant_id),
            lost.kind,
            None if mark is None else checkpoints.Signed(mark.size, mark.root_text),
            checkpoints.Signed(after.size, after.root_text),
            key_row(origin, ring.public_key) if is_new else None,
            time.time_ns(),
        )
        verdicts = await self._house.committer.submit(tenant_id, [act])
        if verdicts[0].code != 200:
            raise StoreError("the accepted rollback could not be recorded")
        await asyncio.to_thread(self.marks.reset, tenant_id, after)
        if self.witnesses is not None:
            await self.witnesses.forgo(tenant_id)
        log.warning("a rollback of the log of %s was accepted: %s", tenant_id, lost.sentence)
        found = await self.open(tenant_id)  # what its witnesses have may be lost as well, and is accepted too
        if isinstance(found, Known):
            self._spent.add(tenant_id)
        return found
