"""Commands of the tenant's log: store a checkpoint, rotate the key, accept a rollback.

Law: a checkpoint is written through the pipeline, under the tenant's lock, together with the hashes it
settles, and only after the one it follows: of two concurrent sealers, the second finds the first's row and
writes nothing. It is the one command without an audit event: it adds nothing to the record it signs, and an
event would have to be sealed in turn, for ever. A new key and an accepted rollback are events like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from observatory.ledger import note
from observatory.ledger.tiles import TileNode
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol.responses import Refused


class KeyRow(msgspec.Struct, frozen=True):
    """A public key. `key_id` is its id under the name of this tenant's log."""

    key_id: str
    public_key: bytes
    vkey: str


class CheckpointDraft(msgspec.Struct, frozen=True):
    """A signed checkpoint that is not stored yet. `key` is given with a tenant's first one."""

    previous_size: int
    size: int
    root: bytes
    note: bytes
    nodes: tuple[TileNode, ...]
    key: KeyRow | None = None


def store_checkpoint(who: Principal, draft: CheckpointDraft, now_ns: int) -> Command:
    def decide(uow: UnitOfWork) -> SubmissionResult:
        memory = uow.memory
        if draft.previous_size in memory.rows.get("checkpoints", {}):
            return SubmissionResult(
                409, Refused(reason="sealed_already", detail="another gateway was faster")
            )
        if draft.size > memory.head.sequence_number:
            detail = "the record is shorter than this checkpoint"
            return SubmissionResult(409, Refused(reason="beyond_the_record", detail=detail))
        if not _is_signed_by_its_keys(draft, _keys(uow, who.tenant_id)):
            detail = "another key signs from an event under this checkpoint on, and did not sign it"
            return SubmissionResult(409, Refused(reason="key_followed", detail=detail))
        row = {
            "tenant_id": who.tenant_id,
            "size": draft.size,
            "previous_size": draft.previous_size,
            "root": draft.root,
            "note": draft.note,
            "signed_ns": uow.now_ns,
        }
        # A second seal in the same batch must find it.
        memory.rows.setdefault("checkpoints", {})[draft.previous_size] = row
        writes = [RowWrite("checkpoints", row)]
        nodes = [_node(who.tenant_id, node) for node in draft.nodes]
        if nodes:
            writes.append(RowWrite("log_nodes", nodes[0], more=tuple(nodes[1:])))
        if draft.key is not None:
            writes.append(_key(who.tenant_id, draft.key, 0, uow.now_ns))
        return SubmissionResult(200, None, writes=writes)

    read_set = ReadSet()
    read_set.row("checkpoints", draft.previous_size)
    read_set.row("log_keys", who.tenant_id)
    return Command(who, now_ns, decide, read_set, can_piggyback=True)


def _keys(uow: UnitOfWork, tenant_id: str) -> dict[str, dict[str, Any]]:
    rows = uow.memory.rows.get("log_keys", {})
    return {key_id: row for (owner, key_id), row in rows.items() if owner == tenant_id}


def _is_signed_by_its_keys(draft: CheckpointDraft, keys: dict[str, dict[str, Any]]) -> bool:
    """The sealer may not know of a rotation yet: the checkpoint signed by both keys must not be skipped."""
    new = {
        key_id
        for key_id, row in keys.items()
        if isinstance(row["since"], int) and draft.previous_size < row["since"] <= draft.size
    }
    return not new or new <= {line.key_id.hex() for line in note.split(draft.note)[1]}


def _node(tenant_id: str, node: TileNode) -> dict[str, Any]:
    return {"tenant_id": tenant_id, "level": node.level, "position": node.position, "hash": node.hash}


def _key(tenant_id: str, key: KeyRow, since: int, now_ns: int) -> RowWrite:
    row = {
        "tenant_id": tenant_id,
        "key_id": key.key_id,
        "public_key": key.public_key,
        "since": since,
        "created_ns": now_ns,
    }
    return RowWrite("log_keys", row)


def rotate(who: Principal, key: KeyRow, previous: Sequence[str], now_ns: int) -> Command:
    """From this event on `key` signs the log; its first checkpoint is also signed by the previous key."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        if key.key_id in _keys(uow, who.tenant_id):
            return SubmissionResult(200, {"rotated": False})
        detail = {"vkey": key.vkey, "previous_vkeys": list(previous)}
        summary = f"key {key.key_id} signs the log from now on"
        event = gateway_event(who.tenant_id, "log_key_rotated", summary, uow.now_ns, who, detail)
        number = uow.append(event)
        return SubmissionResult(200, {"rotated": True}, writes=[_add_key(uow, who.tenant_id, key, number)])

    return Command(who, now_ns, decide, _wants_keys(who.tenant_id))


def _add_key(uow: UnitOfWork, tenant_id: str, key: KeyRow, since: int) -> RowWrite:
    """The write for the database; the batch state gets the row too, for later commands of the batch."""
    write = _key(tenant_id, key, since, uow.now_ns)
    uow.memory.rows.setdefault("log_keys", {})[tenant_id, key.key_id] = write.values
    return write


class SignedExtent(msgspec.Struct, frozen=True):
    """A size and root of the log, as an event records them."""

    size: int
    root: str


def accept_rollback(
    who: Principal,
    why: str,
    before: SignedExtent | None,
    after: SignedExtent,
    key: KeyRow | None,
    now_ns: int,
) -> Command:
    """The gateway was started with `--accept-rollback`: the log continues from less than was signed."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        detail = {
            "reason": why,
            "signed_size": None if before is None else before.size,
            "signed_root": None if before is None else before.root,
            "size": after.size,
            "root": after.root,
            "vkey": None if key is None else key.vkey,
        }
        summary = f"a rollback of the log to {after.size} events was accepted"
        number = uow.append(
            gateway_event(who.tenant_id, "rollback_accepted", summary, uow.now_ns, who, detail)
        )
        writes = []
        if key is not None and key.key_id not in _keys(uow, who.tenant_id):
            writes.append(_add_key(uow, who.tenant_id, key, number))
        return SubmissionResult(200, {"accepted": True}, writes=writes)

    return Command(who, now_ns, decide, _wants_keys(who.tenant_id))


def _wants_keys(tenant_id: str) -> ReadSet:
    read_set = ReadSet()
    read_set.row("log_keys", tenant_id)
    return read_set
