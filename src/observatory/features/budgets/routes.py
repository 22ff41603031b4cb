"""The budgets' words: what may be spent, what is, and how to raise it.

A figure that is no cap (negative, not finite, soft beyond hard, neither) is refused with a sentence.
"""

from __future__ import annotations

from typing import Annotated, Any, get_args

import msgspec
from litestar import Response, Router, delete, get, put
from litestar.params import FromPath, JSONBody

from observatory.features.budgets import stage as budget
from observatory.features.policies import commands as rulemaking
from observatory.http.answers import Refusal, json
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.pipeline.state import Act, Principal
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import canonical_uuid, mint
from observatory.protocol.rulebook import Budget, BudgetScope, Period
from observatory.protocol.rules import Name

SCOPES = get_args(BudgetScope)
# Caps beyond it cannot be told from each other in nine decimals.
LARGEST = 1_000_000_000_000.0
# The sessions among which the highest spender of a `session:*` budget is looked for.
RECENT = 1_000


Cap = Annotated[float, msgspec.Meta(ge=0, le=LARGEST)]


class Caps(msgspec.Struct, kw_only=True):
    soft: float | None = None
    hard: float | None = None


class BudgetBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`target` names the cluster, session or agent; `*` gives each session or agent its own cap."""

    scope: BudgetScope
    target: Name | None = None
    soft: Annotated[Cap, msgspec.Meta(description="Beyond it a person must look, once a period")] | None = (
        None
    )
    hard: Annotated[Cap, msgspec.Meta(description="Never passed: what would is refused")] | None = None
    period: Annotated[Period, msgspec.Meta(description="daily and monthly are by UTC")] = "none"
    was: (
        Annotated[Caps, msgspec.Meta(description="The caps one saw, {} for none; others now: 409")] | None
    ) = None


class BudgetItem(msgspec.Struct, kw_only=True):
    """Of a target `*`: `spent` is the highest of any one, and `spender` whose it is."""

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


@get("/budgets", summary="Budgets and what is spent of them", operation_id="list_budgets")
async def list_budgets(request: Call, house: Here) -> Response[bytes]:
    principal = await need(request, house, "read")
    rows = await house.store.rows(principal.tenant_id, "budgets", removed_ns=None)
    return json({"items": await _items(house, principal, rows), "next_cursor": None})


@put("/budgets", summary="Set a budget, or give it new caps", operation_id="put_budget")
async def put_budget(request: Call, house: Here, data: JSONBody[BudgetBody]) -> Response[bytes]:
    """One of the same scope, target and period gets these caps; what was spent stays."""
    principal = await need(request, house, "operate")
    now_ns = house.clock()
    meant = _budget(data, mint("bud_", now_ns), principal.tenant_id)
    was = None if data.was is None else (data.was.soft, data.was.hard)
    budget_id = await _done(house, rulemaking.set_budget(principal, meant, now_ns, was))
    rows = await house.store.rows(principal.tenant_id, "budgets", budget_id=budget_id)
    return json((await _items(house, principal, rows))[0])


@delete(
    "/budgets/{budget_id:str}",
    summary="Remove a budget; the record keeps it",
    status_code=200,
    operation_id="remove_budget",
)
async def remove_budget(request: Call, house: Here, budget_id: FromPath[str]) -> Response[bytes]:
    principal = await need(request, house, "operate")
    await _done(house, rulemaking.remove_budget(principal, budget_id, house.clock()))
    return json({"budget_id": budget_id, "removed": True})


def _budget(body: BudgetBody, budget_id: str, tenant_id: str) -> Budget:
    if body.soft is None and body.hard is None:
        raise Refusal(422, "bad_budget", "a budget has a soft cap, a hard cap or both; to end it, DELETE it")
    if body.soft is not None and body.hard is not None and body.soft > body.hard:
        raise Refusal(422, "bad_budget", "the soft cap lies below the hard cap, or they are equal")
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
            raise Refusal(422, "bad_budget", "a tenant's budget is its own: leave target out")
        return tenant_id
    if target is None:
        raise Refusal(422, "bad_budget", f"target names the {body.scope} this budget is for")
    if target != "*":
        return canonical_uuid(target) or target if body.scope == "session" else target
    if body.scope == "cluster":
        raise Refusal(422, "bad_budget", "target * is for sessions and agents; a cluster is named")
    if body.period != "none":
        raise Refusal(422, "bad_budget", "target * counts what each has spent in all: its period is none")
    return target


async def _done(house: House, act: Act) -> str:
    verdict = await house.command(act)
    if verdict.code >= 400:
        raise Refusal(verdict.code, verdict.answer.reason, verdict.answer.detail or "not accepted")
    return str(verdict.answer["budget_id"])


async def _items(house: House, principal: Principal, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    spend = {row["budget_id"]: row for row in await house.store.rows(principal.tenant_id, "spend")}
    now_ns = house.clock()
    items = []
    for row in sorted(rows, key=lambda row: (SCOPES.index(row["scope"]), row["target"], row["period"])):
        fields = {field: row[field] for field in Budget.__struct_fields__}
        known = msgspec.convert(fields, Budget)
        spender, warned = None, None
        if known.target == "*":
            spent, spender = await _highest(house, principal.tenant_id, known.scope)
            start = 0
        else:
            spent, start, soft_seq = budget.standing(known, spend.get(known.budget_id), now_ns)
            warned = soft_seq
        ends = budget.period_end(known.period, now_ns)
        items.append(
            fields
            | {
                "spent": round(spent, 9),
                "spender": spender,
                "remaining": None if known.hard is None else max(0.0, round(known.hard - spent, 9)),
                "share": _share(known, spent),
                "warned_by": warned,
                "period_started_at": from_ns(start) if start else None,
                "resets_at": None if ends is None else from_ns(ends),
                "updated_at": from_ns(row["updated_ns"]),
                "updated_by": row["updated_by"],
            }
        )
    return items


def _share(known: Budget, spent: float) -> float:
    """Of the hard cap, or of the soft one where there is no other; a cap of nothing is used up."""
    cap = known.hard if known.hard is not None else known.soft
    return round(spent / cap, 6) if cap else 1.0


async def _highest(house: House, tenant_id: str, scope: str) -> tuple[float, str | None]:
    """Where each has its own cap: the one nearest to it, of sessions among the recent ones."""
    if scope == "agent":
        rows, name, spent = await house.store.rows(tenant_id, "agents"), "agent_id", "cost"
    else:
        rows = await house.store.sessions_page(tenant_id, None, RECENT)
        name, spent = "session_id", "spent"
    if not rows:
        return 0.0, None
    first = max(rows, key=lambda row: row[spent])
    return max(0.0, first[spent]), first[name]


budgets = Router(path="/v1", route_handlers=[list_budgets, put_budget, remove_budget], tags=["Budgets"])
