"""Budgets: what may be spent (ruling 19). How they are set is in `rulemaking.py`.

Law: under the chain head's lock, so two senders never pass a hard cap together. A message that would pass a
hard cap is archived as refused, the refusal names the cap, and nothing is added. The first one beyond a soft
cap is held for a person, once a period. A message costs what it says in `state_delta.cost` or what its
cumulative figure has grown, whichever is more; one that reports neither is not judged. A named target has a
row in `spend`; `*` gives each session or agent its own cap over what it has spent in all. Days and months are
UTC. Without budgets: one test.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

from observatory.features.policies.matching import is_agent
from observatory.pipeline.event_draft import of_message
from observatory.pipeline.message_context import Gate, Passage
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Draft, Memory, Verdict
from observatory.protocol.answers import Refused
from observatory.protocol.decision_log import StateDelta
from observatory.protocol.rulebook import Budget, Period
from observatory.protocol.spelling import are_same

# More than anybody spends: keeps sums finite whatever an agent claims.
MAX_AMOUNT = 1e15
_SECOND = 1_000_000_000
_DAY = 86_400 * _SECOND


class Tally(dict[str, Any]):
    """A row of `spend` that a `Write` of this batch already carries: later messages change it in place."""


class Charge(msgspec.Struct, frozen=True, gc=False):
    """What a message does to one budget."""

    budget: Budget
    who: str  # whose spending it is: the session's or agent's name where the target is `*`
    spent: float
    amount: float
    after: float
    period_ns: int
    is_new: bool  # beyond the soft cap for the first time in this period


def check(passage: Passage, memory: Memory, now_ns: int) -> Verdict | None:
    """The stage: refuse, or hold, and add."""
    if not memory.rulebook.budgets:
        return None
    log, member = passage.message.log, passage.member
    delta = log.state_delta if log is not None else None
    cost = None if delta is None or member is None else cost_of(delta, member.cost)
    if cost is None:
        return None
    charges = []
    for budget in memory.rulebook.budgets:
        charge = _charge(budget, passage, memory, cost, now_ns)
        if charge is not None:
            if budget.hard is not None and charge.after > budget.hard:
                return _exceeded(charge, budget.hard, passage, now_ns)
            charges.append(charge)
    for charge in charges:
        _add(charge, passage, memory, now_ns)
    return None


def _add(charge: Charge, passage: Passage, memory: Memory, now_ns: int) -> None:
    budget, number = charge.budget, None
    if charge.is_new:
        number = memory.head.sequence_number + 1 + len(passage.events)
        passage.events.append(_event("budget_warning", charge, passage, now_ns))
        detail = f"{name_of(budget)} is beyond its soft cap of {money(budget.soft or 0.0)}"
        passage.gates.append(Gate(reason="budget", detail=detail, rule_id=budget.budget_id))
    if budget.target == "*" or (not charge.amount and number is None):
        return
    tally, write = tally_of(memory, budget.budget_id)
    if write:
        passage.writes += write
    if charge.period_ns != tally["period_ns"]:
        tally["period_ns"], tally["soft_seq"] = charge.period_ns, None
    tally["spent"] = charge.after
    if number is not None:
        tally["soft_seq"] = number


def cost_of(delta: StateDelta, before: float) -> float | None:
    """What a message adds to what its agent has spent; None when it reports no cost.

    The larger of the step's cost and the growth of the cumulative figure, so that neither hides the other.
    A figure that falls, or a negative cost, gives nothing back.
    """
    total, cost = delta.cumulative_session_cost, delta.cost
    if total is None and cost is None:
        return None
    growth = 0.0 if total is None else total - before
    return min(max(0.0, growth, cost or 0.0), MAX_AMOUNT)


def _charge(budget: Budget, passage: Passage, memory: Memory, amount: float, now_ns: int) -> Charge | None:
    """How this message counts for this budget; None when it does not."""
    agent, session, scope, target = passage.agent, passage.session, budget.scope, budget.target
    assert agent is not None and session is not None  # whoever reports costs is an agent in a session
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
            clusters = (passage.message.cluster_id, agent.cluster_id)
            applies = scope == "tenant" or any(are_same(target, one) for one in clusters)
        if not applies:
            return None
        row = memory.rows["spend"].get(budget.budget_id) if "spend" in memory.rows else None
        spent, period_ns, soft_seq = standing(budget, row, now_ns)
        after = _sum(spent, amount)
        is_new = soft is not None and soft_seq is None and after > soft
    return Charge(budget, who, spent, amount, after, period_ns, is_new)


def _sum(spent: float, amount: float) -> float:
    """Rounded, so that three times 0.1 is not more than 0.3."""
    return round(min(spent + amount, MAX_AMOUNT), 9)


def standing(budget: Budget, row: dict[str, Any] | None, now_ns: int) -> tuple[float, int, int | None]:
    """(spent, begin of the period, number of the warning) as of now: a new period begins at zero."""
    start = 0 if budget.period == "none" else period_start(budget.period, now_ns)
    if row is None or row["period_ns"] < start:
        return 0.0, start, None
    return row["spent"], row["period_ns"], row["soft_seq"]


@lru_cache(maxsize=16)
def period_start(period: Period, now_ns: int) -> int:
    """When the present period began, by UTC; 0 where it never begins anew. A batch shares its time."""
    if period == "none":
        return 0
    if period == "daily":
        return now_ns - now_ns % _DAY
    moment = datetime.fromtimestamp(now_ns // _SECOND, UTC)
    return int(datetime(moment.year, moment.month, 1, tzinfo=UTC).timestamp()) * _SECOND


def period_end(period: Period, now_ns: int) -> int | None:
    """When spending begins anew."""
    if period == "none":
        return None
    start = period_start(period, now_ns)
    # 31 days after the first of a month is always in the next one.
    return start + _DAY if period == "daily" else period_start("monthly", start + 31 * _DAY)


def money(amount: float) -> str:
    """Decimal text: events hold no floats."""
    text = f"{amount:.9f}".rstrip("0").rstrip(".")
    return text or "0"


def name_of(budget: Budget) -> str:
    return f"{budget.scope}:{budget.target}"


def tally_of(memory: Memory, budget_id: str) -> tuple[Tally, list[Write]]:
    """The row to change, and its write when this batch has none yet."""
    rows = memory.rows.setdefault("spend", {})
    row = rows.get(budget_id)
    if isinstance(row, Tally):
        return row, []
    base = {"spent": 0.0, "period_ns": 0, "soft_seq": None} if row is None else row
    tally = Tally(
        tenant_id=memory.tenant.tenant_id,
        budget_id=budget_id,
        spent=base["spent"],
        period_ns=base["period_ns"],
        soft_seq=base["soft_seq"],
    )
    rows[budget_id] = tally
    return tally, [Write("spend", tally, key=("tenant_id", "budget_id"))]


def _exceeded(charge: Charge, hard: float, passage: Passage, now_ns: int) -> Verdict:
    budget = charge.budget
    per = {"none": "in all", "daily": "a day", "monthly": "a month"}[budget.period]
    whose = f"{budget.scope} {charge.who}" if budget.scope != "tenant" else "this tenant"
    detail = (
        f"{whose} may spend {money(hard)} {per}, has spent {money(charge.spent)}, and this message costs "
        f"{money(charge.amount)}; an operator can raise the cap with PUT /v1/budgets, "
        "then send it under a new id"
    )
    refused = Refused(reason="budget_exceeded", detail=detail, cap=f"{name_of(budget)} hard {money(hard)}")
    return Verdict(402, refused, [_event("budget_exceeded", charge, passage, now_ns)], archived=True)


def _event(event_type: str, charge: Charge, passage: Passage, now_ns: int) -> Draft:
    session, message, budget = passage.session, passage.message, charge.budget
    assert session is not None
    what = "would pass the hard cap" if event_type == "budget_exceeded" else "passed the soft cap"
    detail = {
        "budget_id": budget.budget_id,
        **caps_of(budget),
        "whose": charge.who,
        "spent": money(charge.spent),
        "cost": money(charge.amount),
        "session_id": session.session_id,
        "step_id": passage.step_id,
        "agent_id": message.sender_id,
    }
    summary = f"{message.sender_id} {what} of {name_of(budget)}"
    return of_message(passage, event_type, summary, detail, now_ns)


def caps_of(budget: Budget) -> dict[str, str | None]:
    return {
        "scope": budget.scope,
        "target": budget.target,
        "period": budget.period,
        "soft": None if budget.soft is None else money(budget.soft),
        "hard": None if budget.hard is None else money(budget.hard),
    }
