"""Rows as the folds of `*_before.py` took them, and columns as those that are held against these do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from observatory.features.facts.types import UseRow


class StepRow(NamedTuple):
    seq: int
    name_key: int
    span_key: int
    session_no: int
    agent_no: int
    recipient_no: int
    cost: float
    at_ns: int


class TaintRow(NamedTuple):
    """A step, and one of its parents by key, if it has any: a row a parent."""

    seq: int
    name_key: int
    span_key: int
    session_no: int
    agent_no: int
    recipient_no: int
    state: str
    status: str | None
    tool: str | None
    cost: float
    at_ns: int
    parent_key: int | None
    kind: str | None


Row = Sequence[Any]


class Spread(NamedTuple):
    steps: Sequence[StepRow]
    links: Sequence[tuple[int, int, int]]  # key of the parent, child, its session
    facts: Sequence[tuple[int, int]]
    uses: Sequence[UseRow]
    cut: bool


class Downstream(NamedTuple):
    steps: Sequence[Row]
    facts: Sequence[tuple[int, int]]
    uses: Sequence[tuple[int, int, str, float, int]]
    abroad: Sequence[tuple[int, int, int, str, int]]  # parent, child, its session, kind, parent's session
    cut: bool
