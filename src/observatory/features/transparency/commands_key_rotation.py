"""Commands that replace a peer's key: vouched for by its own log, or set by an admin.

Law: a peer stays one name and one key; only the key changes, and its head is kept, so that no new key can
roll its log back. A vouched key is accepted only through an event under the very head that was cosigned last
with the previous key: a third party with its own key can vouch for nothing. An old rotation presented again
starts from a key that is no longer known, and changes nothing.
"""

from __future__ import annotations

from observatory.features.transparency.commands_federation import (
    PeerCheckpoint,
    Row,
    peer_reads,
    peers_of,
    unknown_origin,
)
from observatory.ledger.key_rotation import KeyRotation, verify_rotation
from observatory.ledger.note import BadNote, Verifier
from observatory.ledger.witness import WitnessHead
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, EventDraft, Principal, SubmissionResult, UnitOfWork
from observatory.protocol.responses import Refused


def follow(who: Principal, shown: PeerCheckpoint, rotation: KeyRotation, now_ns: int) -> Command:
    """`shown` is the proof's checkpoint, its signature checked with the known key.

    200 when the new key is stored, or was already; 409 and the last cosigned size when the proof is under
    another head; 422 when it proves nothing.
    """

    def decide(uow: UnitOfWork) -> SubmissionResult:
        matches = [row for row in peers_of(uow, who.tenant_id) if row["vkey"] == shown.vkey]
        if not matches or uow.memory.tenant.disabled:
            return unknown_origin()
        (row,) = matches
        if row["vkey"] == rotation.vkey:
            return SubmissionResult(200, row)
        head = uow.memory.rows.get("peer_heads", {}).get(shown.origin)
        known = None if head is None else WitnessHead(head["size"], bytes(head["root"]))
        if known != shown.head:
            return SubmissionResult(409, 0 if known is None else known.size)
        try:
            verify_rotation(rotation, Verifier.from_vkey(row["vkey"]), *shown.head)
        except BadNote as error:
            return SubmissionResult(422, Refused(reason="not_vouched", detail=str(error)))
        return _changed(uow, who, row, rotation.vkey, rotation.audit_event_id)

    return Command(
        who, now_ns, decide, peer_reads(who.tenant_id, shown.origin), size=len(rotation.record) + 2_048
    )


def change_key(who: Principal, peer_id: str, vkey: str, now_ns: int) -> Command:
    """An admin sets the key, having received it out of band; `vkey` is already validated."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        matches = [row for row in peers_of(uow, who.tenant_id) if row["peer_id"] == peer_id]
        if not matches:
            return SubmissionResult(
                404, Refused(reason="not_found", detail="no peer of this tenant has that id")
            )
        (row,) = matches
        if row["vkey"] == vkey:
            return SubmissionResult(200, row)
        old, new = Verifier.from_vkey(row["vkey"]), Verifier.from_vkey(vkey)
        if (old.name, old.kind) != (new.name, new.kind):
            detail = "the new key has another name or another use; add it as a peer of its own"
            return SubmissionResult(422, Refused(reason="bad_key", detail=detail))
        return _changed(uow, who, row, vkey, None)

    return Command(who, now_ns, decide, peer_reads(who.tenant_id))


def _changed(uow: UnitOfWork, who: Principal, row: Row, vkey: str, event_id: str | None) -> SubmissionResult:
    detail = {
        "peer_id": row["peer_id"],
        "name": row["name"],
        "origin": row["origin"],
        "vkey": vkey,
        "previous_vkey": row["vkey"],
        "vouched_by": "admin" if event_id is None else "log",
        "rotation_event_id": event_id,  # of the peer's record
    }
    row["vkey"] = vkey  # for later commands of this batch
    by = f"set by {who.entity_id}" if event_id is None else "vouched for by its log"
    summary = f"key of peer {row['name']} replaced, {by}"
    event: EventDraft = gateway_event(who.tenant_id, "peer_key_changed", summary, uow.now_ns, who, detail)
    where = {"tenant_id": who.tenant_id, "peer_id": row["peer_id"]}
    return SubmissionResult(200, row, [event], [RowWrite("peers", {"vkey": vkey}, where)])
