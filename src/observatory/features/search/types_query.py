"""What search asks for and is answered with: shared by the query language, the stores and the doors.

Law: a question is made of words, filters and a bound; nothing in it is ever part of a statement's text but
words of `features/search/words.py`. What is looked at is capped, and whoever caps says so.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple, Protocol

import msgspec

Operator = Literal["in", "<", "<=", ">", ">="]
Mode = Literal["text", "semantic", "hybrid"]


class Term(msgspec.Struct, frozen=True, order=True):
    """One word, or several that follow each other; `prefix`: the last one only begins so."""

    words: tuple[str, ...]
    prefix: bool = False

    @property
    def text(self) -> str:
        return " ".join(self.words)


class Wanted(msgspec.Struct, frozen=True):
    """Of every group one term, and none of the others."""

    every: tuple[tuple[Term, ...], ...] = ()
    none: tuple[Term, ...] = ()


class Clause(msgspec.Struct, frozen=True):
    """A condition on a column of the steps. `in` without values is met by nothing."""

    field: str
    values: tuple[str | int | float, ...]
    op: Operator = "in"
    negated: bool = False


class Scope(msgspec.Struct, frozen=True):
    """Which steps are looked at: up to `until` inclusive, past `after`.

    `times` bound their time. Numbers follow the clock but for when it was set back, so whoever ranks takes
    the window of numbers for the time, and tries these on what it found."""

    until: int
    after: int = 0
    clauses: tuple[Clause, ...] = ()
    times: tuple[Clause, ...] = ()


class Texts(NamedTuple):
    """Documents with the words asked for, newest first; `capped` when there may be more."""

    found: list[tuple[int, str]]
    capped: bool


class Near(NamedTuple):
    seq: int
    likeness: float  # cosine
    body: str


class Nearest(NamedTuple):
    """Documents by likeness; `partial` when not all of the archive was compared."""

    found: list[Near]
    partial: bool


class Face(NamedTuple):
    """What facets and groups are made of."""

    seq: int
    session_no: int
    agent_no: int
    message_type: str
    state: str
    status: str | None
    tool: str | None
    at_ns: int


class Spoke(NamedTuple):
    """An agent among the hits: how often, from when to when, and its latest."""

    agent_no: int
    times: int
    first_ns: int
    last_ns: int
    last_seq: int


class Bins(NamedTuple):
    """How many in each `width_ns` from the beginning of time; `capped` when older ones were not counted."""

    counts: dict[int, int]
    capped: bool


class Search(Protocol):
    """Reads of the search index, of one tenant, as far as it was folded."""

    async def texts(self, tenant_id: str, wanted: Wanted, scope: Scope, limit: int) -> Texts:
        """`wanted` has at least one group."""

    async def speakers(self, tenant_id: str, wanted: Wanted, scope: Scope) -> tuple[list[Spoke], bool]:
        """Who used these words, most often first, and whether the count was capped."""

    async def span(self, tenant_id: str, scope: Scope) -> tuple[int, int] | None:
        """The first and the last time in scope, filters not looked at; None when nothing is."""

    async def bins(self, tenant_id: str, wanted: Wanted, scope: Scope, width_ns: int) -> Bins:
        """When it was said: what has the words, or with no words all that pass the filters, newest first."""

    async def newest(self, tenant_id: str, scope: Scope, none: tuple[Term, ...], limit: int) -> list[int]:
        """Numbers in scope without these words, newest first."""

    async def nearest(self, tenant_id: str, text: str, scope: Scope, limit: int) -> Nearest | None:
        """Documents like this text; None when nothing here can tell likeness."""

    async def window(self, tenant_id: str, since_ns: int | None, until_ns: int | None) -> tuple[int, int]:
        """Numbers that hold all of a time: (after, until)."""

    async def faces(self, tenant_id: str, numbers: Collection[int]) -> dict[int, Face]: ...
