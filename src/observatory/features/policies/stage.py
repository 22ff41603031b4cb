"""Policy: who may say what to whom (ruling 31). How rules are made is in `rulemaking.py`.

Law: deny wins over hold, hold over allow, whatever their order; among rules of one effect the first in
order is the one that is named and whose quorum and deadline count. Essential traffic is never denied nor
held. What no rule speaks of passes, unless the house's default is `deny`. A denied message is archived as
refused. Every denial and hold is audited. Pure over memory: without rules and with the
default `allow` a message costs one test here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from observatory.features.policies.matching import (
    Parties,
    forms_of,
    is_nameless,
    parties_of,
    place_of,
    tests_of,
    words_of,
)
from observatory.features.registry.addresses import candidates
from observatory.pipeline.event_draft import of_message
from observatory.pipeline.message_context import Gate, Passage
from observatory.pipeline.rows import Agent
from observatory.pipeline.state import Draft, Memory, Verdict
from observatory.protocol.answers import Refused
from observatory.protocol.message import Message
from observatory.protocol.rulebook import Match, PolicyRule

DEFAULT_RULE = PolicyRule(
    rule_id="default", position=0, effect="deny", match=Match(), note="no rule allows this message"
)
# Words that every agent answers to; `*` in any place counts too.
EVERYBODY = frozenset({("", "*"), ("type", "*"), ("", "agt_*")})
NAMELESS = (
    "; this agent is known by its entity id alone and so may be any that a rule means: "
    "register its name with POST /v1/agents"
)
# The house's default as a rule: None allows. Set once at start, from the setting `policy_default`.
_default: PolicyRule | None = None


def settle(default: Literal["allow", "deny"]) -> None:
    """What holds where no rule speaks, for every tenant of this house."""
    global _default
    _default = DEFAULT_RULE if default == "deny" else None


def default_effect() -> Literal["allow", "deny"]:
    return "allow" if _default is None else "deny"


def check(passage: Passage, memory: Memory, now_ns: int) -> Verdict | None:
    """The stage."""
    if not memory.rulebook.policies and _default is None:
        return None
    if passage.message.sender_type == "user":  # rules are for what agents say, and the house to agents
        return None
    rule = spoken_of(passage.message, passage.agent, memory)
    if rule is None:
        return None
    event = _evaluated(passage, rule, now_ns)
    if rule.effect == "hold":
        deadline_ns = None if rule.deadline_s is None else now_ns + rule.deadline_s * 1_000_000_000
        passage.events.append(event)
        passage.gates.append(
            Gate(
                reason="policy",
                detail=f"rule {rule.rule_id} asks for a person",
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
    if passage.agent is not None and is_nameless(passage.agent.agent_id):
        detail += NAMELESS
    refused = Refused(reason="policy_denied", detail=detail, rule_id=rule.rule_id)
    return Verdict(403, refused, [event], archived=True)


def denies(
    message: Message, agent: Agent | None, memory: Memory, recipient: Agent | None = None
) -> PolicyRule | None:
    """The rule that denies this message now: asked again at release; `recipient` is who would get it."""
    rule = _judged(message, agent, memory, recipient, _default)
    return rule if rule is not None and rule.effect == "deny" else None


def asks(message: Message, agent: Agent | None, memory: Memory) -> PolicyRule | None:
    """The rule by which a person must see this message first."""
    rule = spoken_of(message, agent, memory)
    return rule if rule is not None and rule.effect == "hold" else None


def spoken_of(message: Message, agent: Agent | None, memory: Memory) -> PolicyRule | None:
    """The rule that denies or holds this message, as it is addressed or for any agent it may reach.

    What a rule denies to some of them the router keeps from those; what it holds for one waits as a whole.
    """
    return tried(message, agent, memory, _default)


def tried(
    message: Message, agent: Agent | None, memory: Memory, default: PolicyRule | None
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


def _holds_by_recipient(memory: Memory) -> bool:
    tests = tests_of(memory.rulebook.policies, memory.tenant.tenant_id)
    return any(test.effect == "hold" and test.recipient is not None for test in tests)


def barred(
    message: Message, sender: Agent | None, memory: Memory, among: Iterable[Agent], approved: bool
) -> set[int]:
    """Those of them who may not have it: a rule denies it, or asks for a person and none has looked."""
    if not memory.rulebook.policies and _default is None:
        return set()
    found = set()
    for agent in among:
        rule = _judged(message, sender, memory, agent, _default)
        if rule is not None and (rule.effect == "deny" or not approved):
            found.add(agent.agent_no)
    return found


def _judged(
    message: Message,
    agent: Agent | None,
    memory: Memory,
    recipient: Agent | None,
    default: PolicyRule | None,
) -> PolicyRule | None:
    """By what the message says of its sender and by what the registry knows: the stricter counts."""
    rules = memory.rulebook.policies
    if not rules and default is None:
        return None
    said = parties_of(message, agent, memory, recipient)
    tenant_id = memory.tenant.tenant_id
    first = ruling(said, rules, default, tenant_id)
    if agent is None or (first is not None and first.effect == "deny"):
        return first
    known = msgspec.structs.replace(
        said,
        sender_type=forms_of(agent.agent_type) or said.sender_type,
        sender_cluster=forms_of(agent.cluster_id) or said.sender_cluster,
    )
    second = first if known == said else ruling(known, rules, default, tenant_id)
    return second if second is not None and (first is None or second.effect == "deny") else first


def ruling(
    parties: Parties, rules: Sequence[PolicyRule], default: PolicyRule | None, tenant_id: str
) -> PolicyRule | None:
    """The rule that denies or holds; None lets pass."""
    if parties.essential:
        return None
    hold: PolicyRule | None = None
    spoken = default is None
    for test in tests_of(rules, tenant_id):
        effect = test.effect
        if (effect == "allow" and spoken) or (effect == "hold" and hold is not None):
            continue  # it could change nothing any more
        if test.fits(parties):
            if effect == "deny":
                return test.rule
            spoken = True
            hold = test.rule if effect == "hold" else hold
    return hold if spoken else default


def _evaluated(passage: Passage, rule: PolicyRule, now_ns: int) -> Draft:
    session, message = passage.session, passage.message
    assert session is not None  # placement is an earlier stage
    detail = {
        "rule_id": rule.rule_id,
        "effect": rule.effect,
        "session_id": session.session_id,
        "step_id": passage.step_id,
        "agent_id": message.sender_id,
        "recipient": message.recipient,
        # Not as `av.message.digest`: that is for the event a message is archived under.
        "message_digest": "sha256:" + message.digest.hex(),
    }
    summary = f"policy {rule.rule_id}: {rule.effect} {message.message_type} of {message.sender_id}"
    return of_message(passage, "policy_evaluated", summary, detail, now_ns)


def shuts_out(rule: PolicyRule) -> bool:
    """Whether it denies every agent its steps. A rule on one tool, cluster, sender or type does not."""
    match = rule.match

    def is_wide(words: tuple[str, ...]) -> bool:
        return not words or not EVERYBODY.isdisjoint(map(place_of, words))

    steps = not match.message_type or words_of(match.message_type).fit(("decision_log",))
    return (
        rule.effect == "deny"
        and rule.enabled
        and steps
        and all(map(is_wide, (match.sender, match.recipient, match.tool, match.cluster)))
    )


def locks_out(rules: Sequence[PolicyRule]) -> bool:
    """Whether under these rules no agent can send a step any more."""
    return any(map(shuts_out, rules)) or (
        _default is not None and all(rule.effect == "deny" or not rule.enabled for rule in rules)
    )
