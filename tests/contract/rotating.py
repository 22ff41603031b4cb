"""A peer's log whose key is followed by another: it tells of it, truly or not."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from observatory.ledger import merkle, note, tlog_proof
from observatory.ledger.canonical import jcs
from observatory.ledger.note import Signer
from tests.contract.peering import ORIGIN, PeerLog


class Rotating(PeerLog):
    """A peer whose event number `at` tells that `new` follows; what it tells can be bent."""

    def __init__(self, at: int = 6, origin: str = ORIGIN, fork: int | None = None, **bent: Any) -> None:
        super().__init__(origin, fork=fork)
        self.new, self.at = Signer(origin, sha256(b"the next key").digest()), at
        body = {"event_type": "log_key_rotated", "previous_vkeys": [self.vkey], "vkey": self.new.vkey}
        self.record = jcs(
            {
                "audit_event_id": "evt_theirs",
                "body": body | bent,
                "hash_chain": {"event_hash": f"sha256:{'a' * 64}", "sequence_number": at},
                "resource": {"av.tenant.id": "tnt_theirs"},
            }
        )

    def leaves(self, size: int) -> list[bytes]:
        found = super().leaves(size)
        if self.at <= size:
            digest = f"sha256:{sha256(self.record).hexdigest()}"
            leaf = merkle.leaf_data("tnt_theirs", self.at, f"sha256:{'a' * 64}", digest)
            found[self.at - 1] = merkle.leaf_hash(leaf)
        return found

    def shown(self, size: int, **other: Any) -> bytes:
        hashes = merkle.inclusion_proof(self.leaves(size), self.at - 1)
        checkpoint = note.sign(note.checkpoint(self.origin, *self.head(size)), [self.signer, self.new])
        values: dict[str, Any] = {"index": self.at - 1, "hashes": hashes, "checkpoint": checkpoint}
        return tlog_proof.write(**(values | {"extra": self.record} | other))
