"""Which attribute names of a span are used for what, computed once for every set of names.

Law: for each matter the matching names, the best first, and the names that are unmapped; it follows from the
names alone. Spans of one instrumentation use the same few sets, so most are found in the cache. Sets chosen
by senders are cached only while they are short, and only a bounded number of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from observatory.features.otlp import conventions
from observatory.features.otlp.records import Attributes

KEPT: Final = 1_024  # sets in the cache
WIDEST: Final = 64  # names of a cached set
LONGEST_NAMES: Final = 4_096  # characters of its names together
_digits: Final = re.compile(r"(?<=\.)\d+(?=\.|$)").sub

Names = tuple[str, ...]


class AttributeNames(msgspec.Struct, frozen=True, gc=False):
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
    token_parts: tuple[Names, ...]  # of input, output and cache; only those present
    tokens_all: Names
    cost: Names
    failure: Names
    unmapped: Names


_kept: Final[dict[Names, AttributeNames]] = {}


def names_of(attributes: Attributes) -> AttributeNames:
    names = tuple(attributes)
    found = _kept.get(names)
    if found is None:
        found = build_names(names)
        if len(names) <= WIDEST and sum(map(len, names)) <= LONGEST_NAMES:
            if len(_kept) >= KEPT:
                _kept.clear()
            _kept[names] = found
    return found


def build_names(names: Iterable[str]) -> AttributeNames:
    given = set(names)

    def present(candidates: Names) -> Names:
        return tuple(name for name in candidates if name in given)

    parts = (conventions.TOKENS_IN, conventions.TOKENS_OUT, *((name,) for name in conventions.TOKENS_CACHED))
    return AttributeNames(
        session=present(conventions.SESSION),
        agent=present(conventions.AGENT),
        agent_version=present(conventions.AGENT_VERSION),
        model=present(conventions.MODEL),
        provider=present(conventions.PROVIDER),
        tool=present(conventions.TOOL),
        tool_input=present(conventions.TOOL_INPUT),
        tool_output=present(conventions.TOOL_OUTPUT),
        answer=present(conventions.ANSWER),
        question=present(conventions.QUESTION),
        token_parts=tuple(found for part in parts if (found := present(part))),
        tokens_all=present(conventions.TOKENS_ALL),
        cost=present(conventions.COST),
        failure=present(conventions.FAILURE),
        unmapped=tuple(_digits("N", name)[:128] for name in names if name not in conventions.READ),
    )
