"""What archive registers with the gateway."""

from __future__ import annotations

from observatory.features.archive.routes import forensics
from observatory.features.archive.routes_records import audit_reading
from observatory.features.archive.routes_violations import VIOLATION_ANSWERS, violations_router
from observatory.features.archive.types import MessageItem
from observatory.http.answers import Page
from observatory.http.feature import Feature
from observatory.protocol.events import AuditEvent

FEATURE = Feature(
    routes=(
        forensics,
        audit_reading,
        violations_router,
    ),
    answers=VIOLATION_ANSWERS
    | {
        "list_messages": Page[MessageItem],
        "get_message": MessageItem,
        "audit_trace": Page[AuditEvent],
        "audit_tenant": Page[AuditEvent],
        "audit_entity": Page[AuditEvent],
    },
)
