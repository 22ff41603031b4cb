"""Checks the thoughts in a database or an export against their audit events.

`ledger.verify_trail` does the judging; this module feeds it rows and lines, including rows without an event.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from observatory.cli.verify.log_root import LogBreak
from observatory.cli.verify.rows import THOUGHT, StoredThoughtRows, TrailReader, open_trail
from observatory.ledger.export import ExportEntry
from observatory.ledger.verify_trail import EVENTS, StoredContent, ThoughtTrail

PAGE = 250
END = (1 << 40) - 1
_event = msgspec.json.Decoder(dict[str, Any]).decode


def check_rows(url: str, tenant_id: str, numbers: Sequence[int], last: int) -> bool | LogBreak | None:
    """`numbers`: every thought event up to `last`."""
    trail, checked = open_trail(url), ThoughtTrail(is_database=True)
    try:
        for events, low, high in _pages(numbers):
            thinking = _up_to(last, trail, tenant_id, trail.thinking(tenant_id, events, low, high))
            broken = _first_broken(checked, events, thinking)
            if broken is not None:
                return broken
    finally:
        trail.close()
    return _ended(checked, last)


def _pages(numbers: Sequence[int]) -> Iterator[tuple[list[int], int, int]]:
    """Events in pages, with the span of numbers up to the next page: rows without an event are read too."""
    low = 0
    for start in range(0, max(len(numbers), 1), PAGE):
        events = list(numbers[start : start + PAGE])
        following = start + PAGE
        high = numbers[following] - 1 if following < len(numbers) else END
        yield events, low, high
        low = high + 1


def _up_to(last: int, trail: TrailReader, tenant_id: str, thinking: StoredThoughtRows) -> StoredThoughtRows:
    """Drops rows that a running gateway recorded meanwhile; a row past the head stays, as a foreign row."""
    later = [number for number in (*thinking.sessions, *thinking.thoughts) if number > last]
    if not later:
        return thinking
    head = next(head.sequence_number for head in trail.heads() if head.tenant_id == tenant_id)
    remaining = [
        {number: row for number, row in rows.items() if number <= last or number > head}
        for rows in (thinking.sessions, thinking.thoughts)
    ]
    return StoredThoughtRows(thinking.records, *remaining)


def _first_broken(
    checked: ThoughtTrail, events: Sequence[int], thinking: StoredThoughtRows
) -> LogBreak | None:
    foreign = (thinking.sessions.keys() | thinking.thoughts.keys()) - set(events)
    for number in sorted({*events, *foreign}):
        problem = f"A thought is stored under event {number}, which does not record it."
        if number not in foreign:
            event = _event(thinking.records[number])
            problem = _problem(checked, number, event, thinking) or ""
        if problem:
            return LogBreak(number, "thoughts", problem)
    return None


def _problem(
    checked: ThoughtTrail, number: int, event: dict[str, Any], thinking: StoredThoughtRows
) -> str | None:
    stored, kind = None, event["body"]["event_type"]
    if kind == "thought_session_started" and number in thinking.sessions:
        content, shredded_by = thinking.sessions[number]
        stored = StoredContent(content, shredded_by=shredded_by)
    elif kind == "thought_recorded" and number in thinking.thoughts:
        row = dict(zip(THOUGHT, thinking.thoughts[number], strict=True))
        if row["audit_event_id"] != event["audit_event_id"] or not isinstance(row["content"], bytes):
            return f"The stored thought of event {number} does not match the event."
        stored = _stored(row)
    is_alone = stored is None and (number in thinking.sessions or number in thinking.thoughts)
    if is_alone:
        return f"A thought is stored under event {number}, which does not record it."
    return checked.feed(number, event, stored)


def _stored(row: dict[str, Any]) -> StoredContent:
    members = {name: row[name] for name in ("session_id", "record_id", "task_id", "type", "author")}
    members |= {"created_at": row["created_at"], "predecessor_chain_hash": row["predecessor_chain_hash"]}
    members |= {
        "index": row["record_index"],
        "references": _listed(row["refs"]),
        "audit_event_ids": _listed(row["event_ids"]),
    }
    hashes = (row["content_hash"], row["parent_chain_hash"], row["chain_hash"])
    return StoredContent(row["content"], members, hashes, row["shredded_by"])


def _listed(text: object) -> object:
    """A list of plain texts in canonical form; otherwise the value itself, which matches no event."""
    try:
        parsed = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return text
    is_plain = json.dumps(parsed, ensure_ascii=False, separators=(",", ":")) == text
    return parsed if is_plain else text


def _ended(checked: ThoughtTrail, last: int) -> bool | LogBreak | None:
    missing = checked.finish(last)
    if missing is not None:
        return LogBreak(missing[0], "thoughts", missing[1])
    return None if checked.left_out else True


class ExportedThoughts:
    """The same for an export's lines, which contain the content only."""

    def __init__(self) -> None:
        self._checked = ThoughtTrail(is_database=False)

    def first_broken(self, page: Sequence[ExportEntry]) -> LogBreak | None:
        for entry in page:
            if b'"event_type":"thought' not in entry.record:
                continue
            event = _event(entry.record)
            if event["body"]["event_type"] not in EVENTS:
                continue
            problem = self._checked.feed(entry.sequence_number, event, StoredContent(entry.words))
            if problem is not None:
                return LogBreak(entry.sequence_number, "thoughts", problem)
        return None

    def ended(self, last: int) -> bool | LogBreak | None:
        return _ended(self._checked, last)
