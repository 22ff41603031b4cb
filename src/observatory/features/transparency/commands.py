"""Acts of the tenant's log: a checkpoint is kept, a key follows another, a rollback is accepted.

Law: a checkpoint is written in the corridor, under the tenant's lock, together with the hashes it
settles, and only behind the one it follows: of two who seal, the second finds the first's row and writes
nothing. It is the one act without an audit event: it adds nothing to the record it is a statement about,
and an event would have to be sealed in its turn, for ever. A new key and an accepted rollback are events
like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from observatory.ledger import note
from observatory.ledger.tiles import Node
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Principal, Verdict, Wants
from observatory.protocol.answers import Refused


class KeyRow(msgspec.Struct, frozen=True):
    """A key by its public half. `key_id` is that of its name in this tenant's log."""

    key_id: str
    public_key: bytes
    vkey: str


class Draft(msgspec.Struct, frozen=True):
    """A checkpoint that is signed and not yet kept. `key` is given with the first one of a tenant."""

    previous_size: int
    size: int
    root: bytes
    note: bytes
    nodes: tuple[Node, ...]
    key: KeyRow | None = None


def seal(who: Principal, draft: Draft, now_ns: int) -> Act:
    def decide(desk: Desk) -> Verdict:
        memory = desk.memory
        if draft.previous_size in memory.rows.get("checkpoints", {}):
            return Verdict(409, Refused(reason="sealed_already", detail="another gateway was faster"))
        if draft.size > memory.head.sequence_number:
            detail = "the record does not reach as far as this checkpoint"
            return Verdict(409, Refused(reason="beyond_the_record", detail=detail))
        if not _is_signed_by_its_keys(draft, _keys(desk, who.tenant_id)):
            detail = "another key signs from an event under this checkpoint, and did not sign it"
            return Verdict(409, Refused(reason="key_followed", detail=detail))
        row = {
            "tenant_id": who.tenant_id,
            "size": draft.size,
            "previous_size": draft.previous_size,
            "root": draft.root,
            "note": draft.note,
            "signed_ns": desk.now_ns,
        }
        # A second one of the same batch must find it.
        memory.rows.setdefault("checkpoints", {})[draft.previous_size] = row
        writes = [Write("checkpoints", row)]
        nodes = [_node(who.tenant_id, node) for node in draft.nodes]
        if nodes:
            writes.append(Write("log_nodes", nodes[0], more=tuple(nodes[1:])))
        if draft.key is not None:
            writes.append(_key(who.tenant_id, draft.key, 0, desk.now_ns))
        return Verdict(200, None, writes=writes)

    wants = Wants()
    wants.row("checkpoints", draft.previous_size)
    wants.row("log_keys", who.tenant_id)
    return Act(who, now_ns, decide, wants, rides=True)


def _keys(desk: Desk, tenant_id: str) -> dict[str, dict[str, Any]]:
    rows = desk.memory.rows.get("log_keys", {})
    return {key_id: row for (owner, key_id), row in rows.items() if owner == tenant_id}


def _is_signed_by_its_keys(draft: Draft, keys: dict[str, dict[str, Any]]) -> bool:
    """Who drew it up may not have heard of a rotation yet: the bridge to the new key must not be left out."""
    new = {
        key_id
        for key_id, row in keys.items()
        if isinstance(row["since"], int) and draft.previous_size < row["since"] <= draft.size
    }
    return not new or new <= {line.key_id.hex() for line in note.split(draft.note)[1]}


def _node(tenant_id: str, node: Node) -> dict[str, Any]:
    return {"tenant_id": tenant_id, "level": node.level, "position": node.position, "hash": node.hash}


def _key(tenant_id: str, key: KeyRow, since: int, now_ns: int) -> Write:
    row = {
        "tenant_id": tenant_id,
        "key_id": key.key_id,
        "public_key": key.public_key,
        "since": since,
        "created_ns": now_ns,
    }
    return Write("log_keys", row)


def rotate(who: Principal, key: KeyRow, previous: Sequence[str], now_ns: int) -> Act:
    """From this event on the log is signed by `key`; its first checkpoint by the one before as well."""

    def decide(desk: Desk) -> Verdict:
        if key.key_id in _keys(desk, who.tenant_id):
            return Verdict(200, {"rotated": False})
        detail = {"vkey": key.vkey, "previous_vkeys": list(previous)}
        summary = f"the log is signed by the key {key.key_id} from here on"
        event = notice(who.tenant_id, "log_key_rotated", summary, desk.now_ns, who, detail)
        number = desk.append(event)
        return Verdict(200, {"rotated": True}, writes=[_told(desk, who.tenant_id, key, number)])

    return Act(who, now_ns, decide, _wants_keys(who.tenant_id))


def _told(desk: Desk, tenant_id: str, key: KeyRow, since: int) -> Write:
    """For the database, and for others of this batch."""
    write = _key(tenant_id, key, since, desk.now_ns)
    desk.memory.rows.setdefault("log_keys", {})[tenant_id, key.key_id] = write.values
    return write


class Signed(msgspec.Struct, frozen=True):
    """How far something reaches, as an event tells it."""

    size: int
    root: str


def accept(
    who: Principal, why: str, before: Signed | None, after: Signed, key: KeyRow | None, now_ns: int
) -> Act:
    """Somebody started the gateway with `--accept-rollback`: the log goes on from less than was signed."""

    def decide(desk: Desk) -> Verdict:
        detail = {
            "reason": why,
            "signed_size": None if before is None else before.size,
            "signed_root": None if before is None else before.root,
            "size": after.size,
            "root": after.root,
            "vkey": None if key is None else key.vkey,
        }
        summary = f"a rollback of the log to {after.size} events was accepted"
        number = desk.append(notice(who.tenant_id, "rollback_accepted", summary, desk.now_ns, who, detail))
        writes = []
        if key is not None and key.key_id not in _keys(desk, who.tenant_id):
            writes.append(_told(desk, who.tenant_id, key, number))
        return Verdict(200, {"accepted": True}, writes=writes)

    return Act(who, now_ns, decide, _wants_keys(who.tenant_id))


def _wants_keys(tenant_id: str) -> Wants:
    wants = Wants()
    wants.row("log_keys", tenant_id)
    return wants
