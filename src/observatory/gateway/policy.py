"""Policy: who may say what to whom (ruling 31). How rules are made is in `rulemaking.py`.

Law: deny wins over hold, hold over allow, whatever their order; among rules of one effect the first in
order is the one that is named and whose quorum and deadline count. Essential traffic is never denied nor
held. What no rule speaks of passes, unless the house's default is `deny`. A denied message is archived as
refused. Every denial and hold is audited. Pure over memory: without rules and with the
default `allow` a message costs one test here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from observatory.gateway.draft import of_message
from observatory.gateway.passage import Gate, Passage
from observatory.protocol.answers import Refused
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.message import Message
from observatory.protocol.rulebook import Match, PolicyRule, is_essential
from observatory.rows import Agent
from observatory.state import Draft, Memory, Verdict

DEFAULT_RULE = PolicyRule(
    rule_id="default", position=0, effect="deny", match=Match(), note="no rule allows this message"
)
# Words that every agent answers to; `*` in any place counts too.
EVERYBODY = frozenset({"*", "type:*", "agt_*"})
PLACES = ("type", "cluster", "session")
# The house's default as a rule: None allows. Set once at start, from the setting `policy_default`.
_default: PolicyRule | None = None


def settle(default: Literal["allow", "deny"]) -> None:
    """What holds where no rule speaks, for every tenant of this house."""
    global _default
    _default = DEFAULT_RULE if default == "deny" else None


def default_effect() -> Literal["allow", "deny"]:
    return "allow" if _default is None else "deny"


class Parties(msgspec.Struct, frozen=True, gc=False):
    """What of a message rules can speak of: between whom, of which type, with which tool."""

    message_type: str
    tool: str | None
    sender: tuple[str, ...]
    sender_type: str | None
    sender_cluster: str | None
    recipient: tuple[str, ...] = ()
    recipient_type: str | None = None
    recipient_cluster: str | None = None
    recipient_session: str | None = None
    essential: bool = False
    # The entity id of a recipient nobody has registered: a name makes it, so a rule may speak of either.
    unmet: tuple[str, str] | None = None  # its tenant, then the id


def check(passage: Passage, memory: Memory, now_ns: int) -> Verdict | None:
    """The stage."""
    if not memory.rulebook.policies and _default is None:
        return None
    if passage.message.sender_type == "user":  # rules are for what agents say, and the house to agents
        return None
    rule = _judged(passage.message, passage.agent, memory)
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
    refused = Refused(reason="policy_denied", detail=detail, rule_id=rule.rule_id)
    return Verdict(403, refused, [event], archived=True)


def denies(
    message: Message, agent: Agent | None, memory: Memory, recipient: Agent | None = None
) -> PolicyRule | None:
    """The rule that denies this message now: asked again at release; `recipient` is who would get it."""
    rule = _judged(message, agent, memory, recipient)
    return rule if rule is not None and rule.effect == "deny" else None


def asks(message: Message, agent: Agent | None, memory: Memory) -> PolicyRule | None:
    """The rule by which a person must see this message first."""
    rule = _judged(message, agent, memory)
    return rule if rule is not None and rule.effect == "hold" else None


def _judged(
    message: Message, agent: Agent | None, memory: Memory, recipient: Agent | None = None
) -> PolicyRule | None:
    """By what the message says of its sender and by what the registry knows: the stricter counts."""
    rules = memory.rulebook.policies
    if not rules and _default is None:
        return None
    said = parties_of(message, agent, memory, recipient)
    first = ruling(said, rules, _default)
    if agent is None or (first is not None and first.effect == "deny"):
        return first
    known = msgspec.structs.replace(
        said,
        sender_type=agent.agent_type or said.sender_type,
        sender_cluster=agent.cluster_id or said.sender_cluster,
    )
    second = first if known == said else ruling(known, rules, _default)
    return second if second is not None and (first is None or second.effect == "deny") else first


def ruling(parties: Parties, rules: Sequence[PolicyRule], default: PolicyRule | None) -> PolicyRule | None:
    """The rule that denies or holds; None lets pass."""
    if parties.essential:
        return None
    hold: PolicyRule | None = None
    spoken = default is None
    for test in tests_of(rules):
        effect = test.effect
        if (effect == "allow" and spoken) or (effect == "hold" and hold is not None):
            continue  # it could change nothing any more
        if test.fits(parties):
            if effect == "deny":
                return test.rule
            spoken = True
            hold = test.rule if effect == "hold" else hold
    return hold if spoken else default


def parties_of(
    message: Message, agent: Agent | None, memory: Memory, recipient: Agent | None = None
) -> Parties:
    sender: tuple[str, ...] = (message.sender_id,)
    sender_type, sender_cluster = message.agent_type, message.cluster_id
    if agent is not None:  # the registry's word, where the message itself says nothing
        sender = (agent.agent_id, agent.entity_id)
        sender_type, sender_cluster = sender_type or agent.agent_type, sender_cluster or agent.cluster_id
    names, kind, cluster, session = _addressed(message.recipient, message.recipient_type)
    unmet = None
    if recipient is None and names and message.recipient_type in (None, "agent"):
        tenant_id = memory.tenant.tenant_id
        entity_id = agent_entity_id(tenant_id, names[0])
        recipient = memory.agents.get(entity_id)
        unmet = (tenant_id, entity_id) if recipient is None else None
    if recipient is not None:
        names += (recipient.agent_id, recipient.entity_id)
        kind, cluster = kind or recipient.agent_type, cluster or recipient.cluster_id
    return Parties(
        message.message_type,
        message.tool,
        sender,
        sender_type,
        sender_cluster,
        names,
        kind,
        cluster,
        session,
        is_essential(message.message_type, message.recipient_type),
        unmet,
    )


def _addressed(
    to: str | None, kind: str | None
) -> tuple[tuple[str, ...], str | None, str | None, str | None]:
    """Names, type, cluster, session: a place is no name, lest `t*` mean every `type:…`."""
    if to is None:
        return (), None, None, None
    place, _, rest = to.partition(":")
    if kind is not None or not rest or place not in PLACES:
        return (to,), None, None, None
    return (
        (),
        rest if place == "type" else None,
        rest if place == "cluster" else None,
        rest if place == "session" else None,
    )


class Words(msgspec.Struct, frozen=True, gc=False):
    """Words of a rule, ready to be looked up: whole ones, and the stems of those that end in `*`."""

    whole: frozenset[str]
    stems: tuple[str, ...]

    def fit(self, name: str | None) -> bool:
        return name is not None and (name in self.whole or name.startswith(self.stems))


class Party(msgspec.Struct, frozen=True, gc=False):
    """One side of a rule. A place is no name: `t*` means names that begin so, not every `type:…`."""

    names: Words
    # `type:`, `cluster:` and `session:`; None when no word speaks of places, as in most rules.
    places: tuple[Words, Words, Words] | None
    anyone: bool

    def fits(
        self, names: tuple[str, ...], kind: str | None, cluster: str | None, session: str | None
    ) -> bool:
        whole, stems = self.names.whole, self.names.stems
        for name in names:
            if name in whole or name.startswith(stems):
                return True
        if self.anyone and (kind or cluster or session):
            return True
        if self.places is None:
            return False
        types, clusters, sessions = self.places
        return types.fit(kind) or clusters.fit(cluster) or sessions.fit(session)

    def means(self, tenant_id: str, entity_id: str) -> bool:
        """Whether one of its whole names has this id."""
        return any(agent_entity_id(tenant_id, name) == entity_id for name in self.names.whole)


class Test(msgspec.Struct, frozen=True, gc=False):
    """A rule as it is asked; what is None matches everything."""

    rule: PolicyRule
    effect: str
    message_type: Words | None
    tool: Words | None
    cluster: Words | None
    sender: Party | None
    recipient: Party | None

    def fits(self, asked: Parties) -> bool:
        side = self.sender
        if side is not None and not side.fits(asked.sender, asked.sender_type, asked.sender_cluster, None):
            return False
        side = self.recipient
        if (
            side is not None
            and not side.fits(
                asked.recipient, asked.recipient_type, asked.recipient_cluster, asked.recipient_session
            )
            and not (asked.unmet is not None and side.means(*asked.unmet))
        ):
            return False
        return (
            (self.message_type is None or self.message_type.fit(asked.message_type))
            and (self.tool is None or self.tool.fit(asked.tool))
            and (self.cluster is None or self.cluster.fit(asked.sender_cluster))
        )


# By the identity of a rulebook's tuple, which is kept with it: a tenant's rules are read once a change.
_tests: dict[int, tuple[Sequence[PolicyRule], tuple[Test, ...]]] = {}
_KEPT = 256


def tests_of(rules: Sequence[PolicyRule]) -> tuple[Test, ...]:
    known = _tests.get(id(rules))
    if known is not None and known[0] is rules:
        return known[1]
    if len(_tests) >= _KEPT:
        _tests.clear()
    made = tuple(_test(rule) for rule in rules if rule.enabled)
    _tests[id(rules)] = (rules, made)
    return made


def _test(rule: PolicyRule) -> Test:
    match = rule.match
    return Test(
        rule,
        rule.effect,
        _words(match.message_type) if match.message_type else None,
        _words(match.tool) if match.tool else None,
        _words(match.cluster) if match.cluster else None,
        _party(match.sender) if match.sender else None,
        _party(match.recipient) if match.recipient else None,
    )


def _words(words: Sequence[str]) -> Words:
    stems = tuple(word[:-1] for word in words if word[-1] == "*")
    return Words(frozenset(word for word in words if word[-1] != "*"), stems)


def _party(words: Sequence[str]) -> Party:
    sorted_out: dict[str, list[str]] = {"": [], **{place: [] for place in PLACES}}
    for word in words:
        place, _, rest = word.partition(":")
        is_place = bool(rest) and place in PLACES
        sorted_out[place if is_place else ""].append(rest if is_place else word)
    names, types, clusters, sessions = map(_words, sorted_out.values())
    speaks = any(sorted_out[place] for place in PLACES)
    return Party(names, (types, clusters, sessions) if speaks else None, "*" in words)


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
        return not words or not EVERYBODY.isdisjoint(words)

    steps = not match.message_type or _words(match.message_type).fit("decision_log")
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
