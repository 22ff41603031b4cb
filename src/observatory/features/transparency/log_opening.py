"""Opening a tenant's log before signing: checks everything stored from before.

Law: the stored hashes must give the root of the last checkpoint; what was signed last (`Marks`, outside the
database) must be a prefix of this record; the key must be the one that signed it, or its successor. Lost
events can be accepted by the person who starts the gateway, and that is recorded; a broken log cannot.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Protocol

import msgspec

from observatory.errors import StoreError
from observatory.features.transparency import commands as checkpoints
from observatory.features.transparency.commands import KeyRow
from observatory.features.transparency.log_tree import LogTree
from observatory.features.transparency.types_log import LogBroken, LogRefusal, bytes_of, number_of
from observatory.ledger import note
from observatory.ledger.tiles import TileEdge
from observatory.pipeline.state import HOME_TENANT, Principal
from observatory.runtime import worker_context as home
from observatory.runtime.log_key import Keyring, LogMark, LogMarks

log = logging.getLogger("observatory.sealer")
ACCEPT = "start the gateway once with --accept-rollback to continue from the present state"
RESTORE = "restore the database from a good copy"


class OpenedLog(msgspec.Struct):
    """An opened log that this gateway may extend."""

    edge: TileEdge
    root: bytes
    keys: list[KeyRow]  # in the order they came
    since: int  # the event from which the key in force signs
    noted: int = 0  # size in the mark: the next checkpoint covers at least this many events

    @property
    def size(self) -> int:
        return self.edge.size

    def is_signed_by(self, public_key: bytes) -> bool:
        return bool(self.keys) and self.keys[-1].public_key == public_key


def key_row(origin: str, public_key: bytes) -> KeyRow:
    return KeyRow(note.key_id(origin, public_key).hex(), public_key, note.vkey(origin, public_key))


def _of_another(mark: LogMark | None, origin: str) -> LogRefusal | None:
    """A mark of another log is a refusal: otherwise changing the log's name would switch the check off."""
    if mark is None or mark.origin == origin:
        return None
    problem = "the mark next to the key is of a log with another name: was log_name changed?"
    return LogRefusal("marks", f"{problem} Set it back, or {ACCEPT}")


class WitnessHeads(Protocol):
    """Witnesses that cosigned our logs: their heads were signed, whatever was restored here."""

    async def heads(self, tenant_id: str) -> list[LogMark]: ...

    async def forgo(self, tenant_id: str) -> None:
        """Accept what they have beyond the log as lost."""


class LogOpener:
    def __init__(
        self,
        app: home.WorkerContext,
        tree: LogTree,
        keyring: Keyring | None,
        marks: LogMarks,
        accepts: bool,
    ) -> None:
        """`accepts`: lost events are accepted, once per tenant, and audited."""
        self._app, self._tree, self._rows = app, tree, tree.rows
        self.keyring, self.marks, self._accepts = keyring, marks, accepts
        self._prefix = ""
        self._spent: set[str] = set()  # tenants for which a loss was accepted since the start
        self.witnesses: WitnessHeads | None = None

    async def origin(self, tenant_id: str) -> str:
        """The name of the log and its key: the deployment's name, and the tenant."""
        if not self._prefix:
            self._prefix = self._app.settings.log_name or await self._deployment_name()
        return f"{self._prefix}/{tenant_id}"

    async def _deployment_name(self) -> str:
        """From the home tenant's first event: the same for every gateway of the deployment."""
        first = await self._rows.hashes(HOME_TENANT, 0, 0, 1)
        if not first:
            raise StoreError("the deployment has no first event yet")
        return f"observatory.local/{first[:6].hex()}"

    async def keys(self, tenant_id: str) -> tuple[list[KeyRow], int]:
        """The keys that signed this log, oldest first, and the event from which the last one signs."""
        origin, rows = await self.origin(tenant_id), await self._rows.rows(tenant_id, "log_keys")
        rows.sort(key=lambda row: number_of(row["since"]))
        since = number_of(rows[-1]["since"]) if rows else 0
        return [key_row(origin, bytes_of(row["public_key"])) for row in rows], since

    async def open(self, tenant_id: str) -> OpenedLog | LogRefusal:
        stored = await self._rows.checkpoint(tenant_id)
        size, root = (stored.size, stored.root) if stored else (0, TileEdge().root())
        try:
            edge = await self._tree.edge(tenant_id, size)
        except LogBroken as error:
            return LogRefusal("broken", f"{error}; {RESTORE}")
        if edge.root() != root:
            return LogRefusal("broken", f"its hashes do not give the signed root; {RESTORE}")
        origin, (keys, since) = await self.origin(tenant_id), await self.keys(tenant_id)
        mark = await asyncio.to_thread(self.marks.of, tenant_id)
        known = OpenedLog(edge, root, keys, since, mark.size if mark else 0)
        try:
            lost = _of_another(mark, origin) or await self._lost(tenant_id, known, mark)
            if lost is None and self.witnesses is not None:
                for witnessed in await self.witnesses.heads(tenant_id):
                    lost = await self._lost(tenant_id, known, witnessed)
                    if lost is not None:
                        mark = witnessed
                        break
        except LogBroken as error:
            return LogRefusal("broken", f"{error}; {RESTORE}")
        if lost is None:
            return await self._with_newest_key(tenant_id, origin, known)
        if not self._accepts or tenant_id in self._spent:
            return lost
        return await self._accepted(tenant_id, origin, known, mark, lost)

    async def _lost(self, tenant_id: str, known: OpenedLog, mark: LogMark | None) -> LogRefusal | None:
        if mark is None:
            if known.size and self.keyring is not None:
                problem = (
                    "there is no mark of what was signed last next to the key, so it cannot be continued"
                )
                return LogRefusal("marks", f"{problem}; {ACCEPT}")
            return self._keyless(known)
        # Read after the mark: its writer had seen that many events committed.
        head, _ = await self._rows.head(tenant_id)
        if mark.size > head:
            problem = (
                f"{mark.size:,} events were signed and the record has {head:,}: is it a restored backup?"
            )
            return LogRefusal("rollback", f"{problem} {RESTORE}, or {ACCEPT}")
        beyond = known.edge if mark.size >= known.size else None
        if await self._tree.root(tenant_id, mark.size, beyond) != mark.root:
            problem = f"the first {mark.size:,} events are not those that were signed"
            return LogRefusal("rollback", f"{problem}; {RESTORE}, or {ACCEPT}")
        return self._keyless(known)

    def _keyless(self, known: OpenedLog) -> LogRefusal | None:
        ring = self.keyring
        if ring is not None and (
            not known.keys
            or known.is_signed_by(ring.public_key)
            or (ring.previous_public_key and known.is_signed_by(ring.previous_public_key))
        ):
            return None
        problem = "its signing key is not here; copy it here, or set log_key to its path"
        return LogRefusal("key", f"{problem}; if it is lost, {ACCEPT}")

    async def _with_newest_key(self, tenant_id: str, origin: str, known: OpenedLog) -> OpenedLog | LogRefusal:
        """Apply a rotation that has not reached this tenant yet."""
        ring = self.keyring
        assert ring is not None
        if not known.keys or known.is_signed_by(ring.public_key):
            return known
        await self.rotate(self._app.gateway_principal(tenant_id), origin, known.keys)
        return await self.open(tenant_id)

    async def rotate(self, who: Principal, origin: str, keys: list[KeyRow]) -> None:
        assert self.keyring is not None
        new = key_row(origin, self.keyring.public_key)
        act = checkpoints.rotate(who, new, [key.vkey for key in keys], time.time_ns())
        verdicts = await self._app.committer.submit(who.tenant_id, [act])
        if verdicts[0].code != 200:
            raise StoreError("the new key could not be recorded")

    async def _accepted(
        self, tenant_id: str, origin: str, known: OpenedLog, mark: LogMark | None, lost: LogRefusal
    ) -> OpenedLog | LogRefusal:
        """Record the loss first, then reset the mark. A retired key is not accepted again."""
        ring = self.keyring
        if ring is None:
            return lost
        if ring.public_key in [key.public_key for key in known.keys[:-1]]:
            problem = "the key here is retired; copy its successor here"
            return LogRefusal(
                "key", f"{problem}; if it is lost, move the old key file away first, then {ACCEPT}"
            )
        is_new = bool(known.keys) and not known.is_signed_by(ring.public_key)
        after = LogMark(origin, known.size, known.root)
        act = checkpoints.accept_rollback(
            self._app.gateway_principal(tenant_id),
            lost.kind,
            None if mark is None else checkpoints.SignedExtent(mark.size, mark.root_text),
            checkpoints.SignedExtent(after.size, after.root_text),
            key_row(origin, ring.public_key) if is_new else None,
            time.time_ns(),
        )
        verdicts = await self._app.committer.submit(tenant_id, [act])
        if verdicts[0].code != 200:
            raise StoreError("the accepted rollback could not be recorded")
        await asyncio.to_thread(self.marks.reset, tenant_id, after)
        if self.witnesses is not None:
            await self.witnesses.forgo(tenant_id)
        log.warning("a rollback of the log of %s was accepted: %s", tenant_id, lost.sentence)
        opened = await self.open(tenant_id)  # events that only its witnesses have are accepted as lost too
        if isinstance(opened, OpenedLog):
            self._spent.add(tenant_id)
        return opened
