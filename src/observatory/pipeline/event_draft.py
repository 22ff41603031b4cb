"""Drafts of events that stages and effects tell of: in a session, and about the message at hand."""

from __future__ import annotations

from typing import Any

from observatory.pipeline.message_context import Passage
from observatory.pipeline.rows import Session
from observatory.pipeline.state import Draft
from observatory.protocol.clock import from_ns
from observatory.protocol.events import SEVERITY


def in_session(
    session: Session, event_type: str, summary: str, detail: dict[str, Any], now_ns: int, **more: Any
) -> Draft:
    return Draft(
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
    passage: Passage, event_type: str, summary: str, detail: dict[str, Any], now_ns: int, **more: Any
) -> Draft:
    """In the message's own session and in its sender's name."""
    session, message = passage.session, passage.message
    assert session is not None  # placement is an earlier stage
    told = {"message_id": message.message_id, "message_type": message.message_type} | more
    told |= {"sender_id": passage.entity_id, "sender_type": message.sender_type}
    told |= {"key_id": passage.principal.key_id or None}
    return in_session(session, event_type, summary, detail, now_ns, **told)
