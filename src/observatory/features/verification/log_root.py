"""Ruling 36's last two checks: the log's root over the verified events, and the signature under it.

The leaves are those the verifier just proved to be the events' own. They are put behind the log's stored
edge before the range, must give each settled hash in it and the root of the newest checkpoint in it; that
must be signed by a key of this log; and asked to the head, what was noted beside the key must be this
record's too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from observatory.errors import StartupError
from observatory.features.transparency.types_log import Checkpoint, LogBroken
from observatory.features.transparency.worker import Sealer
from observatory.http.answers import Refusal
from observatory.ledger import note
from observatory.ledger.tiles import HASH, Edge, Node


class LogCheck:
    """One range. `sentence` tells the first thing that did not hold; None of a check: nothing to check."""

    def __init__(self, sealer: Sealer, tenant_id: str) -> None:
        self._sealer, self._tree, self._tenant_id = sealer, sealer.tree, tenant_id
        self._checkpoint: Checkpoint | None = None
        self._edge: Edge | None = None
        self.root: bool | None = None
        self.signature: bool | None = None
        self.sentence: str | None = None
        self.what = "log"
        self.at = 0

    async def begin(self, first: int, last: int) -> None:
        found = await self._tree.rows.checkpoint(self._tenant_id, last)
        if found is None or found.size < first:
            return
        self._checkpoint, self.at = found, found.size
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
                place = f"hash {node.position} of level {node.level}"
                self._fail(f"The log's stored {place} is not that of its events.")
                return

    async def _stored(self, node: Node) -> bytes:
        return (await self._tree.rows.hashes(self._tenant_id, node.level, node.position, 1))[:HASH]

    async def end(self, to_head: bool) -> None:
        """Called only when everything before held."""
        found, edge = self._checkpoint, self._edge
        if found is not None and edge is not None and edge.size == found.size:
            self.root = edge.root() == found.root
            if not self.root:
                self._fail(f"The first {found.size} events do not give the root that was signed over them.")
        if found is not None and self.root:
            self.signature = await self._is_signed(found)
            if not self.signature:
                self.what = "signature"
                self.sentence = f"The checkpoint over {found.size} events is not signed by a key of this log."
        if to_head and self.sentence is None:
            await self._against_mark()

    async def _is_signed(self, found: Checkpoint) -> bool:
        """By the origin the note itself names, if it ends with this tenant: a house may be renamed."""
        rows = await self._tree.rows.rows(self._tenant_id, "log_keys")
        try:
            origin, size, root = note.parse_checkpoint(note.split(found.note)[0])
            verifiers = [note.Verifier(origin, bytes(row["public_key"])) for row in rows]
            note.open(found.note, verifiers)
        except note.BadNote:
            return False
        return origin.endswith(f"/{self._tenant_id}") and (size, root) == (found.size, found.root)

    async def _against_mark(self) -> None:
        try:
            mark = (await asyncio.to_thread(self._sealer.marks.load)).get(self._tenant_id)
        except StartupError as error:
            raise Refusal(409, "not_sealed", str(error)) from error
        if mark is None:
            return
        # Read after the mark: whoever noted it had seen that many committed.
        head, _ = await self._tree.rows.head(self._tenant_id)
        if mark.size > head:
            self._fail(f"{mark.size} events were signed; the record ends at {head}.")
            return
        newest = await self._tree.rows.checkpoint(self._tenant_id)
        settled = newest.size if newest is not None else 0  # beyond it there are leaves only
        try:
            known = await self._tree.edge(self._tenant_id, settled) if mark.size >= settled else None
            is_ours = await self._tree.root(self._tenant_id, mark.size, known) == mark.root
        except LogBroken as error:
            self._fail(f"Of what was signed last {error}.")
            return
        if not is_ours:
            self._fail(f"The first {mark.size} events are not those that were signed last.")
