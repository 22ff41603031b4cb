"""A parsed full-text query, the same for both databases."""

from __future__ import annotations

import msgspec


class Term(msgspec.Struct, frozen=True, order=True):
    """One word, or a phrase; `prefix`: the last word is a prefix."""

    words: tuple[str, ...]
    prefix: bool = False

    @property
    def text(self) -> str:
        return " ".join(self.words)


class WordQuery(msgspec.Struct, frozen=True):
    """A document matches with one term of every group, and none of the excluded terms."""

    every: tuple[tuple[Term, ...], ...] = ()
    none: tuple[Term, ...] = ()
