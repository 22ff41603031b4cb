"""Ranking of what was found: BM25 over the hits, rank fusion with likeness, quotes (rules S274, S275).

The same on every database: the index finds documents, the order is made here. How rare a word is shows in the
hits themselves, which are capped; likeness below `LIKE` is none.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from observatory.features.search.types_query import Near, Term, Wanted
from observatory.features.search.words import places
from observatory.features.sessions.message_text import Part

LIKE = 0.25  # cosine from which on two texts are alike
K1, B = 1.2, 0.75
FUSION = 60  # Cormack, Clarke and Büttcher 2009
AROUND = 80  # characters quoted to each side of a match
MOST_MARKS = 20


class Scored(NamedTuple):
    seq: int
    score: float
    terms: tuple[str, ...]  # the words it holds


class Hit(NamedTuple):
    seq: int
    score: float
    text_rank: int | None
    like_rank: int | None
    likeness: float | None
    terms: tuple[str, ...]


def occurrences(term: Term, padded: str) -> int:
    """In a document with a space before and behind; side by side they count once."""
    return padded.count(f" {term.text}" if term.prefix else f" {term.text} ")


def holds(wanted: Iterable[Term], none: Iterable[Term], body: str) -> bool:
    padded = f" {body} "
    return all(occurrences(term, padded) for term in wanted) and not any(
        occurrences(term, padded) for term in none
    )


def bm25(wanted: Wanted, found: Sequence[tuple[int, str]]) -> list[Scored]:
    """Best first, the newer first among equals."""
    terms = sorted({term for group in wanted.every for term in group})
    if not found:
        return []
    lengths = [body.count(" ") + 1 for _, body in found]
    usual = sum(lengths) / len(lengths)
    padded = (f" {body} " for _, body in found)
    counts = [[occurrences(term, body) for term in terms] for body in padded]
    size = len(found)
    holding = [sum(1 for row in counts if row[place]) for place in range(len(terms))]
    weights = [math.log(1 + (size - held + 0.5) / (held + 0.5)) for held in holding]
    made = []
    for (seq, _), length, row in zip(found, lengths, counts, strict=True):
        damp = K1 * (1 - B + B * length / usual)
        score = sum(weight * n * (K1 + 1) / (n + damp) for weight, n in zip(weights, row, strict=True))
        held = tuple(term.text for term, n in zip(terms, row, strict=True) if n)
        made.append(Scored(seq, score, held))
    return sorted(made, key=lambda one: (-one.score, -one.seq))


def fuse(text: Sequence[Scored], alike: Sequence[Near]) -> list[Hit]:
    """Ranks, not scores, are added: the two kinds have no common measure."""
    by_text = {one.seq: (rank, one) for rank, one in enumerate(text, 1)}
    by_likeness = {one.seq: (rank, one) for rank, one in enumerate(alike, 1)}
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
    """A quote around the first match, with the places of matches in it; the beginning when there is none."""
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
    return {"part": part, "text": quote, "matches": inside[:MOST_MARKS]}


def _kinds(best: tuple[str, str, list[tuple[int, int]]]) -> int:
    return len({best[1][a:b].lower() for a, b in best[2]})


def matches(text: str, terms: Sequence[Term]) -> list[tuple[int, int]]:
    """Where terms stand in a text as it was written: its words are read once, each term is looked up."""
    words = list(places(text)) if terms else []
    if not words:
        return []
    known: dict[str, list[int]] = {}
    for at, (word, _, _) in enumerate(words):
        known.setdefault(word, []).append(at)
    ordered = sorted(known) if any(term.prefix for term in terms) else []
    starts, body, length = [], "", 0
    if any(len(term.words) > 1 for term in terms):  # runs of words are looked for in the whole
        body = f" {' '.join(word for word, _, _ in words)} "
        for word, _, _ in words:
            starts.append(length)
            length += len(word) + 1
    found: dict[int, int] = {}  # from which word to which; of terms at one place the first counts
    for term in terms:
        if len(term.words) > 1:
            begins: Iterable[int] = _runs(term, body, starts)
        elif term.prefix:
            begins = (at for word in _begun(ordered, term.words[0]) for at in known[word])
        else:
            begins = known.get(term.words[0], ())
        for at in begins:
            found.setdefault(at, at + len(term.words) - 1)
    return [(words[at][1], words[last][2]) for at, last in sorted(found.items())]


def _begun(ordered: list[str], beginning: str) -> Iterator[str]:
    for place in range(bisect_left(ordered, beginning), len(ordered)):
        if not ordered[place].startswith(beginning):
            return
        yield ordered[place]


def _runs(term: Term, body: str, starts: list[int]) -> Iterator[int]:
    """Numbers of the words where it begins; what overlaps counts once."""
    wanted = f" {term.text}" if term.prefix else f" {term.text} "
    at = body.find(wanted)
    while at >= 0:
        yield bisect_left(starts, at)
        at = body.find(wanted, at + len(term.text))


def _cut(text: str, start: int, end: int) -> tuple[str, int]:
    """Between spaces, if there are any near; the quote and where it begins."""
    start, end = max(0, start), min(len(text), end)
    if start > 0:
        space = text.find(" ", start, start + 20)
        start = space + 1 if space >= 0 else start
    if end < len(text):
        space = text.rfind(" ", end - 20, end)
        end = space if space > start else end
    return text[start:end], start


def counted(values: Iterable[Any], most: int) -> list[dict[str, Any]]:
    """A facet: values with how many hits have them, most first."""
    found: dict[Any, int] = {}
    for value in values:
        if value is not None:
            found[value] = found.get(value, 0) + 1
    ranked = sorted(found.items(), key=lambda pair: (-pair[1], str(pair[0])))
    return [{"value": value, "count": count} for value, count in ranked[:most]]
