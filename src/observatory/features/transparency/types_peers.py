"""What the doors of federation answer. Roots are base64, as in checkpoints."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class PeerHead(msgspec.Struct, kw_only=True):
    """`checkpoint` is the note: the log's own signature, and ours under it if it was cosigned here."""

    size: int
    root: str
    checkpoint: str
    seen_at: str


class PeerFork(PeerHead, kw_only=True):
    """A head that is not believed. A `fork` is proven by the two notes; the other two were seen only."""

    kind: Literal["fork", "inconsistent", "rollback"]


class PeerAsked(msgspec.Struct, kw_only=True):
    """How this peer answered when our checkpoint was last offered to it, since this gateway started."""

    state: Literal["never", "cosigned", "unreachable", "refused", "ahead"]
    detail: str | None
    at: str | None


class PeerItem(msgspec.Struct, kw_only=True):
    """`head` is what was last cosigned of its log; `cosigned_size` how much of ours it has cosigned."""

    peer_id: str
    name: str
    origin: str
    vkey: str
    witness_vkey: str
    url: str | None
    log_url: str | None
    created_at: str
    created_by: str
    head: PeerHead | None
    fork: PeerFork | None
    cosigned_size: int | None
    asked: PeerAsked


class OwnWitness(msgspec.Struct, kw_only=True):
    """As whom this tenant cosigns, and where."""

    name: str
    vkey: str | None
    url: str


class PeersAnswer(msgspec.Struct, kw_only=True):
    items: list[PeerItem]
    next_cursor: str | None
    witness: OwnWitness


class PeerRemoved(msgspec.Struct, kw_only=True):
    peer_id: str
    removed: bool


PEER_ANSWERS: dict[str, Any] = {
    "add_peer": PeerItem,
    "list_peers": PeersAnswer,
    "remove_peer": PeerRemoved,
    "change_peer_key": PeerItem,
    "offer_checkpoint": PeerItem,
}
# What is not JSON when it is heard: operation → media types.
PEER_PLAIN: dict[str, tuple[str, ...]] = {
    "add_checkpoint": ("text/plain",),
    "follow_key": ("text/plain",),
    "witnessed_checkpoint": ("text/plain",),
}
# They need no key: the checkpoint's signature is one.
WITNESS_DOORS = ("add_checkpoint", "follow_key", "witnessed_checkpoint")
# What is brought to them is the protocol's own text, judged by its codes.
OFFERED = ("add_checkpoint", "follow_key")
