"""What one archived step shows of itself in a graph: short words, read once when the step is added.

Pure. Long texts are cut at `INTENT` characters; the whole of a step is told by its own door.
"""

from __future__ import annotations

from typing import Any

from observatory.insight.seen import Seen
from observatory.projections.badge import Doing, badge_of_step
from observatory.protocol import messages as m
from observatory.protocol.clock import from_ns
from observatory.protocol.envelope import Envelope

INTENT = 200
Face = dict[str, Any]


def title_of(envelope: Envelope) -> str | None:
    """The line by which a person would name this message."""
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


def outcome_of(seen: Seen) -> tuple[str | None, str | None]:
    """(tool, status) in the words of its form."""
    if seen.log is not None:
        return seen.log.action.tool_call, seen.log.action.status
    payload = None if seen.envelope is None else seen.envelope.payload
    if isinstance(payload, m.ActionConfirmation):
        return payload.action_type, payload.status
    if isinstance(payload, m.StatusAlert):
        return None, payload.severity
    return None, None


def is_terminal(seen: Seen) -> bool:
    control = seen.log.control if seen.log is not None else None
    return control is not None and bool(control.is_terminal)


def face_of(seen: Seen, low_confidence: float) -> Face:
    log, envelope = seen.log, seen.envelope
    tool, status = outcome_of(seen)
    intent = confidence = None
    tokens, asks, ends = None, False, False  # tokens nobody told are not none spent
    if log is not None:
        cognition, control, delta = log.cognition, log.control, log.state_delta
        if cognition is not None:
            intent, confidence = cognition.intent, cognition.confidence_score
        if control is not None:
            asks, ends = bool(control.hitl_required), bool(control.is_terminal)
        if delta is not None:
            tokens = delta.tokens_consumed
    elif envelope is not None:
        intent = title_of(envelope)
    return {
        "id": seen.name,
        "version": seen.seq,
        "sequence_number": seen.seq,
        "kind": "step",
        "step_id": seen.step_id,
        "message_id": seen.message_id,
        "message_type": seen.message_type,
        "agent_id": seen.agent_id,
        "agent_type": seen.agent_type,
        "intent": intent[:INTENT] if intent is not None else None,
        "tool": tool,
        "status": status,
        "state": seen.state,
        "badge": badge_of_step(Doing(ends, status, tool, seen.state, seen.at_ns)),
        "confidence": confidence,
        "low_confidence": confidence is not None and confidence < low_confidence,
        "hitl_required": asks,
        "gate": None,
        "is_terminal": ends,
        "entropy_score": seen.entropy,
        "tokens": tokens,
        "at": from_ns(seen.at_ns),
    }


def diamond_of(row: dict[str, Any]) -> Face:
    """A person's command as a node: who, what, and the hashes of before and after; never the text."""
    times = (row.get("acknowledged_ns"), row.get("confirmed_ns"), row.get("reversed_ns"))
    acknowledged, confirmed, taken_back = (None if ns is None else from_ns(ns) for ns in times)
    return {
        "id": row["intervention_id"],
        "version": row["sequence_number"],
        "sequence_number": row["sequence_number"],
        "kind": "intervention",
        "message_type": "intervention",
        "command": row["command"],
        "operator_id": row["operator_id"],
        "agent_id": row.get("agent_id"),
        "before_hash": row["before_hash"],
        "after_hash": row["after_hash"],
        "at": from_ns(row["issued_ns"]),
        "acknowledged_at": acknowledged,
        "confirmed_at": confirmed,
        "reversed_at": taken_back,
    }
