"""The texts of a step that the facts fold uses: read from memory, added to memory, and all others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from observatory.derived.seen import FoldMessage
from observatory.features.facts.claims import (
    SHORT,
    Claim,
    canonical,
    claim_of,
    denials,
    flat,
    key_of,
    normalise,
    words_of,
)

LONGEST_SENTENCE: Final = 64  # words
PIECE: Final = 8_192  # characters of one text that are searched
MAX_TEXTS: Final = 1_000  # per message, for read and added each: the first ones
MemoryText = tuple[str, int, list[str]]  # the text, its key, its words
MemoryTexts = tuple[list[MemoryText], list[MemoryText]]  # read, added
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|\n+")


class PreparedText:
    """A text prepared for finding facts in it."""

    __slots__ = ("_claims", "_text", "denials", "flat", "parts")

    def __init__(self, text: str) -> None:
        words = words_of(text)
        self.parts, self.flat, self.denials = canonicals(words), flat(words), denials(words)
        self._text = text
        self._claims: list[Claim] | None = None

    def claims(self) -> list[Claim]:
        """The claims of those sentences that are neither too short nor too long to compare."""
        if self._claims is None:
            sentences = ((one, words_of(one)) for one in _SENTENCE.split(self._text))
            self._claims = [
                claim_of(one, words) for one, words in sentences if 3 <= len(words) <= LONGEST_SENTENCE
            ]
        return self._claims


_cached = lru_cache(maxsize=4_096)(PreparedText)


def prepared_text(text: str) -> PreparedText:
    return _cached(text) if len(text) <= SHORT else PreparedText(text)  # agents repeat the same texts often


def canonicals(words: Iterable[str]) -> set[str]:
    return {part for word in set(words) for part in canonical(word)}


def memory_texts(seen: FoldMessage) -> MemoryTexts:
    """Texts read from and added to memory; empty texts are no facts."""
    delta = seen.log.state_delta if seen.log is not None else None
    if delta is None:
        return [], []
    return _spoken(delta.read_from_memory), _spoken(delta.added_to_memory)


def _spoken(texts: list[str] | None) -> list[MemoryText]:
    found: list[MemoryText] = []
    for text in texts or ():
        if len(found) >= MAX_TEXTS:
            break
        plain = normalise(text)
        if plain:
            found.append((text.strip(), key_of(plain), words_of(text) if len(text) <= PIECE else []))
    return found


def other_texts(seen: FoldMessage) -> Iterator[str]:
    """Texts of a step in which it may repeat a fact."""
    log = seen.log
    if log is not None:
        texts: list[str | None] = [log.action.tool_input, log.action.tool_output_summary]
        if log.cognition is not None:
            texts += [log.cognition.intent, *(log.cognition.reasoning_chain or ())[:64]]
    else:
        payload = seen.envelope.payload if seen.envelope is not None else None
        names = ("title", "summary", "content", "description")
        texts = [text for name in names if isinstance(text := getattr(payload, name, None), str)]
    for text in texts:
        if text:
            yield text[:PIECE]
