"""HTTP routes of the log: how far it is signed, proofs of events, and the log as tiles for third-party tools.

What is served as signed comes from the database, never from the sealer's memory: it was stored before it is
served. Every proof is verified before it is sent; an invalid one is reported as a broken log, not served.
Tiles, entries and checkpoints have hashes only and may be public (`log_public`); otherwise they need a key of
their tenant.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, Router, get, post
from litestar.enums import MediaType
from litestar.params import FromPath, QueryParameter

from observatory.errors import StartupError
from observatory.features.transparency.cosignatures import cosigned, newest_cosigned, witnessed
from observatory.features.transparency.queries_checkpoints import (
    broken_log,
    or_broken_log,
    rows_of,
    signed,
    text_of,
    vkeys_of,
)
from observatory.features.transparency.queries_health import LATE_S, unsigned_age_s
from observatory.features.transparency.types_log import LogBroken, StoredCheckpoint
from observatory.features.transparency.worker import PROMISED_S, Sealer
from observatory.http.answers import MAX_SEQUENCE, Refusal, json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import OPEN, require_permission
from observatory.ledger import merkle, note, tiles, tlog_proof
from observatory.pipeline.ports import EventFilter, StoredEvent
from observatory.pipeline.state import HOME_TENANT
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import counter_of
from observatory.runtime.log_key import RotationInProgress

YEAR_S, MOMENT_S = 31_536_000, 2
Size = Annotated[int, QueryParameter(name="from", ge=1, le=MAX_SEQUENCE, description="The older size.")]
Later = Annotated[
    int | None,
    QueryParameter(
        name="to", ge=1, le=MAX_SEQUENCE, description="The newer size; the signed one by default."
    ),
]


@get("/audit/log", summary="How far the tenant's log is signed, and by which keys", operation_id="audit_log")
async def audit_log(request: Call, app: Here) -> Response[bytes]:
    return json(await log_status(app, (await require_permission(request, app, "read")).tenant_id))


async def log_status(app: AppState, tenant_id: str) -> dict[str, Any]:
    rows = rows_of(app)
    checkpoint, keys = await or_broken_log(rows.checkpoint(tenant_id)), await vkeys_of(app, tenant_id)
    head, _ = await app.store.head(tenant_id)
    size = 0 if checkpoint is None else checkpoint.size
    refused = app.service(Sealer).refused.get(tenant_id)
    age = await unsigned_age_s(app, tenant_id, size) if head > size else 0.0
    state = "behind" if head > size else "signed"
    if refused is not None and (refused.kind != "key" or age > LATE_S):
        state = "refused"
    return {
        "tenant_id": tenant_id,
        "origin": await app.service(Sealer).origin(tenant_id),
        "url": f"{app.url}/v1/log/{tenant_id}",
        "public": app.settings.log_public,
        "state": state,
        "detail": refused.sentence if refused and state != "signed" else None,
        "size": size,
        "head": max(head, size),
        "unsigned": max(0, head - size),
        "unsigned_age_s": age,
        "max_unsigned_age_s": PROMISED_S,
        "signed_at": None if checkpoint is None else from_ns(checkpoint.signed_ns),
        "checkpoint": None
        if checkpoint is None
        else (await cosigned(app, tenant_id, checkpoint)).note.decode(),
        "witnessed": await witnessed(app, tenant_id),
        "vkey": keys[-1]["vkey"] if keys else None,
        "vkeys": keys,
    }


@post(
    "/audit/log/rotate",
    summary="Rotate the key that signs the logs",
    operation_id="rotate_log_key",
    status_code=200,
)
async def rotate_log_key(request: Call, app: Here) -> Response[bytes]:
    """One key signs for all tenants of a gateway, so only an admin of the home tenant may rotate it."""
    principal = await require_permission(request, app, "admin")
    if principal.tenant_id != HOME_TENANT:
        raise Refusal(
            403,
            "not_allowed",
            "the key belongs to the deployment; only an admin of the home tenant may rotate it",
        )
    try:
        await app.service(Sealer).rotate(principal)
    except RotationInProgress as error:
        raise Refusal(409, "rotation_under_way", str(error)) from error
    except LogBroken as error:
        raise Refusal(409, "not_sealed", str(error)) from error
    except StartupError as error:  # the file cannot be written
        raise Refusal(503, "not_durable", str(error)) from error
    return json(await log_status(app, principal.tenant_id))


@get(
    "/audit/proof/{audit_event_id:str}",
    summary="Proof that an event is in the signed log",
    operation_id="audit_proof",
)
async def audit_proof(
    request: Call,
    app: Here,
    audit_event_id: FromPath[str],
    kind: Annotated[
        Literal["json", "tlog-proof"] | None,
        QueryParameter(name="format", description="`tlog-proof` answers the C2SP file."),
    ] = None,
    by_witnesses: Annotated[
        bool,
        QueryParameter(name="witnessed", description="Use the newest checkpoint that witnesses cosigned."),
    ] = False,
) -> Response[bytes]:
    """For a very recent event, waits up to two seconds until a checkpoint covers it."""
    tenant_id = (await require_permission(request, app, "read")).tenant_id
    event = await _event(app, tenant_id, audit_event_id)
    index = event.sequence_number - 1
    checkpoint = await signed(app, tenant_id, event.sequence_number)
    if by_witnesses:
        older = await newest_cosigned(app, tenant_id)
        if older is None or older.size < event.sequence_number:
            raise Refusal(
                409,
                "not_witnessed",
                "no checkpoint that covers this event has been cosigned by a witness yet",
            )
        checkpoint = older
    leaf = leaf_of(tenant_id, event)
    leaf_hash = merkle.leaf_hash(leaf)
    hashes = await or_broken_log(app.service(Sealer).tree.inclusion(tenant_id, index, checkpoint.size))
    if not merkle.verify_inclusion(leaf_hash, index, checkpoint.size, hashes, checkpoint.root):
        raise broken_log()
    if kind == "tlog-proof" or (kind is None and "text/plain" in request.headers.get("accept", "")):
        name = f'attachment; filename="{audit_event_id}.tlog-proof"'
        content = tlog_proof.write(index, hashes, checkpoint.note)
        return Response(content, media_type=MediaType.TEXT, headers={"content-disposition": name})
    keys = [key["vkey"] for key in await vkeys_of(app, tenant_id)]
    return json(
        {
            "audit_event_id": audit_event_id,
            "tenant_id": tenant_id,
            "sequence_number": event.sequence_number,
            "index": index,
            "size": checkpoint.size,
            "record": event.record.decode(),
            "leaf": leaf.decode(),
            "leaf_hash": text_of(leaf_hash),
            "hashes": [text_of(one) for one in hashes],
            "root": text_of(checkpoint.root),
            "checkpoint": checkpoint.note.decode(),
            "origin": note.split(checkpoint.note)[0].partition("\n")[0],
            "vkey": keys[-1],
            "vkeys": keys,
        }
    )


async def _event(app: AppState, tenant_id: str, audit_event_id: str) -> StoredEvent:
    """Event ids contain their sequence number; the row found by it must have this id."""
    number = counter_of(audit_event_id) if audit_event_id.startswith("evt_") else None
    event = await or_broken_log(rows_of(app).event(tenant_id, number)) if number else None
    if event is not None and msgspec.json.decode(event.record)["audit_event_id"] == audit_event_id:
        return event
    raise Refusal(404, "not_found", "no audit event of this tenant has that id")


def leaf_of(tenant_id: str, event: StoredEvent) -> bytes:
    event_hash = msgspec.json.decode(event.record)["hash_chain"]["event_hash"]
    record_hash = "sha256:" + sha256(event.record).hexdigest()
    return merkle.leaf_data(tenant_id, event.sequence_number, event_hash, record_hash)


@get(
    "/audit/consistency",
    summary="Proof that one size of the log extends another",
    operation_id="audit_consistency",
)
async def audit_consistency(request: Call, app: Here, older: Size, newer: Later = None) -> Response[bytes]:
    tenant_id = (await require_permission(request, app, "read")).tenant_id
    if newer is not None and older > newer:
        raise Refusal(422, "bad_range", "from is larger than to")
    head, _ = await app.store.head(tenant_id)
    if max(older, newer or 0) > head:
        raise Refusal(422, "bad_range", f"the record ends at {head}")
    checkpoint = await signed(app, tenant_id, max(older, newer or 0))
    new, tree = newer or checkpoint.size, app.service(Sealer).tree
    hashes = await or_broken_log(tree.consistency(tenant_id, older, new))
    old_root, new_root = [await or_broken_log(tree.root(tenant_id, size)) for size in (older, new)]
    if not merkle.verify_consistency(older, new, old_root, new_root, hashes):
        raise broken_log()
    stored = await rows_of(app).checkpoint(tenant_id, new)
    is_signed = stored is not None and stored.size == new
    if stored is not None and is_signed and stored.root != new_root:
        raise broken_log()
    return json(
        {
            "tenant_id": tenant_id,
            "origin": await app.service(Sealer).origin(tenant_id),
            "from": older,
            "to": new,
            "from_root": text_of(old_root),
            "to_root": text_of(new_root),
            "hashes": [text_of(one) for one in hashes],
            "checkpoint": stored.note.decode() if stored is not None and is_signed else None,
            "vkeys": [key["vkey"] for key in await vkeys_of(app, tenant_id)],
        }
    )


async def _readable(request: Call, app: AppState, tenant_id: str) -> StoredCheckpoint:
    """The log's newest checkpoint, if the caller may read it; 404 for unknown logs and those of others."""
    if not app.settings.log_public:
        principal = await require_permission(request, app, "read")
        if principal.tenant_id != tenant_id:
            raise no_log()
    checkpoint = await or_broken_log(rows_of(app).checkpoint(tenant_id))
    if checkpoint is None:
        raise no_log()
    return checkpoint


def no_log() -> Refusal:
    return Refusal(404, "not_found", "there is no such log, or it has no signed checkpoint yet")


def _cached(app: AppState, seconds: int, *more: str) -> dict[str, str]:
    kind = "public" if app.settings.log_public else "private"
    return {"cache-control": ", ".join((kind, f"max-age={seconds}", *more))}


@get(
    "/log/{tenant_id:str}/checkpoint",
    summary="The log's newest checkpoint",
    operation_id="log_checkpoint",
    opt=OPEN,
)
async def log_checkpoint(request: Call, app: Here, tenant_id: FromPath[str]) -> Response[bytes]:
    checkpoint = await cosigned(app, tenant_id, await _readable(request, app, tenant_id))
    return Response(checkpoint.note, media_type=MediaType.TEXT, headers=_cached(app, MOMENT_S))


@get(
    "/log/{tenant_id:str}/tile/{level:str}/{tile:path}",
    summary="A tile of the log: hashes, or entries",
    operation_id="log_tile",
    opt=OPEN,
)
async def log_tile(
    request: Call, app: Here, tenant_id: FromPath[str], level: FromPath[str], tile: FromPath[str]
) -> Response[bytes]:
    """C2SP's paths: `tile/0/x001/234`, `tile/entries/000.p/17`. A partial tile is any prefix of one."""
    checkpoint = await _readable(request, app, tenant_id)
    position = tiles.parse_name(tile.removeprefix("/"))
    number = 0 if level == tiles.ENTRIES else int(level) if level in LEVELS else None
    missing = Refusal(404, "not_found", "the log has no such tile")
    if position is None or number is None:
        raise missing
    index, width = position
    if not 0 < width <= tiles.width_of(number, index, checkpoint.size):
        raise missing
    if level == tiles.ENTRIES:
        content = await _entries(app, tenant_id, index, width)
    else:
        content = await or_broken_log(
            app.service(Sealer).tree.tile(tenant_id, number, index, checkpoint.size)
        )
        content = content[: width * tiles.HASH]
    return Response(content, media_type="application/octet-stream", headers=_cached(app, YEAR_S, "immutable"))


LEVELS = frozenset(map(str, range(tiles.TOP)))


async def _entries(app: AppState, tenant_id: str, index: int, width: int) -> bytes:
    first = index * tiles.WIDTH
    span = EventFilter(after=first, before=first + width + 1)
    events = await app.store.events(tenant_id, span, width, newest_first=False)
    if len(events) != width:
        raise broken_log()
    return tiles.entry_bundle(leaf_of(tenant_id, event) for event in events)


proof_log = Router(
    path="/v1",
    route_handlers=[audit_log, rotate_log_key, audit_proof, audit_consistency, log_checkpoint, log_tile],
    tags=["Forensic Inspector"],
)
