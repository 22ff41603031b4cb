"""HTTP routes of the witness, C2SP `tlog-witness/v1.0.0`: each tenant cosigns checkpoints of its peers.

No API key is needed: the checkpoint's signature, by a registered key, is the credential. So everything is
bounded before it is read: bytes, requests per address, requests per log. Unknown callers learn nothing: a
missing tenant answers like one that does not know the log.
"""

from __future__ import annotations

from typing import Any

from litestar import Response, Router, get, post
from litestar.enums import MediaType
from litestar.params import FromPath

from observatory.features.transparency import commands_federation as federation
from observatory.features.transparency import commands_key_rotation as succession
from observatory.features.transparency.worker import Sealer
from observatory.features.transparency.worker_federation import read_peer_checkpoint
from observatory.http.answers import Refusal, json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import OPEN
from observatory.ledger import key_rotation as rotations
from observatory.ledger import note, witness
from observatory.ledger.note import BadNote
from observatory.pipeline.state import SubmissionResult


def _too_often() -> Refusal:
    return Refusal(429, "too_often", "too many requests to this witness; try again in a minute")


def _unknown() -> Refusal:
    answer = federation.unknown_origin().answer
    return Refusal(404, answer.reason, answer.detail)


async def _shown(app: AppState, tenant_id: str, origin: str, signed: bytes) -> federation.PeerCheckpoint:
    """A checkpoint signed by a peer's key; otherwise refused with the protocol's codes."""
    peers = await app.store.rows(tenant_id, "peers", origin=origin, removed_ns=None)
    if not peers:
        raise _unknown()
    try:
        shown = read_peer_checkpoint(signed, peers[0]["vkey"])
    except BadNote as error:
        raise Refusal(403, "not_signed", str(error)) from error
    if not app.offers.allows((tenant_id, origin)):
        raise _too_often()
    return shown


async def _any_body(_: Call) -> None:
    """The body is the protocol's text, whatever its content type; the route bounds its size."""


@post(
    "/witness/{tenant_id:str}/add-checkpoint",
    summary="Ask this tenant to cosign a checkpoint (C2SP witness protocol)",
    operation_id="add_checkpoint",
    opt=OPEN,
    status_code=200,
    before_request=_any_body,
    request_max_body_size=witness.MAX_BYTES,
)
async def add_checkpoint(request: Call, app: Here, tenant_id: FromPath[str]) -> Response[Any]:
    client = request.client
    if not app.peer_address_limiter.allows(client.host if client else ""):
        raise _too_often()
    try:
        offer = witness.read(await request.body())
        origin, size, _ = note.parse_checkpoint(note.split(offer.note)[0])
        if offer.old > size:
            raise BadNote("the old size is larger than that of the checkpoint")
    except BadNote as error:
        raise Refusal(400, "bad_request", str(error)) from error
    shown = await _shown(app, tenant_id, origin, offer.note)
    ring = app.service(Sealer).keyring
    if ring is None:
        raise Refusal(503, "no_key", "this witness has no signing key at the moment")
    name, now_ns = federation.witness_name(await app.service(Sealer).origin(tenant_id)), app.clock()
    cosigner = ring.cosigner(name, now_ns // 1_000_000_000)
    who = app.gateway_principal(tenant_id)
    verdict = await app.command(federation.witness(who, shown, offer, cosigner, now_ns))
    if verdict.code != 200:
        return _refused(verdict)
    return Response(verdict.answer.encode(), media_type=MediaType.TEXT)


def _refused(verdict: SubmissionResult) -> Response[Any]:
    if verdict.code == 409 and isinstance(verdict.answer, int):
        size = f"{verdict.answer}\n".encode()
        # Set as a header, or a charset would be added; the standard requires the bare media type.
        headers = {"content-type": witness.SIZE_TYPE}
        return Response(size, status_code=409, headers=headers)
    return json(verdict.answer, verdict.code)


@post(
    "/witness/{tenant_id:str}/follow-key",
    summary="Prove to this tenant the new key of a log that it cosigns",
    operation_id="follow_key",
    opt=OPEN,
    status_code=200,
    before_request=_any_body,
    request_max_body_size=rotations.MAX_BYTES,
)
async def follow_key(request: Call, app: Here, tenant_id: FromPath[str]) -> Response[Any]:
    """The body is the `.tlog-proof` of the log's own `log_key_rotated`, its bytes as `extra`."""
    client = request.client
    if not app.peer_address_limiter.allows(client.host if client else ""):
        raise _too_often()
    try:
        rotation = rotations.read(await request.body())
        origin, _, _ = note.parse_checkpoint(note.split(rotation.checkpoint)[0])
    except BadNote as error:
        raise Refusal(400, "bad_request", str(error)) from error
    shown = await _shown(app, tenant_id, origin, rotation.checkpoint)
    who = app.gateway_principal(tenant_id)
    verdict = await app.command(succession.follow(who, shown, rotation, app.clock()))
    if verdict.code != 200:
        return _refused(verdict)
    answer = f"{verdict.answer['vkey']}\n".encode()
    return Response(answer, media_type=MediaType.TEXT)


@get(
    "/witness/{tenant_id:str}/{origin_hash:str}/checkpoint",
    summary="The newest checkpoint of a log that this tenant cosigned",
    operation_id="witnessed_checkpoint",
    opt=OPEN,
)
async def witnessed_checkpoint(
    request: Call, app: Here, tenant_id: FromPath[str], origin_hash: FromPath[str]
) -> Response[Any]:
    """`origin_hash` is the hex of the origin's SHA-256."""
    client = request.client
    if not app.peer_address_limiter.allows(client.host if client else ""):
        raise _too_often()
    for row in await app.store.rows(tenant_id, "peer_heads"):
        if witness.log_id_of(row["origin"]) == origin_hash:
            return Response(bytes(row["note"]), media_type=MediaType.TEXT)
    raise _unknown()


witness_router = Router(
    path="/v1", route_handlers=[add_checkpoint, follow_key, witnessed_checkpoint], tags=["Federation"]
)
