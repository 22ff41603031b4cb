"""All faults of an invalid message, each with path and rule: the slow path of the interceptor.

Law: the text of a fault comes from the contract alone. No value of the payload and no name of an unknown key
ever appears in a path or a message, because a refused body is not stored (ruling 12) and responses are
logged. The validators (`validation.py`) are built once, from the same structs the decoder uses, so both agree
on what is valid; they run over an exact parse, stop at the document's depth limit and at 100 faults, and
never raise.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import inspect as kinds

from observatory.pipeline.validation import MAX_FAULTS, ROOT, Validator, validator_of_rule
from observatory.protocol.decision_log import DecisionLog
from observatory.protocol.document import MAX_DEPTH, DuplicateKeys, TooDeep, offences
from observatory.protocol.envelope import BY_TYPE, Envelope
from observatory.protocol.message import Form
from observatory.protocol.responses import Fault


def form_of(value: Any) -> Form:
    """The wire form a body seems to have."""
    if isinstance(value, dict) and (
        "envelope_version" in value or ("message_type" in value and "payload" in value)
    ):
        return "envelope"
    return "decision_log"


def collect(value: Any) -> list[Fault]:
    """All faults of a parsed body, at most a hundred, in the order of the schema."""
    return list(islice(_of_message(value), MAX_FAULTS))


def has_empty_intent(value: Any) -> bool:
    """Whether a log's intent is present and empty."""
    cognition = value.get("cognition") if isinstance(value, dict) else None
    intent = cognition.get("intent") if isinstance(cognition, dict) else None
    return isinstance(intent, str) and not intent.strip()


def sender_of(value: Any) -> tuple[str | None, str | None]:
    """Agent and capability version an invalid body names, each only if it is itself valid."""
    if form_of(value) == "envelope":
        return _valid_text(value, "sender", "entity_id", _ENTITY_ID), None
    return (
        _valid_text(value, "identity", "agent_id", _AGENT_ID),
        _valid_text(value, "identity", "capability_version", _CAPABILITY_VERSION),
    )


def _valid_text(value: Any, section: str, name: str, judge: Validator) -> str | None:
    for step in (section, name):
        # With duplicate keys neither value can be trusted.
        if not isinstance(value, dict) or isinstance(value, DuplicateKeys):
            return None
        value = value.get(step)
    return None if value is None or any(judge(value, "", 1)) else str(value)


def _of_message(value: Any) -> Iterator[Fault]:
    if isinstance(value, TooDeep):
        yield Fault(ROOT, f"must not nest deeper than {MAX_DEPTH} levels")
    elif not isinstance(value, dict):
        yield Fault(ROOT, "must be a JSON object: a DecisionLog or an envelope")
        yield from (Fault(ROOT, problem) for problem in offences(value))
    elif form_of(value) == "decision_log":
        yield from _LOG(value, "", 1)
    else:
        kind = value.get("message_type")
        judge = _ENVELOPES.get(kind) if isinstance(kind, str) else None
        if judge is None:
            yield _untyped(value)
        yield from (judge or _UNTYPED)(value, "", 1)


def _untyped(value: dict[str, Any]) -> Fault:
    if "message_type" not in value:
        return Fault("message_type", "is missing: this field is required")
    return Fault("message_type", f"must be one of {', '.join(_ENVELOPES)}")


def _at(rule: kinds.Type, *names: str) -> kinds.Type:
    """The rule of the field at this path."""
    for name in names:
        assert isinstance(rule, kinds.StructType)
        rule = next(field.type for field in rule.fields if field.encode_name == name)
    return rule


# An envelope of unknown type is validated against the fields all types share.
_SHARED: Final = {field.name: field for field in msgspec.structs.fields(Envelope) if field.name != "payload"}
_UNTYPED_RULE: Final = kinds.type_info(
    msgspec.defstruct(
        "UntypedEnvelope",
        [
            (name, field.type) if field.required else (name, field.type, field.default)
            for name, field in _SHARED.items()
        ]
        + [("payload", dict[str, Any])],
        bases=(),
        kw_only=True,
    )
)
_LOG_RULE: Final = kinds.type_info(DecisionLog)
_LOG: Final = validator_of_rule(_LOG_RULE)
_ENVELOPES: Final = {name: validator_of_rule(kinds.type_info(cls)) for name, cls in BY_TYPE.items()}
_UNTYPED: Final = validator_of_rule(_UNTYPED_RULE)
_ENTITY_ID: Final = validator_of_rule(_at(_UNTYPED_RULE, "sender", "entity_id"))
_AGENT_ID: Final = validator_of_rule(_at(_LOG_RULE, "identity", "agent_id"))
_CAPABILITY_VERSION: Final = validator_of_rule(_at(_LOG_RULE, "identity", "capability_version"))
