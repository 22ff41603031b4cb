"""Types of search queries and results, shared by the query language, the stores and the routes.

Law: a query consists of words, filters and a bound; only words normalised by `features/search/words.py` ever
enter a statement's text. Scans are capped, and results report it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple, Protocol

import msgspec

from observatory.store.search_query import Term, WordQuery

Operator = Literal["in", "<", "<=", ">", ">="]
Mode = Literal["text", "semantic", "hybrid"]


class Clause(msgspec.Struct, frozen=True):
    """A condition on a column of the steps. `in` without values matches nothing."""

    field: str
    values: tuple[str | int | float, ...]
    op: Operator = "in"
    negated: bool = False


class Scope(msgspec.Struct, frozen=True):
    """Which steps are searched: up to `until` inclusive, after `after`.

    `times` bound their time. Numbers follow the clock except where it was set back, so ranking uses the
    window of numbers for the time and applies these to its results."""

    until: int
    after: int = 0
    clauses: tuple[Clause, ...] = ()
    times: tuple[Clause, ...] = ()


class MatchingTexts(NamedTuple):
    """Documents with the query's words, newest first; `capped` when there may be more."""

    found: list[tuple[int, str]]
    capped: bool


class SimilarDocument(NamedTuple):
    seq: int
    likeness: float  # cosine
    body: str


class SimilarDocuments(NamedTuple):
    """Documents by similarity; `partial` when not all of the archive was compared."""

    found: list[SimilarDocument]
    partial: bool


class StepFacets(NamedTuple):
    """The columns of a step that facets and groups use."""

    seq: int
    session_no: int
    agent_no: int
    message_type: str
    state: str
    status: str | None
    tool: str | None
    at_ns: int


class AgentHitCount(NamedTuple):
    """An agent among the hits: count, first and last time, and its latest hit."""

    agent_no: int
    times: int
    first_ns: int
    last_ns: int
    last_seq: int


class TimeCounts(NamedTuple):
    """Counts per bin of `width_ns` since 1970; `capped` when older ones were not counted."""

    counts: dict[int, int]
    capped: bool


class SearchIndexReads(Protocol):
    """Reads of one tenant's search index, as far as it is folded."""

    async def texts(self, tenant_id: str, wanted: WordQuery, scope: Scope, limit: int) -> MatchingTexts:
        """`wanted` has at least one group."""

    async def speakers(
        self, tenant_id: str, wanted: WordQuery, scope: Scope
    ) -> tuple[list[AgentHitCount], bool]:
        """Agents that used these words, most frequent first, and whether the count was capped."""

    async def span(self, tenant_id: str, scope: Scope) -> tuple[int, int] | None:
        """The first and the last time in scope, ignoring filters; None when it is empty."""

    async def bins(self, tenant_id: str, wanted: WordQuery, scope: Scope, width_ns: int) -> TimeCounts:
        """Counts over time of the steps with the words, or without words of all that pass the filters."""

    async def newest(self, tenant_id: str, scope: Scope, none: tuple[Term, ...], limit: int) -> list[int]:
        """Numbers in scope without these words, newest first."""

    async def nearest(self, tenant_id: str, text: str, scope: Scope, limit: int) -> SimilarDocuments | None:
        """Documents similar to this text; None when no embedding model is available."""

    async def window(self, tenant_id: str, since_ns: int | None, until_ns: int | None) -> tuple[int, int]:
        """A window of numbers that covers a time span: (after, until)."""

    async def faces(self, tenant_id: str, numbers: Collection[int]) -> dict[int, StepFacets]: ...
