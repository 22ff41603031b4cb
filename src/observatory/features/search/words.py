"""Word normalisation for search: the same for indexing, queries and snippets, on every database.

Letters and digits of any script, without case and accents; everything else separates words. A character of a
script without spaces is a word of its own, so that a run of them is found as a phrase.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterator
from typing import Final

LONGEST = 64  # significant characters of a word: the rest of a key or a blob is not indexed
_KEPT: Final = set((string.ascii_letters + string.digits).encode())
_ASCII: Final = bytes(ord(chr(code).lower()) if code in _KEPT else 0x20 for code in range(256))
_ALONE: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_word: Final = re.compile(f"[{_ALONE}]|[^\\W_{_ALONE}]+")
_raw_word: Final = re.compile(f"[{_ALONE}]|[^\\W_{_ALONE}][^\\W_{_ALONE}\u0300-\u036f]*[\u0300-\u036f]*")


def words_of(text: str) -> list[str]:
    bare = text.encode().translate(_ASCII).decode() if text.isascii() else _bare(text)
    words: list[str] = bare.split() if text.isascii() else _word.findall(bare)
    if words and max(map(len, words)) > LONGEST:
        return [word[:LONGEST] for word in words]
    return words


def plain(text: str) -> str:
    """The words joined by spaces: the form in which a document is stored and searched."""
    return " ".join(words_of(text))


def word_positions(text: str) -> Iterator[tuple[str, int, int]]:
    """Each word of a text: its normalised form, start and end."""
    for match in _raw_word.finditer(text):
        for word in words_of(match.group()):
            yield word, match.start(), match.end()


def _bare(text: str) -> str:
    apart = unicodedata.normalize("NFKD", text).casefold()
    return "".join(letter for letter in apart if not unicodedata.combining(letter))
