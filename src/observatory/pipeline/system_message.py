"""A summons: a message of the house to an agent, a capability or a cluster.

The clock and the outside world speak to agents by it. Law: it enters the corridor like any message and is
judged there: policy, budget, kill-switch, routing, chain, inbox. Its bytes follow from what it is made of,
`at_ns` included and the moment of sending not, so made again under the same id it is a repeat and does
nothing. It is a `text`: a kill-switch holds it, which would let a `system_event` pass.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal, NamedTuple

import msgspec

from observatory.pipeline.interceptor import TooLarge, Violation, intercept
from observatory.pipeline.state import Arrival, Breach, Principal, Submission
from observatory.protocol.answers import Rejected
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import NAMESPACE, USER, agent_entity_id
from observatory.protocol.message import Message
from observatory.protocol.otel import conversation_to_trace_id, span_id_of, trace_id_of_session

TargetKind = Literal["agent", "capability", "cluster"]
PLACE: dict[str, str] = {"capability": "type:", "cluster": "cluster:"}
ROUTER = "sys_router"


class Target(NamedTuple):
    kind: TargetKind
    name: str


def message_id_of(*parts: object) -> str:
    """The id of a message of the house: always the same for the same cause."""
    return f"msg_{uuid.uuid5(NAMESPACE, '/'.join(map(str, parts)))}"


def summons(
    who: Principal,
    *,
    message_id: str,
    sender: str,
    target: Target,
    intent: str,
    payload: Mapping[str, Any],
    session_id: str | None,
    at_ns: int,
    now_ns: int,
) -> Submission:
    """`sender` is an entity id of the house (`sys_…`). What breaks the contract is a breach, answered 422."""
    metadata: dict[str, Any] = {"intent": intent, "payload": payload}
    if session_id is not None:
        metadata["session_id"] = session_id
    if target.kind == "agent":
        recipient = {"entity_id": agent_entity_id(who.tenant_id, target.name), "entity_type": "agent"}
    else:
        recipient = {"entity_id": ROUTER, "entity_type": "system"}
        metadata["address"] = PLACE[target.kind] + target.name
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
    found = intercept(raw)
    if isinstance(found, Message):
        if target.kind == "agent" and not target.name.startswith(USER) and ":" not in target.name:
            # By its name, which makes the same id: rules speak of names, and it may never have registered.
            found = msgspec.structs.replace(found, recipient=target.name)
        return Arrival(found, who, now_ns, len(raw))
    return _breach(who, raw, found.faults if isinstance(found, Violation) else (), found, now_ns)


def unsayable(who: Principal, raw: bytes, now_ns: int) -> Breach:
    """What was to be said cannot be read any more, so no message can be made of it."""
    return _breach(who, raw, (), None, now_ns)


def _breach(who: Principal, raw: bytes, faults: tuple[Any, ...], found: object, now_ns: int) -> Breach:
    """Nothing of the house enters unread either; what is told is the rule and the hash."""
    large = isinstance(found, TooLarge)
    digest = f"sha256:{sha256(raw).hexdigest()}"
    reason = "too_large" if large else "schema_violation"
    return Breach(
        principal=who,
        received_ns=now_ns,
        agent_id=None,
        capability_version=None,
        reason=faults[0].problem if faults else reason,
        raw_payload_hash=digest,
        answer=Rejected(reason=reason, faults=faults, raw_payload_hash=digest),
        code=413 if large else 422,
    )
