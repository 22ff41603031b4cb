"""`observatory tail`: what the gateway commits, line by line, live or from a number on."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from observatory.cli.gateway_client import ANY, GatewayOptions, find, trust_of
from observatory.cli.live import follow, plain
from observatory.cli.terminal import note, printable, say_json

Topic = Literal["messages", "events", "gateway:violations"]
WORDS = {"messages": "messages", "events": "events", "gateway:violations": "violations"}
# Amber: held; red: not forwarded. The state is also printed as text.
COLOURS = {"held": "33", "rejected": "31", "refused": "31"}


def tail(
    *,
    gateway: GatewayOptions = ANY,
    topic: Topic = "messages",
    after: Annotated[int | None, Parameter(help="Start after this number; without it: from now on.")] = None,
    count: Annotated[int | None, Parameter(help="Stop after this many lines.")] = None,
    json: Annotated[bool, Parameter(negative=(), help="One JSON object a line.")] = False,
) -> None:
    """Follow the live channel; a lost connection is resumed where it broke off."""
    url, key = find(gateway, "operator")
    printed, trust = 0, trust_of(gateway, url)
    for frame in follow(url, key, (topic,), after, lambda: note(f"waiting for {WORDS[topic]}…"), trust):
        if frame.type == "resync":
            note(f"fell too far behind; continuing from number {frame.seq}")
        for raw in frame.items:
            item = plain(raw)
            say_json(item) if json else print(line_of(item), flush=True)
            printed += 1
            if count is not None and printed >= count:
                return


def line_of(item: dict[str, Any]) -> str:
    return _message_line(item) if "message_id" in item else _event_line(item)


def _message_line(item: dict[str, Any]) -> str:
    summary = summary_of(item)
    parts = [
        f"{item['sequence_number']:>8}",
        printable(summary["time"]),
        _coloured(item["state"]),
        item["session_id"][:8],
        *(printable(summary[name]) for name in ("agent", "what")),
        "" if summary["status"] == item["state"] else printable(summary["status"]),
        printable(summary["intent"]),
    ]
    return "  ".join(part for part in parts if part)


def _coloured(state: str) -> str:
    padded = f"{state:<9}"
    if state not in COLOURS or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return padded
    return f"\x1b[{COLOURS[state]}m{padded}\x1b[0m"


def _event_line(event: dict[str, Any]) -> str:
    number = event["hash_chain"]["sequence_number"]
    body = event["body"]
    time = event["observed_timestamp"][11:23]
    return (
        f"{number:>8}  {time}  {event['severity_text']:<5} {body['event_type']}  {printable(body['summary'])}"
    )


def summary_of(item: dict[str, Any]) -> dict[str, str]:
    """The parts of a message that fit on a line, for both message forms."""
    message = item.get("message") or {}
    if "envelope_version" in message:
        return {
            "time": str(message["timestamp"])[11:23],
            "agent": str(message["sender"]["entity_id"]),
            "what": str(message["message_type"]),
            "status": "" if item["state"] == "forwarded" else item["state"],
            "intent": "",
        }
    action, meta = message.get("action") or {}, message.get("meta") or {}
    return {
        "time": str(meta.get("timestamp", ""))[11:23],
        "agent": str((message.get("identity") or {}).get("agent_id", "(shredded)")),
        "what": str(action.get("tool_call") or item["message_type"]),
        "status": str(action.get("status") or ""),
        "intent": " ".join(str((message.get("cognition") or {}).get("intent", "")).split()),
    }
