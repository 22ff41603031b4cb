"""Commands on alert rules and scaling triggers: create, change, mute, remove, add defaults. Each is audited.

Invariants: a rule counts from the event that created or last changed it, never earlier events. A name is
unique among the rules of its purpose. Nothing is deleted: a removed rule stops watching, and the evaluator
resolves what it had open. Endpoints are named by id only: no audit event contains whom they reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from observatory.features.alerting.types_rules import DEFAULTS, KINDS, AlertRule, Purpose, decimal_text
from observatory.pipeline import row_statements as stating
from observatory.pipeline.concurrency import conflict_if_stale
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, EventDraft, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import mint
from observatory.protocol.responses import Refused

MAX_RULES = 200  # of a tenant, both purposes together
PREFIXES: dict[Purpose, str] = {"alert": "alr_", "scaling": "scl_"}
Row = dict[str, Any]
_ids = msgspec.json.Decoder(tuple[str, ...]).decode


def rule_from_row(row: Row) -> AlertRule:
    """The rule as the evaluator reads it, from its stored row."""
    fields = {name: row[name] for name in AlertRule.__struct_fields__ if name in row}
    fields |= {"endpoint_ids": _ids(row["endpoint_ids"]), "enabled": bool(row["enabled"])}
    return AlertRule(**fields)


def rule_to_row(rule: AlertRule) -> Row:
    """The columns of a rule's row."""
    row = msgspec.structs.asdict(rule)
    return row | {
        "endpoint_ids": msgspec.json.encode(rule.endpoint_ids).decode(),
        "enabled": int(rule.enabled),
        "threshold": float(rule.threshold),
    }


def rule_detail(rule: AlertRule) -> Row:
    """A rule as events and responses show it; numbers are decimal text."""
    names = ("rule_id", "purpose", "name", "condition", "scope", "target", "compare")
    detail: Row = {name: getattr(rule, name) for name in names}
    detail |= {"threshold": decimal_text(rule.threshold), "severity": rule.severity, "enabled": rule.enabled}
    detail |= {name: getattr(rule, name) for name in ("window_s", "for_s", "cooldown_s")}
    if rule.purpose == "scaling":
        detail |= {"direction": rule.direction, "amount": rule.amount}
    return detail | {"endpoint_ids": list(rule.endpoint_ids)}


def rules_read_set(tenant_id: str) -> ReadSet:
    read_set = ReadSet()
    read_set.row("alert_rules", tenant_id)
    return read_set


def active_rules(uow: UnitOfWork, tenant_id: str) -> list[Row]:
    """The rules that are not removed, read under the lock."""
    rows = uow.memory.rows.setdefault("alert_rules", {})
    return [row for (owner, _), row in rows.items() if owner == tenant_id and row["removed_ns"] is None]


def _find(uow: UnitOfWork, who: Principal, purpose: Purpose, rule_id: str) -> Row | None:
    for row in active_rules(uow, who.tenant_id):
        if row["rule_id"] == rule_id and row["purpose"] == purpose:
            return row
    return None


def rule_not_found(purpose: Purpose) -> SubmissionResult:
    what = "alert rule" if purpose == "alert" else "scaling trigger"
    return SubmissionResult(404, Refused(reason="not_found", detail=f"no {what} of this tenant has that id"))


def _name_conflict(rules: list[Row], rule: AlertRule) -> SubmissionResult | None:
    for row in rules:
        if row["rule_id"] != rule.rule_id and (row["purpose"], row["name"]) == (rule.purpose, rule.name):
            return SubmissionResult(
                409, Refused(reason="name_taken", detail="a rule with that name already exists")
            )
    return None


def add(who: Principal, rule: AlertRule, now_ns: int) -> Command:
    """Create a rule. `rule` was checked by `problem_of`; its `since_seq` is set here."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        rules = active_rules(uow, who.tenant_id)
        refused = _name_conflict(rules, rule)
        if refused is not None:
            return refused
        if len(rules) >= MAX_RULES:
            detail = f"a tenant has at most {MAX_RULES} alert rules and scaling triggers"
            return SubmissionResult(409, Refused(reason="too_many_rules", detail=detail))
        row, write = _insert(uow, who, rule)
        return SubmissionResult(201, row, writes=[write])

    return Command(who, now_ns, decide, rules_read_set(who.tenant_id))


def _insert(uow: UnitOfWork, who: Principal, rule: AlertRule) -> tuple[Row, RowWrite]:
    row = rule_to_row(rule) | {
        "tenant_id": who.tenant_id,
        "since_seq": 0,
        "created_ns": uow.now_ns,
        "created_by": who.entity_id,
        "updated_ns": uow.now_ns,
        "updated_by": who.entity_id,
        "removed_ns": None,
    }
    row["since_seq"] = _append(uow, who, _change_event(uow, who, "created", None, rule), row, {})
    uow.memory.rows.setdefault("alert_rules", {})[who.tenant_id, rule.rule_id] = row
    return row, RowWrite("alert_rules", row)


def _append(uow: UnitOfWork, who: Principal, event: EventDraft, row: Row, values: Row) -> int:
    """Append the event with the row as it is after it; returns the event's number."""
    now = row | values | {"updated_ns": uow.now_ns, "updated_by": who.entity_id}
    stating.attach_rows(event, [stating.stated_row("alert_rules", now)])
    return uow.append(event)


def _change_event(
    uow: UnitOfWork, who: Principal, change: str, before: AlertRule | None, after: AlertRule | None
) -> EventDraft:
    rule = after or before
    assert rule is not None
    detail = {
        "change": change,
        "rule_id": rule.rule_id,
        "purpose": rule.purpose,
        "before": None if before is None else rule_detail(before),
        "after": None if after is None else rule_detail(after),
        "muted_until": from_ns(rule.muted_until_ns) if change == "muted" else None,
    }
    what = "alert rule" if rule.purpose == "alert" else "scaling trigger"
    summary = f"{what} {rule.name} {change} by {who.entity_id}"
    return gateway_event(who.tenant_id, "alert_rule_changed", summary, uow.now_ns, who, detail)


def change(who: Principal, rule: AlertRule, now_ns: int, was: str | None = None) -> Command:
    """Replace the whole rule under its id. Earlier events no longer count for it. `was`: see `stale`."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = _find(uow, who, rule.purpose, rule.rule_id)
        if row is None:
            return rule_not_found(rule.purpose)
        refused = conflict_if_stale(was, row["updated_ns"]) or _name_conflict(
            active_rules(uow, who.tenant_id), rule
        )
        if refused is not None:
            return refused
        before = rule_from_row(row)
        after = msgspec.structs.replace(
            rule, since_seq=before.since_seq, muted_until_ns=before.muted_until_ns
        )
        if after == before:
            return SubmissionResult(200, row)
        number = _append(uow, who, _change_event(uow, who, "changed", before, after), row, rule_to_row(after))
        return SubmissionResult(200, *_update(uow, who, row, rule_to_row(after) | {"since_seq": number}))

    return Command(who, now_ns, decide, rules_read_set(who.tenant_id))


def _update(
    uow: UnitOfWork, who: Principal, row: Row, values: Row
) -> tuple[Row, list[EventDraft], list[RowWrite]]:
    """The response, no further event, and the write; later commands of this batch see the changed row."""
    values = {name: value for name, value in values.items() if name not in ("tenant_id", "rule_id")}
    values |= {"updated_ns": uow.now_ns, "updated_by": who.entity_id}
    row |= values
    where = {"tenant_id": who.tenant_id, "rule_id": row["rule_id"]}
    return dict(row), [], [RowWrite("alert_rules", values, where)]


def remove(who: Principal, purpose: Purpose, rule_id: str, now_ns: int) -> Command:
    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = _find(uow, who, purpose, rule_id)
        if row is None:
            return rule_not_found(purpose)
        gone = {"removed_ns": uow.now_ns}
        _append(uow, who, _change_event(uow, who, "removed", rule_from_row(row), None), row, gone)
        _, _, writes = _update(uow, who, row, gone)
        return SubmissionResult(200, {"rule_id": rule_id, "removed": True}, [], writes)

    return Command(who, now_ns, decide, rules_read_set(who.tenant_id))


def mute(who: Principal, purpose: Purpose, rule_id: str, until_ns: int, now_ns: int) -> Command:
    """Until then the rule is evaluated and shown, but sends no notifications. A time in the past unmutes
    it."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = _find(uow, who, purpose, rule_id)
        if row is None:
            return rule_not_found(purpose)
        before = rule_from_row(row)
        muted_until_ns = until_ns if until_ns > uow.now_ns else 0
        if muted_until_ns == 0 and not before.is_muted(uow.now_ns):
            return SubmissionResult(200, row)
        after = msgspec.structs.replace(before, muted_until_ns=muted_until_ns)
        values, word = {"muted_until_ns": muted_until_ns}, "muted" if muted_until_ns else "unmuted"
        _append(uow, who, _change_event(uow, who, word, before, after), row, values)
        return SubmissionResult(200, *_update(uow, who, row, values))

    return Command(who, now_ns, decide, rules_read_set(who.tenant_id))


def _widened(rules: list[Row], endpoint_ids: tuple[str, ...]) -> Iterator[tuple[Row, AlertRule]]:
    """Default rules that do not notify all of these endpoints yet, each as it would become."""
    offered = {(name, one.condition) for one in DEFAULTS for name in (one.name, one.former_name)}
    for row in rules:
        if row["purpose"] == "alert" and (row["name"], row["condition"]) in offered:
            before = rule_from_row(row)
            endpoints = tuple(dict.fromkeys((*before.endpoint_ids, *endpoint_ids)))
            if endpoints != before.endpoint_ids:
                yield row, msgspec.structs.replace(before, endpoint_ids=endpoints)


def add_defaults(who: Principal, endpoint_ids: tuple[str, ...], now_ns: int) -> Command:
    """Create the default rules. An existing one also notifies these endpoints; watched conditions are
    skipped."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        rules = active_rules(uow, who.tenant_id)
        watched = {row["condition"] for row in rules if row["purpose"] == "alert"}
        names = {row["name"] for row in rules if row["purpose"] == "alert"}
        missing = [one for one in DEFAULTS if one.condition not in watched and one.name not in names]
        if len(rules) + len(missing) > MAX_RULES:
            detail = f"a tenant has at most {MAX_RULES} alert rules and scaling triggers"
            return SubmissionResult(409, Refused(reason="too_many_rules", detail=detail))
        made, writes = [], []
        for row, after in list(_widened(rules, endpoint_ids)):
            uow.append(_change_event(uow, who, "changed", rule_from_row(row), after))
            changed, _, changes = _update(uow, who, row, rule_to_row(after))
            made.append(changed)
            writes += changes
        for one in missing:
            kind = KINDS[one.condition]
            rule = AlertRule(
                rule_id=mint(PREFIXES["alert"], uow.now_ns),
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
            row, write = _insert(uow, who, rule)
            made.append(row)
            writes.append(write)
        return SubmissionResult(201 if made else 200, made, [], writes)

    return Command(who, now_ns, decide, rules_read_set(who.tenant_id))
