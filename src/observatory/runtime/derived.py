"""What the derived store promises, and what its analyst asks of the record.

Law: only the analyst writes, through `apply`: the rows of consecutive numbers and the cursor's step past
them are one transaction, so nothing counts twice. Whoever reads sees committed rows of one tenant. Topics add
their reads as a protocol of their own to the bases of `Derived`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from observatory.features.alerting.types_tray import AlertLog
from observatory.features.cascade.types_rows import Cascades
from observatory.features.facts.types import FactReads
from observatory.features.fleet.types_traffic import Costs, Map
from observatory.features.graph.types_spread import SpreadReads
from observatory.features.search.types_query import Search
from observatory.features.sessions.types import Doubts
from observatory.features.sessions.types_lines import Lines
from observatory.runtime.seen import Finding, Put


class Progress(msgspec.Struct, frozen=True):
    """How far a tenant's record was folded, and what was passed over on the way."""

    seq: int = 0
    at_ns: int = 0
    skipped: int = 0  # messages some fold failed on
    unread: int = 0  # messages whose content did not decode


class StoredFinding(msgspec.Struct, frozen=True):
    """A `Finding` with its number, which only grows."""

    finding_id: int
    kind: str
    seq: int
    session_id: str
    agent_id: str
    at_ns: int
    body: dict[str, Any]


class Status(Protocol):
    async def progress(self, tenant_id: str) -> Progress:
        """All zero for a tenant nothing was folded of."""

    async def findings(self, tenant_id: str, after: int, limit: int) -> list[StoredFinding]:
        """Past a finding's number, in order."""


class Derived(
    Status, Map, Costs, FactReads, SpreadReads, Doubts, Search, Cascades, Lines, AlertLog, Protocol
):
    """Everything doors and daemons may ask of the derived store. NotDurable when nothing can be read."""

    async def start(self) -> None:
        """Made anew when it is missing, broken or of another version."""

    async def stop(self) -> None: ...


class DerivedWriter(Derived, Protocol):
    """The analyst's side."""

    async def apply(
        self,
        tenant_id: str,
        after: int,
        until: int,
        at_ns: int,
        puts: Sequence[Put],
        findings: Sequence[Finding],
        passed: tuple[int, int] = (0, 0),
    ) -> bool:
        """All of it and the cursor's step from `after` to `until`, or nothing.

        Clears come first, then what replaces, then what adds. False, and nothing is written, when the cursor
        is not at `after`: another analyst was there. `passed` is (skipped, unread), added to what was.
        StatementFailed when a row is refused.
        """

    async def claim(self, tenant_id: str) -> bool:
        """Whether this analyst may fold the tenant: alone, until it releases it or is gone. Asked often."""

    async def release(self, tenant_id: str) -> None:
        """Let another analyst have the tenant."""

    async def ready(self) -> bool:
        """Asked often. False when the store had to be made anew: what was written before is gone."""

    async def restart(self, tenant_id: str) -> None:
        """Drop everything of a tenant: its record is folded from the beginning."""


class Committed(NamedTuple):
    """One number of the record, as it was written: what happened to it later are other numbers."""

    seq: int
    session_no: int  # 0 when it belongs to none
    session_id: str | None
    record: bytes
    # Of the message archived under this number; None when there is none.
    message_id: str | None
    step_id: str | None
    message_type: str | None
    state: str | None
    parents: str | None  # names, a line each
    parent_inferred: int | None
    entropy: float | None
    raw: bytes | None


class Commits(Protocol):
    """The record as the analyst reads it, in short transactions."""

    async def heads(self) -> dict[str, int]:
        """Every tenant not disabled, and the last number of its record."""

    async def committed(self, tenant_id: str, after: int, limit: int) -> list[Committed]:
        """Numbers past a cursor, in order, each with the message it archived."""

    async def ended(self, tenant_id: str, numbers: Sequence[int]) -> list[Committed]:
        """Held messages as they went on: their state after the hold, and the content that was forwarded."""

    async def rows(self, tenant_id: str, table: str, **where: Any) -> list[dict[str, Any]]: ...
