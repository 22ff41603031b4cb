"""How policies and budgets are made, changed and ended: acts of operators, audited with before and after.

Law: a change counts for the very next message, behind it in the same batch already. A rule that would leave
no agent a step is refused until it is confirmed. Nothing is deleted: what is removed rules no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from observatory.features.budgets.stage import caps_of, name_of, tally_of
from observatory.features.policies.stage import locks_out, shuts_out
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Memory, Principal, Verdict, Wants
from observatory.protocol.answers import Refused
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.rulebook import Budget, PolicyRule

MAX_RULES = MAX_BUDGETS = 500


def create_rule(who: Principal, rule: PolicyRule, confirm: bool, now_ns: int) -> Act:
    """`rule.position` is where it comes to stand, 1 being first; 0 or beyond the end means last."""

    def decide(desk: Desk) -> Verdict:
        rules = list(desk.memory.rulebook.policies)
        if len(rules) >= MAX_RULES:
            detail = f"a tenant has at most {MAX_RULES} rules"
            return Verdict(409, Refused(reason="too_many_rules", detail=detail))
        rules.insert(rule.position - 1 if 1 <= rule.position <= len(rules) else len(rules), rule)
        return _change(desk, who, "created", rules, rule.rule_id, confirm, 201)

    return Act(who, now_ns, decide)


def replace_rule(
    who: Principal, rule: PolicyRule, confirm: bool, now_ns: int, was: PolicyRule | None = None
) -> Act:
    """The whole rule anew under its id; its place stays. `was`: what it must have been, but for its place."""

    def decide(desk: Desk) -> Verdict:
        now = next((one for one in desk.memory.rulebook.policies if one.rule_id == rule.rule_id), None)
        if was is not None and now is not None and msgspec.structs.replace(now, position=was.position) != was:
            detail = "somebody changed this rule meanwhile; look at it again, then save yours"
            return Verdict(409, Refused(reason="stale_rule", detail=detail, rule_id=rule.rule_id))
        rules = [rule if one.rule_id == rule.rule_id else one for one in desk.memory.rulebook.policies]
        return _change(desk, who, "changed", rules, rule.rule_id, confirm) if rule in rules else _unknown()

    return Act(who, now_ns, decide)


def remove_rule(who: Principal, rule_id: str, confirm: bool, now_ns: int) -> Act:
    def decide(desk: Desk) -> Verdict:
        before = desk.memory.rulebook.policies
        rules = [one for one in before if one.rule_id != rule_id]
        if len(rules) == len(before):
            return _unknown()
        return _change(desk, who, "removed", rules, rule_id, confirm)

    return Act(who, now_ns, decide)


def order_rules(
    who: Principal, rule_ids: Sequence[str], now_ns: int, was: Sequence[str] | None = None
) -> Act:
    """The whole list in its new order; one that is not the whole list was made from an old one.

    `was` is the order it was made from: 409 when it is another by now.
    """

    def decide(desk: Desk) -> Verdict:
        known = {rule.rule_id: rule for rule in desk.memory.rulebook.policies}
        if was is not None and list(was) != list(known):
            detail = "somebody changed the order meanwhile; look at it again, then save yours"
            return Verdict(409, Refused(reason="stale_order", detail=detail))
        if sorted(known) != sorted(rule_ids):
            detail = "the order names each rule once, and all of them; read GET /v1/policies again"
            return Verdict(409, Refused(reason="stale_order", detail=detail))
        return _change(desk, who, "ordered", [known[one] for one in rule_ids], None, True)

    return Act(who, now_ns, decide)


def _unknown() -> Verdict:
    return Verdict(404, Refused(reason="not_found", detail="no rule of this tenant has that id"))


def _change(
    desk: Desk,
    who: Principal,
    change: str,
    wanted: Sequence[PolicyRule],
    rule_id: str | None,
    confirm: bool,
    code: int = 200,
) -> Verdict:
    memory = desk.memory
    before = memory.rulebook.policies
    old = {rule.rule_id: rule for rule in before}
    after = [msgspec.structs.replace(rule, position=place) for place, rule in enumerate(wanted, 1)]
    new = {rule.rule_id: rule for rule in after}
    shut = rule_id in new and shuts_out(new[rule_id])
    if not confirm and (shut or (locks_out(after) and not locks_out(before))):
        detail = "with this change no agent could send a step any more; send confirm: true if you mean it"
        return Verdict(409, Refused(reason="locks_everyone_out", detail=detail, rule_id=rule_id))
    writes = [_write(who, rule, old, desk.now_ns) for rule in after if old.get(rule.rule_id) != rule]
    gone = {"removed_ns": desk.now_ns, "updated_ns": desk.now_ns, "updated_by": who.entity_id}
    writes += [Write("policies", gone, _key(who, one)) for one in old if one not in new]
    memory.rulebook = msgspec.structs.replace(memory.rulebook, policies=tuple(after))
    memory.tenant.rulebook_version += 1
    if rule_id is None:
        told: dict[str, Any] = {"before": list(old), "after": list(new)}
    else:
        told = {"rule_id": rule_id, "before": _told(old.get(rule_id)), "after": _told(new.get(rule_id))}
    summary = f"policy {rule_id or 'rules'} {change}"
    event = notice(who.tenant_id, "policy_changed", summary, desk.now_ns, who, {"change": change, **told})
    return Verdict(code, {"rule_id": rule_id}, [event], writes)


def _told(rule: PolicyRule | None) -> dict[str, Any] | None:
    return None if rule is None else msgspec.to_builtins(rule)


def _key(who: Principal, rule_id: str) -> dict[str, Any]:
    return {"tenant_id": who.tenant_id, "rule_id": rule_id}


def _write(who: Principal, rule: PolicyRule, old: dict[str, PolicyRule], now_ns: int) -> Write:
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
    key = _key(who, rule.rule_id)
    was = old.get(rule.rule_id)
    if was is not None and msgspec.structs.replace(was, position=rule.position) == rule:
        return Write("policies", {"position": rule.position}, key)  # only moved: its author stays
    changed = {"updated_ns": now_ns, "updated_by": who.entity_id}
    if was is not None:
        return Write("policies", values | changed, key)
    return Write("policies", key | values | {"created_ns": now_ns} | changed)


def set_budget(
    who: Principal, budget: Budget, now_ns: int, was: tuple[float | None, float | None] | None = None
) -> Act:
    """Make a budget, or give the one of this scope, target and period new caps; what is spent stays.

    A named session's or agent's budget without a period counts what was spent before it was set.
    `was` are the soft and hard cap its author saw, both None where there was no budget.
    """

    def decide(desk: Desk) -> Verdict:
        memory = desk.memory
        budgets = memory.rulebook.budgets
        old = next((one for one in budgets if _identity(one) == _identity(budget)), None)
        if was is not None and was != ((None, None) if old is None else (old.soft, old.hard)):
            detail = "somebody changed this budget meanwhile; look at it again, then save yours"
            return Verdict(409, Refused(reason="stale_budget", detail=detail))
        if old is None and len(budgets) >= MAX_BUDGETS:
            detail = f"a tenant has at most {MAX_BUDGETS} budgets"
            return Verdict(409, Refused(reason="too_many_budgets", detail=detail))
        caps = {"soft": budget.soft, "hard": budget.hard}
        stamp = {"updated_ns": desk.now_ns, "updated_by": who.entity_id}
        if old is None:
            key = {"tenant_id": who.tenant_id, "budget_id": budget.budget_id, "created_ns": desk.now_ns}
            kind = {"scope": budget.scope, "target": budget.target, "period": budget.period}
            writes = [Write("budgets", key | kind | caps | stamp), *_seed(budget, memory)]
            new = budget
        else:
            new = msgspec.structs.replace(budget, budget_id=old.budget_id)
            where = {"tenant_id": who.tenant_id, "budget_id": old.budget_id}
            writes = [Write("budgets", caps | stamp, where), *_rearm(old, new, memory)]
        return _ruled(desk, who, old, new, writes)

    wants = Wants()
    if budget.scope == "session" and budget.target != "*":
        wants.sessions.add(budget.target)
    if budget.scope == "agent" and budget.target != "*":
        wants.agents.add(agent_entity_id(who.tenant_id, budget.target))
    return Act(who, now_ns, decide, wants)


def remove_budget(who: Principal, budget_id: str, now_ns: int) -> Act:
    def decide(desk: Desk) -> Verdict:
        old = next((one for one in desk.memory.rulebook.budgets if one.budget_id == budget_id), None)
        if old is None:
            return Verdict(404, Refused(reason="not_found", detail="no budget of this tenant has that id"))
        where = {"tenant_id": who.tenant_id, "budget_id": budget_id}
        gone = {"removed_ns": desk.now_ns, "updated_ns": desk.now_ns, "updated_by": who.entity_id}
        return _ruled(desk, who, old, None, [Write("budgets", gone, where)])

    return Act(who, now_ns, decide)


def _identity(budget: Budget) -> tuple[str, str, str]:
    return budget.scope, budget.target, budget.period


def _seed(budget: Budget, memory: Memory) -> list[Write]:
    """What the named session or agent has spent already."""
    spent = 0.0
    if budget.period == "none" and budget.scope == "session" and budget.target in memory.sessions:
        spent = memory.sessions[budget.target].cost
    elif budget.period == "none" and budget.scope == "agent":
        agent = memory.agents.get(agent_entity_id(memory.tenant.tenant_id, budget.target))
        spent = agent.cost if agent is not None else 0.0
    if spent <= 0:
        return []
    tally, writes = tally_of(memory, budget.budget_id)
    tally["spent"] = round(spent, 9)
    return writes


def _rearm(old: Budget, new: Budget, memory: Memory) -> list[Write]:
    """A new soft cap warns anew."""
    row = memory.rows.get("spend", {}).get(old.budget_id)
    if old.soft == new.soft or row is None or row["soft_seq"] is None:
        return []
    tally, writes = tally_of(memory, old.budget_id)
    tally["soft_seq"] = None
    return writes


def _ruled(
    desk: Desk, who: Principal, old: Budget | None, new: Budget | None, writes: list[Write]
) -> Verdict:
    memory = desk.memory
    kept = [one for one in memory.rulebook.budgets if one is not old]
    budgets = tuple(kept if new is None else [*kept, new])
    memory.rulebook = msgspec.structs.replace(memory.rulebook, budgets=budgets)
    memory.tenant.rulebook_version += 1
    meant = new or old
    assert meant is not None
    detail = {
        "budget_id": meant.budget_id,
        "change": "removed" if new is None else "created" if old is None else "changed",
        "before": None if old is None else caps_of(old),
        "after": None if new is None else caps_of(new),
    }
    summary = f"budget {name_of(meant)} {detail['change']}"
    event = notice(who.tenant_id, "budget_set", summary, desk.now_ns, who, detail)
    return Verdict(200, {"budget_id": meant.budget_id}, [event], writes)
