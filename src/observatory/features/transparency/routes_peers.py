"""HTTP routes of peers: logs whose checkpoints this tenant cosigns, and witnesses of its own log.

A peer is identified by its verification key, in C2SP's format. With the key of a log, its checkpoints are
cosigned here; with a `url` of its witness, ours are offered there; with a `log_url` of its log, the served
head is compared with what was cosigned.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Annotated, Any

import msgspec
from litestar import Response, Router, delete, get, post
from litestar.params import FromPath, JSONBody

from observatory.features.transparency import commands_federation as federation
from observatory.features.transparency import commands_key_rotation as succession
from observatory.features.transparency.commands_federation import witness_name, witness_of
from observatory.features.transparency.worker import Sealer
from observatory.features.transparency.worker_federation import Federation, PeerAnswer
from observatory.http.answers import Refusal, json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.ledger import note
from observatory.ledger.note import BadNote
from observatory.pipeline.state import Principal
from observatory.protocol.clock import from_ns
from observatory.protocol.rules import Title

Row = dict[str, Any]
Url = Annotated[str, msgspec.Meta(min_length=8, max_length=1_024)]


class NewPeerBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`vkey` is a log's (type 1) or a witness's (type 4); `url` ends before `/add-checkpoint`."""

    name: Title
    vkey: Annotated[str, msgspec.Meta(min_length=1, max_length=400)]
    url: Url | None = None
    log_url: Url | None = None


class PeerKeyBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`vkey` must have the name and the type of the key it replaces."""

    vkey: Annotated[str, msgspec.Meta(min_length=1, max_length=400)]


@post("/peers", summary="Add a peer by its verification key", operation_id="add_peer")
async def add_peer(request: Call, app: Here, data: JSONBody[NewPeerBody]) -> Response[bytes]:
    who = await require_permission(request, app, "admin")
    await _check(app, who.tenant_id, data)
    peer = federation.NewPeer(data.name, data.vkey, data.url, data.log_url)
    verdict = await app.command(federation.add_peer(who, peer, app.clock()))
    if verdict.code not in (200, 201):
        return json(verdict.answer, verdict.code)
    heads = await app.store.rows(who.tenant_id, "peer_heads", origin=verdict.answer["origin"])
    return json(await _item(app, verdict.answer, heads), verdict.code)


async def _check(app: AppState, tenant_id: str, data: NewPeerBody) -> None:
    key = _key(data.vkey)
    if key.name == await app.service(Sealer).origin(tenant_id):
        raise Refusal(422, "bad_key", "this is the key of this tenant's own log; a log cannot witness itself")
    if key.kind == note.COSIGNATURE and data.log_url:
        raise Refusal(422, "bad_request", "a witness's key has no log to check")
    for url in (data.url, data.log_url):
        problem = app.outward.check(url) if url else None
        if problem:
            raise Refusal(422, "bad_url", problem)


def _key(vkey: str) -> note.Verifier:
    try:
        witness_of(vkey)  # its name must allow the witness suffix
        return note.Verifier.from_vkey(vkey)
    except BadNote as error:
        raise Refusal(422, "bad_key", str(error)) from error


@get("/peers", summary="Peers, the heads of their logs, and what they cosigned", operation_id="list_peers")
async def list_peers(request: Call, app: Here) -> Response[bytes]:
    tenant_id = (await require_permission(request, app, "read")).tenant_id
    peers = await app.service(Federation).peers(tenant_id)
    heads = await app.store.rows(tenant_id, "peer_heads")
    peers.sort(key=lambda row: str(row["peer_id"]))
    origin, ring = await app.service(Sealer).origin(tenant_id), app.service(Sealer).keyring
    name = witness_name(origin)
    own = None if ring is None else note.vkey(name, ring.public_key, note.COSIGNATURE)
    items = [await _item(app, row, heads) for row in peers]
    own_witness = {"name": name, "vkey": own, "url": f"{app.url}/v1/witness/{tenant_id}"}
    return json({"items": items, "next_cursor": None, "witness": own_witness})


@delete("/peers/{peer_id:str}", summary="Remove a peer", status_code=200, operation_id="remove_peer")
async def remove_peer(request: Call, app: Here, peer_id: FromPath[str]) -> Response[bytes]:
    who = await require_permission(request, app, "admin")
    verdict = await app.command(federation.remove_peer(who, peer_id, app.clock()))
    return json(verdict.answer, verdict.code)


@post(
    "/peers/{peer_id:str}/key",
    summary="Replace this peer's key; its head is kept",
    status_code=200,
    operation_id="change_peer_key",
)
async def change_peer_key(
    request: Call, app: Here, peer_id: FromPath[str], data: JSONBody[PeerKeyBody]
) -> Response[bytes]:
    """For a rotation its log cannot vouch for: the old key was lost, or it is a witness without a log."""
    who = await require_permission(request, app, "admin")
    _key(data.vkey)
    verdict = await app.command(succession.change_key(who, peer_id, data.vkey, app.clock()))
    if verdict.code != 200:
        return json(verdict.answer, verdict.code)
    heads = await app.store.rows(who.tenant_id, "peer_heads", origin=verdict.answer["origin"])
    return json(await _item(app, verdict.answer, heads))


@post(
    "/peers/{peer_id:str}/offer",
    summary="Offer the newest checkpoint to this witness now",
    status_code=200,
    operation_id="offer_checkpoint",
)
async def offer_checkpoint(request: Call, app: Here, peer_id: FromPath[str]) -> Response[bytes]:
    who = await require_permission(request, app, "admin")
    peer = await _peer(app, who, peer_id)
    if not peer["url"]:
        raise Refusal(409, "no_url", "this peer has no witness url")
    if not app.offers.allows((who.tenant_id, peer_id)):
        raise Refusal(429, "too_often", "too many requests to this witness; try again in a minute")
    if peer["log_url"]:
        await app.service(Federation).see(who.tenant_id, peer)
    await app.service(Federation).offer(who.tenant_id, peer)
    heads = await app.store.rows(who.tenant_id, "peer_heads", origin=peer["origin"])
    return json(await _item(app, peer, heads))


async def _peer(app: AppState, who: Principal, peer_id: str) -> Row:
    for row in await app.service(Federation).peers(who.tenant_id):
        if row["peer_id"] == peer_id:
            return row
    raise Refusal(404, "not_found", "no peer of this tenant has that id")


async def _item(app: AppState, row: Row, heads: list[Row]) -> Row:
    key = witness_of(row["vkey"])
    last = app.service(Federation).last_answers.get(row["peer_id"], PeerAnswer("never", None, 0))
    size = await app.service(Federation).cosigned(row["tenant_id"], row["peer_id"])
    head = next((one for one in heads if one["origin"] == row["origin"]), None)
    return {
        "peer_id": row["peer_id"],
        "name": row["name"],
        "origin": row["origin"],
        "vkey": row["vkey"],
        "witness_vkey": note.vkey(key.name, key.public_key, key.kind),
        "url": row["url"],
        "log_url": row["log_url"],
        "created_at": from_ns(row["created_ns"]),
        "created_by": row["created_by"],
        "head": None if head is None else _head(head, "size", "root", "note", "seen_ns"),
        "fork": None if head is None or head["fork_kind"] is None else _fork(head),
        "cosigned_size": size or None,
        "asked": {
            "state": last.state,
            "detail": last.detail,
            "at": from_ns(last.at_ns) if last.at_ns else None,
        },
    }


def _head(row: Row, size: str, root: str, checkpoint: str, at: str) -> Row:
    return {
        "size": row[size],
        "root": b64encode(bytes(row[root])).decode(),
        "checkpoint": bytes(row[checkpoint]).decode(),
        "seen_at": from_ns(row[at]),
    }


def _fork(row: Row) -> Row:
    return {"kind": row["fork_kind"]} | _head(row, "fork_size", "fork_root", "fork_note", "fork_ns")


peers_router = Router(
    path="/v1",
    route_handlers=[add_peer, list_peers, remove_peer, change_peer_key, offer_checkpoint],
    tags=["Federation"],
)
