"""The context of one message in the pipeline: what the stages have determined so far."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from observatory.pipeline.rows import AgentRow, MemberRow, RowWrite, SessionRow
from observatory.pipeline.state import (
    BatchState,
    EventDraft,
    Principal,
    RedactionResult,
    SubmissionResult,
    UnitOfWork,
)
from observatory.protocol.message import Message
from observatory.protocol.otel import TraceContext


class ApprovalGate(msgspec.Struct, frozen=True, kw_only=True):
    """Why a person must approve this message before it is forwarded."""

    reason: str  # hitl_required, policy, budget
    detail: str
    rule_id: str | None = None
    quorum: int = 1
    deadline_ns: int | None = None
    on_expiry: str = "deny"


class MessageContext(msgspec.Struct, gc=False):
    message: Message
    principal: Principal
    received_ns: int
    agent: AgentRow | None = None
    session: SessionRow | None = None
    member: MemberRow | None = None
    entity_id: str = ""
    step_id: str = ""
    name: str = ""
    parents: tuple[str, ...] = ()
    parent_inferred: bool = False
    warnings: list[str] = []
    # Events recorded before the message itself, e.g. the agent's first registration.
    events: list[EventDraft] = []
    writes: list[RowWrite] = []
    # Opened by policy, budget or the agent itself; each of them holds the message.
    gates: list[ApprovalGate] = []
    # Why it is not forwarded now, and which held messages it waits for; set by the relay stage.
    cause: str | None = None
    waits: tuple[int, ...] = ()
    message_id: str = ""
    # Archive number of a message that was held before; 0 when it is forwarded directly.
    archived_seq: int = 0
    # A person approved it at a gate.
    approved: bool = False
    # The score of the ratio detector (None: not scored) and its window; see features/loops/stage.py.
    entropy: float | None = None
    window: list[str] = []
    redacted: RedactionResult | None = None
    # Trace context of the request; see also message_event.context_of.
    context: TraceContext | None = None


# A stage is pure: it reads and changes only the message context and the batch state. None: continue.
Stage = Callable[[MessageContext, BatchState, int], SubmissionResult | None]
# An effect runs after a message is forwarded, at once or after a hold; the number is that of its
# `message_delivered` event. It writes to the unit of work and refuses nothing.
Effect = Callable[[MessageContext, UnitOfWork, int], None]
