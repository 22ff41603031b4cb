"""The few promises the corridor asks of the world outside. Each docstring states the law.

Adapters live in `store/` and `bus/`; only `bootstrap.py` names them. No driver exception crosses a
port: what fails is raised as `NotDurable` (nothing was written) or `StatementFailed` (this batch
holds a row the database refuses; nothing was written).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol, TypeVar, runtime_checkable

import msgspec

from observatory.state import Changes, Memory, Principal, Wants

T = TypeVar("T")


class Transaction(Protocol):
    """One tenant, its chain head locked from `load` to the end. Used in the store's own thread."""

    def load(self, tenant_id: str, wants: Wants, known: Memory | None) -> Memory:
        """Lock the head first, then read each table at most once.

        `known` is the memory of the batch before: what of it is still true need not be read again.
        """

    def save(self, memory: Memory, changes: Changes) -> None:
        """Write the changes, the rows of memory that were touched and the new head. Order of rows is kept."""


class Writer(Protocol):
    """The one way to change the record."""

    def lane(self, tenant_id: str) -> int:
        """Which of `lanes` commits this tenant; one tenant never has two."""

    @property
    def lanes(self) -> int: ...

    def transact(self, lane: int, unit: Callable[[Transaction], T]) -> T:
        """Run `unit` in one durable transaction and return its value only after the commit.

        Called from the lane's own thread. On any exception nothing is written. Durable means
        SQLite WAL with synchronous=FULL, or PostgreSQL with synchronous_commit=on.
        """

    def close_lane(self, lane: int) -> None: ...


class StoredEvent(msgspec.Struct, frozen=True):
    """An audit event as it was hashed: `record` is the exact bytes."""

    sequence_number: int
    record: bytes
    leaf_hash: bytes


class StoredMessage(msgspec.Struct, frozen=True):
    sequence_number: int
    message_id: str
    session_id: str
    step_id: str
    message_type: str
    state: str
    parents: str | None
    parent_inferred: bool
    raw: bytes | None


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Half-open on `after`/`before` (exclusive sequence numbers), inclusive since, exclusive until."""

    after: int | None = None
    before: int | None = None
    trace_id: str | None = None
    entity_id: str | None = None
    since_ns: int | None = None
    until_ns: int | None = None
    severity_min: int | None = None


class MessageFilter(msgspec.Struct, frozen=True, kw_only=True):
    after: int | None = None
    before: int | None = None
    session_id: str | None = None
    agent: str | None = None
    message_type: str | None = None
    state: str | None = None


class Archive(Protocol):
    """Committed rows only, of the one tenant named. Never blocks the writer."""

    async def head(self, tenant_id: str) -> tuple[int, str]:
        """The last committed (sequence_number, event_hash); (0, genesis) for an empty or unknown tenant."""

    async def events(
        self, tenant_id: str, where: EventFilter, limit: int, newest_first: bool
    ) -> list[StoredEvent]: ...

    async def messages(
        self, tenant_id: str, where: MessageFilter, limit: int, newest_first: bool
    ) -> list[StoredMessage]: ...

    async def message(self, tenant_id: str, id_text: str) -> StoredMessage | None:
        """By message id, step name or step id (UUID); None when this tenant has none such."""


class Directory(Protocol):
    """Tenants, users, keys, agents, sessions and versions as last committed."""

    async def principal_by_key(self, public_id: str) -> tuple[Principal, bytes] | None:
        """The principal and the stored key hash for a key's public part; None if unknown or ended."""

    async def rows(self, tenant_id: str, table: str, **where: Any) -> list[dict[str, Any]]:
        """Rows of a small table of this tenant, in no order."""

    async def sessions_page(self, tenant_id: str, before: int | None, limit: int) -> list[dict[str, Any]]:
        """Sessions by last activity, newest first; `before` is the last activity of the page before."""

    async def tenant_rows(self) -> list[dict[str, Any]]:
        """Every tenant of the house, oldest first; shown only to the home tenant's admin."""

    async def login_by_token(self, token_hash: bytes) -> dict[str, Any] | None:
        """A login link or browser cookie still good, with its user's present role."""


class Store(Writer, Archive, Directory, Protocol):
    """A database adapter keeps all three promises."""

    dialect: str

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def ping(self) -> None:
        """Raise NotDurable when the database cannot be written now."""


class Notice(msgspec.Struct, frozen=True):
    """What the bus says: this tenant's record now reaches `sequence_number`."""

    tenant_id: str
    sequence_number: int


class Bus(Protocol):
    """Wakes readers. It may lose anything: a reader that missed a notice looks at the archive."""

    def publish(self, notice: Notice) -> None:
        """Never blocks; called only for committed rows."""

    def subscribe(self) -> AsyncIterator[Notice]: ...


@runtime_checkable
class Listens(Protocol):
    """A store that can tell of rows committed by others."""

    async def listen(self, callback: Callable[[Notice], None]) -> None:
        """Call back for every commit on this database until cancelled; may miss some."""
