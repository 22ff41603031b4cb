"""The alert tray: what alarmed somebody lately, newest first, each in one plain sentence (S311).

Which numbers are alerts is folded behind the commit; what is not folded yet is looked for among the newest
numbers of the record. The words come from the audit event, and of a status alert from the archived message:
nothing of a payload is kept here. `open` is told by what stands now, `until` by the event that ended it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Literal
from urllib.parse import quote, urlsplit

import msgspec
from litestar import Response, Router, get
from litestar.params import FromQuery

from observatory.errors import StoreError
from observatory.features.alerting.routes_shared import rows_of
from observatory.features.alerting.types_tray import ENDED, KINDS, RAISED, STATUS
from observatory.features.archive.queries_content import reduced
from observatory.features.graph.loader import playback
from observatory.features.loops.commands_findings import open_loops
from observatory.http.answers import Cursor, Limit, json, page, read_cursor
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.pipeline.ports import EventFilter
from observatory.protocol.clock import from_ns

UNFOLDED = 5_000  # numbers the analyst has not come to that are looked through
ENDS = 2_000  # ends of alerts that are looked at for one answer
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
# What alarms by itself is listed once: not again because a rule watches it too.
LISTED = ("entropy", "injection", "violations", "budget")
_EVENTS = tuple(f'"event_type":"{name}"'.encode() for name in (*RAISED, *ENDED))
_STATUS = b'"av.message.type":"status_alert"'
Row = dict[str, Any]


class AlertNotice(msgspec.Struct, kw_only=True):
    """`until` is null while it is open, and where nothing ends such an alert; `link` is a path of ours."""

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


class _Said(msgspec.Struct):
    title: str | None = None
    summary: str | None = None
    severity: Severity = "info"


class _Message(msgspec.Struct):
    payload: _Said


@get("/alerts", summary="What alarmed somebody lately, newest first", operation_id="list_alerts")
async def list_alerts(
    request: Call,
    house: Here,
    kind: FromQuery[Kind | None] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response[bytes]:
    tenant_id = (await need(request, house, "read")).tenant_id
    before = read_cursor(cursor)
    kinds = KINDS if kind is None else (kind,)
    raised, ends = await _unfolded(house, tenant_id)
    found = {one: name for one, name in raised.items() if name in kinds and (before is None or one < before)}
    with suppress(StoreError):  # insight away: what the newest numbers tell
        rows = await house.derived.alerts(tenant_id, before, limit + 1, kinds)
        found |= {row.seq: row.kind for row in rows}
        if rows:
            past = await house.derived.alert_ends(tenant_id, rows[-1].seq, ENDS, kinds)
            ends += [row.seq for row in past]
    numbers = sorted(found, reverse=True)
    shown = {number: found[number] for number in numbers[:limit]}
    items = await _items(house, tenant_id, shown, ends)
    last = numbers[limit - 1] if len(numbers) > limit else None
    return json(page([*items, *numbers[limit:]], limit, last))


async def _unfolded(house: House, tenant_id: str) -> tuple[dict[int, str], list[int]]:
    """Alerts, and ends of alerts, among the numbers past the analyst's cursor, the newest of them."""
    folded = 0
    with suppress(StoreError):
        folded = (await house.derived.progress(tenant_id)).seq
    head, _ = await house.store.head(tenant_id)
    after = max(folded, head - UNFOLDED)
    raised: dict[int, str] = {}
    ends: list[int] = []
    if after >= head:
        return raised, ends
    for stored in await house.store.events(tenant_id, EventFilter(after=after), UNFOLDED, True):
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


async def _items(house: House, tenant_id: str, shown: dict[int, str], ends: list[int]) -> list[Row]:
    records = await playback(house).records(tenant_id, [*shown, *ends])
    events = {number: msgspec.json.decode(record) for number, record in records.items()}
    ended = _ended([events[number] for number in sorted(ends) if number in events])
    said = await reduced(
        house, tenant_id, [one for one, kind in shown.items() if kind == STATUS], lambda _, raw: _said(raw)
    )
    opened = await _open(house, tenant_id)
    sessions = await _sessions(house, tenant_id, [events[one] for one in shown if one in events])
    return [
        _item(number, kind, events[number], said.get(number), ended, opened, sessions)
        for number, kind in shown.items()
        if number in events and not (kind == "rule" and events[number]["body"].get("condition") in LISTED)
    ]


async def _open(house: House, tenant_id: str) -> set[Any]:
    """Numbers of alarms that stand, evicted agents and engaged kill-switches by their ids."""
    found: set[Any] = set()
    for row in await house.store.alarmed(tenant_id, 1_000):
        found |= {row["alert_seq"], *(loop.seq for loop in open_loops(row["loops"]))}
    for row in await house.store.rows(tenant_id, "agents"):
        if row["evicted_ns"] is not None:
            found.add((row["entity_id"], from_ns(row["evicted_ns"])))
    engaged = await house.store.rows(tenant_id, "kill_switches", state=["engaged", "releasing"])
    firing = await rows_of(house).alerts_open(tenant_id, None, 1_000)
    return found | {row["kill_id"] for row in engaged} | {row["raised_seq"] for row in firing}


async def _sessions(house: House, tenant_id: str, events: list[Row]) -> dict[str, str]:
    """Of status alerts, whose events name a session by its trace only."""
    traces = sorted({event["trace_id"] for event in events if "session_id" not in event["body"]})
    rows = await house.store.rows(tenant_id, "sessions", trace_id=traces) if traces else []
    return {row["trace_id"]: row["session_id"] for row in rows}


def _said(raw: bytes | None) -> _Said | None:
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
    """(number, time) of ends by key, oldest first. A kill-switch ends with its last stage."""
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
    said: _Said | None,
    ended: dict[tuple[Any, ...], list[tuple[int, str]]],
    opened: set[Any],
    sessions: dict[str, str],
) -> Row:
    body, at = event["body"], event["observed_timestamp"]
    agent_id = body.get("agent_id") or event["attributes"].get("av.sender.agent_id")
    session_id = body.get("session_id") or (sessions.get(event["trace_id"]) if kind == STATUS else None)
    after = [when for seq, when in ended.get(_key(event), ()) if seq > number] if kind != STATUS else []
    stands = {number, body.get("kill_id"), (body.get("entity_id"), at)} - {None}
    text = _sentence(kind, event, said)
    return {
        "id": f"alert:{number}",
        "kind": kind,
        "severity": _severity(kind, body, said),
        "text": text,
        "at": at,
        "until": after[0] if after else None,
        "open": kind != STATUS and not stands.isdisjoint(opened),
        "agent_id": agent_id,
        "session_id": session_id,
        "sequence_number": number,
        "link": _path(body["link"]) if kind == "rule" else _link(kind, agent_id, session_id),
    }


def _severity(kind: str, body: Row, said: _Said | None) -> Severity:
    if kind == STATUS:
        return said.severity if said is not None else "info"
    return body["severity"] if kind == "rule" else SEVERITY[kind]


def _path(link: str) -> str:
    """Of the page an alert names, whatever address the gateway had then."""
    parts = urlsplit(link)
    return f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"


def _sentence(kind: str, event: Row, said: _Said | None) -> str:
    body = event["body"]
    agent, summary = body.get("agent_id") or "an agent", str(body.get("summary", ""))
    if kind == "entropy":
        pattern = body.get("repeated_pattern") or {}
        tool = f"`{pattern['tool_call']}`" if pattern.get("tool_call") else "the same step"
        failing = "failing " if pattern.get("action_status") == "failure" else ""
        return f"{agent} goes in circles: same {failing}{tool} {body.get('occurrence_count')} times"
    if kind == "loop":
        return f"{agent} goes in circles: {body['reason']}" if body.get("reason") else summary
    if kind == "injection":
        return f"{summary}: {', '.join(body['patterns'])}"
    if kind == "violation":
        version = (
            f" v{str(body['capability_version']).removeprefix('v')}" if body.get("capability_version") else ""
        )
        return f"{agent}{version} sent a message that breaks the schema: {body.get('violation_reason')}"
    if kind == "budget_warning":
        return f"{body['scope']} {body['whose']} is beyond its soft cap of {body['soft']}; a person must look"
    if kind == "budget_exceeded":
        return (
            f"{agent} was refused: {body['scope']} {body['whose']} may spend {body['hard']}, has spent "
            f"{body['spent']}, and this costs {body['cost']}"
        )
    if kind == STATUS:
        if said is None or said.title is None:
            return "an agent reported how its work stands; its words were shredded"
        return said.title if not said.summary else f"{said.title}: {said.summary}"
    return summary


def _link(kind: str, agent_id: str | None, session_id: str | None) -> str:
    if kind == "kill_switch":
        return "/god-mode"
    if session_id is not None:
        return f"/sessions/{quote(session_id, safe='')}"
    return "/fleet" if agent_id is None else f"/fleet?peek=agent:{quote(agent_id, safe='')}"


alerts = Router(path="/v1", route_handlers=[list_alerts], tags=["Approvals"])
