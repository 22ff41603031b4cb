"""Commands that create, change and remove policy rules and budgets, audited with before and after.

Law: a change is effective for the very next message, even in the same batch. A rule that would leave no agent
able to send a step is refused until it is confirmed. Nothing is deleted: what is removed no longer applies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.policy import allows_no_step, denies_every_step
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, Principal, SubmissionResult, UnitOfWork
from observatory.protocol.responses import Refused
from observatory.protocol.tenant_config import PolicyRule

MAX_RULES = MAX_BUDGETS = 500


def create_rule(principal: Principal, rule: PolicyRule, confirm: bool, now_ns: int) -> Command:
    """`rule.position` is its place, 1 being first; 0 or beyond the end means last."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        rules = list(uow.memory.tenant_config.policies)
        if len(rules) >= MAX_RULES:
            detail = f"a tenant has at most {MAX_RULES} rules"
            return SubmissionResult(409, Refused(reason="too_many_rules", detail=detail))
        rules.insert(rule.position - 1 if 1 <= rule.position <= len(rules) else len(rules), rule)
        return _change(uow, principal, "created", rules, rule.rule_id, confirm, 201)

    return Command(principal, now_ns, decide)


def replace_rule(
    principal: Principal, rule: PolicyRule, confirm: bool, now_ns: int, was: PolicyRule | None = None
) -> Command:
    """Replaces the whole rule under its id; its place stays. `was`: the expected old rule, place ignored."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        now = next((one for one in uow.memory.tenant_config.policies if one.rule_id == rule.rule_id), None)
        if was is not None and now is not None and msgspec.structs.replace(now, position=was.position) != was:
            detail = "this rule was changed meanwhile; reload it, then save yours"
            return SubmissionResult(409, Refused(reason="stale_rule", detail=detail, rule_id=rule.rule_id))
        rules = [rule if one.rule_id == rule.rule_id else one for one in uow.memory.tenant_config.policies]
        return (
            _change(uow, principal, "changed", rules, rule.rule_id, confirm) if rule in rules else _unknown()
        )

    return Command(principal, now_ns, decide)


def remove_rule(principal: Principal, rule_id: str, confirm: bool, now_ns: int) -> Command:
    def decide(uow: UnitOfWork) -> SubmissionResult:
        before = uow.memory.tenant_config.policies
        rules = [one for one in before if one.rule_id != rule_id]
        if len(rules) == len(before):
            return _unknown()
        return _change(uow, principal, "removed", rules, rule_id, confirm)

    return Command(principal, now_ns, decide)


def order_rules(
    principal: Principal, rule_ids: Sequence[str], now_ns: int, was: Sequence[str] | None = None
) -> Command:
    """Sets the order of all rules. A list that is not complete was made from outdated rules.

    `was` is the order it was made from: 409 if the order has changed since.
    """

    def decide(uow: UnitOfWork) -> SubmissionResult:
        known = {rule.rule_id: rule for rule in uow.memory.tenant_config.policies}
        if was is not None and list(was) != list(known):
            detail = "the order was changed meanwhile; reload it, then save yours"
            return SubmissionResult(409, Refused(reason="stale_order", detail=detail))
        if sorted(known) != sorted(rule_ids):
            detail = "the order must name every rule exactly once; read GET /v1/policies again"
            return SubmissionResult(409, Refused(reason="stale_order", detail=detail))
        return _change(uow, principal, "ordered", [known[one] for one in rule_ids], None, True)

    return Command(principal, now_ns, decide)


def _unknown() -> SubmissionResult:
    return SubmissionResult(404, Refused(reason="not_found", detail="no rule of this tenant has that id"))


def _change(
    uow: UnitOfWork,
    principal: Principal,
    change: str,
    rules: Sequence[PolicyRule],
    rule_id: str | None,
    confirm: bool,
    code: int = 200,
) -> SubmissionResult:
    memory = uow.memory
    before = memory.tenant_config.policies
    old = {rule.rule_id: rule for rule in before}
    after = [msgspec.structs.replace(rule, position=place) for place, rule in enumerate(rules, 1)]
    new = {rule.rule_id: rule for rule in after}
    shut = rule_id in new and denies_every_step(new[rule_id])
    if not confirm and (shut or (allows_no_step(after) and not allows_no_step(before))):
        reason = "with this change no agent could send a step any more; to proceed, send confirm: true"
        return SubmissionResult(409, Refused(reason="locks_everyone_out", detail=reason, rule_id=rule_id))
    writes = [_write(principal, rule, old, uow.now_ns) for rule in after if old.get(rule.rule_id) != rule]
    gone = {"removed_ns": uow.now_ns, "updated_ns": uow.now_ns, "updated_by": principal.entity_id}
    writes += [RowWrite("policies", gone, _key(principal, one)) for one in old if one not in new]
    memory.tenant_config = msgspec.structs.replace(memory.tenant_config, policies=tuple(after))
    memory.tenant.rulebook_version += 1
    if rule_id is None:
        detail: dict[str, Any] = {"before": list(old), "after": list(new)}
    else:
        detail = {"rule_id": rule_id, "before": _plain(old.get(rule_id)), "after": _plain(new.get(rule_id))}
    summary = f"policy {rule_id or 'rules'} {change}"
    event = gateway_event(
        principal.tenant_id, "policy_changed", summary, uow.now_ns, principal, {"change": change, **detail}
    )
    return SubmissionResult(code, {"rule_id": rule_id}, [event], writes)


def _plain(rule: PolicyRule | None) -> dict[str, Any] | None:
    return None if rule is None else msgspec.to_builtins(rule)


def _key(principal: Principal, rule_id: str) -> dict[str, Any]:
    return {"tenant_id": principal.tenant_id, "rule_id": rule_id}


def _write(principal: Principal, rule: PolicyRule, old: dict[str, PolicyRule], now_ns: int) -> RowWrite:
    values: dict[str, Any] = {
        "position": rule.position,
        "effect": rule.effect,
        "matches": msgspec.json.encode(rule.match).decode(),
        "quorum": rule.quorum,
        "deadline_s": rule.deadline_s,
        "on_expiry": rule.on_expiry,
        "note": rule.note,
        "enabled": int(rule.enabled),
    }
    key = _key(principal, rule.rule_id)
    was = old.get(rule.rule_id)
    if was is not None and msgspec.structs.replace(was, position=rule.position) == rule:
        return RowWrite("policies", {"position": rule.position}, key)  # only moved: its author is unchanged
    changed = {"updated_ns": now_ns, "updated_by": principal.entity_id}
    if was is not None:
        return RowWrite("policies", values | changed, key)
    return RowWrite("policies", key | values | {"created_ns": now_ns} | changed)
