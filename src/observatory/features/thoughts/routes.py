"""The doors of the decision trail: sessions of thoughts, their records, seals and proofs (rules S320–S345).

Who sends may think; whoever reads may read, and an agent what belongs to a session of its own. Everything is
decided by an act under the lock; here ids are looked up and answers are shaped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from litestar import Response, Router, get, post
from litestar.params import FromPath, JSONBody, QueryParameter

from observatory.features.graph.loader import turn
from observatory.features.thoughts import commands as thinking
from observatory.features.thoughts import commands_sealing as concluding
from observatory.features.thoughts.commands import Beginning, Said
from observatory.features.thoughts.lineage import took_part
from observatory.features.thoughts.rows import UNKNOWN, Voice, home_of
from observatory.features.thoughts.types import INTENT_BYTES, NewSessionThought, NewThought, NewThoughtSession
from observatory.features.thoughts.types_rows import StoredThought, Thoughts
from observatory.features.thoughts.verification import Examined, Trail, examine
from observatory.http.answers import Cursor, Limit, Refusal, json, make_cursor, read_cursor
from observatory.http.app_state import Call, Here, House
from observatory.http.authentication import Permission, allows
from observatory.http.permissions import need, principal_of
from observatory.ledger import thoughts as ledger
from observatory.ledger.canonical import jcs_of_words
from observatory.ledger.merkle import inclusion_path, verify_inclusion
from observatory.pipeline.ports import EventFilter
from observatory.pipeline.state import Act, Principal
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import canonical_id, counter_of, mint
from observatory.protocol.thoughts import CONTENT_BYTES, RECORDS, faults_of

Row = dict[str, Any]
PORTION, PAGE_BYTES = 50, 4 << 20  # records read at a time, and words of a page
TRIES = 5  # a session that others write into meanwhile is looked at again so often
Start = Annotated[int, QueryParameter(ge=0, le=RECORDS, description="Index of the first record.")]


@post("/thought-sessions", summary="Start a proof-grade session", operation_id="start_thought_session")
async def start_thought_session(
    request: Call, house: Here, data: JSONBody[NewThoughtSession]
) -> Response[bytes]:
    """Repeated with the same `session_id` and words it answers as the first time."""
    who, now_ns = await need(request, house, "send"), house.clock()
    if len(data.intent.encode()) > INTENT_BYTES:
        raise Refusal(422, "too_long", f"intent: at most {INTENT_BYTES:,} bytes")
    before = data.predecessor_session_id
    asked = Beginning(
        canonical_id(data.session_id) if data.session_id is not None else mint("ses_", now_ns),
        data.task_id or mint("tsk_", now_ns),
        data.intent,
        None if before is None else canonical_id(before),
        names_task=data.task_id is not None,
    )
    voice = _voice(who, data.agent_id)
    for session_id in (asked.session_id, asked.predecessor_session_id):
        voice = await _placed(house, voice, session_id)
    verdict = await house.command(thinking.start(voice, asked, now_ns))
    return json(verdict.answer, verdict.code)


@get(
    "/thought-sessions",
    summary="Sessions of thoughts, the last started first",
    operation_id="list_thought_sessions",
)
async def list_thought_sessions(
    request: Call, house: Here, cursor: Cursor = None, limit: Limit = 100
) -> Response[bytes]:
    who = await need(request, house, "read")
    rows = await _trail(house).thought_sessions_page(who.tenant_id, read_cursor(cursor), limit + 1)
    more = make_cursor(rows[limit - 1]["sequence_number"]) if len(rows) > limit else None
    return json({"items": [_session_item(row) for row in rows[:limit]], "next_cursor": more})


@post("/thoughts", summary="Record a thought", operation_id="record_thought")
async def record_thought(request: Call, house: Here, data: JSONBody[NewThought]) -> Response[bytes]:
    """Outside a started session it opens one, which is not proof-grade."""
    return await _record(request, house, data, data.session_id)


@post(
    "/sessions/{session_id:str}/thoughts",
    summary="Record a thought in a session",
    operation_id="record_session_thought",
)
async def record_session_thought(
    request: Call, house: Here, session_id: FromPath[str], data: JSONBody[NewSessionThought]
) -> Response[bytes]:
    if len(session_id) > 256 or not session_id.isprintable():
        raise Refusal(422, "bad_request", "session_id: 1 to 256 characters without control characters")
    return await _record(request, house, data, session_id)


async def _record(
    request: Call, house: House, data: NewSessionThought, session_id: str | None
) -> Response[bytes]:
    who, now_ns = await need(request, house, "send"), house.clock()
    voice, content = _voice(who, data.agent_id), _content(data)
    await _know_events(house, who, data.audit_event_ids)
    if await _trail(house).records_known(who.tenant_id, data.references) != set(data.references):
        raise Refusal(404, "not_found", "references: no record of this tenant has one of these ids")
    home = session_id
    if home is None:
        home = await _trail(house).task_home(who.tenant_id, data.task_id, voice.name)
    said = Said(
        data.record_id or mint("rec_", now_ns),
        home_of(voice, data.task_id) if home is None else canonical_id(home),
        data.task_id,
        data.type,
        content,
        tuple(data.references),
        tuple(data.audit_event_ids),
        names_session=session_id is not None,
    )
    voice = await _placed(house, voice, said.session_id)
    verdict = await house.command(thinking.record(voice, said, now_ns))
    return json(verdict.answer, verdict.code)


def _content(data: NewSessionThought) -> bytes:
    """The thought as it is hashed and stored, if it is one."""
    faults = faults_of(data.type, data.content)
    if faults:
        raise Refusal(422, "schema_violation", "; ".join(faults))
    try:
        content = jcs_of_words(data.content)
    except ValueError:
        detail = "content: plain JSON whose numbers a double keeps; write longer ones as text"
        raise Refusal(422, "schema_violation", detail) from None
    if len(content) > CONTENT_BYTES:
        raise Refusal(413, "too_large", f"content: a thought has at most {CONTENT_BYTES:,} bytes")
    return content


class _Event(msgspec.Struct):
    audit_event_id: str


async def _know_events(house: House, who: Principal, event_ids: list[str]) -> None:
    """Provenance names what is in the record; ids of ours carry their number."""
    for event_id in dict.fromkeys(event_ids):
        number = counter_of(event_id) or 0
        one = EventFilter(after=number - 1, before=number + 1)
        found = await house.store.events(who.tenant_id, one, 1, newest_first=False) if number else []
        if not found or msgspec.json.decode(found[0].record, type=_Event).audit_event_id != event_id:
            detail = "audit_event_ids: no audit event of this tenant has one of these ids"
            raise Refusal(404, "not_found", detail)


@get(
    "/sessions/{session_id:str}/thoughts",
    summary="The thoughts of a session, in order",
    operation_id="session_thoughts",
)
async def session_thoughts(
    request: Call, house: Here, session_id: FromPath[str], start: Start = 0, limit: Limit = 100
) -> Response[bytes]:
    """A page ends early when its words are many; `next` leads on."""
    who, row = await _readable(request, house, session_id)
    found, size = list[StoredThought](), 0
    while len(found) < limit and size < PAGE_BYTES:
        most = min(PORTION, limit - len(found))
        some = await _trail(house).thoughts(who.tenant_id, row["session_id"], start + len(found), most)
        found += some
        size += sum(len(one.thought.content) for one in some)
        if len(some) < most:
            break
    following = start + len(found)
    more = following if following < row["records"] and found else None
    try:
        return json({"session": _session_item(row), "items": [_item(one) for one in found], "next": more})
    except ValueError:
        detail = "what is stored here is no text any more; POST to its thoughts/verify says where it breaks"
        raise Refusal(409, "chain_broken", detail) from None


@post(
    "/sessions/{session_id:str}/thoughts/verify",
    summary="Recompute the chain of a session's thoughts",
    operation_id="verify_thoughts",
    status_code=200,
)
async def verify_thoughts(request: Call, house: Here, session_id: FromPath[str]) -> Response[bytes]:
    """A passed one counts for the records it covered; a broken one is an event of the highest severity."""
    who = await _either(request, house, "send", "verify")
    return await _concluded(house, who, session_id, concluding.verify)


@post(
    "/sessions/{session_id:str}/seal",
    summary="Seal a session's thoughts under a Merkle root",
    operation_id="seal_session",
    status_code=200,
)
async def seal_session(request: Call, house: Here, session_id: FromPath[str]) -> Response[bytes]:
    """Verified, then the closing reflection, then this. A second time it answers with the same root."""
    who = await need(request, house, "send")
    return await _concluded(house, who, session_id, concluding.seal)


@get("/sessions/{session_id:str}/seal", summary="The seal of a session", operation_id="session_seal")
async def session_seal(request: Call, house: Here, session_id: FromPath[str]) -> Response[bytes]:
    _, row = await _readable(request, house, session_id)
    _must_be_sealed(row)
    hashes = {name: row[name] for name in ("genesis", "last_chain_hash")}
    return json(concluding.sealed(row) | hashes)


@get(
    "/sessions/{session_id:str}/thoughts/{record_id:str}/proof",
    summary="That a thought is under its session's seal",
    operation_id="thought_proof",
)
async def thought_proof(
    request: Call, house: Here, session_id: FromPath[str], record_id: FromPath[str]
) -> Response[bytes]:
    who, row = await _readable(request, house, session_id)
    _must_be_sealed(row)
    here = {"session_id": row["session_id"], "record_id": record_id}
    found = await house.store.rows(who.tenant_id, "thought_records", **here)
    if not found:
        raise Refusal(404, "not_found", "no record of this session has that id")
    index, size = found[0]["record_index"], row["records"]
    places = [(0, index), *map(ledger.place_of, inclusion_path(index, size))]
    nodes = await _trail(house).merkle_nodes(who.tenant_id, row["session_id"], places)
    leaf, *path = [nodes.get(place, b"") for place in places]
    if not verify_inclusion(leaf, index, size, path, ledger.digest_of(row["root"])):
        raise Refusal(409, "chain_broken", "the stored tree is not the one that was sealed; verify the chain")
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
async def end_thoughts(request: Call, house: Here, session_id: FromPath[str]) -> Response[bytes]:
    """A proof-grade session ends sealed or not at all."""
    who = await need(request, house, "send")
    row = await _session(house, who, session_id)
    verdict = await house.command(concluding.end(_voice(who), row["session_id"], house.clock()))
    return json(verdict.answer, verdict.code)


def _voice(who: Principal, agent_id: str | None = None) -> Voice:
    return Voice(who, agent_id, allows(who, "operate"))


async def _placed(house: House, voice: Voice, session_id: str | None) -> Voice:
    """With whether it took part in the session; of one it is not told of, what was found before stays."""
    if session_id is None or voice.operates or not voice.took_part or not voice.is_named:
        return voice
    return voice._replace(took_part=await took_part(house, voice.who.tenant_id, session_id, voice.name))


async def _concluded(
    house: House, who: Principal, session_id: str, conclude: Callable[[Voice, str, Examined, int], Act]
) -> Response[bytes]:
    """The session is read before the lock, and again when it has moved on by then."""
    for _ in range(TRIES):
        row = await _session(house, who, session_id)
        seen = await _examined(house, row)
        verdict = await house.command(conclude(_voice(who), row["session_id"], seen, house.clock()))
        if verdict is not concluding.MOVED_ON:
            break
    return json(verdict.answer, verdict.code)


def _trail(house: House) -> Thoughts:
    store = house.store
    assert isinstance(store, Thoughts)  # a promise of every store
    return store


async def _examined(house: House, row: Row) -> Examined:
    """Whole sessions are read two at a time, whoever asks."""
    store: Any = house.store
    trail: Trail = store
    async with turn():
        return await examine(trail, row["tenant_id"], row)


async def _session(house: House, who: Principal, session_id: str) -> Row:
    wanted = canonical_id(session_id)
    row = await _trail(house).thought_session(who.tenant_id, wanted)
    if row is None:
        raise Refusal(404, "not_found", UNKNOWN)
    return row


async def _readable(request: Call, house: House, session_id: str) -> tuple[Principal, Row]:
    """Of whoever reads any session; of an agent its own, and others are not there for it."""
    who = await _either(request, house, "read", "send")
    row = await _session(house, who, session_id)
    if not allows(who, "read") and not _voice(who).owns(row):
        raise Refusal(404, "not_found", UNKNOWN)
    return who, row


async def _either(request: Call, house: House, one: Permission, other: Permission) -> Principal:
    who = await principal_of(request, house)
    return who if allows(who, other) else await need(request, house, one)


def _must_be_sealed(row: Row) -> None:
    if row["sealed_ns"] is None:
        detail = (
            "this session is not sealed yet; verify its chain, write its closing reflection, then seal it"
        )
        raise Refusal(404, "not_sealed", detail)


def _session_item(row: Row) -> Row:
    kept = (
        "caller", "intent", "predecessor_session_id", "predecessor_chain_hash", "records", "open_tasks",
        "last_chain_hash", "verified_records", "root", "intent_shredded_by",
    )  # fmt: skip
    times = {
        name: None if row[f"{word}_ns"] is None else from_ns(row[f"{word}_ns"])
        for name, word in (("sealed_at", "sealed"), ("ended_at", "ended"))
    }
    return thinking.started(row) | {name: row[name] for name in kept} | times


def _item(one: StoredThought) -> Row:
    """The stored bytes pass through untouched."""
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
