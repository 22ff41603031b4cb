"""Commands of the decision trail ζ: start a session of thoughts, record a thought (rules S320–S331).

Law (ruling 37): four types and no edit; a record is chained to the previous one and announced by an audit
event that has hashes, never content. A record outside a started session opens one, which is not proof-grade.
A task closes with a reflection; after it nothing more is recorded for it. All is decided under the tenant's
lock, so concurrent requests are decided one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from observatory.features.thoughts import redacted_text as thought_words
from observatory.features.thoughts.queries_rows import (
    Row,
    ThoughtAuthor,
    row_of,
    sessions_of,
    task_key,
    tasks_of,
    thought_event,
    wants_of,
    where_of,
)
from observatory.ledger import thoughts as ledger
from observatory.ledger.canonical import jcs
from observatory.ledger.thoughts import Thought, ThoughtHashes
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.redaction import typed_text as typed
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, SubmissionResult, UnitOfWork
from observatory.protocol.clock import from_ns
from observatory.protocol.responses import Refused
from observatory.protocol.thoughts import RECORDS, faults_of

SEALED: Final = "this session is sealed and takes no more records; start another one that names it"
ENDED: Final = "this session has ended; start another one that names it as its predecessor"

NOT_AMONG: Final = (
    "only agents that take part in this session of the mesh, an operator or an admin may record thoughts "
    "about it; start one under another id"
)


class ThoughtSessionRequest(NamedTuple):
    session_id: str
    task_id: str
    intent: str
    predecessor_session_id: str | None = None
    names_task: bool = (
        True  # False: its id was generated; no task is open before something is recorded for it
    )


class ThoughtRequest(NamedTuple):
    """A record as requested; `content` is RFC 8785 text."""

    record_id: str
    session_id: str
    task_id: str
    type: str
    content: bytes
    references: tuple[str, ...] = ()
    audit_event_ids: tuple[str, ...] = ()
    names_session: bool = True  # False: it belongs to the session of its task


def start(voice: ThoughtAuthor, request: ThoughtSessionRequest, now_ns: int) -> Command:
    """Start a proof-grade session, with its genesis in the record. A repeat gets the same answer."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        refused = voice.refusal(uow.now_ns)
        if refused is not None:
            return refused
        known = sessions_of(uow)
        before = known.get(request.session_id)
        if before is not None:
            variants = thought_words.intent(uow.memory, request.intent)
            return _started_before(before, voice, request, _intended(before, variants))
        if not voice.is_among(uow, request.session_id):
            return _not_among()
        previous = None
        if request.predecessor_session_id is not None:
            previous = known.get(request.predecessor_session_id)
            if previous is None:
                detail = "predecessor_session_id: no thought session of this tenant has that id"
                return SubmissionResult(404, Refused(reason="not_found", detail=detail))
            if not _may_prove(uow, voice, previous):
                detail = (
                    "only its starter, an agent that took part in it, or an operator may continue a session"
                )
                return SubmissionResult(403, Refused(reason="not_yours", detail=detail))
        redacted = next(thought_words.intent(uow.memory, request.intent))
        row, writes = _open(uow, voice, request._replace(intent=redacted), previous, proof_grade=1)
        if request.names_task:
            writes += _open_task(uow, voice, row, request.task_id)
        return SubmissionResult(201, started(row), [], writes)

    read_set = wants_of(request.session_id, voice)
    if request.predecessor_session_id is not None:
        read_set.row("thought_sessions", request.predecessor_session_id)
        read_set.sessions.add(request.predecessor_session_id)
    return Command(voice.who, now_ns, decide, read_set, on_behalf_of=voice.name)


def _started_before(
    row: Row, voice: ThoughtAuthor, request: ThoughtSessionRequest, same_words: bool
) -> SubmissionResult:
    same = (row["caller"], row["predecessor_session_id"]) == (voice.name, request.predecessor_session_id)
    if (
        row["proof_grade"]
        and same_words
        and same
        and (not request.names_task or row["task_id"] == request.task_id)
    ):
        return SubmissionResult(201, started(row))
    detail = "this session was already started; continue it, or start another one under a new id"
    if not row["proof_grade"]:
        detail = (
            "this session was opened by a record, so it cannot become proof-grade; start another one that "
            "names it as its predecessor"
        )
    return SubmissionResult(409, Refused(reason="already_started", detail=detail))


def started(row: Row) -> Row:
    names = ("session_id", "task_id", "genesis", "started_at")
    return {name: row[name] for name in names} | {"proof_grade": bool(row["proof_grade"])}


def record(voice: ThoughtAuthor, thought: ThoughtRequest, now_ns: int) -> Command:
    """Append one thought. The records and events it names were checked before: records are never removed."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        refused = voice.refusal(uow.now_ns)
        if refused is not None:
            return refused
        records = uow.memory.rows.setdefault("thought_records", {})
        before = records.get(thought.record_id)
        if before is not None:
            variants = thought_words.content(uow.memory, thought.content)
            same_words = _is_among(before, variants)
            return _recorded_before(before, voice, thought, same_words, uow.now_ns)
        redacted = next(thought_words.content(uow.memory, thought.content))
        if redacted != thought.content and faults_of(thought.type, msgspec.json.decode(redacted)):
            detail = f"after the tenant's redaction rules, this thought is not a valid {thought.type}"
            return SubmissionResult(422, Refused(reason="not_redactable", detail=detail))
        session, writes = sessions_of(uow).get(thought.session_id), list[RowWrite]()
        task = tasks_of(uow).get(task_key(thought.session_id, thought.task_id))
        problem = _why_not(uow, voice, thought, session, task)
        if problem is not None:
            return problem
        if session is None:
            begun = ThoughtSessionRequest(thought.session_id, thought.task_id, "")
            session, writes = _open(uow, voice, begun, None, proof_grade=0)
        if task is None:
            writes += _open_task(uow, voice, session, thought.task_id)
        row = _chained(uow, voice, thought._replace(content=redacted), session)
        writes.append(RowWrite("thought_records", row))
        writes += _close(uow, thought, session) if thought.type == "reflection" else []
        session |= {"records": session["records"] + 1, "last_chain_hash": row["chain_hash"]}
        changed = {name: session[name] for name in ("records", "last_chain_hash", "open_tasks")}
        writes.append(RowWrite("thought_sessions", changed, where_of(session)))
        records[thought.record_id] = row  # for later commands of this batch
        return SubmissionResult(201, recorded(row), [], writes)

    read_set = wants_of(thought.session_id, voice)
    read_set.row("thought_tasks", task_key(thought.session_id, thought.task_id))
    read_set.row("thought_records", thought.record_id)
    size = 1_024 + len(thought.content)
    return Command(voice.who, now_ns, decide, read_set, size, on_behalf_of=voice.name)


def _is_among(row: Row, variants: Iterator[bytes]) -> bool:
    """Whether one of these variants is the row's content, of which only the hash may be left."""
    if row.get("shredded_by") is None:
        return bytes(row["content"]) in variants
    first = row["content_hash"]
    return any(ledger.text_of(ledger.content_hash(_thought(row, one))) == first for one in variants)


def _thought(row: Row, content: bytes) -> Thought:
    return Thought(
        record_id=row["record_id"],
        session_id=row["session_id"],
        task_id=row["task_id"],
        index=row["record_index"],
        type=row["type"],
        content=content,
        author=row["author"],
        created_at=row["created_at"],
        references=row["refs"].encode(),
        audit_event_ids=row["event_ids"].encode(),
        predecessor_chain_hash=row["predecessor_chain_hash"],
    )


def _intended(row: Row, variants: Iterator[str]) -> bool:
    """Whether the intent is the same. Of a shredded intent no hash is left, so any intent is accepted."""
    return row.get("intent_shredded_by") is not None or row["intent"] in variants


def _not_among() -> SubmissionResult:
    return SubmissionResult(403, Refused(reason="not_yours", detail=NOT_AMONG))


def _why_not(
    uow: UnitOfWork, voice: ThoughtAuthor, thought: ThoughtRequest, session: Row | None, task: Row | None
) -> SubmissionResult | None:
    if session is None and not voice.is_among(uow, thought.session_id):
        return _not_among()
    if session is not None and session["sealed_ns"] is not None:
        return SubmissionResult(409, Refused(reason="sealed", detail=SEALED))
    if session is not None and session["ended_ns"] is not None:
        return SubmissionResult(409, Refused(reason="ended", detail=ENDED))
    if session is not None and session["records"] >= RECORDS:
        detail = f"a session has at most {RECORDS:,} records; seal it and start another one that names it"
        return SubmissionResult(409, Refused(reason="session_full", detail=detail))
    if task is not None and task["state"] == "closed":
        detail = "a reflection has closed this task; record what follows under another task"
        return SubmissionResult(409, Refused(reason="task_closed", detail=detail))
    if session is not None and session["proof_grade"] and not _may_prove(uow, voice, session):
        detail = (
            "a proof-grade session accepts records only from its starter, agents that take part in the "
            "session of that name, an operator or an admin"
        )
        return SubmissionResult(403, Refused(reason="not_yours", detail=detail))
    parties = [row for row in (task, session) if row is not None]
    if thought.type == "reflection" and task is not None and not any(map(voice.owns, parties)):
        detail = "only its opener, the starter of its session, an operator or an admin may close a task"
        return SubmissionResult(403, Refused(reason="not_yours", detail=detail))
    return None


def _may_prove(uow: UnitOfWork, voice: ThoughtAuthor, session: Row) -> bool:
    """Limited to participants: others could prevent the session from ever being sealed."""
    is_mesh = session["session_id"] in uow.memory.sessions
    return voice.owns(session) or (is_mesh and voice.is_among(uow, session["session_id"]))


def _recorded_before(
    row: Row, voice: ThoughtAuthor, thought: ThoughtRequest, same_words: bool, now_ns: int
) -> SubmissionResult:
    given = (voice.name, thought.task_id, thought.type, _listed(thought.references))
    first = (row["author"], row["task_id"], row["type"], row["refs"])
    same_session = not thought.names_session or thought.session_id == row["session_id"]
    if (
        same_session
        and same_words
        and given == first
        and row["event_ids"] == _listed(thought.audit_event_ids)
    ):
        return SubmissionResult(201, recorded(row))
    who = voice.who
    event = gateway_event(
        who.tenant_id,
        "security_violation",
        "record_id was reused with other content",
        now_ns,
        who,
        {"reason": "id_conflict", "content_digest": "sha256:" + sha256(thought.content).hexdigest()},
    )
    detail = "this record_id already names a record with other content; a correction is a new record"
    return SubmissionResult(409, Refused(reason="id_conflict", detail=detail), [event])


def _open(
    uow: UnitOfWork,
    voice: ThoughtAuthor,
    request: ThoughtSessionRequest,
    previous: Row | None,
    proof_grade: int,
) -> tuple[Row, list[RowWrite]]:
    """Open a session: its genesis is an audit event (R279)."""
    caller, started_at = voice.name, from_ns(uow.now_ns)
    genesis = ledger.text_of(ledger.genesis(caller, request.session_id, started_at))
    embedded = None if previous is None else previous["last_chain_hash"]
    detail = {
        "session_id": request.session_id,
        "genesis": genesis,
        "caller": caller,
        "started_at": started_at,
        "task_id": request.task_id,
        "opens_task": bool(proof_grade) and request.names_task,
        "proof_grade": bool(proof_grade),
        "intent_hash": "sha256:" + sha256(request.intent.encode()).hexdigest(),
        "predecessor_session_id": request.predecessor_session_id,
        "predecessor_chain_hash": embedded,
    }
    summary = f"thought session {request.session_id} started by {caller}"
    draft = thought_event(uow, voice.who, request.session_id, "thought_session_started", summary, detail)
    draft.attributes = typed.attributes(uow.memory)
    number = uow.append(draft)
    mesh = uow.memory.sessions.get(request.session_id)
    row: Row = {
        "tenant_id": voice.who.tenant_id,
        "session_id": request.session_id,
        "session_no": 0 if mesh is None else mesh.session_no,
        "caller": caller,
        "opened_by": voice.who.entity_id,
        "intent": request.intent,
        "task_id": request.task_id,
        "started_at": started_at,
        "genesis": genesis,
        "sequence_number": number,
        "predecessor_session_id": request.predecessor_session_id,
        "predecessor_chain_hash": embedded,
        "proof_grade": proof_grade,
        "records": 0,
        "open_tasks": 0,
        "last_chain_hash": genesis,
        "verified_records": None,
        "verified_by": None,
        "sealed_ns": None,
        "root": None,
        "ended_ns": None,
        "intent_shredded_by": None,
    }
    sessions_of(uow)[request.session_id] = row
    return row, [RowWrite("thought_sessions", dict(row))]


def _open_task(uow: UnitOfWork, voice: ThoughtAuthor, session: Row, task_id: str) -> list[RowWrite]:
    key = task_key(session["session_id"], task_id)
    row: Row = {
        "tenant_id": session["tenant_id"],
        "task_key": key,
        "session_id": session["session_id"],
        "task_id": task_id,
        "proof_grade": session["proof_grade"],
        "state": "open",
        "opened_by": voice.name,
        "opened_ns": uow.now_ns,
        "closed_by": None,
        "closed_ns": None,
    }
    tasks_of(uow)[key] = row
    session["open_tasks"] += 1
    grown = RowWrite("thought_sessions", {"open_tasks": session["open_tasks"]}, where_of(session))
    return [RowWrite("thought_tasks", dict(row)), grown]


def _close(uow: UnitOfWork, thought: ThoughtRequest, session: Row) -> list[RowWrite]:
    key = task_key(thought.session_id, thought.task_id)
    changed = {"state": "closed", "closed_by": thought.record_id, "closed_ns": uow.now_ns}
    tasks_of(uow)[key] |= changed
    session["open_tasks"] -= 1
    return [RowWrite("thought_tasks", changed, {"tenant_id": session["tenant_id"], "task_key": key})]


class _Named(msgspec.Struct):
    audit_event_id: str


def _chained(uow: UnitOfWork, voice: ThoughtAuthor, thought: ThoughtRequest, session: Row) -> Row:
    """Append the record's event; returns the row with its hashes."""
    first = session["records"] == 0
    entry = Thought(
        record_id=thought.record_id,
        session_id=thought.session_id,
        task_id=thought.task_id,
        index=session["records"],
        type=thought.type,
        content=thought.content,
        author=voice.name,
        created_at=from_ns(uow.now_ns),
        references=_listed(thought.references).encode(),
        audit_event_ids=_listed(thought.audit_event_ids).encode(),
        predecessor_chain_hash=session["predecessor_chain_hash"] if first else None,
    )
    hashes = ledger.link(entry, session["last_chain_hash"])
    summary = f"{thought.type} {thought.record_id} by {voice.name} in {thought.session_id}"
    draft = thought_event(
        uow, voice.who, thought.session_id, "thought_recorded", summary, _about(entry, hashes, thought)
    )
    draft.attributes = typed.attributes(uow.memory)
    number = uow.append(draft)
    event_id = msgspec.json.decode(uow.changes.audit[-1].record, type=_Named).audit_event_id
    return row_of(session["tenant_id"], entry, hashes, number, event_id)


def _about(entry: Thought, hashes: ThoughtHashes, thought: ThoughtRequest) -> dict[str, Any]:
    """The detail of a thought's event: everything but its content."""
    return {
        "record_id": entry.record_id,
        "session_id": entry.session_id,
        "task_id": entry.task_id,
        "index": entry.index,
        "type": entry.type,
        "author": entry.author,
        "content_hash": hashes.content_hash,
        "chain_hash": hashes.chain_hash,
        "parent_chain_hash": hashes.parent_chain_hash,
        "references": list(thought.references),
        "audit_event_ids": list(thought.audit_event_ids),
    }


def recorded(row: Row) -> Row:
    names = (
        "record_id", "session_id", "task_id", "type", "content_hash", "chain_hash", "parent_chain_hash",
        "created_at", "audit_event_id",
    )  # fmt: skip
    return {name: row[name] for name in names} | {"index": row["record_index"]}


def _listed(ids: tuple[str, ...]) -> str:
    return jcs(list(ids)).decode()
