"""Compares a message's row with its event and its archived bytes."""

from __future__ import annotations

from typing import Any

from observatory.cli.verify.state_report import StateDifference
from observatory.features.rebuild.types import NO_LIMIT
from observatory.ledger.export import ExportedMessage, ExportEntry
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


def difference(
    tenant_id: str, entry: ExportEntry, event: dict[str, Any], dedupe: object
) -> StateDifference | None:
    """The first column that differs from the record. The digest is checked with the bytes."""
    row, body, attributes = entry.message, event["body"], event["attributes"]
    assert row is not None
    number = str(entry.sequence_number)
    if row.session_id is None:  # its session's row is missing
        return StateDifference("messages", number, "session_no", event["trace_id"], None)
    name = step_name(row.session_id, row.step_id, row.message_id)
    comparisons: tuple[tuple[str, object, object], ...] = (
        ("message_id", body.get("message_id"), row.message_id),
        ("message_type", body.get("message_type"), row.message_type),
        ("state", STATES.get(body["event_type"]), row.state),
        ("step_id", attributes.get("av.step.id"), row.step_id),
        ("session_no", event["trace_id"], trace_id_of_session(row.session_id)),
        ("dedupe", dedupe_key(tenant_id, name), dedupe),
    )
    for column, says, has in comparisons:
        if says != has:
            return StateDifference("messages", number, column, says, has)
    if row.state == "refused":
        comparisons = (
            ("warnings", [body.get(one) or "" for one in ("reason", "rule_id", "cap")], [*row.warnings[:3]]),
        )
        if comparisons[0][1] != comparisons[0][2]:
            return StateDifference("messages", number, *comparisons[0])
    return _parents(entry.sequence_number, row, event)


def _parents(number: int, row: ExportedMessage, event: dict[str, Any]) -> StateDifference | None:
    """Declared parents are checked by the bytes; an inferred one by the event's parent span."""
    span = event["parent_span_id"]
    if span is None and not row.parents and not row.parent_inferred:
        return None
    parsed = None if row.raw is None else intercept(row.raw, NO_LIMIT)
    message = parsed if isinstance(parsed, Message) else None
    declared = () if message is None else tuple(parent_name(row.session_id, one) for one in message.parents)
    if declared:
        says = (declared, False)
        if (row.parents, row.parent_inferred) != says:
            return StateDifference("messages", str(number), "parents", list(declared), list(row.parents))
        return None
    own = None if message is None else message.parent_span_id
    if own is not None:
        return None  # its bytes name the span: the inferred parent is not in the record
    if row.parents:
        has = span_id_of(step_of_name(row.parents[0]))
        is_single = len(row.parents) == 1 or message is None
        is_whole = has == span and is_single and (row.parent_inferred or message is None)
        return None if is_whole else StateDifference("messages", str(number), "parents", span, has)
    context = str(event["attributes"].get("av.trace.parent", "")).split("-")
    is_context = len(context) == 4 and context[2] == span
    return None if is_context else StateDifference("messages", str(number), "parents", span, None)
