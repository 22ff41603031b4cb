"""Decides when two texts make the same claim: normal form, key, content words (rules S243–S246).

Precision before recall: two claims are near only when their numbers, units, dates, negations, directions and
qualifiers are equal, every name of one occurs in the other, and the remaining difference is on one side only:
a word *replaced* by another makes another claim. Hashes are stable: the same text has the same key in every
process. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple

from observatory.features.facts.lexicon import (
    ALIKE,
    COUNTED,
    DAYS,
    DENIAL,
    DIRECTIONS,
    HEDGES,
    MONTHS,
    ORDINALS,
    STOP,
    UNITS,
)

KEPT_CHARS: Final = 4_096  # of a fact's text, in bytes of UTF-8
LONGEST_NEAR: Final = 64  # content words; longer texts must be equal
LONGEST_FLAT: Final = 1_000  # characters; longer facts are not searched in other texts
THRESHOLD: Final = 0.6
SHORT: Final = 240  # characters of a text whose claim is cached
FEWEST: Final = 3  # content words that both need to be near

_WORD: Final = re.compile(
    r"[^\W\d_][^\W_]*(?:['’][^\W_]+)*|(?:(?<![^\s=:($€£])[-−])?\d+(?:[.,:/\-]\d+)*[^\W_]*|%"
)
# The same for ASCII, where character classes are table lookups.
_PLAIN_WORD: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9]*(?:'[A-Za-z0-9]+)*|(?:(?<![^\s=:($])-)?[0-9]+(?:[.,:/\-][0-9]+)*[A-Za-z0-9]*|%"
)
_NUMBER: Final = re.compile(r"(\d+(?:[.,:/\-]\d+)*)([^\W\d_]*)")
_THOUSANDS: Final = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_SPACE: Final = re.compile(r"\s+")


class Claim(NamedTuple):
    """The features of a text that are compared."""

    words: frozenset[str]  # content words, canonical
    must: frozenset[str]  # of them: those that must be equal
    names: frozenset[str]  # of them: those the other claim must contain
    order: tuple[str, ...]  # the content words in order


EMPTY: Final = Claim(frozenset(), frozenset(), frozenset(), ())


def normalise(text: str) -> str:
    """One spelling of a text: ignores case, compatibility forms, spaces, and punctuation at its ends."""
    folded = _SPACE.sub(" ", text if text.isascii() else unicodedata.normalize("NFKC", text)).strip()
    folded = folded.casefold()
    start, end = 0, len(folded)
    if end and folded[0].isalnum() and folded[-1].isalnum():
        return folded
    while start < end and _is_edge(folded[start]):
        if folded[start] in "-−" and folded[start + 1 : start + 2].isdigit():
            break  # a sign
        start += 1
    while end > start and _is_edge(folded[end - 1]):
        end -= 1
    return folded[start:end] or folded


def _is_edge(char: str) -> bool:
    # A percent sign is part of the content.
    return not char.isalnum() and (char.isspace() or (unicodedata.category(char)[0] == "P" and char != "%"))


def key_of(text: str) -> int:
    """The 8-byte key of a text, as a signed integer for databases."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def cut(text: str) -> str:
    """The stored text of a fact: at most 4 KB, cut at a character; U+0000 cannot be stored."""
    stored = text.replace("\x00", "\ufffd")
    if len(stored) * 4 <= KEPT_CHARS:
        return stored
    return stored.encode("utf-8", "replace")[:KEPT_CHARS].decode("utf-8", "ignore")


def words_of(text: str) -> list[str]:
    """Words and numbers in lower case, without separators."""
    if text.isascii():
        return _PLAIN_WORD.findall(text.lower())
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def flat(words: list[str]) -> str:
    """Words with one space around each, for exact searches."""
    return f" {' '.join(words)} "


def is_findable(words: list[str], length: int) -> bool:
    """Whether a fact is distinctive enough to be recognised inside another text."""
    return (length >= 20 or len(words) >= 4) and length <= LONGEST_FLAT and len(words) >= 2


@lru_cache(maxsize=32_768)
def stem(word: str) -> str:
    if word.endswith(("'s", "’s")):
        word = word[:-2]
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 5 and word.endswith("ing"):
        word = _single(word[:-3])
    elif len(word) > 4 and word.endswith("ed"):
        word = _single(word[:-2])
    elif len(word) > 4 and word.endswith("es"):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if len(word) > 4 and word.endswith("e"):
        word = word[:-1]
    return _STEM_ALIKE.get(word, word)


def _single(word: str) -> str:
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls" else word


_STEM_ALIKE: dict[str, str] = {}
_STEM_ALIKE = {stem(word): stem(first) for word, first in ALIKE.items()}
stem.cache_clear()
_MUST: Final = frozenset(stem(word) for word in (*HEDGES, *DIRECTIONS, *DENIAL, *DAYS)) | {
    *MONTHS,
    *UNITS.values(),
}
_CALENDAR: Final = frozenset((*MONTHS, *(stem(day) for day in DAYS)))
_MONTH_OF: Final = (
    {name[:3]: name for name in MONTHS} | {"sept": "september"} | {name: name for name in MONTHS}
)


@lru_cache(maxsize=32_768)
def canonical(word: str) -> tuple[str, ...]:
    """The canonical words of a word; a number starts with `#`, a stop word yields none."""
    if word[0] in "-−":
        value, *unit = _number(word[1:])
        return ("#-" + value[1:], *unit)
    if word[0].isdigit():
        return _number(word)
    if word.endswith(("n't", "n’t")):
        return ("not",)
    word = word[:-2] if word.endswith(("'s", "’s")) else word
    if word in STOP:
        return ()
    if word in COUNTED:
        return ("#" + COUNTED[word],)
    if word in UNITS and len(word) > 1:
        return (UNITS[word],)
    if word in _MONTH_OF:
        return (_MONTH_OF[word],)
    return (UNITS["%"],) if word == "%" else (stem(word),)


def _number(word: str) -> tuple[str, ...]:
    match = _NUMBER.fullmatch(word)
    if match is None:  # digits and letters mixed: a code
        return ("#" + word,)
    value, unit = match[1], match[2]
    if _THOUSANDS.fullmatch(value):
        value = value.replace(",", "")
    if value.count(".") == 1 and value.replace(".", "").isdigit():
        value = value.rstrip("0").rstrip(".")
    if value.isdigit():
        value = value.lstrip("0") or "0"
    if not unit or unit in ORDINALS:
        return ("#" + value,)
    return ("#" + value, UNITS.get(unit, "#" + unit))


def claim_of(text: str, words: list[str] | None = None) -> Claim:
    """The claim of a text. Empty when it is too long to be compared word by word."""
    if len(text) <= SHORT:  # agents repeat the same sentences often
        return _claim_of_sentence(text)
    return _claim(text, words_of(text) if words is None else words)


@lru_cache(maxsize=4_096)
def _claim_of_sentence(text: str) -> Claim:
    return _claim(text, words_of(text))


def _claim(text: str, words: list[str]) -> Claim:
    if len(words) > LONGEST_NEAR * 3:
        return EMPTY
    found = dict.fromkeys(part for word in words for part in canonical(word))
    if not FEWEST <= len(found) <= LONGEST_NEAR:
        return EMPTY
    must = frozenset(word for word in found if word[0] == "#" or word in _MUST)
    return Claim(frozenset(found), must, _names(text), tuple(found))


def _names(text: str) -> frozenset[str]:
    """Canonical words written with a capital: tickers, products, places, people."""
    names: set[str] = set()
    if text.islower():
        return frozenset()
    for word in (_PLAIN_WORD if text.isascii() else _WORD).findall(text):
        if not word.islower() and not word[0].isdigit():
            names.update(canonical(word.casefold()))
    return frozenset(names)


def near(left: Claim, right: Claim) -> float:
    """The share of content words two claims have in common; 0 when they do not make the same claim."""
    if left.must != right.must or not left.words or not right.words:
        return 0.0
    if not (left.names <= right.words and right.names <= left.words):
        return 0.0
    shared = left.words & right.words
    if not _in_like_order(left, right, shared):
        return 0.0
    only_left, only_right = left.words - shared, right.words - shared
    paired = 0
    if only_left and only_right:
        paired = _spelled_alike(set(only_left), set(only_right))
        if paired < min(len(only_left), len(only_right)):
            return 0.0
    score = (len(shared) + paired) / (len(shared) + len(only_left) + len(only_right) - paired)
    return score if score >= THRESHOLD else 0.0


def _in_like_order(left: Claim, right: Claim, shared: frozenset[str]) -> bool:
    """Whether names and figures keep their order (who does what to whom); without names, all words.

    A year may occur anywhere.
    """
    if left.order == right.order:
        return True
    names = (left.names & right.names) - _CALENDAR
    figures = frozenset(word for word in shared if word[0] == "#" and not _is_year(word))
    groups = (names, figures) if left.names or right.names else (shared,)
    return all(
        [word for word in left.order if word in group] == [word for word in right.order if word in group]
        for group in groups
    )


def _is_year(word: str) -> bool:
    return len(word) == 5 and word[1:3] in ("19", "20") and word[1:].isdigit()


def _spelled_alike(only_left: set[str], only_right: set[str]) -> int:
    """How many words differ only by their ending."""
    count = 0
    for word in sorted(only_left):
        for other in sorted(only_right):
            short, long = sorted((word, other), key=len)
            if len(short) >= 5 and long.startswith(short[:-1]) and len(long) - len(short) <= 3:
                only_right.discard(other)
                count += 1
                break
    return count


def denies(words: list[str], claim: list[str]) -> bool:
    """Whether the words around a claim deny it: refuting a fact is not using it."""
    return not denials(words) <= set(claim)


def denials(words: list[str]) -> set[str]:
    """Words that deny something."""
    return {word for word in words if word in DENIAL or word.endswith(("n't", "n’t"))}
