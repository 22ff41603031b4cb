"""One of each answer of the doors of federation: (operation, answer) for whoever compares them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from observatory.ledger import witness
from observatory.ledger.witness import CheckpointOffer
from tests.contract.peering import PeerLog
from tests.contract.rotating import Rotating
from tests.flows.tenant import Tenant

Answers = Iterator[tuple[str, Any]]


def federated(own: Tenant) -> Answers:
    """A peer's log made known, cosigned, refused for every reason, asked in vain, and removed."""
    http, stranger, log = own.http("admin"), own.http("nobody"), PeerLog()
    body = {"name": "them", "vkey": log.vkey, "url": "https://192.0.2.1/v1/witness/tnt_theirs"}
    door = f"/v1/witness/{own.tenant_id}"

    def ask(offer: CheckpointOffer, path: str = door) -> tuple[str, Any]:
        return "add_checkpoint", stranger.post(f"{path}/add-checkpoint", content=witness.write(offer))

    yield ask(log.offer(0, 5))  # 404
    made = http.post("/v1/peers", json=body)
    yield "add_peer", made
    yield "add_peer", http.post("/v1/peers", json=body)
    yield "add_peer", http.post("/v1/peers", json=body | {"name": "another"})
    yield "add_peer", http.post("/v1/peers", json={"name": "x", "vkey": "nonsense"})
    yield "list_peers", http.get("/v1/peers")
    yield ask(log.offer(0, 5))
    yield ask(log.offer(0, 5))  # 409
    yield ask(CheckpointOffer(5, [], log.checkpoint(8)))  # 422
    yield ask(log.offer(9, 5))  # 400
    yield ask(CheckpointOffer(5, [], PeerLog(seed=b"impostor").checkpoint(5)))  # 403
    yield "add_checkpoint", stranger.post(f"{door}/add-checkpoint", content=b"x" * (1 << 16))
    yield "witnessed_checkpoint", stranger.get(f"{door}/{witness.log_id_of(log.origin)}/checkpoint")
    yield "witnessed_checkpoint", stranger.get(f"{door}/none/checkpoint")
    yield "list_peers", http.get("/v1/peers")
    path = f"/v1/peers/{made.json()['peer_id']}"
    yield "offer_checkpoint", http.post(f"{path}/offer")
    yield "offer_checkpoint", http.post("/v1/peers/none/offer")
    yield "change_peer_key", http.post(f"{path}/key", json={"vkey": log.vkey})
    yield "change_peer_key", http.post(f"{path}/key", json={"vkey": "nonsense"})
    yield "change_peer_key", http.post(f"{path}/key", json={"vkey": PeerLog("other.example/log").vkey})
    yield "change_peer_key", http.post("/v1/peers/none/key", json={"vkey": log.vkey})
    rotating = Rotating(origin="rotates.example/log/tnt_theirs")
    other = http.post("/v1/peers", json={"name": "rotates", "vkey": rotating.vkey})
    shown = {size: rotating.shown(size) for size in (8, 9)}
    yield "follow_key", stranger.post(f"{door}/follow-key", content=b"nonsense")  # 400
    yield "follow_key", stranger.post(f"{door}/follow-key", content=shown[8])  # 409
    yield ask(rotating.offer(0, 8))
    yield "follow_key", stranger.post(f"{door}/follow-key", content=shown[9])  # 409
    yield "follow_key", stranger.post(f"{door}/follow-key", content=rotating.shown(8, hashes=[]))  # 422
    yield "follow_key", stranger.post(f"{door}/follow-key", content=shown[8])
    yield "follow_key", stranger.post(f"{door}/follow-key", content=b"x" * (1 << 18))
    yield "remove_peer", http.delete(f"/v1/peers/{other.json()['peer_id']}")
    yield "follow_key", stranger.post(f"{door}/follow-key", content=shown[8])  # 404
    yield "remove_peer", http.delete(path)
    yield "remove_peer", http.delete(path)
