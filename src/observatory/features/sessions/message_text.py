"""The text of a message, part by part: what search indexes and what it quotes.

What a step is about comes first, names and input last: only the former has a meaning to compare. Of
everything together so much is taken that a document stays small, and the rest finds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from observatory.features.search.words import plain
from observatory.protocol.decision_log import Citation, DecisionLog
from observatory.protocol.envelope import Envelope
from observatory.runtime.seen import Seen

MOST = 16_384  # characters of one document
Part = tuple[str, str]  # which part of the message, its text
# Of a payload: what people write first, what machines call things after it.
# What an embedding is made of; the others are found by their words.
ABOUT: Final = {"intent", "reasoning", "output", "memory", "alternatives", "message"}
_SAID: Final = ("title", "content", "summary", "description", "respondent_note", "reason", "label")


def parts_of(log: DecisionLog | None, envelope: Envelope | None, agent_id: str) -> list[Part]:
    """In the order they are read; nothing but the sender of a message whose content is gone."""
    found: list[Part] = []
    room = MOST
    for part, text in _parts(log, envelope, agent_id):
        if text and room > 0:
            found.append((part, text[:room]))
            room -= len(text)
    return found


class Document(NamedTuple):
    body: str  # words
    meant: int  # so many characters of it say what it is about


def document(seen: Seen) -> Document:
    """The words of a message; the sender's name always among them."""
    parts = parts_of(seen.log, seen.envelope, seen.agent_id)
    if not parts or parts[-1][0] != "agent":
        parts.append(("agent", seen.agent_id))
    about = plain("\n".join(text for part, text in parts if part in ABOUT))
    rest = plain("\n".join(text for part, text in parts if part not in ABOUT))
    body = f"{about} {rest}" if about and rest else about or rest
    return Document(body, len(about) or len(body))


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
    said: list[str] = []
    named: list[str] = []
    for key, text in _strings(msgspec.to_builtins(envelope.payload)):
        (said if key in _SAID else named).append(text)
    yield "message", "\n".join(said)
    yield "details", "\n".join(named)


def _strings(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _strings(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner, key)
