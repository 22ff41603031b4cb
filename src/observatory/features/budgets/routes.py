"""Budget routes: the caps, what is spent, and how to change them.

Invalid caps (negative, not finite, soft above hard, or neither) are refused with a message.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Response, Router, delete, get, put
from litestar.params import FromPath, JSONBody

from observatory.features.budgets.commands import end_budget, set_budget
from observatory.features.budgets.queries import budget_items
from observatory.http.answers import Refusal, json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.state import Command
from observatory.protocol.identity import canonical_uuid, mint
from observatory.protocol.rules import Name
from observatory.protocol.tenant_config import Budget, BudgetScope, Period

# Larger caps cannot be distinguished with nine decimals.
LARGEST = 1_000_000_000_000.0


Cap = Annotated[float, msgspec.Meta(ge=0, le=LARGEST)]


class BudgetCaps(msgspec.Struct, kw_only=True):
    soft: float | None = None
    hard: float | None = None


class BudgetBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`target` names the cluster, session or agent; `*` gives each session or agent its own cap."""

    scope: BudgetScope
    target: Name | None = None
    soft: (
        Annotated[Cap, msgspec.Meta(description="When exceeded, one approval per period is required")] | None
    ) = None
    hard: Annotated[Cap, msgspec.Meta(description="A message that would exceed it is refused")] | None = None
    period: Annotated[Period, msgspec.Meta(description="daily and monthly are in UTC")] = "none"
    was: (
        Annotated[
            BudgetCaps,
            msgspec.Meta(description="The caps you last read, {} for none; 409 if they have changed"),
        ]
        | None
    ) = None


class BudgetItem(msgspec.Struct, kw_only=True):
    """With target `*`, `spent` is the highest of any single one, and `spender` names it."""

    budget_id: str
    scope: BudgetScope
    target: str
    soft: float | None
    hard: float | None
    period: Period
    spent: float
    spender: str | None
    remaining: float | None
    share: float
    warned_by: int | None
    period_started_at: str | None
    resets_at: str | None
    updated_at: str
    updated_by: str


class RemovedBudget(msgspec.Struct, kw_only=True):
    budget_id: str
    removed: bool


@get("/budgets", summary="List budgets and what is spent of them", operation_id="list_budgets")
async def list_budgets(request: Call, app: Here) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    rows = await app.store.rows(principal.tenant_id, "budgets", removed_ns=None)
    return json({"items": await budget_items(app, principal, rows), "next_cursor": None})


@put("/budgets", summary="Create a budget or change its caps", operation_id="put_budget")
async def put_budget(request: Call, app: Here, data: JSONBody[BudgetBody]) -> Response[bytes]:
    """A budget of the same scope, target and period gets these caps; what was spent stays."""
    principal = await require_permission(request, app, "operate")
    now_ns = app.clock()
    wanted_budget = _budget(data, mint("bud_", now_ns), principal.tenant_id)
    was = None if data.was is None else (data.was.soft, data.was.hard)
    budget_id = await _done(app, set_budget(principal, wanted_budget, now_ns, was))
    rows = await app.store.rows(principal.tenant_id, "budgets", budget_id=budget_id)
    return json((await budget_items(app, principal, rows))[0])


@delete(
    "/budgets/{budget_id:str}",
    summary="Remove a budget; its history stays in the record",
    status_code=200,
    operation_id="remove_budget",
)
async def remove_budget(request: Call, app: Here, budget_id: FromPath[str]) -> Response[bytes]:
    principal = await require_permission(request, app, "operate")
    await _done(app, end_budget(principal, budget_id, app.clock()))
    return json({"budget_id": budget_id, "removed": True})


def _budget(body: BudgetBody, budget_id: str, tenant_id: str) -> Budget:
    if body.soft is None and body.hard is None:
        raise Refusal(
            422, "bad_budget", "a budget needs a soft cap, a hard cap or both; to end it, DELETE it"
        )
    if body.soft is not None and body.hard is not None and body.soft > body.hard:
        raise Refusal(422, "bad_budget", "the soft cap must not exceed the hard cap")
    return Budget(
        budget_id=budget_id,
        scope=body.scope,
        target=_target(body, tenant_id),
        soft=body.soft,
        hard=body.hard,
        period=body.period,
    )


def _target(body: BudgetBody, tenant_id: str) -> str:
    target = body.target
    if body.scope == "tenant":
        if target not in (None, "*", tenant_id):
            raise Refusal(422, "bad_budget", "a tenant budget has no target")
        return tenant_id
    if target is None:
        raise Refusal(422, "bad_budget", f"target must name the {body.scope} this budget is for")
    if target != "*":
        return canonical_uuid(target) or target if body.scope == "session" else target
    if body.scope == "cluster":
        raise Refusal(422, "bad_budget", "target * is only for sessions and agents; name a cluster")
    if body.period != "none":
        raise Refusal(422, "bad_budget", "target * counts lifetime spending: its period must be none")
    return target


async def _done(app: AppState, act: Command) -> str:
    verdict = await app.command(act)
    if verdict.code >= 400:
        raise Refusal(verdict.code, verdict.answer.reason, verdict.answer.detail or "not accepted")
    return str(verdict.answer["budget_id"])


budgets = Router(path="/v1", route_handlers=[list_budgets, put_budget, remove_budget], tags=["Budgets"])
