"""Deliveries as the socket, the stream and the poll return them."""

from __future__ import annotations

from typing import Any

import msgspec


class InboxSender(msgspec.Struct, kw_only=True):
    agent_id: str
    entity_id: str


class InboxItem(msgspec.Struct, kw_only=True):
    """A delivery: the same on the socket (with `type: "delivery"`), in a stream and in a poll."""

    delivery_id: str
    sequence_number: int
    kind: str
    session_id: str | None
    created_at: str
    traceparent: str | None
    tracestate: str | None
    message_id: str | None
    message_type: str | None
    sender: InboxSender | None
    message: dict[str, Any] | None
    body: dict[str, Any]


class InboxAnswer(msgspec.Struct, kw_only=True):
    items: list[InboxItem]
