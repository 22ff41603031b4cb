"""What the doors of alert rules and of scaling triggers have in common: they are one kind of rule.

A rule that cannot be watched is refused with one sentence; an endpoint of somebody else is not known.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from litestar import Response

from observatory.features.alerting import commands as alerting
from observatory.features.alerting import commands_findings as alert_telling
from observatory.features.alerting.commands import PREFIXES, rule_of
from observatory.features.alerting.email import Email
from observatory.features.alerting.evaluation import Readings
from observatory.features.alerting.types import AlertRuleBody, MuteBody, RuleBody, ScalingTriggerBody
from observatory.features.alerting.types_rows import AlertingRows
from observatory.features.alerting.types_rules import (
    CONDITIONS,
    KINDS,
    SCALABLE,
    AlertRule,
    Purpose,
    plain,
    problem_of,
)
from observatory.features.webhooks.signature import body_of, delivery_id_of, told
from observatory.http.answers import Refusal, json
from observatory.http.app_state import Call, House
from observatory.http.permissions import need
from observatory.pipeline.ports import EventFilter
from observatory.pipeline.state import Act, Principal
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import mint

MINUTE_NS = 60_000_000_000
MOST_OPEN = 1_000  # that are counted for the lists
NEAREST = 5  # subjects of a rule whose level is told
Row = dict[str, Any]


def rows_of(house: House) -> AlertingRows:
    assert isinstance(house.store, AlertingRows)
    return house.store


async def listed(request: Call, house: House, purpose: Purpose) -> Response[bytes]:
    tenant_id = (await need(request, house, "read")).tenant_id
    rows = await house.store.rows(tenant_id, "alert_rules", purpose=purpose, removed_ns=None)
    rows.sort(key=lambda row: (row["created_ns"], row["name"]))
    counts = await _counts(house, tenant_id)
    mail = house.webhooks.transports.get("email")
    return json(
        {
            "items": [item_of(row, counts, house.clock()) for row in rows],
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
            "mail_is_set": isinstance(mail, Email) and mail.is_set,
        }
    )


async def levels(request: Call, house: House, purpose: Purpose) -> Response[bytes]:
    """Each (condition, scope) is read once, whoever asks for it. Rules that count events have no level."""
    tenant_id = (await need(request, house, "read")).tenant_id
    now_ns = house.clock()
    rows = await house.store.rows(tenant_id, "alert_rules", purpose=purpose, removed_ns=None)
    # The lowest threshold first: some readings leave out what is below it.
    rules = sorted(map(rule_of, rows), key=lambda rule: rule.threshold)
    readings: dict[tuple[str, str], Readings] = {}
    items = []
    for rule in rules:
        if KINDS[rule.condition].is_level:
            known = rule.condition, rule.scope
            if known not in readings:
                readings[known] = await house.alerts.level(tenant_id, rule, now_ns)
            items.append(_level(rule, readings[known]))
    return json({"items": items, "next_cursor": None, "at": from_ns(now_ns)})


def _level(rule: AlertRule, readings: Readings) -> Row:
    found = {subject: one.value for subject, one in readings.items()}
    if rule.target is not None or rule.scope == "tenant":
        subject = "tenant" if rule.scope == "tenant" else f"{rule.scope}:{rule.target}"
        found = {subject: found.get(subject, 0.0)}  # what has no reading is nought
    nearest = sorted(found.items(), key=lambda one: (-one[1] if rule.compare == "above" else one[1], one[0]))
    return {
        "rule_id": rule.rule_id,
        "subjects": [
            {"subject": subject, "value": round(float(value), 6), "breaches": rule.breaches(value)}
            for subject, value in nearest[:NEAREST]
        ],
        "of": len(found),
    }


async def _counts(house: House, tenant_id: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in await rows_of(house).alerts_open(tenant_id, None, MOST_OPEN):
        counts[row["rule_id"]] = counts.get(row["rule_id"], 0) + 1
    return counts


async def created(request: Call, house: House, purpose: Purpose, data: RuleBody) -> Response[bytes]:
    who = await need(request, house, "admin")
    now_ns = house.clock()
    rule = await _rule(house, who, mint(PREFIXES[purpose], now_ns), purpose, data)
    return await _did(house, who, alerting.add(who, rule, now_ns))


async def _rule(house: House, who: Principal, rule_id: str, purpose: Purpose, data: RuleBody) -> AlertRule:
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
    await check_endpoints(house, who, data.endpoint_ids)
    return rule


async def check_endpoints(house: House, who: Principal, ids: list[str]) -> None:
    found = await _endpoints(house, who.tenant_id, ids)
    if set(ids) - set(found):
        detail = "an endpoint is not known to this tenant; GET /v1/webhooks/out lists them"
        raise Refusal(422, "unknown_endpoint", detail)


async def _endpoints(house: House, tenant_id: str, ids: list[str]) -> dict[str, Row]:
    if not ids:
        return {}
    rows = await house.store.rows(
        tenant_id, "webhook_endpoints", endpoint_id=sorted(set(ids)), removed_ns=None
    )
    return {row["endpoint_id"]: row for row in rows}


async def _did(house: House, who: Principal, act: Act) -> Response[bytes]:
    verdict = await house.command(act)
    if verdict.code >= 400:
        return json(verdict.answer, verdict.code)
    counts = await _counts(house, who.tenant_id)
    return json(item_of(verdict.answer, counts, house.clock()), verdict.code)


async def got(request: Call, house: House, purpose: Purpose, rule_id: str) -> Response[bytes]:
    tenant_id = (await need(request, house, "read")).tenant_id
    rows = await house.store.rows(tenant_id, "alert_rules", rule_id=rule_id, purpose=purpose, removed_ns=None)
    if not rows:
        refused = alerting.unknown(purpose).answer
        raise Refusal(404, refused.reason, refused.detail)
    return json(item_of(rows[0], await _counts(house, tenant_id), house.clock()))


async def changed(
    request: Call, house: House, purpose: Purpose, rule_id: str, data: RuleBody
) -> Response[bytes]:
    who = await need(request, house, "admin")
    rule = await _rule(house, who, rule_id, purpose, data)
    return await _did(house, who, alerting.change(who, rule, house.clock(), data.was))


async def removed(request: Call, house: House, purpose: Purpose, rule_id: str) -> Response[bytes]:
    who = await need(request, house, "admin")
    verdict = await house.command(alerting.remove(who, purpose, rule_id, house.clock()))
    return json(verdict.answer, verdict.code)


async def muted(
    request: Call, house: House, purpose: Purpose, rule_id: str, data: MuteBody
) -> Response[bytes]:
    who = await need(request, house, "admin")
    now_ns = house.clock()
    until_ns = now_ns + data.minutes * MINUTE_NS if data.minutes else 0
    return await _did(house, who, alerting.mute(who, purpose, rule_id, until_ns, now_ns))


async def tested(request: Call, house: House, purpose: Purpose, rule_id: str) -> Response[bytes]:
    """The test is an event of its own; what is sent is that event. One try each, all at once."""
    who = await need(request, house, "admin")
    if not house.offers.allows((who.tenant_id, rule_id)):
        raise Refusal(429, "too_often", "this rule was tested too often; try again in a minute")
    verdict = await house.command(
        alert_telling.test(who, rule_id, purpose, f"{house.url}/fleet", house.clock())
    )
    if verdict.code != 200:
        return json(verdict.answer, verdict.code)
    number, ids = verdict.answer
    span = EventFilter(after=number - 1, before=number + 1)
    stored = (await house.store.events(who.tenant_id, span, 1, newest_first=False))[0]
    event = told(stored.record, "alert_tested", None)
    known = await _endpoints(house, who.tenant_id, list(ids))
    outcomes = await asyncio.gather(*(_tried(house, known.get(one), one, number, event) for one in ids))
    return json({"rule_id": rule_id, "sequence_number": number, "outcomes": outcomes})


async def _tried(house: House, endpoint: Row | None, endpoint_id: str, number: int, event: Row) -> Row:
    made: Row = {"endpoint_id": endpoint_id, "name": None, "kind": None, "ok": False, "code": None}
    if endpoint is None:
        return made | {"detail": "this endpoint was removed; take it out of the rule"}
    made |= {"name": endpoint["name"], "kind": endpoint["kind"]}
    transport = house.webhooks.transports.get(endpoint["kind"])
    if endpoint["state"] != "active" or transport is None:
        return made | {"detail": "this endpoint is disabled; nothing is sent to it"}
    name = delivery_id_of(endpoint_id, number)
    outcome = await transport.send(endpoint, name, event, body_of(event), house.clock())
    return made | {"ok": outcome.ok, "code": outcome.code, "detail": outcome.detail}


def item_of(row: Row, counts: dict[str, int], now_ns: int) -> Row:
    rule = rule_of(row)
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


def open_of(row: Row, rule: AlertRule) -> Row:
    return {
        "rule_id": rule.rule_id,
        "purpose": rule.purpose,
        "name": rule.name,
        "condition": rule.condition,
        "severity": rule.severity,
        "subject": row["subject"],
        "value": row["value"],
        "threshold": plain(rule.threshold),
        "unit": KINDS[rule.condition].unit,
        "since": from_ns(row["fired_ns"]),
        "raised_at": from_ns(row["told_ns"]),
        "sequence_number": row["raised_seq"],
        "times": row["times"],
        "muted": not row["is_told"],
        "link": row["link"],
    }
