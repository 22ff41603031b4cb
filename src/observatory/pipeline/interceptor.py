"""Validation of a message body: takes bytes, returns a `Message` or the reasons for refusing it.

Law (rulings 4, 12): an invalid body does not pass, and only its hash is recorded. The fast path is a typed
decode that refuses unknown fields, invalid UTF-8, lone surrogates and non-finite numbers, plus cheap checks
for the other rules, which may give false alarms but never miss a fault; a doubtful body goes to the exact
parse, a faulty one to the slow walk over the same structs. Pure: no clock, no store; the same bytes give the
same result. It never raises on input.
"""

import re
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET

from observatory.pipeline import faults
from observatory.pipeline.unknown_fields import count_unknown
from observatory.pipeline.validation import ROOT
from observatory.protocol import clock
from observatory.protocol.decision_log import DecisionLog, Identity, Meta
from observatory.protocol.decoders import outline_decoder, patterns_of, strict_decoder
from observatory.protocol.document import has_no_duplicate_keys, has_same_keys, parse
from observatory.protocol.envelope import AnyEnvelope, Envelope, priority_of
from observatory.protocol.events import INFO, SEVERITY, alert_severity
from observatory.protocol.identity import canonical_id, canonical_uuid
from observatory.protocol.message import Form, Message
from observatory.protocol.messages import ActionConfirmation, Heartbeat, StatusAlert, SystemEvent
from observatory.protocol.otel import uuid_of_trace
from observatory.protocol.responses import Fault
from observatory.protocol.rules import MAX_SAFE, NAME

NO_PARENT: Final = "meta.parent_step_id is missing; send null for a root step"
ADDRESS_PREFIXES: Final = ("type:", "cluster:", "session:")
INPUT_NOT_JSON: Final = "action.tool_input is not JSON; it was stored unchanged"


class MessageLimits(msgspec.Struct, frozen=True):
    """Limits of a message body."""

    message_bytes: int = 1_048_576
    # Incoming logs need a non-empty intent (S1167); archived ones are read as they are.
    needs_intent: bool = False


class SchemaViolation(msgspec.Struct, frozen=True):
    """A body that breaks the contract: 422. Names are set only when they are themselves valid."""

    faults: tuple[Fault, ...]
    raw_payload_hash: str
    agent_id: str | None = None
    capability_version: str | None = None

    @property
    def violation_reason(self) -> str:
        """One line for the event: the first fault and the number of others."""
        first = self.faults[0]
        more = f" (and {len(self.faults) - 1} more)" if len(self.faults) > 1 else ""
        return f"{first.path}: {first.problem}{more}"


class NotJson(msgspec.Struct, frozen=True):
    """A body that is not JSON: 400."""

    raw_payload_hash: str


class TooLarge(msgspec.Struct, frozen=True):
    """A body beyond the limit: 413. It was neither hashed nor parsed."""

    limit: int


Intercepted = Message | SchemaViolation | NotJson | TooLarge

_DEFAULT: Final = MessageLimits()
_DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_ENVELOPE: Final = cast(type[Envelope], AnyEnvelope)
# Its patterns are checked by `_fits`.
_strict_log: Final = strict_decoder(DecisionLog, patterns=False).decode
_lenient_log: Final = msgspec.json.Decoder(DecisionLog).decode
_strict_envelope: Final = strict_decoder(_ENVELOPE).decode
_lenient_envelope: Final = msgspec.json.Decoder(_ENVELOPE).decode
_outline: Final = outline_decoder(DecisionLog).decode
_encode: Final = msgspec.json.Encoder().encode
_json: Final = msgspec.json.Decoder().decode
_NIL: Final = "0" * 32
_PATTERNS: Final = patterns_of(DecisionLog)
_is_name, _is_version, _session_pattern, _is_reference = (
    re.compile(_PATTERNS[path]).search
    for path in (
        "identity.agent_id",
        "identity.capability_version",
        "meta.session_id",
        "meta.parent_step_id",
    )
)


def intercept(raw: bytes, limits: MessageLimits = _DEFAULT) -> Intercepted:
    """Validate one body."""
    if len(raw) > limits.message_bytes:
        return TooLarge(limits.message_bytes)
    digest = sha256(raw).digest()
    message = None
    try:
        # A hint: a wrong guess fails to decode and goes to the exact check.
        if raw.startswith(b'{"meta"') or b'"envelope_version"' not in raw:
            log = _strict_log(raw)
            if (
                b"\\u0000" not in raw
                and _has_no_twin_fields(raw)
                and _fits(log.meta, log.identity)
                and not _has_huge_cost(log)
            ):
                message = _from_log(raw, digest, log, ())
        else:
            envelope = _strict_envelope(raw)
            if b"\\u0000" not in raw and has_no_duplicate_keys(raw) and not _has_free_values(envelope):
                message = _from_envelope(raw, digest, envelope, ())
    except _DECODE_ERRORS:
        pass
    if message is None or (limits.needs_intent and _has_empty_intent(message.log)):
        return _check_exactly(raw, digest, limits.needs_intent)
    return message


def _has_empty_intent(log: DecisionLog | None) -> bool:
    return log is not None and log.cognition is not None and not log.cognition.intent.strip()


def _has_no_twin_fields(raw: bytes) -> bool:
    """`has_no_twin_keys` for a log the strict decoder accepted: half the work, as all its keys are known.

    The outline is never longer than the log, so equal lengths prove that no key was dropped. Whitespace
    between values makes it shorter too; then the keys are counted.
    """
    again = _encode(_outline(raw))
    return len(again) == len(raw) or has_same_keys(again, raw)


def _fits(meta: Meta, identity: Identity) -> bool:
    """Whether all text matches its pattern, which `_strict_log` does not check.

    An agent sends the same names in every message, and a UUID is valid wherever a name or a reference is:
    so there is seldom anything to match.
    """
    step, parent, parents = meta.step_id, meta.parent_step_id, meta.parent_step_ids
    return (
        _are_names(
            identity.agent_id,
            identity.agent_type,
            identity.capability_version,
            meta.cluster_id,
            identity.model,
            identity.provider,
            identity.recipient,
        )
        and (meta.session_id is None or _is_session_id(meta.session_id))
        and (step is None or canonical_uuid(step) is not None or _is_name(step) is not None)
        and (not parent or canonical_uuid(parent) is not None or _is_reference(parent) is not None)
        and (not parents or all(_is_reference(one) is not None for one in parents))
    )


@lru_cache(maxsize=16_384)
def _are_names(agent_id: str, agent_type: str, version: str, *others: str | None) -> bool:
    names = (agent_id, agent_type, *others)
    return _is_version(version) is not None and all(
        _is_name(one) is not None for one in names if one is not None
    )


@lru_cache(maxsize=16_384)
def _is_session_id(text: str) -> bool:
    return _session_pattern(text) is not None


def _has_huge_cost(log: DecisionLog) -> bool:
    """The costs are the only numbers without bounds; a huge one may be an integer beyond 2^53-1."""
    delta = log.state_delta
    return delta is not None and (
        abs(delta.cumulative_session_cost or 0) > MAX_SAFE or abs(delta.cost or 0) > MAX_SAFE
    )


def _has_free_values(envelope: Envelope) -> bool:
    """Whether free-form objects contain anything but text: they may nest or hold huge integers."""
    payload = envelope.payload
    free: list[dict[str, Any] | None] = [envelope.metadata]
    if isinstance(payload, ActionConfirmation):
        free += [payload.before_state, payload.after_state]
    elif isinstance(payload, SystemEvent):
        free.append(payload.detail)
    return any(type(item) is not str for one in free if one for item in one.values())


def _check_exactly(raw: bytes, digest: bytes, needs_intent: bool) -> Message | SchemaViolation | NotJson:
    """The exact check: unknown fields are kept and counted, all faults are found."""
    document = parse(raw)
    if document is None:
        return NotJson(f"sha256:{digest.hex()}")
    if document.clean:
        message = _lenient(raw, digest, document.value)
        if message is not None and not (needs_intent and _has_empty_intent(message.log)):
            return message
    problems = faults.collect(document.value)
    if needs_intent and faults.has_empty_intent(document.value):
        problems.append(Fault("cognition.intent", "must not be empty"))
    problems = problems or [Fault(ROOT, "does not match the schema")]
    agent_id, version = faults.sender_of(document.value)
    return SchemaViolation(tuple(problems), f"sha256:{digest.hex()}", agent_id, version)


def _lenient(raw: bytes, digest: bytes, value: Any) -> Message | None:
    try:
        form = faults.form_of(value)
        if form == "envelope":
            envelope = _lenient_envelope(raw)
            return _from_envelope(raw, digest, envelope, _unknown(value, form))
        log = _lenient_log(raw)
        return _from_log(raw, digest, log, _unknown(value, form))
    except _DECODE_ERRORS:
        return None


def _unknown(value: Any, form: Form) -> tuple[str, ...]:
    return tuple(
        f"{section}: {count} unknown field{'s' if count > 1 else ''} kept in the archive and not read"
        for section, count in count_unknown(value, form).items()
    )


def _from_log(raw: bytes, digest: bytes, log: DecisionLog, warnings: tuple[str, ...]) -> Message | None:
    """None when a rule beyond the types is broken: the trace id is not a UUID, the time is invalid."""
    meta, identity, action = log.meta, log.identity, log.action
    trace_id = _trace_hex(meta.trace_id)
    try:
        timestamp, timestamp_ns = clock.parse(meta.timestamp)
    except ValueError:
        return None
    if trace_id is None:
        return None
    parent = meta.parent_step_id
    if parent is UNSET:
        warnings += (NO_PARENT,)
    if action.tool_input is not None and not _is_json(action.tool_input):
        warnings += (INPUT_NOT_JSON,)
    parents: tuple[str, ...] = (canonical_id(parent),) if parent else ()
    if meta.parent_step_ids:
        parents = tuple(
            dict.fromkeys((*parents, *(canonical_id(one) for one in meta.parent_step_ids if one)))
        )
    session_id = meta.session_id and _recurring_id(meta.session_id)
    step_id = name = meta.step_id
    if step_id is not None:
        uuid = canonical_uuid(step_id)
        if uuid is not None:
            step_id = name = uuid
        else:  # what `step_name` returns, without checking again whether it is a UUID
            name = f"{session_id or uuid_of_trace(trace_id)}/{step_id}"
    # By position: naming 32 fields costs a microsecond, and nearly every message is made here.
    return Message(
        "decision_log",
        "decision_log",
        None,  # message_id
        raw,
        digest,
        timestamp,
        timestamp_ns,
        trace_id,
        session_id,
        step_id,
        name,
        parents,
        None,  # span_id
        None,  # parent_span_id
        "agent",
        identity.agent_id,
        None,  # hub_address
        identity.recipient,
        None,  # recipient_type
        identity.agent_type,
        identity.capability_version,
        meta.cluster_id,
        identity.model,
        identity.provider,
        None,  # conversation_id
        "normal",
        INFO,
        action.tool_call,
        action.status,
        log,
        None,  # envelope
        warnings,
    )


# Messages of one session share its id and often its trace.
_recurring_id: Final = lru_cache(maxsize=16_384)(canonical_id)


@lru_cache(maxsize=16_384)
def _trace_hex(text: str) -> str | None:
    """The 32 digits of a trace id; None when it is not a UUID, or all zero."""
    digits = (canonical_uuid(text) or _NIL).replace("-", "")
    return digits if digits != _NIL else None


def _is_json(text: str) -> bool:
    try:
        _json(text)
    except (*_DECODE_ERRORS, UnicodeEncodeError):
        return False
    return True


def _from_envelope(raw: bytes, digest: bytes, envelope: Envelope, warnings: tuple[str, ...]) -> Message:
    timestamp, timestamp_ns = clock.parse(envelope.timestamp)
    trace_id = envelope.trace_id.lower()
    metadata = envelope.metadata or {}
    session_id = metadata.get("session_id")
    severity, tool, status = _summary(envelope)
    recipient, recipient_type = _recipient_of(envelope)
    return Message(
        form="envelope",
        message_type=envelope.message_type,
        message_id=envelope.message_id,
        raw=raw,
        digest=digest,
        timestamp=timestamp,
        timestamp_ns=timestamp_ns,
        trace_id=trace_id,
        session_id=canonical_id(session_id) if session_id else uuid_of_trace(trace_id),
        step_id=envelope.message_id,
        name=envelope.message_id,
        parents=(),
        span_id=envelope.span_id.lower(),
        parent_span_id=envelope.parent_span_id and envelope.parent_span_id.lower(),
        sender_type=envelope.sender.entity_type,
        sender_id=envelope.sender.entity_id,
        hub_address=envelope.sender.hub_address,
        recipient=recipient,
        recipient_type=recipient_type,
        agent_type=None,
        capability_version=None,
        cluster_id=None,
        model=None,
        provider=None,
        conversation_id=metadata.get("conversation_id"),
        priority=priority_of(envelope),
        severity=severity,
        tool=tool,
        status=status,
        log=None,
        envelope=envelope,
        warnings=warnings,
    )


def _recipient_of(envelope: Envelope) -> tuple[str, str | None]:
    """The recipient's entity id and type; or, for an envelope to the gateway whose metadata names an address,
    that address: the router chooses the agent."""
    to = envelope.recipient
    address = (envelope.metadata or {}).get("address") if to.entity_type == "system" else None
    if isinstance(address, str) and address.startswith(ADDRESS_PREFIXES) and NAME.search(address):
        return address, None
    return to.entity_id, to.entity_type


def _summary(envelope: Envelope) -> tuple[int, str | None, str | None]:
    """Severity, tool and status: constants of the protocol, never text of the payload."""
    payload = envelope.payload
    if isinstance(payload, Heartbeat):
        return SEVERITY["heartbeat"], None, None
    if isinstance(payload, StatusAlert):
        return alert_severity(payload.severity), None, payload.severity
    if isinstance(payload, ActionConfirmation):
        return INFO, payload.action_type, payload.status
    return INFO, None, None
