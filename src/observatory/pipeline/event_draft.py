"""Drafts of events recorded by stages and effects: in a session, and about the current message."""

from __future__ import annotations

from typing import Any

from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.rows import SessionRow
from observatory.pipeline.state import EventDraft
from observatory.protocol.clock import from_ns
from observatory.protocol.events import SEVERITY


def in_session(
    session: SessionRow, event_type: str, summary: str, detail: dict[str, Any], now_ns: int, **more: Any
) -> EventDraft:
    return EventDraft(
        event_type=event_type,
        severity=SEVERITY[event_type],
        timestamp=from_ns(now_ns),
        timestamp_ns=now_ns,
        trace_id=session.trace_id,
        session_no=session.session_no,
        summary=summary,
        detail=detail,
        **more,
    )


def of_message(
    ctx: MessageContext, event_type: str, summary: str, detail: dict[str, Any], now_ns: int, **more: Any
) -> EventDraft:
    """Draft an event in the message's session, with its sender as sender."""
    session, message = ctx.session, ctx.message
    assert session is not None  # placement is an earlier stage
    members = {"message_id": message.message_id, "message_type": message.message_type} | more
    members |= {"sender_id": ctx.entity_id, "sender_type": message.sender_type}
    members |= {"key_id": ctx.principal.key_id or None}
    return in_session(session, event_type, summary, detail, now_ns, **members)
