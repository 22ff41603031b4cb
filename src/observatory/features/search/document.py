"""The text of a message, part by part, for the search index and its snippets.

What a step is about comes first, names and input last: only the former is compared by similarity. The total
is capped so that a document stays small; the rest is not indexed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from observatory.derived.seen import FoldMessage
from observatory.features.search.words import plain
from observatory.protocol.decision_log import Citation, DecisionLog
from observatory.protocol.envelope import Envelope

MAX_CHARACTERS = 16_384  # of one document
Part = tuple[str, str]  # which part of the message, its text
# The parts that are embedded; the others are found by their words only.
ABOUT: Final = {"intent", "reasoning", "output", "memory", "alternatives", "message"}
# Payload members with human-written text: indexed before the others.
_PROSE: Final = ("title", "content", "summary", "description", "respondent_note", "reason", "label")


def parts_of(log: DecisionLog | None, envelope: Envelope | None, agent_id: str) -> list[Part]:
    """Parts in reading order; only the sender when the content is gone."""
    parts: list[Part] = []
    remaining = MAX_CHARACTERS
    for part, text in _parts(log, envelope, agent_id):
        if text and remaining > 0:
            parts.append((part, text[:remaining]))
            remaining -= len(text)
    return parts


class SearchDocument(NamedTuple):
    body: str  # words
    meant: int  # length of the part of `body` that is embedded


def document(seen: FoldMessage) -> SearchDocument:
    """The indexed words of a message, always with the sender's name."""
    parts = parts_of(seen.log, seen.envelope, seen.agent_id)
    if not parts or parts[-1][0] != "agent":
        parts.append(("agent", seen.agent_id))
    about = plain("\n".join(text for part, text in parts if part in ABOUT))
    rest = plain("\n".join(text for part, text in parts if part not in ABOUT))
    body = f"{about} {rest}" if about and rest else about or rest
    return SearchDocument(body, len(about) or len(body))


def _parts(log: DecisionLog | None, envelope: Envelope | None, agent_id: str) -> Iterator[Part]:
    if log is not None:
        yield from _of_log(log)
    elif envelope is not None:
        yield from _of_payload(envelope)
    yield "agent", agent_id


def _of_log(log: DecisionLog) -> Iterator[Part]:
    thought, action, delta = log.cognition, log.action, log.state_delta
    if thought is not None:
        yield "intent", thought.intent
        yield "reasoning", "\n".join(thought.reasoning_chain or ())
    if action.tool_output_summary:
        yield "output", action.tool_output_summary
    if delta is not None:
        yield "memory", "\n".join(delta.added_to_memory or ())
    if thought is not None:
        yield (
            "alternatives",
            "\n".join(f"{one.option} {one.why_not or ''}" for one in thought.alternatives or ()),
        )
    if action.tool_call:
        yield "tool", action.tool_call
    if action.tool_input:
        yield "input", action.tool_input
    if delta is not None:
        yield "memory_read", "\n".join(delta.read_from_memory or ())
    if thought is not None:
        yield "citations", "\n".join(_cited(one) for one in thought.citations or ())
        yield "strategy", thought.strategy_used or ""


def _cited(one: str | Citation) -> str:
    return one if isinstance(one, str) else f"{one.label or ''} {one.uri}"


def _of_payload(envelope: Envelope) -> Iterator[Part]:
    prose: list[str] = []
    details: list[str] = []
    for key, text in _strings(msgspec.to_builtins(envelope.payload)):
        (prose if key in _PROSE else details).append(text)
    yield "message", "\n".join(prose)
    yield "details", "\n".join(details)


def _strings(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _strings(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner, key)
