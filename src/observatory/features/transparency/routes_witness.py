"""The witness's door, C2SP `tlog-witness/v1.0.0`: each tenant cosigns the checkpoints of the peers it knows.

No key of ours is asked for: the checkpoint's own signature, by a key that was registered, is the credential.
So everything is bounded before it is looked at: bytes, how often one address may ask, how often one log.
Who is not known learns nothing: a tenant that is not there answers as one that does not know the log.
"""

from __future__ import annotations

from typing import Any

from litestar import Response, Router, get, post
from litestar.enums import MediaType
from litestar.params import FromPath

from observatory.features.transparency import commands_federation as federation
from observatory.features.transparency import commands_key_rotation as succession
from observatory.features.transparency.worker_federation import read_shown
from observatory.http.answers import Refusal, json
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import OPEN
from observatory.ledger import note, witness
from observatory.ledger import succession as rotations
from observatory.ledger.note import BadNote
from observatory.pipeline.state import Verdict


def _too_often() -> Refusal:
    return Refusal(429, "too_often", "this witness was asked too often; ask again in a minute")


def _unknown() -> Refusal:
    answer = federation.unknown_origin().answer
    return Refusal(404, answer.reason, answer.detail)


async def _shown(house: House, tenant_id: str, origin: str, signed: bytes) -> federation.Shown:
    """A checkpoint by the key of a peer; else refused, by the protocol's codes."""
    peers = await house.store.rows(tenant_id, "peers", origin=origin, removed_ns=None)
    if not peers:
        raise _unknown()
    try:
        shown = read_shown(signed, peers[0]["vkey"])
    except BadNote as error:
        raise Refusal(403, "not_signed", str(error)) from error
    if not house.offers.allows((tenant_id, origin)):
        raise _too_often()
    return shown


async def _any_body(_: Call) -> None:
    """The body is the protocol's own text, whatever it is called; the route bounds it."""


@post(
    "/witness/{tenant_id:str}/add-checkpoint",
    summary="Ask this tenant to cosign a checkpoint (C2SP witness protocol)",
    operation_id="add_checkpoint",
    opt=OPEN,
    status_code=200,
    before_request=_any_body,
    request_max_body_size=witness.MOST_BYTES,
)
async def add_checkpoint(request: Call, house: Here, tenant_id: FromPath[str]) -> Response[Any]:
    client = request.client
    if not house.knocks.allows(client.host if client else ""):
        raise _too_often()
    try:
        offer = witness.read(await request.body())
        origin, size, _ = note.parse_checkpoint(note.split(offer.note)[0])
        if offer.old > size:
            raise BadNote("the old size lies past that of the checkpoint")
    except BadNote as error:
        raise Refusal(400, "bad_request", str(error)) from error
    shown = await _shown(house, tenant_id, origin, offer.note)
    ring = house.sealer.keyring
    if ring is None:
        raise Refusal(503, "no_key", "this witness has no key to sign with now")
    name, now_ns = federation.witness_name(await house.sealer.origin(tenant_id)), house.clock()
    cosigner = ring.cosigner(name, now_ns // 1_000_000_000)
    who = house.principal_of_house(tenant_id)
    verdict = await house.command(federation.witness(who, shown, offer, cosigner, now_ns))
    if verdict.code != 200:
        return _refused(verdict)
    return Response(verdict.answer.encode(), media_type=MediaType.TEXT)


def _refused(verdict: Verdict) -> Response[Any]:
    if verdict.code == 409 and isinstance(verdict.answer, int):
        told = f"{verdict.answer}\n".encode()
        # Named as a header, else a charset is added, and the standard's name is the bare one.
        headers = {"content-type": witness.SIZE_TYPE}
        return Response(told, status_code=409, headers=headers)
    return json(verdict.answer, verdict.code)


@post(
    "/witness/{tenant_id:str}/follow-key",
    summary="Show this tenant by which key a log it cosigns is signed from now on",
    operation_id="follow_key",
    opt=OPEN,
    status_code=200,
    before_request=_any_body,
    request_max_body_size=rotations.MOST_BYTES,
)
async def follow_key(request: Call, house: Here, tenant_id: FromPath[str]) -> Response[Any]:
    """The body is the `.tlog-proof` of the log's own `log_key_rotated`, its bytes as `extra`."""
    client = request.client
    if not house.knocks.allows(client.host if client else ""):
        raise _too_often()
    try:
        told = rotations.read(await request.body())
        origin, _, _ = note.parse_checkpoint(note.split(told.checkpoint)[0])
    except BadNote as error:
        raise Refusal(400, "bad_request", str(error)) from error
    shown = await _shown(house, tenant_id, origin, told.checkpoint)
    who = house.principal_of_house(tenant_id)
    verdict = await house.command(succession.follow(who, shown, told, house.clock()))
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
    request: Call, house: Here, tenant_id: FromPath[str], origin_hash: FromPath[str]
) -> Response[Any]:
    """`origin_hash` is the hex of the origin's SHA-256."""
    client = request.client
    if not house.knocks.allows(client.host if client else ""):
        raise _too_often()
    for row in await house.store.rows(tenant_id, "peer_heads"):
        if witness.place(row["origin"]) == origin_hash:
            return Response(bytes(row["note"]), media_type=MediaType.TEXT)
    raise _unknown()


witness_router = Router(
    path="/v1", route_handlers=[add_checkpoint, follow_key, witnessed_checkpoint], tags=["Federation"]
)
