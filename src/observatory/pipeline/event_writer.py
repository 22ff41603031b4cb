"""Turns event drafts into finished rows: the audit event, its position in the chain, and its deliveries.

Only the pipeline appends. Events contain no floats and no payload text: `summary` names type, agent, tool
and status. The exact bytes that were hashed are the bytes stored (ruling 34).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from observatory.ledger.chain import Linked, link
from observatory.pipeline.message_context import Effect, MessageContext
from observatory.pipeline.message_event import MessageEvents, ServiceInfo
from observatory.pipeline.rows import AuditRow, DeliveryRow, SessionRow
from observatory.pipeline.state import BatchState, EventDraft, Principal, TransactionChanges
from observatory.protocol.clock import from_ns
from observatory.protocol.events import SEVERITY, severity_text
from observatory.protocol.identity import mint
from observatory.protocol.otel import conversation_to_trace_id, span_id_of

SYSTEM_SESSION = "/system"  # with a slash, which no agent's session id may contain


@lru_cache(maxsize=64)
def system_trace(tenant_id: str) -> str:
    """The trace of events without a session: one per tenant."""
    return conversation_to_trace_id(f"{tenant_id}{SYSTEM_SESSION}")


class EventWriter:
    """Gives each draft of one batch its number, its hashes and its row."""

    def __init__(
        self,
        service: ServiceInfo,
        memory: BatchState,
        changes: TransactionChanges,
        now_ns: int,
        forwarded: tuple[Effect, ...] = (),
    ) -> None:
        self._forwarded = forwarded
        self.memory = memory
        self.changes = changes
        self.now_ns = now_ns
        # Key of the submission being processed (S1140); None outside of a batch.
        self.key_id: str | None = None
        self._observed = from_ns(now_ns)
        self._events = MessageEvents(service, memory.tenant.tenant_id, self._observed)

    @property
    def next_sequence(self) -> int:
        return self.memory.head.sequence_number + 1

    def forward(self, ctx: MessageContext, number: int) -> None:
        """What follows from a message being forwarded, at once or after a hold."""
        for effect in self._forwarded:
            effect(ctx, self, number)

    def append(self, draft: EventDraft) -> int:
        """Append an event of the gateway; returns its sequence number."""
        number = self.next_sequence
        event_id = mint("evt_", self.now_ns, number)
        attributes = draft.attributes
        if draft.sender_id is not None:
            attributes["av.sender.entity_id"] = draft.sender_id
            attributes["av.sender.entity_type"] = draft.sender_type
        key_id = draft.key_id or self.key_id
        if key_id is not None:
            attributes["av.sender.key_id"] = key_id
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
            "resource": self._events.resource(
                draft.sender_id, draft.sender_type, draft.hub_address, draft.trust_level
            ),
            "attributes": attributes,
        }
        linked = link(self.memory.head, event, self.memory.tenant.tenant_id)
        self._write(
            linked,
            draft.timestamp_ns,
            draft.severity,
            draft.session_no,
            draft.sender_id,
            draft.recipient_id,
        )
        return number

    def deliver(
        self, sequence_number: int, agent_no: int, kind: str, body: dict[str, Any], **more: Any
    ) -> None:
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
        session: SessionRow,
        event_type: str,
        summary: str,
        detail: dict[str, Any],
        principal: Principal | None = None,
        parent_span_id: str | None = None,
        message_id: str | None = None,
        recipient_id: str | None = None,
    ) -> EventDraft:
        """Draft an event of the gateway or of a person that belongs to a session."""
        return EventDraft(
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
            key_id=principal.key_id if principal else None,
            recipient_id=recipient_id,
        )

    def append_message_event(
        self,
        ctx: MessageContext,
        session: SessionRow,
        event_type: str,
        detail: dict[str, Any] | None = None,
    ) -> int:
        """Append the event of a message: delivered, held, refused. Built without a draft: the most frequent
        case."""
        message, memory = ctx.message, self.memory
        number = memory.head.sequence_number + 1
        if message.message_id is None and not ctx.archived_seq:
            # The message id was just minted for this number: reuse it with the event's prefix.
            event_id = f"evt_{ctx.message_id[4:]}"
        else:
            event_id = mint("evt_", self.now_ns, number)
        severity = max(message.severity, SEVERITY[event_type])
        result = None
        if detail is None:
            result = self._events.linked(memory.head, ctx, session, event_type, event_id, severity)
        if result is None:
            event, recipient_id = self._events.mapping(ctx, session, event_type, event_id, severity, detail)
            result = link(memory.head, event, memory.tenant.tenant_id), recipient_id
        linked, to = result
        self._write(linked, message.timestamp_ns, severity, session.session_no, ctx.entity_id, to)
        return number

    def _write(
        self,
        linked: Linked,
        timestamp_ns: int,
        severity: int,
        session_no: int,
        sender_id: str | None,
        recipient_id: str | None,
    ) -> None:
        self.memory.head = head = linked.head
        self.changes.audit.append(
            AuditRow(
                head.sequence_number,
                timestamp_ns,
                severity,
                session_no,
                sender_id,
                recipient_id,
                linked.record,
                linked.leaf_hash,
            )
        )


def gateway_event(
    tenant_id: str,
    event_type: str,
    summary: str,
    now_ns: int,
    principal: Principal | None = None,
    detail: dict[str, Any] | None = None,
    severity: int | None = None,
) -> EventDraft:
    """Draft an event of the gateway without a session: about access, versions, violations."""
    return EventDraft(
        event_type=event_type,
        severity=SEVERITY[event_type] if severity is None else severity,
        timestamp=from_ns(now_ns),
        timestamp_ns=now_ns,
        trace_id=system_trace(tenant_id),
        summary=summary,
        detail=detail or {},
        sender_id=principal.entity_id if principal else None,
        sender_type=principal.entity_type if principal else "system",
        key_id=principal.key_id if principal else None,
    )
