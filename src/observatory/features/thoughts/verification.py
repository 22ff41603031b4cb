"""Verifies that a session's thoughts are what was recorded: recomputes them and compares with their events.

Someone who can write the database could rewrite the whole chain; so each record is compared with its audit
event, which is chained and logged itself, the session's row with its start, seal and end, and their number
with the number of the session's audit events: a truncated session has too many events. Read without the lock
and in pages: records are never removed, and a command that uses the result checks under the lock whether the
session has changed.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, NamedTuple, Protocol

import msgspec

from observatory.features.thoughts.types_rows import StoredThought, Thoughts
from observatory.ledger import thoughts as ledger
from observatory.ledger.canonical import jcs
from observatory.ledger.merkle import root
from observatory.ledger.thoughts import ThoughtChain
from observatory.pipeline.ports import Archive, Directory, EventFilter
from observatory.protocol.clock import from_ns

NUMBERS = ("sequence_number", "proof_grade", "records", "open_tasks")
PAGE = 200
MAX_TASKS = 5
SHREDDED = "thoughts_shredded"
TRIES = 3  # a session is sealed once and ended once
Row = dict[str, Any]


class ThoughtVerification(NamedTuple):
    """The result of verifying a session against its row as read."""

    records: int
    first_broken_index: int | None
    last_chain_hash: str
    leaves: list[bytes]
    last_type: str | None = None
    open_tasks: tuple[str, ...] = ()  # a few of them, for a message
    shredded: int = 0  # records whose content was shredded by order

    @property
    def is_valid(self) -> bool:
        return self.first_broken_index is None


class _Event(msgspec.Struct):
    audit_event_id: str = ""
    timestamp: str = ""
    body: dict[str, Any] = {}
    attributes: dict[str, Any] = {}

    def says(self, event_type: str, expected: Row) -> bool:
        """Whether it has this type and exactly these members; a missing member is not null."""
        present = {name: self.body.get(name, self) for name in expected}
        return self.body.get("event_type") == event_type and present == expected


NOTHING = _Event()


class ThoughtTrailReads(Thoughts, Archive, Directory, Protocol):
    """The store reads that verification needs."""


async def verify_session_thoughts(
    store: ThoughtTrailReads, tenant_id: str, session: Row
) -> ThoughtVerification:
    """Walk the records that the session's row counts; stops at the first broken or missing one.

    Faults past the last record are reported at the index `records`: a seal or an end that differs from its
    event, and events of this session without a row.
    """
    for _ in range(TRIES):
        seen = await _walked(store, tenant_id, session)
        if seen.is_valid and not await _is_all(store, tenant_id, session):
            now = await store.thought_session(tenant_id, session["session_id"])
            if now and now["records"] != session["records"]:
                break  # others append meanwhile: the caller finds that the session has changed
            if now and _ending(now) != _ending(session):
                session = now
                continue
            seen = seen._replace(first_broken_index=session["records"])
        break
    return seen


def _ending(session: Row) -> tuple[Any, ...]:
    return session["sealed_ns"], session["ended_ns"]


async def _walked(store: ThoughtTrailReads, tenant_id: str, session: Row) -> ThoughtVerification:
    count, last_type = session["records"], None
    walk = ThoughtChain(session["session_id"], session["genesis"], session["predecessor_chain_hash"])
    orders, shredded = _Orders(store, tenant_id, session["session_id"]), 0
    start_event = await _start_event(store, tenant_id, session, orders)
    if start_event is None:
        return ThoughtVerification(count, 0, session["last_chain_hash"], [])
    tasks = _Tasks([session["task_id"]] if start_event.body.get("opens_task") else [])
    while len(walk.leaves) < count:
        start = len(walk.leaves)
        page = await store.thoughts(tenant_id, session["session_id"], start, min(PAGE, count - start))
        order_numbers = {one.shredded_by for one in page if one.shredded_by is not None}
        await orders.read(order_numbers)
        if not page or not all(_is_valid(one, walk, tasks, orders) for one in page):
            return ThoughtVerification(count, len(walk.leaves), walk.last_chain_hash, walk.leaves)
        last_type = page[-1].thought.type
        shredded += sum(one.shredded_by is not None for one in page)
    broken, seal = None, session["root"]
    if walk.last_chain_hash != session["last_chain_hash"]:
        broken = max(0, count - 1)
    elif seal not in (None, ledger.text_of(root(walk.leaves))) or session["open_tasks"] != len(tasks.open):
        broken = count
    named = tuple(sorted(tasks.open)[:MAX_TASKS])
    return ThoughtVerification(count, broken, walk.last_chain_hash, walk.leaves, last_type, named, shredded)


class _Orders:
    """The shred orders of a session, by their event numbers."""

    def __init__(self, store: Archive, tenant_id: str, session_id: str) -> None:
        self._store, self._tenant_id, self._session_id = store, tenant_id, session_id
        self._read: dict[Any, _Event] = {}

    async def read(self, numbers: set[int]) -> None:
        for number in numbers - self._read.keys():
            self._read[number] = await _event_of(self._store, self._tenant_id, number)

    def name(self, number: Any, index: int | None) -> bool:
        """Whether that event orders this record's content shredded; None: the intent."""
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
    """The open tasks, derived from the records alone."""

    def __init__(self, names: list[str]) -> None:
        self.open, self._closed = set(names), set[str]()

    def accepts(self, task_id: str, kind: str) -> bool:
        """False for a record under a task that a reflection had closed."""
        if task_id in self._closed:
            return False
        self.open.add(task_id)
        if kind == "reflection":
            self.open.remove(task_id)
            self._closed.add(task_id)
        return True


def _is_valid(one: StoredThought, walk: ThoughtChain, tasks: _Tasks, orders: _Orders) -> bool:
    thought, is_gone = one.thought, one.shredded_by is not None
    return (
        _matches_event(one)
        and walk.broken is None
        and tasks.accepts(thought.task_id, thought.type)
        and (not is_gone or orders.name(one.shredded_by, thought.index))
        and walk.step(thought, one.hashes, is_gone)
    )


async def _start_event(store: Archive, tenant_id: str, session: Row, orders: _Orders) -> _Event | None:
    """The event of its start; None when the row differs from it."""
    number, intent = session["sequence_number"], session["intent"]
    try:
        genesis = ledger.genesis(session["caller"], session["session_id"], session["started_at"])
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
    expected = {name: session[name] for name in same}
    expected |= {"proof_grade": bool(session["proof_grade"]), "intent_hash": intent_hash}
    ordered_by = session["intent_shredded_by"]
    if ordered_by is not None:
        await orders.read({ordered_by})
        if intent or not orders.name(ordered_by, None):
            return None
        del expected["intent_hash"]
    matches = (
        event.says("thought_session_started", expected)
        and event.attributes.get("av.sender.entity_id") == session["opened_by"]
        and session["genesis"] == ledger.text_of(genesis)
    )
    return event if matches else None


async def _is_all(store: ThoughtTrailReads, tenant_id: str, session: Row) -> bool:
    """Whether the audit events are exactly the start, each record, the seal and the end."""
    trail = await store.events_of_session(tenant_id, session["session_id"])
    last, count = [_read(record) for record in trail.last], 1 + session["records"]
    here = {"session_id": session["session_id"], "root": session["root"]}
    if session["ended_ns"] is not None:
        members = here | {"records": session["records"]}
        count += 1
        if not last or not _is_event(last.pop(0), "thought_session_ended", members, session["ended_ns"]):
            return False
    if session["sealed_ns"] is not None:
        members = here | {name: session[name] for name in ("genesis", "last_chain_hash")}
        members |= {"n_records": session["records"]}
        count += 1
        if not last or not _is_event(last.pop(0), "thought_session_sealed", members, session["sealed_ns"]):
            return False
        if session["verified_records"] != session["records"] - 1:
            return False
    elif session["root"] is not None or not await _was_verified(store, tenant_id, session):
        return False
    return trail.events == int(count)


async def _was_verified(store: Archive, tenant_id: str, session: Row) -> bool:
    """The row's verification must match its event: else a session could be sealed without one."""
    if session["verified_records"] is None:
        return session["verified_by"] is None
    event = await _event_of(store, tenant_id, session["verified_by"])
    expected = {"session_id": session["session_id"], "records": session["verified_records"], "valid": True}
    return event.says("thought_chain_verified", expected)


def _is_event(event: _Event, event_type: str, expected: Row, moment: Any) -> bool:
    same_time = isinstance(moment, int) and event.timestamp == from_ns(moment)
    return same_time and event.says(event_type, expected)


def _matches_event(one: StoredThought) -> bool:
    """Whether the event of its number matches this record in everything but its content."""
    event = NOTHING if one.event is None else _read(one.event)
    thought, hashes = one.thought, one.hashes
    same = ("record_id", "session_id", "task_id", "index", "type", "author")
    expected = {name: getattr(thought, name) for name in same}
    expected |= {name: getattr(hashes, name) for name in ("content_hash", "chain_hash", "parent_chain_hash")}
    try:
        lists = [jcs(event.body.get(name)) for name in ("references", "audit_event_ids")]
    except ValueError:
        return False
    return (
        event.says("thought_recorded", expected)
        and (event.audit_event_id, event.timestamp) == (one.audit_event_id, thought.created_at)
        and lists == [thought.references, thought.audit_event_ids]
    )


def _read(record: bytes) -> _Event:
    try:
        return msgspec.json.decode(record, type=_Event)
    except (msgspec.MsgspecError, ValueError, RecursionError):  # another shape is no thought event
        return NOTHING
