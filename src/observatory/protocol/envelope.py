"""The transport envelope: sender, recipient, payload and trace of a message.

Law: the seed's ten required keys; `parent_span_id` must be present and may be null (a first message).
`message_type` is the tag that selects the payload's struct, so one decode checks both, and the JSON
Schema is a plain union. An entity's id must carry the prefix of its type. `envelope_version` 1.x.
"""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final, Literal

from observatory.protocol import messages as m
from observatory.protocol.identity import AGENT, USER, EntityType
from observatory.protocol.messages import Checked, Fault, Free
from observatory.protocol.rules import (
    NAME,
    EntityId,
    EnvelopeVersion,
    MessageId,
    Name,
    SpanHex,
    Timestamp,
    TraceHex,
)

MessageType = Literal[
    "decision_request",
    "decision_response",
    "status_alert",
    "artifact_share",
    "action_confirmation",
    "heartbeat",
    "text",
    "system_event",
]
Priority = Literal["low", "normal", "high", "critical"]

_DEFAULT_PRIORITY: Final[dict[str, Priority]] = {
    "decision_request": "high",
    "heartbeat": "low",
}
_ALERT_PRIORITY: Final[dict[str, Priority]] = {"error": "high", "critical": "critical"}
_PREFIX: Final[dict[str, str]] = {"agent": AGENT, "user": USER}


class Party(Checked, frozen=True, kw_only=True):
    """A sender or a recipient."""

    entity_id: EntityId
    entity_type: EntityType
    hub_address: Name | None = None

    @classmethod
    def cross_faults(cls, get: Callable[[str], Any]) -> Iterable[Fault]:
        prefix = _PREFIX.get(get("entity_type"), "")
        if not get("entity_id").startswith(prefix):
            yield "entity_id", f"must start with {prefix} for this entity_type"


class Envelope(Checked, frozen=True, kw_only=True, tag_field="message_type"):
    """The fields of all eight message types. Decode with `AnyEnvelope`, never with this base class."""

    times: ClassVar = ("timestamp",)

    envelope_version: EnvelopeVersion
    message_id: MessageId
    trace_id: TraceHex
    span_id: SpanHex
    parent_span_id: SpanHex | None
    timestamp: Timestamp
    sender: Party
    recipient: Party
    payload: m.Payload
    priority: Priority | None = None
    metadata: Free | None = None

    @property
    def message_type(self) -> str:
        return str(self.__struct_config__.tag)

    @classmethod
    def cross_faults(cls, get: Callable[[str], Any]) -> Iterable[Fault]:
        metadata = get("metadata") or {}
        for name in ("session_id", "conversation_id"):
            text = metadata.get(name)
            slash = name == "session_id" and isinstance(text, str) and "/" in text
            if text is not None and (slash or not (isinstance(text, str) and NAME.search(text))):
                rule = "a slash or control characters" if name == "session_id" else "control characters"
                yield (f"metadata.{name}", f"must be 1 to 256 characters without {rule}")


class DecisionRequestEnvelope(Envelope, frozen=True, kw_only=True, tag="decision_request"):
    payload: m.DecisionRequest


class DecisionResponseEnvelope(Envelope, frozen=True, kw_only=True, tag="decision_response"):
    payload: m.DecisionResponse


class StatusAlertEnvelope(Envelope, frozen=True, kw_only=True, tag="status_alert"):
    payload: m.StatusAlert


class ArtifactShareEnvelope(Envelope, frozen=True, kw_only=True, tag="artifact_share"):
    payload: m.ArtifactShare


class ActionConfirmationEnvelope(Envelope, frozen=True, kw_only=True, tag="action_confirmation"):
    payload: m.ActionConfirmation


class HeartbeatEnvelope(Envelope, frozen=True, kw_only=True, tag="heartbeat"):
    payload: m.Heartbeat


class TextEnvelope(Envelope, frozen=True, kw_only=True, tag="text"):
    payload: m.Text


class SystemEventEnvelope(Envelope, frozen=True, kw_only=True, tag="system_event"):
    payload: m.SystemEvent


AnyEnvelope = (
    DecisionRequestEnvelope
    | DecisionResponseEnvelope
    | StatusAlertEnvelope
    | ArtifactShareEnvelope
    | ActionConfirmationEnvelope
    | HeartbeatEnvelope
    | TextEnvelope
    | SystemEventEnvelope
)

BY_TYPE: Final[dict[str, type[Envelope]]] = {
    "decision_request": DecisionRequestEnvelope,
    "decision_response": DecisionResponseEnvelope,
    "status_alert": StatusAlertEnvelope,
    "artifact_share": ArtifactShareEnvelope,
    "action_confirmation": ActionConfirmationEnvelope,
    "heartbeat": HeartbeatEnvelope,
    "text": TextEnvelope,
    "system_event": SystemEventEnvelope,
}


def priority_of(envelope: Envelope) -> Priority:
    """The declared priority, else the seed's default for the type (an alert's follows its severity)."""
    if envelope.priority is not None:
        return envelope.priority
    if isinstance(envelope.payload, m.StatusAlert):
        return _ALERT_PRIORITY.get(envelope.payload.severity, "normal")
    return _DEFAULT_PRIORITY.get(envelope.message_type, "normal")
