"""What a message wants to do, and how long ago, in a few words."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from observatory.cli.terminal import printable
from observatory.protocol.clock import to_ns

LONGEST = 200
SPANS = ((86_400, "d"), (3_600, "h"), (60, "m"))


def deed_of(message: dict[str, Any] | None, longest: int = LONGEST) -> str:
    """Intent, tool and a shortened tool_input; of an envelope its type and payload."""
    if message is None:
        return "(shredded)"
    if "envelope_version" in message:
        return f"{message['message_type']} {_short(message.get('payload'), longest)}".strip()
    action, cognition = message.get("action") or {}, message.get("cognition") or {}
    intent = " ".join(printable(str(cognition.get("intent") or "")).split())
    tool = printable(str(action.get("tool_call") or ""))
    call = f"{tool} {_short(action.get('tool_input'), longest)}".strip()
    return ": ".join(part for part in (intent, call) if part) or "(says nothing of what it does)"


def age(at: str) -> str:
    seconds = max(0, (time.time_ns() - to_ns(at)) // 1_000_000_000)
    for span, letter in SPANS:
        if seconds >= span:
            return f"{seconds // span}{letter}"
    return f"{seconds}s"


def _short(value: Any, longest: int) -> str:
    if value in (None, "", {}, []):
        return ""
    text = printable(value if isinstance(value, str) else msgspec.json.encode(value).decode())
    return text if len(text) <= longest else text[: longest - 1] + "…"
