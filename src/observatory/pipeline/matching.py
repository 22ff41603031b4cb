"""Matches the parties, type and tool of a message against the patterns of a rule.

Law: every way to name a party gives the same verdict. Patterns are compared by their spellings, names also by
the entity id derived from them, whichever was seen first (ADR-035). An agent known only by an id that was
derived from a name matches every stem of a deny or hold, because it cannot be excluded. Pure; what a rule
compares is computed once for each change of a tenant's rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec

from observatory.pipeline.agents import capabilities_of, types_of
from observatory.pipeline.rows import AgentRow, HoldRow
from observatory.pipeline.state import BatchState
from observatory.protocol.identity import AGENT, agent_entity_id, canonical_id
from observatory.protocol.message import Message
from observatory.protocol.spelling import are_same_name, spellings
from observatory.protocol.tenant_config import NO_TOOL, KillSwitch, Match, PolicyRule, is_essential

PLACES = ("type", "cluster", "session")
# The form of ids that `agent_entity_id` derives from a name: a UUID of version 5. Other ids hide no name.
_MADE_OF_A_NAME = re.compile(
    r"agt_[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
).fullmatch
Forms = tuple[str, ...]


class MessageParties(msgspec.Struct, frozen=True, gc=False):
    """What rules can match in a message, by spellings; an empty tuple means absent."""

    message_type: str
    tool: Forms
    sender: Forms
    sender_type: Forms
    sender_cluster: Forms
    recipient: Forms = ()
    recipient_type: Forms = ()
    recipient_cluster: Forms = ()
    recipient_session: Forms = ()
    essential: bool = False
    # Known only by an id that was derived from a name.
    sender_nameless: bool = False
    recipient_nameless: bool = False


def is_nameless(agent_id: str) -> bool:
    return agent_id.startswith(AGENT) and _MADE_OF_A_NAME(agent_id) is not None


def forms_of(word: str | None) -> Forms:
    return spellings(word) if word else ()


def parties_of(
    message: Message, agent: AgentRow | None, memory: BatchState, recipient: AgentRow | None = None
) -> MessageParties:
    sender = forms_of(message.sender_id)
    sender_type, sender_cluster = message.agent_type, message.cluster_id
    if agent is not None:  # from the registry, where the message itself has nothing
        sender = (*forms_of(agent.agent_id), *forms_of(agent.entity_id))
        sender_type, sender_cluster = sender_type or agent.agent_type, sender_cluster or agent.cluster_id
    names, kind, cluster, session = _addressed(message.recipient, message.recipient_type)
    nameless = False
    if names and message.recipient_type in (None, "agent"):
        entity_id = agent_entity_id(memory.tenant.tenant_id, names)
        recipient = recipient or memory.agents.get(entity_id)
        nameless = is_nameless(names) if recipient is None else is_nameless(recipient.agent_id)
        forms = (*forms_of(names), *forms_of(entity_id))
    else:
        forms = forms_of(names)
    types, clusters = forms_of(kind), forms_of(cluster)
    if recipient is not None:
        forms += (*forms_of(recipient.agent_id), *forms_of(recipient.entity_id))
        # Rules apply to what it claims and to what it was given.
        types_claimed = dict.fromkeys(
            (*capabilities_of(recipient), *types_of(recipient, memory.tenant_config))
        )
        types += tuple(form for one in types_claimed for form in forms_of(one))
        clusters += forms_of(recipient.cluster_id)
        nameless = nameless or is_nameless(recipient.agent_id)
    return MessageParties(
        message.message_type,
        forms_of(message.tool),
        sender,
        forms_of(sender_type),
        forms_of(sender_cluster),
        forms,
        types,
        clusters,
        forms_of(session),
        is_essential(message.message_type, message.recipient_type),
        agent is not None and is_nameless(agent.agent_id),
        nameless,
    )


def _addressed(to: str | None, kind: str | None) -> tuple[str | None, str | None, str | None, str | None]:
    """Name, type, cluster, session: a place is not a name, so that `t*` does not match every `type:…`."""
    if to is None:
        return None, None, None, None
    place, _, rest = to.partition(":")
    if kind is not None or not rest or place not in PLACES:
        return to, None, None, None
    return (
        None,
        rest if place == "type" else None,
        rest if place == "cluster" else None,
        canonical_id(rest) if place == "session" else None,
    )


class PatternSet(msgspec.Struct, frozen=True, gc=False):
    """Patterns of a rule prepared for lookup: whole words, and the stems of those that end in `*`."""

    whole: frozenset[str]
    stems: tuple[str, ...]
    nothing: bool = False  # one of them matches an absent value

    def fit(self, forms: Forms) -> bool:
        if not forms:
            return self.nothing
        return any(form in self.whole or form.startswith(self.stems) for form in forms)


class RuleParty(msgspec.Struct, frozen=True, gc=False):
    """One side of a rule. A place is not a name: `t*` matches names with that prefix, not every `type:…`."""

    names: PatternSet
    # `type:`, `cluster:` and `session:`; None when no pattern names a place, as in most rules.
    places: tuple[PatternSet, PatternSet, PatternSet] | None
    anyone: bool
    by_stem: bool  # has a stem of a name; a deny or hold then matches nameless agents

    def fits(self, names: Forms, kind: Forms, cluster: Forms, session: Forms, nameless: bool) -> bool:
        if names and self.names.fit(names):
            return True
        if nameless and self.by_stem:
            return True
        if self.anyone and (kind or cluster or session):
            return True
        if self.places is None:
            return False
        types, clusters, sessions = self.places
        return types.fit(kind) or clusters.fit(cluster) or sessions.fit(session)


class PreparedRule(msgspec.Struct, frozen=True, gc=False):
    """A rule prepared for matching; a None member matches everything."""

    rule: PolicyRule
    effect: str
    message_type: PatternSet | None
    tool: PatternSet | None
    cluster: PatternSet | None
    sender: RuleParty | None
    recipient: RuleParty | None

    def fits(self, asked: MessageParties) -> bool:
        side = self.sender
        if side is not None and not side.fits(
            asked.sender, asked.sender_type, asked.sender_cluster, (), asked.sender_nameless
        ):
            return False
        side = self.recipient
        if side is not None and not side.fits(
            asked.recipient,
            asked.recipient_type,
            asked.recipient_cluster,
            asked.recipient_session,
            asked.recipient_nameless,
        ):
            return False
        return (
            (self.message_type is None or self.message_type.fit((asked.message_type,)))
            and (self.tool is None or self.tool.fit(asked.tool))
            and (self.cluster is None or self.cluster.fit(asked.sender_cluster))
        )


# By the identity of the policy tuple, which is kept with it: rules are prepared once per change.
_tests: dict[tuple[int, str], tuple[Sequence[PolicyRule], tuple[PreparedRule, ...]]] = {}
_KEPT = 256


def prepared_rules(rules: Sequence[PolicyRule], tenant_id: str) -> tuple[PreparedRule, ...]:
    key = id(rules), tenant_id
    known = _tests.get(key)
    if known is not None and known[0] is rules:
        return known[1]
    if len(_tests) >= _KEPT:
        _tests.clear()
    made = tuple(_test(rule, tenant_id) for rule in rules if rule.enabled)
    _tests[key] = (rules, made)
    return made


def _test(rule: PolicyRule, tenant_id: str) -> PreparedRule:
    match = rule.match
    strict = rule.effect != "allow"
    return PreparedRule(
        rule,
        rule.effect,
        pattern_set(match.message_type) if match.message_type else None,
        _tools(match) if match.tool else None,
        pattern_set(match.cluster) if match.cluster else None,
        _party(match.sender, tenant_id, strict) if match.sender else None,
        _party(match.recipient, tenant_id, strict) if match.recipient else None,
    )


def pattern_set(words: Iterable[str], nothing: bool = False) -> PatternSet:
    """A word without visible characters matches nothing; only `*` itself is a stem of everything."""
    whole: set[str] = set()
    stems: set[str] = set()
    for word in words:
        if word == "*":
            stems.add("")
        elif word[-1] == "*":
            stems.update(spellings(word[:-1]))
        else:
            whole.update(spellings(word))
    return PatternSet(frozenset(whole), tuple(stems), nothing)


def _tools(match: Match) -> PatternSet:
    """`NO_TOOL` is never the name of a tool, even if an agent uses it as one."""
    named = [word for word in match.tool if spellings(word) != (NO_TOOL,)]
    return pattern_set(named, nothing=len(named) < len(match.tool))


def _party(words: Sequence[str], tenant_id: str, strict: bool) -> RuleParty:
    by_place: dict[str, list[str]] = {"": [], **{place: [] for place in PLACES}}
    for word in words:
        place, rest = place_of(word)
        by_place[place].append(canonical_id(rest) if place == "session" else rest)
    names, types, clusters, sessions = map(pattern_set, by_place.values())
    whole = [word for word in by_place[""] if word[-1] != "*"]
    ids = {one for word in whole for one in ids_of(tenant_id, word)}
    by_stem = strict and any(word[-1] == "*" and word[:4] != AGENT for word in by_place[""])
    has_places = any(by_place[place] for place in PLACES)
    return RuleParty(
        PatternSet(names.whole | ids, names.stems),
        (types, clusters, sessions) if has_places else None,
        "*" in words,
        by_stem,
    )


def place_of(word: str) -> tuple[str, str]:
    """The place a pattern names, in any spelling (`Type: clerk`), and its value; else "" and the pattern.

    Taken for a name, such a pattern would deny and hold nothing.
    """
    at = next((at for at, sign in enumerate(word) if are_same_name(sign, ":")), len(word))
    place = next((one for one in PLACES if are_same_name(one, word[:at])), "")
    rest = word[at + 1 :]
    return (place, rest) if place and rest else ("", word)


@lru_cache(maxsize=4_096)
def ids_of(tenant_id: str, name: str) -> frozenset[str]:
    """Entity ids of a name in its usual spellings; an id reveals its name only to a correct guess."""
    usual = {
        name,
        *spellings(name),
        name.strip(),
        name.lower(),
        name.upper(),
        name.capitalize(),
        name.title(),
    }
    return frozenset(agent_entity_id(tenant_id, spelt) for spelt in usual)


def is_agent(word: str, agent: AgentRow, tenant_id: str) -> bool:
    """Whether a word without `*`, a name or an entity id, means this agent."""
    return (
        word in (agent.agent_id, agent.entity_id)
        or are_same_name(word, agent.agent_id)
        or are_same_name(word, agent.entity_id)
        or agent.entity_id in ids_of(tenant_id, word)
    )


def in_scope(switch: KillSwitch, agent: AgentRow | None, sent: Message | HoldRow | None = None) -> bool:
    """Checked against the agent's row and its message: neither a first message nor a changed type or cluster
    leaves a scope."""
    if switch.scope == "global":
        return True
    known = [one for one in (agent, sent) if one is not None]
    if switch.scope == "agent":
        return agent is not None and (
            agent.entity_id == switch.entity_id or are_same_name(agent.agent_id, switch.target)
        )
    if switch.scope == "cluster":
        return any(are_same_name(one.cluster_id, switch.target) for one in known)
    return any(are_same_name(one.agent_type, switch.target) for one in known)
