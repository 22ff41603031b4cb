"""The alert tray: recent alerts of all kinds, newest first, each as one plain sentence (S311).

Which numbers are alerts is folded after the commit; the newest numbers not folded yet are scanned directly.
The text comes from the audit event, or for a status alert from the archived message: no payload is stored
here. `open` comes from the current state, `until` from the event that ended the alert.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Literal
from urllib.parse import quote, urlsplit

import msgspec
from litestar import Response, Router, get
from litestar.params import FromQuery

from observatory.errors import StoreError
from observatory.features.alerting.routes_shared import alerting_rows
from observatory.features.alerting.types_tray import ENDED, KINDS, RAISED, STATUS, AlertLog
from observatory.features.archive.queries_content import read_contents
from observatory.features.graph.queries_session import playback
from observatory.features.loops.queries import open_loops
from observatory.http.answers import Cursor, Limit, json, page, read_cursor
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.ports import EventFilter
from observatory.protocol.clock import from_ns

UNFOLDED = 5_000  # numbers not folded yet that are scanned
ENDS = 2_000  # ends of alerts read for one response
Kind = Literal[
    "entropy",
    "loop",
    "injection",
    "violation",
    "budget_warning",
    "budget_exceeded",
    "eviction",
    "kill_switch",
    "rule",
    "status_alert",
]
Severity = Literal["info", "warning", "error", "critical"]
SEVERITY: dict[str, Severity] = {
    "entropy": "critical",
    "loop": "critical",
    "injection": "warning",
    "violation": "error",
    "budget_warning": "warning",
    "budget_exceeded": "error",
    "eviction": "warning",
    "kill_switch": "critical",
}
# Built-in alerts are listed once: not again because a rule watches them too.
LISTED = ("entropy", "injection", "violations", "budget")
_EVENTS = tuple(f'"event_type":"{name}"'.encode() for name in (*RAISED, *ENDED))
_STATUS = b'"av.message.type":"status_alert"'
Row = dict[str, Any]


class AlertNotice(msgspec.Struct, kw_only=True):
    """`until` is null while it is open, and for kinds that have no end; `link` is a path in this UI."""

    id: str
    kind: Kind
    severity: Severity
    text: str
    at: str
    until: str | None
    open: bool
    agent_id: str | None
    session_id: str | None
    sequence_number: int
    link: str


class _StatusText(msgspec.Struct):
    title: str | None = None
    summary: str | None = None
    severity: Severity = "info"


class _Message(msgspec.Struct):
    payload: _StatusText


@get("/alerts", summary="List recent alerts, newest first", operation_id="list_alerts")
async def list_alerts(
    request: Call,
    app: Here,
    kind: FromQuery[Kind | None] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response[bytes]:
    tenant_id = (await require_permission(request, app, "read")).tenant_id
    before = read_cursor(cursor)
    kinds = KINDS if kind is None else (kind,)
    raised, ends = await _unfolded(app, tenant_id)
    found = {one: name for one, name in raised.items() if name in kinds and (before is None or one < before)}
    with suppress(StoreError):  # derived store unavailable: only the newest numbers
        rows = await app.derived.queries(AlertLog).alerts(tenant_id, before, limit + 1, kinds)
        found |= {row.seq: row.kind for row in rows}
        if rows:
            past = await app.derived.queries(AlertLog).alert_ends(tenant_id, rows[-1].seq, ENDS, kinds)
            ends += [row.seq for row in past]
    numbers = sorted(found, reverse=True)
    shown = {number: found[number] for number in numbers[:limit]}
    items = await _items(app, tenant_id, shown, ends)
    last = numbers[limit - 1] if len(numbers) > limit else None
    return json(page([*items, *numbers[limit:]], limit, last))


async def _unfolded(app: AppState, tenant_id: str) -> tuple[dict[int, str], list[int]]:
    """Alerts and ends of alerts among the newest numbers past the analyst's cursor."""
    folded = 0
    with suppress(StoreError):
        folded = (await app.derived.progress(tenant_id)).seq
    head, _ = await app.store.head(tenant_id)
    ends_after = max(folded, head - UNFOLDED)
    raised: dict[int, str] = {}
    ends: list[int] = []
    if ends_after >= head:
        return raised, ends
    for stored in await app.store.events(tenant_id, EventFilter(after=ends_after), UNFOLDED, True):
        if not (_STATUS in stored.record or any(mark in stored.record for mark in _EVENTS)):
            continue
        event = msgspec.json.decode(stored.record)
        name = event["body"]["event_type"]
        if name in RAISED:
            raised[stored.sequence_number] = RAISED[name]
        elif name in ENDED:
            ends.append(stored.sequence_number)
        elif name in ("message_delivered", "message_held") and "held_sequence_number" not in event["body"]:
            raised[stored.sequence_number] = STATUS
    return raised, ends


async def _items(app: AppState, tenant_id: str, shown: dict[int, str], ends: list[int]) -> list[Row]:
    records = await playback(app).records(tenant_id, [*shown, *ends])
    events = {number: msgspec.json.decode(record) for number, record in records.items()}
    ended = _ended([events[number] for number in sorted(ends) if number in events])
    status = await read_contents(
        app,
        tenant_id,
        [one for one, kind in shown.items() if kind == STATUS],
        lambda _, raw: _status_text(raw),
    )
    opened = await _open(app, tenant_id)
    sessions = await _sessions(app, tenant_id, [events[one] for one in shown if one in events])
    return [
        _item(number, kind, events[number], status.get(number), ended, opened, sessions)
        for number, kind in shown.items()
        if number in events and not (kind == "rule" and events[number]["body"].get("condition") in LISTED)
    ]


async def _open(app: AppState, tenant_id: str) -> set[Any]:
    """Numbers of firing alerts, evicted agents and engaged kill switches by their ids."""
    found: set[Any] = set()
    for row in await app.store.alarmed(tenant_id, 1_000):
        found |= {row["alert_seq"], *(loop.seq for loop in open_loops(row["loops"]))}
    for row in await app.store.rows(tenant_id, "agents"):
        if row["evicted_ns"] is not None:
            found.add((row["entity_id"], from_ns(row["evicted_ns"])))
    engaged = await app.store.rows(tenant_id, "kill_switches", state=["engaged", "releasing"])
    firing = await alerting_rows(app).alerts_open(tenant_id, None, 1_000)
    return found | {row["kill_id"] for row in engaged} | {row["raised_seq"] for row in firing}


async def _sessions(app: AppState, tenant_id: str, events: list[Row]) -> dict[str, str]:
    """For status alerts, whose events name a session only by its trace."""
    traces = sorted({event["trace_id"] for event in events if "session_id" not in event["body"]})
    rows = await app.store.rows(tenant_id, "sessions", trace_id=traces) if traces else []
    return {row["trace_id"]: row["session_id"] for row in rows}


def _status_text(raw: bytes | None) -> _StatusText | None:
    try:
        return None if raw is None else msgspec.json.decode(raw, type=_Message).payload
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _key(event: Row) -> tuple[Any, ...]:
    """What an end has in common with its beginning."""
    body = event["body"]
    name = body["event_type"]
    kind = RAISED.get(name) or ENDED.get(name)
    if kind == "entropy":
        return kind, body["session_id"]
    if kind == "loop":
        return kind, body["session_id"], body["agent_id"]
    if kind == "rule":
        return kind, body["rule_id"], body["subject"]
    return (kind, body.get("kill_id") if kind == "kill_switch" else body.get("entity_id"))


def _ended(ends: list[Row]) -> dict[tuple[Any, ...], list[tuple[int, str]]]:
    """(number, time) of ends by key, oldest first. A kill switch ends with its last stage."""
    found: dict[tuple[Any, ...], list[tuple[int, str]]] = {}
    for event in ends:
        if event["body"].get("stage", "released") == "released":
            at = (event["hash_chain"]["sequence_number"], event["observed_timestamp"])
            found.setdefault(_key(event), []).append(at)
    return found


def _item(
    number: int,
    kind: str,
    event: Row,
    status: _StatusText | None,
    ended: dict[tuple[Any, ...], list[tuple[int, str]]],
    opened: set[Any],
    sessions: dict[str, str],
) -> Row:
    body, at = event["body"], event["observed_timestamp"]
    agent_id = body.get("agent_id") or event["attributes"].get("av.sender.agent_id")
    session_id = body.get("session_id") or (sessions.get(event["trace_id"]) if kind == STATUS else None)
    ends_after = [when for seq, when in ended.get(_key(event), ()) if seq > number] if kind != STATUS else []
    keys = {number, body.get("kill_id"), (body.get("entity_id"), at)} - {None}
    text = _sentence(kind, event, status)
    return {
        "id": f"alert:{number}",
        "kind": kind,
        "severity": _severity(kind, body, status),
        "text": text,
        "at": at,
        "until": ends_after[0] if ends_after else None,
        "open": kind != STATUS and not keys.isdisjoint(opened),
        "agent_id": agent_id,
        "session_id": session_id,
        "sequence_number": number,
        "link": _path(body["link"]) if kind == "rule" else _link(kind, agent_id, session_id),
    }


def _severity(kind: str, body: Row, status: _StatusText | None) -> Severity:
    if kind == STATUS:
        return status.severity if status is not None else "info"
    return body["severity"] if kind == "rule" else SEVERITY[kind]


def _path(link: str) -> str:
    """The path of the page an alert links to, whatever address the gateway had then."""
    parts = urlsplit(link)
    return f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"


def _sentence(kind: str, event: Row, status: _StatusText | None) -> str:
    body = event["body"]
    agent, summary = body.get("agent_id") or "an agent", str(body.get("summary", ""))
    if kind == "entropy":
        pattern = body.get("repeated_pattern") or {}
        tool = f"`{pattern['tool_call']}`" if pattern.get("tool_call") else "the same step"
        failing = "failing " if pattern.get("action_status") == "failure" else ""
        return f"{agent} is looping: same {failing}{tool} {body.get('occurrence_count')} times"
    if kind == "loop":
        return f"{agent} is looping: {body['reason']}" if body.get("reason") else summary
    if kind == "injection":
        return f"{summary}: {', '.join(body['patterns'])}"
    if kind == "violation":
        version = (
            f" v{str(body['capability_version']).removeprefix('v')}" if body.get("capability_version") else ""
        )
        return f"{agent}{version} sent a message that breaks the schema: {body.get('violation_reason')}"
    if kind == "budget_warning":
        return f"{body['scope']} {body['whose']} exceeded its soft cap of {body['soft']}; needs review"
    if kind == "budget_exceeded":
        return (
            f"{agent} was refused: {body['scope']} {body['whose']} may spend {body['hard']}, has spent "
            f"{body['spent']}, and this costs {body['cost']}"
        )
    if kind == STATUS:
        if status is None or status.title is None:
            return "status report of an agent; its text was shredded"
        return status.title if not status.summary else f"{status.title}: {status.summary}"
    return summary


def _link(kind: str, agent_id: str | None, session_id: str | None) -> str:
    if kind == "kill_switch":
        return "/god-mode"
    if session_id is not None:
        return f"/sessions/{quote(session_id, safe='')}"
    return "/fleet" if agent_id is None else f"/fleet?peek=agent:{quote(agent_id, safe='')}"


alerts = Router(path="/v1", route_handlers=[list_alerts], tags=["Approvals"])
