"""System messages: messages from the gateway to an agent, a capability or a cluster.

The scheduler and inbound webhooks use them to address agents. Law: a system message enters the pipeline like
any message and passes the same checks: policy, budget, kill switch, routing, chain, inbox. Its bytes depend
only on its content and `at_ns`, not on the time of sending, so sending it again under the same id is a repeat
without effect. Its type is `text`: a kill switch holds it, while a `system_event` would pass.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal, NamedTuple

import msgspec

from observatory.pipeline.interceptor import SchemaViolation, TooLarge, intercept
from observatory.pipeline.state import IncomingMessage, Principal, RejectedBody, Submission
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import NAMESPACE, USER, agent_entity_id
from observatory.protocol.message import Message
from observatory.protocol.otel import conversation_to_trace_id, span_id_of, trace_id_of_session
from observatory.protocol.responses import Rejected

TargetKind = Literal["agent", "capability", "cluster"]
PREFIX_OF_KIND: dict[str, str] = {"capability": "type:", "cluster": "cluster:"}
ROUTER = "sys_router"


class MessageTarget(NamedTuple):
    kind: TargetKind
    name: str


def message_id_of(*parts: object) -> str:
    """The id of a system message: always the same for the same cause."""
    return f"msg_{uuid.uuid5(NAMESPACE, '/'.join(map(str, parts)))}"


def system_message(
    who: Principal,
    *,
    message_id: str,
    sender: str,
    target: MessageTarget,
    intent: str,
    payload: Mapping[str, Any],
    session_id: str | None,
    at_ns: int,
    now_ns: int,
) -> Submission:
    """`sender` is an entity id of the gateway (`sys_…`). Invalid content is refused with 422."""
    metadata: dict[str, Any] = {"intent": intent, "payload": payload}
    if session_id is not None:
        metadata["session_id"] = session_id
    if target.kind == "agent":
        recipient = {"entity_id": agent_entity_id(who.tenant_id, target.name), "entity_type": "agent"}
    else:
        recipient = {"entity_id": ROUTER, "entity_type": "system"}
        metadata["address"] = PREFIX_OF_KIND[target.kind] + target.name
    trace_id = trace_id_of_session(session_id) if session_id else conversation_to_trace_id(message_id)
    raw = msgspec.json.encode(
        {
            "envelope_version": "1.0.0",
            "message_id": message_id,
            "trace_id": trace_id,
            "span_id": span_id_of(message_id),
            "parent_span_id": None,
            "timestamp": from_ns(at_ns),
            "sender": {"entity_id": sender, "entity_type": "system"},
            "recipient": recipient,
            "message_type": "text",
            "priority": "normal",
            "payload": {"content": intent, "format": "plain"},
            "metadata": metadata,
        }
    )
    result = intercept(raw)
    if isinstance(result, Message):
        if target.kind == "agent" and not target.name.startswith(USER) and ":" not in target.name:
            # By name, which gives the same id: rules refer to names, and the agent may not be registered.
            result = msgspec.structs.replace(result, recipient=target.name)
        return IncomingMessage(result, who, now_ns, len(raw))
    return _rejected(who, raw, result.faults if isinstance(result, SchemaViolation) else (), result, now_ns)


def unreadable_message(who: Principal, raw: bytes, now_ns: int) -> RejectedBody:
    """The refusal of stored content that can no longer be parsed."""
    return _rejected(who, raw, (), None, now_ns)


def _rejected(
    who: Principal, raw: bytes, faults: tuple[Any, ...], result: object, now_ns: int
) -> RejectedBody:
    """System messages are validated like all others; the refusal records the rule and the hash."""
    large = isinstance(result, TooLarge)
    digest = f"sha256:{sha256(raw).hexdigest()}"
    reason = "too_large" if large else "schema_violation"
    return RejectedBody(
        principal=who,
        received_ns=now_ns,
        agent_id=None,
        capability_version=None,
        reason=faults[0].problem if faults else reason,
        raw_payload_hash=digest,
        answer=Rejected(reason=reason, faults=faults, raw_payload_hash=digest),
        code=413 if large else 422,
    )
