"""The texts of a step that the fold of facts looks at: read from memory, added to it, and all the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from observatory.insight.seen import Seen
from observatory.projections.facts import key_of, normalise, words_of

PIECE: Final = 8_192  # characters of one text that are looked through
MOST_TEXTS: Final = 1_000  # of one message, read and added each: the first ones
Spoken = tuple[str, int, list[str]]  # the text, its key, its words
Both = tuple[list[Spoken], list[Spoken]]  # read, added


def strings(seen: Seen) -> Both:
    """What was read from and what was added to memory; empty texts are no facts."""
    delta = seen.log.state_delta if seen.log is not None else None
    if delta is None:
        return [], []
    return _spoken(delta.read_from_memory), _spoken(delta.added_to_memory)


def _spoken(texts: list[str] | None) -> list[Spoken]:
    found: list[Spoken] = []
    for text in texts or ():
        if len(found) >= MOST_TEXTS:
            break
        plain = normalise(text)
        if plain:
            found.append((text.strip(), key_of(plain), words_of(text) if len(text) <= PIECE else []))
    return found


def pieces(seen: Seen) -> Iterator[str]:
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
