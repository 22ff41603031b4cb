"""Webhooks out, in the words of Standard Webhooks: the body, its id, its signature.

Law: body and id of a delivery are functions of what is archived, so that every try sends the same bytes
under the same id and a receiver can drop what it has. Only time and signature are of the try. A secret is
random, 24 to 64 bytes; while one follows another both sign.
"""

from __future__ import annotations

import hmac
import os
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, Literal

import msgspec

from observatory.protocol.events import SEVERITY

Kind = Literal["webhook", "slack", "email"]
TASK_COMPLETED: Final = "task_completed"  # no event of its own: a forwarded step that says `is_terminal`
TESTED: Final = "webhook_tested"
SUBSCRIBABLE: Final = frozenset({*SEVERITY, TASK_COMPLETED} - {TESTED})
# What else an event may be chosen by: each a set of values, one of which must be it.
FILTERS: Final = ("agent", "session", "cluster", "tool", "severity", "message_type")
SECRET: Final = "whsec_"  # noqa: S105 - how each begins
SECRET_BYTES: Final = 32


def new_secret() -> str:
    return SECRET + b64encode(os.urandom(SECRET_BYTES)).decode()


def key_of(secret: str) -> bytes:
    """The bytes it stands for; ValueError when it is none."""
    key = b64decode(secret.removeprefix(SECRET), validate=True)
    if not secret.startswith(SECRET) or not 24 <= len(key) <= 64:
        raise ValueError("a secret is whsec_ and 24 to 64 bytes in base64")
    return key


def delivery_id_of(endpoint_id: str, sequence_number: int) -> str:
    """The same for every try, also of a gateway that never heard of the tries before."""
    return "whd_" + sha256(f"{endpoint_id}:{sequence_number}".encode()).hexdigest()[:32]


def signed(secrets: Sequence[str], delivery_id: str, at_s: int, body: bytes) -> dict[str, str]:
    """The headers of one try."""
    content = f"{delivery_id}.{at_s}.".encode() + body
    marks = (b64encode(hmac.digest(key_of(one), content, "sha256")).decode() for one in secrets)
    return {
        "webhook-id": delivery_id,
        "webhook-timestamp": str(at_s),
        "webhook-signature": " ".join(f"v1,{mark}" for mark in marks),
        "content-type": "application/json",
        "user-agent": "hypervisor-observatory",
    }


def told(record: bytes, event_type: str, extra: str | None) -> dict[str, Any]:
    """The archived event; of what only a message tells, `task` with what was found in it."""
    event: dict[str, Any] = msgspec.json.decode(record)
    if extra is not None:
        event["task"] = msgspec.json.decode(extra)
    event["body"]["event_type"] = event_type
    return event


def body_of(event: Mapping[str, Any]) -> bytes:
    """Standard Webhooks' form."""
    whole = {"type": event["body"]["event_type"], "timestamp": event["timestamp"], "data": event}
    return msgspec.json.encode(whole)
