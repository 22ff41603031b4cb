"""Known patterns of prompt injection and jailbreak in a text: which occur, by name, never the text.

Law: pure, and linear in the text. No search uses backtracking: words are read once, in order, and a phrase is
a sequence of word sets of which each comes within a few words of the one before. Texts are compared in one
spelling (`protocol/spelling.py`): case, Unicode forms, look-alike letters and invisible characters make no
difference. Words alone do not make an attack, and an attack in other words is not found.
Rules S1280, S1281.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator
from html import unescape
from typing import Final

from observatory.features.injections.phrases import TURNS, phrases
from observatory.protocol.spelling import normalized_text
from observatory.protocol.tenant_config import Injection
from observatory.protocol.visible import HIDDEN

MAX_CHARACTERS: Final = 131_072  # of one text: half of them its beginning, half its end
MAX_ENCODED: Final = 16  # runs of one text that are decoded, the longest first
LONGEST_ENCODED: Final = 16_384  # characters of one run

PHRASES: Final = phrases()
_FORGED: Final = re.compile("|".join(map(re.escape, TURNS)))

_PLACES: Final[dict[str, list[tuple[int, int]]]] = {}  # word → (phrase, place in it), the last place first
for _number, _one in enumerate(PHRASES):
    for _place in range(len(_one.words) - 1, -1, -1):
        for _word in _one.words[_place]:
            _PLACES.setdefault(_word, []).append((_number, _place))

_FAR: Final = 1_000  # words, more than any phrase is wide
_WORD: Final = re.compile(r"[^\W_]+")
_UNSEEN: Final = re.compile(HIDDEN)
_TAGS: Final = re.compile(r"[\U000e0020-\U000e007e]{8,}")  # longer than that of any flag emoji
_SMUGGLED: Final = re.compile(
    r"[\u200b-\u200d\u2060-\u2064\ufeff]{8,}|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}"
)
_IMAGE: Final = re.compile(r"!\[[^\[\]\n]{0,200}\]\(https?://([^\s()]{1,500})")
_BLANK_TO_FILL: Final = re.compile(r"[{}\[\]<>]|%7b|%5b|%3c", re.I)
_ENCODED: Final = re.compile(r"[A-Za-z0-9+/_-]{24,}(?:\r?\n[A-Za-z0-9+/_-]{16,})*")
_ESCAPED: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|[nrt])")
_TAGGED: Final = {code: code - 0xE0000 for code in range(0xE0020, 0xE007F)}
_STANDARD: Final = str.maketrans("-_", "+/")


def patterns_in(text: str) -> frozenset[Injection]:
    """Every pattern that occurs."""
    if len(text) > MAX_CHARACTERS:
        text = f"{text[: MAX_CHARACTERS // 2]}\n{text[-MAX_CHARACTERS // 2 :]}"
    text = _unescaped(text)
    found = _patterns_visible(text)
    if any(_patterns_visible(inner) for inner in _decoded(text)):
        found.add("encoded")
    return frozenset(found)


def _unescaped(text: str) -> str:
    """The text as a reader of JSON or HTML sees it: it may be embedded in either."""
    if "\\" in text:
        text = _ESCAPED.sub(lambda escape: chr(int(escape[1], 16)) if escape[1] else " ", text)
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # pairs are one character
    return unescape(text) if "&" in text else text


def _patterns_visible(text: str) -> set[Injection]:
    found: set[Injection] = set()
    if not text.isascii():
        tags = _TAGS.findall(text)
        if tags or _SMUGGLED.search(text):
            found.add("hidden_text")
        if tags:
            found |= _patterns_spelled(" ".join(tags).translate(_TAGGED).lower())
        if _UNSEEN.search(text):  # invisible characters may separate words or split one
            found |= _patterns_spelled(normalized_text(_UNSEEN.sub(" ", text)))
    return found | _patterns_spelled(normalized_text(text))


def _patterns_spelled(text: str) -> set[Injection]:
    """Patterns of a text that is already in the common spelling."""
    found = set(_phrases(text))
    if _FORGED.search(text):
        found.add("forged_turn")
    if any(_BLANK_TO_FILL.search(address[1]) for address in _IMAGE.finditer(text)):
        found.add("exfiltration")
    return found


def _phrases(text: str) -> Iterator[Injection]:
    """Each word advances the phrases it belongs to; only where each place was last reached counts."""
    words = _WORD.findall(text)
    there = _PLACES.keys() & words
    possible = {
        number
        for number, phrase in enumerate(PHRASES)
        if not any(there.isdisjoint(one) for one in phrase.words)
    }
    reached: dict[tuple[int, int], int] = {}
    for at, word in enumerate(words) if possible else ():
        for number, place in _PLACES.get(word, ()):
            phrase = PHRASES[number]
            if number not in possible:
                continue
            if place and at - reached.get((number, place - 1), -_FAR) > phrase.within:
                continue
            reached[number, place] = at
            if place == len(phrase.words) - 1:
                possible.discard(number)  # complete
                yield phrase.pattern


def _decoded(text: str) -> Iterator[str]:
    """Texts encoded in base64, with either of its alphabets."""
    for run in sorted(_ENCODED.findall(text), key=len, reverse=True)[:MAX_ENCODED]:
        plain = "".join(run.split()).translate(_STANDARD)[:LONGEST_ENCODED]
        try:
            inner = b64decode(plain[: len(plain) // 4 * 4])
            yield inner.decode()
        except (binascii.Error, UnicodeDecodeError):
            continue
