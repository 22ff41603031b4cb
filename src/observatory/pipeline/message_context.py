"""One message on its way through the corridor: what the stages have found out so far."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from observatory.pipeline.rows import Agent, Member, Session, Write
from observatory.pipeline.state import Desk, Draft, Memory, Principal, Redacted, Verdict
from observatory.protocol.message import Message
from observatory.protocol.otel import TraceContext


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """Why a person must look at this message before it is forwarded."""

    reason: str  # hitl_required, policy, budget
    detail: str
    rule_id: str | None = None
    quorum: int = 1
    deadline_ns: int | None = None
    on_expiry: str = "deny"


class Passage(msgspec.Struct, gc=False):
    message: Message
    principal: Principal
    received_ns: int
    agent: Agent | None = None
    session: Session | None = None
    member: Member | None = None
    entity_id: str = ""
    step_id: str = ""
    name: str = ""
    parents: tuple[str, ...] = ()
    parent_inferred: bool = False
    warnings: list[str] = []
    # Told before the message itself, e.g. the agent's registration at first sight.
    events: list[Draft] = []
    writes: list[Write] = []
    # Opened by policy, budget or the agent itself; any of them holds the message.
    gates: list[Gate] = []
    # Why it is not forwarded now, and which held messages it waits for; set by the relay, the last stage.
    cause: str | None = None
    waits: tuple[int, ...] = ()
    message_id: str = ""
    # Of a message that was held before: its number in the archive. 0 when it is forwarded as it came.
    archived_seq: int = 0
    # A person has looked at it at a gate and let it pass.
    approved: bool = False
    # The ratio's score, None when it is not scored, and the window it is of; see entropy.py.
    entropy: float | None = None
    window: list[str] = []
    redacted: Redacted | None = None
    # Of the request it came with; see also event.context_of.
    context: TraceContext | None = None


# A stage is pure: it reads and changes only the passage and the memory. None means: go on.
Stage = Callable[[Passage, Memory, int], Verdict | None]
# What follows from a message being forwarded, at once or after a hold; `number` is that of its
# `message_delivered`. An effect writes to the desk and refuses nothing.
Effect = Callable[[Passage, Desk, int], None]
