"""Ranking of hits: BM25, rank fusion with similarity, snippets (rules S274, S275).

The same on every database: the index finds documents, the order is computed here. Word rarity is measured
over the hits themselves, which are capped; a similarity below `LIKE` counts as none.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from observatory.features.search.document import Part
from observatory.features.search.types_query import SimilarDocument
from observatory.features.search.words import word_positions
from observatory.store.search_query import Term, WordQuery

LIKE = 0.25  # minimum cosine for two texts to count as similar
K1, B = 1.2, 0.75
FUSION = 60  # Cormack, Clarke and Büttcher 2009
AROUND = 80  # characters quoted on each side of a match
MAX_MARKS = 20


class Scored(NamedTuple):
    seq: int
    score: float
    terms: tuple[str, ...]  # the query's words it contains


class Hit(NamedTuple):
    seq: int
    score: float
    text_rank: int | None
    like_rank: int | None
    likeness: float | None
    terms: tuple[str, ...]


def occurrences(term: Term, padded: str) -> int:
    """Counted in a document padded with spaces; two adjacent occurrences count once."""
    return padded.count(f" {term.text}" if term.prefix else f" {term.text} ")


def holds(wanted: Iterable[Term], none: Iterable[Term], body: str) -> bool:
    padded = f" {body} "
    return all(occurrences(term, padded) for term in wanted) and not any(
        occurrences(term, padded) for term in none
    )


def bm25(wanted: WordQuery, documents: Sequence[tuple[int, str]]) -> list[Scored]:
    """BM25 scores, best first, the newer first among equals."""
    terms = sorted({term for group in wanted.every for term in group})
    if not documents:
        return []
    lengths = [body.count(" ") + 1 for _, body in documents]
    usual = sum(lengths) / len(lengths)
    padded = (f" {body} " for _, body in documents)
    counts = [[occurrences(term, body) for term in terms] for body in padded]
    size = len(documents)
    document_counts = [sum(1 for row in counts if row[place]) for place in range(len(terms))]
    weights = [math.log(1 + (size - held + 0.5) / (held + 0.5)) for held in document_counts]
    scored = []
    for (seq, _), length, row in zip(documents, lengths, counts, strict=True):
        damp = K1 * (1 - B + B * length / usual)
        score = sum(weight * n * (K1 + 1) / (n + damp) for weight, n in zip(weights, row, strict=True))
        held = tuple(term.text for term, n in zip(terms, row, strict=True) if n)
        scored.append(Scored(seq, score, held))
    return sorted(scored, key=lambda one: (-one.score, -one.seq))


def fuse(text: Sequence[Scored], similar: Sequence[SimilarDocument]) -> list[Hit]:
    """Adds ranks, not scores: the two kinds of score have no common scale."""
    by_text = {one.seq: (rank, one) for rank, one in enumerate(text, 1)}
    by_likeness = {one.seq: (rank, one) for rank, one in enumerate(similar, 1)}
    hits = []
    for seq in by_text.keys() | by_likeness.keys():
        text_rank, scored = by_text.get(seq, (None, None))
        like_rank, near = by_likeness.get(seq, (None, None))
        score = sum(1 / (FUSION + rank) for rank in (text_rank, like_rank) if rank is not None)
        hits.append(
            Hit(
                seq,
                round(score, 9),
                text_rank,
                like_rank,
                near.likeness if near else None,
                scored.terms if scored else (),
            )
        )
    return sorted(hits, key=lambda hit: (-hit.score, -hit.seq))


def snippet(parts: Sequence[Part], terms: Iterable[Term]) -> dict[str, Any]:
    """A quote around the first match with the positions of matches in it; the beginning without a match."""
    wanted = list(terms)
    best: tuple[str, str, list[tuple[int, int]]] | None = None
    for part, text in parts:
        marks = matches(text, wanted)
        if marks and (best is None or len({text[a:b].lower() for a, b in marks}) > _kinds(best)):
            best = (part, text, marks)
    if best is None:
        part, text = parts[0] if parts else ("", "")
        return {"part": part, "text": _cut(text, 0, 2 * AROUND)[0], "matches": []}
    part, text, marks = best
    quote, shift = _cut(text, marks[0][0] - AROUND, marks[0][0] + 2 * AROUND)
    inside = [[a - shift, b - shift] for a, b in marks if a >= shift and b - shift <= len(quote)]
    return {"part": part, "text": quote, "matches": inside[:MAX_MARKS]}


def _kinds(best: tuple[str, str, list[tuple[int, int]]]) -> int:
    return len({best[1][a:b].lower() for a, b in best[2]})


def matches(text: str, terms: Sequence[Term]) -> list[tuple[int, int]]:
    """Positions of terms in the original text: its words are read once, each term is looked up."""
    words = list(word_positions(text)) if terms else []
    if not words:
        return []
    known: dict[str, list[int]] = {}
    for at, (word, _, _) in enumerate(words):
        known.setdefault(word, []).append(at)
    ordered = sorted(known) if any(term.prefix for term in terms) else []
    starts, body, length = [], "", 0
    if any(len(term.words) > 1 for term in terms):  # phrases are searched in the whole text
        body = f" {' '.join(word for word, _, _ in words)} "
        for word, _, _ in words:
            starts.append(length)
            length += len(word) + 1
    spans: dict[int, int] = {}  # first word -> last word; of terms at one position the first wins
    for term in terms:
        if len(term.words) > 1:
            begins: Iterable[int] = _runs(term, body, starts)
        elif term.prefix:
            begins = (at for word in _begun(ordered, term.words[0]) for at in known[word])
        else:
            begins = known.get(term.words[0], ())
        for at in begins:
            spans.setdefault(at, at + len(term.words) - 1)
    return [(words[at][1], words[last][2]) for at, last in sorted(spans.items())]


def _begun(ordered: list[str], beginning: str) -> Iterator[str]:
    for place in range(bisect_left(ordered, beginning), len(ordered)):
        if not ordered[place].startswith(beginning):
            return
        yield ordered[place]


def _runs(term: Term, body: str, starts: list[int]) -> Iterator[int]:
    """Numbers of the words where the phrase begins; overlapping matches count once."""
    phrase = f" {term.text}" if term.prefix else f" {term.text} "
    at = body.find(phrase)
    while at >= 0:
        yield bisect_left(starts, at)
        at = body.find(phrase, at + len(term.text))


def _cut(text: str, start: int, end: int) -> tuple[str, int]:
    """The text cut at nearby spaces, and where the cut begins."""
    start, end = max(0, start), min(len(text), end)
    if start > 0:
        space = text.find(" ", start, start + 20)
        start = space + 1 if space >= 0 else start
    if end < len(text):
        space = text.rfind(" ", end - 20, end)
        end = space if space > start else end
    return text[start:end], start


def counted(values: Iterable[Any], limit: int) -> list[dict[str, Any]]:
    """A facet: values with their number of hits, most frequent first."""
    counts: dict[Any, int] = {}
    for value in values:
        if value is not None:
            counts[value] = counts.get(value, 0) + 1
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], str(pair[0])))
    return [{"value": value, "count": count} for value, count in ranked[:limit]]
