"""Standard Webhooks format: the body, id and signature of a delivery.

Body and id depend only on the archive, so that every attempt sends the same bytes under the same id and a
receiver can deduplicate. Only time and signature differ per attempt. A secret is 24 to 64 random bytes;
during a rotation both secrets sign.
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
TASK_COMPLETED: Final = (
    "task_completed"  # not an event type of the record: a forwarded step with `is_terminal`
)
TESTED: Final = "webhook_tested"
SUBSCRIBABLE: Final = frozenset({*SEVERITY, TASK_COMPLETED} - {TESTED})
# Further filters: each a set of values, one of which must match.
FILTERS: Final = ("agent", "session", "cluster", "tool", "severity", "message_type")
SECRET: Final = "whsec_"  # noqa: S105 - how each begins
SECRET_BYTES: Final = 32


def new_secret() -> str:
    return SECRET + b64encode(os.urandom(SECRET_BYTES)).decode()


def key_of(secret: str) -> bytes:
    """The key bytes of a secret; ValueError when it is invalid."""
    key = b64decode(secret.removeprefix(SECRET), validate=True)
    if not secret.startswith(SECRET) or not 24 <= len(key) <= 64:
        raise ValueError("a secret must be whsec_ and 24 to 64 bytes in base64")
    return key


def delivery_id_of(endpoint_id: str, sequence_number: int) -> str:
    """The same for every attempt, on every gateway."""
    return "whd_" + sha256(f"{endpoint_id}:{sequence_number}".encode()).hexdigest()[:32]


def signed_headers(secrets: Sequence[str], delivery_id: str, at_s: int, body: bytes) -> dict[str, str]:
    """The headers of one attempt."""
    content = f"{delivery_id}.{at_s}.".encode() + body
    signatures = (b64encode(hmac.digest(key_of(one), content, "sha256")).decode() for one in secrets)
    return {
        "webhook-id": delivery_id,
        "webhook-timestamp": str(at_s),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
        "content-type": "application/json",
        "user-agent": "hypervisor-observatory",
    }


def delivered_event(record: bytes, event_type: str, extra: str | None) -> dict[str, Any]:
    """The archived event; additional message content goes into `task`."""
    event: dict[str, Any] = msgspec.json.decode(record)
    if extra is not None:
        event["task"] = msgspec.json.decode(extra)
    event["body"]["event_type"] = event_type
    return event


def body_of(event: Mapping[str, Any]) -> bytes:
    """The body in Standard Webhooks' form."""
    envelope = {"type": event["body"]["event_type"], "timestamp": event["timestamp"], "data": event}
    return msgspec.json.encode(envelope)
