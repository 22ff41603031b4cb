"""Rows of the record as the pipeline handles them: plain data without SQL.

Rows cached between batches (`Kept`) are changed in place and saved when touched; the others are immutable.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

MessageState = Literal["forwarded", "held", "refused"]
HoldState = Literal["held", "released", "rejected", "expired"]
HoldCause = Literal["pause", "gate", "kill", "order", "ancestor"]


class TenantRow(msgspec.Struct, kw_only=True):
    """The tenant's row, locked for the length of one transaction."""

    tenant_id: str
    tenant_no: int
    sessions: int = 0
    agents: int = 0
    access_version: int = 0
    rulebook_version: int = 0
    disabled: bool = False


class AgentRow(msgspec.Struct, kw_only=True):
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
    certificate: str | None = None  # fingerprint of the one it last used
    paused_ns: int | None = None  # set while the agent is paused in all sessions
    paused_by: str | None = None
    pause_seq: int | None = None  # the intervention that paused it
    dirty: bool = False

    @property
    def is_paused(self) -> bool:
        return self.paused_ns is not None


class SessionRow(msgspec.Struct, kw_only=True):
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
    spent: float = 0.0  # the amount budgets check: it never decreases
    rejected: int = 0  # held messages that were rejected; 0 means there is nothing to load
    entropy: float | None = None  # of its last scored step
    entropy_window: str | None = None  # see features/loops/stage.py
    severity: str = "normal"
    alert_seq: int | None = None  # the event of the open alert
    alert_count: int = 0  # number of repetitions so far, while the alert is open
    loop_ns: int | None = None  # since when the second detector reports the newest open loop
    loop_seq: int | None = None  # the event that reported it
    loop_detector: str | None = None
    loop_agent_no: int | None = None
    loops: str | None = None  # all that are open, see features/loops/commands_findings.py
    window: list[str] | None = None  # lines of `entropy_window`, parsed on first use; no column
    dirty: bool = False


class MemberRow(msgspec.Struct, kw_only=True):
    """One agent within one session: the data rulings 2c and 19 need."""

    session_no: int
    agent_no: int
    last_step: str | None = None
    last_seq: int = 0
    messages: int = 0
    tokens: int = 0
    cost: float = 0.0
    paused_ns: int | None = None  # set while this agent is paused in this session
    paused_by: str | None = None
    pause_seq: int | None = None  # the intervention that paused it
    arrived_ns: int = 0  # its last message, held or not
    dirty: bool = False

    @property
    def is_paused(self) -> bool:
        return self.paused_ns is not None


class HoldRow(msgspec.Struct, kw_only=True):
    """A message that was archived and not forwarded, and why it is held. Its bytes are in the archive."""

    sequence_number: int
    session_no: int
    agent_no: int
    message_id: str
    step_id: str
    name: str
    span_id: str
    message_type: str
    # As in the message: changing the agent's type later does not escape a kill switch.
    agent_type: str | None = None
    cluster_id: str | None = None
    cause: HoldCause
    reason: str
    recipient: str | None = None  # entity id or address, so that a release can load the recipient
    state: HoldState = "held"
    gate: int = 0  # 0 no gate, 1 open, 2 approved
    waits: str | None = None  # sequence numbers of held ancestors, comma-separated
    digest: bytes = b""  # of the content that would be forwarded now
    rewrite_seq: int | None = None  # the rewrite in force
    quorum: int = 1
    approvals: str | None = None  # JSON list of entity ids
    requested_by: str = ""
    key_maker: str | None = None  # creator of the agent's key it was sent with
    bound: int = 0  # 1: sent with a key bound to its agent
    deadline_ns: int | None = None
    on_expiry: str = "deny"
    held_ns: int = 0
    ended_ns: int | None = None
    ended_by: str | None = None
    released_seq: int | None = None
    key_id: str | None = None  # of the key it was sent with
    dirty: bool = False


class BreakerRow(msgspec.Struct, kw_only=True):
    """The circuit breaker of one capability: outcomes in the current window, and whether work may pass."""

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


class StepRow(msgspec.Struct, frozen=True, gc=False):
    """An archived step: what is needed to give a repeat the same response."""

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
    raw: bytes | None  # None only for a restored message that was shredded before
    entropy: float | None = None  # as computed by the gateway


class RowWrite(msgspec.Struct, frozen=True):
    """A row a command writes to a rarely used table: an insert, an update of the rows matching `where`, or
    an upsert on `key`.

    A list in `where` matches any of its values. `more` are further rows of an insert, with the same columns.
    """

    table: str
    values: dict[str, Any]
    where: dict[str, Any] | None = None
    key: tuple[str, ...] = ()
    more: tuple[dict[str, Any], ...] = ()


class DeliveryRow(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A delivery to an agent's inbox; its number is that of the event that caused it."""

    sequence_number: int
    agent_no: int  # 0: parked, no agent can take it now
    kind: str
    created_ns: int
    session_no: int = 0
    sender_no: int = 0
    address: str | None = None  # what it was addressed to, when not to this agent by name
    message_seq: int | None = None  # the archived message whose content is delivered
    body: str | None = None  # JSON of a command
    state: str = "pending"


CachedRow = AgentRow | SessionRow | MemberRow | HoldRow | BreakerRow


class KillSwitchAcknowledgements(msgspec.Struct, frozen=True):
    """Acknowledgements of a kill switch; `unheard` are rows of notified agents that have not acknowledged."""

    agents: int
    told: int
    acknowledged: int
    later: int
    unheard: list[dict[str, Any]]


class KillSwitchCounts(msgspec.Struct, frozen=True):
    """The reach of a kill switch: agents and sessions in its scope, and their held messages."""

    agents: int
    sessions: int
    held: int
