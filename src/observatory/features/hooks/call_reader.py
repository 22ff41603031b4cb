"""Reads one call of a webhook: verifies its signature, parses its body, applies the mapping (S523–S526).

Pure, and not for the event loop: it hashes, parses and maps. The body is parsed only if it is signed.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from observatory.features.hooks import mapping, signatures
from observatory.features.hooks.commands import Row, mapping_of, secrets_of
from observatory.features.hooks.commands_calls import HookCall
from observatory.features.hooks.signatures import SignatureCheck
from observatory.features.hooks.types_mapping import Outcome
from observatory.pipeline.state import Principal, Submission
from observatory.pipeline.system_message import MessageTarget, message_id_of, system_message
from observatory.protocol.document import parse
from observatory.protocol.identity import NAMESPACE
from observatory.protocol.responses import Fault

MAX_FIELDS: Final = 1_000
FORM: Final = "application/x-www-form-urlencoded"
Headers = Sequence[tuple[bytes, bytes]]


class CallResult(NamedTuple):
    """What a valid call results in: how it is logged, and the message it becomes, if any."""

    outcome: Outcome
    reason: str | None = None
    mapped: mapping.MappedMessage | None = None
    challenge: str | None = None


class ReadCall(NamedTuple):
    """`meaning` is set when the signature is valid; `body` is its JSON, None when it has none."""

    judged: SignatureCheck
    call: HookCall
    meaning: CallResult | None = None
    body: bytes | None = None


def read_call(hook: Row, headers: Headers, body: bytes, caller: str, now_ns: int) -> ReadCall:
    scheme = hook["scheme"]
    secrets = secrets_of(hook, now_ns)
    judged = signatures.check_signature(scheme, headers, body, secrets, now_ns / 1e9, hook["window_s"])
    kept_headers, digest = signatures.signature_headers(scheme, headers), signatures.body_hash(body)
    call = HookCall(now_ns, caller, judged.status, kept_headers, digest, len(body))
    if judged.status != "valid":
        return ReadCall(judged, call)
    value, raw = read_body(body, headers)
    call = call._replace(delivery_id=judged.delivery_id)
    if raw is None:
        problem = "the body is not unambiguous JSON or form data"
        return ReadCall(judged, call, CallResult("unmapped", problem))
    meaning = _meaning(hook, headers, value)
    if meaning.mapped is not None and meaning.mapped.delivery_id is not None:
        call = call._replace(delivery_id=meaning.mapped.delivery_id)
    return ReadCall(judged, call, meaning, raw)


def read_body(body: bytes, headers: Headers) -> tuple[Any, bytes | None]:
    """The body's value, and its JSON. A form is an object of texts; its `payload`, if any, is the value."""
    document = parse(body)
    if document is None and _header(headers, b"content-type").partition(";")[0].strip().lower() == FORM:
        try:
            pairs = parse_qsl(body.decode(), True, max_num_fields=MAX_FIELDS)
        except ValueError:
            return None, None
        fields = dict(pairs)
        if len(fields) < len(pairs):  # a duplicate name: parsers differ in which they take
            return None, None
        body = fields["payload"].encode() if "payload" in fields else msgspec.json.encode(fields)
        document = parse(body)
    if document is None or not document.clean:
        return None, None
    return document.value, body


def _header(headers: Headers, header: bytes) -> str:
    return next((value.decode("latin-1") for name, value in headers if name.lower() == header), "")


def _meaning(hook: Row, headers: Headers, value: Any) -> CallResult:
    scheme = hook["scheme"]
    if scheme == "github" and _header(headers, b"x-github-event") == "ping":
        return CallResult("answered", "ping")
    if scheme == "slack" and isinstance(value, dict) and value.get("type") == "url_verification":
        challenge = value.get("challenge")
        if isinstance(challenge, str) and len(challenge) <= 1_024:
            return CallResult("answered", "url_verification", challenge=challenge)
    found = mapping.apply(mapping_of(hook), value, scheme)
    if isinstance(found, mapping.IgnoredCall):
        return CallResult("ignored")
    if isinstance(found, Fault):
        return CallResult("unmapped", f"{found.path} {found.problem}")
    return CallResult("taken", mapped=found)


def message_of(
    principal: Principal, hook: Row, mapped: mapping.MappedMessage, key: str, now_ns: int
) -> Submission:
    """The system message a call becomes: always the same for the same delivery."""
    session_id = None
    if mapped.session is not None:
        session_id = str(uuid.uuid5(NAMESPACE, f"{hook['hook_id']}/{mapped.session}"))
    return system_message(
        principal,
        message_id=message_id_of("hook", hook["hook_id"], key),
        sender=f"sys_{hook['hook_id']}",
        target=MessageTarget(mapped.kind, mapped.name),
        intent=mapped.intent,
        payload=mapped.payload,
        session_id=session_id,
        at_ns=now_ns,
        now_ns=now_ns,
    )
