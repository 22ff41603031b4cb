"""Carrying a delivery to a webhook: signed by Standard Webhooks, sent by `Outward`, judged by its code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from observatory.features.webhooks.commands_sending import EXCERPT
from observatory.features.webhooks.retry import S, asked_s
from observatory.features.webhooks.signature import signed
from observatory.features.webhooks.types_rows import WebhookRows
from observatory.features.webhooks.worker import Outcome
from observatory.runtime.outbound_http import Outward, Unreachable

TIMEOUT_S = 15.0


class WebhookPost:
    """The transport of the kind `webhook`."""

    def __init__(self, outward: Outward, rows: WebhookRows, timeout_s: float = TIMEOUT_S) -> None:
        self._outward, self._rows, self._timeout_s = outward, rows, timeout_s

    async def send(
        self, endpoint: dict[str, Any], delivery_id: str, event: Mapping[str, Any], body: bytes, now_ns: int
    ) -> Outcome:
        secrets = await self._secrets(endpoint, now_ns)
        if not secrets:
            return Outcome(False, detail="the endpoint has no secret to sign with; rotate it")
        headers = signed(secrets, delivery_id, now_ns // S, body)
        try:
            heard = await self._outward.send(
                endpoint["url"], body, headers, timeout_s=self._timeout_s, most_bytes=4 * EXCERPT
            )
        except Unreachable as error:
            return Outcome(False, detail=str(error))
        return Outcome(
            200 <= heard.code < 300,
            heard.code,
            said_of(heard.code),
            asked_s(heard.headers.get("retry-after"), now_ns),
            heard.code == 410,
            heard.body.decode("utf-8", "replace")[:EXCERPT],
        )

    async def _secrets(self, endpoint: dict[str, Any], now_ns: int) -> list[str]:
        """The newest first; the one before as long as it is not over."""
        rows = await self._rows.rows(
            endpoint["tenant_id"], "webhook_secrets", endpoint_id=endpoint["endpoint_id"]
        )
        rows.sort(key=lambda row: -int(row["secret_no"]))
        return [
            row["secret"]
            for row in rows
            if row["secret"] and (row["ends_ns"] is None or row["ends_ns"] > now_ns)
        ]


def said_of(code: int) -> str:
    if 200 <= code < 300:
        return f"the receiver answered {code}"
    if 300 <= code < 400:
        return f"the receiver answered {code}; no redirect is followed"
    return f"the receiver answered {code}" + (": it is gone" if code == 410 else "")
