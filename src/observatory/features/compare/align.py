"""Sequence alignment: which step of one session corresponds to which step of another. Bounded.

Pure. Equal prefixes and suffixes are paired first; then steps whose fingerprint occurs exactly once on each
side are anchors (patience), and the stretches between anchors are aligned by similarity. A stretch of more
than `CELLS` pairs is compared only in a band around its diagonal, so 10,000 by 10,000 steps stay bounded;
`exact` reports whether no band was needed. No recursion.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

CELLS = 250_000  # pairs of one stretch compared exactly
BUDGET = 300_000  # pairs of all stretches together; beyond it bands get narrower
MIN_BAND = 8
ENOUGH = 1.0  # minimum similarity of corresponding steps


class StepFeatures(NamedTuple):
    """The features of a step that are compared."""

    exact: int  # equal when two steps are the same
    role: str  # agent type
    deed: str  # tool, else message type
    words: frozenset[str]  # of its intent, as words


class Alignment(NamedTuple):
    """Pairs (left, right) in order; None where one side has no counterpart."""

    pairs: list[tuple[int | None, int | None]]
    exact: bool
    band: int | None  # the narrowest band, if any


def similarity(left: StepFeatures, right: StepFeatures) -> float:
    """0 to 3: the same role, the same action, the same words."""
    if left.exact == right.exact:
        return 3.0
    score = (0.75 if left.role == right.role else 0.0) + (0.75 if left.deed == right.deed else 0.0)
    both = len(left.words & right.words)
    either = len(left.words) + len(right.words) - both
    return score + (both / either if either else 0.5)


def align(left: Sequence[StepFeatures], right: Sequence[StepFeatures]) -> Alignment:
    start, end_left, end_right = 0, len(left), len(right)
    while start < min(end_left, end_right) and left[start].exact == right[start].exact:
        start += 1
    while end_left > start and end_right > start and left[end_left - 1].exact == right[end_right - 1].exact:
        end_left, end_right = end_left - 1, end_right - 1
    matched: list[tuple[int, int]] = [(place, place) for place in range(start)]
    anchors = _anchors(left, right, start, end_left, end_right)
    stretches, low_left, low_right = [], start, start
    for at_left, at_right in [*anchors, (end_left, end_right)]:
        if at_left > low_left and at_right > low_right:
            stretches.append((low_left, at_left, low_right, at_right))
        low_left, low_right = at_left + 1, at_right + 1
    total = sum((a1 - a0) * (b1 - b0) for a0, a1, b0, b1 in stretches)
    narrowest: int | None = None
    found: list[tuple[int, int]] = []
    for a0, a1, b0, b1 in stretches:
        band = _band(a1 - a0, b1 - b0, total)
        if band is not None:
            narrowest = band if narrowest is None else min(narrowest, band)
        found += [(a0 + i, b0 + j) for i, j in _by_similarity(left[a0:a1], right[b0:b1], band)]
    tail = [(end_left + k, end_right + k) for k in range(len(left) - end_left)]
    matched += sorted([*anchors, *found]) + tail
    return Alignment(_filled(matched, len(left), len(right)), narrowest is None, narrowest)


def _anchors(
    left: Sequence[StepFeatures], right: Sequence[StepFeatures], start: int, end_left: int, end_right: int
) -> list[tuple[int, int]]:
    """Steps that occur once on each side: the longest run that rises on both (patience)."""
    in_left = Counter(left[place].exact for place in range(start, end_left))
    in_right = Counter(right[place].exact for place in range(start, end_right))
    where = {right[place].exact: place for place in range(start, end_right)}
    candidates = [
        (place, where[left[place].exact])
        for place in range(start, end_left)
        if in_left[left[place].exact] == 1 and in_right.get(left[place].exact) == 1
    ]
    tails: list[int] = []  # right places
    last: list[int] = []  # candidate at each tail
    before: list[int] = [-1] * len(candidates)
    for number, (_, place) in enumerate(candidates):
        pile = bisect_left(tails, place)
        before[number] = last[pile - 1] if pile else -1
        if pile == len(tails):
            tails.append(place)
            last.append(number)
        else:
            tails[pile], last[pile] = place, number
    chain, number = [], last[-1] if last else -1
    while number >= 0:
        chain.append(candidates[number])
        number = before[number]
    return chain[::-1]


def _band(rows: int, columns: int, total: int) -> int | None:
    """None when every pair is compared; else the distance from the diagonal."""
    if rows * columns <= CELLS and total <= BUDGET:
        return None
    share = BUDGET * (rows * columns) // max(total, 1)
    return max(MIN_BAND, share // (2 * rows))


def _by_similarity(
    left: Sequence[StepFeatures], right: Sequence[StepFeatures], band: int | None
) -> list[tuple[int, int]]:
    """The pairing of greatest summed similarity, without crossings."""
    rows, columns = len(left), len(right)
    slope = columns / rows
    line: list[float] = [0.0] * (columns + 1)  # the best sums so far; each row overwrites the previous one
    moves: list[tuple[int, bytearray]] = []
    reached = 0
    for i in range(rows):
        middle = int(i * slope)
        low = 0 if band is None else max(0, min(columns - 1, middle - band))
        high = columns if band is None else min(columns, middle + int(slope) + band + 1)
        for j in range(reached, high):  # beyond the band the best sum stays
            line[j + 1] = line[reached]
        reached = high
        taken = bytearray(high - low)
        mine, corner = left[i], line[low]
        for j in range(low, high):
            score = similarity(mine, right[j])
            best, move = line[j + 1], 1  # left alone
            if line[j] > best:
                best, move = line[j], 2  # right alone
            if score >= ENOUGH and corner + score > best:
                best, move = corner + score, 3
            corner, line[j + 1], taken[j - low] = line[j + 1], best, move
        moves.append((low, taken))
    return _walked(moves, rows, columns)


def _walked(moves: list[tuple[int, bytearray]], rows: int, columns: int) -> list[tuple[int, int]]:
    pairs, i, j = [], rows - 1, columns - 1
    while i >= 0 and j >= 0:
        low, taken = moves[i]
        if j >= low + len(taken):
            j -= 1
        elif j < low or taken[j - low] == 1:
            i -= 1
        elif taken[j - low] == 2:
            j -= 1
        else:
            pairs.append((i, j))
            i, j = i - 1, j - 1
    return pairs[::-1]


def _filled(matched: list[tuple[int, int]], lefts: int, rights: int) -> list[tuple[int | None, int | None]]:
    pairs: list[tuple[int | None, int | None]] = []
    left = right = 0
    for at_left, at_right in [*matched, (lefts, rights)]:
        pairs += [(place, None) for place in range(left, at_left)]
        pairs += [(None, place) for place in range(right, at_right)]
        if at_left < lefts and at_right < rights:
            pairs.append((at_left, at_right))
        left, right = at_left + 1, at_right + 1
    return pairs
