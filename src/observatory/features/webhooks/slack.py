"""Slack-compatible channel (also Mattermost, Rocket.Chat): an event as the body of an incoming webhook.

Invariants: the URL is a secret and appears in no message. `<`, `>` and `&` are escaped as Slack requires; no
name can mention a person or become a link: every @ and every :// is split by a zero-width space, and blocks
are plain text. The only link is the gateway's own. A status other than 2xx is a failure; 410 means gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from observatory.features.webhooks.event_text import EventText, event_text
from observatory.features.webhooks.post import status_text
from observatory.features.webhooks.retry import retry_after_s
from observatory.features.webhooks.worker import DeliveryOutcome
from observatory.runtime.outbound_http import OutboundError, OutboundHttp

Row = dict[str, Any]
GAP = "\u200b"  # invisible, and it breaks the word
HEADERS = {"content-type": "application/json", "user-agent": "hypervisor-observatory"}
MAX_FIELDS = 10  # of one section, a limit of Slack


def escape_slack_text(text: str) -> str:
    """Text in which Slack interprets nothing."""
    apart = text.replace("@", f"@{GAP}").replace("://", f":{GAP}//").replace("](", f"]{GAP}(")
    return apart.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def render(event: Mapping[str, Any]) -> bytes:
    text = event_text(event)
    return msgspec.json.encode({"text": _text(text), "blocks": _blocks(text)})


def _text(text: EventText) -> str:
    lines = [
        f"*{escape_slack_text(text.title)}*",
        *(f"{label}: {escape_slack_text(value)}" for label, value in text.lines),
    ]
    if text.link is not None:
        lines.append(f"<{_address(text.link)}|Open in the Observatory>")
    return "\n".join(lines)


def _address(link: str) -> str:
    """The gateway's own link, without any character that could end it early."""
    return link.replace("&", "&amp;").replace("<", "%3C").replace(">", "%3E").replace("|", "%7C")


def _blocks(text: EventText) -> list[Row]:
    blocks: list[Row] = [
        {"type": "section", "text": _plain(text.title)},
        {
            "type": "section",
            "fields": [_plain(f"{label}: {value}") for label, value in text.lines[:MAX_FIELDS]],
        },
    ]
    if text.link is not None:
        link = f"<{_address(text.link)}|Open in the Observatory>"
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": link}})
    return blocks


def _plain(text: str) -> Row:
    """Slack interprets nothing in plain text, so it needs no escapes."""
    return {"type": "plain_text", "text": text, "emoji": False}


class SlackTransport:
    """The transport of endpoints of kind `slack`."""

    def __init__(self, outward: OutboundHttp) -> None:
        self._outward = outward

    async def send(
        self, endpoint: Row, delivery_id: str, event: Mapping[str, Any], body: bytes, now_ns: int
    ) -> DeliveryOutcome:
        try:
            response = await self._outward.send(endpoint["url"], render(event), HEADERS, most_bytes=1_024)
        except OutboundError as error:
            return DeliveryOutcome(False, detail=str(error))
        return DeliveryOutcome(
            200 <= response.code < 300,
            response.code,
            status_text(response.code),
            retry_after_s(response.headers.get("retry-after"), now_ns),
            response.code == 410,
            response.body[:200].decode("utf-8", "replace"),
        )
