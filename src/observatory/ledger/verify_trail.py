"""Checks every thought of a trail against the events that record it: content, hashes, links and seals.

Part of the verifier: imports nothing of this project except other verifier modules. It processes the trail's
events in order and keeps, of each open session, its last hash and the edge of its tree. A record is rebuilt
from what is stored and must hash to what its event states; if its content was shredded, an event that ordered
it must follow. Sentences name an event by its number only.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from observatory.ledger.verify_canonical import canonical_text
from observatory.ledger.verify_log import TreeSpan
from observatory.ledger.verify_thoughts import StatedThought, check_record, genesis_of, text_of

EVENTS: Final = frozenset(
    {"thought_session_started", "thought_recorded", "thought_session_sealed", "thoughts_shredded"}
)
_MEMBERS: Final = (
    "record_id", "task_id", "index", "type", "author", "references", "audit_event_ids",
)  # fmt: skip


class StoredContent(NamedTuple):
    """The stored content of a thought or of a session's start (empty once shredded) and, for a database, the
    record's other members and hashes as stored."""

    words: bytes | None
    members: Mapping[str, Any] | None = None
    hashes: tuple[str, str, str] | None = None  # content, parent, chain
    shredded_by: int | None = None


class _Open:
    """The state of a session up to the last event read."""

    def __init__(self, genesis: bytes, embedded: object) -> None:
        self.last, self.embedded = genesis, embedded
        self.tree = TreeSpan()


class ThoughtTrail:
    """Checks one tenant's events in order, from the first one on."""

    def __init__(self, is_database: bool) -> None:
        self._is_database = is_database
        self._sessions: dict[str, _Open | None] = {}
        # Shredded records → the event that must order it, where the row names one. Index None: a session's
        # intent.
        self._bare: dict[tuple[str, int | None], tuple[int, int | None]] = {}
        self.thoughts = 0
        self.left_out = 0  # sessions whose content is not in the export at all

    def feed(self, number: int, event: Mapping[str, Any], stored: StoredContent | None) -> str | None:
        """None, or a sentence that names the failure; `stored` is None where nothing is stored."""
        try:
            return self._check(number, event, event["body"], stored)
        except (KeyError, TypeError, ValueError, AttributeError):
            return f"Event {number} does not have the members of a thought event."

    def finish(self, last: int) -> tuple[int, str] | None:
        """After the event `last`: content that is missing without an event that ordered its shredding."""
        for number, ordered_by in sorted(self._bare.values(), key=lambda one: one[0]):
            if isinstance(ordered_by, int) and ordered_by > last:
                continue  # shredded since by a running gateway
            return (
                number,
                f"The content recorded by event {number} is missing, and no event ordered its shredding.",
            )
        return None

    def _check(
        self, number: int, event: Mapping[str, Any], body: Mapping[str, Any], stored: StoredContent | None
    ) -> str | None:
        session_id = body["session_id"]
        match body["event_type"]:
            case "thought_session_started":
                return self._begin(number, body, stored)
            case "thought_recorded":
                return self._record(number, event, stored)
            case "thought_session_sealed":
                session = self._sessions.pop(session_id, None)
                self._sessions[session_id] = None
                return None if session is None else _sealed(number, body, session)
            case "thoughts_shredded":
                for place in (*body["records"], *([None] if body["intent"] else [])):
                    bare = self._bare.pop((session_id, place), None)
                    if bare is None and self._is_database:
                        return f"Event {number} orders the shredding of content that still exists."
                    if bare is not None and bare[1] not in (None, number):
                        return (
                            f"The content recorded by event {bare[0]} was shredded by order of another event."
                        )
        return None

    def _begin(self, number: int, body: Mapping[str, Any], stored: StoredContent | None) -> str | None:
        session_id, genesis = body["session_id"], body["genesis"]
        computed = genesis_of(body["caller"], session_id, body["started_at"])
        if genesis != text_of(computed):
            return f"The genesis of event {number} is not that of its session."
        self._sessions[session_id] = None
        if stored is None or stored.words is None:
            self.left_out += 1
            sentence = f"The session recorded by event {number} is not in the archive."
            return sentence if self._is_database else None
        self._sessions[session_id] = _Open(computed, body["predecessor_chain_hash"])
        if body["intent_hash"] != text_of(sha256(stored.words).digest()):
            if stored.words:
                return f"The intent recorded by event {number} is not the stored one."
            self._bare[session_id, None] = (number, stored.shredded_by)
        return None

    def _record(self, number: int, event: Mapping[str, Any], stored: StoredContent | None) -> str | None:
        body = event["body"]
        session, place = self._sessions[body["session_id"]], body["index"]
        if session is None:
            return None  # omitted together with the start of its session
        if stored is None or stored.words is None:
            return f"The thought recorded by event {number} is not in the archive."
        hashes = (body["content_hash"], body["parent_chain_hash"], body["chain_hash"])
        if stored.hashes is not None and stored.hashes != hashes:
            return f"The stored hashes of the thought of event {number} differ from those in the event."
        is_bare = not stored.words
        if is_bare:
            self._bare[body["session_id"], place] = (number, stored.shredded_by)
        elif stored.shredded_by is not None:
            return f"The content recorded by event {number} exists, but is marked as shredded."
        members = {name: body[name] for name in _MEMBERS} | {
            "session_id": body["session_id"],
            "created_at": event["timestamp"],
            "predecessor_chain_hash": session.embedded if place == 0 else None,
        }
        if stored.members is not None and stored.members != members:
            return f"The stored members of the thought of event {number} differ from the event."
        raw = _text(members, stored.words)
        if raw is None:
            return f"The content recorded by event {number} is not in RFC 8785 form."
        stated = StatedThought(raw, *hashes, number if is_bare else None)
        checked = check_record(body["session_id"], session.tree.end, session.last, stated)
        if isinstance(checked, str):
            return f"The stored content is not the one recorded by event {number}: {checked}"
        session.last = checked.chain_hash
        session.tree.extend([checked.leaf])
        self.thoughts += 1
        return None


def _text(members: Mapping[str, Any], words: bytes) -> bytes | None:
    """The hashed text; None if the content is not in canonical form."""
    if not words:
        return canonical_text(dict(members)).encode()
    try:
        content = msgspec.json.decode(words)
        if canonical_text(content).encode() != words:
            return None
        return canonical_text({**members, "content": content}).encode()
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return None


def _sealed(number: int, body: Mapping[str, Any], session: _Open) -> str | None:
    root = session.tree.root()
    seal = (body["n_records"], body["last_chain_hash"], body["root"])
    if root is None or seal != (session.tree.end, text_of(session.last), text_of(root)):
        return f"The seal of event {number} does not match the thoughts before it."
    return None
