"""The types of the write pipeline: principals, submissions, the state of a batch, results and rows to write.

Plain data without I/O, so that `ports` can name it and stages stay pure. `Memory` is the working set
of one batch: loaded under the tenant's chain-head lock, changed message by message, saved once.
Code that changes a row calls `touch`: only touched rows are written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from observatory.ledger.chain import ChainHead
from observatory.pipeline.rows import (
    AgentRow,
    AuditRow,
    BreakerRow,
    CachedRow,
    DeliveryRow,
    HoldRow,
    MemberRow,
    MessageRow,
    RowWrite,
    SessionRow,
    StepRow,
    TenantRow,
)
from observatory.protocol.certificates import Binding, Certificate
from observatory.protocol.message import Message
from observatory.protocol.otel import TraceContext
from observatory.protocol.redaction import RedactionRules
from observatory.protocol.tenant_config import (
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
# Rows kept from one batch to the next; beyond this number they are read again.
MAX_CACHED_ROWS = 20_000


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """The caller: the owner of a key or of a signed-in browser session."""

    tenant_id: str
    role: Role
    key_id: str
    user_id: str | None = None
    agent_id: str | None = None
    scopes: tuple[str, ...] = ()
    access_version: int = 0
    expires_ns: int | None = None
    # Of an agent's key: the user who created it, who counts as requester of what is sent with it.
    key_maker: str | None = None
    # The client certificate of the TLS handshake; None without one.
    certificate: Certificate | None = None

    @property
    def entity_id(self) -> str:
        return self.user_id or self.key_id

    def has_requested(self, requested_by: str, key_maker: str | None) -> bool:
        """Whether this principal sent something, or created the agent's key it was sent with."""
        ids = (self.entity_id, self.key_id, self.user_id)
        return requested_by in ids or (key_maker is not None and key_maker in ids)

    @property
    def is_browser(self) -> bool:
        """Whether it signed in with a login link and uses a cookie instead of a key."""
        return self.key_id.startswith("log_")

    @property
    def is_bound(self) -> bool:
        """Whether the key is bound to one agent, which verifies the agent's identity."""
        return self.role == "agent" and self.agent_id is not None

    @property
    def entity_type(self) -> str:
        return "agent" if self.role == "agent" else "user" if self.user_id else "system"


class TenantConfig(msgspec.Struct, frozen=True):
    """What operators have configured for the tenant; cached. Its version is read again under the lock."""

    version: int = -1
    versions: dict[str, dict[str, VersionEntry]] = {}
    # Unregistered versions that were reported already: each is reported once (ruling 5).
    noted: frozenset[tuple[str, str]] = frozenset()
    policies: tuple[PolicyRule, ...] = ()
    budgets: tuple[Budget, ...] = ()
    routes: dict[str, Route] = {}
    # Engaged and releasing ones only.
    kill_switches: tuple[KillSwitch, ...] = ()
    # agent type -> the version of its instructions in force
    instructions: dict[str, int] = {}
    # Capabilities that have a circuit breaker; its counts are separate rows.
    breakers: frozenset[str] = frozenset()
    detectors: DetectorSettings = DetectorSettings()
    decisions: DecisionSettings = DecisionSettings()
    routing: RoutingSettings = RoutingSettings()
    # entity id -> the addresses (`type:x`, `cluster:y`) an operator granted it
    grants: dict[str, frozenset[str]] = {}
    # None until the first rule is created.
    redaction: RedactionRules | None = None
    # entity id of an agent -> the certificate required to send as this agent
    certificates: dict[str, Binding] = {}
    # entity ids of agents with a bound key; an expired key counts until it is revoked
    bound: frozenset[str] = frozenset()


class BatchState(msgspec.Struct):
    tenant: TenantRow
    head: ChainHead
    tenant_config: TenantConfig
    agents: dict[str, AgentRow] = {}
    sessions: dict[str, SessionRow] = {}
    members: dict[tuple[int, int], MemberRow] = {}
    # Earlier steps: read from the archive, or taken from the batch that is being written.
    steps: dict[str, StepRow] = {}
    # New steps of this batch.
    fresh: dict[str, StepRow] = {}
    # session_no -> sequence number -> open hold; complete for every session in `sessions`
    holds: dict[int, dict[int, HoldRow]] = {}
    # session_no -> names and step ids of messages that were rejected at a gate
    rejected: dict[int, set[str]] = {}
    breakers: dict[str, BreakerRow] = {}
    # Rows of rarely used tables: table -> key -> row. Read again for each batch, changed in place.
    rows: dict[str, dict[Any, dict[str, Any]]] = {}
    # `type:x` or `cluster:y` -> entity ids of the matching agents, without evicted ones
    fleet: dict[str, list[str]] = {}
    # Bytes of requested messages, by sequence number: what a release forwards, what a decision asked.
    raws: dict[int, bytes] = {}
    # The requested messages whose bytes still exist.
    payloads: set[int] = msgspec.field(default_factory=set)
    # Name of a gateway lease -> its epoch. It cannot change before the transaction ends.
    leases: dict[str, int] = {}
    # (table, agent's number) -> how many rows of this agent wait there, of the requested pairs
    waiting: dict[tuple[str, int], int] = {}
    noted: set[tuple[str, str]] = msgspec.field(default_factory=set)
    # (agent type, version) -> the registry's judgement, computed once per batch
    judged: dict[tuple[str, str], tuple[Judgement, VersionEntry | None]] = {}
    revoked_keys: set[str] = msgspec.field(default_factory=set)
    changed: list[CachedRow] = []

    def recall(self, known: BatchState | None, is_pending: bool = False) -> None:
        """Reuse the rows of the previous batch, if nothing was appended since.

        Every change to a session, an agent or a member appends an event: an unchanged head proves that the
        rows are current. While the previous batch is still being written its head is a prediction, checked
        when this batch is written: all its rows are reused, also its steps, which cannot be read yet.
        """
        if known is None:
            return
        if is_pending:
            known.tenant.disabled = self.tenant.disabled
            self.tenant, self.head, self.steps = known.tenant, known.head, dict(known.fresh)
        if known.head == self.head:
            self.sessions, self.agents, self.members = known.sessions, known.agents, known.members
            self.holds, self.rejected, self.breakers = known.holds, known.rejected, known.breakers

    def step(self, name: str) -> StepRow | None:
        """The step with this name, archived before or within this batch."""
        return self.fresh.get(name) or self.steps.get(name)

    def touch(self, row: CachedRow) -> None:
        """Mark a created or changed row to be saved."""
        if not row.dirty:
            row.dirty = True
            self.changed.append(row)

    def touched(self, kind: type[Row]) -> list[Row]:
        return [row for row in self.changed if isinstance(row, kind)]

    def settled(self, keeps_steps: bool = False) -> BatchState | None:
        """Once its rows are built: the state the next batch may reuse; None when there are too many rows.

        Its own steps are kept for a batch that begins before they can be read.
        """
        holds = sum(map(len, self.holds.values()))
        if len(self.sessions) + len(self.agents) + len(self.members) + holds > MAX_CACHED_ROWS:
            return None
        for row in self.changed:
            row.dirty = False
        self.steps = {}
        if not keeps_steps:
            self.fresh = {}
        self.changed = []
        self.rows, self.fleet, self.raws, self.payloads = (
            {},
            {},
            {},
            set(),
        )  # read again by the batch that needs them
        self.leases, self.waiting = {}, {}
        return self


class ReadSet(msgspec.Struct):
    """Every row a batch needs, so that each table is read once."""

    steps: set[str] = msgspec.field(default_factory=set)
    sessions: set[str] = msgspec.field(default_factory=set)
    agents: set[str] = msgspec.field(default_factory=set)
    # key id -> the access version it was last checked at; a newer version under the lock means: check again
    keys: dict[str, int] = msgspec.field(default_factory=dict)
    # table -> keys; see `ROW_KEYS` in store/row_mapping.py for which column is the key
    rows: dict[str, set[Any]] = msgspec.field(default_factory=dict)
    addresses: set[str] = msgspec.field(default_factory=set)
    # Sessions whose held messages may be released: their bytes are read too.
    releases: set[str] = msgspec.field(default_factory=set)
    # Archived messages whose bytes are needed, by sequence number.
    contents: set[int] = msgspec.field(default_factory=set)
    # Sessions whose members are recipients: policies must know who they are.
    rooms: set[str] = msgspec.field(default_factory=set)
    # Held messages requested by id: they are read first, however many wait.
    named: set[str | int] = msgspec.field(default_factory=set)
    # Archived messages, by sequence number, for which it is checked whether their bytes still exist.
    payloads: set[int] = msgspec.field(default_factory=set)
    # Gateway leases whose holder must not change while this is decided and written.
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

    def add(self, other: ReadSet) -> None:
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


class EventDraft(msgspec.Struct, kw_only=True, gc=False):
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
    # The key that caused it; None: the key of the submission being processed.
    key_id: str | None = None
    recipient_id: str | None = None
    hub_address: str | None = None
    trust_level: str | None = None
    # The refusal it counts as, where no response code says so: see `pipeline/refusals.py`.
    counts_as: str | None = None


class TransactionChanges(msgspec.Struct):
    """Everything one transaction writes, already numbered and hashed."""

    audit: list[AuditRow] = msgspec.field(default_factory=list)
    messages: list[MessageRow] = msgspec.field(default_factory=list)
    deliveries: list[DeliveryRow] = msgspec.field(default_factory=list)
    writes: list[RowWrite] = msgspec.field(default_factory=list)
    # (the event that orders the deletion, the messages whose bytes are deleted)
    shreds: list[tuple[int, list[int]]] = msgspec.field(default_factory=list)


class SubmissionResult(msgspec.Struct, gc=False):
    """The result of a submission: status code and body of the response, and the events that record it."""

    code: int
    answer: Any
    events: list[EventDraft] = []
    writes: list[RowWrite] = []
    # A refusal whose message is archived nevertheless, with the state `refused` (ruling 10).
    archived: bool = False


class UnitOfWork(Protocol):
    """Where commands and effects write. Everything goes into the one transaction of their batch."""

    memory: BatchState
    changes: TransactionChanges
    now_ns: int

    def append(self, draft: EventDraft) -> int:
        """Append an event to the chain; returns its sequence number."""

    def deliver(
        self, sequence_number: int, agent_no: int, kind: str, body: dict[str, Any], **more: Any
    ) -> None:
        """Put a delivery into an agent's inbox. At most one for each event and agent."""


class RedactionResult(msgspec.Struct, frozen=True, gc=False):
    """What redaction did to a message: rule version, number of replacements, and the bytes as sent."""

    version: int | None  # None when no rule is in force; the original bytes are kept to recognise repeats
    replaced: int
    sent: bytes
    # Digests under earlier rules, of a message without a step id, which is named by its digest.
    before: tuple[bytes, ...] = ()


class IncomingMessage(msgspec.Struct, gc=False):
    """A message that passed the interceptor."""

    message: Message
    principal: Principal
    received_ns: int
    size: int
    redacted: RedactionResult | None = None
    context: TraceContext | None = None  # of the request it came with


class RejectedBody(msgspec.Struct):
    """A body the interceptor refused: its hash, its faults, and who sent it. Never the body."""

    principal: Principal
    received_ns: int
    agent_id: str | None
    capability_version: str | None
    reason: str
    raw_payload_hash: str
    answer: Any
    code: int = 422
    size: int = 256


class Command(msgspec.Struct):
    """A state change by an operator or a background worker: decided over the same batch state, and
    audited."""

    principal: Principal
    received_ns: int
    decide: Callable[[UnitOfWork], SubmissionResult]
    read_set: ReadSet = msgspec.field(default_factory=ReadSet)
    size: int = 1_024
    # Entity id of the agent it is done for; an agent bound to a certificate must have presented it.
    on_behalf_of: str | None = None
    # Appends no event: it may join the transaction of any batch (`pipeline/commit/piggyback.py`).
    can_piggyback: bool = False


Submission = IncomingMessage | RejectedBody | Command
