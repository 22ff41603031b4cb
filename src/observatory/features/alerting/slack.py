"""Slack and what speaks like it (Mattermost, Rocket.Chat): an event as the body of an incoming webhook.

Laws: the URL is a secret, so it stands in no sentence. `<`, `>` and `&` are escaped as Slack asks; nothing in
a name can mention anybody, or become a link: every @ and every :// is taken apart by a zero-width space, and
blocks are plain text. The one link is ours. An answer other than 2xx is a failure; 410 means gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from observatory.features.alerting.event_text import Words, words_of
from observatory.features.webhooks.post import said_of
from observatory.features.webhooks.retry import asked_s
from observatory.features.webhooks.worker import Outcome
from observatory.runtime.outbound_http import Outward, Unreachable

Row = dict[str, Any]
GAP = "\u200b"  # seen by nobody, and no word goes on over it
HEADERS = {"content-type": "application/json", "user-agent": "hypervisor-observatory"}
MOST_FIELDS = 10  # of one section, as Slack rules


def inert(text: str) -> str:
    """Text in which nothing is acted upon."""
    apart = text.replace("@", f"@{GAP}").replace("://", f":{GAP}//").replace("](", f"]{GAP}(")
    return apart.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def render(event: Mapping[str, Any]) -> bytes:
    words = words_of(event)
    return msgspec.json.encode({"text": _text(words), "blocks": _blocks(words)})


def _text(words: Words) -> str:
    told = [f"*{inert(words.title)}*", *(f"{label}: {inert(value)}" for label, value in words.lines)]
    if words.link is not None:
        told.append(f"<{_address(words.link)}|Open in the Observatory>")
    return "\n".join(told)


def _address(link: str) -> str:
    """Of our own making, and still no sign that could end it."""
    return link.replace("&", "&amp;").replace("<", "%3C").replace(">", "%3E").replace("|", "%7C")


def _blocks(words: Words) -> list[Row]:
    blocks: list[Row] = [
        {"type": "section", "text": _plain(words.title)},
        {
            "type": "section",
            "fields": [_plain(f"{label}: {value}") for label, value in words.lines[:MOST_FIELDS]],
        },
    ]
    if words.link is not None:
        link = f"<{_address(words.link)}|Open in the Observatory>"
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": link}})
    return blocks


def _plain(text: str) -> Row:
    """Slack resolves nothing in plain text; it needs no escapes there."""
    return {"type": "plain_text", "text": text, "emoji": False}


class Slack:
    """The transport of endpoints of kind `slack`."""

    def __init__(self, outward: Outward) -> None:
        self._outward = outward

    async def send(
        self, endpoint: Row, delivery_id: str, event: Mapping[str, Any], body: bytes, now_ns: int
    ) -> Outcome:
        try:
            heard = await self._outward.send(endpoint["url"], render(event), HEADERS, most_bytes=1_024)
        except Unreachable as error:
            return Outcome(False, detail=str(error))
        return Outcome(
            200 <= heard.code < 300,
            heard.code,
            said_of(heard.code),
            asked_s(heard.headers.get("retry-after"), now_ns),
            heard.code == 410,
            heard.body[:200].decode("utf-8", "replace"),
        )
