"""Whether a session's thoughts are just what was written: read, recomputed, held against their events.

The chain alone can be rewritten whole by who may write the database; so each record is held against the audit
event that told of it, which is chained and logged by itself, the session's row against its start, seal and
end, and all of them against how many events the trail has of this session: what was cut off is missing there.
Read without the lock and in pages: what is recorded stays, and an act that goes by this looks under the lock
whether the session has moved on.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, NamedTuple, Protocol

import msgspec

from observatory.features.thoughts.types_rows import StoredThought, Thoughts
from observatory.ledger import thoughts as ledger
from observatory.ledger.canonical import jcs
from observatory.ledger.merkle import root
from observatory.ledger.thoughts import Walk
from observatory.pipeline.ports import Archive, Directory, EventFilter
from observatory.protocol.clock import from_ns

NUMBERS = ("sequence_number", "proof_grade", "records", "open_tasks")
PAGE = 200
TOLD = 5
SHREDDED = "thoughts_shredded"
TRIES = 3  # it is sealed once and ended once
Row = dict[str, Any]


class Examined(NamedTuple):
    """What was found of a session as its row stood then."""

    records: int
    first_broken_index: int | None
    last_chain_hash: str
    leaves: list[bytes]
    last_type: str | None = None
    open_tasks: tuple[str, ...] = ()  # a few of them, for a sentence
    shredded: int = 0  # records whose words are gone by an order

    @property
    def is_valid(self) -> bool:
        return self.first_broken_index is None


class _Event(msgspec.Struct):
    audit_event_id: str = ""
    timestamp: str = ""
    body: dict[str, Any] = {}
    attributes: dict[str, Any] = {}

    def says(self, event_type: str, said: Row) -> bool:
        """Whether it is of that type and says just this of it; what is missing says nothing, not null."""
        told = {name: self.body.get(name, self) for name in said}
        return self.body.get("event_type") == event_type and told == said


NOTHING = _Event()


class Trail(Thoughts, Archive, Directory, Protocol):
    """What is read here."""


async def examine(store: Trail, tenant_id: str, session: Row) -> Examined:
    """Walk the records its row tells of; stops at the first that is broken or not there.

    What is wrong past the last one is broken at the index `records`: a seal or an end that is not what was
    told, and events of this session that no row answers for.
    """
    for _ in range(TRIES):
        seen = await _walked(store, tenant_id, session)
        if seen.is_valid and not await _is_all(store, tenant_id, session):
            now = await store.thought_session(tenant_id, session["session_id"])
            if now and now["records"] != session["records"]:
                break  # others write into it meanwhile: who goes by this finds that it has moved on
            if now and _ending(now) != _ending(session):
                session = now
                continue
            seen = seen._replace(first_broken_index=session["records"])
        break
    return seen


def _ending(session: Row) -> tuple[Any, ...]:
    return session["sealed_ns"], session["ended_ns"]


async def _walked(store: Trail, tenant_id: str, session: Row) -> Examined:
    count, last_type = session["records"], None
    walk = Walk(session["session_id"], session["genesis"], session["predecessor_chain_hash"])
    orders, shredded = _Orders(store, tenant_id, session["session_id"]), 0
    begun = await _beginning(store, tenant_id, session, orders)
    if begun is None:
        return Examined(count, 0, session["last_chain_hash"], [])
    tasks = _Tasks([session["task_id"]] if begun.body.get("opens_task") else [])
    while len(walk.leaves) < count:
        start = len(walk.leaves)
        page = await store.thoughts(tenant_id, session["session_id"], start, min(PAGE, count - start))
        gone = {one.shredded_by for one in page if one.shredded_by is not None}
        await orders.read(gone)
        if not page or not all(_holds(one, walk, tasks, orders) for one in page):
            return Examined(count, len(walk.leaves), walk.last_chain_hash, walk.leaves)
        last_type = page[-1].thought.type
        shredded += sum(one.shredded_by is not None for one in page)
    broken, seal = None, session["root"]
    if walk.last_chain_hash != session["last_chain_hash"]:
        broken = max(0, count - 1)
    elif seal not in (None, ledger.text_of(root(walk.leaves))) or session["open_tasks"] != len(tasks.open):
        broken = count
    named = tuple(sorted(tasks.open)[:TOLD])
    return Examined(count, broken, walk.last_chain_hash, walk.leaves, last_type, named, shredded)


class _Orders:
    """What was ordered to be shredded of a session, by the events that ordered it."""

    def __init__(self, store: Archive, tenant_id: str, session_id: str) -> None:
        self._store, self._tenant_id, self._session_id = store, tenant_id, session_id
        self._read: dict[Any, _Event] = {}

    async def read(self, numbers: set[int]) -> None:
        for number in numbers - self._read.keys():
            self._read[number] = await _event_of(self._store, self._tenant_id, number)

    def name(self, number: Any, index: int | None) -> bool:
        """Whether that event orders this record's words to go; None: those of the intent."""
        event = self._read.get(number, NOTHING)
        if not event.says(SHREDDED, {"session_id": self._session_id}):
            return False
        records = event.body.get("records")
        return event.body.get("intent") is True if index is None else index in (records or ())


async def _event_of(store: Archive, tenant_id: str, number: Any) -> _Event:
    if not isinstance(number, int):
        return NOTHING
    found = await store.events(tenant_id, EventFilter(after=number - 1, before=number + 1), 1, False)
    return _read(found[0].record) if found else NOTHING


class _Tasks:
    """Which tasks stand open, by the records alone."""

    def __init__(self, names: list[str]) -> None:
        self.open, self._closed = set(names), set[str]()

    def goes_on(self, task_id: str, kind: str) -> bool:
        """False for what was recorded under a task that a reflection had closed."""
        if task_id in self._closed:
            return False
        self.open.add(task_id)
        if kind == "reflection":
            self.open.remove(task_id)
            self._closed.add(task_id)
        return True


def _holds(one: StoredThought, walk: Walk, tasks: _Tasks, orders: _Orders) -> bool:
    thought, is_gone = one.thought, one.shredded_by is not None
    return (
        _is_told_so(one)
        and walk.broken is None
        and tasks.goes_on(thought.task_id, thought.type)
        and (not is_gone or orders.name(one.shredded_by, thought.index))
        and walk.step(thought, one.hashes, is_gone)
    )


async def _beginning(store: Archive, tenant_id: str, session: Row, orders: _Orders) -> _Event | None:
    """The event of its start; None when the row does not say what that one told."""
    number, intent = session["sequence_number"], session["intent"]
    try:
        made = ledger.genesis(session["caller"], session["session_id"], session["started_at"])
        intent_hash = "sha256:" + sha256(intent.encode()).hexdigest()
    except (ValueError, AttributeError):
        return None
    if not all(isinstance(session[name], int) for name in NUMBERS):
        return None
    event = await _event_of(store, tenant_id, number)
    same = (
        "session_id", "genesis", "caller", "started_at", "task_id", "predecessor_session_id",
        "predecessor_chain_hash",
    )  # fmt: skip
    said = {name: session[name] for name in same}
    said |= {"proof_grade": bool(session["proof_grade"]), "intent_hash": intent_hash}
    ordered_by = session["intent_shredded_by"]
    if ordered_by is not None:
        await orders.read({ordered_by})
        if intent or not orders.name(ordered_by, None):
            return None
        del said["intent_hash"]
    is_so = (
        event.says("thought_session_started", said)
        and event.attributes.get("av.sender.entity_id") == session["opened_by"]
        and session["genesis"] == ledger.text_of(made)
    )
    return event if is_so else None


async def _is_all(store: Trail, tenant_id: str, session: Row) -> bool:
    """The start, each record, the seal and the end: the trail has no more of this session, and no less."""
    told = await store.told_of(tenant_id, session["session_id"])
    last, expected = [_read(record) for record in told.last], 1 + session["records"]
    here = {"session_id": session["session_id"], "root": session["root"]}
    if session["ended_ns"] is not None:
        said = here | {"records": session["records"]}
        expected += 1
        if not last or not _was_told(last.pop(0), "thought_session_ended", said, session["ended_ns"]):
            return False
    if session["sealed_ns"] is not None:
        said = here | {name: session[name] for name in ("genesis", "last_chain_hash")}
        said |= {"n_records": session["records"]}
        expected += 1
        if not last or not _was_told(last.pop(0), "thought_session_sealed", said, session["sealed_ns"]):
            return False
        if session["verified_records"] != session["records"] - 1:
            return False
    elif session["root"] is not None or not await _was_verified(store, tenant_id, session):
        return False
    return told.events == int(expected)


async def _was_verified(store: Archive, tenant_id: str, session: Row) -> bool:
    """What counts as verified is what an event says was: else a seal could be had without."""
    if session["verified_records"] is None:
        return session["verified_by"] is None
    event = await _event_of(store, tenant_id, session["verified_by"])
    said = {"session_id": session["session_id"], "records": session["verified_records"], "valid": True}
    return event.says("thought_chain_verified", said)


def _was_told(event: _Event, event_type: str, said: Row, moment: Any) -> bool:
    is_so = isinstance(moment, int) and event.timestamp == from_ns(moment)
    return is_so and event.says(event_type, said)


def _is_told_so(one: StoredThought) -> bool:
    """Its number is that of the event which told of this very record, of all but its words."""
    event = NOTHING if one.event is None else _read(one.event)
    thought, hashes = one.thought, one.hashes
    same = ("record_id", "session_id", "task_id", "index", "type", "author")
    said = {name: getattr(thought, name) for name in same}
    said |= {name: getattr(hashes, name) for name in ("content_hash", "chain_hash", "parent_chain_hash")}
    try:
        lists = [jcs(event.body.get(name)) for name in ("references", "audit_event_ids")]
    except ValueError:
        return False
    return (
        event.says("thought_recorded", said)
        and (event.audit_event_id, event.timestamp) == (one.audit_event_id, thought.created_at)
        and lists == [thought.references, thought.audit_event_ids]
    )


def _read(record: bytes) -> _Event:
    try:
        return msgspec.json.decode(record, type=_Event)
    except (msgspec.MsgspecError, ValueError, RecursionError):  # what has another shape tells of no thought
        return NOTHING
