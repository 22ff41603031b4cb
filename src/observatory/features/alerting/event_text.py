"""An audit event in a person's words, for channels that people read: Slack and e-mail.

Law: only what the event itself says in its own members is told, cut to a bounded length and free of control
characters: names, figures and the gateway's summary, never a word of a payload. What agents chose as their
names is text and nothing else: whoever writes it down neutralises what its channel would act upon.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from observatory.protocol.visible import visible_line

MOST_TITLE = 200
MOST_VALUE = 300
# Members of a body that are told, and how they are called; what is not there is left out.
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


class Words(NamedTuple):
    title: str
    lines: tuple[tuple[str, str], ...]
    link: str | None


def clean(text: str, most: int = MOST_VALUE) -> str:
    """One line in which nothing is hidden and nothing turns the writing (S1112), cut."""
    kept = visible_line(text)
    return kept if len(kept) <= most else kept[: most - 1] + "…"


def words_of(event: Mapping[str, Any]) -> Words:
    body = event["body"]
    event_type = str(body["event_type"])
    mark = clean(str(body.get("severity") or event.get("severity_text")), 20).upper()
    if event_type == "alert_resolved":
        mark = "RESOLVED"
    if body.get("test") or event_type.endswith("_tested"):
        mark = f"TEST {mark}"
    summary = clean(str(body.get("summary", event_type)), MOST_TITLE)
    lines = [("Event", event_type), ("Time", str(event["timestamp"]))]
    lines += [
        (label, clean(str(body[name]))) for name, label in MEMBERS if body.get(name) not in (None, "", [])
    ]
    number = event.get("hash_chain", {}).get("sequence_number")
    if number is not None:
        lines.append(("Record", f"event {number}"))
    link = body.get("link")
    return Words(f"[{mark}] {summary}", tuple(lines), link if isinstance(link, str) else None)
