"""The Policy Engine's words: the rules in their order, and what a rule would have done to the past.

A rule that cannot mean what it says is refused with a sentence: a star in the middle of a word, a type that
does not exist, a denial of what always passes. A dry run reads the archive and changes nothing.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, Router, delete, get, post, put
from litestar.params import FromPath, JSONBody, QueryParameter

from observatory.features.policies import commands as rulemaking
from observatory.features.policies import stage as policy
from observatory.features.policies.matching import place_of
from observatory.features.policies.routes_dry_run import dry_run
from observatory.http.answers import Refusal, json
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.pipeline.state import Act, Principal
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import mint
from observatory.protocol.rulebook import ESSENTIAL, Effect, Expiry, Match, PolicyRule
from observatory.protocol.rules import Name
from observatory.protocol.spelling import are_same

MESSAGE_TYPES = (
    "decision_log",
    "decision_request",
    "decision_response",
    "status_alert",
    "heartbeat",
    "action_confirmation",
    "artifact_share",
    "text",
    "system_event",
)


class RuleBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    effect: Effect
    match: Match
    quorum: Annotated[int, msgspec.Meta(ge=1, le=10)] = 1
    deadline_s: Annotated[int, msgspec.Meta(ge=1, le=31_536_000)] | None = None
    on_expiry: Expiry = "deny"
    note: Annotated[str, msgspec.Meta(max_length=500)] = ""
    enabled: bool = True
    """Off, it keeps its place and rules nothing."""


class NewRule(RuleBody, kw_only=True, forbid_unknown_fields=True):
    """`position` 1 is first; left out, the rule comes last."""

    position: Annotated[int, msgspec.Meta(ge=1, le=10_000)] | None = None
    confirm: bool = False


class ChangedRule(RuleBody, kw_only=True, forbid_unknown_fields=True):
    confirm: bool = False
    was: RuleBody | None = None
    """The rule that was seen: 409 when it is another by now. Left out: not compared."""


class TriedRule(RuleBody, kw_only=True, forbid_unknown_fields=True):
    """As it would be sent; with a `rule_id` it is told of by that."""

    rule_id: Name | None = None


class DryRun(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One rule, or several that hold together; how many minutes back from now."""

    rule: TriedRule | None = None
    rules: Annotated[list[TriedRule], msgspec.Meta(min_length=1, max_length=100)] | None = None
    minutes: Annotated[int, msgspec.Meta(ge=1, le=1_440)] = 60


class Order(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Every rule's id, in the new order."""

    order: Annotated[list[Name], msgspec.Meta(max_length=rulemaking.MAX_RULES)]
    was: Annotated[list[Name], msgspec.Meta(max_length=rulemaking.MAX_RULES)] | None = None
    """The order that was seen: 409 when it is another by now. Left out: not compared."""


class PolicyItem(msgspec.Struct, kw_only=True):
    rule_id: str
    position: int
    effect: Effect
    match: Match
    quorum: int
    deadline_s: int | None
    on_expiry: Expiry
    note: str
    enabled: bool
    created_at: str
    updated_at: str
    updated_by: str


class PolicyList(msgspec.Struct, kw_only=True):
    """The rules in their order, and what holds where none speaks."""

    items: list[PolicyItem]
    next_cursor: str | None
    default: Literal["allow", "deny"]


class RemovedPolicy(msgspec.Struct, kw_only=True):
    rule_id: str
    removed: bool


@get("/policies", summary="The rules in their order", operation_id="list_policies")
async def list_policies(request: Call, house: Here) -> Response[bytes]:
    principal = await need(request, house, "read")
    return json(await _listed(house, principal))


@post("/policies", summary="Add a rule", operation_id="create_policy")
async def create_policy(request: Call, house: Here, data: JSONBody[NewRule]) -> Response[bytes]:
    principal = await need(request, house, "operate")
    now_ns = house.clock()
    rule = _rule(data, mint("pol_", now_ns), data.position or 0)
    await _done(house, rulemaking.create_rule(principal, rule, data.confirm, now_ns))
    return json(await _shown(house, principal, rule.rule_id), 201)


@put("/policies/order", summary="Put the rules into another order", operation_id="order_policies")
async def order_policies(request: Call, house: Here, data: JSONBody[Order]) -> Response[bytes]:
    principal = await need(request, house, "operate")
    await _done(house, rulemaking.order_rules(principal, data.order, house.clock(), data.was))
    return json(await _listed(house, principal))


@put("/policies/{rule_id:str}", summary="Replace a rule; its place stays", operation_id="replace_policy")
async def replace_policy(
    request: Call, house: Here, rule_id: FromPath[str], data: JSONBody[ChangedRule]
) -> Response[bytes]:
    principal = await need(request, house, "operate")
    rule = _rule(data, rule_id)
    was = None if data.was is None else _as_said(data.was, rule_id)
    await _done(house, rulemaking.replace_rule(principal, rule, data.confirm, house.clock(), was))
    return json(await _shown(house, principal, rule_id))


@delete(
    "/policies/{rule_id:str}",
    summary="Remove a rule; the record keeps it",
    status_code=200,
    operation_id="remove_policy",
)
async def remove_policy(
    request: Call,
    house: Here,
    rule_id: FromPath[str],
    confirm: Annotated[bool, QueryParameter(description="Even if then nothing is allowed any more.")] = False,
) -> Response[bytes]:
    principal = await need(request, house, "operate")
    await _done(house, rulemaking.remove_rule(principal, rule_id, confirm, house.clock()))
    return json({"rule_id": rule_id, "removed": True})


@post(
    "/policies/dry-run",
    summary="What these rules would have denied and held",
    status_code=200,
    operation_id="try_policies",
)
async def try_policies(request: Call, house: Here, data: JSONBody[DryRun]) -> Response[bytes]:
    """By these rules alone, over the archive of the last minutes, with the agents as they are now."""
    principal = await need(request, house, "operate")
    if (data.rule is None) == (data.rules is None):
        raise Refusal(422, "bad_dry_run", "send either `rule` or `rules`")
    tried = data.rules if data.rules is not None else [data.rule]
    rules = [
        msgspec.structs.replace(_rule(one, one.rule_id or f"rule-{number}", number), enabled=True)
        for number, one in enumerate(tried, 1)
        if one is not None
    ]
    return json(await dry_run(house, principal.tenant_id, rules, data.minutes))


def _rule(body: RuleBody, rule_id: str, position: int = 0) -> PolicyRule:
    match = body.match
    for words in (match.sender, match.recipient, match.message_type, match.tool, match.cluster):
        for word in words:
            if "*" in word[:-1]:
                raise Refusal(422, "bad_rule", "a * stands only at the end of a word")
            if any(sign != "*" and are_same(sign, "*") for sign in word):
                raise Refusal(422, "bad_rule", f"{word}: a star of another kind stands for no rest; write *")
    if any(place_of(word)[0] == "session" for word in match.sender):
        raise Refusal(422, "bad_rule", "match.sender: `session:` names recipients; no sender is a session")
    for word in match.message_type:
        if not any(one == word or (word[-1] == "*" and one.startswith(word[:-1])) for one in MESSAGE_TYPES):
            raise Refusal(422, "bad_rule", f"match.message_type: the types are {', '.join(MESSAGE_TYPES)}")
        if word in ESSENTIAL and body.effect != "allow":
            always = ", ".join(sorted(ESSENTIAL))
            raise Refusal(422, "bad_rule", f"match.message_type: {always} always pass, no rule can stop them")
    return _as_said(body, rule_id, position)


def _as_said(body: RuleBody, rule_id: str, position: int = 0) -> PolicyRule:
    return PolicyRule(
        rule_id=rule_id,
        position=position,
        effect=body.effect,
        match=body.match,
        quorum=body.quorum,
        deadline_s=body.deadline_s,
        on_expiry=body.on_expiry,
        note=body.note,
        enabled=body.enabled,
    )


async def _done(house: House, act: Act) -> None:
    verdict = await house.command(act)
    if verdict.code >= 400:
        raise Refusal(verdict.code, verdict.answer.reason, verdict.answer.detail or "not accepted")


async def _listed(house: House, principal: Principal) -> dict[str, Any]:
    rows = await house.store.rows(principal.tenant_id, "policies", removed_ns=None)
    items = [_item(row) for row in sorted(rows, key=lambda row: row["position"])]
    return {"items": items, "next_cursor": None, "default": policy.default_effect()}


async def _shown(house: House, principal: Principal, rule_id: str) -> dict[str, Any]:
    (row,) = await house.store.rows(principal.tenant_id, "policies", rule_id=rule_id)
    return _item(row)


def _item(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "rule_id": row["rule_id"],
        "position": row["position"],
        "effect": row["effect"],
        "match": msgspec.json.decode(row["matches"]),
        "quorum": row["quorum"],
        "deadline_s": row["deadline_s"],
        "on_expiry": row["on_expiry"],
        "note": row["note"],
        "enabled": bool(row["enabled"]),
        "created_at": from_ns(row["created_ns"]),
        "updated_at": from_ns(row["updated_ns"]),
        "updated_by": row["updated_by"],
    }


policies = Router(
    path="/v1",
    route_handlers=[
        list_policies,
        create_policy,
        order_policies,
        replace_policy,
        remove_policy,
        try_policies,
    ],
    tags=["Policy Engine"],
)
