"""The search index: one document per message, written with the cursor (rules S270, S271).

A revised message is indexed with its final content. A shredded message keeps its sender's name only: its
text is removed with its payload.
"""

from __future__ import annotations

from typing import Any

from observatory.derived.reads import DerivedReads
from observatory.derived.seen import Batch, DerivedWrite, Finding, Fold, ended_by, shredded_by
from observatory.features.search.document import SearchDocument, document
from observatory.pipeline.ports import RecordReads
from observatory.store.embedding import NONE, Embedder, bits_of, embedder


class Documents:
    name = "search"

    def forget(self) -> None:
        """Nothing is cached."""

    async def fold(self, batch: Batch) -> tuple[list[DerivedWrite], list[Finding]]:
        # The last event wins, as it does for the content.
        turns = {number: event.seq for event in batch.events if (number := ended_by(event)) is not None}
        shredded = {number: event.seq for event in batch.events for number in shredded_by(event)}
        by_seq = {seen.seq: document(seen) for seen in batch.messages}
        bare = {seen.seq for seen in batch.messages if seen.log is None and seen.envelope is None}
        by_seq |= dict.fromkeys(shredded, SearchDocument("", 0))
        turns |= shredded
        bare |= shredded.keys()
        if not by_seq:
            return [], []
        rows = [{"seq": seq} | one._asdict() for seq, one in by_seq.items()]
        puts = [DerivedWrite("insight_documents", rows, purge=bool(shredded))]
        model = embedder()
        if model is not None:
            puts.append(DerivedWrite("insight_vectors", _vectors(by_seq, bare, turns, model)))
        return puts, []


def _vectors(
    by_seq: dict[int, SearchDocument], bare: set[int], turns: dict[int, int], model: Embedder
) -> list[dict[str, Any]]:
    bits = bits_of(model.embed([one.body[: one.meant] for one in by_seq.values()]))
    return [
        {"seq": seq, "turn": turns.get(seq, seq), "bits": NONE if seq in bare else signs}
        for seq, signs in zip(by_seq, bits, strict=True)
    ]


def folds(derived: DerivedReads, past: RecordReads) -> list[Fold]:
    return [Documents()]
