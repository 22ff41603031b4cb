"""Rows and store interface of facts, for the fold, infection, memory and drift.

A fact's id consists of the step that added it and its place there. Reads return committed rows of one tenant,
in a bounded number of queries; the caller limits every list.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, NamedTuple, Protocol, Self

from observatory.features.graph.types_spread import PLACE_BITS

# The upper half of the places is for facts of a held message that was released with other content.
REVISED_PLACE: Final = 1 << (PLACE_BITS - 1)
_ID: Final = re.compile(r"fct_([0-9]{1,13})-([0-9]{1,6})")


def fact_number(seq: int, place: int) -> int:
    return seq << PLACE_BITS | place


def fact_name(fact_id: int) -> str:
    """The id in the API."""
    return f"fct_{fact_id >> PLACE_BITS}-{fact_id & ((1 << PLACE_BITS) - 1)}"


def fact_named(text: str) -> int | None:
    match = _ID.fullmatch(text)
    if match is None or int(match[1]) >= 1 << 40 or int(match[2]) >= 1 << PLACE_BITS:
        return None
    return fact_number(int(match[1]), int(match[2]))


class FactRow(NamedTuple):
    fact_id: int
    seq: int
    session_no: int
    agent_no: int
    cluster_id: str | None
    at_ns: int
    fact_key: int
    subject_key: int | None
    subject: str | None
    value: str | None
    text: str


class ClaimedFact(NamedTuple):
    """A fact without its text: enough to be linked."""

    fact_id: int
    seq: int
    session_no: int
    agent_no: int
    fact_key: int

    @classmethod
    def of(cls, row: FactRow) -> Self:
        return cls(row.fact_id, row.seq, row.session_no, row.agent_no, row.fact_key)


class UseRow(NamedTuple):
    fact_id: int
    seq: int
    kind: str
    weight: float
    agent_no: int
    session_no: int
    copy_id: int


class FactFilter(NamedTuple):
    fact_keys: tuple[int, ...] | None = None
    agent_no: int | None = None
    session_no: int | None = None
    contains: str | None = None
    until_seq: int | None = None
    until_ns: int | None = None


class StatedBelief(NamedTuple):
    """A belief, and when its agent last stated it in that session."""

    fact: FactRow
    last_seq: int


class FactReads(Protocol):
    async def facts_by_id(self, tenant_id: str, numbers: Collection[int]) -> dict[int, FactRow]: ...

    async def facts_page(
        self, tenant_id: str, where: FactFilter, before: int | None, limit: int
    ) -> list[FactRow]:
        """Newest first."""

    async def claimed(self, tenant_id: str, keys: Collection[int], limit: int) -> list[FactRow]:
        """All facts with these texts, oldest first."""

    async def uses_of(self, tenant_id: str, facts: Collection[int]) -> dict[int, int]:
        """How many steps used each."""

    async def uses_at(self, tenant_id: str, numbers: Collection[int]) -> list[UseRow]:
        """Facts that steps used, by the steps' numbers."""

    async def uses_by(
        self, tenant_id: str, agent_no: int, until_seq: int | None, until_ns: int | None, limit: int
    ) -> list[UseRow]:
        """Facts an agent declared to have read from memory, newest first."""

    async def contested(self, tenant_id: str, since_ns: int, limit: int) -> list[StatedBelief]:
        """Beliefs on subjects with more than one value, newest first."""

    async def believed(
        self, tenant_id: str, subject_key: int, since_ns: int, limit: int
    ) -> list[StatedBelief]:
        """Beliefs on one subject, newest first."""

    async def tools_used(self, tenant_id: str, since_ns: int) -> list[tuple[int, str, int]]:
        """(agent, tool, calls) of every agent that called one."""
