"""HTTP routes of the decision trail: sessions of thoughts, their records, seals and proofs (S320–S345).

`send` permits recording; `read` permits reading, and an agent may read its own sessions. Everything is
decided by a command under the lock; here ids are looked up and answers are shaped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from litestar import Response, Router, get, post
from litestar.params import FromPath, JSONBody, QueryParameter

from observatory.features.thoughts import commands as thinking
from observatory.features.thoughts import commands_sealing as concluding
from observatory.features.thoughts.commands import ThoughtRequest, ThoughtSessionRequest
from observatory.features.thoughts.lineage import took_part
from observatory.features.thoughts.queries_rows import UNKNOWN, ThoughtAuthor, default_session_of
from observatory.features.thoughts.types import INTENT_BYTES, NewSessionThought, NewThought, NewThoughtSession
from observatory.features.thoughts.types_rows import StoredThought, Thoughts
from observatory.features.thoughts.verification import (
    ThoughtTrailReads,
    ThoughtVerification,
    verify_session_thoughts,
)
from observatory.http.answers import Cursor, Limit, Refusal, json, make_cursor, read_cursor
from observatory.http.app_state import AppState, Call, Here
from observatory.http.authentication import Permission, allows
from observatory.http.limits import session_read_slot
from observatory.http.permissions import principal_of, require_permission
from observatory.ledger import thoughts as ledger
from observatory.ledger.canonical import jcs_with_floats
from observatory.ledger.merkle import inclusion_path, verify_inclusion
from observatory.pipeline.ports import EventFilter
from observatory.pipeline.state import Command, Principal
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import canonical_id, counter_of, mint
from observatory.protocol.thoughts import CONTENT_BYTES, RECORDS, faults_of

Row = dict[str, Any]
PORTION, PAGE_BYTES = 50, 4 << 20  # records read at a time, and content bytes of a page
TRIES = 5  # reads of a session that others append to meanwhile
Start = Annotated[int, QueryParameter(ge=0, le=RECORDS, description="Index of the first record.")]


@post("/thought-sessions", summary="Start a proof-grade session", operation_id="start_thought_session")
async def start_thought_session(
    request: Call, app: Here, data: JSONBody[NewThoughtSession]
) -> Response[bytes]:
    """A repeat with the same `session_id` and content gets the same answer."""
    who, now_ns = await require_permission(request, app, "send"), app.clock()
    if len(data.intent.encode()) > INTENT_BYTES:
        raise Refusal(422, "too_long", f"intent: at most {INTENT_BYTES:,} bytes")
    before = data.predecessor_session_id
    session_request = ThoughtSessionRequest(
        canonical_id(data.session_id) if data.session_id is not None else mint("ses_", now_ns),
        data.task_id or mint("tsk_", now_ns),
        data.intent,
        None if before is None else canonical_id(before),
        names_task=data.task_id is not None,
    )
    voice = _voice(who, data.agent_id)
    for session_id in (session_request.session_id, session_request.predecessor_session_id):
        voice = await _with_membership(app, voice, session_id)
    verdict = await app.command(thinking.start(voice, session_request, now_ns))
    return json(verdict.answer, verdict.code)


@get(
    "/thought-sessions",
    summary="Sessions of thoughts, most recently started first",
    operation_id="list_thought_sessions",
)
async def list_thought_sessions(
    request: Call, app: Here, cursor: Cursor = None, limit: Limit = 100
) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    rows = await _trail(app).thought_sessions_page(who.tenant_id, read_cursor(cursor), limit + 1)
    more = make_cursor(rows[limit - 1]["sequence_number"]) if len(rows) > limit else None
    return json({"items": [_session_item(row) for row in rows[:limit]], "next_cursor": more})


@post("/thoughts", summary="Record a thought", operation_id="record_thought")
async def record_thought(request: Call, app: Here, data: JSONBody[NewThought]) -> Response[bytes]:
    """Outside a started session it opens one, which is not proof-grade."""
    return await _record(request, app, data, data.session_id)


@post(
    "/sessions/{session_id:str}/thoughts",
    summary="Record a thought in a session",
    operation_id="record_session_thought",
)
async def record_session_thought(
    request: Call, app: Here, session_id: FromPath[str], data: JSONBody[NewSessionThought]
) -> Response[bytes]:
    if len(session_id) > 256 or not session_id.isprintable():
        raise Refusal(422, "bad_request", "session_id: 1 to 256 characters without control characters")
    return await _record(request, app, data, session_id)


async def _record(
    request: Call, app: AppState, data: NewSessionThought, session_id: str | None
) -> Response[bytes]:
    who, now_ns = await require_permission(request, app, "send"), app.clock()
    voice, content = _voice(who, data.agent_id), _content(data)
    await _know_events(app, who, data.audit_event_ids)
    if await _trail(app).records_known(who.tenant_id, data.references) != set(data.references):
        raise Refusal(404, "not_found", "references: no record of this tenant has one of these ids")
    home = session_id
    if home is None:
        home = await _trail(app).task_home(who.tenant_id, data.task_id, voice.name)
    thought = ThoughtRequest(
        data.record_id or mint("rec_", now_ns),
        default_session_of(voice, data.task_id) if home is None else canonical_id(home),
        data.task_id,
        data.type,
        content,
        tuple(data.references),
        tuple(data.audit_event_ids),
        names_session=session_id is not None,
    )
    voice = await _with_membership(app, voice, thought.session_id)
    verdict = await app.command(thinking.record(voice, thought, now_ns))
    return json(verdict.answer, verdict.code)


def _content(data: NewSessionThought) -> bytes:
    """The canonical bytes that are hashed and stored; refuses invalid content."""
    faults = faults_of(data.type, data.content)
    if faults:
        raise Refusal(422, "schema_violation", "; ".join(faults))
    try:
        content = jcs_with_floats(data.content)
    except ValueError:
        detail = "content: must be plain JSON whose numbers fit a double; send longer ones as text"
        raise Refusal(422, "schema_violation", detail) from None
    if len(content) > CONTENT_BYTES:
        raise Refusal(413, "too_large", f"content: a thought may have at most {CONTENT_BYTES:,} bytes")
    return content


class _Event(msgspec.Struct):
    audit_event_id: str


async def _know_events(app: AppState, who: Principal, event_ids: list[str]) -> None:
    """Provenance must name existing events; event ids contain their sequence number."""
    for event_id in dict.fromkeys(event_ids):
        number = counter_of(event_id) or 0
        one = EventFilter(after=number - 1, before=number + 1)
        found = await app.store.events(who.tenant_id, one, 1, newest_first=False) if number else []
        if not found or msgspec.json.decode(found[0].record, type=_Event).audit_event_id != event_id:
            detail = "audit_event_ids: no audit event of this tenant has one of these ids"
            raise Refusal(404, "not_found", detail)


@get(
    "/sessions/{session_id:str}/thoughts",
    summary="The thoughts of a session, in order",
    operation_id="session_thoughts",
)
async def session_thoughts(
    request: Call, app: Here, session_id: FromPath[str], start: Start = 0, limit: Limit = 100
) -> Response[bytes]:
    """A page ends early when its content is large; `next` is the start of the following page."""
    who, row = await _readable(request, app, session_id)
    records, size = list[StoredThought](), 0
    while len(records) < limit and size < PAGE_BYTES:
        most = min(PORTION, limit - len(records))
        portion = await _trail(app).thoughts(who.tenant_id, row["session_id"], start + len(records), most)
        records += portion
        size += sum(len(one.thought.content) for one in portion)
        if len(portion) < most:
            break
    following = start + len(records)
    more = following if following < row["records"] and records else None
    try:
        return json({"session": _session_item(row), "items": [_item(one) for one in records], "next": more})
    except ValueError:
        detail = (
            "a stored record is not valid text; POST to its thoughts/verify reports where the chain breaks"
        )
        raise Refusal(409, "chain_broken", detail) from None


@post(
    "/sessions/{session_id:str}/thoughts/verify",
    summary="Recompute the chain of a session's thoughts",
    operation_id="verify_thoughts",
    status_code=200,
)
async def verify_thoughts(request: Call, app: Here, session_id: FromPath[str]) -> Response[bytes]:
    """A pass counts for the records it covered; a broken chain is an event of the highest severity."""
    who = await _either(request, app, "send", "verify")
    return await _concluded(app, who, session_id, concluding.verify)


@post(
    "/sessions/{session_id:str}/seal",
    summary="Seal a session's thoughts under a Merkle root",
    operation_id="seal_session",
    status_code=200,
)
async def seal_session(request: Call, app: Here, session_id: FromPath[str]) -> Response[bytes]:
    """Verify, record the closing reflection, then seal. Sealing again answers with the same root."""
    who = await require_permission(request, app, "send")
    return await _concluded(app, who, session_id, concluding.seal)


@get("/sessions/{session_id:str}/seal", summary="The seal of a session", operation_id="session_seal")
async def session_seal(request: Call, app: Here, session_id: FromPath[str]) -> Response[bytes]:
    _, row = await _readable(request, app, session_id)
    _must_be_sealed(row)
    hashes = {name: row[name] for name in ("genesis", "last_chain_hash")}
    return json(concluding.sealed(row) | hashes)


@get(
    "/sessions/{session_id:str}/thoughts/{record_id:str}/proof",
    summary="Proof that a thought is under its session's seal",
    operation_id="thought_proof",
)
async def thought_proof(
    request: Call, app: Here, session_id: FromPath[str], record_id: FromPath[str]
) -> Response[bytes]:
    who, row = await _readable(request, app, session_id)
    _must_be_sealed(row)
    here = {"session_id": row["session_id"], "record_id": record_id}
    found = await app.store.rows(who.tenant_id, "thought_records", **here)
    if not found:
        raise Refusal(404, "not_found", "no record of this session has that id")
    index, size = found[0]["record_index"], row["records"]
    places = [(0, index), *map(ledger.place_of, inclusion_path(index, size))]
    nodes = await _trail(app).merkle_nodes(who.tenant_id, row["session_id"], places)
    leaf, *path = [nodes.get(place, b"") for place in places]
    if not verify_inclusion(leaf, index, size, path, ledger.digest_of(row["root"])):
        raise Refusal(409, "chain_broken", "the stored tree does not match the seal; verify the chain")
    return json(
        {
            "index": index,
            "size": size,
            "leaf": ledger.text_of(leaf),
            "root": row["root"],
            "hashes": [ledger.text_of(node) for node in path],
        }
    )


@post(
    "/sessions/{session_id:str}/thoughts/end",
    summary="End a session of thoughts",
    operation_id="end_thoughts",
    status_code=200,
)
async def end_thoughts(request: Call, app: Here, session_id: FromPath[str]) -> Response[bytes]:
    """A proof-grade session must be sealed first."""
    who = await require_permission(request, app, "send")
    row = await _session(app, who, session_id)
    verdict = await app.command(concluding.end(_voice(who), row["session_id"], app.clock()))
    return json(verdict.answer, verdict.code)


def _voice(who: Principal, agent_id: str | None = None) -> ThoughtAuthor:
    return ThoughtAuthor(who, agent_id, allows(who, "operate"))


async def _with_membership(app: AppState, voice: ThoughtAuthor, session_id: str | None) -> ThoughtAuthor:
    """The voice with whether it took part in the session; without a session id it is returned unchanged."""
    if session_id is None or voice.operates or not voice.took_part or not voice.is_named:
        return voice
    return voice._replace(took_part=await took_part(app, voice.who.tenant_id, session_id, voice.name))


async def _concluded(
    app: AppState,
    who: Principal,
    session_id: str,
    conclude: Callable[[ThoughtAuthor, str, ThoughtVerification, int], Command],
) -> Response[bytes]:
    """The session is read before the lock, and again if it has changed by then."""
    for _ in range(TRIES):
        row = await _session(app, who, session_id)
        seen = await _examined(app, row)
        verdict = await app.command(conclude(_voice(who), row["session_id"], seen, app.clock()))
        if verdict is not concluding.SESSION_CHANGED:
            break
    return json(verdict.answer, verdict.code)


def _trail(app: AppState) -> Thoughts:
    store = app.store
    assert isinstance(store, Thoughts)  # every store implements it
    return store


async def _examined(app: AppState, row: Row) -> ThoughtVerification:
    """At most two whole sessions are read at a time, over all callers."""
    store: Any = app.store
    trail: ThoughtTrailReads = store
    async with session_read_slot():
        return await verify_session_thoughts(trail, row["tenant_id"], row)


async def _session(app: AppState, who: Principal, session_id: str) -> Row:
    row = await _trail(app).thought_session(who.tenant_id, canonical_id(session_id))
    if row is None:
        raise Refusal(404, "not_found", UNKNOWN)
    return row


async def _readable(request: Call, app: AppState, session_id: str) -> tuple[Principal, Row]:
    """A session the caller may read: with `read` any session, for an agent its own (others are a 404)."""
    who = await _either(request, app, "read", "send")
    row = await _session(app, who, session_id)
    if not allows(who, "read") and not _voice(who).owns(row):
        raise Refusal(404, "not_found", UNKNOWN)
    return who, row


async def _either(request: Call, app: AppState, one: Permission, other: Permission) -> Principal:
    who = await principal_of(request, app)
    return who if allows(who, other) else await require_permission(request, app, one)


def _must_be_sealed(row: Row) -> None:
    if row["sealed_ns"] is None:
        detail = (
            "this session is not sealed yet; verify its chain, record its closing reflection, then seal it"
        )
        raise Refusal(404, "not_sealed", detail)


def _session_item(row: Row) -> Row:
    names = (
        "caller", "intent", "predecessor_session_id", "predecessor_chain_hash", "records", "open_tasks",
        "last_chain_hash", "verified_records", "root", "intent_shredded_by",
    )  # fmt: skip
    times = {
        name: None if row[f"{word}_ns"] is None else from_ns(row[f"{word}_ns"])
        for name, word in (("sealed_at", "sealed"), ("ended_at", "ended"))
    }
    return thinking.started(row) | {name: row[name] for name in names} | times


def _item(one: StoredThought) -> Row:
    """The stored bytes pass through unchanged."""
    thought, hashes = one.thought, one.hashes
    return {
        "record_id": thought.record_id,
        "session_id": thought.session_id,
        "task_id": thought.task_id,
        "index": thought.index,
        "type": thought.type,
        "content": None if one.shredded_by is not None else msgspec.Raw(thought.content),
        "shredded_by": one.shredded_by,
        "author": thought.author,
        "created_at": thought.created_at,
        "references": msgspec.Raw(thought.references),
        "audit_event_ids": msgspec.Raw(thought.audit_event_ids),
        "predecessor_chain_hash": thought.predecessor_chain_hash,
        "content_hash": hashes.content_hash,
        "chain_hash": hashes.chain_hash,
        "parent_chain_hash": hashes.parent_chain_hash,
        "audit_event_id": one.audit_event_id,
        "sequence_number": one.sequence_number,
    }


thoughts_router = Router(
    path="/v1",
    route_handlers=[
        start_thought_session,
        list_thought_sessions,
        record_thought,
        record_session_thought,
        session_thoughts,
        verify_thoughts,
        seal_session,
        session_seal,
        thought_proof,
        end_thoughts,
    ],
    tags=["Decision trail"],
)
