"""Nodes and edges of a session's graph: the short labels of one archived step, computed when it is added.

Pure. Long texts are cut at `INTENT` characters; the step's own endpoint returns them whole. Nodes and edges
are structs the garbage collector need not look at, encoded as they are: a session of 10,000 steps has 22,000
of them, and as dicts they cost about twice as much. Their members are in the order of the JSON document.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec

from observatory.derived.seen import FoldMessage
from observatory.features.graph.badge import AgentActivity, Badge, badge_of_step
from observatory.features.graph.causal_graph import Kind
from observatory.protocol import messages as m
from observatory.protocol.clock import from_ns
from observatory.protocol.envelope import Envelope

INTENT = 200
Row = dict[str, Any]
_at: Final = lru_cache(maxsize=64)(from_ns)  # the messages of a commit share one time


class StepNode(msgspec.Struct, gc=False):
    """A step. Members with a default follow from the whole graph, and from the step's hold."""

    id: str
    version: int
    sequence_number: int
    kind: Literal["step"]
    step_id: str
    message_id: str
    message_type: str
    agent_id: str
    agent_type: str | None
    intent: str | None
    tool: str | None
    status: str | None
    state: str
    badge: Badge
    confidence: float | None
    low_confidence: bool
    hitl_required: bool
    gate: str | None
    is_terminal: bool
    entropy_score: float | None
    tokens: int | None
    at: str
    held_because: str | None = None
    cost: float = 0.0
    branch_cost: float = 0.0
    parent: str | None = None
    depth: int = 0
    is_root: bool = False
    orphan: bool = False
    flags: Sequence[str] = ()


class InterventionNode(msgspec.Struct, gc=False, kw_only=True):
    """A person's command: the operator, the command, and the hashes of before and after; never the text."""

    id: str
    version: int
    sequence_number: int
    kind: Literal["intervention"] = "intervention"
    message_type: str = "intervention"
    command: str
    operator_id: str
    agent_id: str | None
    before_hash: str | None
    after_hash: str | None
    at: str
    acknowledged_at: str | None
    proven: bool | None
    confirmed_at: str | None
    reversed_at: str | None


class GraphEdge(msgspec.Struct, gc=False, rename={"source": "from"}):
    source: str
    to: str
    kind: Kind


def as_row(node: StepNode | InterventionNode) -> Row:
    row = msgspec.structs.asdict(node)
    if isinstance(node, StepNode):
        row["flags"] = list(node.flags)
    return row


def title_of(envelope: Envelope) -> str | None:
    """The line by which a person would identify this message."""
    match envelope.payload:
        case m.DecisionRequest(title=title) | m.StatusAlert(title=title) | m.ArtifactShare(title=title):
            return title
        case m.ActionConfirmation(title=title, summary=summary):
            return title or summary
        case m.DecisionResponse(selected_option_id=option):
            return option
        case m.Text(content=content):
            return content
        case m.Heartbeat(agent_status=status):
            return status
        case m.SystemEvent(event_type=event_type):
            return event_type
    return None


def outcome_of(seen: FoldMessage) -> tuple[str | None, str | None]:
    """(tool, status), as the message's type names them."""
    if seen.log is not None:
        return seen.log.action.tool_call, seen.log.action.status
    payload = None if seen.envelope is None else seen.envelope.payload
    if isinstance(payload, m.ActionConfirmation):
        return payload.action_type, payload.status
    if isinstance(payload, m.StatusAlert):
        return None, payload.severity
    return None, None


def is_terminal(seen: FoldMessage) -> bool:
    control = seen.log.control if seen.log is not None else None
    return control is not None and bool(control.is_terminal)


def step_node(seen: FoldMessage, low_confidence: float, version: int) -> StepNode:
    log, envelope = seen.log, seen.envelope
    tool, status = outcome_of(seen)
    intent = confidence = tokens = None  # None: the message does not report tokens
    asks = ends = low = False
    if log is not None:
        cognition, control, delta = log.cognition, log.control, log.state_delta
        if cognition is not None:
            intent, confidence = cognition.intent, cognition.confidence_score
            low = confidence is not None and confidence < low_confidence
        if control is not None:
            asks, ends = bool(control.hitl_required), bool(control.is_terminal)
        if delta is not None:
            tokens = delta.tokens_consumed
    elif envelope is not None:
        intent = title_of(envelope)
    # By position for speed: by name it would take five times as long.
    return StepNode(
        seen.name,
        version,
        seen.seq,
        "step",
        seen.step_id,
        seen.message_id,
        seen.message_type,
        seen.agent_id,
        seen.agent_type,
        intent[:INTENT] if intent is not None else None,
        tool,
        status,
        seen.state,
        _badge(ends, status, tool is not None and tool != "", seen.state),
        confidence,
        low,
        asks,
        None,  # gate
        ends,
        seen.entropy,
        tokens,
        _at(seen.at_ns),
    )


@lru_cache(maxsize=256)
def _badge(ends: bool, status: str | None, has_tool: bool, state: str) -> Badge:
    """Only whether a tool was named counts, so the cache has few entries."""
    return badge_of_step(AgentActivity(ends, status, "tool" if has_tool else None, state, 0))


def intervention_node(row: Row) -> InterventionNode:
    times = (row.get("acknowledged_ns"), row.get("confirmed_ns"), row.get("reversed_ns"))
    acknowledged, confirmed, taken_back = (None if ns is None else from_ns(ns) for ns in times)
    return InterventionNode(
        id=row["intervention_id"],
        version=row["sequence_number"],
        sequence_number=row["sequence_number"],
        command=row["command"],
        operator_id=row["operator_id"],
        agent_id=row.get("agent_id"),
        before_hash=row["before_hash"],
        after_hash=row["after_hash"],
        at=from_ns(row["issued_ns"]),
        acknowledged_at=acknowledged,
        proven=None if row.get("proven") is None else bool(row["proven"]),
        confirmed_at=confirmed,
        reversed_at=taken_back,
    )
