"""The acts of the decision trail ζ: a session is started, and its thoughts are recorded (rules S320–S331).

Law (ruling 37): four types and no edit; a record is chained to the one before it and told of by an audit
event that holds hashes, never a word of it. A record outside a started session opens one, which is not
proof-grade. A task closes with a reflection; after it nothing more is recorded for it. All is decided under
the tenant's lock, so of two racers one comes first and the other is answered by what is true then.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from observatory.features.redaction import typed_text as typed
from observatory.features.thoughts import redacted_text as thought_words
from observatory.features.thoughts.rows import (
    Row,
    Voice,
    row_of,
    sessions_of,
    task_key,
    tasks_of,
    told,
    wants_of,
    where_of,
)
from observatory.ledger import thoughts as ledger
from observatory.ledger.canonical import jcs
from observatory.ledger.thoughts import Hashes, Thought
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Verdict
from observatory.protocol.answers import Refused
from observatory.protocol.clock import from_ns
from observatory.protocol.thoughts import RECORDS, faults_of

SEALED: Final = "this session is sealed, and nothing is appended to it; start another one that names it"
ENDED: Final = "this session has ended; start another one that names it as its predecessor"

NOT_AMONG: Final = (
    "a session of the mesh is thought about by the agents that speak in it, an operator or an admin; "
    "start one under another id"
)


class Beginning(NamedTuple):
    session_id: str
    task_id: str
    intent: str
    predecessor_session_id: str | None = None
    names_task: bool = (
        True  # False: its id was minted; no task stands open before something is recorded for it
    )


class Said(NamedTuple):
    """A record as it was asked for; the three `bytes` are RFC 8785 text."""

    record_id: str
    session_id: str
    task_id: str
    type: str
    content: bytes
    references: tuple[str, ...] = ()
    audit_event_ids: tuple[str, ...] = ()
    names_session: bool = True  # False: it belongs wherever its task is


def start(voice: Voice, asked: Beginning, now_ns: int) -> Act:
    """Begin a proof-grade session, with its genesis in the record. A repeat is answered as the first was."""

    def decide(desk: Desk) -> Verdict:
        refused = voice.refusal(desk.now_ns)
        if refused is not None:
            return refused
        known = sessions_of(desk)
        before = known.get(asked.session_id)
        if before is not None:
            words = thought_words.intent(desk.memory, asked.intent)
            return _started_before(before, voice, asked, _intended(before, words))
        if not voice.is_among(desk, asked.session_id):
            return _not_among()
        previous = None
        if asked.predecessor_session_id is not None:
            previous = known.get(asked.predecessor_session_id)
            if previous is None:
                detail = "predecessor_session_id: no thought session of this tenant has that id"
                return Verdict(404, Refused(reason="not_found", detail=detail))
            if not _may_prove(desk, voice, previous):
                detail = "a session is continued by whoever began it or took part in it, or an operator"
                return Verdict(403, Refused(reason="not_yours", detail=detail))
        left = next(thought_words.intent(desk.memory, asked.intent))
        row, writes = _open(desk, voice, asked._replace(intent=left), previous, proof_grade=1)
        if asked.names_task:
            writes += _open_task(desk, voice, row, asked.task_id)
        return Verdict(201, started(row), [], writes)

    wants = wants_of(asked.session_id, voice)
    if asked.predecessor_session_id is not None:
        wants.row("thought_sessions", asked.predecessor_session_id)
        wants.sessions.add(asked.predecessor_session_id)
    return Act(voice.who, now_ns, decide, wants, speaks_as=voice.name)


def _started_before(row: Row, voice: Voice, asked: Beginning, same_words: bool) -> Verdict:
    same = (row["caller"], row["predecessor_session_id"]) == (voice.name, asked.predecessor_session_id)
    if (
        row["proof_grade"]
        and same_words
        and same
        and (not asked.names_task or row["task_id"] == asked.task_id)
    ):
        return Verdict(201, started(row))
    detail = "this session was started before; go on with it, or start another one under a new id"
    if not row["proof_grade"]:
        detail = (
            "a record opened this session without a start, so it cannot become proof-grade; start another "
            "one that names it as its predecessor"
        )
    return Verdict(409, Refused(reason="already_started", detail=detail))


def started(row: Row) -> Row:
    names = ("session_id", "task_id", "genesis", "started_at")
    return {name: row[name] for name in names} | {"proof_grade": bool(row["proof_grade"])}


def record(voice: Voice, said: Said, now_ns: int) -> Act:
    """Append one thought. The records and events it names were looked up before: what is recorded stays."""

    def decide(desk: Desk) -> Verdict:
        refused = voice.refusal(desk.now_ns)
        if refused is not None:
            return refused
        records = desk.memory.rows.setdefault("thought_records", {})
        before = records.get(said.record_id)
        if before is not None:
            words = thought_words.content(desk.memory, said.content)
            same_words = _is_among(before, words)
            return _recorded_before(before, voice, said, same_words, desk.now_ns)
        left = next(thought_words.content(desk.memory, said.content))
        if left != said.content and faults_of(said.type, msgspec.json.decode(left)):
            detail = f"what the tenant's redaction rules leave of this thought is no {said.type}"
            return Verdict(422, Refused(reason="not_redactable", detail=detail))
        session, writes = sessions_of(desk).get(said.session_id), list[Write]()
        task = tasks_of(desk).get(task_key(said.session_id, said.task_id))
        problem = _why_not(desk, voice, said, session, task)
        if problem is not None:
            return problem
        if session is None:
            begun = Beginning(said.session_id, said.task_id, "")
            session, writes = _open(desk, voice, begun, None, proof_grade=0)
        if task is None:
            writes += _open_task(desk, voice, session, said.task_id)
        row = _chained(desk, voice, said._replace(content=left), session)
        writes.append(Write("thought_records", row))
        writes += _close(desk, said, session) if said.type == "reflection" else []
        session |= {"records": session["records"] + 1, "last_chain_hash": row["chain_hash"]}
        changed = {name: session[name] for name in ("records", "last_chain_hash", "open_tasks")}
        writes.append(Write("thought_sessions", changed, where_of(session)))
        records[said.record_id] = row  # for others of this batch
        return Verdict(201, recorded(row), [], writes)

    wants = wants_of(said.session_id, voice)
    wants.row("thought_tasks", task_key(said.session_id, said.task_id))
    wants.row("thought_records", said.record_id)
    size = 1_024 + len(said.content)
    return Act(voice.who, now_ns, decide, wants, size, speaks_as=voice.name)


def _is_among(row: Row, words: Iterator[bytes]) -> bool:
    """Whether these are its words, of which a hash may be all that is left."""
    if row.get("shredded_by") is None:
        return bytes(row["content"]) in words
    first = row["content_hash"]
    return any(ledger.text_of(ledger.content_hash(_thought(row, one))) == first for one in words)


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


def _intended(row: Row, words: Iterator[str]) -> bool:
    """Of an intent that was shredded the row holds no hash: who began it so is not told otherwise."""
    return row.get("intent_shredded_by") is not None or row["intent"] in words


def _not_among() -> Verdict:
    return Verdict(403, Refused(reason="not_yours", detail=NOT_AMONG))


def _why_not(desk: Desk, voice: Voice, said: Said, session: Row | None, task: Row | None) -> Verdict | None:
    if session is None and not voice.is_among(desk, said.session_id):
        return _not_among()
    if session is not None and session["sealed_ns"] is not None:
        return Verdict(409, Refused(reason="sealed", detail=SEALED))
    if session is not None and session["ended_ns"] is not None:
        return Verdict(409, Refused(reason="ended", detail=ENDED))
    if session is not None and session["records"] >= RECORDS:
        detail = f"a session has at most {RECORDS:,} records; seal it and start another one that names it"
        return Verdict(409, Refused(reason="session_full", detail=detail))
    if task is not None and task["state"] == "closed":
        detail = "a reflection has closed this task; record what follows under another task"
        return Verdict(409, Refused(reason="task_closed", detail=detail))
    if session is not None and session["proof_grade"] and not _may_prove(desk, voice, session):
        detail = (
            "a proof-grade session takes records of whoever began it, of agents that speak in the session of "
            "that name, of an operator or an admin"
        )
        return Verdict(403, Refused(reason="not_yours", detail=detail))
    parties = [row for row in (task, session) if row is not None]
    if said.type == "reflection" and task is not None and not any(map(voice.owns, parties)):
        detail = "a task is closed by whoever opened it or began its session, an operator or an admin"
        return Verdict(403, Refused(reason="not_yours", detail=detail))
    return None


def _may_prove(desk: Desk, voice: Voice, session: Row) -> bool:
    """Others could keep it from being sealed for ever."""
    is_mesh = session["session_id"] in desk.memory.sessions
    return voice.owns(session) or (is_mesh and voice.is_among(desk, session["session_id"]))


def _recorded_before(row: Row, voice: Voice, said: Said, same_words: bool, now_ns: int) -> Verdict:
    asked = (voice.name, said.task_id, said.type, _listed(said.references))
    first = (row["author"], row["task_id"], row["type"], row["refs"])
    place = not said.names_session or said.session_id == row["session_id"]
    if place and same_words and asked == first and row["event_ids"] == _listed(said.audit_event_ids):
        return Verdict(201, recorded(row))
    who = voice.who
    event = notice(
        who.tenant_id,
        "security_violation",
        "record_id was sent again with other content",
        now_ns,
        who,
        {"reason": "id_conflict", "content_digest": "sha256:" + sha256(said.content).hexdigest()},
    )
    detail = "this record_id already names a record with other content; a correction is a new record"
    return Verdict(409, Refused(reason="id_conflict", detail=detail), [event])


def _open(
    desk: Desk, voice: Voice, asked: Beginning, previous: Row | None, proof_grade: int
) -> tuple[Row, list[Write]]:
    """No session begins silently: its genesis is an audit event (R279)."""
    caller, started_at = voice.name, from_ns(desk.now_ns)
    genesis = ledger.text_of(ledger.genesis(caller, asked.session_id, started_at))
    embedded = None if previous is None else previous["last_chain_hash"]
    detail = {
        "session_id": asked.session_id,
        "genesis": genesis,
        "caller": caller,
        "started_at": started_at,
        "task_id": asked.task_id,
        "opens_task": bool(proof_grade) and asked.names_task,
        "proof_grade": bool(proof_grade),
        "intent_hash": "sha256:" + sha256(asked.intent.encode()).hexdigest(),
        "predecessor_session_id": asked.predecessor_session_id,
        "predecessor_chain_hash": embedded,
    }
    summary = f"thought session {asked.session_id} started by {caller}"
    draft = told(desk, voice.who, asked.session_id, "thought_session_started", summary, detail)
    draft.attributes = typed.attributes(desk.memory)
    number = desk.append(draft)
    mesh = desk.memory.sessions.get(asked.session_id)
    row: Row = {
        "tenant_id": voice.who.tenant_id,
        "session_id": asked.session_id,
        "session_no": 0 if mesh is None else mesh.session_no,
        "caller": caller,
        "opened_by": voice.who.entity_id,
        "intent": asked.intent,
        "task_id": asked.task_id,
        "started_at": started_at,
        "genesis": genesis,
        "sequence_number": number,
        "predecessor_session_id": asked.predecessor_session_id,
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
    sessions_of(desk)[asked.session_id] = row
    return row, [Write("thought_sessions", dict(row))]


def _open_task(desk: Desk, voice: Voice, session: Row, task_id: str) -> list[Write]:
    key = task_key(session["session_id"], task_id)
    row: Row = {
        "tenant_id": session["tenant_id"],
        "task_key": key,
        "session_id": session["session_id"],
        "task_id": task_id,
        "proof_grade": session["proof_grade"],
        "state": "open",
        "opened_by": voice.name,
        "opened_ns": desk.now_ns,
        "closed_by": None,
        "closed_ns": None,
    }
    tasks_of(desk)[key] = row
    session["open_tasks"] += 1
    grown = Write("thought_sessions", {"open_tasks": session["open_tasks"]}, where_of(session))
    return [Write("thought_tasks", dict(row)), grown]


def _close(desk: Desk, said: Said, session: Row) -> list[Write]:
    key = task_key(said.session_id, said.task_id)
    changed = {"state": "closed", "closed_by": said.record_id, "closed_ns": desk.now_ns}
    tasks_of(desk)[key] |= changed
    session["open_tasks"] -= 1
    return [Write("thought_tasks", changed, {"tenant_id": session["tenant_id"], "task_key": key})]


class _Named(msgspec.Struct):
    audit_event_id: str


def _chained(desk: Desk, voice: Voice, said: Said, session: Row) -> Row:
    """The record with its hashes, and the event that tells of it."""
    first = session["records"] == 0
    thought = Thought(
        record_id=said.record_id,
        session_id=said.session_id,
        task_id=said.task_id,
        index=session["records"],
        type=said.type,
        content=said.content,
        author=voice.name,
        created_at=from_ns(desk.now_ns),
        references=_listed(said.references).encode(),
        audit_event_ids=_listed(said.audit_event_ids).encode(),
        predecessor_chain_hash=session["predecessor_chain_hash"] if first else None,
    )
    hashes = ledger.link(thought, session["last_chain_hash"])
    summary = f"{said.type} {said.record_id} by {voice.name} in {said.session_id}"
    draft = told(desk, voice.who, said.session_id, "thought_recorded", summary, _about(thought, hashes, said))
    draft.attributes = typed.attributes(desk.memory)
    number = desk.append(draft)
    event_id = msgspec.json.decode(desk.changes.audit[-1].record, type=_Named).audit_event_id
    return row_of(session["tenant_id"], thought, hashes, number, event_id)


def _about(thought: Thought, hashes: Hashes, said: Said) -> dict[str, Any]:
    """What the record says of a thought: all but its words."""
    return {
        "record_id": thought.record_id,
        "session_id": thought.session_id,
        "task_id": thought.task_id,
        "index": thought.index,
        "type": thought.type,
        "author": thought.author,
        "content_hash": hashes.content_hash,
        "chain_hash": hashes.chain_hash,
        "parent_chain_hash": hashes.parent_chain_hash,
        "references": list(said.references),
        "audit_event_ids": list(said.audit_event_ids),
    }


def recorded(row: Row) -> Row:
    names = (
        "record_id", "session_id", "task_id", "type", "content_hash", "chain_hash", "parent_chain_hash",
        "created_at", "audit_event_id",
    )  # fmt: skip
    return {name: row[name] for name in names} | {"index": row["record_index"]}


def _listed(ids: tuple[str, ...]) -> str:
    return jcs(list(ids)).decode()
