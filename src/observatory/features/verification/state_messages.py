"""A message's row against the event that tells of it and the bytes that were archived."""

from __future__ import annotations

from typing import Any

from observatory.features.backup.restore_relay import NO_LIMIT
from observatory.features.verification.state_report import Difference
from observatory.ledger.export import Archived, Entry
from observatory.pipeline.interceptor import intercept
from observatory.protocol.message import Message
from observatory.protocol.otel import span_id_of, trace_id_of_session
from observatory.protocol.steps import parent_name, step_name, step_of_name
from observatory.store.keys import dedupe_key

STATES = {
    "message_delivered": "forwarded",
    "heartbeat": "forwarded",
    "message_held": "held",
    "message_refused": "refused",
}


def difference(tenant_id: str, entry: Entry, event: dict[str, Any], dedupe: object) -> Difference | None:
    """The first column that says something else than the record. The digest is checked with the bytes."""
    row, body, attributes = entry.message, event["body"], event["attributes"]
    assert row is not None
    number = str(entry.sequence_number)
    if row.session_id is None:  # its session's row is gone
        return Difference("messages", number, "session_no", event["trace_id"], None)
    name = step_name(row.session_id, row.step_id, row.message_id)
    told: tuple[tuple[str, object, object], ...] = (
        ("message_id", body.get("message_id"), row.message_id),
        ("message_type", body.get("message_type"), row.message_type),
        ("state", STATES.get(body["event_type"]), row.state),
        ("step_id", attributes.get("av.step.id"), row.step_id),
        ("session_no", event["trace_id"], trace_id_of_session(row.session_id)),
        ("dedupe", dedupe_key(tenant_id, name), dedupe),
    )
    for column, says, has in told:
        if says != has:
            return Difference("messages", number, column, says, has)
    if row.state == "refused":
        told = (
            ("warnings", [body.get(one) or "" for one in ("reason", "rule_id", "cap")], [*row.warnings[:3]]),
        )
        if told[0][1] != told[0][2]:
            return Difference("messages", number, *told[0])
    return _parents(entry.sequence_number, row, event)


def _parents(number: int, row: Archived, event: dict[str, Any]) -> Difference | None:
    """Declared ones by the bytes; one that the gateway inferred by the span the event hangs on."""
    span = event["parent_span_id"]
    if span is None and not row.parents and not row.parent_inferred:
        return None
    found = None if row.raw is None else intercept(row.raw, NO_LIMIT)
    message = found if isinstance(found, Message) else None
    declared = () if message is None else tuple(parent_name(row.session_id, one) for one in message.parents)
    if declared:
        says = (declared, False)
        if (row.parents, row.parent_inferred) != says:
            return Difference("messages", str(number), "parents", list(declared), list(row.parents))
        return None
    own = None if message is None else message.parent_span_id
    if own is not None:
        return None  # its bytes name the span: what the gateway inferred is not in the record
    if row.parents:
        has = span_id_of(step_of_name(row.parents[0]))
        is_one = len(row.parents) == 1 or message is None
        is_whole = has == span and is_one and (row.parent_inferred or message is None)
        return None if is_whole else Difference("messages", str(number), "parents", span, has)
    context = str(event["attributes"].get("av.trace.parent", "")).split("-")
    is_context = len(context) == 4 and context[2] == span
    return None if is_context else Difference("messages", str(number), "parents", span, None)
