"""Acts on alert rules and scaling triggers: made, changed, muted, removed, tried; each of them is audited.

Law: a rule counts from the event that made or last changed it, never for what was before. A name means one
rule of its purpose. Nothing is deleted: what is removed watches no more, and what of it was open is resolved
by the clock. Endpoints are named by id only: whom they reach stands in no event of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from observatory.features.alerting.types_rules import DEFAULTS, KINDS, AlertRule, Purpose, plain
from observatory.pipeline import row_statements as stating
from observatory.pipeline.concurrency import stale
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Draft, Principal, Verdict, Wants
from observatory.protocol.answers import Refused
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import mint

MOST_RULES = 200  # of a tenant, both purposes together
PREFIXES: dict[Purpose, str] = {"alert": "alr_", "scaling": "scl_"}
Row = dict[str, Any]
_ids = msgspec.json.Decoder(tuple[str, ...]).decode


def rule_of(row: Row) -> AlertRule:
    """A stored rule as it is judged."""
    fields = {name: row[name] for name in AlertRule.__struct_fields__ if name in row}
    fields |= {"endpoint_ids": _ids(row["endpoint_ids"]), "enabled": bool(row["enabled"])}
    return AlertRule(**fields)


def row_of(rule: AlertRule) -> Row:
    """The columns a rule is kept in."""
    row = msgspec.structs.asdict(rule)
    return row | {
        "endpoint_ids": msgspec.json.encode(rule.endpoint_ids).decode(),
        "enabled": int(rule.enabled),
        "threshold": float(rule.threshold),
    }


def told_of(rule: AlertRule) -> Row:
    """A rule as events and answers tell it; figures are decimal text."""
    names = ("rule_id", "purpose", "name", "condition", "scope", "target", "compare")
    told: Row = {name: getattr(rule, name) for name in names}
    told |= {"threshold": plain(rule.threshold), "severity": rule.severity, "enabled": rule.enabled}
    told |= {name: getattr(rule, name) for name in ("window_s", "for_s", "cooldown_s")}
    if rule.purpose == "scaling":
        told |= {"direction": rule.direction, "amount": rule.amount}
    return told | {"endpoint_ids": list(rule.endpoint_ids)}


def wants_rules(tenant_id: str) -> Wants:
    wants = Wants()
    wants.row("alert_rules", tenant_id)
    return wants


def rules_at(desk: Desk, tenant_id: str) -> list[Row]:
    """The rules that are not removed, under the lock."""
    rows = desk.memory.rows.setdefault("alert_rules", {})
    return [row for (owner, _), row in rows.items() if owner == tenant_id and row["removed_ns"] is None]


def _find(desk: Desk, who: Principal, purpose: Purpose, rule_id: str) -> Row | None:
    for row in rules_at(desk, who.tenant_id):
        if row["rule_id"] == rule_id and row["purpose"] == purpose:
            return row
    return None


def unknown(purpose: Purpose) -> Verdict:
    what = "alert rule" if purpose == "alert" else "scaling trigger"
    return Verdict(404, Refused(reason="not_found", detail=f"no {what} of this tenant has that id"))


def _taken(rules: list[Row], rule: AlertRule) -> Verdict | None:
    for row in rules:
        if row["rule_id"] != rule.rule_id and (row["purpose"], row["name"]) == (rule.purpose, rule.name):
            return Verdict(409, Refused(reason="name_taken", detail="another one is called so already"))
    return None


def add(who: Principal, rule: AlertRule, now_ns: int) -> Act:
    """`rule` was checked by `problem_of`; its `since_seq` is given here."""

    def decide(desk: Desk) -> Verdict:
        rules = rules_at(desk, who.tenant_id)
        refused = _taken(rules, rule)
        if refused is not None:
            return refused
        if len(rules) >= MOST_RULES:
            detail = f"a tenant has at most {MOST_RULES} alert rules and scaling triggers"
            return Verdict(409, Refused(reason="too_many_rules", detail=detail))
        row, write = _made(desk, who, rule)
        return Verdict(201, row, writes=[write])

    return Act(who, now_ns, decide, wants_rules(who.tenant_id))


def _made(desk: Desk, who: Principal, rule: AlertRule) -> tuple[Row, Write]:
    row = row_of(rule) | {
        "tenant_id": who.tenant_id,
        "since_seq": 0,
        "created_ns": desk.now_ns,
        "created_by": who.entity_id,
        "updated_ns": desk.now_ns,
        "updated_by": who.entity_id,
        "removed_ns": None,
    }
    row["since_seq"] = _append(desk, who, _told(desk, who, "created", None, rule), row, {})
    desk.memory.rows.setdefault("alert_rules", {})[who.tenant_id, rule.rule_id] = row
    return row, Write("alert_rules", row)


def _append(desk: Desk, who: Principal, event: Draft, row: Row, values: Row) -> int:
    """The event, with what the row is from here on; its number."""
    now = row | values | {"updated_ns": desk.now_ns, "updated_by": who.entity_id}
    stating.put_on(event, [stating.row_of("alert_rules", now)])
    return desk.append(event)


def _told(
    desk: Desk, who: Principal, change: str, before: AlertRule | None, after: AlertRule | None
) -> Draft:
    rule = after or before
    assert rule is not None
    detail = {
        "change": change,
        "rule_id": rule.rule_id,
        "purpose": rule.purpose,
        "before": None if before is None else told_of(before),
        "after": None if after is None else told_of(after),
        "muted_until": from_ns(rule.muted_until_ns) if change == "muted" else None,
    }
    what = "alert rule" if rule.purpose == "alert" else "scaling trigger"
    summary = f"{what} {rule.name} {change} by {who.entity_id}"
    return notice(who.tenant_id, "alert_rule_changed", summary, desk.now_ns, who, detail)


def change(who: Principal, rule: AlertRule, now_ns: int, was: str | None = None) -> Act:
    """The whole rule anew under its id. What was counted for it before counts no more. `was`: see `stale`."""

    def decide(desk: Desk) -> Verdict:
        row = _find(desk, who, rule.purpose, rule.rule_id)
        if row is None:
            return unknown(rule.purpose)
        refused = stale(was, row["updated_ns"]) or _taken(rules_at(desk, who.tenant_id), rule)
        if refused is not None:
            return refused
        before = rule_of(row)
        after = msgspec.structs.replace(
            rule, since_seq=before.since_seq, muted_until_ns=before.muted_until_ns
        )
        if after == before:
            return Verdict(200, row)
        number = _append(desk, who, _told(desk, who, "changed", before, after), row, row_of(after))
        return Verdict(200, *_kept(desk, who, row, row_of(after) | {"since_seq": number}))

    return Act(who, now_ns, decide, wants_rules(who.tenant_id))


def _kept(desk: Desk, who: Principal, row: Row, values: Row) -> tuple[Row, list[Draft], list[Write]]:
    """The answer, no further event, and the write; later acts of this batch find the row changed."""
    values = {name: value for name, value in values.items() if name not in ("tenant_id", "rule_id")}
    values |= {"updated_ns": desk.now_ns, "updated_by": who.entity_id}
    row |= values
    where = {"tenant_id": who.tenant_id, "rule_id": row["rule_id"]}
    return dict(row), [], [Write("alert_rules", values, where)]


def remove(who: Principal, purpose: Purpose, rule_id: str, now_ns: int) -> Act:
    def decide(desk: Desk) -> Verdict:
        row = _find(desk, who, purpose, rule_id)
        if row is None:
            return unknown(purpose)
        gone = {"removed_ns": desk.now_ns}
        _append(desk, who, _told(desk, who, "removed", rule_of(row), None), row, gone)
        _, _, writes = _kept(desk, who, row, gone)
        return Verdict(200, {"rule_id": rule_id, "removed": True}, [], writes)

    return Act(who, now_ns, decide, wants_rules(who.tenant_id))


def mute(who: Principal, purpose: Purpose, rule_id: str, until_ns: int, now_ns: int) -> Act:
    """Until then it is judged and shown, and nobody outside is told. A time that is over unmutes it."""

    def decide(desk: Desk) -> Verdict:
        row = _find(desk, who, purpose, rule_id)
        if row is None:
            return unknown(purpose)
        before = rule_of(row)
        wanted = until_ns if until_ns > desk.now_ns else 0
        if wanted == 0 and not before.is_muted(desk.now_ns):
            return Verdict(200, row)
        after = msgspec.structs.replace(before, muted_until_ns=wanted)
        values, word = {"muted_until_ns": wanted}, "muted" if wanted else "unmuted"
        _append(desk, who, _told(desk, who, word, before, after), row, values)
        return Verdict(200, *_kept(desk, who, row, values))

    return Act(who, now_ns, decide, wants_rules(who.tenant_id))


def _widened(rules: list[Row], endpoint_ids: tuple[str, ...]) -> Iterator[tuple[Row, AlertRule]]:
    """Rules of the offered set that are not sent to all of these endpoints yet, each as it would be."""
    offered = {(one.name, one.condition) for one in DEFAULTS}
    for row in rules:
        if row["purpose"] == "alert" and (row["name"], row["condition"]) in offered:
            before = rule_of(row)
            endpoints = tuple(dict.fromkeys((*before.endpoint_ids, *endpoint_ids)))
            if endpoints != before.endpoint_ids:
                yield row, msgspec.structs.replace(before, endpoint_ids=endpoints)


def add_defaults(who: Principal, endpoint_ids: tuple[str, ...], now_ns: int) -> Act:
    """The offered set; a rule of it that is there is sent to these endpoints too, what else watches stays."""

    def decide(desk: Desk) -> Verdict:
        rules = rules_at(desk, who.tenant_id)
        watched = {row["condition"] for row in rules if row["purpose"] == "alert"}
        names = {row["name"] for row in rules if row["purpose"] == "alert"}
        wanted = [one for one in DEFAULTS if one.condition not in watched and one.name not in names]
        if len(rules) + len(wanted) > MOST_RULES:
            detail = f"a tenant has at most {MOST_RULES} alert rules and scaling triggers"
            return Verdict(409, Refused(reason="too_many_rules", detail=detail))
        made, writes = [], []
        for row, after in list(_widened(rules, endpoint_ids)):
            desk.append(_told(desk, who, "changed", rule_of(row), after))
            changed, _, changes = _kept(desk, who, row, row_of(after))
            made.append(changed)
            writes += changes
        for one in wanted:
            kind = KINDS[one.condition]
            rule = AlertRule(
                rule_id=mint(PREFIXES["alert"], desk.now_ns),
                purpose="alert",
                name=one.name,
                condition=one.condition,
                scope=kind.scopes[0],
                target=None,
                compare="above",
                threshold=one.threshold,
                window_s=kind.window_s,
                for_s=one.for_s,
                cooldown_s=300,
                severity=kind.severity,
                direction=None,
                amount=None,
                endpoint_ids=endpoint_ids,
                enabled=True,
                muted_until_ns=0,
                since_seq=0,
            )
            row, write = _made(desk, who, rule)
            made.append(row)
            writes.append(write)
        return Verdict(201 if made else 200, made, [], writes)

    return Act(who, now_ns, decide, wants_rules(who.tenant_id))
