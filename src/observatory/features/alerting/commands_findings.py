"""What the evaluator found becomes record: alerts raised and resolved, triggers, and how far it has read.

Laws: findings are looked at again under the tenant's lock, with the rule and the standing as they are there,
so any number of evaluators may run: what one has told the others find told. Events that were judged are left
behind by a cursor that only grows, written in the transaction of what came of them: each counts once, over a
restart too. To move the cursor alone is no event, it would have to be judged in its turn, for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from observatory.features.alerting.commands import rule_of, rules_at, unknown, wants_rules
from observatory.features.alerting.state import Standing, step
from observatory.features.alerting.types_rules import KINDS, AlertRule, Purpose, plain
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Draft, Principal, Verdict
from observatory.protocol.clock import from_ns
from observatory.protocol.events import INFO, alert_severity

CURSOR = "alert_cursor"
Reason = Literal["recovered", "rule_changed"]
Row = dict[str, Any]


class Found(NamedTuple):
    """A rule's word on one subject. `by_seq`: the event it was found by, if by one."""

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


def standing_of(row: Row) -> Standing:
    state: Literal["firing", "ok"] = "firing" if row["state"] == "firing" else "ok"
    return Standing(state, row["fired_ns"] if state == "firing" else 0, row["told_ns"], bool(row["is_told"]))


def judge(who: Principal, found: Sequence[Found], cursor: int, now_ns: int) -> Act:
    """Tell what still holds and move the cursor; answered with the places of what was told."""

    def decide(desk: Desk) -> Verdict:
        knob = desk.memory.rows.setdefault("knobs", {}).get(CURSOR)
        done = 0 if knob is None else int(knob["value"])
        rules = {row["rule_id"]: rule_of(row) for row in rules_at(desk, who.tenant_id)}
        states = desk.memory.rows.setdefault("alert_states", {})
        told: list[int] = []
        writes: list[Write] = []
        for place, one in enumerate(found):
            if one.by_seq is not None and one.by_seq <= done:
                continue  # somebody else has judged it
            key = state_key(one.rule.rule_id, one.subject)
            row = _after(desk, who, rules.get(one.rule.rule_id), one, states.get(key), max(cursor, done))
            if row is not None:
                states[key] = row
                writes.append(Write("alert_states", row, key=("tenant_id", "state_key")))
                told.append(place)
        if cursor > done:
            writes.append(_moved(desk, who, cursor))
        return Verdict(200, told, writes=writes)

    wants = wants_rules(who.tenant_id)
    wants.row("knobs", CURSOR)
    for one in found:
        wants.row("alert_states", state_key(one.rule.rule_id, one.subject))
    return Act(who, now_ns, decide, wants)


def _moved(desk: Desk, who: Principal, cursor: int) -> Write:
    values = {
        "tenant_id": who.tenant_id,
        "name": CURSOR,
        "value": str(cursor),
        "updated_ns": desk.now_ns,
        "updated_by": who.entity_id,
    }
    desk.memory.rows["knobs"][CURSOR] = values
    return Write("knobs", values, key=("tenant_id", "name"))


def _after(
    desk: Desk, who: Principal, rule: AlertRule | None, one: Found, row: Row | None, cursor: int
) -> Row | None:
    """The standing after this was told; None when there is nothing to tell."""
    is_same = rule is not None and rule.enabled and rule.since_seq == one.rule.since_seq
    was = Standing() if row is None else standing_of(row)
    if one.move == "resolve":
        if row is None or was.state != "firing":
            return None
        number = 0
        if one.rule.purpose == "alert":
            muted = (rule or one.rule).is_muted(one.at_ns)
            number = desk.append(_resolved(desk, who, one, row, muted))
        return row | {
            "state": "ok",
            "value": plain(one.value),
            "resolved_ns": desk.now_ns,
            "resolved_seq": number or None,
            "cleared_seq": max(cursor, number),
            "updated_ns": desk.now_ns,
            "is_told": 1,
        }
    if rule is None or not is_same:
        return None
    if was.state != "firing":
        was = was._replace(state="pending", since_ns=one.since_ns)
    now, move = step(rule, was, True, one.at_ns)
    if move != "raise":
        return None
    number = desk.append(_raised(desk, who, rule, one))
    began = row is None or row["state"] != "firing"
    return {
        "tenant_id": who.tenant_id,
        "state_key": state_key(rule.rule_id, one.subject),
        "rule_id": rule.rule_id,
        "subject": one.subject,
        "state": "firing",
        "value": plain(one.value),
        "link": one.link,
        "times": 1 if row is None else row["times"] + 1,
        "fired_ns": now.since_ns if began or row is None else row["fired_ns"],
        "told_ns": now.told_ns,
        "is_told": int(now.is_told),
        "raised_seq": number,
        "resolved_ns": None,
        "resolved_seq": None,
        "cleared_seq": 0 if row is None else row["cleared_seq"],
        "updated_ns": desk.now_ns,
    }


def detail_of(rule: AlertRule, subject: str, value: float, link: str) -> Row:
    """What an alert says of itself, wherever it is read. Names and figures, never a word of a payload."""
    kind = KINDS[rule.condition]
    return {
        "rule_id": rule.rule_id,
        "name": rule.name,
        "condition": rule.condition,
        "subject": subject,
        "value": plain(value),
        "compare": rule.compare,
        "threshold": plain(rule.threshold),
        "unit": kind.unit,
        "window_s": None if kind.is_level else rule.window_s,
        "severity": rule.severity,
        "link": link,
    }


def sentence(rule: AlertRule, subject: str, value: float) -> str:
    kind = KINDS[rule.condition]
    within = "" if kind.is_level else f" within {rule.window_s} s"
    unit = f" {kind.unit}" if kind.unit else ""
    whose = "" if subject == "tenant" else f"{subject.replace(':', ' ', 1)}: "
    limit = plain(rule.threshold)
    told = f"told from {limit} on" if rule.compare == "above" else f"told at {limit} and below"
    return f"{rule.name}: {whose}{plain(value)}{unit}{within}, {told}"


def _raised(desk: Desk, who: Principal, rule: AlertRule, one: Found) -> Draft:
    muted = rule.is_muted(one.at_ns)
    detail = detail_of(rule, one.subject, one.value, one.link) | {
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
    summary = sentence(rule, one.subject, one.value)
    if rule.purpose == "scaling":
        summary += f"; {rule.direction} by {rule.amount}"
    severity = alert_severity(rule.severity)
    return notice(who.tenant_id, event_type, summary, desk.now_ns, who, detail, severity)


def _resolved(desk: Desk, who: Principal, one: Found, row: Row, muted: bool) -> Draft:
    rule, told = one.rule, row["is_told"] and one.reason == "recovered" and not muted
    detail = detail_of(rule, one.subject, one.value, one.link) | {
        "since": from_ns(row["fired_ns"]),
        "raised_sequence_number": row["raised_seq"],
        "reason": one.reason,
        "test": False,
        # Who was not told of its beginning is not told of its end; nobody while it is muted.
        "endpoint_ids": list(rule.endpoint_ids) if told else [],
    }
    why = "" if one.reason == "recovered" else ", because its rule was changed or removed"
    summary = f"{rule.name}: {one.subject.replace(':', ' ', 1)} is resolved{why}"
    return notice(who.tenant_id, "alert_resolved", summary, desk.now_ns, who, detail, INFO)


def test(who: Principal, rule_id: str, purpose: Purpose, link: str, now_ns: int) -> Act:
    """A test alert is put on record, marked as one; answered with its number and whom it is for."""

    def decide(desk: Desk) -> Verdict:
        for row in rules_at(desk, who.tenant_id):
            if (row["rule_id"], row["purpose"]) == (rule_id, purpose):
                rule = rule_of(row)
                break
        else:
            return unknown(purpose)
        detail = detail_of(rule, "test", rule.threshold, link)
        detail |= {"test": True, "endpoint_ids": list(rule.endpoint_ids)}
        summary = f"{rule.name}: a test, sent by {who.entity_id}; nothing is amiss"
        number = desk.append(notice(who.tenant_id, "alert_tested", summary, desk.now_ns, who, detail))
        return Verdict(200, (number, rule.endpoint_ids))

    return Act(who, now_ns, decide, wants_rules(who.tenant_id))
