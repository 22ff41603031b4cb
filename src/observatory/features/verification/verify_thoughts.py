"""What a database or an export holds of thoughts, held against the events that tell of them.

The judging is `ledger.verify_trail`'s business; here rows and lines are brought to it, those too that no
event tells of.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from observatory.features.verification.verify_log_root import LogBreak
from observatory.features.verification.verify_rows import THOUGHT, Thinking, Trail, open_trail
from observatory.ledger.export import Entry
from observatory.ledger.verify_trail import EVENTS, Stored, ThoughtTrail

PAGE = 250
END = (1 << 40) - 1
_event = msgspec.json.Decoder(dict[str, Any]).decode


def check_rows(url: str, tenant_id: str, numbers: Sequence[int], last: int) -> bool | LogBreak | None:
    """`numbers`: every event up to the `last` that tells of thoughts."""
    trail, checked = open_trail(url), ThoughtTrail(is_database=True)
    try:
        for events, low, high in _pages(numbers):
            found = _up_to(last, trail, tenant_id, trail.thinking(tenant_id, events, low, high))
            broken = _first_broken(checked, events, found)
            if broken is not None:
                return broken
    finally:
        trail.close()
    return _ended(checked, last)


def _pages(numbers: Sequence[int]) -> Iterator[tuple[list[int], int, int]]:
    """Events in pages, and the span of numbers up to the next page: rows without an event are seen, too."""
    low = 0
    for start in range(0, max(len(numbers), 1), PAGE):
        events = list(numbers[start : start + PAGE])
        following = start + PAGE
        high = numbers[following] - 1 if following < len(numbers) else END
        yield events, low, high
        low = high + 1


def _up_to(last: int, trail: Trail, tenant_id: str, found: Thinking) -> Thinking:
    """Without what a running gateway recorded meanwhile; a row past the head stays, and is foreign."""
    later = [number for number in (*found.sessions, *found.thoughts) if number > last]
    if not later:
        return found
    head = next(head.sequence_number for head in trail.heads() if head.tenant_id == tenant_id)
    kept = [
        {number: row for number, row in rows.items() if number <= last or number > head}
        for rows in (found.sessions, found.thoughts)
    ]
    return Thinking(found.records, *kept)


def _first_broken(checked: ThoughtTrail, events: Sequence[int], found: Thinking) -> LogBreak | None:
    foreign = (found.sessions.keys() | found.thoughts.keys()) - set(events)
    for number in sorted({*events, *foreign}):
        problem = f"A thought is stored under event {number}, which does not tell of it."
        if number not in foreign:
            event = _event(found.records[number])
            problem = _problem(checked, number, event, found) or ""
        if problem:
            return LogBreak(number, "thoughts", problem)
    return None


def _problem(checked: ThoughtTrail, number: int, event: dict[str, Any], found: Thinking) -> str | None:
    stored, kind = None, event["body"]["event_type"]
    if kind == "thought_session_started" and number in found.sessions:
        words, shredded_by = found.sessions[number]
        stored = Stored(words, shredded_by=shredded_by)
    elif kind == "thought_recorded" and number in found.thoughts:
        row = dict(zip(THOUGHT, found.thoughts[number], strict=True))
        if row["audit_event_id"] != event["audit_event_id"] or not isinstance(row["content"], bytes):
            return f"What is stored of the thought of event {number} is not what the event tells."
        stored = _stored(row)
    is_alone = stored is None and (number in found.sessions or number in found.thoughts)
    if is_alone:
        return f"A thought is stored under event {number}, which does not tell of it."
    return checked.feed(number, event, stored)


def _stored(row: dict[str, Any]) -> Stored:
    members = {name: row[name] for name in ("session_id", "record_id", "task_id", "type", "author")}
    members |= {"created_at": row["created_at"], "predecessor_chain_hash": row["predecessor_chain_hash"]}
    members |= {
        "index": row["record_index"],
        "references": _listed(row["refs"]),
        "audit_event_ids": _listed(row["event_ids"]),
    }
    hashes = (row["content_hash"], row["parent_chain_hash"], row["chain_hash"])
    return Stored(row["content"], members, hashes, row["shredded_by"])


def _listed(text: object) -> object:
    """A list of plain texts, in its one spelling; else what it is, which no event tells."""
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return text
    is_plain = json.dumps(found, ensure_ascii=False, separators=(",", ":")) == text
    return found if is_plain else text


def _ended(checked: ThoughtTrail, last: int) -> bool | LogBreak | None:
    missing = checked.finish(last)
    if missing is not None:
        return LogBreak(missing[0], "thoughts", missing[1])
    return None if checked.left_out else True


class ExportedThoughts:
    """The same of an export's lines, which carry the words and nothing else."""

    def __init__(self) -> None:
        self._checked = ThoughtTrail(is_database=False)

    def first_broken(self, page: Sequence[Entry]) -> LogBreak | None:
        for entry in page:
            if b'"event_type":"thought' not in entry.record:
                continue
            event = _event(entry.record)
            if event["body"]["event_type"] not in EVENTS:
                continue
            problem = self._checked.feed(entry.sequence_number, event, Stored(entry.words))
            if problem is not None:
                return LogBreak(entry.sequence_number, "thoughts", problem)
        return None

    def ended(self, last: int) -> bool | LogBreak | None:
        return _ended(self._checked, last)
