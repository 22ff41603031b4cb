"""The internal message: both wire forms are parsed into this struct.

Law (ruling 1): the pipeline sees only this struct. `raw` is the body as sent, byte for byte, and `digest`
its SHA-256; everything else is parsed from it and can be parsed again. UUIDs and times are in canonical
spelling.
"""

from typing import Literal

from msgspec import Struct

from observatory.protocol.decision_log import DecisionLog
from observatory.protocol.envelope import Envelope
from observatory.protocol.identity import EntityType

Form = Literal["decision_log", "envelope"]


class Message(Struct, frozen=True, gc=False):
    """A valid message with the fields the stages need."""

    form: Form
    message_type: str
    message_id: str | None  # the sender's own (envelope)
    raw: bytes
    digest: bytes
    timestamp: str
    timestamp_ns: int
    trace_id: str  # 32 hex
    session_id: str | None  # declared; an envelope's is metadata.session_id, else its trace as a UUID
    step_id: str | None  # declared; an envelope's is its message_id
    name: str | None  # name of that step, unique in its tenant; see steps.py
    parents: tuple[str, ...]
    span_id: str | None
    parent_span_id: str | None
    sender_type: EntityType
    sender_id: str  # a DecisionLog's is the agent's name, an envelope's the entity id
    hub_address: str | None
    recipient: str | None  # as declared
    recipient_type: str | None
    agent_type: str | None
    capability_version: str | None
    cluster_id: str | None
    model: str | None
    provider: str | None
    conversation_id: str | None
    priority: str
    severity: int
    tool: str | None  # for the summary line only
    status: str | None  # for the summary line only
    log: DecisionLog | None
    envelope: Envelope | None
    warnings: tuple[str, ...]
