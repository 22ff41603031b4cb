"""From drafts to finished rows: the audit event, its place in the chain, and the message beside it.

Only the pipeline appends. What is built here holds no floats and no payload text: `summary` names
type, agent, tool and status. The exact bytes that were hashed are the bytes stored (ruling 34).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from observatory.ledger.canonical import jcs
from observatory.ledger.chain import link
from observatory.protocol.clock import from_ns
from observatory.protocol.events import SEVERITY, severity_text
from observatory.protocol.identity import mint
from observatory.protocol.otel import conversation_to_trace_id, span_id_of
from observatory.state import AuditRow, Changes, Draft, Memory, Principal

SYSTEM_SESSION = "system"


class Service(msgspec.Struct, frozen=True):
    """Who is writing, for the resource block."""

    name: str
    version: str
    environment: str


@lru_cache(maxsize=64)
def system_trace(tenant_id: str) -> str:
    """Events that belong to no session share one trace per tenant."""
    return conversation_to_trace_id(f"{tenant_id}/{SYSTEM_SESSION}")


@lru_cache(maxsize=16_384)
def resource(
    service: Service, tenant_id: str, entity_id: str | None, kind: str, hub: str | None, trust: str | None
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
    return msgspec.Raw(jcs(block))


class Scribe:
    """Gives each draft of one batch its number, its hashes and its row."""

    def __init__(self, service: Service, memory: Memory, changes: Changes, now_ns: int) -> None:
        self._service = service
        self._memory = memory
        self._changes = changes
        self._now_ns = now_ns
        self._observed = from_ns(now_ns)

    @property
    def next_sequence(self) -> int:
        return self._memory.head.sequence_number + 1

    def append(self, draft: Draft) -> int:
        memory, number = self._memory, self.next_sequence
        tenant_id = memory.tenant.tenant_id
        event_id = mint("evt_", self._now_ns, number)
        body = {
            "event_type": draft.event_type,
            "message_id": draft.message_id,
            "message_type": draft.message_type,
            "summary": draft.summary,
        }
        body.update(draft.detail)
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
            "body": body,
            "resource": resource(
                self._service,
                tenant_id,
                draft.sender_id,
                draft.sender_type,
                draft.hub_address,
                draft.trust_level,
            ),
            "attributes": attributes,
        }
        linked = link(memory.head, event, tenant_id)
        memory.head = linked.head
        self._changes.audit.append(
            AuditRow(
                number,
                draft.timestamp_ns,
                draft.severity,
                draft.session_no,
                draft.sender_id,
                draft.recipient_id,
                linked.record,
                linked.leaf_hash,
            )
        )
        return number


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
