"""An audit event as text for people, for Slack and e-mail.

Invariant: only members of the event itself are included, cut to a bounded length and free of control
characters: names, numbers and the gateway's summary, never payload text. Names chosen by agents are untrusted
text: each channel escapes whatever it would interpret.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from observatory.protocol.visible import visible_line

MAX_TITLE = 200
MAX_VALUE = 300
# Members of a body that are included, with their labels; missing ones are left out.
MEMBERS = (
    ("subject", "Subject"),
    ("condition", "Condition"),
    ("value", "Value"),
    ("threshold", "Threshold"),
    ("direction", "Direction"),
    ("amount", "Amount"),
    ("since", "Since"),
    ("agent_id", "Agent"),
    ("session_id", "Session"),
)


class EventText(NamedTuple):
    title: str
    lines: tuple[tuple[str, str], ...]
    link: str | None


def clean_line(text: str, maximum: int = MAX_VALUE) -> str:
    """One line without hidden or direction-changing characters (S1112), cut to a maximum."""
    visible = visible_line(text)
    return visible if len(visible) <= maximum else visible[: maximum - 1] + "…"


def event_text(event: Mapping[str, Any]) -> EventText:
    body = event["body"]
    event_type = str(body["event_type"])
    mark = clean_line(str(body.get("severity") or event.get("severity_text")), 20).upper()
    if event_type == "alert_resolved":
        mark = "RESOLVED"
    if body.get("test") or event_type.endswith("_tested"):
        mark = f"TEST {mark}"
    summary = clean_line(str(body.get("summary", event_type)), MAX_TITLE)
    lines = [("Event", event_type), ("Time", str(event["timestamp"]))]
    lines += [
        (label, clean_line(str(body[name])))
        for name, label in MEMBERS
        if body.get(name) not in (None, "", [])
    ]
    number = event.get("hash_chain", {}).get("sequence_number")
    if number is not None:
        lines.append(("Record", f"event {number}"))
    link = body.get("link")
    return EventText(f"[{mark}] {summary}", tuple(lines), link if isinstance(link, str) else None)
