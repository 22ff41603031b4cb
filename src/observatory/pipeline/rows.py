"""Rows of the record as the corridor handles them: plain data, without a word of SQL.

Rows that are kept between batches (`Kept`) are changed in place and saved when they were touched; the others
are final when they are made.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

MessageState = Literal["forwarded", "held", "refused"]
HoldState = Literal["held", "released", "rejected", "expired"]
Cause = Literal["pause", "gate", "kill", "order", "ancestor"]


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
    display_name: str | None = None
    capabilities: str | None = None  # JSON list, as registered
    owner_id: str | None = None
    team_id: str | None = None
    workspace_id: str | None = None
    evicted_ns: int | None = None
    cost: float = 0.0
    instructions_version: int = 0  # the newest it has acknowledged
    certificate: str | None = None  # fingerprint of the one it last spoke with
    paused_ns: int | None = None  # set while a person has paused it everywhere
    paused_by: str | None = None
    pause_seq: int | None = None  # the intervention that did it
    dirty: bool = False

    @property
    def is_paused(self) -> bool:
        return self.paused_ns is not None


class Session(msgspec.Struct, kw_only=True):
    session_no: int
    session_id: str
    trace_id: str
    first_seq: int = 0
    last_seq: int = 0
    started_ns: int = 0
    last_ns: int = 0
    messages: int = 0
    held: int = 0  # open holds; 0 means there is nothing to load
    agents: int = 0
    cost: float = 0.0
    spent: float = 0.0  # what caps go by: it never falls
    rejected: int = 0  # held messages that were refused for good; 0 means there is nothing to load
    entropy: float | None = None  # of its last scored step
    entropy_window: str | None = None  # see features/loops/stage.py
    severity: str = "normal"
    alert_seq: int | None = None  # the event of the open alert
    alert_count: int = 0  # how often it went round so far, as long as the alert is open
    loop_ns: int | None = None  # since when the second detector sees the newest open loop
    loop_seq: int | None = None  # the event that told of it
    loop_detector: str | None = None
    loop_agent_no: int | None = None
    loops: str | None = None  # all that are open, see features/loops/commands_findings.py
    window: list[str] | None = None  # lines of `entropy_window`, once somebody asked; no column
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
    paused_ns: int | None = None  # set while a person has paused this agent in this session
    paused_by: str | None = None
    pause_seq: int | None = None  # the intervention that did it
    arrived_ns: int = 0  # its last message, held or not
    dirty: bool = False

    @property
    def is_paused(self) -> bool:
        return self.paused_ns is not None


class Hold(msgspec.Struct, kw_only=True):
    """A message that was archived and not forwarded. Its bytes are in the archive; here is why it waits."""

    sequence_number: int
    session_no: int
    agent_no: int
    message_id: str
    step_id: str
    name: str
    span_id: str
    message_type: str
    # As the message said it: what its agent is called later does not lead out of a kill-switch.
    agent_type: str | None = None
    cluster_id: str | None = None
    cause: Cause
    reason: str
    recipient: str | None = None  # entity id or address, so that a release can load who it is for
    state: HoldState = "held"
    gate: int = 0  # 0 no gate, 1 open, 2 approved
    waits: str | None = None  # sequence numbers of held ancestors, comma between
    digest: bytes = b""  # of what would be forwarded now
    rewrite_seq: int | None = None  # the rewrite in force
    quorum: int = 1
    approvals: str | None = None  # JSON list of entity ids
    requested_by: str = ""
    key_maker: str | None = None  # who made the agent's key it was sent with
    bound: int = 0  # sent with a key bound to its agent
    deadline_ns: int | None = None
    on_expiry: str = "deny"
    held_ns: int = 0
    ended_ns: int | None = None
    ended_by: str | None = None
    released_seq: int | None = None
    key_id: str | None = None  # of the key it was sent with
    dirty: bool = False


class Breaker(msgspec.Struct, kw_only=True):
    """The circuit of one capability: outcomes in the present window, and whether work may pass."""

    capability: str
    state: Literal["closed", "open", "half_open"] = "closed"
    window_ns: int = 0
    successes: int = 0
    failures: int = 0
    opened_ns: int | None = None
    probe_seq: int | None = None
    reason: str | None = None
    forced_by: str | None = None
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
    raw: bytes | None  # None only of one that is restored and was shredded before
    entropy: float | None = None  # as computed, beside the bytes


class Write(msgspec.Struct, frozen=True):
    """A rare row written by an act: an insert, an update of the rows `where` names, or an upsert on `key`.

    A list in `where` names any of its values. `more` are further rows of an insert, of the same columns.
    """

    table: str
    values: dict[str, Any]
    where: dict[str, Any] | None = None
    key: tuple[str, ...] = ()
    more: tuple[dict[str, Any], ...] = ()


class DeliveryRow(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Something an agent is to be told; its number is that of the event that caused it."""

    sequence_number: int
    agent_no: int  # 0: parked, nobody can take it now
    kind: str
    created_ns: int
    session_no: int = 0
    sender_no: int = 0
    address: str | None = None  # what it was addressed to, when not to this agent by name
    message_seq: int | None = None  # the archived message whose content it carries
    body: str | None = None  # JSON of a command
    state: str = "pending"


Kept = Agent | Session | Member | Hold | Breaker


class Obeyed(msgspec.Struct, frozen=True):
    """Who knows of a kill-switch; `unheard` are rows of agents that were told and have not said so."""

    agents: int
    told: int
    acknowledged: int
    later: int
    unheard: list[dict[str, Any]]


class Reach(msgspec.Struct, frozen=True):
    """How far a kill-switch reaches: agents and sessions in its scope, messages that wait in their lines."""

    agents: int
    sessions: int
    held: int
