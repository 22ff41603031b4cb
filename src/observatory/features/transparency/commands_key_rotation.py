"""Acts by which another key follows a peer's: vouched for by its own log, or said by an admin.

Law: a peer stays one name and one key; only which key it is changes, and its head stays where it is, so that
no new key can roll its log back. A key vouched for is believed only by an event of the very head that was
cosigned last under the key before it: whoever holds no more than a key of his own can vouch for nothing. An
old rotation shown again leads from a key that is known no more, and changes nothing.
"""

from __future__ import annotations

from observatory.features.transparency.commands_federation import (
    Row,
    Shown,
    peers_of,
    peers_wanted,
    unknown_origin,
)
from observatory.ledger.note import BadNote, Verifier
from observatory.ledger.succession import Succession, follows
from observatory.ledger.witness import Head
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Draft, Principal, Verdict
from observatory.protocol.answers import Refused


def follow(who: Principal, shown: Shown, told: Succession, now_ns: int) -> Act:
    """`shown` is the checkpoint of the proof, its signature checked by the key that is known.

    200 when the new key is known from now on, or was; 409 and the size cosigned last when the proof is under
    another head than that; 422 when it proves nothing.
    """

    def decide(desk: Desk) -> Verdict:
        found = [row for row in peers_of(desk, who.tenant_id) if row["vkey"] == shown.vkey]
        if not found or desk.memory.tenant.disabled:
            return unknown_origin()
        (row,) = found
        if row["vkey"] == told.vkey:
            return Verdict(200, row)
        head = desk.memory.rows.get("peer_heads", {}).get(shown.origin)
        known = None if head is None else Head(head["size"], bytes(head["root"]))
        if known != shown.head:
            return Verdict(409, 0 if known is None else known.size)
        try:
            follows(told, Verifier.from_vkey(row["vkey"]), *shown.head)
        except BadNote as error:
            return Verdict(422, Refused(reason="not_vouched", detail=str(error)))
        return _changed(desk, who, row, told.vkey, told.audit_event_id)

    return Act(who, now_ns, decide, peers_wanted(who.tenant_id, shown.origin), size=len(told.record) + 2_048)


def change_key(who: Principal, peer_id: str, vkey: str, now_ns: int) -> Act:
    """An admin says so, having heard of it otherwise: `vkey` is checked to be a key."""

    def decide(desk: Desk) -> Verdict:
        found = [row for row in peers_of(desk, who.tenant_id) if row["peer_id"] == peer_id]
        if not found:
            return Verdict(404, Refused(reason="not_found", detail="no peer of this tenant has that id"))
        (row,) = found
        if row["vkey"] == vkey:
            return Verdict(200, row)
        old, new = Verifier.from_vkey(row["vkey"]), Verifier.from_vkey(vkey)
        if (old.name, old.kind) != (new.name, new.kind):
            detail = "the key that is to follow has another name or another use; add it as a peer of its own"
            return Verdict(422, Refused(reason="bad_key", detail=detail))
        return _changed(desk, who, row, vkey, None)

    return Act(who, now_ns, decide, peers_wanted(who.tenant_id))


def _changed(desk: Desk, who: Principal, row: Row, vkey: str, event_id: str | None) -> Verdict:
    detail = {
        "peer_id": row["peer_id"],
        "name": row["name"],
        "origin": row["origin"],
        "vkey": vkey,
        "previous_vkey": row["vkey"],
        "vouched_by": "admin" if event_id is None else "log",
        "rotation_event_id": event_id,  # of the peer's record
    }
    row["vkey"] = vkey  # for others of this batch
    by = f"said by {who.entity_id}" if event_id is None else "vouched for by its log"
    summary = f"another key follows that of peer {row['name']}, {by}"
    event: Draft = notice(who.tenant_id, "peer_key_changed", summary, desk.now_ns, who, detail)
    where = {"tenant_id": who.tenant_id, "peer_id": row["peer_id"]}
    return Verdict(200, row, [event], [Write("peers", {"vkey": vkey}, where)])
