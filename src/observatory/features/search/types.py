"""Response types of search and saved views, for the OpenAPI document."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from observatory.features.search.types_query import Mode, Operator

State = Literal["forwarded", "held", "rejected", "refused"]


class Why(msgspec.Struct, kw_only=True):
    """Its rank among hits by words and among hits by similarity; null where it is not one of them."""

    text_rank: int | None
    semantic_rank: int | None
    likeness: float | None
    words: list[str]


class Snippet(msgspec.Struct, kw_only=True):
    """A quote from one part of the message, and the positions of the matches in it."""

    part: str
    text: str
    matches: list[tuple[int, int]]


class SearchHit(msgspec.Struct, kw_only=True):
    sequence_number: int
    message_id: str
    session_id: str | None
    step_id: str
    agent_id: str | None
    message_type: str
    state: State
    status: str | None
    tool: str | None
    at: str
    score: float
    why: Why
    snippet: Snippet | None  # of the first 100 of a page


class Speaker(msgspec.Struct, kw_only=True):
    """An agent among the hits, and its best hit."""

    agent_id: str | None
    count: int
    first_at: str
    last_at: str
    best: SearchHit | None


class FilterItem(msgspec.Struct, kw_only=True):
    field: str
    op: Operator
    values: list[str | int | float]
    negated: bool


class QuestionItem(msgspec.Struct, kw_only=True):
    """How the query was read: a hit has at least one of each group of `words`."""

    words: list[list[str]]
    without: list[str]
    phrases: list[str]
    meaning: str | None
    filters: list[FilterItem]
    since: str | None
    until: str | None


class ProblemItem(msgspec.Struct, kw_only=True):
    """A part of the query that was not read as typed: its first and last character (code point), and why."""

    start: int
    end: int
    sentence: str


class FacetValue(msgspec.Struct, kw_only=True):
    value: str
    count: int


class Facets(msgspec.Struct, kw_only=True):
    agent: list[FacetValue]
    type: list[FacetValue]
    status: list[FacetValue]
    tool: list[FacetValue]
    state: list[FacetValue]
    session: list[FacetValue]


class SearchSummary(msgspec.Struct, kw_only=True):
    """`behind` is the index lag in events; later pages cover the record up to `as_of`."""

    next_cursor: str | None
    mode: Mode
    semantic: Literal["used", "partial", "not_asked", "not_available"]
    hits: int
    capped: bool
    as_of: int
    behind: int
    query: QuestionItem
    problems: list[ProblemItem]  # the warnings that have a position in the query
    warnings: list[str]
    facets: Facets | None  # of the first page


class SearchAnswer(SearchSummary, kw_only=True):
    items: list[SearchHit]


class SpeakersAnswer(SearchSummary, kw_only=True):
    """With `group=agent`."""

    items: list[Speaker]


class TimeBin(msgspec.Struct, kw_only=True):
    """From `from` to before `to`."""

    begins: str = msgspec.field(name="from")
    ends: str = msgspec.field(name="to")
    count: int


class TimesAnswer(SearchSummary, kw_only=True):
    """With `group=time`: even widths without a gap, oldest first."""

    items: list[TimeBin]


class ViewItem(msgspec.Struct, kw_only=True):
    view_id: str
    name: str
    query: str
    shared: bool
    owner_id: str
    mine: bool
    created_at: str


class ViewList(msgspec.Struct, kw_only=True):
    items: list[ViewItem]
    next_cursor: str | None


class RemovedView(msgspec.Struct, kw_only=True):
    view_id: str
    removed: bool


# Several structs: one of them, depending on the request.
SEARCH_ANSWERS: dict[str, Any] = {
    "search": (SearchAnswer, SpeakersAnswer, TimesAnswer),
    "save_view": ViewItem,
    "list_views": ViewList,
    "remove_view": RemovedView,
}
