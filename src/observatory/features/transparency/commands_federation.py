"""Acts of federation: peers are made known, their checkpoints witnessed, their cosignatures of ours kept.

Law: a peer is one name and one key; a second key under a name that is known is refused. What a witness
cosigns is judged and kept under the tenant's lock, in one transaction, and only ever goes on from what was
cosigned last: of any number that race none makes it go back. Two heads that one key signed and that are
not of one log are told once, as `peer_fork_detected`, with both notes: they are the proof. A cosignature
kept with a checkpoint of ours is, like the checkpoint, no event: it would have to be sealed in its turn.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Literal, NamedTuple

from observatory.ledger import note
from observatory.ledger.witness import Head, Offer, is_fork, judge
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Draft, Principal, Verdict, Wants
from observatory.protocol.answers import Refused
from observatory.protocol.identity import mint

MOST_PEERS = 32  # their cosignatures must all fit under one checkpoint
Row = dict[str, Any]
Doubt = Literal["fork", "inconsistent", "rollback"]


def witness_name(origin: str) -> str:
    """Under which name a tenant cosigns for others: beside that of its log, with the same key."""
    return f"{origin}/witness"


def witness_of(vkey: str) -> note.Verifier:
    """The key a peer's cosignatures are checked by: its own, or its log's under the name of its witness."""
    found = note.Verifier.from_vkey(vkey)
    if found.kind == note.COSIGNATURE:
        return found
    return note.Verifier(witness_name(found.name), found.public_key, note.COSIGNATURE)


class NewPeer(NamedTuple):
    name: str
    vkey: str  # checked
    url: str | None
    log_url: str | None

    @property
    def origin(self) -> str:
        return self.vkey.partition("+")[0]


class Shown(NamedTuple):
    """A checkpoint that a peer's key signed. `note` holds its text and that signature, nothing else."""

    origin: str
    vkey: str
    head: Head
    text: str
    note: bytes


def peers_of(desk: Desk, tenant_id: str) -> list[Row]:
    rows = desk.memory.rows.setdefault("peers", {})
    return [row for (owner, _), row in rows.items() if owner == tenant_id and row["removed_ns"] is None]


def peers_wanted(tenant_id: str, origin: str | None = None) -> Wants:
    wants = Wants()
    wants.row("peers", tenant_id)
    if origin is not None:
        wants.row("peer_heads", origin)
    return wants


def add_peer(who: Principal, peer: NewPeer, now_ns: int) -> Act:
    def decide(desk: Desk) -> Verdict:
        known = peers_of(desk, who.tenant_id)
        for row in known:
            if (row["name"], *_ways(row)) == (peer.name, peer.vkey, peer.url, peer.log_url):
                return Verdict(200, row)
            if row["origin"] == peer.origin or witness_of(row["vkey"]).name == witness_of(peer.vkey).name:
                detail = (
                    "a peer of this name has a key already; `observatory peers key` lets another follow it"
                )
                return Verdict(409, Refused(reason="name_taken", detail=detail))
            if row["name"] == peer.name:
                detail = "another peer is called so already"
                return Verdict(409, Refused(reason="name_taken", detail=detail))
        if len(known) >= MOST_PEERS:
            detail = f"a tenant has at most {MOST_PEERS} peers"
            return Verdict(409, Refused(reason="too_many_peers", detail=detail))
        row = {
            "tenant_id": who.tenant_id,
            "peer_id": mint("per_", now_ns),
            "name": peer.name,
            "origin": peer.origin,
            "vkey": peer.vkey,
            "url": peer.url,
            "log_url": peer.log_url,
            "created_ns": desk.now_ns,
            "created_by": who.entity_id,
            "removed_ns": None,
        }
        desk.memory.rows["peers"][who.tenant_id, row["peer_id"]] = row  # for others of this batch
        summary = f"peer {peer.name} made known by {who.entity_id}"
        event = notice(who.tenant_id, "peer_added", summary, desk.now_ns, who, _told(row))
        return Verdict(201, row, [event], [Write("peers", row)])

    return Act(who, now_ns, decide, peers_wanted(who.tenant_id))


def _ways(row: Row) -> tuple[str, str | None, str | None]:
    return row["vkey"], row["url"], row["log_url"]


def _told(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in ("peer_id", "name", "origin", "vkey", "url", "log_url")}


def remove_peer(who: Principal, peer_id: str, now_ns: int) -> Act:
    """Nothing of it is believed any more. The head of its log stays: it would go on from there."""

    def decide(desk: Desk) -> Verdict:
        row = desk.memory.rows.get("peers", {}).get((who.tenant_id, peer_id))
        if row is None or row["removed_ns"] is not None:
            return Verdict(404, Refused(reason="not_found", detail="no peer of this tenant has that id"))
        row["removed_ns"] = desk.now_ns
        where = {"tenant_id": who.tenant_id, "peer_id": peer_id}
        summary = f"peer {row['name']} removed by {who.entity_id}"
        event = notice(who.tenant_id, "peer_removed", summary, desk.now_ns, who, _told(row))
        answer = {"peer_id": peer_id, "removed": True}
        return Verdict(200, answer, [event], [Write("peers", {"removed_ns": desk.now_ns}, where)])

    return Act(who, now_ns, decide, peers_wanted(who.tenant_id))


def witness(who: Principal, shown: Shown, offer: Offer, cosigner: note.Cosigner, now_ns: int) -> Act:
    """`shown` is the offer's checkpoint, its signature checked. Answered with the codes of the protocol."""

    def decide(desk: Desk) -> Verdict:
        if _signer(desk, who.tenant_id, shown) is None or desk.memory.tenant.disabled:
            return unknown_origin()
        row = desk.memory.rows.get("peer_heads", {}).get(shown.origin)
        known = None if row is None else Head(row["size"], bytes(row["root"]))
        code = judge(known, offer.old, shown.head, offer.proof)
        told: list[Draft] = []
        writes: list[Write] = []
        if row is not None and known is not None:
            doubt = _doubt(known, shown.head, code)
            if doubt is not None:
                told, writes = _tell_fork(desk, who, row, shown, doubt)
        if code == 409:
            return Verdict(409, known.size if known is not None else 0, told, writes)
        if code != 200:
            return Verdict(code, _refused(code), told, writes)
        if row is not None and known == shown.head and _is_by(row["cosignature"], cosigner):
            return Verdict(200, row["cosignature"])  # asked again: answered as the first time
        return _cosign(desk, who, row, shown, cosigner)

    return Act(who, now_ns, decide, peers_wanted(who.tenant_id, shown.origin), size=len(offer.note) + 2_048)


def unknown_origin() -> Verdict:
    detail = "this witness knows no log of that origin"
    return Verdict(404, Refused(reason="unknown_origin", detail=detail))


def _refused(code: int) -> Refused:
    if code == 400:
        return Refused(reason="bad_request", detail="the old size lies past that of the checkpoint")
    detail = "the proof does not lead from what was cosigned last to this checkpoint"
    return Refused(reason="not_consistent", detail=detail)


def _signer(desk: Desk, tenant_id: str, shown: Shown) -> Row | None:
    """The peer by whose key it was checked, if it is still known."""
    for row in peers_of(desk, tenant_id):
        if row["vkey"] == shown.vkey:
            return row
    return None


def _is_by(line: str, cosigner: note.Cosigner) -> bool:
    """Whether a kept cosignature is by the present key: it may have been followed by another."""
    first = f"{note.DASH}{cosigner.name} "
    return line.startswith(first) and line[len(first) :].startswith(
        b64encode(cosigner.key_id).decode()[:5]  # 4 bytes are 5 whole digits and a part of the sixth
    )


def _doubt(known: Head, shown: Head, code: int) -> Doubt | None:
    if is_fork(known, shown):
        return "fork"
    # Whoever has a newer checkpoint of the peer can send it with a false proof: told as what it is.
    return "inconsistent" if code == 422 and shown.size > known.size else None


def _cosign(desk: Desk, who: Principal, row: Row | None, shown: Shown, cosigner: note.Cosigner) -> Verdict:
    line = cosigner.line(shown.text)
    new: Row = {
        "tenant_id": who.tenant_id,
        "origin": shown.origin,
        "size": shown.head.size,
        "root": shown.head.root,
        "note": shown.note + line.encode(),
        "cosignature": line,
        "seen_ns": desk.now_ns,
    }
    if row is not None and (row["fork_size"], row["fork_root"]) == tuple(shown.head):
        new |= dict.fromkeys(FORK)  # the head that was doubted was proven after all
    desk.memory.rows.setdefault("peer_heads", {})[shown.origin] = dict.fromkeys(FORK) | (row or {}) | new
    detail = {
        "origin": shown.origin,
        "size": shown.head.size,
        "root": _text(shown.head.root),
        "previous_size": None if row is None else row["size"],
        "witness": cosigner.name,
        "witnessed_s": cosigner.seen_s,
    }
    summary = f"checkpoint of {shown.origin} at {shown.head.size} cosigned"
    event = notice(who.tenant_id, "checkpoint_witnessed", summary, desk.now_ns, who, detail)
    return Verdict(200, line, [event], [Write("peer_heads", new, key=("tenant_id", "origin"))])


FORK = ("fork_kind", "fork_size", "fork_root", "fork_note", "fork_ns")


def _tell_fork(
    desk: Desk, who: Principal, row: Row, shown: Shown, kind: Doubt
) -> tuple[list[Draft], list[Write]]:
    """Once for a head, however often it is shown."""
    seen = None if row["fork_root"] is None else (row["fork_size"], bytes(row["fork_root"]))
    if seen == tuple(shown.head):
        return [], []
    fork = dict(zip(FORK, (kind, *shown.head, shown.note, desk.now_ns), strict=True))
    row |= fork
    detail = {
        "origin": shown.origin,
        "kind": kind,
        "known": _head(row["size"], bytes(row["root"]), bytes(row["note"])),
        "shown": _head(*shown.head, shown.note),
    }
    summary = f"{SAID[kind]}: the log of {shown.origin} is not believed at {shown.head.size}"
    event = notice(who.tenant_id, "peer_fork_detected", summary, desk.now_ns, who, detail)
    where = {"tenant_id": who.tenant_id, "origin": shown.origin}
    return [event], [Write("peer_heads", fork, where)]


SAID: dict[Doubt, str] = {
    "fork": "two roots were signed for one size",
    "inconsistent": "no proof leads from what was cosigned to what is shown",
    "rollback": "less is shown than was signed",
}


def _head(size: int, root: bytes, signed: bytes) -> dict[str, Any]:
    return {"size": size, "root": _text(root), "checkpoint": signed.decode()}


def _text(root: bytes) -> str:
    return b64encode(root).decode()


def see(who: Principal, shown: Shown, now_ns: int) -> Act:
    """What a peer's log shows as its newest head, looked up there: less, or another, is told."""

    def decide(desk: Desk) -> Verdict:
        row = desk.memory.rows.get("peer_heads", {}).get(shown.origin)
        if row is None or _signer(desk, who.tenant_id, shown) is None:
            return Verdict(200, None)
        known = Head(row["size"], bytes(row["root"]))
        kind: Doubt | None = "fork" if is_fork(known, shown.head) else None
        if shown.head.size < known.size:
            kind = "rollback"
        if kind is None:
            return Verdict(200, None)
        events, writes = _tell_fork(desk, who, row, shown, kind)
        return Verdict(200, kind, events, writes)

    return Act(who, now_ns, decide, peers_wanted(who.tenant_id, shown.origin))


class Cosigned(NamedTuple):
    """A witness's line under a checkpoint of ours, checked."""

    size: int
    name: str
    peer_id: str
    line: str
    seen_s: int


def keep_cosignature(who: Principal, signed: Cosigned, now_ns: int) -> Act:
    def decide(desk: Desk) -> Verdict:
        kept = desk.memory.rows.setdefault("cosignatures", {})
        if (signed.size, signed.name) in kept:
            return Verdict(200, None)
        row = {"tenant_id": who.tenant_id, **signed._asdict(), "kept_ns": desk.now_ns}
        kept[signed.size, signed.name] = row
        return Verdict(200, None, writes=[Write("cosignatures", row)])

    wants = Wants()
    wants.row("cosignatures", signed.size)
    return Act(who, now_ns, decide, wants)


def forgo(who: Principal, peer_id: str, head: Head, now_ns: int) -> Act:
    """A rollback was accepted: what this witness has of our log is not asked about again.

    `rollback_accepted` tells of it; this is its trace in the peer's row.
    """

    def decide(desk: Desk) -> Verdict:
        where = {"tenant_id": who.tenant_id, "peer_id": peer_id}
        values = {"forgone_size": head.size, "forgone_root": head.root}
        return Verdict(200, None, writes=[Write("peers", values, where)])

    return Act(who, now_ns, decide)
