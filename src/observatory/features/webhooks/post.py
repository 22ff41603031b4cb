"""The webhook transport: signs a delivery by Standard Webhooks, and posts it through `Outward`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from observatory.features.webhooks.commands_sending import EXCERPT
from observatory.features.webhooks.retry import S, retry_after_s
from observatory.features.webhooks.types_rows import WebhookRows
from observatory.features.webhooks.types_signature import signed_headers
from observatory.features.webhooks.worker import DeliveryOutcome
from observatory.runtime.outbound_http import OutboundError, OutboundHttp

TIMEOUT_S = 15.0


class WebhookTransport:
    """The transport of endpoints of kind `webhook`."""

    def __init__(self, outward: OutboundHttp, rows: WebhookRows, timeout_s: float = TIMEOUT_S) -> None:
        self._outward, self._rows, self._timeout_s = outward, rows, timeout_s

    async def send(
        self, endpoint: dict[str, Any], delivery_id: str, event: Mapping[str, Any], body: bytes, now_ns: int
    ) -> DeliveryOutcome:
        secrets = await self._secrets(endpoint, now_ns)
        if not secrets:
            return DeliveryOutcome(False, detail="the endpoint has no secret to sign with; rotate it")
        headers = signed_headers(secrets, delivery_id, now_ns // S, body)
        try:
            response = await self._outward.send(
                endpoint["url"], body, headers, timeout_s=self._timeout_s, most_bytes=4 * EXCERPT
            )
        except OutboundError as error:
            return DeliveryOutcome(False, detail=str(error))
        return DeliveryOutcome(
            200 <= response.code < 300,
            response.code,
            status_text(response.code),
            retry_after_s(response.headers.get("retry-after"), now_ns),
            response.code == 410,
            response.body.decode("utf-8", "replace")[:EXCERPT],
        )

    async def _secrets(self, endpoint: dict[str, Any], now_ns: int) -> list[str]:
        """Newest first; the previous one during its overlap."""
        rows = await self._rows.rows(
            endpoint["tenant_id"], "webhook_secrets", endpoint_id=endpoint["endpoint_id"]
        )
        rows.sort(key=lambda row: -int(row["secret_no"]))
        return [
            row["secret"]
            for row in rows
            if row["secret"] and (row["ends_ns"] is None or row["ends_ns"] > now_ns)
        ]


def status_text(code: int) -> str:
    if 200 <= code < 300:
        return f"the receiver returned {code}"
    if 300 <= code < 400:
        return f"the receiver returned {code}; redirects are not followed"
    return f"the receiver returned {code}" + (": it is gone" if code == 410 else "")
