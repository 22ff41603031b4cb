"""The budget stage: enforces spending caps on messages (ruling 19). `features/policies` sets them.

Invariants: runs under the chain head's lock, so two senders never exceed a hard cap together. A message that
would exceed a hard cap is archived as refused, the refusal names the cap, and nothing is added. The first
message above a soft cap is held for a person, once per period. A message costs what it reports in
`state_delta.cost` or the growth of its cumulative figure, whichever is more; one that reports neither is not
checked. A named target has a row in `spend`; `*` gives each session or agent its own cap over its lifetime
spending. Days and months are UTC. Without budgets the cost is one test.
"""

from __future__ import annotations

from typing import Any

import msgspec

from observatory.features.budgets.types import DAY, current_spend, period_start
from observatory.pipeline.event_draft import of_message
from observatory.pipeline.matching import is_agent
from observatory.pipeline.message_context import ApprovalGate, MessageContext
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import BatchState, EventDraft, SubmissionResult
from observatory.pipeline.step_cost import MAX_AMOUNT, cost_of
from observatory.protocol.responses import Refused
from observatory.protocol.spelling import are_same_name
from observatory.protocol.tenant_config import Budget, Period


class SpendRow(dict[str, Any]):
    """A row of `spend` that a `Write` of this batch already carries: later messages update it in place."""


class BudgetCharge(msgspec.Struct, frozen=True, gc=False):
    """The effect of a message on one budget."""

    budget: Budget
    who: str  # the spender: with target `*` the session's or agent's name
    spent: float
    amount: float
    after: float
    period_ns: int
    is_new: bool  # beyond the soft cap for the first time in this period


def check(ctx: MessageContext, memory: BatchState, now_ns: int) -> SubmissionResult | None:
    """The stage: refuse or hold the message, and add its cost."""
    if not memory.tenant_config.budgets:
        return None
    log, member = ctx.message.log, ctx.member
    delta = log.state_delta if log is not None else None
    cost = None if delta is None or member is None else cost_of(delta, member.cost)
    if cost is None:
        return None
    charges = []
    for budget in memory.tenant_config.budgets:
        charge = _charge(budget, ctx, memory, cost, now_ns)
        if charge is not None:
            if budget.hard is not None and charge.after > budget.hard:
                return _exceeded(charge, budget.hard, ctx, now_ns)
            charges.append(charge)
    for charge in charges:
        _add(charge, ctx, memory, now_ns)
    return None


def _add(charge: BudgetCharge, ctx: MessageContext, memory: BatchState, now_ns: int) -> None:
    budget, number = charge.budget, None
    if charge.is_new:
        number = memory.head.sequence_number + 1 + len(ctx.events)
        ctx.events.append(_event("budget_warning", charge, ctx, now_ns))
        detail = f"{name_of(budget)} exceeded its soft cap of {money(budget.soft or 0.0)}"
        ctx.gates.append(ApprovalGate(reason="budget", detail=detail, rule_id=budget.budget_id))
    if budget.target == "*" or (not charge.amount and number is None):
        return
    tally, write = spend_row(memory, budget.budget_id)
    if write:
        ctx.writes += write
    if charge.period_ns != tally["period_ns"]:
        tally["period_ns"], tally["soft_seq"] = charge.period_ns, None
    tally["spent"] = charge.after
    if number is not None:
        tally["soft_seq"] = number


def _charge(
    budget: Budget, ctx: MessageContext, memory: BatchState, amount: float, now_ns: int
) -> BudgetCharge | None:
    """How this message counts for this budget; None when it does not."""
    agent, session, scope, target = ctx.agent, ctx.session, budget.scope, budget.target
    assert agent is not None and session is not None  # only agents in a session report costs
    soft, who, period_ns, is_new = budget.soft, target, 0, False
    if target == "*":
        who, spent = (
            (session.session_id, session.spent) if scope == "session" else (agent.agent_id, agent.cost)
        )
        after = _sum(spent, amount)
        is_new = soft is not None and round(spent, 9) <= soft < after
    else:
        if scope == "session":
            applies = session.session_id == target
        elif scope == "agent":
            applies = is_agent(target, agent, memory.tenant.tenant_id)
        else:
            clusters = (ctx.message.cluster_id, agent.cluster_id)
            applies = scope == "tenant" or any(are_same_name(target, one) for one in clusters)
        if not applies:
            return None
        row = memory.rows["spend"].get(budget.budget_id) if "spend" in memory.rows else None
        spent, period_ns, soft_seq = current_spend(budget, row, now_ns)
        after = _sum(spent, amount)
        is_new = soft is not None and soft_seq is None and after > soft
    return BudgetCharge(budget, who, spent, amount, after, period_ns, is_new)


def _sum(spent: float, amount: float) -> float:
    """Rounded, so that three times 0.1 is not more than 0.3."""
    return round(min(spent + amount, MAX_AMOUNT), 9)


def period_end(period: Period, now_ns: int) -> int | None:
    """When the period resets; None for a lifetime budget."""
    if period == "none":
        return None
    start = period_start(period, now_ns)
    # 31 days after the first of a month is always in the next one.
    return start + DAY if period == "daily" else period_start("monthly", start + 31 * DAY)


def money(amount: float) -> str:
    """Decimal text: events hold no floats."""
    text = f"{amount:.9f}".rstrip("0").rstrip(".")
    return text or "0"


def name_of(budget: Budget) -> str:
    return f"{budget.scope}:{budget.target}"


def spend_row(memory: BatchState, budget_id: str) -> tuple[SpendRow, list[RowWrite]]:
    """The row to change, and its write when this batch has none yet."""
    rows = memory.rows.setdefault("spend", {})
    row = rows.get(budget_id)
    if isinstance(row, SpendRow):
        return row, []
    base = {"spent": 0.0, "period_ns": 0, "soft_seq": None} if row is None else row
    tally = SpendRow(
        tenant_id=memory.tenant.tenant_id,
        budget_id=budget_id,
        spent=base["spent"],
        period_ns=base["period_ns"],
        soft_seq=base["soft_seq"],
    )
    rows[budget_id] = tally
    return tally, [RowWrite("spend", tally, key=("tenant_id", "budget_id"))]


def _exceeded(charge: BudgetCharge, hard: float, ctx: MessageContext, now_ns: int) -> SubmissionResult:
    budget = charge.budget
    per = {"none": "in total", "daily": "per day", "monthly": "per month"}[budget.period]
    whose = f"{budget.scope} {charge.who}" if budget.scope != "tenant" else "this tenant"
    detail = (
        f"{whose} may spend {money(hard)} {per}, has spent {money(charge.spent)}, and this message costs "
        f"{money(charge.amount)}; an operator can raise the cap with PUT /v1/budgets, "
        "then resend it under a new id"
    )
    refused = Refused(reason="budget_exceeded", detail=detail, cap=f"{name_of(budget)} hard {money(hard)}")
    return SubmissionResult(402, refused, [_event("budget_exceeded", charge, ctx, now_ns)], archived=True)


def _event(event_type: str, charge: BudgetCharge, ctx: MessageContext, now_ns: int) -> EventDraft:
    session, message, budget = ctx.session, ctx.message, charge.budget
    assert session is not None
    what = "would exceed the hard cap" if event_type == "budget_exceeded" else "exceeded the soft cap"
    detail = {
        "budget_id": budget.budget_id,
        **caps_of(budget),
        "whose": charge.who,
        "spent": money(charge.spent),
        "cost": money(charge.amount),
        "session_id": session.session_id,
        "step_id": ctx.step_id,
        "agent_id": message.sender_id,
    }
    summary = f"{message.sender_id} {what} of {name_of(budget)}"
    return of_message(ctx, event_type, summary, detail, now_ns)


def caps_of(budget: Budget) -> dict[str, str | None]:
    return {
        "scope": budget.scope,
        "target": budget.target,
        "period": budget.period,
        "soft": None if budget.soft is None else money(budget.soft),
        "hard": None if budget.hard is None else money(budget.hard),
    }
