"""Checks patterns of a tenant's own rules: only those that cannot stall the pipeline are accepted.

Python's regular expressions have no time limit, so a pattern is measured before it is accepted. `cost_of`
bounds how many ways it can be tried from one place in a text: repeats multiply, choices add. Repeats must be
bounded, and backreferences and lookarounds are not allowed. The cost of a pattern times the text it may
search is bounded for each message (`redaction.EFFORT`): the measure is made of numbers alone, so that the
same message is always redacted the same way.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, Final

MAX_LENGTH: Final = 256
MAX_COST: Final = 2_000
MAX_WIDTH: Final = 512
_SIMPLE: Final = {sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN, sre.AT}


class BadPattern(ValueError):
    """The sentence says which bound is exceeded, never the pattern's content."""


def cost_of(pattern: str) -> int:
    """How many ways it can be tried at one place; BadPattern when too many, or unknown."""
    if not 1 <= len(pattern) <= MAX_LENGTH:
        raise BadPattern(f"a pattern has 1 to {MAX_LENGTH} characters")
    try:
        with warnings.catch_warnings(record=True) as doubts:
            warnings.simplefilter("always")
            parsed = _parser.parse(pattern)
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadPattern("this is not a valid Python regular expression") from error
    if doubts:
        raise BadPattern("this pattern is ambiguous in Python; escape special characters with a backslash")
    shortest, longest = parsed.getwidth()
    if shortest == 0:
        raise BadPattern("a pattern must match at least one character")
    if longest > MAX_WIDTH:
        raise BadPattern(
            f"every repeat needs an upper bound, e.g. {{1,64}}: a match has at most {MAX_WIDTH} characters"
        )
    cost = _sequence(parsed)
    if cost > MAX_COST:
        raise BadPattern("this pattern can be tried in too many ways; shorten its repeats or its choices")
    return cost


@lru_cache(maxsize=512)
def has_ends(pattern: str) -> bool:
    """Whether it tests for the start or end of a text: in joined texts that would fail."""
    return any(sign in pattern for sign in ("^", "$", "\\A", "\\Z"))


def _sequence(items: Any) -> int:
    cost = 1
    for item in items:
        cost = min(cost * _one(*item), MAX_COST + 1)
    return cost


def _one(op: Any, value: Any) -> int:
    if op in _SIMPLE:
        return 1
    if op is sre.SUBPATTERN:
        return _sequence(value[3])
    if op is sre.BRANCH:
        return min(sum(_sequence(branch) for branch in value[1]), MAX_COST + 1)
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        least, most, inner = value
        each, ways = _sequence(inner), 0
        for times in range(int(least), int(most) + 1):  # at most MAX_WIDTH, see above
            ways += each ** min(times, 12) if each > 1 else 1
            if ways > MAX_COST:
                return MAX_COST + 1
        return max(ways, 1)
    raise BadPattern("lookaheads, lookbehinds and backreferences are not allowed")
