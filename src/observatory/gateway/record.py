"""From drafts to finished rows: the audit event, its place in the chain, and the message beside it.

Only the pipeline appends. What is built here holds no floats and no payload text: `summary` names
type, agent, tool and status. The exact bytes that were hashed are the bytes stored (ruling 34).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from observatory.gateway.passage import Passage
from observatory.ledger.canonical import jcs
from observatory.ledger.chain import link
from observatory.protocol.clock import from_ns
from observatory.protocol.events import SEVERITY, severity_text
from observatory.protocol.identity import agent_entity_id, mint
from observatory.protocol.message import Message
from observatory.protocol.otel import conversation_to_trace_id, span_id_of
from observatory.protocol.steps import step_of_name
from observatory.rows import Agent, AuditRow, DeliveryRow, Session
from observatory.state import Changes, Draft, Memory, Principal

SYSTEM_SESSION = "/system"  # with a slash, which no session id of an agent may hold


class Service(msgspec.Struct, frozen=True):
    """Who is writing, for the resource block."""

    name: str
    version: str
    environment: str


@lru_cache(maxsize=64)
def system_trace(tenant_id: str) -> str:
    """Events that belong to no session share one trace per tenant."""
    return conversation_to_trace_id(f"{tenant_id}{SYSTEM_SESSION}")


@lru_cache(maxsize=16_384)
def resource(
    service: Service,
    tenant_id: str,
    entity_id: str | None,
    kind: str,
    hub: str | None,
    trust: str | None,
    team: str | None = None,
    workspace: str | None = None,
) -> msgspec.Raw:
    """The seed's resource table, encoded once per entity: it is the same for its every event."""
    block: dict[str, Any] = {
        "service.name": service.name,
        "service.version": service.version,
        "av.tenant.id": tenant_id,
        "av.environment": service.environment,
        "av.entity.type": kind,
    }
    if entity_id is not None:
        block["service.instance.id"] = entity_id
    if hub is not None:
        block["av.entity.hub_address"] = hub
    if trust is not None:
        block["av.trust_level"] = trust
    if team is not None:
        block["av.team.id"] = team
    if workspace is not None:
        block["av.workspace.id"] = workspace
    return msgspec.Raw(jcs(block))


class Scribe:
    """Gives each draft of one batch its number, its hashes and its row."""

    def __init__(self, service: Service, memory: Memory, changes: Changes, now_ns: int) -> None:
        self._service = service
        self.memory = memory
        self.changes = changes
        self.now_ns = now_ns
        self._observed = from_ns(now_ns)
        # A batch has a handful of senders; `resource` hashes more than this to find one.
        self._resources: dict[tuple[Any, ...], msgspec.Raw] = {}

    @property
    def next_sequence(self) -> int:
        return self.memory.head.sequence_number + 1

    def append(self, draft: Draft) -> int:
        """An event of the house."""
        number = self.next_sequence
        event_id = mint("evt_", self.now_ns, number)
        attributes = draft.attributes
        if draft.sender_id is not None:
            attributes["av.sender.entity_id"] = draft.sender_id
            attributes["av.sender.entity_type"] = draft.sender_type
        if draft.recipient_id is not None:
            attributes["av.recipient.entity_id"] = draft.recipient_id
        event = {
            "audit_event_id": event_id,
            "timestamp": draft.timestamp,
            "observed_timestamp": self._observed,
            "trace_id": draft.trace_id,
            "span_id": draft.span_id or span_id_of(event_id),
            "parent_span_id": draft.parent_span_id,
            "trace_flags": 1,
            "severity_number": draft.severity,
            "severity_text": severity_text(draft.severity),
            "body": {
                "event_type": draft.event_type,
                "message_id": draft.message_id,
                "message_type": draft.message_type,
                "summary": draft.summary,
                **draft.detail,
            },
            "resource": self._resource(
                draft.sender_id, draft.sender_type, draft.hub_address, draft.trust_level
            ),
            "attributes": attributes,
        }
        self._write(number, event, draft.timestamp_ns, draft.session_no, draft.sender_id, draft.recipient_id)
        return number

    def tell(self, sequence_number: int, agent_no: int, kind: str, body: dict[str, Any], **more: Any) -> None:
        self.changes.deliveries.append(
            DeliveryRow(
                sequence_number=sequence_number,
                agent_no=agent_no,
                kind=kind,
                created_ns=self.now_ns,
                body=msgspec.json.encode(body).decode(),
                **more,
            )
        )

    def in_session(
        self,
        session: Session,
        event_type: str,
        summary: str,
        detail: dict[str, Any],
        principal: Principal | None = None,
        parent_span_id: str | None = None,
        message_id: str | None = None,
        recipient_id: str | None = None,
    ) -> Draft:
        """A draft of an event of the house or of a person that belongs to a session."""
        return Draft(
            event_type=event_type,
            severity=SEVERITY[event_type],
            timestamp=self._observed,
            timestamp_ns=self.now_ns,
            trace_id=session.trace_id,
            parent_span_id=parent_span_id,
            message_id=message_id,
            session_no=session.session_no,
            summary=summary,
            detail=detail,
            sender_id=principal.entity_id if principal else None,
            sender_type=principal.entity_type if principal else "system",
            recipient_id=recipient_id,
        )

    def chronicle(
        self, passage: Passage, session: Session, event_type: str, detail: dict[str, Any] | None = None
    ) -> int:
        """The event of a message: delivered, held, refused. Built without a draft: it is nearly every one."""
        number = self.next_sequence
        message, agent, sender_id = passage.message, passage.agent, passage.entity_id
        kind = message.message_type
        attributes: dict[str, Any] = {
            "av.conversation.id": message.conversation_id or session.session_id,
            "av.message.type": kind,
            "av.message.priority": message.priority,
            "av.delivery.latency_ms": (passage.received_ns - message.timestamp_ns) // 1_000_000,
            "av.message.digest": "sha256:" + message.digest.hex(),
            "av.step.id": passage.step_id,
            "av.sender.entity_id": sender_id,
            "av.sender.entity_type": message.sender_type,
        }
        hub, trust = message.hub_address, None
        if agent is not None:
            attributes["av.sender.agent_id"] = agent.agent_id
            # Of this very message: another key of the same agent may vouch for less.
            hub = hub or agent.hub_address
            trust = "tenant_verified" if passage.principal.is_bound else "unverified"
        if hub is not None:
            attributes["av.sender.hub_address"] = hub
        recipient_id = None
        if message.recipient is not None:
            recipient_id = _address(passage, message.recipient, attributes)
        parent_span = message.parent_span_id
        if parent_span is None and passage.parents:
            parent_span = span_id_of(step_of_name(passage.parents[0]))
        severity = max(message.severity, SEVERITY[event_type])
        event: dict[str, Any] = {
            "audit_event_id": mint("evt_", self.now_ns, number),
            "timestamp": message.timestamp,
            "observed_timestamp": self._observed,
            "trace_id": session.trace_id,
            "span_id": message.span_id or span_id_of(passage.step_id),
            "parent_span_id": parent_span,
            "trace_flags": 1,
            "severity_number": severity,
            "severity_text": severity_text(severity),
            "body": {
                "event_type": event_type,
                "message_id": passage.message_id,
                "message_type": kind,
                "summary": _summary(message),
            },
            "resource": self._resource(sender_id, message.sender_type, hub, trust, agent),
            "attributes": attributes,
        }
        if detail is not None:
            event["body"] |= detail
        self._write(number, event, message.timestamp_ns, session.session_no, sender_id, recipient_id)
        return number

    def _resource(
        self,
        entity_id: str | None,
        kind: str,
        hub: str | None,
        trust: str | None,
        agent: Agent | None = None,
    ) -> msgspec.Raw:
        team, workspace = (None, None) if agent is None else (agent.team_id, agent.workspace_id)
        key = (entity_id, kind, hub, trust, team, workspace)
        known = self._resources.get(key)
        if known is None:
            tenant_id = self.memory.tenant.tenant_id
            known = self._resources[key] = resource(self._service, tenant_id, *key)
        return known

    def _write(
        self,
        number: int,
        event: dict[str, Any],
        timestamp_ns: int,
        session_no: int,
        sender_id: str | None,
        recipient_id: str | None,
    ) -> None:
        memory = self.memory
        linked = link(memory.head, event, memory.tenant.tenant_id)
        memory.head = linked.head
        self.changes.audit.append(
            AuditRow(
                number,
                timestamp_ns,
                event["severity_number"],
                session_no,
                sender_id,
                recipient_id,
                linked.record,
                linked.leaf_hash,
            )
        )


def _summary(message: Message) -> str:
    told = f"{message.message_type} from {message.sender_id}"
    if message.tool:
        return f"{told}: {message.tool} {message.status}"
    return f"{told}: {message.status}" if message.status else told


def _address(passage: Passage, recipient: str, attributes: dict[str, Any]) -> str | None:
    """The recipient's entity id; `type:`, `cluster:` and `session:` name no entity but a place."""
    kind = passage.message.recipient_type
    if kind is None and recipient.startswith(("type:", "cluster:", "session:")):
        attributes["av.recipient.address"] = recipient
        return None
    attributes["av.recipient.entity_type"] = kind or "agent"
    entity_id = (
        recipient if kind in ("user", "system") else agent_entity_id(passage.principal.tenant_id, recipient)
    )
    attributes["av.recipient.entity_id"] = entity_id
    return entity_id


def notice(
    tenant_id: str,
    event_type: str,
    summary: str,
    now_ns: int,
    principal: Principal | None = None,
    detail: dict[str, Any] | None = None,
    severity: int | None = None,
) -> Draft:
    """An event of the house itself: about access, versions, violations; it belongs to no session."""
    return Draft(
        event_type=event_type,
        severity=SEVERITY[event_type] if severity is None else severity,
        timestamp=from_ns(now_ns),
        timestamp_ns=now_ns,
        trace_id=system_trace(tenant_id),
        summary=summary,
        detail=detail or {},
        sender_id=principal.entity_id if principal else None,
        sender_type=principal.entity_type if principal else "system",
    )
