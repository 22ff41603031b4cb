"""Reading one call of a hook: is it signed, what is its body, what does it mean (rules S523–S526).

Pure, and not for the event loop: it hashes, parses and maps. The body is looked at only once it is signed.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from observatory.features.hooks import mapping
from observatory.features.hooks.commands import Row, mapping_of, secrets_of
from observatory.features.hooks.commands_calls import Call
from observatory.features.hooks.types_mapping import Outcome
from observatory.pipeline.state import Principal, Submission
from observatory.pipeline.system_message import Target, message_id_of, summons
from observatory.protocol import signatures
from observatory.protocol.answers import Fault
from observatory.protocol.document import parse
from observatory.protocol.identity import NAMESPACE
from observatory.protocol.signatures import Judged

MOST_FIELDS: Final = 1_000
FORM: Final = "application/x-www-form-urlencoded"
Headers = Sequence[tuple[bytes, bytes]]


class Meaning(NamedTuple):
    """What a valid call means: how it is logged, and the message it becomes, if any."""

    outcome: Outcome
    reason: str | None = None
    mapped: mapping.Mapped | None = None
    challenge: str | None = None


class Read(NamedTuple):
    """`meaning` is there when it is valid; `body` is its JSON, None when it has none."""

    judged: Judged
    call: Call
    meaning: Meaning | None = None
    body: bytes | None = None


def read_call(hook: Row, headers: Headers, body: bytes, caller: str, now_ns: int) -> Read:
    scheme = hook["scheme"]
    secrets = secrets_of(hook, now_ns)
    judged = signatures.judge(scheme, headers, body, secrets, now_ns / 1e9, hook["window_s"])
    kept, digest = signatures.told(scheme, headers), signatures.body_hash(body)
    call = Call(now_ns, caller, judged.status, kept, digest, len(body))
    if judged.status != "valid":
        return Read(judged, call)
    value, raw = read_body(body, headers)
    call = call._replace(delivery_id=judged.delivery_id)
    if raw is None:
        problem = "the body is no JSON, and no form, that every parser reads alike"
        return Read(judged, call, Meaning("unmapped", problem))
    meaning = _meaning(hook, headers, value)
    if meaning.mapped is not None and meaning.mapped.delivery_id is not None:
        call = call._replace(delivery_id=meaning.mapped.delivery_id)
    return Read(judged, call, meaning, raw)


def read_body(body: bytes, headers: Headers) -> tuple[Any, bytes | None]:
    """Its value, and the JSON of it. A form is an object of texts; its `payload`, if there is one, is all."""
    document = parse(body)
    if document is None and _header(headers, b"content-type").partition(";")[0].strip().lower() == FORM:
        try:
            pairs = parse_qsl(body.decode(), True, max_num_fields=MOST_FIELDS)
        except ValueError:
            return None, None
        fields = dict(pairs)
        if len(fields) < len(pairs):  # one name twice: who reads it may take either
            return None, None
        body = fields["payload"].encode() if "payload" in fields else msgspec.json.encode(fields)
        document = parse(body)
    if document is None or not document.clean:
        return None, None
    return document.value, body


def _header(headers: Headers, wanted: bytes) -> str:
    return next((value.decode("latin-1") for name, value in headers if name.lower() == wanted), "")


def _meaning(hook: Row, headers: Headers, value: Any) -> Meaning:
    scheme = hook["scheme"]
    if scheme == "github" and _header(headers, b"x-github-event") == "ping":
        return Meaning("answered", "ping")
    if scheme == "slack" and isinstance(value, dict) and value.get("type") == "url_verification":
        challenge = value.get("challenge")
        if isinstance(challenge, str) and len(challenge) <= 1_024:
            return Meaning("answered", "url_verification", challenge=challenge)
    found = mapping.apply(mapping_of(hook), value, scheme)
    if isinstance(found, mapping.Ignored):
        return Meaning("ignored")
    if isinstance(found, Fault):
        return Meaning("unmapped", f"{found.path} {found.problem}")
    return Meaning("taken", mapped=found)


def message_of(who: Principal, hook: Row, mapped: mapping.Mapped, key: str, now_ns: int) -> Submission:
    """The summons a call becomes: the same for the same delivery, whoever makes it."""
    session_id = None
    if mapped.session is not None:
        session_id = str(uuid.uuid5(NAMESPACE, f"{hook['hook_id']}/{mapped.session}"))
    return summons(
        who,
        message_id=message_id_of("hook", hook["hook_id"], key),
        sender=f"sys_{hook['hook_id']}",
        target=Target(mapped.kind, mapped.name),
        intent=mapped.intent,
        payload=mapped.payload,
        session_id=session_id,
        at_ns=now_ns,
        now_ns=now_ns,
    )
