"""Short texts for lists: what a message wants to do, and how long ago."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from observatory.cli.terminal import printable
from observatory.protocol.clock import to_ns

MAX_INPUT_CHARS = 200
SPANS = ((86_400, "d"), (3_600, "h"), (60, "m"))


def action_text(message: dict[str, Any] | None, max_chars: int = MAX_INPUT_CHARS) -> str:
    """Intent, tool and a shortened tool_input; of an envelope its type and payload."""
    if message is None:
        return "(shredded)"
    if "envelope_version" in message:
        return f"{message['message_type']} {_short(message.get('payload'), max_chars)}".strip()
    action, cognition = message.get("action") or {}, message.get("cognition") or {}
    intent = " ".join(printable(str(cognition.get("intent") or "")).split())
    tool = printable(str(action.get("tool_call") or ""))
    call = f"{tool} {_short(action.get('tool_input'), max_chars)}".strip()
    return ": ".join(part for part in (intent, call) if part) or "(no intent given)"


def age(at: str) -> str:
    seconds = max(0, (time.time_ns() - to_ns(at)) // 1_000_000_000)
    for span, letter in SPANS:
        if seconds >= span:
            return f"{seconds // span}{letter}"
    return f"{seconds}s"


def _short(value: Any, max_chars: int) -> str:
    if value in (None, "", {}, []):
        return ""
    text = printable(value if isinstance(value, str) else msgspec.json.encode(value).decode())
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"
