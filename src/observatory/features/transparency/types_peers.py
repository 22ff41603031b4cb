"""Response types of the federation routes. Roots are base64, as in checkpoints."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class PeerHead(msgspec.Struct, kw_only=True):
    """`checkpoint` is the note: the log's own signature, and ours below it if it was cosigned here."""

    size: int
    root: str
    checkpoint: str
    seen_at: str


class PeerFork(PeerHead, kw_only=True):
    """A rejected head. A `fork` is proven by the two notes; the other kinds were only observed."""

    kind: Literal["fork", "inconsistent", "rollback"]


class PeerAsked(msgspec.Struct, kw_only=True):
    """The peer's last answer to an offer of our checkpoint, since this gateway started."""

    state: Literal["never", "cosigned", "unreachable", "refused", "ahead"]
    detail: str | None
    at: str | None


class PeerItem(msgspec.Struct, kw_only=True):
    """`head` is the last cosigned head of its log; `cosigned_size` is how much of our log it has cosigned."""

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
    """The name, key and URL with which this tenant cosigns."""

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
# Responses that are not JSON: operation → media types.
PEER_PLAIN: dict[str, tuple[str, ...]] = {
    "add_checkpoint": ("text/plain",),
    "follow_key": ("text/plain",),
    "witnessed_checkpoint": ("text/plain",),
}
# Routes without an API key: the checkpoint's signature is the credential.
WITNESS_OPERATIONS = ("add_checkpoint", "follow_key", "witnessed_checkpoint")
# Routes whose request body is the protocol's text, answered with its codes.
PLAIN_BODY_OPERATIONS = ("add_checkpoint", "follow_key")
