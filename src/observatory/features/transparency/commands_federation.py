"""Commands of federation: add and remove peers, witness their checkpoints, store their cosignatures.

Law: a peer is one name and one key; a second key under a known name is refused. What a witness cosigns is
judged and stored under the tenant's lock, in one transaction, and always extends what was cosigned last:
concurrent requests cannot move it back. Two heads that one key signed and that are not of one log are
recorded once, as `peer_fork_detected`, with both notes as proof. A cosignature stored with our checkpoint is,
like the checkpoint, no event: it would have to be sealed in turn.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Literal, NamedTuple

from observatory.ledger import note
from observatory.ledger.witness import CheckpointOffer, WitnessHead, is_fork, judge_offer
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, EventDraft, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol.identity import mint
from observatory.protocol.responses import Refused

MAX_PEERS = 32  # their cosignatures must all fit under one checkpoint
Row = dict[str, Any]
PeerProblem = Literal["fork", "inconsistent", "rollback"]


def witness_name(origin: str) -> str:
    """The name under which a tenant cosigns for others: derived from its log's name, with the same key."""
    return f"{origin}/witness"


def witness_of(vkey: str) -> note.Verifier:
    """The key that verifies a peer's cosignatures: its own, or its log's key under its witness's name."""
    key = note.Verifier.from_vkey(vkey)
    if key.kind == note.COSIGNATURE:
        return key
    return note.Verifier(witness_name(key.name), key.public_key, note.COSIGNATURE)


class NewPeer(NamedTuple):
    name: str
    vkey: str  # checked
    url: str | None
    log_url: str | None

    @property
    def origin(self) -> str:
        return self.vkey.partition("+")[0]


class PeerCheckpoint(NamedTuple):
    """A checkpoint that a peer's key signed. `note` has its text and that signature, nothing else."""

    origin: str
    vkey: str
    head: WitnessHead
    text: str
    note: bytes


def peers_of(uow: UnitOfWork, tenant_id: str) -> list[Row]:
    rows = uow.memory.rows.setdefault("peers", {})
    return [row for (owner, _), row in rows.items() if owner == tenant_id and row["removed_ns"] is None]


def peer_reads(tenant_id: str, origin: str | None = None) -> ReadSet:
    read_set = ReadSet()
    read_set.row("peers", tenant_id)
    if origin is not None:
        read_set.row("peer_heads", origin)
    return read_set


def add_peer(who: Principal, peer: NewPeer, now_ns: int) -> Command:
    def decide(uow: UnitOfWork) -> SubmissionResult:
        known = peers_of(uow, who.tenant_id)
        for row in known:
            if (row["name"], *_addresses(row)) == (peer.name, peer.vkey, peer.url, peer.log_url):
                return SubmissionResult(200, row)
            if row["origin"] == peer.origin or witness_of(row["vkey"]).name == witness_of(peer.vkey).name:
                detail = "a peer of this name already has a key; replace it with `observatory peers key`"
                return SubmissionResult(409, Refused(reason="name_taken", detail=detail))
            if row["name"] == peer.name:
                detail = "a peer with that name already exists"
                return SubmissionResult(409, Refused(reason="name_taken", detail=detail))
        if len(known) >= MAX_PEERS:
            detail = f"a tenant has at most {MAX_PEERS} peers"
            return SubmissionResult(409, Refused(reason="too_many_peers", detail=detail))
        row = {
            "tenant_id": who.tenant_id,
            "peer_id": mint("per_", now_ns),
            "name": peer.name,
            "origin": peer.origin,
            "vkey": peer.vkey,
            "url": peer.url,
            "log_url": peer.log_url,
            "created_ns": uow.now_ns,
            "created_by": who.entity_id,
            "removed_ns": None,
        }
        uow.memory.rows["peers"][who.tenant_id, row["peer_id"]] = row  # for later commands of this batch
        summary = f"peer {peer.name} added by {who.entity_id}"
        event = gateway_event(who.tenant_id, "peer_added", summary, uow.now_ns, who, _peer_detail(row))
        return SubmissionResult(201, row, [event], [RowWrite("peers", row)])

    return Command(who, now_ns, decide, peer_reads(who.tenant_id))


def _addresses(row: Row) -> tuple[str, str | None, str | None]:
    return row["vkey"], row["url"], row["log_url"]


def _peer_detail(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in ("peer_id", "name", "origin", "vkey", "url", "log_url")}


def remove_peer(who: Principal, peer_id: str, now_ns: int) -> Command:
    """Remove a peer. The head of its log is kept: if added again, its log must extend it."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = uow.memory.rows.get("peers", {}).get((who.tenant_id, peer_id))
        if row is None or row["removed_ns"] is not None:
            return SubmissionResult(
                404, Refused(reason="not_found", detail="no peer of this tenant has that id")
            )
        row["removed_ns"] = uow.now_ns
        where = {"tenant_id": who.tenant_id, "peer_id": peer_id}
        summary = f"peer {row['name']} removed by {who.entity_id}"
        event = gateway_event(who.tenant_id, "peer_removed", summary, uow.now_ns, who, _peer_detail(row))
        answer = {"peer_id": peer_id, "removed": True}
        return SubmissionResult(200, answer, [event], [RowWrite("peers", {"removed_ns": uow.now_ns}, where)])

    return Command(who, now_ns, decide, peer_reads(who.tenant_id))


def witness(
    who: Principal, shown: PeerCheckpoint, offer: CheckpointOffer, cosigner: note.Cosigner, now_ns: int
) -> Command:
    """`shown` is the offer's checkpoint with a checked signature. Answers with the protocol's codes."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        if _signer(uow, who.tenant_id, shown) is None or uow.memory.tenant.disabled:
            return unknown_origin()
        row = uow.memory.rows.get("peer_heads", {}).get(shown.origin)
        known = None if row is None else WitnessHead(row["size"], bytes(row["root"]))
        code = judge_offer(known, offer.old, shown.head, offer.proof)
        events: list[EventDraft] = []
        writes: list[RowWrite] = []
        if row is not None and known is not None:
            doubt = _doubt(known, shown.head, code)
            if doubt is not None:
                events, writes = _record_fork(uow, who, row, shown, doubt)
        if code == 409:
            return SubmissionResult(409, known.size if known is not None else 0, events, writes)
        if code != 200:
            return SubmissionResult(code, _refused(code), events, writes)
        if row is not None and known == shown.head and _is_by(row["cosignature"], cosigner):
            return SubmissionResult(200, row["cosignature"])  # a repeat gets the same answer
        return _cosign(uow, who, row, shown, cosigner)

    return Command(who, now_ns, decide, peer_reads(who.tenant_id, shown.origin), size=len(offer.note) + 2_048)


def unknown_origin() -> SubmissionResult:
    detail = "this witness knows no log of that origin"
    return SubmissionResult(404, Refused(reason="unknown_origin", detail=detail))


def _refused(code: int) -> Refused:
    if code == 400:
        return Refused(reason="bad_request", detail="the old size is larger than that of the checkpoint")
    detail = "the proof does not lead from the last cosigned checkpoint to this one"
    return Refused(reason="not_consistent", detail=detail)


def _signer(uow: UnitOfWork, tenant_id: str, shown: PeerCheckpoint) -> Row | None:
    """The peer whose key verified it, if it is still a peer."""
    for row in peers_of(uow, tenant_id):
        if row["vkey"] == shown.vkey:
            return row
    return None


def _is_by(line: str, cosigner: note.Cosigner) -> bool:
    """Whether a stored cosignature is by the present key: the key may have been rotated since."""
    first = f"{note.DASH}{cosigner.name} "
    return line.startswith(first) and line[len(first) :].startswith(
        b64encode(cosigner.key_id).decode()[:5]  # 4 bytes are 5 whole digits and a part of the sixth
    )


def _doubt(known: WitnessHead, shown: WitnessHead, code: int) -> PeerProblem | None:
    if is_fork(known, shown):
        return "fork"
    # Anyone who has a newer checkpoint of the peer can send it with a false proof: recorded as inconsistent.
    return "inconsistent" if code == 422 and shown.size > known.size else None


def _cosign(
    uow: UnitOfWork, who: Principal, row: Row | None, shown: PeerCheckpoint, cosigner: note.Cosigner
) -> SubmissionResult:
    line = cosigner.line(shown.text)
    new: Row = {
        "tenant_id": who.tenant_id,
        "origin": shown.origin,
        "size": shown.head.size,
        "root": shown.head.root,
        "note": shown.note + line.encode(),
        "cosignature": line,
        "seen_ns": uow.now_ns,
    }
    if row is not None and (row["fork_size"], row["fork_root"]) == tuple(shown.head):
        new |= dict.fromkeys(FORK)  # the doubted head has now been proven
    uow.memory.rows.setdefault("peer_heads", {})[shown.origin] = dict.fromkeys(FORK) | (row or {}) | new
    detail = {
        "origin": shown.origin,
        "size": shown.head.size,
        "root": _text(shown.head.root),
        "previous_size": None if row is None else row["size"],
        "witness": cosigner.name,
        "witnessed_s": cosigner.seen_s,
    }
    summary = f"checkpoint of {shown.origin} at {shown.head.size} cosigned"
    event = gateway_event(who.tenant_id, "checkpoint_witnessed", summary, uow.now_ns, who, detail)
    return SubmissionResult(200, line, [event], [RowWrite("peer_heads", new, key=("tenant_id", "origin"))])


FORK = ("fork_kind", "fork_size", "fork_root", "fork_note", "fork_ns")


def _record_fork(
    uow: UnitOfWork, who: Principal, row: Row, shown: PeerCheckpoint, kind: PeerProblem
) -> tuple[list[EventDraft], list[RowWrite]]:
    """Record a fork, once per head, however often it is presented."""
    seen = None if row["fork_root"] is None else (row["fork_size"], bytes(row["fork_root"]))
    if seen == tuple(shown.head):
        return [], []
    fork = dict(zip(FORK, (kind, *shown.head, shown.note, uow.now_ns), strict=True))
    row |= fork
    detail = {
        "origin": shown.origin,
        "kind": kind,
        "known": _head(row["size"], bytes(row["root"]), bytes(row["note"])),
        "shown": _head(*shown.head, shown.note),
    }
    summary = f"{REASONS[kind]}: the log of {shown.origin} is rejected at {shown.head.size}"
    event = gateway_event(who.tenant_id, "peer_fork_detected", summary, uow.now_ns, who, detail)
    where = {"tenant_id": who.tenant_id, "origin": shown.origin}
    return [event], [RowWrite("peer_heads", fork, where)]


REASONS: dict[PeerProblem, str] = {
    "fork": "two roots were signed for one size",
    "inconsistent": "no proof leads from the cosigned checkpoint to the one presented",
    "rollback": "the log is shorter than what was signed",
}


def _head(size: int, root: bytes, signed: bytes) -> dict[str, Any]:
    return {"size": size, "root": _text(root), "checkpoint": signed.decode()}


def _text(root: bytes) -> str:
    return b64encode(root).decode()


def check_peer_head(who: Principal, shown: PeerCheckpoint, now_ns: int) -> Command:
    """Check the newest head that a peer's log serves: a shorter or different one is recorded."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = uow.memory.rows.get("peer_heads", {}).get(shown.origin)
        if row is None or _signer(uow, who.tenant_id, shown) is None:
            return SubmissionResult(200, None)
        known = WitnessHead(row["size"], bytes(row["root"]))
        kind: PeerProblem | None = "fork" if is_fork(known, shown.head) else None
        if shown.head.size < known.size:
            kind = "rollback"
        if kind is None:
            return SubmissionResult(200, None)
        events, writes = _record_fork(uow, who, row, shown, kind)
        return SubmissionResult(200, kind, events, writes)

    return Command(who, now_ns, decide, peer_reads(who.tenant_id, shown.origin))


class WitnessCosignature(NamedTuple):
    """A witness's verified line under our checkpoint."""

    size: int
    name: str
    peer_id: str
    line: str
    seen_s: int


def keep_cosignature(who: Principal, signed: WitnessCosignature, now_ns: int) -> Command:
    def decide(uow: UnitOfWork) -> SubmissionResult:
        stored = uow.memory.rows.setdefault("cosignatures", {})
        if (signed.size, signed.name) in stored:
            return SubmissionResult(200, None)
        row = {"tenant_id": who.tenant_id, **signed._asdict(), "kept_ns": uow.now_ns}
        stored[signed.size, signed.name] = row
        return SubmissionResult(200, None, writes=[RowWrite("cosignatures", row)])

    read_set = ReadSet()
    read_set.row("cosignatures", signed.size)
    return Command(who, now_ns, decide, read_set)


def ignore_witness_head(who: Principal, peer_id: str, head: WitnessHead, now_ns: int) -> Command:
    """After an accepted rollback: this witness's head of our log is not asked for again.

    The event is `rollback_accepted`; this is the mark in the peer's row.
    """

    def decide(uow: UnitOfWork) -> SubmissionResult:
        where = {"tenant_id": who.tenant_id, "peer_id": peer_id}
        values = {"forgone_size": head.size, "forgone_root": head.root}
        return SubmissionResult(200, None, writes=[RowWrite("peers", values, where)])

    return Command(who, now_ns, decide)
