"""Builds the `decision_response` message that answers a stored decision, and reads the request it answers.

The answer is in the session, trace and conversation of its request and names it as its parent. An answer
given by the gateway at a deadline has the same bytes however often and by whichever gateway it is made: a
repeat.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from observatory.pipeline.interceptor import SchemaViolation, intercept
from observatory.pipeline.ports import Archive, Directory, MessageFilter
from observatory.pipeline.state import IncomingMessage, Principal
from observatory.protocol.clock import from_ns
from observatory.protocol.envelope import DecisionRequestEnvelope
from observatory.protocol.identity import NAMESPACE, mint
from observatory.protocol.message import Message
from observatory.protocol.messages import DecisionRequest
from observatory.protocol.otel import generate_span_id, span_id_of, trace_id_of_session
from observatory.protocol.responses import Rejected

Row = dict[str, Any]


class ArchivedContext(msgspec.Struct):
    """The trace of an archived envelope, whatever its type: a rewrite may have turned it into a request."""

    trace_id: str
    span_id: str
    metadata: dict[str, Any] | None = None


_context = msgspec.json.Decoder(ArchivedContext).decode
_envelope = msgspec.json.Decoder(DecisionRequestEnvelope).decode


class DecisionRecords(Archive, Directory, Protocol):
    """The stores that decisions and their requests are read from."""


class StoredDecisionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A decision request. `words` is the delivered payload; None once it was shredded."""

    message_id: str | None
    session_id: str
    trace_id: str
    span_id: str | None
    conversation_id: str | None
    words: DecisionRequest | None


async def request_of(records: DecisionRecords, tenant_id: str, row: Row) -> StoredDecisionRequest:
    """Read from the archive; if a person rewrote it while it was held, the rewrite counts."""
    number = row["request_seq"]
    span = MessageFilter(after=number - 1, before=number + 1)
    found = await records.messages(tenant_id, span, 1, False)
    raw = found[0].raw if found else None
    delivered = found[0].rewritten or raw if found else None
    sent = None if raw is None else _context(raw)
    session_id = found[0].session_id if found else ""
    return StoredDecisionRequest(
        message_id=found[0].message_id if found else None,
        session_id=session_id,
        trace_id=trace_id_of_session(session_id) if sent is None else sent.trace_id.lower(),
        span_id=None if sent is None else sent.span_id.lower(),
        conversation_id=None if sent is None else (sent.metadata or {}).get("conversation_id"),
        words=None if delivered is None else _envelope(delivered).payload,
    )


async def agent_of(records: DecisionRecords, tenant_id: str, agent_no: int) -> Row:
    """The agent that asked: its row in the registry."""
    found = await records.rows(tenant_id, "agents", agent_no=agent_no)
    return found[0] if found else {"agent_id": None, "entity_id": None}


def by_person(
    principal: Principal,
    decision_id: str,
    request: StoredDecisionRequest,
    agent_id: str,
    chosen: str,
    note: str | None,
    method: str,
    now_ns: int,
) -> IncomingMessage | Rejected:
    """A person's answer; `agent_id` is the entity id of the agent that asked."""
    payload = {
        "decision_id": decision_id,
        "selected_option_id": chosen,
        "respondent_note": note,
        "responded_at": from_ns(now_ns),
        "response_method": method,
    }
    sender = {"entity_id": principal.user_id, "entity_type": "user"}
    message_id = mint("msg_", now_ns)
    return _arrival(
        principal, request, agent_id, sender, payload, message_id, generate_span_id(), now_ns, now_ns
    )


def by_deadline(
    gateway: Principal, row: Row, request: StoredDecisionRequest, agent_id: str, now_ns: int
) -> IncomingMessage | Rejected:
    """The option the agent named for its deadline, chosen by the gateway."""
    at_ns = row["deadline_ns"]
    payload = {
        "decision_id": row["decision_id"],
        "selected_option_id": row["auto_option"],
        "respondent_note": None,
        "responded_at": from_ns(at_ns),
        "response_method": "deadline_expired",
    }
    sender = {"entity_id": gateway.key_id, "entity_type": "system"}
    named = f"{gateway.tenant_id}/{row['decision_id']}/deadline"
    message_id = f"msg_{uuid.uuid5(NAMESPACE, named)}"
    span_id = span_id_of(message_id)
    return _arrival(gateway, request, agent_id, sender, payload, message_id, span_id, at_ns, now_ns)


def _arrival(
    principal: Principal,
    request: StoredDecisionRequest,
    agent_id: str,
    sender: Mapping[str, str | None],
    payload: dict[str, Any],
    message_id: str,
    span_id: str,
    at_ns: int,
    now_ns: int,
) -> IncomingMessage | Rejected:
    """Through the interceptor like any other body: nothing enters the pipeline unvalidated."""
    metadata = {"session_id": request.session_id}
    if request.conversation_id is not None:
        metadata["conversation_id"] = request.conversation_id
    raw = msgspec.json.encode(
        {
            "envelope_version": "1.0.0",
            "message_id": message_id,
            "trace_id": request.trace_id,
            "span_id": span_id,
            "parent_span_id": request.span_id,
            "timestamp": from_ns(at_ns),
            "sender": sender,
            "recipient": {"entity_id": agent_id, "entity_type": "agent"},
            "message_type": "decision_response",
            "priority": "normal",
            "payload": payload,
            "metadata": metadata,
        }
    )
    message_or_fault = intercept(raw)
    if isinstance(message_or_fault, Message):
        return IncomingMessage(message_or_fault, principal, now_ns, len(raw))
    if isinstance(message_or_fault, SchemaViolation):
        return Rejected(
            reason="schema_violation",
            faults=message_or_fault.faults,
            raw_payload_hash=message_or_fault.raw_payload_hash,
        )
    return Rejected(reason="too_large")
