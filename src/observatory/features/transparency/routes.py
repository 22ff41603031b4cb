"""The log's doors: how far it is signed, proofs of events, and the log itself as tiles for strangers' tools.

What is served as signed comes out of the database, never out of the sealer's memory: it was kept before
it is shown. Every proof is checked before it leaves; one that does not hold is told as a broken log, not
served. Tiles, entries and checkpoint hold hashes only and may be given to anybody (`log_public`); else
they need a key of their tenant.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Awaitable
from hashlib import sha256
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from litestar import Response, Router, get, post
from litestar.enums import MediaType
from litestar.params import FromPath, QueryParameter

from observatory.errors import StartupError
from observatory.features.transparency.cosignatures import cosigned, newest_cosigned, witnessed
from observatory.features.transparency.health import LATE_S, unsigned_age_s
from observatory.features.transparency.log_key import UnderWay
from observatory.features.transparency.types_log import Checkpoint, LogBroken, LogRows
from observatory.features.transparency.worker import PROMISED_S
from observatory.http.answers import MAX_SEQUENCE, Refusal, json
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import OPEN, need
from observatory.ledger import merkle, note, tiles, tlog_proof
from observatory.pipeline.ports import EventFilter, StoredEvent
from observatory.pipeline.state import HOME_TENANT
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import counter_of

T = TypeVar("T")
WAIT_S, LOOK_S = 2.0, 0.05
YEAR_S, MOMENT_S = 31_536_000, 2
Size = Annotated[int, QueryParameter(name="from", ge=1, le=MAX_SEQUENCE, description="The older size.")]
Later = Annotated[
    int | None,
    QueryParameter(
        name="to", ge=1, le=MAX_SEQUENCE, description="The newer size; the signed one by default."
    ),
]


def rows_of(house: House) -> LogRows:
    store = house.store
    assert isinstance(store, LogRows)  # a promise of every store
    return store


def text_of(value: bytes) -> str:
    return b64encode(value).decode()


async def holding(question: Awaitable[T]) -> T:
    """What is read out of the log; where hashes are missing the asker hears that it is broken."""
    try:
        return await question
    except (LogBroken, ValueError) as error:
        raise broken() from error


def broken() -> Refusal:
    detail = "the stored log does not give what was signed; POST /v1/audit/verify says where it breaks"
    return Refusal(500, "log_broken", detail)


async def signed(house: House, tenant_id: str, size: int) -> Checkpoint:
    """The newest checkpoint, waited for a moment if it does not reach so far yet."""
    rows, left_s = rows_of(house), WAIT_S
    while True:
        found = await holding(rows.checkpoint(tenant_id))
        if found is not None and found.size >= size:
            return await cosigned(house, tenant_id, found)
        refused = house.sealer.refused.get(tenant_id)
        if refused is not None and refused.kind != "key":  # else another gateway may be signing
            raise Refusal(409, "not_sealed", f"the log is not signed: {refused.sentence}")
        if left_s <= 0:
            detail = "this is not under a signed checkpoint yet; it is sealed within a second, ask again"
            raise Refusal(409, "not_sealed", detail)
        await asyncio.sleep(LOOK_S)
        left_s -= LOOK_S


async def vkeys_of(house: House, tenant_id: str) -> list[dict[str, Any]]:
    """Every key this log was signed by, oldest first; the last one is in force."""
    origin, rows = await house.sealer.origin(tenant_id), await house.store.rows(tenant_id, "log_keys")
    rows.sort(key=lambda row: int(row["since"]))
    return [
        {
            "vkey": note.vkey(origin, bytes(row["public_key"])),
            "since_sequence": row["since"],
            "created_at": from_ns(row["created_ns"]),
            "current": row is rows[-1],
        }
        for row in rows
    ]


@get("/audit/log", summary="How far the tenant's log is signed, and by which keys", operation_id="audit_log")
async def audit_log(request: Call, house: Here) -> Response[bytes]:
    return json(await shown(house, (await need(request, house, "read")).tenant_id))


async def shown(house: House, tenant_id: str) -> dict[str, Any]:
    rows = rows_of(house)
    found, keys = await holding(rows.checkpoint(tenant_id)), await vkeys_of(house, tenant_id)
    head, _ = await house.store.head(tenant_id)
    size = 0 if found is None else found.size
    refused = house.sealer.refused.get(tenant_id)
    age = await unsigned_age_s(house, tenant_id, size) if head > size else 0.0
    state = "behind" if head > size else "signed"
    if refused is not None and (refused.kind != "key" or age > LATE_S):
        state = "refused"
    return {
        "tenant_id": tenant_id,
        "origin": await house.sealer.origin(tenant_id),
        "url": f"{house.url}/v1/log/{tenant_id}",
        "public": house.settings.log_public,
        "state": state,
        "detail": refused.sentence if refused and state != "signed" else None,
        "size": size,
        "head": max(head, size),
        "unsigned": max(0, head - size),
        "unsigned_age_s": age,
        "max_unsigned_age_s": PROMISED_S,
        "signed_at": None if found is None else from_ns(found.signed_ns),
        "checkpoint": None if found is None else (await cosigned(house, tenant_id, found)).note.decode(),
        "witnessed": await witnessed(house, tenant_id),
        "vkey": keys[-1]["vkey"] if keys else None,
        "vkeys": keys,
    }


@post(
    "/audit/log/rotate",
    summary="Let a new key sign the logs of this house",
    operation_id="rotate_log_key",
    status_code=200,
)
async def rotate_log_key(request: Call, house: Here) -> Response[bytes]:
    """One key signs for all tenants of a gateway, so only the home tenant's admin may."""
    principal = await need(request, house, "admin")
    if principal.tenant_id != HOME_TENANT:
        raise Refusal(403, "not_allowed", "the key is the house's; only the home tenant's admin changes it")
    try:
        await house.sealer.rotate(principal)
    except UnderWay as error:
        raise Refusal(409, "rotation_under_way", str(error)) from error
    except LogBroken as error:
        raise Refusal(409, "not_sealed", str(error)) from error
    except StartupError as error:  # the file cannot be written
        raise Refusal(503, "not_durable", str(error)) from error
    return json(await shown(house, principal.tenant_id))


@get(
    "/audit/proof/{audit_event_id:str}",
    summary="Proof that an event is in the signed log",
    operation_id="audit_proof",
)
async def audit_proof(
    request: Call,
    house: Here,
    audit_event_id: FromPath[str],
    kind: Annotated[
        Literal["json", "tlog-proof"] | None,
        QueryParameter(name="format", description="`tlog-proof` answers the C2SP file."),
    ] = None,
    by_witnesses: Annotated[
        bool,
        QueryParameter(name="witnessed", description="By the newest checkpoint that witnesses cosigned."),
    ] = False,
) -> Response[bytes]:
    """An event of just now is waited for, up to two seconds, until a checkpoint covers it."""
    tenant_id = (await need(request, house, "read")).tenant_id
    event = await _event(house, tenant_id, audit_event_id)
    index = event.sequence_number - 1
    found = await signed(house, tenant_id, event.sequence_number)
    if by_witnesses:
        older = await newest_cosigned(house, tenant_id)
        if older is None or older.size < event.sequence_number:
            raise Refusal(409, "not_witnessed", "no checkpoint over this event was cosigned by a witness yet")
        found = older
    leaf = leaf_of(tenant_id, event)
    leaf_hash = merkle.leaf_hash(leaf)
    hashes = await holding(house.sealer.tree.inclusion(tenant_id, index, found.size))
    if not merkle.verify_inclusion(leaf_hash, index, found.size, hashes, found.root):
        raise broken()
    if kind == "tlog-proof" or (kind is None and "text/plain" in request.headers.get("accept", "")):
        name = f'attachment; filename="{audit_event_id}.tlog-proof"'
        content = tlog_proof.write(index, hashes, found.note)
        return Response(content, media_type=MediaType.TEXT, headers={"content-disposition": name})
    keys = [key["vkey"] for key in await vkeys_of(house, tenant_id)]
    return json(
        {
            "audit_event_id": audit_event_id,
            "tenant_id": tenant_id,
            "sequence_number": event.sequence_number,
            "index": index,
            "size": found.size,
            "record": event.record.decode(),
            "leaf": leaf.decode(),
            "leaf_hash": text_of(leaf_hash),
            "hashes": [text_of(one) for one in hashes],
            "root": text_of(found.root),
            "checkpoint": found.note.decode(),
            "origin": note.split(found.note)[0].partition("\n")[0],
            "vkey": keys[-1],
            "vkeys": keys,
        }
    )


async def _event(house: House, tenant_id: str, audit_event_id: str) -> StoredEvent:
    """Ids of events carry their number; the row found by it must have this very id."""
    number = counter_of(audit_event_id) if audit_event_id.startswith("evt_") else None
    event = await holding(rows_of(house).event(tenant_id, number)) if number else None
    if event is not None and msgspec.json.decode(event.record)["audit_event_id"] == audit_event_id:
        return event
    raise Refusal(404, "not_found", "no audit event of this tenant has that id")


def leaf_of(tenant_id: str, event: StoredEvent) -> bytes:
    event_hash = msgspec.json.decode(event.record)["hash_chain"]["event_hash"]
    record_hash = "sha256:" + sha256(event.record).hexdigest()
    return merkle.leaf_data(tenant_id, event.sequence_number, event_hash, record_hash)


@get(
    "/audit/consistency",
    summary="Proof that one size of the log goes on from another",
    operation_id="audit_consistency",
)
async def audit_consistency(request: Call, house: Here, older: Size, newer: Later = None) -> Response[bytes]:
    tenant_id = (await need(request, house, "read")).tenant_id
    if newer is not None and older > newer:
        raise Refusal(422, "bad_range", "from lies past to")
    head, _ = await house.store.head(tenant_id)
    if max(older, newer or 0) > head:
        raise Refusal(422, "bad_range", f"the record reaches to {head} only")
    found = await signed(house, tenant_id, max(older, newer or 0))
    new, tree = newer or found.size, house.sealer.tree
    hashes = await holding(tree.consistency(tenant_id, older, new))
    old_root, new_root = [await holding(tree.root(tenant_id, size)) for size in (older, new)]
    if not merkle.verify_consistency(older, new, old_root, new_root, hashes):
        raise broken()
    kept = await rows_of(house).checkpoint(tenant_id, new)
    is_signed = kept is not None and kept.size == new
    if kept is not None and is_signed and kept.root != new_root:
        raise broken()
    return json(
        {
            "tenant_id": tenant_id,
            "origin": await house.sealer.origin(tenant_id),
            "from": older,
            "to": new,
            "from_root": text_of(old_root),
            "to_root": text_of(new_root),
            "hashes": [text_of(one) for one in hashes],
            "checkpoint": kept.note.decode() if kept is not None and is_signed else None,
            "vkeys": [key["vkey"] for key in await vkeys_of(house, tenant_id)],
        }
    )


async def _readable(request: Call, house: House, tenant_id: str) -> Checkpoint:
    """The log's newest checkpoint, for whoever may see it; 404 for a log that is not, or not theirs."""
    if not house.settings.log_public:
        principal = await need(request, house, "read")
        if principal.tenant_id != tenant_id:
            raise no_log()
    found = await holding(rows_of(house).checkpoint(tenant_id))
    if found is None:
        raise no_log()
    return found


def no_log() -> Refusal:
    return Refusal(404, "not_found", "there is no such log, or nothing of it is signed yet")


def _cached(house: House, seconds: int, *more: str) -> dict[str, str]:
    kind = "public" if house.settings.log_public else "private"
    return {"cache-control": ", ".join((kind, f"max-age={seconds}", *more))}


@get(
    "/log/{tenant_id:str}/checkpoint",
    summary="The log's newest checkpoint",
    operation_id="log_checkpoint",
    opt=OPEN,
)
async def log_checkpoint(request: Call, house: Here, tenant_id: FromPath[str]) -> Response[bytes]:
    found = await cosigned(house, tenant_id, await _readable(request, house, tenant_id))
    return Response(found.note, media_type=MediaType.TEXT, headers=_cached(house, MOMENT_S))


@get(
    "/log/{tenant_id:str}/tile/{level:str}/{tile:path}",
    summary="A tile of the log: hashes, or entries",
    operation_id="log_tile",
    opt=OPEN,
)
async def log_tile(
    request: Call, house: Here, tenant_id: FromPath[str], level: FromPath[str], tile: FromPath[str]
) -> Response[bytes]:
    """C2SP's paths: `tile/0/x001/234`, `tile/entries/000.p/17`. A partial tile is any beginning of one."""
    found = await _readable(request, house, tenant_id)
    place = tiles.parse_name(tile.removeprefix("/"))
    number = 0 if level == tiles.ENTRIES else int(level) if level in LEVELS else None
    missing = Refusal(404, "not_found", "the log has no such tile")
    if place is None or number is None:
        raise missing
    index, width = place
    if not 0 < width <= tiles.width_of(number, index, found.size):
        raise missing
    if level == tiles.ENTRIES:
        content = await _entries(house, tenant_id, index, width)
    else:
        content = await holding(house.sealer.tree.tile(tenant_id, number, index, found.size))
        content = content[: width * tiles.HASH]
    return Response(
        content, media_type="application/octet-stream", headers=_cached(house, YEAR_S, "immutable")
    )


LEVELS = frozenset(map(str, range(tiles.TOP)))


async def _entries(house: House, tenant_id: str, index: int, width: int) -> bytes:
    first = index * tiles.WIDTH
    span = EventFilter(after=first, before=first + width + 1)
    found = await house.store.events(tenant_id, span, width, newest_first=False)
    if len(found) != width:
        raise broken()
    return tiles.entry_bundle(leaf_of(tenant_id, event) for event in found)


proof_log = Router(
    path="/v1",
    route_handlers=[audit_log, rotate_log_key, audit_proof, audit_consistency, log_checkpoint, log_tile],
    tags=["Forensic Inspector"],
)
