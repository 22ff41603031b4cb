"""The search index: one document a message, written with the cursor (rules S270, S271).

A revised message has the words it went on with. One whose content was shredded keeps its sender's name only:
its words go with its payload.
"""

from __future__ import annotations

from typing import Any

from observatory.features.sessions.message_text import Document, document
from observatory.runtime.record_reader import ENDINGS
from observatory.runtime.seen import Batch, Finding, Noted, Put
from observatory.store.embedding import NONE, Embedder, bits_of, embedder

SHREDDED = "payload_shredded"


class Documents:
    name = "search"

    def forget(self) -> None:
        """Nothing is remembered."""

    async def fold(self, batch: Batch) -> tuple[list[Put], list[Finding]]:
        # The last one counts, as it does for the content.
        turns = {number: event.seq for event in batch.events if (number := ended_by(event)) is not None}
        gone = {number: event.seq for event in batch.events for number in shredded_by(event)}
        made = {seen.seq: document(seen) for seen in batch.messages}
        bare = {seen.seq for seen in batch.messages if seen.log is None and seen.envelope is None}
        made |= dict.fromkeys(gone, Document("", 0))
        turns |= gone
        bare |= gone.keys()
        if not made:
            return [], []
        rows = [{"seq": seq} | one._asdict() for seq, one in made.items()]
        puts = [Put("insight_documents", rows, purge=bool(gone))]
        model = embedder()
        if model is not None:
            puts.append(Put("insight_vectors", _vectors(made, bare, turns, model)))
        return puts, []


def _vectors(
    made: dict[int, Document], bare: set[int], turns: dict[int, int], model: Embedder
) -> list[dict[str, Any]]:
    bits = bits_of(model.embed([one.body[: one.meant] for one in made.values()]))
    return [
        {"seq": seq, "turn": turns.get(seq, seq), "bits": NONE if seq in bare else signs}
        for seq, signs in zip(made, bits, strict=True)
    ]


def ended_by(event: Noted) -> int | None:
    """The held message whose content is final from here on."""
    number = event.body.get("held_sequence_number")
    return number if event.event_type in ENDINGS and isinstance(number, int) else None


def shredded_by(event: Noted) -> list[int]:
    """The messages whose content goes by this order."""
    numbers = event.body.get("shredded_sequence_numbers") if event.event_type == SHREDDED else None
    return [one for one in numbers if isinstance(one, int)] if isinstance(numbers, list) else []
