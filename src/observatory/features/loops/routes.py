"""Alarms of both loop detectors: open alarms over HTTP, and their form on the live channel.

The trail has the hash of a repeated intent; its text is read from the archived message and is null once that
was shredded. For the second detector everything else comes from its event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Literal

import msgspec
from litestar import Response, Router, get

from observatory.features.archive.queries_content import read_contents
from observatory.features.graph.queries_session import playback
from observatory.features.graph.types_session import SessionMessage
from observatory.features.loops.queries import open_loops
from observatory.features.loops.stage import intent_hash
from observatory.http.answers import Cursor, Limit, json, page, read_cursor
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.protocol.clock import from_ns
from observatory.runtime.publisher import CommittedRow

# Alarms read at most; beyond that a list is of no use.
MAX_ALARMS = 1_000
# When the message that raised an alarm is not one of the repeated ones, earlier messages are searched for the
# text: at most this many, of this many bytes, for this many alarms of one answer.
WINDOW, WINDOW_BYTES, WINDOWS = 60, 4 * 1024 * 1024, 20
TOPIC = "gateway:entropy_alerts"
KINDS = ("entropy_alert", "entropy_recovered", "loop_detected", "loop_ended")
RAISED = ("entropy_alert", "loop_detected")
_MARKS = tuple(f'"event_type":"{kind}"'.encode() for kind in KINDS)


class LoopPattern(msgspec.Struct, kw_only=True):
    intent: str | None
    tool_call: str | None
    action_status: str | None


class AlertItem(msgspec.Struct, kw_only=True):
    """An open alarm. `sequence_number` is the number of the message that raised it."""

    event_type: Literal["entropy_alert", "loop_detected"]
    session_id: str
    agent_id: str | None
    entropy_score: float | None
    window_size: int
    repeated_pattern: LoopPattern
    occurrence_count: int
    detector: str
    reason: str | None  # the sentence of the second detector
    since: str
    sequence_number: int


class _Cognition(msgspec.Struct):
    intent: str | None = None


class _Action(msgspec.Struct):
    tool_call: str | None = None
    status: str | None = None


class _Content(msgspec.Struct):
    cognition: _Cognition | None = None
    action: _Action | None = None


@get(
    "/entropy/alerts",
    summary="List open alarms of both detectors, newest first",
    operation_id="entropy_alerts",
)
async def entropy_alerts(
    request: Call, app: Here, cursor: Cursor = None, limit: Limit = 100
) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    before, tenant_id = read_cursor(cursor), principal.tenant_id
    opened = [
        (number, row)
        for row in await app.store.alarmed(tenant_id, MAX_ALARMS)
        for number in (row["alert_seq"], *(loop.seq for loop in open_loops(row["loops"])))
        if number is not None and (before is None or number < before)
    ]
    opened.sort(key=lambda one: -one[0])
    selected = opened[: limit + 1]
    records = await playback(app).records(tenant_id, [number for number, _ in selected])
    events = [msgspec.json.decode(records[number]) for number, _ in selected if number in records]
    items_by_number = {one["event_sequence_number"]: one for one in await _items_of(app, tenant_id, events)}
    items = [
        _open(number, row, items_by_number[number]) for number, row in selected if number in items_by_number
    ]
    last = opened[limit - 1][0] if len(opened) > limit else None
    return json(page(items, limit, last))


async def live_items(app: AppState, tenant_id: str, rows: Iterable[CommittedRow]) -> list[object]:
    """Alarms among committed rows, as sent on the topic `gateway:entropy_alerts`."""
    found: list[dict[str, Any]] = []
    for row in rows:
        if any(mark in row.event.record for mark in _MARKS):
            event = msgspec.json.decode(row.event.record)
            if event["body"]["event_type"] in KINDS:
                found.append(event)
    return list(await _items_of(app, tenant_id, found)) if found else []


def _open(number: int, row: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    item["entropy_score"] = row["entropy"]
    if number == row["alert_seq"]:
        item["occurrence_count"] = row["alert_count"]
    else:
        item["since"] = from_ns(next(one.ns for one in open_loops(row["loops"]) if one.seq == number))
    return {name: item[name] for name in AlertItem.__struct_fields__}


async def _items_of(app: AppState, tenant_id: str, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Builds the items of these events; all messages they name are read together, few need more."""
    raised = [event["body"] for event in events if event["body"]["event_type"] in RAISED]
    numbers = [body["message_sequence_number"] for body in raised]
    contents = await read_contents(app, tenant_id, numbers, lambda _, raw: _content(raw))
    patterns, windows = {}, WINDOWS
    for body in raised:
        pattern, intent_hash_wanted = _pattern(
            body, contents.get(body["message_sequence_number"], _Content())
        )
        if intent_hash_wanted is not None and windows > 0:
            windows -= 1
            pattern["intent"] = await _earlier(app, tenant_id, body, intent_hash_wanted)
        patterns[id(body)] = pattern
    return [_item(event, patterns.get(id(event["body"]))) for event in events]


def _item(event: dict[str, Any], pattern: dict[str, Any] | None) -> dict[str, Any]:
    body = event["body"]
    score = body.get("entropy_score")
    item = {
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
        item["repeated_pattern"] = pattern
    else:
        item["severity"] = body.get("severity") or "normal"
    return item


def _pattern(body: dict[str, Any], content: _Content) -> tuple[dict[str, Any], str | None]:
    """The repeated pattern, by the message that raised the alarm; and the hash of an intent that is in an
    earlier message. The second detector's pattern has no single repeated step; the last one represents it.
    """
    known, intent = body.get("repeated_pattern"), _intent(content)
    if known is None:
        action = content.action or _Action()
        tool = body.get("tool") or action.tool_call
        return {"intent": intent, "tool_call": tool, "action_status": action.status}, None
    is_it = intent is not None and intent_hash(intent) == known["intent_hash"]
    named = {"tool_call": known["tool_call"], "action_status": known["action_status"]}
    return {"intent": intent if is_it else None, **named}, None if is_it else known["intent_hash"]


async def _earlier(
    app: AppState, tenant_id: str, body: dict[str, Any], intent_hash_wanted: str
) -> str | None:
    store = playback(app)
    sessions = await app.store.rows(tenant_id, "sessions", session_id=body["session_id"])
    if not sessions:
        return None
    before = body["message_sequence_number"]
    start = await store.cut(tenant_id, sessions[0], WINDOW, WINDOW_BYTES, before)
    span = sessions[0] if start is None else sessions[0] | {"first_seq": start}
    rows = await store.play(tenant_id, span, WINDOW, before)
    return await asyncio.to_thread(_same, rows, intent_hash_wanted)


def _same(rows: list[SessionMessage], intent_hash_wanted: str) -> str | None:
    intents = (_intent(_content(row.raw)) for row in reversed(rows))
    return next((one for one in intents if one is not None and intent_hash(one) == intent_hash_wanted), None)


def _intent(content: _Content) -> str | None:
    return None if content.cognition is None else content.cognition.intent


def _content(raw: bytes | None) -> _Content:
    try:
        return _Content() if raw is None else msgspec.json.decode(raw, type=_Content)
    except msgspec.MsgspecError:  # an envelope may have anything under these names
        return _Content()


entropy = Router(path="/v1", route_handlers=[entropy_alerts], tags=["Session Cluster Manager"])
