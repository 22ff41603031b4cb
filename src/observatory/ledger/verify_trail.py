"""Every thought of a trail against the events that record it: words, hashes, links and seals.

Of the verifier's family: imports nothing of ours but that family. It goes over the trail's events in order
and keeps of each open session its last hash and the edge of its tree. A record is made again out of what is
stored and must hash to what its event says; where its words were shredded, an event that ordered it must
follow. Sentences name an event by its number only.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from observatory.ledger.verify_log import Span
from observatory.ledger.verify_thoughts import Stated, check_record, genesis_of, text_of
from observatory.ledger.verify_words import written

EVENTS: Final = frozenset(
    {"thought_session_started", "thought_recorded", "thought_session_sealed", "thoughts_shredded"}
)
_MEMBERS: Final = (
    "record_id", "task_id", "index", "type", "author", "references", "audit_event_ids",
)  # fmt: skip


class Stored(NamedTuple):
    """What is stored of a thought, or of a session's start: its words (nothing once they were shredded) and,
    of a database, the record's other members and hashes in place of those the event tells."""

    words: bytes | None
    members: Mapping[str, Any] | None = None
    hashes: tuple[str, str, str] | None = None  # content, parent, chain
    shredded_by: int | None = None


class _Open:
    """A session as far as it was read."""

    def __init__(self, genesis: bytes, embedded: object) -> None:
        self.last, self.embedded = genesis, embedded
        self.tree = Span()


class ThoughtTrail:
    """One run over one tenant's events in order, from the first one on."""

    def __init__(self, is_database: bool) -> None:
        self._is_database = is_database
        self._sessions: dict[str, _Open | None] = {}
        # Without words: the event that must order it, where the row names one. None is a session's intent.
        self._bare: dict[tuple[str, int | None], tuple[int, int | None]] = {}
        self.thoughts = 0
        self.left_out = 0  # sessions whose words are not in the export at all

    def feed(self, number: int, event: Mapping[str, Any], stored: Stored | None) -> str | None:
        """The sentence that names what does not hold; `stored` is None where nothing is there."""
        try:
            return self._fed(number, event, event["body"], stored)
        except (KeyError, TypeError, ValueError, AttributeError):
            return f"Event {number} has not the members of an event of thoughts."

    def finish(self, last: int) -> tuple[int, str] | None:
        """After the event `last`: words that are missing, and no event up to there ordered it."""
        for number, ordered_by in sorted(self._bare.values(), key=lambda one: one[0]):
            if isinstance(ordered_by, int) and ordered_by > last:
                continue  # shredded since by a running gateway
            return number, f"The words that event {number} tells of are gone, and no event ordered it."
        return None

    def _fed(
        self, number: int, event: Mapping[str, Any], body: Mapping[str, Any], stored: Stored | None
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
                        return f"Event {number} orders words to go, and they are still there."
                    if bare is not None and bare[1] not in (None, number):
                        return f"The words that event {bare[0]} tells of were ordered to go by another event."
        return None

    def _begin(self, number: int, body: Mapping[str, Any], stored: Stored | None) -> str | None:
        session_id, genesis = body["session_id"], body["genesis"]
        made = genesis_of(body["caller"], session_id, body["started_at"])
        if genesis != text_of(made):
            return f"The genesis of event {number} is not that of its session."
        self._sessions[session_id] = None
        if stored is None or stored.words is None:
            self.left_out += 1
            told = f"The session that event {number} tells of is not in the archive."
            return told if self._is_database else None
        self._sessions[session_id] = _Open(made, body["predecessor_chain_hash"])
        if body["intent_hash"] != text_of(sha256(stored.words).digest()):
            if stored.words:
                return f"The intent that event {number} tells of is not the one that is stored."
            self._bare[session_id, None] = (number, stored.shredded_by)
        return None

    def _record(self, number: int, event: Mapping[str, Any], stored: Stored | None) -> str | None:
        body = event["body"]
        session, place = self._sessions[body["session_id"]], body["index"]
        if session is None:
            return None  # left out with the start of its session
        if stored is None or stored.words is None:
            return f"The thought that event {number} tells of is not in the archive."
        told = (body["content_hash"], body["parent_chain_hash"], body["chain_hash"])
        if stored.hashes is not None and stored.hashes != told:
            return f"The hashes stored of the thought of event {number} are not those the event tells."
        is_bare = not stored.words
        if is_bare:
            self._bare[body["session_id"], place] = (number, stored.shredded_by)
        elif stored.shredded_by is not None:
            return f"The words that event {number} tells of are there, and are marked as shredded."
        members = {name: body[name] for name in _MEMBERS} | {
            "session_id": body["session_id"],
            "created_at": event["timestamp"],
            "predecessor_chain_hash": session.embedded if place == 0 else None,
        }
        if stored.members is not None and stored.members != members:
            return f"What is stored of the thought of event {number} is not what the event tells."
        raw = _text(members, stored.words)
        if raw is None:
            return f"The words that event {number} tells of are not in their RFC 8785 form."
        stated = Stated(raw, *told, number if is_bare else None)
        found = check_record(body["session_id"], session.tree.end, session.last, stated)
        if isinstance(found, str):
            return f"The words stored are not those event {number} tells of: {found}"
        session.last = found.chain_hash
        session.tree.extend([found.leaf])
        self.thoughts += 1
        return None


def _text(members: Mapping[str, Any], words: bytes) -> bytes | None:
    """The hashed text; None where the words themselves are another spelling of their value."""
    if not words:
        return written(dict(members)).encode()
    try:
        content = msgspec.json.decode(words)
        if written(content).encode() != words:
            return None
        return written({**members, "content": content}).encode()
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return None


def _sealed(number: int, body: Mapping[str, Any], session: _Open) -> str | None:
    root = session.tree.root()
    told = (body["n_records"], body["last_chain_hash"], body["root"])
    if root is None or told != (session.tree.end, text_of(session.last), text_of(root)):
        return f"The seal of event {number} is not that of the thoughts before it."
    return None
