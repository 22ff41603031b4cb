"""The last two checks of ruling 36: the log's root over the verified events, and the signature on it.

The leaves are those that the verifier has just proved to be the events' own. Appended to the log's stored
edge before the range, they must give each settled hash and the root of the newest checkpoint in it; that must
be signed by a key of this log; and when verifying to the head, the mark next to the key must match this
record too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from observatory.errors import StartupError
from observatory.features.transparency.types_log import LogBroken, StoredCheckpoint
from observatory.features.transparency.worker import Sealer
from observatory.http.answers import Refusal
from observatory.ledger import note
from observatory.ledger.tiles import HASH, TileEdge, TileNode


class LogCheck:
    """The checks of one range. `sentence` is the first failure; a check without a subject is None."""

    def __init__(self, sealer: Sealer, tenant_id: str) -> None:
        self._sealer, self._tree, self._tenant_id = sealer, sealer.tree, tenant_id
        self._checkpoint: StoredCheckpoint | None = None
        self._edge: TileEdge | None = None
        self.root: bool | None = None
        self.signature: bool | None = None
        self.sentence: str | None = None
        self.what = "log"
        self.at = 0

    async def begin(self, first: int, last: int) -> None:
        checkpoint = await self._tree.rows.checkpoint(self._tenant_id, last)
        if checkpoint is None or checkpoint.size < first:
            return
        self._checkpoint, self.at = checkpoint, checkpoint.size
        try:
            self._edge = await self._tree.edge(self._tenant_id, first - 1)
        except LogBroken as error:
            self._fail(f"Before event {first} {error}.")

    def _fail(self, sentence: str) -> None:
        self.root, self.sentence, self._edge = False, self.sentence or sentence, None

    async def feed(self, leaves: Sequence[bytes]) -> None:
        if self._edge is None or self._checkpoint is None:
            return
        nodes = self._edge.extend(leaves[: self._checkpoint.size - self._edge.size])
        for node in nodes:
            if await self._stored(node) != node.hash:
                name = f"hash {node.position} of level {node.level}"
                self._fail(f"The log's stored {name} does not match its events.")
                return

    async def _stored(self, node: TileNode) -> bytes:
        return (await self._tree.rows.hashes(self._tenant_id, node.level, node.position, 1))[:HASH]

    async def end(self, to_head: bool) -> None:
        """Called only when all checks before have passed."""
        checkpoint, edge = self._checkpoint, self._edge
        if checkpoint is not None and edge is not None and edge.size == checkpoint.size:
            self.root = edge.root() == checkpoint.root
            if not self.root:
                self._fail(f"The first {checkpoint.size} events do not match the signed root.")
        if checkpoint is not None and self.root:
            self.signature = await self._is_signed(checkpoint)
            if not self.signature:
                self.what = "signature"
                self.sentence = (
                    f"The checkpoint over {checkpoint.size} events is not signed by a key of this log."
                )
        if to_head and self.sentence is None:
            await self._against_mark()

    async def _is_signed(self, checkpoint: StoredCheckpoint) -> bool:
        """With the origin in the note itself, if it ends with this tenant: a deployment may be renamed."""
        rows = await self._tree.rows.rows(self._tenant_id, "log_keys")
        try:
            origin, size, root = note.parse_checkpoint(note.split(checkpoint.note)[0])
            verifiers = [note.Verifier(origin, bytes(row["public_key"])) for row in rows]
            note.open(checkpoint.note, verifiers)
        except note.BadNote:
            return False
        return origin.endswith(f"/{self._tenant_id}") and (size, root) == (checkpoint.size, checkpoint.root)

    async def _against_mark(self) -> None:
        try:
            mark = (await asyncio.to_thread(self._sealer.marks.load)).get(self._tenant_id)
        except StartupError as error:
            raise Refusal(409, "not_sealed", str(error)) from error
        if mark is None:
            return
        # Read after the mark: its writer had seen that many events committed.
        head, _ = await self._tree.rows.head(self._tenant_id)
        if mark.size > head:
            self._fail(f"{mark.size} events were signed; the record ends at {head}.")
            return
        newest = await self._tree.rows.checkpoint(self._tenant_id)
        settled = newest.size if newest is not None else 0  # after it only leaves are stored
        try:
            known = await self._tree.edge(self._tenant_id, settled) if mark.size >= settled else None
            matches = await self._tree.root(self._tenant_id, mark.size, known) == mark.root
        except LogBroken as error:
            self._fail(f"In the part that was signed last, {error}.")
            return
        if not matches:
            self._fail(f"The first {mark.size} events are not those that were signed last.")
