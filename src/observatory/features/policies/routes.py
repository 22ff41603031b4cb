"""The Policy Engine over HTTP: the rules in order, and dry runs over past messages.

A rule that cannot have its meaning is refused with a sentence: a star in the middle of a pattern, an unknown
message type, a denial of essential traffic. A dry run reads the archive and changes nothing.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, Router, delete, get, post, put
from litestar.params import FromPath, JSONBody, QueryParameter

from observatory.features.policies import commands
from observatory.features.policies.routes_dry_run import dry_run
from observatory.http.answers import Refusal, json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline import policy
from observatory.pipeline.matching import place_of
from observatory.pipeline.state import Command, Principal
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import mint
from observatory.protocol.rules import Name
from observatory.protocol.spelling import are_same_name
from observatory.protocol.tenant_config import ESSENTIAL, Effect, Expiry, Match, PolicyRule

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
    """A disabled rule keeps its place and has no effect."""


class NewRule(RuleBody, kw_only=True, forbid_unknown_fields=True):
    """`position` 1 is first; by default the rule is added last."""

    position: Annotated[int, msgspec.Meta(ge=1, le=10_000)] | None = None
    confirm: bool = False


class ChangedRule(RuleBody, kw_only=True, forbid_unknown_fields=True):
    confirm: bool = False
    was: RuleBody | None = None
    """The rule as it was read: 409 if it has changed since. Omitted: not compared."""


class TriedRule(RuleBody, kw_only=True, forbid_unknown_fields=True):
    """A rule as it would be sent; with a `rule_id` the answer names it by that."""

    rule_id: Name | None = None


class DryRun(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One rule, or several together; how many minutes back from now."""

    rule: TriedRule | None = None
    rules: Annotated[list[TriedRule], msgspec.Meta(min_length=1, max_length=100)] | None = None
    minutes: Annotated[int, msgspec.Meta(ge=1, le=1_440)] = 60


class RuleOrder(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Every rule's id, in the new order."""

    order: Annotated[list[Name], msgspec.Meta(max_length=commands.MAX_RULES)]
    was: Annotated[list[Name], msgspec.Meta(max_length=commands.MAX_RULES)] | None = None
    """The order as it was read: 409 if it has changed since. Omitted: not compared."""


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
    """The rules in order, and the default if none matches."""

    items: list[PolicyItem]
    next_cursor: str | None
    default: Literal["allow", "deny"]


class RemovedPolicy(msgspec.Struct, kw_only=True):
    rule_id: str
    removed: bool


@get("/policies", summary="List the rules in order", operation_id="list_policies")
async def list_policies(request: Call, app: Here) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    return json(await _listed(app, principal))


@post("/policies", summary="Add a rule", operation_id="create_policy")
async def create_policy(request: Call, app: Here, data: JSONBody[NewRule]) -> Response[bytes]:
    principal = await require_permission(request, app, "operate")
    now_ns = app.clock()
    rule = _rule(data, mint("pol_", now_ns), data.position or 0)
    await _submit(app, commands.create_rule(principal, rule, data.confirm, now_ns))
    return json(await _read_back(app, principal, rule.rule_id), 201)


@put("/policies/order", summary="Reorder the rules", operation_id="order_policies")
async def order_policies(request: Call, app: Here, data: JSONBody[RuleOrder]) -> Response[bytes]:
    principal = await require_permission(request, app, "operate")
    await _submit(app, commands.order_rules(principal, data.order, app.clock(), data.was))
    return json(await _listed(app, principal))


@put(
    "/policies/{rule_id:str}",
    summary="Replace a rule; its position is unchanged",
    operation_id="replace_policy",
)
async def replace_policy(
    request: Call, app: Here, rule_id: FromPath[str], data: JSONBody[ChangedRule]
) -> Response[bytes]:
    principal = await require_permission(request, app, "operate")
    rule = _rule(data, rule_id)
    was = None if data.was is None else _policy_rule(data.was, rule_id)
    await _submit(app, commands.replace_rule(principal, rule, data.confirm, app.clock(), was))
    return json(await _read_back(app, principal, rule_id))


@delete(
    "/policies/{rule_id:str}",
    summary="Remove a rule; the record keeps it",
    status_code=200,
    operation_id="remove_policy",
)
async def remove_policy(
    request: Call,
    app: Here,
    rule_id: FromPath[str],
    confirm: Annotated[
        bool, QueryParameter(description="Even if nothing would be allowed any more.")
    ] = False,
) -> Response[bytes]:
    principal = await require_permission(request, app, "operate")
    await _submit(app, commands.remove_rule(principal, rule_id, confirm, app.clock()))
    return json({"rule_id": rule_id, "removed": True})


@post(
    "/policies/dry-run",
    summary="Test what rules would have denied and held",
    status_code=200,
    operation_id="try_policies",
)
async def try_policies(request: Call, app: Here, data: JSONBody[DryRun]) -> Response[bytes]:
    """By these rules alone, over the archive of the last minutes, with the agents as they are now."""
    principal = await require_permission(request, app, "operate")
    if (data.rule is None) == (data.rules is None):
        raise Refusal(422, "bad_dry_run", "send either `rule` or `rules`")
    tried = data.rules if data.rules is not None else [data.rule]
    rules = [
        msgspec.structs.replace(_rule(one, one.rule_id or f"rule-{number}", number), enabled=True)
        for number, one in enumerate(tried, 1)
        if one is not None
    ]
    return json(await dry_run(app, principal.tenant_id, rules, data.minutes))


def _rule(body: RuleBody, rule_id: str, position: int = 0) -> PolicyRule:
    match = body.match
    for words in (match.sender, match.recipient, match.message_type, match.tool, match.cluster):
        for word in words:
            if "*" in word[:-1]:
                raise Refusal(422, "bad_rule", "a * is allowed only at the end of a word")
            if any(sign != "*" and are_same_name(sign, "*") for sign in word):
                raise Refusal(422, "bad_rule", f"{word}: only an ASCII * matches any ending; write *")
    if any(place_of(word)[0] == "session" for word in match.sender):
        raise Refusal(422, "bad_rule", "match.sender: `session:` names recipients, not senders")
    for word in match.message_type:
        if not any(one == word or (word[-1] == "*" and one.startswith(word[:-1])) for one in MESSAGE_TYPES):
            raise Refusal(422, "bad_rule", f"match.message_type: the types are {', '.join(MESSAGE_TYPES)}")
        if word in ESSENTIAL and body.effect != "allow":
            always = ", ".join(sorted(ESSENTIAL))
            raise Refusal(422, "bad_rule", f"match.message_type: {always} always pass and cannot be stopped")
    return _policy_rule(body, rule_id, position)


def _policy_rule(body: RuleBody, rule_id: str, position: int = 0) -> PolicyRule:
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


async def _submit(app: AppState, command: Command) -> None:
    verdict = await app.command(command)
    if verdict.code >= 400:
        raise Refusal(verdict.code, verdict.answer.reason, verdict.answer.detail or "not accepted")


async def _listed(app: AppState, principal: Principal) -> dict[str, Any]:
    rows = await app.store.rows(principal.tenant_id, "policies", removed_ns=None)
    items = [_item(row) for row in sorted(rows, key=lambda row: row["position"])]
    return {"items": items, "next_cursor": None, "default": policy.default_effect()}


async def _read_back(app: AppState, principal: Principal, rule_id: str) -> dict[str, Any]:
    (row,) = await app.store.rows(principal.tenant_id, "policies", rule_id=rule_id)
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
