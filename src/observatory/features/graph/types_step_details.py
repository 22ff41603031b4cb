"""Details of one step: inputs, reasoning, action, memory changes, cost, children and interventions.

Pure, over a graph. Input is the output of its parents and its agent's memory before it; output is its
result and what it added to memory. Texts of the step itself are whole, those of its neighbours are cut.
"""

from __future__ import annotations

from typing import Any

import msgspec

from observatory.derived.seen import FoldMessage
from observatory.features.graph.graph import SessionGraph
from observatory.features.graph.types_labels import INTENT, as_row, title_of
from observatory.protocol import messages as m
from observatory.protocol.decision_log import Citation, Cognition, DecisionLog

Row = dict[str, Any]
NEIGHBOUR_TEXT = 2_000
MEMORY = 200  # facts of an agent's memory that are shown, the newest
CHILDREN = 1_000


def detail(graph: SessionGraph, seen: FoldMessage, now_ns: int) -> Row:
    """The step as its endpoint returns it; `seen` is a step of the graph."""
    steps = {one.name: one for one in graph.steps()}
    drawn = graph.drawn(now_ns)
    nodes = {node.id: node for node in drawn.nodes}
    above = [(edge, steps[edge.source]) for edge in drawn.edges if edge.to == seen.name]
    below = [edge for edge in drawn.edges if edge.source == seen.name]
    children = [edge for edge in below if edge.kind != "intervention"]
    log, own = seen.log, as_row(nodes[seen.name])
    return {
        **own,
        "session_id": seen.session_id,
        "trace": {"span_id": seen.span_id, "parent_span_id": seen.parent_span_id},
        "declared_parents": list(seen.parents),
        "input": {
            "parents": [_parent(edge.kind, parent) for edge, parent in above],
            "read_from_memory": _delta(log, "read_from_memory"),
            **_memory_before(graph, seen),
            "tool_input": log.action.tool_input if log is not None else None,
        },
        "output": {
            "status": own["status"],
            "text": output_of(seen),
            "added_to_memory": _delta(log, "added_to_memory"),
            "duration_ms": duration_of(seen),
            "payload": None if seen.envelope is None else msgspec.to_builtins(seen.envelope.payload),
        },
        "reasoning": _reasoning(log),
        "model": log.identity.model if log is not None else None,
        "gateway_away": bool(log is not None and log.control is not None and log.control.gateway_away),
        "provider": log.identity.provider if log is not None else None,
        "capability_version": log.identity.capability_version if log is not None else None,
        "recipient": _recipient(seen),
        "children": [_child(edge.kind, as_row(nodes[edge.to])) for edge in children[:CHILDREN]],
        "children_count": len(children),
        "interventions": [as_row(nodes[edge.to]) for edge in below if edge.kind == "intervention"],
    }


def output_of(seen: FoldMessage) -> str | None:
    if seen.log is not None:
        return seen.log.action.tool_output_summary
    if seen.envelope is None:
        return None
    payload = seen.envelope.payload
    if isinstance(payload, m.StatusAlert | m.ActionConfirmation):
        return payload.summary or payload.title
    if isinstance(payload, m.DecisionRequest):
        return payload.description or payload.title
    return title_of(seen.envelope)


def duration_of(seen: FoldMessage) -> int | None:
    if seen.log is not None:
        return seen.log.action.duration_ms
    payload = None if seen.envelope is None else seen.envelope.payload
    if isinstance(payload, m.ActionConfirmation) and payload.detail is not None:
        return payload.detail.duration_ms
    return None


def memory_of(seen: FoldMessage) -> list[str]:
    return _delta(seen.log, "added_to_memory")


def _delta(log: DecisionLog | None, field: str) -> list[str]:
    delta = None if log is None else log.state_delta
    return list(getattr(delta, field) or ()) if delta is not None else []


def _parent(kind: str, parent: FoldMessage) -> Row:
    text = output_of(parent)
    return {
        "id": parent.name,
        "kind": kind,
        "agent_id": parent.agent_id,
        "sequence_number": parent.seq,
        "output": None if text is None else text[:NEIGHBOUR_TEXT],
        "added_to_memory": [fact[:NEIGHBOUR_TEXT] for fact in memory_of(parent)[:MEMORY]],
    }


def _memory_before(graph: SessionGraph, seen: FoldMessage) -> Row:
    """What this agent had added to its memory in this session before the step, the newest last."""
    facts = [
        {"text": fact[:NEIGHBOUR_TEXT], "step": one.name}
        for one in graph.steps()
        if one.seq < seen.seq and one.agent_id == seen.agent_id and one.state == "forwarded"
        for fact in memory_of(one)
    ]
    return {"memory_before": facts[-MEMORY:], "memory_count": len(facts)}


def _reasoning(log: DecisionLog | None) -> Row:
    """The decision's chain of thought, rejected alternatives and citations."""
    thought: Cognition | None = None if log is None else log.cognition
    if log is None or thought is None:
        empty: Row = {"intent": None, "chosen": None, "strategy": None, "confidence": None}
        return empty | {"chain": [], "alternatives": [], "citations": [], "reported_entropy_score": None}
    return {
        "intent": thought.intent,
        "chosen": log.action.tool_call or thought.intent[:INTENT],
        "strategy": thought.strategy_used,
        "confidence": thought.confidence_score,
        "chain": list(thought.reasoning_chain or ()),
        "alternatives": [
            {"option": one.option, "why_not": one.why_not} for one in thought.alternatives or ()
        ],
        "citations": [_citation(one) for one in thought.citations or ()],
        "reported_entropy_score": thought.entropy_score,
    }


def _citation(citation: str | Citation) -> Row:
    if isinstance(citation, str):
        return {"uri": citation, "ref_type": None, "label": None}
    return {"uri": citation.uri, "ref_type": citation.ref_type, "label": citation.label}


def _recipient(seen: FoldMessage) -> str | None:
    if seen.log is not None:
        return seen.log.identity.recipient
    return None if seen.envelope is None else seen.envelope.recipient.entity_id


def _child(kind: str, node: Row) -> Row:
    child = {name: node[name] for name in ("id", "agent_id", "message_type", "intent", "status", "state")}
    return child | {"kind": kind}
