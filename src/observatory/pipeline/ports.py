"""The few promises the corridor asks of the world outside. Each docstring states the law.

Adapters live in `store/` and `bus/`; only `bootstrap.py` names them. No driver exception crosses a
port: what fails is raised as `NotDurable` (nothing was written) or `StatementFailed` (this batch
holds a row the database refuses; nothing was written).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import msgspec

from observatory.ledger.chain import Head
from observatory.pipeline.rows import Obeyed, Reach
from observatory.pipeline.state import Changes, Memory, Principal, Wants

T = TypeVar("T")


class Transaction(Protocol):
    """One tenant, its chain head locked from `load` to the end. Used in the store's own thread."""

    def load(self, tenant_id: str, wants: Wants, known: Memory | None) -> Memory:
        """Lock the head first, then read each table at most once.

        `known` is the memory of the batch before: what of it is still true need not be read again.
        """

    def look_more(self, memory: Memory, wants: Wants) -> None:
        """Read what turned out to be wanted as well, under the same lock."""

    def save(self, memory: Memory, changes: Changes) -> None:
        """Write the changes, the rows of memory that were touched and the new head. Order of rows is kept."""


class Statement(NamedTuple):
    """In the words of the database that made it, with every value at hand."""

    sql: str
    values: Sequence[Any]
    must_hit: bool = False  # an update that finds no row contradicts what is stored


class Finished(msgspec.Struct, frozen=True):
    """A batch whose rows are built: it shares nothing with the memory it was made from."""

    tenant_id: str
    head: Statement  # moves the head, and only from where the thinking began
    statements: list[Statement]


class Writer(Protocol):
    """The one way to change the record.

    A batch is run under the lock (`transact`), or thought about without it (`look`, `finish`) while another
    is being written, and then written only if the head has not moved (`write`). A lane is used by two
    threads: one calls `transact` and `write`, the other `look` and `look_more`.
    """

    def lane(self, tenant_id: str) -> int:
        """Which of `lanes` commits this tenant; one tenant never has two."""

    @property
    def lanes(self) -> int: ...

    @property
    def mixes_tenants(self) -> bool:
        """Whether one transaction may hold rows of several tenants: not where each has a lock of its own, or
        two transactions could wait for each other."""

    def transact(self, lane: int, unit: Callable[[Transaction], T]) -> T:
        """Run `unit` in one durable transaction and return its value only after the commit.

        Called from the lane's own thread. On any exception nothing is written. Durable means
        SQLite WAL with synchronous=FULL, or PostgreSQL with synchronous_commit=on.
        """

    def look(
        self, lane: int, tenant_id: str, wants: Wants, known: Memory | None, is_pending: bool
    ) -> Memory | None:
        """What a batch must know, read without a lock; None when it can be known only under the lock.

        `known` is the memory of the batch before. If that one `is_pending`, still being written, its memory
        is believed: `write` finds out. NotDurable when nothing can be read.
        """

    def look_more(self, lane: int, memory: Memory, wants: Wants) -> None:
        """The same for messages that join a batch already begun."""

    def finish(self, base: Head, memory: Memory, changes: Changes) -> Finished:
        """The rows of a batch that was thought about from `base`. Memory may be changed afterwards."""

    def write(self, lane: int, batch: Finished, then: Callable[[Transaction], None] | None = None) -> bool:
        """Lock the head; write the batch in one durable transaction, as `transact` does, if the head is its
        base. False, and nothing of it is written, if it is not. `then` is run in that transaction either way.
        """

    def close_lane(self, lane: int) -> None:
        """Close both sides of the lane; nobody may be using it."""


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
    # What was put in its place by a person, and is or would be forwarded.
    rewritten: bytes | None = None
    entropy: float | None = None  # as the gateway computed it
    shredded_by: int | None = None  # the number of the event by which `raw` went


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Half-open on `after`/`before` (exclusive sequence numbers), inclusive since, exclusive until."""

    after: int | None = None
    before: int | None = None
    trace_id: str | None = None
    entity_id: str | None = None
    since_ns: int | None = None
    until_ns: int | None = None
    severity_min: int | None = None
    senders: tuple[str, ...] = ()  # entity ids; none means everybody


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
        """Rows of a small table of this tenant, in no order; a list (not empty) means any of its values."""

    async def sessions_page(
        self, tenant_id: str, before: int | None, limit: int, severity: str | None = None
    ) -> list[dict[str, Any]]:
        """Sessions by last activity, newest first; `before` is the last activity of the page before."""

    async def tenant_rows(self) -> list[dict[str, Any]]:
        """Every tenant of the house, oldest first; shown only to the home tenant's admin."""

    async def heads(self) -> dict[str, int]:
        """Every tenant not disabled, and the last number of its record."""

    async def login_by_token(self, token_hash: bytes) -> dict[str, Any] | None:
        """A login link or browser cookie still good, with its user's present role."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """Something an agent is to be told. `raw` is the content of the message it carries, as delivered."""

    sequence_number: int
    agent_no: int
    kind: str
    created_ns: int
    given_ns: int | None = None
    session_no: int = 0
    # Of no session: all three are None.
    session_id: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    message_id: str | None = None
    message_type: str | None = None
    sender_id: str | None = None
    sender_entity: str | None = None
    body: str | None = None
    raw: bytes | None = None


class Arrived(NamedTuple):
    """A delivery was committed. `access_version` is the tenant's at the time of reading."""

    sequence_number: int
    agent_no: int
    kind: str
    state: str
    access_version: int


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """Which of an agent's pending deliveries: exclusive `after`, inclusive `until`."""

    agent_no: int
    after: int = 0
    until: int | None = None
    kind: str | None = None


class Stops(msgspec.Struct, frozen=True):
    """Whom engaged kill-switches cover now."""

    everyone: bool = False
    agents: frozenset[int] = frozenset()

    def covers(self, agent_no: int) -> bool:
        return self.everyone or agent_no in self.agents


class Inbox(Protocol):
    """What waits for agents, as last committed, in sequence order. A delivery's key is (number, agent)."""

    async def arrivals(self, tenant_id: str, after: tuple[int, int], limit: int) -> list[Arrived]:
        """Every delivery past a key, of all agents; without content."""

    async def pending(self, tenant_id: str, where: Pending, limit: int) -> list[Delivery]:
        """What one agent has not acknowledged, with its content."""

    async def deliveries(
        self, tenant_id: str, keys: Sequence[tuple[int, int]], content: bool
    ) -> list[Delivery]:
        """Those named, whatever their state; an unknown key is left out."""

    async def paused_sessions(self, tenant_id: str, agent_no: int) -> list[str]:
        """Ids of the sessions in which a person has paused this agent."""

    async def instructed(self, tenant_id: str, agent_no: int) -> int:
        """The newest version of its instructions that waits for this agent; 0 when none does."""

    async def stops(self, tenant_id: str) -> Stops: ...


class Standstill(Protocol):
    """What kill-switches would hold and do hold, as last committed."""

    async def spelt(self, tenant_id: str, **agents: str) -> dict[str, list[str]]:
        """The values of these columns of agents that read as these words do (`protocol/spelling.py`)."""

    async def reach(self, tenant_id: str, **agents: str) -> Reach:
        """Of agents whose columns read as these; without any, of the whole tenant."""

    async def obeyed(self, tenant_id: str, number: int, most: int, **agents: str) -> Obeyed:
        """By the orders under this number; of those who have not obeyed at most so many, last heard first."""

    async def waiting(self, tenant_id: str) -> list[tuple[str, int]]:
        """(session id, held messages) where neither gate nor pause holds them, oldest first."""


class Silent(msgspec.Struct, frozen=True):
    """An agent in the map, and when its heart was last heard."""

    agent_no: int
    entity_id: str
    heartbeat_ns: int


class Backlog(msgspec.Struct, frozen=True):
    """Work that waits for somebody: parked (agent 0) by address, or left with an evicted agent."""

    agent_no: int
    address: str | None
    waiting: int


class Stranded(msgspec.Struct, frozen=True):
    """One delivery of a backlog: enough to hand it on."""

    sequence_number: int
    agent_no: int
    sender_no: int
    session_no: int
    address: str | None
    message_seq: int
    trace_id: str
    message_id: str | None = None


class EdgeCount(msgspec.Struct, frozen=True):
    """What went from one agent to another; `place` instead of the other when it is parked (agent 0)."""

    sender_no: int
    agent_no: int
    place: str | None
    messages: int
    recent: int
    unacknowledged: int
    oldest_ns: int | None  # of those


class Traffic(Protocol):
    """What goes between agents and what of it waits, as last committed."""

    async def silent(self, tenant_id: str, before_ns: int, limit: int) -> list[Silent]:
        """Agents not evicted whose last heartbeat is no later than that, the most silent first."""

    async def rooms(self, tenant_id: str, agent_no: int) -> list[str]:
        """Ids of the sessions with others in which this agent is now, the newest first."""

    async def backlog(self, tenant_id: str) -> list[Backlog]: ...

    async def stranded(
        self, tenant_id: str, agent_no: int, address: str | None, limit: int
    ) -> list[Stranded]:
        """The deliveries of one backlog, oldest first."""

    async def edges(self, tenant_id: str, since_ns: int, recent_ns: int) -> list[EdgeCount]:
        """Deliveries made since, by sender and receiver; what was handed on counts where it went."""

    async def latencies(self, tenant_id: str, since_ns: int, limit: int) -> list[tuple[int, int, int]]:
        """(sender, receiver, ns from delivery to acknowledgement) of the newest acknowledged since."""


class Holds(Protocol):
    """What is held, and what is due."""

    async def holds_page(
        self, tenant_id: str, after: int | None, limit: int, gates_only: bool
    ) -> list[dict[str, Any]]:
        """Open holds in arrival order, past a sequence number."""

    async def gates_due(self, tenant_id: str, now_ns: int, limit: int) -> list[tuple[str, int]]:
        """(session id, sequence number) of open gates whose time is over."""

    async def pauses_acknowledged(self, tenant_id: str, limit: int) -> list[dict[str, Any]]:
        """Pauses in force, acknowledged and not yet confirmed, with their session and entity ids."""


class Alarms(Protocol):
    """Sessions in an alarm, and what was said last."""

    async def alarmed(self, tenant_id: str, limit: int) -> list[dict[str, Any]]:
        """Rows of sessions that are not normal or in a loop of the second detector, newest first."""

    async def contents(self, tenant_id: str, numbers: Iterable[int]) -> dict[int, tuple[str, bytes | None]]:
        """Number → (message type, bytes as archived) of the messages among these; None once shredded."""


class Store(Writer, Archive, Directory, Holds, Inbox, Standstill, Traffic, Alarms, Protocol):
    """A database adapter keeps all of these promises."""

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
