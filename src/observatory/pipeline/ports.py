"""The ports of the write pipeline: interfaces of the store and the bus. Each docstring is the contract.

Adapters live in `store/` and `bus/`; only `bootstrap.py` names them. No driver exception crosses a
port: a failure is raised as `NotDurable` (nothing was written) or `StatementFailed` (this batch
contains a row the database refuses; nothing was written).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import msgspec

from observatory.ledger.chain import ChainHead
from observatory.pipeline.rows import KillSwitchAcknowledgements, KillSwitchCounts
from observatory.pipeline.state import BatchState, Principal, ReadSet, TransactionChanges

T = TypeVar("T")


class Transaction(Protocol):
    """One tenant, its chain head locked from `load` to the end. Used in the store's own thread."""

    def load(self, tenant_id: str, read_set: ReadSet, known: BatchState | None) -> BatchState:
        """Lock the head first, then read each table at most once.

        `known` is the state after the previous batch: what is still current need not be read again.
        """

    def read_more(self, memory: BatchState, read_set: ReadSet) -> None:
        """Read further rows that turned out to be needed, under the same lock."""

    def save(self, memory: BatchState, changes: TransactionChanges) -> None:
        """Write the changes, the touched rows of the batch state and the new head. Order of rows is kept."""


class SqlStatement(NamedTuple):
    """SQL in the dialect of the adapter that built it, with all its values."""

    sql: str
    values: Sequence[Any]
    must_hit: bool = False  # an update that finds no row contradicts what is stored


class PreparedBatch(msgspec.Struct, frozen=True):
    """A batch whose rows are built: it shares nothing with the batch state it was built from."""

    tenant_id: str
    head: SqlStatement  # moves the head, and only from the head the batch was computed from
    statements: list[SqlStatement]


class Writer(Protocol):
    """The only way to change the record.

    A batch is run under the lock (`transact`), or computed without it (`look`, `finish`) while another
    is being written, and then written only if the head has not moved (`write`). A lane is used by two
    threads: one calls `transact` and `write`, the other `look` and `look_more`.
    """

    def lane(self, tenant_id: str) -> int:
        """Which of `lanes` commits this tenant; one tenant never has two."""

    @property
    def lanes(self) -> int: ...

    @property
    def mixes_tenants(self) -> bool:
        """Whether one transaction may contain rows of several tenants. False where each tenant has its own
        lock: two transactions could deadlock."""

    def transact(self, lane: int, unit: Callable[[Transaction], T]) -> T:
        """Run `unit` in one durable transaction and return its value only after the commit.

        Called from the lane's own thread. On any exception nothing is written. Durable means
        SQLite WAL with synchronous=FULL, or PostgreSQL with synchronous_commit=on.
        """

    def look(
        self, lane: int, tenant_id: str, read_set: ReadSet, known: BatchState | None, is_pending: bool
    ) -> BatchState | None:
        """The rows a batch needs, read without a lock; None when they can only be read under the lock.

        `known` is the state after the previous batch. If that batch `is_pending`, still being written, its
        state is trusted and checked by `write`. Raises NotDurable when nothing can be read.
        """

    def read_more(self, lane: int, memory: BatchState, read_set: ReadSet) -> None:
        """The same for messages that join a batch already begun."""

    def finish(self, base: ChainHead, memory: BatchState, changes: TransactionChanges) -> PreparedBatch:
        """The rows of a batch that was computed from `base`. The batch state may be changed afterwards."""

    def write(
        self, lane: int, batch: PreparedBatch, then: Callable[[Transaction], None] | None = None
    ) -> bool:
        """Lock the head; write the batch in one durable transaction, as `transact` does, if the head is its
        base. False, and nothing of it is written, if it is not. `then` is run in that transaction either way.
        """

    def close_lane(self, lane: int) -> None:
        """Close both connections of the lane, which must not be in use."""


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
    raw: bytes | None  # as the agent sent it
    # The content a person replaced it with, which is or would be forwarded.
    rewritten: bytes | None = None
    entropy: float | None = None  # as the gateway computed it
    shredded_by: int | None = None  # the number of the event that deleted `raw`


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Half-open on `after`/`before` (exclusive sequence numbers), inclusive since, exclusive until."""

    after: int | None = None
    before: int | None = None
    trace_id: str | None = None
    entity_id: str | None = None
    since_ns: int | None = None
    until_ns: int | None = None
    severity_min: int | None = None
    senders: tuple[str, ...] = ()  # entity ids; empty means all


class MessageFilter(msgspec.Struct, frozen=True, kw_only=True):
    after: int | None = None
    before: int | None = None
    session_id: str | None = None
    agent: str | None = None
    message_type: str | None = None
    state: str | None = None


class Archive(Protocol):
    """Committed rows of one tenant. Never blocks the writer."""

    async def head(self, tenant_id: str) -> tuple[int, str]:
        """The last committed (sequence_number, event_hash); (0, genesis) for an empty or unknown tenant."""

    async def events(
        self, tenant_id: str, where: EventFilter, limit: int, newest_first: bool
    ) -> list[StoredEvent]: ...

    async def messages(
        self, tenant_id: str, where: MessageFilter, limit: int, newest_first: bool
    ) -> list[StoredMessage]: ...

    async def message(self, tenant_id: str, id_text: str) -> StoredMessage | None:
        """By message id, step name or step id (UUID); None when this tenant has no such message."""


class Directory(Protocol):
    """Tenants, users, keys, agents, sessions and versions as last committed."""

    async def principal_by_key(self, public_id: str) -> tuple[Principal, bytes] | None:
        """The principal and the stored key hash for a key's public part; None if unknown, expired or
        revoked."""

    async def rows(self, tenant_id: str, table: str, **where: Any) -> list[dict[str, Any]]:
        """Rows of a small table of this tenant, unordered; a non-empty list matches any of its values."""

    async def sessions_page(
        self, tenant_id: str, before: int | None, limit: int, severity: str | None = None
    ) -> list[dict[str, Any]]:
        """Sessions by last activity, newest first; `before` is the last activity on the previous page."""

    async def tenant_rows(self) -> list[dict[str, Any]]:
        """Every tenant of the deployment, oldest first; visible only to the home tenant's admin."""

    async def heads(self) -> dict[str, int]:
        """Every enabled tenant, and the last sequence number of its record."""

    async def login_by_token(self, token_hash: bytes) -> dict[str, Any] | None:
        """A valid login link or browser cookie, with its user's current role."""


class InboxDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """An item of an agent's inbox. `raw` is the content of the message it carries, as delivered."""

    sequence_number: int
    agent_no: int
    kind: str
    created_ns: int
    given_ns: int | None = None
    session_no: int = 0
    # All three are None without a session.
    session_id: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    message_id: str | None = None
    message_type: str | None = None
    sender_id: str | None = None
    sender_entity: str | None = None
    body: str | None = None
    raw: bytes | None = None


class CommittedDelivery(NamedTuple):
    """A delivery was committed. `access_version` is the tenant's at the time of reading."""

    sequence_number: int
    agent_no: int
    kind: str
    state: str
    access_version: int


class PendingFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which of an agent's pending deliveries: exclusive `after`, inclusive `until`."""

    agent_no: int
    after: int = 0
    until: int | None = None
    kind: str | None = None


class KillSwitchCoverage(msgspec.Struct, frozen=True):
    """The agents covered by engaged kill switches now."""

    everyone: bool = False
    agents: frozenset[int] = frozenset()

    def covers(self, agent_no: int) -> bool:
        return self.everyone or agent_no in self.agents


class Inbox(Protocol):
    """Deliveries of agents, as last committed, in sequence order. A delivery's key is (number, agent)."""

    async def arrivals(self, tenant_id: str, after: tuple[int, int], limit: int) -> list[CommittedDelivery]:
        """Every delivery after a key, of all agents; without content."""

    async def pending(self, tenant_id: str, where: PendingFilter, limit: int) -> list[InboxDelivery]:
        """The unacknowledged deliveries of one agent, with content."""

    async def deliveries(
        self, tenant_id: str, keys: Sequence[tuple[int, int]], content: bool
    ) -> list[InboxDelivery]:
        """The deliveries with these keys, in any state; unknown keys are left out."""

    async def paused_sessions(self, tenant_id: str, agent_no: int) -> list[str]:
        """Ids of the sessions in which a person paused this agent."""

    async def instructed(self, tenant_id: str, agent_no: int) -> int:
        """The newest version of its instructions that waits for this agent; 0 without one."""

    async def stops(self, tenant_id: str) -> KillSwitchCoverage: ...


class KillSwitchReach(Protocol):
    """What kill switches would affect and do affect, as last committed."""

    async def spelt(self, tenant_id: str, **agents: str) -> dict[str, list[str]]:
        """The stored values of these agent columns that are spelled like the given ones
        (`protocol/spelling.py`)."""

    async def reach(self, tenant_id: str, **agents: str) -> KillSwitchCounts:
        """Counts of the agents with these column values; without any, of the whole tenant."""

    async def acknowledgements(
        self, tenant_id: str, number: int, most: int, **agents: str
    ) -> KillSwitchAcknowledgements:
        """Acknowledgements of orders under this number; at most `most` rows of agents without one, last heard
        first."""

    async def waiting(self, tenant_id: str) -> list[tuple[str, int]]:
        """(session id, held messages) of messages held by neither a gate nor a pause, oldest first."""


class SilentAgent(msgspec.Struct, frozen=True):
    """A registered agent and the time of its last heartbeat."""

    agent_no: int
    entity_id: str
    heartbeat_ns: int


class AgentBacklog(msgspec.Struct, frozen=True):
    """Work without a recipient: parked (agent 0) by address, or left with an evicted agent."""

    agent_no: int
    address: str | None
    waiting: int


class BacklogDelivery(msgspec.Struct, frozen=True):
    """One delivery of a backlog: what is needed to reassign it."""

    sequence_number: int
    agent_no: int
    sender_no: int
    session_no: int
    address: str | None
    message_seq: int
    trace_id: str
    message_id: str | None = None


class TrafficEdge(msgspec.Struct, frozen=True):
    """Messages from one agent to another; `place` instead of the receiver when they are parked (agent 0)."""

    sender_no: int
    agent_no: int
    place: str | None
    messages: int
    recent: int
    unacknowledged: int
    oldest_ns: int | None  # the oldest unacknowledged one


class AgentTraffic(Protocol):
    """Messages between agents and which of them wait, as last committed."""

    async def silent(self, tenant_id: str, before_ns: int, limit: int) -> list[SilentAgent]:
        """Agents, not evicted, whose last heartbeat is no later than `before_ns`, the longest silent
        first."""

    async def rooms(self, tenant_id: str, agent_no: int) -> list[str]:
        """Ids of the sessions this agent currently shares with others, newest first."""

    async def backlog(self, tenant_id: str) -> list[AgentBacklog]: ...

    async def stranded(
        self, tenant_id: str, agent_no: int, address: str | None, limit: int
    ) -> list[BacklogDelivery]:
        """The deliveries of one backlog, oldest first."""

    async def edges(self, tenant_id: str, since_ns: int, recent_ns: int) -> list[TrafficEdge]:
        """Deliveries since `since_ns`, by sender and receiver; a reassigned one counts for its new
        receiver."""

    async def latencies(self, tenant_id: str, since_ns: int, limit: int) -> list[tuple[int, int, int]]:
        """(sender, receiver, ns from delivery to acknowledgement) of the newest acknowledged since
        `since_ns`."""


class Holds(Protocol):
    """Held messages, and gates that are due."""

    async def holds_page(
        self, tenant_id: str, after: int | None, limit: int, gates_only: bool
    ) -> list[dict[str, Any]]:
        """Open holds in arrival order, after a sequence number."""

    async def gates_due(self, tenant_id: str, now_ns: int, limit: int) -> list[tuple[str, int]]:
        """(session id, sequence number) of open gates past their deadline."""

    async def pauses_acknowledged(self, tenant_id: str, limit: int) -> list[dict[str, Any]]:
        """Pauses in force, acknowledged and not yet confirmed, with their session and entity ids."""


class AlertedSessions(Protocol):
    """Sessions with an open alert, and their messages."""

    async def alarmed(self, tenant_id: str, limit: int) -> list[dict[str, Any]]:
        """Rows of sessions with an alert or a loop found by the second detector, newest first."""

    async def contents(self, tenant_id: str, numbers: Iterable[int]) -> dict[int, tuple[str, bytes | None]]:
        """Number → (message type, archived bytes) of the messages among these; None once shredded."""


class Store(
    Writer, Archive, Directory, Holds, Inbox, KillSwitchReach, AgentTraffic, AlertedSessions, Protocol
):
    """What a database adapter implements."""

    dialect: str

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def ping(self) -> None:
        """Raise NotDurable when the database cannot be written now."""


class CommitNotice(msgspec.Struct, frozen=True):
    """A notification on the bus: this tenant's record now reaches `sequence_number`."""

    tenant_id: str
    sequence_number: int


class Bus(Protocol):
    """Wakes readers. It may lose anything: a reader that missed a notice reads the archive."""

    def publish(self, notice: CommitNotice) -> None:
        """Never blocks; called only for committed rows."""

    def subscribe(self) -> AsyncIterator[CommitNotice]: ...


@runtime_checkable
class SupportsListen(Protocol):
    """A store that can report rows committed by other processes."""

    async def listen(self, callback: Callable[[CommitNotice], None]) -> None:
        """Call `callback` for every commit on this database until cancelled; may miss some."""


class Lease(NamedTuple):
    """A lease and its holder, as the database sees it; `now_ns` is the database's own clock."""

    name: str
    holder: str
    epoch: int
    expires_ns: int
    ticked_ns: int
    now_ns: int


@runtime_checkable
class Leases(Protocol):
    """Leases of the deployment. Time is the database's: no clocks of gateways are compared."""

    async def hold_lease(self, name: str, holder: str, lease_s: float) -> int | None:
        """Take the lease if it is free or expired, renew it if it is this holder's: its epoch; else None.

        A new holder gets a higher epoch than any before, also after the lease was released.
        Raises NotDurable when the database is unavailable.
        """

    async def end_lease(self, name: str, holder: str) -> None:
        """Release it at once, if it is this holder's."""

    async def lease(self, name: str) -> Lease | None:
        """As last held; None when it was never held."""

    async def leases(self, beginning: str) -> list[Lease]:
        """Leases whose name has this prefix, by name, expired ones included."""


class RecordReads(Protocol):
    """Committed rows of one tenant, from the store's own reads. NotDurable when nothing can be read."""

    async def messages(
        self, tenant_id: str, where: MessageFilter, limit: int, newest_first: bool
    ) -> list[StoredMessage]: ...

    async def rows(self, tenant_id: str, table: str, **where: Any) -> list[dict[str, Any]]: ...
