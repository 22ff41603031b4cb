"""Standard Webhooks: what we sign a foreign library verifies, and nothing else."""

from __future__ import annotations

import json
import time

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from observatory.features.webhooks.types_signature import (
    body_of,
    delivered_event,
    delivery_id_of,
    key_of,
    new_secret,
    signed_headers,
)

EVENT = {
    "timestamp": "2026-11-16T12:00:00.000000000Z",
    "body": {"event_type": "gate_opened", "summary": "é\u2028"},
}
RECORD = json.dumps(EVENT).encode()


def test_a_foreign_library_verifies_what_we_sign_s493() -> None:
    """S493: by either secret while one follows another, by no other, and not when a byte is changed."""
    old, new, other = new_secret(), new_secret(), new_secret()
    body, now_s = body_of(delivered_event(RECORD, "gate_opened", None)), int(time.time())
    headers = signed_headers([new, old], delivery_id_of("whe_1", 7), now_s, body)
    for secret in (old, new):
        assert Webhook(secret).verify(body, headers)["type"] == "gate_opened"
    for secret, what, when in ((other, body, now_s), (old, body + b" ", now_s), (old, body, now_s - 301)):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(what, signed_headers([new, old], "whd_1", when, body))
    with pytest.raises(WebhookVerificationError):
        Webhook(old).verify(body, headers | {"webhook-id": "whd_other"})


def test_secrets_are_long_random_and_of_one_form_s493() -> None:
    """S493: 24 to 64 bytes; what is not is refused before it signs anything."""
    assert len({new_secret() for _ in range(50)}) == 50 and len(key_of(new_secret())) == 32
    for bad in ("", "whsec_", "whsec_QUFB", "whsec_" + "QUFB" * 30, "x" + new_secret(), "whsec_???"):
        with pytest.raises(ValueError):
            key_of(bad)


def test_body_and_id_are_functions_of_what_is_archived_s492() -> None:
    """S492: the same bytes each time; data is the event, key for key, with what its message tells besides."""
    first, second = (body_of(delivered_event(RECORD, "gate_opened", None)) for _ in range(2))
    assert first == second
    assert json.loads(first) == {"type": "gate_opened", "timestamp": EVENT["timestamp"], "data": EVENT}
    task = json.loads(body_of(delivered_event(RECORD, "task_completed", '{"session_id":"ses_1"}')))
    assert (task["type"], task["data"]["task"]) == ("task_completed", {"session_id": "ses_1"})
    assert delivery_id_of("whe_1", 7) == delivery_id_of("whe_1", 7) != delivery_id_of("whe_17", 7)
