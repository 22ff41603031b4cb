"""A peer's log of its own, outside every house: leaves, a key, checkpoints and proofs, honest or not."""

from __future__ import annotations

from hashlib import sha256

from observatory.features.transparency import commands_federation as federation
from observatory.features.transparency.commands_federation import witness_name
from observatory.features.transparency.worker_federation import read_peer_checkpoint
from observatory.ledger import merkle, note, witness
from observatory.ledger.note import Cosigner, Signer
from observatory.ledger.witness import CheckpointOffer, WitnessHead
from observatory.pipeline.state import HOME_TENANT, Command, Principal, SubmissionResult
from tests.contract.conftest import Harness

ORIGIN = "peer.example/log/tnt_theirs"
WITNESS_KEY = sha256(b"the witness").digest()


class PeerLog:
    """`fork` makes every leaf from that index on another one."""

    def __init__(self, origin: str = ORIGIN, seed: bytes = b"a peer", fork: int | None = None) -> None:
        self.signer = Signer(origin, sha256(seed).digest())
        self.origin, self._fork = origin, fork

    @property
    def vkey(self) -> str:
        return self.signer.vkey

    def leaves(self, size: int) -> list[bytes]:
        fork = size if self._fork is None else self._fork
        return [merkle.leaf_hash(b"%d%s" % (i, b"" if i < fork else b"'")) for i in range(size)]

    def head(self, size: int) -> WitnessHead:
        return WitnessHead(size, merkle.root(self.leaves(size)))

    def checkpoint(self, size: int, signer: Signer | None = None) -> bytes:
        return note.sign(note.checkpoint(self.origin, *self.head(size)), [signer or self.signer])

    def proof(self, old: int, size: int) -> list[bytes]:
        return merkle.consistency_proof(self.leaves(size), old) if 0 < old < size else []

    def offer(self, old: int, size: int) -> CheckpointOffer:
        return CheckpointOffer(old, self.proof(old, size), self.checkpoint(size))


def cosigner(seen_s: int = 1_800_000_000, key: bytes = WITNESS_KEY) -> Cosigner:
    return Cosigner(witness_name("log.example/tnt_default"), key, seen_s)


def add(harness: Harness, log: PeerLog, name: str = "them", who: Principal | None = None) -> SubmissionResult:
    peer = federation.NewPeer(name, log.vkey, None, None)
    (verdict,) = harness.submit(federation.add_peer(who or harness.admin(), peer, harness.now()))
    return verdict


def act(harness: Harness, log: PeerLog, offer: CheckpointOffer, signer: Cosigner | None = None) -> Command:
    shown = read_peer_checkpoint(offer.note, log.vkey)
    who = Principal(tenant_id=HOME_TENANT, role="admin", key_id="sys_gateway")
    return federation.witness(who, shown, offer, signer or cosigner(), harness.now())


def ask(
    harness: Harness, log: PeerLog, offer: CheckpointOffer, signer: Cosigner | None = None
) -> SubmissionResult:
    (verdict,) = harness.submit(act(harness, log, offer, signer))
    return verdict


def received(harness: Harness, event_type: str) -> int:
    word = f'"event_type":"{event_type}"'.encode()
    return sum(word in event.record for event in harness.trail_of())


def opened(line: str, text: str) -> list[str]:
    """The names whose cosignature this line is, under this checkpoint's text."""
    key = note.Verifier(witness_name("log.example/tnt_default"), cosigner().public_key, note.COSIGNATURE)
    return note.open(f"{text}\n{line}".encode(), [key])[1]


__all__ = ["ORIGIN", "PeerLog", "act", "add", "ask", "cosigner", "opened", "received", "witness"]
