"""Which patterns of a tenant's own are taken: those that cannot make the corridor wait.

Python's expressions have no time limit, so a pattern is measured before it is taken. `cost_of` bounds how
many ways it can be tried from one place in a text: repeats multiply, choices add. Repeats must have an end,
and nothing may look back at what was matched. What a pattern costs times the text it may see is bounded for
each message (`redaction.EFFORT`): the measure is made of numbers alone, so that the same message is always
redacted alike.
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
    """The sentence says which bound is broken, never what the pattern holds."""


def cost_of(pattern: str) -> int:
    """How many ways it can be tried at one place; BadPattern when that is too many, or cannot be said."""
    if not 1 <= len(pattern) <= MAX_LENGTH:
        raise BadPattern(f"a pattern has 1 to {MAX_LENGTH} characters")
    try:
        with warnings.catch_warnings(record=True) as doubts:
            warnings.simplefilter("always")
            parsed = _parser.parse(pattern)
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadPattern("this is not a regular expression of Python") from error
    if doubts:
        raise BadPattern("Python is not sure what this pattern means; put a backslash before signs")
    shortest, longest = parsed.getwidth()
    if shortest == 0:
        raise BadPattern("a pattern must match at least one character")
    if longest > MAX_WIDTH:
        raise BadPattern(
            f"give every repeat an end, e.g. {{1,64}}: a match has at most {MAX_WIDTH} characters"
        )
    cost = _sequence(parsed)
    if cost > MAX_COST:
        raise BadPattern("this pattern can be tried in too many ways; shorten its repeats or its choices")
    return cost


@lru_cache(maxsize=512)
def has_ends(pattern: str) -> bool:
    """Whether it asks where a text begins or ends: among others it would be asked in vain."""
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
        for times in range(int(least), int(most) + 1):  # at most MAX_WIDTH of them, see above
            ways += each ** min(times, 12) if each > 1 else 1
            if ways > MAX_COST:
                return MAX_COST + 1
        return max(ways, 1)
    raise BadPattern("a pattern looks neither ahead nor back, and does not repeat what a group matched")
