"""Commands that create, change and end budgets, and that apply a budget to a batch's state."""

from __future__ import annotations

import msgspec

from observatory.features.budgets.stage import caps_of, name_of, spend_row
from observatory.features.policies.commands import MAX_BUDGETS
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import BatchState, Command, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.responses import Refused
from observatory.protocol.tenant_config import Budget


def set_budget(
    principal: Principal, budget: Budget, now_ns: int, was: tuple[float | None, float | None] | None = None
) -> Command:
    """Creates a budget, or changes the caps of the one of this scope, target and period; what is spent stays.

    A named session's or agent's budget without a period counts what was spent before it was set.
    `was` are the soft and hard cap its author saw, both None where there was no budget.
    """

    def decide(uow: UnitOfWork) -> SubmissionResult:
        memory = uow.memory
        budgets = memory.tenant_config.budgets
        old = next((one for one in budgets if _identity(one) == _identity(budget)), None)
        if was is not None and was != ((None, None) if old is None else (old.soft, old.hard)):
            detail = "this budget was changed meanwhile; reload it, then save yours"
            return SubmissionResult(409, Refused(reason="stale_budget", detail=detail))
        if old is None and len(budgets) >= MAX_BUDGETS:
            detail = f"a tenant has at most {MAX_BUDGETS} budgets"
            return SubmissionResult(409, Refused(reason="too_many_budgets", detail=detail))
        caps = {"soft": budget.soft, "hard": budget.hard}
        stamp = {"updated_ns": uow.now_ns, "updated_by": principal.entity_id}
        if old is None:
            key = {"tenant_id": principal.tenant_id, "budget_id": budget.budget_id, "created_ns": uow.now_ns}
            kind = {"scope": budget.scope, "target": budget.target, "period": budget.period}
            writes = [RowWrite("budgets", key | kind | caps | stamp), *_seed(budget, memory)]
            new = budget
        else:
            new = msgspec.structs.replace(budget, budget_id=old.budget_id)
            where = {"tenant_id": principal.tenant_id, "budget_id": old.budget_id}
            writes = [RowWrite("budgets", caps | stamp, where), *_rearm(old, new, memory)]
        return apply_budget(uow, principal, old, new, writes)

    reads = ReadSet()
    if budget.scope == "session" and budget.target != "*":
        reads.sessions.add(budget.target)
    if budget.scope == "agent" and budget.target != "*":
        reads.agents.add(agent_entity_id(principal.tenant_id, budget.target))
    return Command(principal, now_ns, decide, reads)


def end_budget(principal: Principal, budget_id: str, now_ns: int) -> Command:
    def decide(uow: UnitOfWork) -> SubmissionResult:
        old = next((one for one in uow.memory.tenant_config.budgets if one.budget_id == budget_id), None)
        if old is None:
            return SubmissionResult(
                404, Refused(reason="not_found", detail="no budget of this tenant has that id")
            )
        where = {"tenant_id": principal.tenant_id, "budget_id": budget_id}
        gone = {"removed_ns": uow.now_ns, "updated_ns": uow.now_ns, "updated_by": principal.entity_id}
        return apply_budget(uow, principal, old, None, [RowWrite("budgets", gone, where)])

    return Command(principal, now_ns, decide)


def _identity(budget: Budget) -> tuple[str, str, str]:
    return budget.scope, budget.target, budget.period


def _seed(budget: Budget, memory: BatchState) -> list[RowWrite]:
    """What the named session or agent has already spent."""
    spent = 0.0
    if budget.period == "none" and budget.scope == "session" and budget.target in memory.sessions:
        spent = memory.sessions[budget.target].cost
    elif budget.period == "none" and budget.scope == "agent":
        agent = memory.agents.get(agent_entity_id(memory.tenant.tenant_id, budget.target))
        spent = agent.cost if agent is not None else 0.0
    if spent <= 0:
        return []
    tally, writes = spend_row(memory, budget.budget_id)
    tally["spent"] = round(spent, 9)
    return writes


def _rearm(old: Budget, new: Budget, memory: BatchState) -> list[RowWrite]:
    """A changed soft cap warns again."""
    row = memory.rows.get("spend", {}).get(old.budget_id)
    if old.soft == new.soft or row is None or row["soft_seq"] is None:
        return []
    tally, writes = spend_row(memory, old.budget_id)
    tally["soft_seq"] = None
    return writes


def apply_budget(
    uow: UnitOfWork, principal: Principal, old: Budget | None, new: Budget | None, writes: list[RowWrite]
) -> SubmissionResult:
    memory = uow.memory
    others = [one for one in memory.tenant_config.budgets if one is not old]
    budgets = tuple(others if new is None else [*others, new])
    memory.tenant_config = msgspec.structs.replace(memory.tenant_config, budgets=budgets)
    memory.tenant.rulebook_version += 1
    budget = new or old
    assert budget is not None
    detail = {
        "budget_id": budget.budget_id,
        "change": "removed" if new is None else "created" if old is None else "changed",
        "before": None if old is None else caps_of(old),
        "after": None if new is None else caps_of(new),
    }
    summary = f"budget {name_of(budget)} {detail['change']}"
    event = gateway_event(principal.tenant_id, "budget_set", summary, uow.now_ns, principal, detail)
    return SubmissionResult(200, {"budget_id": budget.budget_id}, [event], writes)
