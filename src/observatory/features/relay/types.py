"""Response types of the relay's read routes."""

from __future__ import annotations

import json as plain_json
from hashlib import sha256
from typing import Annotated, Literal, NamedTuple

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
    """A person's intervention and its state.

    `proven`: whether the agent's own key or certificate acknowledged it; null until acknowledged.
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


class Commanded(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The response to a command: its status and the state after it."""

    status: str
    session_id: str
    agent_id: str
    intervention_id: str | None = None
    sequence_number: int | None = None
    message_id: str | None = None
    state: str | None = None
    confirmation: str | None = None
    before_hash: str | None = None
    after_hash: str | None = None
    delivery_id: str | None = None
    released: int | None = None
    remaining: int | None = None
    rejected: int | None = None
    approvals: list[str] | None = None
    needed: int | None = None


Note = Annotated[str, msgspec.Meta(max_length=4_000)]


class FactTarget(NamedTuple):
    """An agent in a session, whether it must be notified, and how many times it was before.

    This was looked up before the lock: a concurrent notification of the same kind already uses the id that
    `notification_id` returns.
    """

    session_id: str
    agent_id: str
    notify: bool = True
    times: int = 0


def hashed(text: str) -> str:
    return "sha256:" + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


LONGEST_QUOTED = 300


def quoted(text: str) -> str:
    """An agent's text inside an operator's prompt, as one line of JSON text, so that it cannot pose as the
    operator's.

    Characters that could break the line or hide in it are escaped too.
    """
    line = plain_json.dumps(text[:LONGEST_QUOTED], ensure_ascii=False)
    return "".join(char if char.isprintable() else plain_json.dumps(char)[1:-1] for char in line)


MAX_RELEASED_AT_ONCE = 1_000
