"""Handlers shared by the routes of alert rules and of scaling triggers: both are one kind of rule.

An invalid rule is refused with one message; an endpoint of another tenant is unknown.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from litestar import Response

from observatory.features.alerting import commands as alerting
from observatory.features.alerting import commands_findings as findings
from observatory.features.alerting.commands import PREFIXES, rule_from_row
from observatory.features.alerting.types import AlertRuleBody, MuteBody, ScalingTriggerBody, WatchRuleBody
from observatory.features.alerting.types_readings import LevelReadings
from observatory.features.alerting.types_rows import AlertingRows
from observatory.features.alerting.types_rules import (
    CONDITIONS,
    KINDS,
    SCALABLE,
    AlertRule,
    Purpose,
    decimal_text,
    problem_of,
)
from observatory.features.alerting.worker import AlertWorker
from observatory.features.webhooks.email import EmailTransport
from observatory.features.webhooks.types_signature import body_of, delivered_event, delivery_id_of
from observatory.features.webhooks.worker import WebhookWorker
from observatory.http.answers import Refusal, json
from observatory.http.app_state import AppState, Call
from observatory.http.permissions import require_permission
from observatory.pipeline.ports import EventFilter
from observatory.pipeline.state import Command, Principal
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import mint

MINUTE_NS = 60_000_000_000
MAX_OPEN = 1_000  # counted for the lists
NEAREST = 5  # subjects of a rule whose level is returned
Row = dict[str, Any]


def alerting_rows(app: AppState) -> AlertingRows:
    assert isinstance(app.store, AlertingRows)
    return app.store


async def list_rules(request: Call, app: AppState, purpose: Purpose) -> Response[bytes]:
    tenant_id = (await require_permission(request, app, "read")).tenant_id
    rows = await app.store.rows(tenant_id, "alert_rules", purpose=purpose, removed_ns=None)
    rows.sort(key=lambda row: (row["created_ns"], row["name"]))
    counts = await _open_counts(app, tenant_id)
    mail = app.service(WebhookWorker).transports.get("email")
    return json(
        {
            "items": [rule_item(row, counts, app.clock()) for row in rows],
            "next_cursor": None,
            "conditions": [
                {
                    "condition": name,
                    "text": KINDS[name].text,
                    "unit": KINDS[name].unit,
                    "counts_events": not KINDS[name].is_level,
                    "scopes": KINDS[name].scopes,
                    "threshold": KINDS[name].threshold,
                    "window_s": None if KINDS[name].is_level else KINDS[name].window_s,
                    "scalable": name in SCALABLE,
                }
                for name in CONDITIONS
                if purpose == "alert" or name in SCALABLE
            ],
            "mail_is_set": isinstance(mail, EmailTransport) and mail.is_set,
        }
    )


async def read_levels(request: Call, app: AppState, purpose: Purpose) -> Response[bytes]:
    """Each (condition, scope) is read once for all rules. Rules that count events have no level."""
    tenant_id = (await require_permission(request, app, "read")).tenant_id
    now_ns = app.clock()
    rows = await app.store.rows(tenant_id, "alert_rules", purpose=purpose, removed_ns=None)
    # Lowest threshold first: some readings leave out what is below it.
    rules = sorted(map(rule_from_row, rows), key=lambda rule: rule.threshold)
    readings: dict[tuple[str, str], LevelReadings] = {}
    items = []
    for rule in rules:
        if KINDS[rule.condition].is_level:
            known = rule.condition, rule.scope
            if known not in readings:
                readings[known] = await app.service(AlertWorker).level(tenant_id, rule, now_ns)
            items.append(_level(rule, readings[known]))
    return json({"items": items, "next_cursor": None, "at": from_ns(now_ns)})


def _level(rule: AlertRule, readings: LevelReadings) -> Row:
    found = {subject: one.value for subject, one in readings.items()}
    if rule.target is not None or rule.scope == "tenant":
        subject = "tenant" if rule.scope == "tenant" else f"{rule.scope}:{rule.target}"
        found = {subject: found.get(subject, 0.0)}  # no reading means zero
    nearest = sorted(found.items(), key=lambda one: (-one[1] if rule.compare == "above" else one[1], one[0]))
    return {
        "rule_id": rule.rule_id,
        "subjects": [
            {"subject": subject, "value": round(float(value), 6), "breaches": rule.breaches(value)}
            for subject, value in nearest[:NEAREST]
        ],
        "of": len(found),
    }


async def _open_counts(app: AppState, tenant_id: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in await alerting_rows(app).alerts_open(tenant_id, None, MAX_OPEN):
        counts[row["rule_id"]] = counts.get(row["rule_id"], 0) + 1
    return counts


async def create_rule(request: Call, app: AppState, purpose: Purpose, data: WatchRuleBody) -> Response[bytes]:
    who = await require_permission(request, app, "admin")
    now_ns = app.clock()
    rule = await _rule(app, who, mint(PREFIXES[purpose], now_ns), purpose, data)
    return await _run(app, who, alerting.add(who, rule, now_ns))


async def _rule(
    app: AppState, who: Principal, rule_id: str, purpose: Purpose, data: WatchRuleBody
) -> AlertRule:
    kind = KINDS[data.condition]
    scaling = data if isinstance(data, ScalingTriggerBody) else None
    counted = data if isinstance(data, AlertRuleBody) else None
    rule = AlertRule(
        rule_id=rule_id,
        purpose=purpose,
        name=data.name,
        condition=data.condition,
        scope=data.scope or kind.scopes[0],
        target=data.target,
        compare=data.compare,
        threshold=float(kind.threshold if data.threshold is None else data.threshold),
        window_s=(counted.window_s if counted is not None else None) or kind.window_s,
        for_s=data.for_s,
        cooldown_s=data.cooldown_s,
        severity=data.severity or kind.severity,
        direction=None if scaling is None else scaling.direction,
        amount=None if scaling is None else scaling.amount,
        endpoint_ids=tuple(dict.fromkeys(data.endpoint_ids)),
        enabled=data.enabled,
        muted_until_ns=0,
        since_seq=0,
    )
    problem = problem_of(rule)
    if problem is None and counted is not None and counted.window_s is not None and kind.is_level:
        problem = f"{data.condition} is a level: give for_s, not window_s"
    if problem is not None:
        raise Refusal(422, "bad_rule", problem)
    await check_endpoints(app, who, data.endpoint_ids)
    return rule


async def check_endpoints(app: AppState, who: Principal, ids: list[str]) -> None:
    found = await _endpoints(app, who.tenant_id, ids)
    if set(ids) - set(found):
        detail = "an endpoint is not known to this tenant; GET /v1/webhooks/out lists them"
        raise Refusal(422, "unknown_endpoint", detail)


async def _endpoints(app: AppState, tenant_id: str, ids: list[str]) -> dict[str, Row]:
    if not ids:
        return {}
    rows = await app.store.rows(tenant_id, "webhook_endpoints", endpoint_id=sorted(set(ids)), removed_ns=None)
    return {row["endpoint_id"]: row for row in rows}


async def _run(app: AppState, who: Principal, act: Command) -> Response[bytes]:
    verdict = await app.command(act)
    if verdict.code >= 400:
        return json(verdict.answer, verdict.code)
    counts = await _open_counts(app, who.tenant_id)
    return json(rule_item(verdict.answer, counts, app.clock()), verdict.code)


async def get_rule(request: Call, app: AppState, purpose: Purpose, rule_id: str) -> Response[bytes]:
    tenant_id = (await require_permission(request, app, "read")).tenant_id
    rows = await app.store.rows(tenant_id, "alert_rules", rule_id=rule_id, purpose=purpose, removed_ns=None)
    if not rows:
        refused = alerting.rule_not_found(purpose).answer
        raise Refusal(404, refused.reason, refused.detail)
    return json(rule_item(rows[0], await _open_counts(app, tenant_id), app.clock()))


async def change_rule(
    request: Call, app: AppState, purpose: Purpose, rule_id: str, data: WatchRuleBody
) -> Response[bytes]:
    who = await require_permission(request, app, "admin")
    rule = await _rule(app, who, rule_id, purpose, data)
    return await _run(app, who, alerting.change(who, rule, app.clock(), data.was))


async def remove_rule(request: Call, app: AppState, purpose: Purpose, rule_id: str) -> Response[bytes]:
    who = await require_permission(request, app, "admin")
    verdict = await app.command(alerting.remove(who, purpose, rule_id, app.clock()))
    return json(verdict.answer, verdict.code)


async def mute_rule(
    request: Call, app: AppState, purpose: Purpose, rule_id: str, data: MuteBody
) -> Response[bytes]:
    who = await require_permission(request, app, "admin")
    now_ns = app.clock()
    until_ns = now_ns + data.minutes * MINUTE_NS if data.minutes else 0
    return await _run(app, who, alerting.mute(who, purpose, rule_id, until_ns, now_ns))


async def send_rule_test(request: Call, app: AppState, purpose: Purpose, rule_id: str) -> Response[bytes]:
    """The test is an event of its own, and that event is sent. One attempt per endpoint, in parallel."""
    who = await require_permission(request, app, "admin")
    if not app.offers.allows((who.tenant_id, rule_id)):
        raise Refusal(429, "too_often", "this rule was tested too often; retry in a minute")
    verdict = await app.command(findings.test(who, rule_id, purpose, f"{app.url}/fleet", app.clock()))
    if verdict.code != 200:
        return json(verdict.answer, verdict.code)
    number, ids = verdict.answer
    span = EventFilter(after=number - 1, before=number + 1)
    stored = (await app.store.events(who.tenant_id, span, 1, newest_first=False))[0]
    event = delivered_event(stored.record, "alert_tested", None)
    known = await _endpoints(app, who.tenant_id, list(ids))
    outcomes = await asyncio.gather(*(_send_one(app, known.get(one), one, number, event) for one in ids))
    return json({"rule_id": rule_id, "sequence_number": number, "outcomes": outcomes})


async def _send_one(app: AppState, endpoint: Row | None, endpoint_id: str, number: int, event: Row) -> Row:
    result: Row = {"endpoint_id": endpoint_id, "name": None, "kind": None, "ok": False, "code": None}
    if endpoint is None:
        return result | {"detail": "this endpoint was removed; remove it from the rule"}
    result |= {"name": endpoint["name"], "kind": endpoint["kind"]}
    transport = app.service(WebhookWorker).transports.get(endpoint["kind"])
    if endpoint["state"] != "active" or transport is None:
        return result | {"detail": "this endpoint is disabled; nothing is sent to it"}
    name = delivery_id_of(endpoint_id, number)
    outcome = await transport.send(endpoint, name, event, body_of(event), app.clock())
    return result | {"ok": outcome.ok, "code": outcome.code, "detail": outcome.detail}


def rule_item(row: Row, counts: dict[str, int], now_ns: int) -> Row:
    rule = rule_from_row(row)
    item = msgspec.structs.asdict(rule)
    del item["since_seq"], item["muted_until_ns"]
    return item | {
        "window_s": None if KINDS[rule.condition].is_level else rule.window_s,
        "muted_until": from_ns(rule.muted_until_ns) if rule.is_muted(now_ns) else None,
        "open": counts.get(rule.rule_id, 0),
        "created_at": from_ns(row["created_ns"]),
        "created_by": row["created_by"],
        "updated_at": from_ns(row["updated_ns"]),
        "updated_by": row["updated_by"],
    }


def open_alert_item(row: Row, rule: AlertRule) -> Row:
    return {
        "rule_id": rule.rule_id,
        "purpose": rule.purpose,
        "name": rule.name,
        "condition": rule.condition,
        "severity": rule.severity,
        "subject": row["subject"],
        "value": row["value"],
        "threshold": decimal_text(rule.threshold),
        "unit": KINDS[rule.condition].unit,
        "since": from_ns(row["fired_ns"]),
        "raised_at": from_ns(row["told_ns"]),
        "sequence_number": row["raised_seq"],
        "times": row["times"],
        "muted": not row["is_told"],
        "link": row["link"],
    }
