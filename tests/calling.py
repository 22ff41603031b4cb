"""Somebody outside who signs webhooks: the standard's own package, and the others as their makers tell it."""

from __future__ import annotations

import hmac
from datetime import UTC, datetime
from hashlib import sha256

from standardwebhooks import Webhook

from observatory.features.hooks.signatures import Scheme


def hexed(key: str, content: bytes) -> str:
    return hmac.new(key.encode(), content, sha256).hexdigest()


def signed(
    scheme: Scheme, secret: str, body: bytes, at: int, delivery: str = "dlv_1", event: str = "pull_request"
) -> dict[str, str]:
    """The headers of one call; `at` in seconds, `delivery` and `event` where the scheme has them."""
    if scheme == "standard":
        made = Webhook(secret).sign(delivery, datetime.fromtimestamp(at, UTC), body.decode())
        return {"webhook-id": delivery, "webhook-timestamp": str(at), "webhook-signature": made}
    if scheme == "github":
        own = {"X-GitHub-Delivery": delivery, "X-GitHub-Event": event}
        return own | {"X-Hub-Signature-256": f"sha256={hexed(secret, body)}"}
    if scheme == "stripe":
        return {"Stripe-Signature": f"t={at},v1={hexed(secret, b'%d.%s' % (at, body))},v0=00"}
    made = hexed(secret, b"v0:%d:%s" % (at, body))
    return {"X-Slack-Request-Timestamp": str(at), "X-Slack-Signature": f"v0={made}"}
