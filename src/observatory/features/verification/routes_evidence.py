"""HTTP route of a session's evidence bundle: its events, thought records, seal and proofs (S383–S385).

Everything is taken as stored, from committed rows; a verifier trusts neither it nor the gateway. The bundle
is built completely before the first byte is sent: what cannot be proven is refused, never sent in part.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from tempfile import SpooledTemporaryFile
from typing import IO, Any

import msgspec
from litestar import Router, get
from litestar.params import FromPath
from litestar.response import Stream

from observatory.features.thoughts.types_rows import Thoughts
from observatory.features.transparency.queries_checkpoints import or_broken_log, rows_of, signed, vkeys_of
from observatory.features.transparency.types_log import StoredCheckpoint
from observatory.features.transparency.worker import Sealer
from observatory.http.answers import Refusal
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.ledger import bundle, merkle, note, thoughts, tiles
from observatory.ledger.bundle import BundleEvent, BundleSeal, Evidence
from observatory.ledger.merkle import Range
from observatory.ledger.thoughts import Thought, ThoughtHashes
from observatory.pipeline.ports import EventFilter
from observatory.protocol.identity import canonical_id, counter_of
from observatory.settings import VERSION

PAGE = 500
MAX_EVENTS = 20_000
IN_MEMORY = 4 << 20
BLOCK = 1 << 16
UNKNOWN_SESSION = "no session of this tenant has that id"
BUILDING = asyncio.Semaphore(2)  # each may use some hundred megabytes while it is built
Row = dict[str, Any]
Chained = list[tuple[Thought, ThoughtHashes]]


class _Chain(msgspec.Struct):
    event_hash: str


class _Body(msgspec.Struct):
    event_type: str
    session_id: str | None = None


class _Record(msgspec.Struct):
    audit_event_id: str
    body: _Body
    hash_chain: _Chain


_read = msgspec.json.Decoder(_Record).decode


@get(
    "/sessions/{session_id:str}/evidence",
    summary="Everything that proves a session, as one zip",
    operation_id="session_evidence",
    media_type="application/zip",
)
async def session_evidence(request: Call, app: Here, session_id: FromPath[str]) -> Stream:
    """Check it with `observatory verify FILE.zip`, or as its README.txt describes."""
    who = await require_permission(request, app, "export")
    if BUILDING.locked():
        raise Refusal(429, "busy", "two bundles are already being built; try again in a moment")
    async with BUILDING:
        evidence = await collected(app, who.tenant_id, canonical_id(session_id))
        file = await _built(evidence)
    size = file.seek(0, 2)
    file.seek(0)
    headers = {"content-disposition": 'attachment; filename="evidence.zip"', "content-length": str(size)}
    return Stream(_blocks(file), media_type="application/zip", headers=headers)


async def _built(evidence: Evidence) -> IO[bytes]:
    try:
        return await asyncio.to_thread(_written, evidence)
    except ValueError as error:  # tampered rows may have no canonical text
        raise broken_seal() from error
    except OSError as error:
        detail = "the gateway has no disk space for the bundle; free some in its temporary folder"
        raise Refusal(503, "no_room", detail) from error


def _written(evidence: Evidence) -> IO[bytes]:
    files = bundle.files(evidence)
    if sum(map(len, files.values())) > bundle.MAX_BYTES:
        detail = (
            "the session's evidence is too large for a bundle; export the whole trail: observatory export"
        )
        raise Refusal(409, "too_large", detail)
    file: IO[bytes] = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - it outlives the answer's headers
    bundle.write(file, files)
    return file


async def _blocks(file: IO[bytes]) -> AsyncIterator[bytes]:
    try:
        while block := await asyncio.to_thread(file.read, BLOCK):
            yield block
    finally:
        file.close()


async def collected(app: AppState, tenant_id: str, session_id: str) -> Evidence:
    """Collect the content of a bundle; waits until a checkpoint covers very recent events."""
    mesh = await app.store.rows(tenant_id, "sessions", session_id=session_id)
    thinking = await app.store.rows(tenant_id, "thought_sessions", session_id=session_id)
    if not mesh and not thinking:
        raise Refusal(404, "not_found", UNKNOWN_SESSION)
    records: dict[int, bytes] = {}
    if mesh:
        await _of_trace(app, tenant_id, mesh[0]["trace_id"], records)
    chained, shredded = Chained(), dict[int, int]()
    if thinking:
        chained, shredded = await _of_thoughts(app, tenant_id, thinking[0], records)
    checkpoint = await signed(app, tenant_id, max(records))
    proofs = await _proofs(app, tenant_id, records, checkpoint)
    events = [
        BundleEvent(number, records[number], _read(records[number]).hash_chain.event_hash, proofs[number])
        for number in sorted(records)
    ]
    vkeys = [key["vkey"] for key in reversed(await vkeys_of(app, tenant_id))]
    return Evidence(
        tenant_id=tenant_id,
        session_id=session_id,
        vkeys=vkeys,
        checkpoint=checkpoint.note,
        tree_size=checkpoint.size,
        events=events,
        session=_session(thinking[0]) if thinking else None,
        thoughts=chained,
        shredded=shredded,
        seal=_sealing(thinking[0], chained, events) if thinking else None,
        older=await _older(app, tenant_id, events[0].sequence_number, checkpoint, vkeys[0]),
        tool=f"observatory {VERSION}",
    )


async def _of_trace(app: AppState, tenant_id: str, trace_id: str, records: dict[int, bytes]) -> None:
    """Every event of the mesh session."""
    after = 0
    while True:
        where = EventFilter(after=after, trace_id=trace_id)
        page = await app.store.events(tenant_id, where, PAGE, newest_first=False)
        records.update((event.sequence_number, event.record) for event in page)
        if len(records) > MAX_EVENTS:
            detail = (
                f"the session has more than {MAX_EVENTS:,} events; export the whole trail: observatory export"
            )
            raise Refusal(409, "too_large", detail)
        if len(page) < PAGE:
            return
        after = page[-1].sequence_number


async def _of_thoughts(
    app: AppState, tenant_id: str, row: Row, records: dict[int, bytes]
) -> tuple[Chained, dict[int, int]]:
    """Every thought record, their audit events, the events they cite, and the orders that shredded them."""
    store, session_id, chained, named = app.store, row["session_id"], Chained(), set[int]()
    shredded: dict[int, int] = {}
    assert isinstance(store, Thoughts)  # every store implements it
    while page := await store.thoughts(tenant_id, session_id, len(chained), PAGE):
        for one in page:
            chained.append((one.thought, one.hashes))
            if one.event is not None:
                records[one.sequence_number] = one.event
            named |= _numbers(one.thought.audit_event_ids)
            if one.shredded_by is not None:
                shredded[one.thought.index] = one.shredded_by
    for number in {row["sequence_number"], *named, *shredded.values()} - records.keys():
        span = EventFilter(after=number - 1, before=number + 1)
        for event in await app.store.events(tenant_id, span, 1, newest_first=False):
            records[number] = event.record
    for moment in (row["sealed_ns"], row["ended_ns"]):
        if moment is not None:
            await _of_moment(app, tenant_id, session_id, moment, records)
    return chained, shredded


def _numbers(event_ids: bytes) -> set[int]:
    """Event ids contain their sequence number."""
    try:
        named = msgspec.json.decode(event_ids, type=list[str])
    except msgspec.MsgspecError:  # tampered with; verification reports it
        return set()
    return {number for number in map(counter_of, named) if number}


async def _of_moment(
    app: AppState, tenant_id: str, session_id: str, moment: int, records: dict[int, bytes]
) -> None:
    """A session's seal and end have events with the same timestamp; a batch shares one timestamp."""
    where = EventFilter(since_ns=moment, until_ns=moment + 1)
    while page := await app.store.events(tenant_id, where, PAGE, newest_first=False):
        for event in page:
            body = _read(event.record).body
            if body.session_id == session_id and body.event_type.startswith("thought_session_"):
                records[event.sequence_number] = event.record
        where = msgspec.structs.replace(where, after=page[-1].sequence_number)


async def _proofs(
    app: AppState, tenant_id: str, numbers: Iterable[int], checkpoint: StoredCheckpoint
) -> Mapping[int, list[bytes]]:
    """Each tile is read once, and each subtree hash computed once, however many proofs need it."""
    paths = {number: merkle.inclusion_path(number - 1, checkpoint.size) for number in numbers}
    spans = {span for path in paths.values() for span in path}
    tree = app.service(Sealer).tree
    tiles_by_name = {
        place: await or_broken_log(tree.tile(tenant_id, *place, checkpoint.size))
        for place in tiles.needed(spans)
    }

    def build() -> Mapping[int, list[bytes]]:
        known = {
            span: tiles.hash_of(span, lambda level, index: tiles_by_name[level, index]) for span in spans
        }
        return {number: [known[span] for span in path] for number, path in paths.items()}

    return await or_broken_log(asyncio.to_thread(build))


async def _older(
    app: AppState, tenant_id: str, first: int, newest: StoredCheckpoint, vkey: str
) -> tuple[bytes, list[bytes]] | None:
    """The last checkpoint from before the session, if the current key signed it: a verifier that pins one key
    could not check another's."""
    checkpoint = await rows_of(app).checkpoint(tenant_id, first - 1)
    if checkpoint is None or not checkpoint.size:
        return None
    key_id = note.Verifier.from_vkey(vkey).key_id
    if all(line.key_id != key_id for line in note.split(checkpoint.note)[1]):
        return None
    tree = app.service(Sealer).tree
    return checkpoint.note, await or_broken_log(tree.consistency(tenant_id, checkpoint.size, newest.size))


def _session(row: Row) -> Row:
    return {name: row[name] for name in ("session_id", "caller", "started_at", "genesis")}


def _sealing(row: Row, chained: Chained, events: list[BundleEvent]) -> BundleSeal | None:
    if row["sealed_ns"] is None:
        return None
    sealing_events = [event.sequence_number for event in events if _is_sealing(event, row["session_id"])]
    try:
        levels = thoughts.levels([thoughts.leaf(hashes) for _, hashes in chained])
    except ValueError:
        raise broken_seal() from None
    if not sealing_events or thoughts.text_of(levels[-1][0]) != row["root"]:
        raise broken_seal()
    detail = {
        "session_id": row["session_id"],
        "genesis": row["genesis"],
        "n_records": row["records"],
        "last_chain_hash": row["last_chain_hash"],
        "root": row["root"],
    }
    paths = [merkle.inclusion_path(index, len(chained)) for index in range(len(chained))]
    return BundleSeal(detail, sealing_events[-1], [[_node(levels, span) for span in path] for path in paths])


def _node(levels: list[list[bytes]], span: Range) -> bytes:
    level, index = thoughts.place_of(span)
    return levels[level][index]


def _is_sealing(event: BundleEvent, session_id: str) -> bool:
    body = _read(event.record).body
    return body.event_type == "thought_session_sealed" and body.session_id == session_id


def broken_seal() -> Refusal:
    detail = "what is stored is not what was sealed; POST to its thoughts/verify reports where it breaks"
    return Refusal(409, "chain_broken", detail)


evidence_router = Router(path="/v1", route_handlers=[session_evidence], tags=["Decision trail"])
