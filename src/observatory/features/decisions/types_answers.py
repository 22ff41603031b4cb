"""The answer for one decision."""

from __future__ import annotations

from typing import Literal

import msgspec

from observatory.protocol.messages import ContextRef, DecisionOption, RiskLevel


class DecisionItem(msgspec.Struct, kw_only=True):
    """A decision as requested and its state; texts are null once they were shredded."""

    decision_id: str
    state: Literal["pending", "answered", "expired", "cancelled", "executing", "succeeded", "failed"]
    user_id: str
    agent_id: str | None
    entity_id: str | None
    session_id: str
    message_id: str | None
    sequence_number: int
    title: str | None
    description: str | None
    options: list[DecisionOption]
    context_refs: list[ContextRef]
    risk: RiskLevel | None
    deadline: str | None
    auto_option_id: str | None
    requested_at: str
    selected_option_id: str | None
    answered_by: str | None
    answered_at: str | None
    response_sequence_number: int | None
    action_id: str | None
    updated_at: str
