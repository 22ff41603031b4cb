"""Members of a message that redaction never touches, and members that may have any content.

The record depends on ids, times, senders and enumerated values: a message without them could not be placed. A
step `*` means any index of a list.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, get_args

import msgspec

from observatory.protocol.decision_log import DecisionLog
from observatory.protocol.envelope import BY_TYPE, Envelope
from observatory.protocol.messages import SystemEvent

_NEVER_REDACTED: Final = """
meta.trace_id meta.timestamp meta.parent_step_id meta.cluster_id meta.step_id meta.session_id
meta.parent_step_ids.* identity.agent_id identity.agent_type identity.capability_version identity.model
identity.provider identity.recipient action.status control.interrupt_signal
envelope_version message_id trace_id span_id parent_span_id timestamp message_type priority
sender.entity_id sender.entity_type sender.hub_address
recipient.entity_id recipient.entity_type recipient.hub_address
metadata.session_id metadata.conversation_id
payload.decision_id payload.options.*.option_id payload.options.*.risk_level payload.deadline
payload.auto_action.option_id payload.auto_action.trigger payload.selected_option_id payload.responded_at
payload.alert_id payload.severity payload.artifact_id payload.artifact_type payload.sha256 payload.action_id
payload.status payload.detail.format payload.detail.started_at payload.detail.completed_at
payload.triggered_by.decision_id payload.current_task.task_id payload.current_task.estimated_completion
payload.format payload.reply_to payload.event_id payload.event_type payload.entity_id
"""
_KEPT: Final = frozenset(tuple(word.split(".")) for word in _NEVER_REDACTED.split())
_OF_A_LOG: Final = frozenset(
    steps for steps in _KEPT if steps[0] in ("meta", "identity", "action", "control")
)
_STATES: Final = frozenset({("metadata",), ("payload", "before_state"), ("payload", "after_state")})


class RedactionPlaces(NamedTuple):
    kept: frozenset[tuple[str, ...]]
    free: frozenset[tuple[str, ...]]


def _of_type(kind: type[Envelope]) -> RedactionPlaces:
    """For a payload only what its own struct names: a sender's own member of that name is text like any."""
    (payload,) = (field.type for field in msgspec.structs.fields(kind) if field.name == "payload")
    named = {field.name: field.type for field in msgspec.structs.fields(payload)}
    kept = {
        steps
        for steps in _KEPT - _OF_A_LOG
        if steps[0] != "payload" or (steps[1] in named and (len(steps) == 2 or steps[1] != "detail"))
    }
    if named.get("detail") is not None and payload is not SystemEvent:
        kept |= {steps for steps in _KEPT if steps[:2] == ("payload", "detail")}
    free = _STATES | {("payload", "detail")} if payload is SystemEvent else _STATES
    return RedactionPlaces(frozenset(kept), free)


_LOG: Final = RedactionPlaces(_OF_A_LOG, frozenset())
_ENVELOPES: Final = {name: _of_type(kind) for name, kind in BY_TYPE.items()}


def places_of(message: dict[str, Any]) -> RedactionPlaces:
    return _ENVELOPES.get(message.get("message_type", ""), _LOG) if "envelope_version" in message else _LOG


def _fields(kind: Any, found: set[str]) -> None:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        for field in msgspec.structs.fields(kind):
            found.add(field.encode_name)
            _fields(field.type, found)
        return
    for part in get_args(kind):
        _fields(part, found)


def _known() -> frozenset[str]:
    found: set[str] = {"message_type"}
    for kind in (DecisionLog, *BY_TYPE.values()):
        _fields(kind, found)
    return frozenset(found)


# Names of the schema, at any place: no pattern renames them.
KNOWN_KEYS: Final = _known()
_SECTIONS: Final = frozenset({("meta",), ("identity",), ("sender",), ("recipient",), ("control",)})


def is_protected(steps: tuple[str, ...]) -> bool:
    """Whether a rule for this place would match only what is never touched."""
    return steps in _KEPT or steps in _SECTIONS
