"""The archive's answer for one message."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from observatory.features.redaction.queries_shredded import ShreddedBy


class MessageItem(msgspec.Struct, kw_only=True):
    message_id: str
    session_id: str
    step_id: str
    sequence_number: int
    message_type: str
    state: Literal["forwarded", "held", "rejected", "refused"]
    parents: list[str]
    parent_inferred: bool
    interrupt_signal: Literal["pause", "rewrite"] | None
    rewritten: bool
    shredded: ShreddedBy | None = None
    message: dict[str, Any] | None
