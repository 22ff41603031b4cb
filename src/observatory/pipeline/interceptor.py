"""The first stage: bytes in, a `Message` or the reasons why not out.

Law (rulings 4, 12): what is not valid does not pass, and of what did not pass only the hash goes on. The
fast path is a typed decode that refuses unknown fields, invalid UTF-8, lone surrogates and what is not
finite, and cheap looks for the rest that are allowed to doubt but never to miss; any doubt goes to the
exact parse, any fault to the slow walk over the same structs. Pure: no clock, no store; the same bytes
give the same answer. It never raises on input.
"""

import re
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET

from observatory.pipeline import faults
from observatory.pipeline.validation import ROOT
from observatory.protocol import clock
from observatory.protocol.answers import Fault
from observatory.protocol.decision_log import DecisionLog, Identity, Meta
from observatory.protocol.document import has_every_key, has_no_twin_keys, parse
from observatory.protocol.envelope import AnyEnvelope, Envelope, priority_of
from observatory.protocol.events import INFO, SEVERITY, alert_severity
from observatory.protocol.identity import canonical_id, canonical_uuid
from observatory.protocol.message import Form, Message
from observatory.protocol.messages import ActionConfirmation, Heartbeat, StatusAlert, SystemEvent
from observatory.protocol.otel import uuid_of_trace
from observatory.protocol.rules import MAX_SAFE, NAME
from observatory.protocol.sealed import outline_decoder, patterns_of, strict_decoder
from observatory.protocol.unknown import count_unknown

NO_PARENT: Final = "meta.parent_step_id is missing; send null for a root step"
PLACES: Final = ("type:", "cluster:", "session:")
INPUT_NOT_JSON: Final = "action.tool_input is not JSON; it was kept as it is"


class Limits(msgspec.Struct, frozen=True):
    """How much is taken."""

    message_bytes: int = 1_048_576
    # Of what comes in an intent says something (S1167); what was archived before is read as it is.
    needs_intent: bool = False


class Violation(msgspec.Struct, frozen=True):
    """A body that breaks the contract: 422. Names are there only when their own rule holds."""

    faults: tuple[Fault, ...]
    raw_payload_hash: str
    agent_id: str | None = None
    capability_version: str | None = None

    @property
    def violation_reason(self) -> str:
        """One line for the event: the first fault and how many more."""
        first = self.faults[0]
        more = f" (and {len(self.faults) - 1} more)" if len(self.faults) > 1 else ""
        return f"{first.path}: {first.problem}{more}"


class NotJson(msgspec.Struct, frozen=True):
    """A body that is no JSON at all: 400."""

    raw_payload_hash: str


class TooLarge(msgspec.Struct, frozen=True):
    """A body beyond the limit: 413. It was not hashed, nothing of it was read."""

    limit: int


Intercepted = Message | Violation | NotJson | TooLarge

_DEFAULT: Final = Limits()
_DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_ENVELOPE: Final = cast(type[Envelope], AnyEnvelope)
# Its patterns are looked at by `_fits`.
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


def intercept(raw: bytes, limits: Limits = _DEFAULT) -> Intercepted:
    """Judge one body."""
    if len(raw) > limits.message_bytes:
        return TooLarge(limits.message_bytes)
    digest = sha256(raw).digest()
    message = None
    try:
        # A hint, not a verdict: a wrong guess fails to decode and gets the second look.
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
            if b"\\u0000" not in raw and has_no_twin_keys(raw) and not _has_free_values(envelope):
                message = _from_envelope(raw, digest, envelope, ())
    except _DECODE_ERRORS:
        pass
    if message is None or (limits.needs_intent and _is_mute(message.log)):
        return _second_look(raw, digest, limits.needs_intent)
    return message


def _is_mute(log: DecisionLog | None) -> bool:
    return log is not None and log.cognition is not None and not log.cognition.intent.strip()


def _has_no_twin_fields(raw: bytes) -> bool:
    """`has_no_twin_keys` of a log the strict decoder took: half the work, for all its keys are known.

    Its outline is never longer than itself, so equal lengths say that no key was dropped. Spaces between
    the values make it shorter too; then the keys are counted.
    """
    again = _encode(_outline(raw))
    return len(again) == len(raw) or has_every_key(again, raw)


def _fits(meta: Meta, identity: Identity) -> bool:
    """Whether all text fits its pattern, which `_strict_log` does not ask.

    The names of an agent are the same in its every message, and a UUID fits wherever a name or a reference
    does: so there is seldom anything to match.
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
    """Free-form objects may nest or hold huge integers, unless they hold nothing but text."""
    payload = envelope.payload
    free: list[dict[str, Any] | None] = [envelope.metadata]
    if isinstance(payload, ActionConfirmation):
        free += [payload.before_state, payload.after_state]
    elif isinstance(payload, SystemEvent):
        free.append(payload.detail)
    return any(type(item) is not str for one in free if one for item in one.values())


def _second_look(raw: bytes, digest: bytes, needs_intent: bool) -> Message | Violation | NotJson:
    """The exact judgement: unknown fields are kept and counted, faults are all found."""
    document = parse(raw)
    if document is None:
        return NotJson(f"sha256:{digest.hex()}")
    if document.clean:
        message = _lenient(raw, digest, document.value)
        if message is not None and not (needs_intent and _is_mute(message.log)):
            return message
    found = faults.collect(document.value)
    if needs_intent and faults.is_mute(document.value):
        found.append(Fault("cognition.intent", "must say something: it is empty"))
    found = found or [Fault(ROOT, "does not fit the schema")]
    agent_id, version = faults.sender_of(document.value)
    return Violation(tuple(found), f"sha256:{digest.hex()}", agent_id, version)


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
    """None when a rule beyond the types is broken: the trace id is no UUID, the time is no time."""
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
        found = canonical_uuid(step_id)
        if found is not None:
            step_id = name = found
        else:  # what `step_name` says of it, without asking again whether it is a UUID
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
    """The 32 digits of a trace id; None when it is no UUID, or all zero."""
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
    recipient, recipient_type = _whom(envelope)
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


def _whom(envelope: Envelope) -> tuple[str, str | None]:
    """An entity; or, of one to the house whose metadata names a place, that place: the router chooses who."""
    to = envelope.recipient
    address = (envelope.metadata or {}).get("address") if to.entity_type == "system" else None
    if isinstance(address, str) and address.startswith(PLACES) and NAME.search(address):
        return address, None
    return to.entity_id, to.entity_type


def _summary(envelope: Envelope) -> tuple[int, str | None, str | None]:
    """Severity, tool and status: short words of the contract, never text of the payload."""
    payload = envelope.payload
    if isinstance(payload, Heartbeat):
        return SEVERITY["heartbeat"], None, None
    if isinstance(payload, StatusAlert):
        return alert_severity(payload.severity), None, payload.severity
    if isinstance(payload, ActionConfirmation):
        return INFO, payload.action_type, payload.status
    return INFO, None, None
