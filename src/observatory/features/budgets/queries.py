"""Reads of budgets: each with its current spend, and the highest spender of a scope."""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from observatory.features.budgets import stage as budget
from observatory.features.budgets.types import current_spend
from observatory.http.app_state import AppState
from observatory.pipeline.state import Principal
from observatory.protocol.clock import from_ns
from observatory.protocol.tenant_config import Budget, BudgetScope

SCOPES = get_args(BudgetScope)


async def budget_items(
    app: AppState, principal: Principal, rows: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    spend = {row["budget_id"]: row for row in await app.store.rows(principal.tenant_id, "spend")}
    now_ns = app.clock()
    items = []
    for row in sorted(rows, key=lambda row: (SCOPES.index(row["scope"]), row["target"], row["period"])):
        fields = {field: row[field] for field in Budget.__struct_fields__}
        found_budget = msgspec.convert(fields, Budget)
        spender, warned = None, None
        if found_budget.target == "*":
            spent, spender = await highest_spender(app, principal.tenant_id, found_budget.scope)
            start = 0
        else:
            spent, start, soft_seq = current_spend(found_budget, spend.get(found_budget.budget_id), now_ns)
            warned = soft_seq
        ends = budget.period_end(found_budget.period, now_ns)
        items.append(
            fields
            | {
                "spent": round(spent, 9),
                "spender": spender,
                "remaining": None
                if found_budget.hard is None
                else max(0.0, round(found_budget.hard - spent, 9)),
                "share": share_of(found_budget, spent),
                "warned_by": warned,
                "period_started_at": from_ns(start) if start else None,
                "resets_at": None if ends is None else from_ns(ends),
                "updated_at": from_ns(row["updated_ns"]),
                "updated_by": row["updated_by"],
            }
        )
    return items


def share_of(found_budget: Budget, spent: float) -> float:
    """Of the hard cap, else of the soft one; a cap of zero counts as used up."""
    cap = found_budget.hard if found_budget.hard is not None else found_budget.soft
    return round(spent / cap, 6) if cap else 1.0


async def highest_spender(app: AppState, tenant_id: str, scope: str) -> tuple[float, str | None]:
    """With a cap for each: the highest spender; of sessions among the recent ones."""
    if scope == "agent":
        rows, name, spent = await app.store.rows(tenant_id, "agents"), "agent_id", "cost"
    else:
        rows = await app.store.sessions_page(tenant_id, None, RECENT)
        name, spent = "session_id", "spent"
    if not rows:
        return 0.0, None
    first = max(rows, key=lambda row: row[spent])
    return max(0.0, first[spent]), first[name]


# How many recent sessions are searched for the highest spender of a `session:*` budget.
RECENT = 1_000
