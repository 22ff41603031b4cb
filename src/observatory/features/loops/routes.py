"""Alarms of both detectors: what is open now, whom it concerns, and how alarms look on the live channel.

The trail names a repeated intent by its hash; the words are read from the archived message and are null once
that was shredded. What is told of the second detector comes from its event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Literal

import msgspec
from litestar import Response, Router, get

from observatory.features.archive.queries_content import reduced
from observatory.features.graph.loader import playback
from observatory.features.loops.commands_findings import open_loops
from observatory.features.loops.stage import intent_hash
from observatory.features.sessions.types import Played
from observatory.http.answers import Cursor, Limit, json, page, read_cursor
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.protocol.clock import from_ns
from observatory.runtime.publisher import Row

# So many alarms are looked at; beyond it there is no use in a list.
MOST = 1_000
# When the message that raised an alarm is not one of those that come again, so many before it are looked
# through for their words, of so many bytes, for so many alarms of one answer.
WINDOW, WINDOW_BYTES, WINDOWS = 60, 4 * 1024 * 1024, 20
TOPIC = "gateway:entropy_alerts"
KINDS = ("entropy_alert", "entropy_recovered", "loop_detected", "loop_ended")
RAISED = ("entropy_alert", "loop_detected")
_MARKS = tuple(f'"event_type":"{kind}"'.encode() for kind in KINDS)


class Pattern(msgspec.Struct, kw_only=True):
    intent: str | None
    tool_call: str | None
    action_status: str | None


class AlertItem(msgspec.Struct, kw_only=True):
    """An open alarm. `sequence_number` is that of the message that raised it."""

    event_type: Literal["entropy_alert", "loop_detected"]
    session_id: str
    agent_id: str | None
    entropy_score: float | None
    window_size: int
    repeated_pattern: Pattern
    occurrence_count: int
    detector: str
    reason: str | None  # the second detector's own sentence
    since: str
    sequence_number: int


class _Cognition(msgspec.Struct):
    intent: str | None = None


class _Action(msgspec.Struct):
    tool_call: str | None = None
    status: str | None = None


class _Words(msgspec.Struct):
    cognition: _Cognition | None = None
    action: _Action | None = None


@get("/entropy/alerts", summary="Open alarms of both detectors, newest first", operation_id="entropy_alerts")
async def entropy_alerts(
    request: Call, house: Here, cursor: Cursor = None, limit: Limit = 100
) -> Response[bytes]:
    principal = await need(request, house, "read")
    before, tenant_id = read_cursor(cursor), principal.tenant_id
    opened = [
        (number, row)
        for row in await house.store.alarmed(tenant_id, MOST)
        for number in (row["alert_seq"], *(loop.seq for loop in open_loops(row["loops"])))
        if number is not None and (before is None or number < before)
    ]
    opened.sort(key=lambda one: -one[0])
    shown = opened[: limit + 1]
    records = await playback(house).records(tenant_id, [number for number, _ in shown])
    events = [msgspec.json.decode(records[number]) for number, _ in shown if number in records]
    told = {one["event_sequence_number"]: one for one in await _told(house, tenant_id, events)}
    items = [_open(number, row, told[number]) for number, row in shown if number in told]
    last = opened[limit - 1][0] if len(opened) > limit else None
    return json(page(items, limit, last))


async def live_items(house: House, tenant_id: str, rows: Iterable[Row]) -> list[object]:
    """Alarms among committed rows, as the topic `gateway:entropy_alerts` tells them."""
    found: list[dict[str, Any]] = []
    for row in rows:
        if any(mark in row.event.record for mark in _MARKS):
            event = msgspec.json.decode(row.event.record)
            if event["body"]["event_type"] in KINDS:
                found.append(event)
    return list(await _told(house, tenant_id, found)) if found else []


def _open(number: int, row: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    told["entropy_score"] = row["entropy"]
    if number == row["alert_seq"]:
        told["occurrence_count"] = row["alert_count"]
    else:
        told["since"] = from_ns(next(one.ns for one in open_loops(row["loops"]) if one.seq == number))
    return {name: told[name] for name in AlertItem.__struct_fields__}


async def _told(house: House, tenant_id: str, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each the message it names is read, all of them together; few need more."""
    raised = [event["body"] for event in events if event["body"]["event_type"] in RAISED]
    numbers = [body["message_sequence_number"] for body in raised]
    words = await reduced(house, tenant_id, numbers, lambda _, raw: _words(raw))
    patterns, windows = {}, WINDOWS
    for body in raised:
        pattern, wanted = _pattern(body, words.get(body["message_sequence_number"], _Words()))
        if wanted is not None and windows > 0:
            windows -= 1
            pattern["intent"] = await _earlier(house, tenant_id, body, wanted)
        patterns[id(body)] = pattern
    return [_item(event, patterns.get(id(event["body"]))) for event in events]


def _item(event: dict[str, Any], pattern: dict[str, Any] | None) -> dict[str, Any]:
    body = event["body"]
    score = body.get("entropy_score")
    told = {
        "event_type": body["event_type"],
        "session_id": body["session_id"],
        "agent_id": body["agent_id"],
        "entropy_score": None if score is None else float(score),
        "window_size": body.get("window_size") or body.get("period", 0) * body.get("occurrences", 0),
        "occurrence_count": body.get("occurrence_count") or body.get("occurrences", 0),
        "detector": body.get("detector") or "fingerprint",
        "reason": body.get("reason"),
        "since": event["observed_timestamp"],
        "sequence_number": body["message_sequence_number"],
        "event_sequence_number": event["hash_chain"]["sequence_number"],
    }
    if pattern is not None:
        told["repeated_pattern"] = pattern
    else:
        told["severity"] = body.get("severity") or "normal"
    return told


def _pattern(body: dict[str, Any], words: _Words) -> tuple[dict[str, Any], str | None]:
    """What comes again, by the message that raised it; the hash of an intent that stands in one before.

    The second detector's has no single step of which all others are copies; the last one stands for them.
    """
    known, intent = body.get("repeated_pattern"), _intent(words)
    if known is None:
        action = words.action or _Action()
        told = body.get("tool") or action.tool_call
        return {"intent": intent, "tool_call": told, "action_status": action.status}, None
    is_it = intent is not None and intent_hash(intent) == known["intent_hash"]
    named = {"tool_call": known["tool_call"], "action_status": known["action_status"]}
    return {"intent": intent if is_it else None, **named}, None if is_it else known["intent_hash"]


async def _earlier(house: House, tenant_id: str, body: dict[str, Any], wanted: str) -> str | None:
    store = playback(house)
    sessions = await house.store.rows(tenant_id, "sessions", session_id=body["session_id"])
    if not sessions:
        return None
    before = body["message_sequence_number"]
    start = await store.cut(tenant_id, sessions[0], WINDOW, WINDOW_BYTES, before)
    span = sessions[0] if start is None else sessions[0] | {"first_seq": start}
    rows = await store.play(tenant_id, span, WINDOW, before)
    return await asyncio.to_thread(_same, rows, wanted)


def _same(rows: list[Played], wanted: str) -> str | None:
    told = (_intent(_words(row.raw)) for row in reversed(rows))
    return next((one for one in told if one is not None and intent_hash(one) == wanted), None)


def _intent(words: _Words) -> str | None:
    return None if words.cognition is None else words.cognition.intent


def _words(raw: bytes | None) -> _Words:
    try:
        return _Words() if raw is None else msgspec.json.decode(raw, type=_Words)
    except msgspec.MsgspecError:  # an envelope may hold anything under these names
        return _Words()


entropy = Router(path="/v1", route_handlers=[entropy_alerts], tags=["Session Cluster Manager"])
