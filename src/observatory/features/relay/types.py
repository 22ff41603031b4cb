"""What the relay's reading doors answer."""

from __future__ import annotations

from typing import Literal

import msgspec


class HoldItem(msgspec.Struct, kw_only=True):
    """A message that is held, and why."""

    message_id: str
    step_id: str
    session_id: str
    agent_id: str | None
    entity_id: str | None
    sequence_number: int
    message_type: str
    cause: Literal["pause", "gate", "kill", "order", "ancestor"]
    reason: str
    gate: Literal["none", "open", "approved"]
    waits_for: list[int]
    action_digest: str
    rewritten: bool
    quorum: int
    approvals: list[str]
    requested_by: str
    key_maker: str | None
    deadline: str | None
    on_expiry: Literal["deny", "approve"]
    held_at: str


class InterventionItem(msgspec.Struct, kw_only=True):
    """What a person did, and what became of it.

    `proven`: whether a key or a certificate that is the agent's own acknowledged it; null until then.
    """

    intervention_id: str
    sequence_number: int
    command: Literal["pause", "unpause", "rewrite", "inject", "approve", "edit", "reject", "cancel"]
    operator_id: str
    session_id: str
    agent_id: str | None
    message_id: str | None
    before_hash: str | None
    after_hash: str | None
    note: str | None
    confirmation: Literal["requested", "acknowledged", "confirmed"] | None
    issued_at: str
    acknowledged_at: str | None
    proven: bool | None
    confirmed_at: str | None
    reversed_at: str | None
