"""Which of the names a span uses tell what: worked out once for every set of names.

Law: a wording says of each matter the names that are there, the best first, and how the names that mean
nothing here are counted; it follows from the names alone. Spans of one instrumentation use the same few sets,
so most find theirs by one look. What senders choose is kept only while it is short, and only so much of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from observatory.features.otlp import conventions as words
from observatory.features.otlp.records import Attributes

KEPT: Final = 1_024  # wordings
WIDEST: Final = 64  # names of one that is kept
LONGEST_NAMES: Final = 4_096  # characters of them together
_digits: Final = re.compile(r"(?<=\.)\d+(?=\.|$)").sub

Names = tuple[str, ...]


class Wording(msgspec.Struct, frozen=True, gc=False):
    session: Names
    agent: Names
    agent_version: Names
    model: Names
    provider: Names
    tool: Names
    tool_input: Names
    tool_output: Names
    answer: Names
    question: Names
    token_parts: tuple[Names, ...]  # of input, output and what the cache holds; only those that are told
    tokens_all: Names
    cost: Names
    failure: Names
    unmapped: Names


_kept: Final[dict[Names, Wording]] = {}


def wording_of(said: Attributes) -> Wording:
    names = tuple(said)
    found = _kept.get(names)
    if found is None:
        found = made(names)
        if len(names) <= WIDEST and sum(map(len, names)) <= LONGEST_NAMES:
            if len(_kept) >= KEPT:
                _kept.clear()
            _kept[names] = found
    return found


def made(names: Iterable[str]) -> Wording:
    there = set(names)

    def told(wanted: Names) -> Names:
        return tuple(name for name in wanted if name in there)

    parts = (words.TOKENS_IN, words.TOKENS_OUT, *((name,) for name in words.TOKENS_CACHED))
    return Wording(
        session=told(words.SESSION),
        agent=told(words.AGENT),
        agent_version=told(words.AGENT_VERSION),
        model=told(words.MODEL),
        provider=told(words.PROVIDER),
        tool=told(words.TOOL),
        tool_input=told(words.TOOL_INPUT),
        tool_output=told(words.TOOL_OUTPUT),
        answer=told(words.ANSWER),
        question=told(words.QUESTION),
        token_parts=tuple(found for part in parts if (found := told(part))),
        tokens_all=told(words.TOKENS_ALL),
        cost=told(words.COST),
        failure=told(words.FAILURE),
        unmapped=tuple(_digits("N", name)[:128] for name in names if name not in words.READ),
    )
