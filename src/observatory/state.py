"""What the corridor works on: principals, submissions, the batch's memory, verdicts and finished rows.

Plain data without I/O, so that `ports` can name it and stages stay pure. `Memory` is the working set
of one batch: loaded under the tenant's chain-head lock, changed message by message, saved once.
Who changes a row says so with `touch`: what was touched is written, nothing else is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import msgspec

from observatory.ledger.chain import Head
from observatory.protocol.message import Message
from observatory.protocol.versions import Judgement, VersionEntry

Role = Literal["viewer", "auditor", "approver", "operator", "admin", "agent"]
MessageState = Literal["forwarded", "held", "refused"]
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

    @property
    def entity_id(self) -> str:
        return self.user_id or self.key_id

    @property
    def is_bound(self) -> bool:
        """Whether the server can vouch that this agent is who it says."""
        return self.role == "agent" and self.agent_id is not None

    @property
    def entity_type(self) -> str:
        return "agent" if self.role == "agent" else "user" if self.user_id else "system"


class Tenant(msgspec.Struct, kw_only=True):
    """The tenant's row, locked for the length of one transaction."""

    tenant_id: str
    tenant_no: int
    sessions: int = 0
    agents: int = 0
    access_version: int = 0
    rulebook_version: int = 0
    disabled: bool = False


class Agent(msgspec.Struct, kw_only=True):
    agent_no: int
    entity_id: str
    agent_id: str
    agent_type: str | None = None
    capability_version: str | None = None
    cluster_id: str | None = None
    model: str | None = None
    provider: str | None = None
    hub_address: str | None = None
    trust_level: str = "unverified"
    first_seen_ns: int = 0
    last_seen_ns: int = 0
    violation_ns: int | None = None
    messages: int = 0
    dirty: bool = False


class Session(msgspec.Struct, kw_only=True):
    session_no: int
    session_id: str
    trace_id: str
    first_seq: int = 0
    last_seq: int = 0
    started_ns: int = 0
    last_ns: int = 0
    messages: int = 0
    dirty: bool = False


class Member(msgspec.Struct, kw_only=True):
    """One agent within one session: what rulings 2c and 19 need to know of it."""

    session_no: int
    agent_no: int
    last_step: str | None = None
    last_seq: int = 0
    messages: int = 0
    tokens: int = 0
    cost: float = 0.0
    dirty: bool = False


class Step(msgspec.Struct, frozen=True, gc=False):
    """A step already archived: enough to answer a repeat as the first was answered."""

    name: str
    sequence_number: int
    digest: bytes
    session_id: str
    step_id: str
    message_id: str
    state: MessageState
    warnings: tuple[str, ...]


class Rulebook(msgspec.Struct, frozen=True):
    """What operators have ruled for the tenant; cached, its number is re-read under the lock."""

    version: int = -1
    versions: dict[str, dict[str, VersionEntry]] = {}
    # Versions met without being registered: each was told of once (ruling 5).
    noted: frozenset[tuple[str, str]] = frozenset()


class Memory(msgspec.Struct):
    tenant: Tenant
    head: Head
    rulebook: Rulebook
    agents: dict[str, Agent] = {}
    sessions: dict[str, Session] = {}
    members: dict[tuple[int, int], Member] = {}
    steps: dict[str, Step] = {}
    noted: set[tuple[str, str]] = msgspec.field(default_factory=set)
    # (agent type, version) -> what the registry says, worked out once a batch
    judged: dict[tuple[str, str], tuple[Judgement, VersionEntry | None]] = {}
    gone_keys: set[str] = msgspec.field(default_factory=set)
    changed: list[Agent | Session | Member] = []

    def recall(self, known: Memory | None) -> None:
        """Take over the rows of the batch before, if nobody has appended since.

        What changes a session, an agent or a member appends an event: an unmoved head proves them true.
        """
        if known is not None and known.head == self.head:
            self.sessions, self.agents, self.members = known.sessions, known.agents, known.members

    def touch(self, row: Agent | Session | Member) -> None:
        """This row was made or changed and must be saved."""
        if not row.dirty:
            row.dirty = True
            self.changed.append(row)

    def touched(self, kind: type[Row]) -> list[Row]:
        return [row for row in self.changed if isinstance(row, kind)]

    def settled(self) -> Memory | None:
        """After the commit: what the next batch may recall; None when it is too much to keep."""
        if len(self.sessions) + len(self.agents) + len(self.members) > KEPT_ROWS:
            return None
        for row in self.changed:
            row.dirty = False
        self.changed, self.steps = [], {}
        return self


class Wants(msgspec.Struct):
    """Every row a batch names, so that each table is asked once."""

    steps: set[str] = msgspec.field(default_factory=set)
    sessions: set[str] = msgspec.field(default_factory=set)
    agents: set[str] = msgspec.field(default_factory=set)
    # key id -> the access version it was last checked at; a newer version under the lock means: look again
    keys: dict[str, int] = msgspec.field(default_factory=dict)


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
    recipient_id: str | None = None
    hub_address: str | None = None
    trust_level: str | None = None


class AuditRow(msgspec.Struct, frozen=True, gc=False):
    sequence_number: int
    timestamp_ns: int
    severity: int
    session_no: int
    sender_id: str | None
    recipient_id: str | None
    record: bytes
    leaf_hash: bytes


class MessageRow(msgspec.Struct, frozen=True, gc=False):
    sequence_number: int
    message_id: str
    step_id: str
    name: str
    session_no: int
    message_type: str
    state: MessageState
    parents: str | None
    parent_inferred: bool
    warnings: str | None
    digest: bytes
    raw: bytes


class Write(msgspec.Struct, frozen=True):
    """A rare row written by an act: an insert, an update of the rows `where` names, or an upsert on `key`."""

    table: str
    values: dict[str, Any]
    where: dict[str, Any] | None = None
    key: tuple[str, ...] = ()


class Changes(msgspec.Struct):
    """Everything one transaction writes, already numbered and hashed."""

    audit: list[AuditRow] = msgspec.field(default_factory=list)
    messages: list[MessageRow] = msgspec.field(default_factory=list)
    writes: list[Write] = msgspec.field(default_factory=list)


class Verdict(msgspec.Struct, gc=False):
    """How a submission ends: the code and body of its answer, and the events that tell of it."""

    code: int
    answer: Any
    events: list[Draft] = []
    writes: list[Write] = []


class Arrival(msgspec.Struct, gc=False):
    """A message that passed the interceptor."""

    message: Message
    principal: Principal
    received_ns: int
    size: int


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
    decide: Callable[[Memory, int], Verdict]
    wants: Wants = msgspec.field(default_factory=Wants)
    size: int = 1_024


Submission = Arrival | Breach | Act
