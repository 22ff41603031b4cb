"""What the corridor works on: principals, submissions, the batch's memory, verdicts and finished rows.

Plain data without I/O, so that `ports` can name it and stages stay pure. `Memory` is the working set
of one batch: loaded under the tenant's chain-head lock, changed message by message, saved once.
Who changes a row says so with `touch`: what was touched is written, nothing else is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from observatory.ledger.chain import Head
from observatory.pipeline.rows import (
    Agent,
    AuditRow,
    Breaker,
    DeliveryRow,
    Hold,
    Kept,
    Member,
    MessageRow,
    Session,
    Step,
    Tenant,
    Write,
)
from observatory.protocol.certificates import Binding, Certificate
from observatory.protocol.message import Message
from observatory.protocol.otel import TraceContext
from observatory.protocol.redaction import RedactionBook
from observatory.protocol.rulebook import (
    Budget,
    DecisionSettings,
    DetectorSettings,
    KillSwitch,
    PolicyRule,
    Route,
    RoutingSettings,
)
from observatory.protocol.versions import Judgement, VersionEntry

Role = Literal["viewer", "auditor", "approver", "operator", "admin", "agent"]
HOME_TENANT = "tnt_default"
Row = TypeVar("Row")
# Rows that are kept from one batch to the next; beyond it they are read again.
KEPT_ROWS = 20_000


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who is acting: the owner of a key or of a signed-in browser."""

    tenant_id: str
    role: Role
    key_id: str
    user_id: str | None = None
    agent_id: str | None = None
    scopes: tuple[str, ...] = ()
    access_version: int = 0
    expires_ns: int | None = None
    # Of an agent's key: the user who made it. They request what is sent with it.
    key_maker: str | None = None
    # What the connection proved in its handshake; None when it showed none.
    certificate: Certificate | None = None

    @property
    def entity_id(self) -> str:
        return self.user_id or self.key_id

    def has_requested(self, requested_by: str, key_maker: str | None) -> bool:
        """Whether this is who sent something, or who made the agent's key it was sent with."""
        mine = (self.entity_id, self.key_id, self.user_id)
        return requested_by in mine or (key_maker is not None and key_maker in mine)

    @property
    def is_browser(self) -> bool:
        """Whether it signed in by a link and holds a cookie, not a key."""
        return self.key_id.startswith("log_")

    @property
    def is_bound(self) -> bool:
        """Whether the server can vouch that this agent is who it says."""
        return self.role == "agent" and self.agent_id is not None

    @property
    def entity_type(self) -> str:
        return "agent" if self.role == "agent" else "user" if self.user_id else "system"


class Rulebook(msgspec.Struct, frozen=True):
    """What operators have ruled for the tenant; cached, its number is re-read under the lock."""

    version: int = -1
    versions: dict[str, dict[str, VersionEntry]] = {}
    # Versions met without being registered: each was told of once (ruling 5).
    noted: frozenset[tuple[str, str]] = frozenset()
    policies: tuple[PolicyRule, ...] = ()
    budgets: tuple[Budget, ...] = ()
    routes: dict[str, Route] = {}
    # Engaged and releasing ones only.
    kill_switches: tuple[KillSwitch, ...] = ()
    # agent type -> the version of its instructions in force
    instructions: dict[str, int] = {}
    # Capabilities that have a breaker; its counts are rows of their own.
    breakers: frozenset[str] = frozenset()
    detectors: DetectorSettings = DetectorSettings()
    decisions: DecisionSettings = DecisionSettings()
    routing: RoutingSettings = RoutingSettings()
    # entity id -> the addresses (`type:x`, `cluster:y`) an operator gave it
    grants: dict[str, frozenset[str]] = {}
    # None as long as no rule was ever made.
    redaction: RedactionBook | None = None
    # entity id of an agent -> the certificate without which nobody speaks as it
    certificates: dict[str, Binding] = {}
    # entity ids of agents a key is bound to; one that ran out counts until it is revoked
    bound: frozenset[str] = frozenset()


class Memory(msgspec.Struct):
    tenant: Tenant
    head: Head
    rulebook: Rulebook
    agents: dict[str, Agent] = {}
    sessions: dict[str, Session] = {}
    members: dict[tuple[int, int], Member] = {}
    # Steps that were there before: read from the archive, or foreseen from the batch that is being written.
    steps: dict[str, Step] = {}
    # Steps of this batch.
    fresh: dict[str, Step] = {}
    # session_no -> sequence number -> open hold; whole for every session in `sessions`
    holds: dict[int, dict[int, Hold]] = {}
    # session_no -> names and step ids of what was refused for good at a gate
    rejected: dict[int, set[str]] = {}
    breakers: dict[str, Breaker] = {}
    # Rare rows a batch named: table -> key -> row. Read anew each time, changed in place by who writes them.
    rows: dict[str, dict[Any, dict[str, Any]]] = {}
    # `type:x` or `cluster:y` -> entity ids of the agents that are meant, evicted ones left out
    fleet: dict[str, list[str]] = {}
    # Bytes of messages asked for, by sequence number: what a release forwards, what a decision asked.
    raws: dict[int, bytes] = {}
    # Of the messages asked for, those whose bytes are there.
    payloads: set[int] = msgspec.field(default_factory=set)
    # Name of a lease of the house -> its epoch. It cannot change before the transaction ends.
    leases: dict[str, int] = {}
    # (table, agent's number) -> how many of its own wait there, of those that were asked for
    waiting: dict[tuple[str, int], int] = {}
    noted: set[tuple[str, str]] = msgspec.field(default_factory=set)
    # (agent type, version) -> what the registry says, worked out once a batch
    judged: dict[tuple[str, str], tuple[Judgement, VersionEntry | None]] = {}
    gone_keys: set[str] = msgspec.field(default_factory=set)
    changed: list[Kept] = []

    def recall(self, known: Memory | None, is_pending: bool = False) -> None:
        """Take over the rows of the batch before, if nobody has appended since.

        What changes a session, an agent or a member appends an event: an unmoved head proves them true.
        While that batch is still being written its head is foreseen and the proof comes later, when this
        batch is written: all it left is taken over, its steps too, which cannot be read yet.
        """
        if known is None:
            return
        if is_pending:
            known.tenant.disabled = self.tenant.disabled
            self.tenant, self.head, self.steps = known.tenant, known.head, dict(known.fresh)
        if known.head == self.head:
            self.sessions, self.agents, self.members = known.sessions, known.agents, known.members
            self.holds, self.rejected, self.breakers = known.holds, known.rejected, known.breakers

    def step(self, name: str) -> Step | None:
        """What has this name, archived before or within this batch."""
        return self.fresh.get(name) or self.steps.get(name)

    def touch(self, row: Kept) -> None:
        """This row was made or changed and must be saved."""
        if not row.dirty:
            row.dirty = True
            self.changed.append(row)

    def touched(self, kind: type[Row]) -> list[Row]:
        return [row for row in self.changed if isinstance(row, kind)]

    def settled(self, keeps_steps: bool = False) -> Memory | None:
        """Once its rows are built: what the next batch may recall; None when it is too much to keep.

        Its own steps are kept for a batch that begins before they can be read.
        """
        held = sum(map(len, self.holds.values()))
        if len(self.sessions) + len(self.agents) + len(self.members) + held > KEPT_ROWS:
            return None
        for row in self.changed:
            row.dirty = False
        self.steps = {}
        if not keeps_steps:
            self.fresh = {}
        self.changed = []
        self.rows, self.fleet, self.raws, self.payloads = {}, {}, {}, set()  # read anew by who names them
        self.leases, self.waiting = {}, {}
        return self


class Wants(msgspec.Struct):
    """Every row a batch names, so that each table is asked once."""

    steps: set[str] = msgspec.field(default_factory=set)
    sessions: set[str] = msgspec.field(default_factory=set)
    agents: set[str] = msgspec.field(default_factory=set)
    # key id -> the access version it was last checked at; a newer version under the lock means: look again
    keys: dict[str, int] = msgspec.field(default_factory=dict)
    # table -> keys; see `ROW_KEYS` in store/memory.py for which column is the key
    rows: dict[str, set[Any]] = msgspec.field(default_factory=dict)
    addresses: set[str] = msgspec.field(default_factory=set)
    # Sessions whose held messages may be released: their bytes are needed too.
    releases: set[str] = msgspec.field(default_factory=set)
    # Archived messages whose bytes are needed, by sequence number.
    contents: set[int] = msgspec.field(default_factory=set)
    # Sessions whose members are meant: policies must know who they are.
    rooms: set[str] = msgspec.field(default_factory=set)
    # Held messages that are meant by name: theirs come first, however many wait.
    named: set[str | int] = msgspec.field(default_factory=set)
    # Archived messages of which must be known whether their bytes are still there, by sequence number.
    payloads: set[int] = msgspec.field(default_factory=set)
    # Leases of the house that must not change hands while this is decided and written.
    leases: set[str] = msgspec.field(default_factory=set)
    # (table, entity id of an agent) whose waiting rows are counted against its quota
    waiting: set[tuple[str, str]] = msgspec.field(default_factory=set)

    def row(self, table: str, key: Any) -> None:
        self.rows.setdefault(table, set()).add(key)

    def recipient(self, target: str) -> None:
        """An entity id, or an address: `type:…`, `cluster:…`, `session:…`."""
        if target.startswith(("type:", "cluster:")):
            self.addresses.add(target)
        elif target.startswith("session:"):
            self.sessions.add(target[8:])
            self.rooms.add(target[8:])
        else:
            self.agents.add(target)

    def add(self, other: Wants) -> None:
        self.steps |= other.steps
        self.sessions |= other.sessions
        self.agents |= other.agents
        self.addresses |= other.addresses
        self.releases |= other.releases
        self.named |= other.named
        self.rooms |= other.rooms
        self.contents |= other.contents
        self.payloads |= other.payloads
        self.leases |= other.leases
        self.waiting |= other.waiting
        for table, keys in other.rows.items():
            self.rows.setdefault(table, set()).update(keys)


class Draft(msgspec.Struct, kw_only=True, gc=False):
    """An audit event before the chain gives it its number and hashes."""

    event_type: str
    severity: int
    timestamp: str
    timestamp_ns: int
    trace_id: str
    summary: str
    span_id: str | None = None
    parent_span_id: str | None = None
    message_id: str | None = None
    message_type: str | None = None
    session_no: int = 0
    detail: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    sender_id: str | None = None
    sender_type: str = "system"
    # The key it was made with; None: that of the submission it comes of.
    key_id: str | None = None
    recipient_id: str | None = None
    hub_address: str | None = None
    trust_level: str | None = None
    # What refusal it tells of where no code of an answer says so: see `features/refusals/commands.py`.
    counts_as: str | None = None


class Changes(msgspec.Struct):
    """Everything one transaction writes, already numbered and hashed."""

    audit: list[AuditRow] = msgspec.field(default_factory=list)
    messages: list[MessageRow] = msgspec.field(default_factory=list)
    deliveries: list[DeliveryRow] = msgspec.field(default_factory=list)
    writes: list[Write] = msgspec.field(default_factory=list)
    # (the event that orders it, the messages whose bytes go)
    shreds: list[tuple[int, list[int]]] = msgspec.field(default_factory=list)


class Verdict(msgspec.Struct, gc=False):
    """How a submission ends: the code and body of its answer, and the events that tell of it."""

    code: int
    answer: Any
    events: list[Draft] = []
    writes: list[Write] = []
    # A refusal whose message is archived all the same, with the state `refused` (ruling 10).
    archived: bool = False


class Desk(Protocol):
    """Where acts and effects write. All of it goes into the one transaction of their batch."""

    memory: Memory
    changes: Changes
    now_ns: int

    def append(self, draft: Draft) -> int:
        """Chain an event; its sequence number."""

    def tell(self, sequence_number: int, agent_no: int, kind: str, body: dict[str, Any], **more: Any) -> None:
        """Put something into an agent's inbox. At most one for each event and agent."""


class Redacted(msgspec.Struct, frozen=True, gc=False):
    """What redaction did to a message: under which version, how often, and what had been sent."""

    version: int | None  # None when no rule is in force; what was sent is kept for the sake of repeats
    replaced: int
    sent: bytes
    # Digests it had under the rules of before: of a message without a step id, which is named by its own.
    before: tuple[bytes, ...] = ()


class Arrival(msgspec.Struct, gc=False):
    """A message that passed the interceptor."""

    message: Message
    principal: Principal
    received_ns: int
    size: int
    redacted: Redacted | None = None
    context: TraceContext | None = None  # of the request it came with


class Breach(msgspec.Struct):
    """A body that did not: its hash, its faults, and who sent it. Never the body."""

    principal: Principal
    received_ns: int
    agent_id: str | None
    capability_version: str | None
    reason: str
    raw_payload_hash: str
    answer: Any
    code: int = 422
    size: int = 256


class Act(msgspec.Struct):
    """An operator's or daemon's command: decided over the same memory, chained like the rest."""

    principal: Principal
    received_ns: int
    decide: Callable[[Desk], Verdict]
    wants: Wants = msgspec.field(default_factory=Wants)
    size: int = 1_024
    # Entity id of the agent in whose name this is done; who is bound to a certificate must have shown it.
    speaks_as: str | None = None
    # Appends no event: it may go into the transaction of any batch (`pipeline/piggyback.py`).
    rides: bool = False


Submission = Arrival | Breach | Act
