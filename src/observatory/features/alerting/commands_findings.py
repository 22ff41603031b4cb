"""Commands that record what the evaluator found: alerts raised and resolved, triggers, and its read position.

Invariants: findings are checked again under the tenant's lock, against the rule and the state stored there,
so any number of evaluators may run: what one recorded, the others find recorded. The cursor past judged
events only grows and is written in the same transaction as the findings, so each event counts once, also
after a restart. Moving only the cursor writes no event: that event would have to be judged in turn, forever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from observatory.features.alerting.commands import active_rules, rule_from_row, rule_not_found, rules_read_set
from observatory.features.alerting.state import AlertState, next_state
from observatory.features.alerting.types_rules import KINDS, AlertRule, Purpose, decimal_text
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, EventDraft, Principal, SubmissionResult, UnitOfWork
from observatory.protocol.clock import from_ns
from observatory.protocol.events import INFO, alert_severity

CURSOR = "alert_cursor"
Reason = Literal["recovered", "rule_changed"]
Row = dict[str, Any]


class AlertFinding(NamedTuple):
    """What a rule found for one subject. `by_seq`: the event that caused it, if there was one."""

    rule: AlertRule
    subject: str
    move: Literal["raise", "resolve"]
    value: float
    at_ns: int
    since_ns: int
    link: str
    by_seq: int | None = None
    figures: Mapping[str, str] = {}
    reason: Reason = "recovered"


def state_key(rule_id: str, subject: str) -> str:
    return f"{rule_id}/{subject}"


def alert_state_of(row: Row) -> AlertState:
    state: Literal["firing", "ok"] = "firing" if row["state"] == "firing" else "ok"
    return AlertState(
        state, row["fired_ns"] if state == "firing" else 0, row["told_ns"], bool(row["is_told"])
    )


def record_findings(who: Principal, found: Sequence[AlertFinding], cursor: int, now_ns: int) -> Command:
    """Record the findings that still apply and move the cursor; returns the indexes of those recorded."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        knob = uow.memory.rows.setdefault("knobs", {}).get(CURSOR)
        done = 0 if knob is None else int(knob["value"])
        rules = {row["rule_id"]: rule_from_row(row) for row in active_rules(uow, who.tenant_id)}
        states = uow.memory.rows.setdefault("alert_states", {})
        recorded: list[int] = []
        writes: list[RowWrite] = []
        for place, one in enumerate(found):
            if one.by_seq is not None and one.by_seq <= done:
                continue  # another evaluator has judged it
            key = state_key(one.rule.rule_id, one.subject)
            row = _after(uow, who, rules.get(one.rule.rule_id), one, states.get(key), max(cursor, done))
            if row is not None:
                states[key] = row
                writes.append(RowWrite("alert_states", row, key=("tenant_id", "state_key")))
                recorded.append(place)
        if cursor > done:
            writes.append(_cursor_write(uow, who, cursor))
        return SubmissionResult(200, recorded, writes=writes)

    read_set = rules_read_set(who.tenant_id)
    read_set.row("knobs", CURSOR)
    for one in found:
        read_set.row("alert_states", state_key(one.rule.rule_id, one.subject))
    return Command(who, now_ns, decide, read_set)


def _cursor_write(uow: UnitOfWork, who: Principal, cursor: int) -> RowWrite:
    values = {
        "tenant_id": who.tenant_id,
        "name": CURSOR,
        "value": str(cursor),
        "updated_ns": uow.now_ns,
        "updated_by": who.entity_id,
    }
    uow.memory.rows["knobs"][CURSOR] = values
    return RowWrite("knobs", values, key=("tenant_id", "name"))


def _after(
    uow: UnitOfWork, who: Principal, rule: AlertRule | None, one: AlertFinding, row: Row | None, cursor: int
) -> Row | None:
    """The state row after this finding; None when there is nothing to record."""
    is_same = rule is not None and rule.enabled and rule.since_seq == one.rule.since_seq
    was = AlertState() if row is None else alert_state_of(row)
    if one.move == "resolve":
        if row is None or was.state != "firing":
            return None
        number = 0
        if one.rule.purpose == "alert":
            muted = (rule or one.rule).is_muted(one.at_ns)
            number = uow.append(_resolved(uow, who, one, row, muted))
        return row | {
            "state": "ok",
            "value": decimal_text(one.value),
            "resolved_ns": uow.now_ns,
            "resolved_seq": number or None,
            "cleared_seq": max(cursor, number),
            "updated_ns": uow.now_ns,
            "is_told": 1,
        }
    if rule is None or not is_same:
        return None
    if was.state != "firing":
        was = was._replace(state="pending", since_ns=one.since_ns)
    now, move = next_state(rule, was, True, one.at_ns)
    if move != "raise":
        return None
    number = uow.append(_raised(uow, who, rule, one))
    began = row is None or row["state"] != "firing"
    return {
        "tenant_id": who.tenant_id,
        "state_key": state_key(rule.rule_id, one.subject),
        "rule_id": rule.rule_id,
        "subject": one.subject,
        "state": "firing",
        "value": decimal_text(one.value),
        "link": one.link,
        "times": 1 if row is None else row["times"] + 1,
        "fired_ns": now.since_ns if began or row is None else row["fired_ns"],
        "told_ns": now.last_raised_ns,
        "is_told": int(now.is_notified),
        "raised_seq": number,
        "resolved_ns": None,
        "resolved_seq": None,
        "cleared_seq": 0 if row is None else row["cleared_seq"],
        "updated_ns": uow.now_ns,
    }


def alert_detail(rule: AlertRule, subject: str, value: float, link: str) -> Row:
    """The alert's details, the same everywhere. Names and numbers, never payload text."""
    kind = KINDS[rule.condition]
    return {
        "rule_id": rule.rule_id,
        "name": rule.name,
        "condition": rule.condition,
        "subject": subject,
        "value": decimal_text(value),
        "compare": rule.compare,
        "threshold": decimal_text(rule.threshold),
        "unit": kind.unit,
        "window_s": None if kind.is_level else rule.window_s,
        "severity": rule.severity,
        "link": link,
    }


def alert_summary(rule: AlertRule, subject: str, value: float) -> str:
    kind = KINDS[rule.condition]
    within = "" if kind.is_level else f" within {rule.window_s} s"
    unit = f" {kind.unit}" if kind.unit else ""
    whose = "" if subject == "tenant" else f"{subject.replace(':', ' ', 1)}: "
    limit = decimal_text(rule.threshold)
    threshold = f"threshold: {limit} or {'above' if rule.compare == 'above' else 'below'}"
    return f"{rule.name}: {whose}{decimal_text(value)}{unit}{within}, {threshold}"


def _raised(uow: UnitOfWork, who: Principal, rule: AlertRule, one: AlertFinding) -> EventDraft:
    muted = rule.is_muted(one.at_ns)
    detail = alert_detail(rule, one.subject, one.value, one.link) | {
        "since": from_ns(one.since_ns),
        "figures": dict(one.figures),
        "cause_sequence_number": one.by_seq,
        "muted": muted,
        "test": False,
        "endpoint_ids": [] if muted else list(rule.endpoint_ids),
    }
    event_type = "alert_raised"
    if rule.purpose == "scaling":
        event_type = "scaling_triggered"
        detail |= {"direction": rule.direction, "amount": rule.amount}
    summary = alert_summary(rule, one.subject, one.value)
    if rule.purpose == "scaling":
        summary += f"; {rule.direction} by {rule.amount}"
    severity = alert_severity(rule.severity)
    return gateway_event(who.tenant_id, event_type, summary, uow.now_ns, who, detail, severity)


def _resolved(uow: UnitOfWork, who: Principal, one: AlertFinding, row: Row, muted: bool) -> EventDraft:
    rule, recorded = one.rule, row["is_told"] and one.reason == "recovered" and not muted
    detail = alert_detail(rule, one.subject, one.value, one.link) | {
        "since": from_ns(row["fired_ns"]),
        "raised_sequence_number": row["raised_seq"],
        "reason": one.reason,
        "test": False,
        # No resolve notification without a raise notification, and none while muted.
        "endpoint_ids": list(rule.endpoint_ids) if recorded else [],
    }
    why = "" if one.reason == "recovered" else ", because its rule was changed or removed"
    summary = f"{rule.name}: {one.subject.replace(':', ' ', 1)} is resolved{why}"
    return gateway_event(who.tenant_id, "alert_resolved", summary, uow.now_ns, who, detail, INFO)


def test(who: Principal, rule_id: str, purpose: Purpose, link: str, now_ns: int) -> Command:
    """Record a test alert, marked as one; returns its number and the endpoints to notify."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        for row in active_rules(uow, who.tenant_id):
            if (row["rule_id"], row["purpose"]) == (rule_id, purpose):
                rule = rule_from_row(row)
                break
        else:
            return rule_not_found(purpose)
        detail = alert_detail(rule, "test", rule.threshold, link)
        detail |= {"test": True, "endpoint_ids": list(rule.endpoint_ids)}
        summary = f"{rule.name}: test sent by {who.entity_id}; nothing is firing"
        number = uow.append(gateway_event(who.tenant_id, "alert_tested", summary, uow.now_ns, who, detail))
        return SubmissionResult(200, (number, rule.endpoint_ids))

    return Command(who, now_ns, decide, rules_read_set(who.tenant_id))
