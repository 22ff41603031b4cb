"""Store protocol of the tenant's log: its hashes, and the checkpoints signed over them.

Implemented by every store; committed rows of one tenant. Level 0 is the events' own leaf hashes, so they are
not stored twice; the levels above are settled hashes that the sealer wrote.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from observatory.errors import ObservatoryError
from observatory.pipeline.ports import EventFilter, StoredEvent


class LogBroken(ObservatoryError):
    """Rows of the log are missing, invalid, or do not match what was signed."""


def bytes_of(cell: Any) -> bytes:
    """A cell that must hold bytes; a tampered cell of another type is not converted."""
    if not isinstance(cell, bytes | bytearray | memoryview):
        raise LogBroken("a cell of the log does not hold bytes")
    return bytes(cell)


def number_of(cell: Any) -> int:
    if not isinstance(cell, int) or cell < 0:
        raise LogBroken("a cell of the log does not hold a number")
    return cell


class StoredCheckpoint(msgspec.Struct, frozen=True):
    """A signed checkpoint; `note` is served byte for byte."""

    size: int
    root: bytes
    note: bytes
    signed_ns: int


@runtime_checkable
class LogRows(Protocol):
    async def hashes(self, tenant_id: str, level: int, first: int, count: int) -> bytes:
        """Hashes of a level in order, end to end, 32 bytes each; fewer where there are no more."""

    async def checkpoint(self, tenant_id: str, at_most: int | None = None) -> StoredCheckpoint | None:
        """The newest checkpoint, or the newest of at most this size."""

    async def event(self, tenant_id: str, number: int) -> StoredEvent | None: ...

    async def head(self, tenant_id: str) -> tuple[int, str]: ...

    async def rows(self, tenant_id: str, table: str, **where: Any) -> list[dict[str, Any]]: ...

    async def events(
        self, tenant_id: str, where: EventFilter, limit: int, newest_first: bool
    ) -> list[StoredEvent]: ...


class LogRefusal(msgspec.Struct, frozen=True):
    """Why a tenant's log is not signed."""

    kind: Literal["rollback", "key", "marks", "broken"]
    sentence: str
