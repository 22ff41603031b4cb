"""The policy stage: which agents may send what to whom (ruling 31). Rules are changed in `commands.py`.

Law: deny wins over hold, hold over allow, in any order; among rules of one effect the first in order is the
one that is named and whose quorum and deadline count. Essential traffic is never denied or held. A message no
rule matches passes, unless the gateway's default is `deny`. A denied message is archived as refused. Every
denial and hold is audited. Pure over batch state: without rules and with the default `allow` a message costs
one test here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from observatory.pipeline.addresses import candidates
from observatory.pipeline.event_draft import of_message
from observatory.pipeline.matching import (
    MessageParties,
    forms_of,
    is_nameless,
    parties_of,
    pattern_set,
    place_of,
    prepared_rules,
)
from observatory.pipeline.message_context import ApprovalGate, MessageContext
from observatory.pipeline.rows import AgentRow
from observatory.pipeline.state import BatchState, EventDraft, SubmissionResult
from observatory.protocol.message import Message
from observatory.protocol.responses import Refused
from observatory.protocol.tenant_config import Match, PolicyRule

DEFAULT_RULE = PolicyRule(
    rule_id="default", position=0, effect="deny", match=Match(), note="no rule allows this message"
)
# Patterns that match every agent; `*` for any place counts too.
ANY_AGENT = frozenset({("", "*"), ("type", "*"), ("", "agt_*")})
NAMELESS = (
    "; this agent is known only by its entity id, so it could be any agent that a rule names: "
    "register its name with POST /v1/agents"
)
# The gateway's default as a rule: None allows. Set once at start, from the setting `policy_default`.
_default: PolicyRule | None = None


def set_default_effect(default: Literal["allow", "deny"]) -> None:
    """Sets what applies where no rule matches, for every tenant of this gateway."""
    global _default
    _default = DEFAULT_RULE if default == "deny" else None


def default_effect() -> Literal["allow", "deny"]:
    return "allow" if _default is None else "deny"


def check(ctx: MessageContext, memory: BatchState, now_ns: int) -> SubmissionResult | None:
    """The stage."""
    if not memory.tenant_config.policies and _default is None:
        return None
    if ctx.message.sender_type == "user":  # rules apply to agents, not to people or the gateway
        return None
    rule = matching_rule(ctx.message, ctx.agent, memory)
    if rule is None:
        return None
    event = _evaluated(ctx, rule, now_ns)
    if rule.effect == "hold":
        deadline_ns = None if rule.deadline_s is None else now_ns + rule.deadline_s * 1_000_000_000
        ctx.events.append(event)
        ctx.gates.append(
            ApprovalGate(
                reason="policy",
                detail=f"rule {rule.rule_id} requires approval",
                rule_id=rule.rule_id,
                quorum=rule.quorum,
                deadline_ns=deadline_ns,
                on_expiry=rule.on_expiry,
            )
        )
        return None
    detail = "a rule of this tenant denies this message"
    if rule is DEFAULT_RULE:
        detail = "no rule of this tenant allows this message"
    if ctx.agent is not None and is_nameless(ctx.agent.agent_id):
        detail += NAMELESS
    refused = Refused(reason="policy_denied", detail=detail, rule_id=rule.rule_id)
    return SubmissionResult(403, refused, [event], archived=True)


def denies(
    message: Message, agent: AgentRow | None, memory: BatchState, recipient: AgentRow | None = None
) -> PolicyRule | None:
    """The rule that denies this message now, checked again at release; `recipient` is who would get it."""
    rule = _judged(message, agent, memory, recipient, _default)
    return rule if rule is not None and rule.effect == "deny" else None


def holding_rule(message: Message, agent: AgentRow | None, memory: BatchState) -> PolicyRule | None:
    """The rule by which a person must approve this message first."""
    rule = matching_rule(message, agent, memory)
    return rule if rule is not None and rule.effect == "hold" else None


def matching_rule(message: Message, agent: AgentRow | None, memory: BatchState) -> PolicyRule | None:
    """The rule that denies or holds this message, as it is addressed or for any agent it may reach.

    If a rule denies it to some agents, the router skips those; if a rule holds it for one, it waits whole.
    """
    return rule_under_default(message, agent, memory, _default)


def rule_under_default(
    message: Message, agent: AgentRow | None, memory: BatchState, default: PolicyRule | None
) -> PolicyRule | None:
    """The same under another default."""
    rule = _judged(message, agent, memory, None, default)
    if rule is not None or not _holds_by_recipient(memory):
        return rule
    for one in candidates(memory, message):
        if one is not agent:
            rule = _judged(message, agent, memory, one, default)
            if rule is not None and rule.effect == "hold":
                return rule
    return None


def _holds_by_recipient(memory: BatchState) -> bool:
    tests = prepared_rules(memory.tenant_config.policies, memory.tenant.tenant_id)
    return any(test.effect == "hold" and test.recipient is not None for test in tests)


def barred_agent_numbers(
    message: Message, sender: AgentRow | None, memory: BatchState, among: Iterable[AgentRow], approved: bool
) -> set[int]:
    """Those agents that may not get it: a rule denies it, or requires an approval it does not have."""
    if not memory.tenant_config.policies and _default is None:
        return set()
    barred_agents = set()
    for agent in among:
        rule = _judged(message, sender, memory, agent, _default)
        if rule is not None and (rule.effect == "deny" or not approved):
            barred_agents.add(agent.agent_no)
    return barred_agents


def _judged(
    message: Message,
    agent: AgentRow | None,
    memory: BatchState,
    recipient: AgentRow | None,
    default: PolicyRule | None,
) -> PolicyRule | None:
    """Judged by what the message says of its sender and by what the registry knows: the stricter counts."""
    rules = memory.tenant_config.policies
    if not rules and default is None:
        return None
    by_message = parties_of(message, agent, memory, recipient)
    tenant_id = memory.tenant.tenant_id
    first = strictest_rule(by_message, rules, default, tenant_id)
    if agent is None or (first is not None and first.effect == "deny"):
        return first
    by_registry = msgspec.structs.replace(
        by_message,
        sender_type=forms_of(agent.agent_type) or by_message.sender_type,
        sender_cluster=forms_of(agent.cluster_id) or by_message.sender_cluster,
    )
    second = first if by_registry == by_message else strictest_rule(by_registry, rules, default, tenant_id)
    return second if second is not None and (first is None or second.effect == "deny") else first


def strictest_rule(
    parties: MessageParties, rules: Sequence[PolicyRule], default: PolicyRule | None, tenant_id: str
) -> PolicyRule | None:
    """The rule that denies or holds; None if the message passes."""
    if parties.essential:
        return None
    hold: PolicyRule | None = None
    is_matched = default is None
    for test in prepared_rules(rules, tenant_id):
        effect = test.effect
        if (effect == "allow" and is_matched) or (effect == "hold" and hold is not None):
            continue  # it could not change the result any more
        if test.fits(parties):
            if effect == "deny":
                return test.rule
            is_matched = True
            hold = test.rule if effect == "hold" else hold
    return hold if is_matched else default


def _evaluated(ctx: MessageContext, rule: PolicyRule, now_ns: int) -> EventDraft:
    session, message = ctx.session, ctx.message
    assert session is not None  # placement is an earlier stage
    detail = {
        "rule_id": rule.rule_id,
        "effect": rule.effect,
        "session_id": session.session_id,
        "step_id": ctx.step_id,
        "agent_id": message.sender_id,
        "recipient": message.recipient,
        # Not as `av.message.digest`, which is reserved for the event a message is archived under.
        "message_digest": "sha256:" + message.digest.hex(),
    }
    summary = f"policy {rule.rule_id}: {rule.effect} {message.message_type} of {message.sender_id}"
    return of_message(ctx, "policy_evaluated", summary, detail, now_ns)


def denies_every_step(rule: PolicyRule) -> bool:
    """Whether it denies every agent its steps. A rule on one tool, cluster, sender or type does not."""
    match = rule.match

    def is_wide(words: tuple[str, ...]) -> bool:
        return not words or not ANY_AGENT.isdisjoint(map(place_of, words))

    steps = not match.message_type or pattern_set(match.message_type).fit(("decision_log",))
    return (
        rule.effect == "deny"
        and rule.enabled
        and steps
        and all(map(is_wide, (match.sender, match.recipient, match.tool, match.cluster)))
    )


def allows_no_step(rules: Sequence[PolicyRule]) -> bool:
    """Whether under these rules no agent can send a step any more."""
    return any(map(denies_every_step, rules)) or (
        _default is not None and all(rule.effect == "deny" or not rule.enabled for rule in rules)
    )
