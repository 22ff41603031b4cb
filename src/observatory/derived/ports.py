"""The interfaces of the derived store, and of the record as the analyst reads it.

Law: only the analyst writes, through `apply`: the rows of consecutive events and the cursor's step past
them are one transaction, so nothing counts twice. Readers see committed rows of one tenant. Each feature adds
its reads as a protocol to the bases of `Derived`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from observatory.derived.seen import DerivedWrite, Finding

T = TypeVar("T")


class FoldProgress(msgspec.Struct, frozen=True):
    """How far a tenant's record was folded, and what was skipped on the way."""

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


class FoldStatus(Protocol):
    async def progress(self, tenant_id: str) -> FoldProgress:
        """All zero for a tenant of which nothing was folded."""

    async def findings(self, tenant_id: str, after: int, limit: int) -> list[StoredFinding]:
        """The findings after this number, in order."""


class Derived(FoldStatus, Protocol):
    """The derived store. NotDurable when nothing can be read."""

    def queries(self, kind: type[T]) -> T:
        """This store as the reads of one feature, which every opened store has."""

    async def start(self) -> None:
        """Open it; create it again when it is missing, broken or of another version."""

    async def stop(self) -> None: ...


class DerivedWriter(Derived, Protocol):
    """The analyst's side."""

    async def apply(
        self,
        tenant_id: str,
        after: int,
        until: int,
        at_ns: int,
        puts: Sequence[DerivedWrite],
        findings: Sequence[Finding],
        passed: tuple[int, int] = (0, 0),
    ) -> bool:
        """Write all of it and move the cursor from `after` to `until`, or do nothing.

        Clears come first, then what replaces, then what adds. False, and nothing is written, when the cursor
        is not at `after`: another analyst moved it. `passed` is (skipped, unread), added to the stored
        counts. StatementFailed when a row is refused.
        """

    async def claim(self, tenant_id: str) -> bool:
        """Whether this analyst may fold the tenant: alone, until it releases it or is gone. Called often."""

    async def release(self, tenant_id: str) -> None:
        """Let another analyst have the tenant."""

    async def ready(self) -> bool:
        """Called often. False when the store had to be created again: what was written before is gone."""

    async def restart(self, tenant_id: str) -> None:
        """Drop everything of a tenant: its record is folded from the beginning."""


class CommittedEvent(NamedTuple):
    """One event of the record, as it was written: what happened to it later are other events."""

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
        """Every tenant that is not disabled, and the last number of its record."""

    async def committed(self, tenant_id: str, after: int, limit: int) -> list[CommittedEvent]:
        """Events after a cursor, in order, each with the message it archived."""

    async def ended(self, tenant_id: str, numbers: Sequence[int]) -> list[CommittedEvent]:
        """Held messages after their hold: their new state, and the content that was forwarded."""

    async def rows(self, tenant_id: str, table: str, **where: Any) -> list[dict[str, Any]]: ...
