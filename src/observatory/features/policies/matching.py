"""What rules compare: the parties, type and tool of a message against the words of a rule.

Law: every way to name a party gives the same verdict. Words are compared by their spellings, names also by
the entity id they make, whoever was seen first under which (ADR-035). An agent known by nothing but an id
that a name makes fits every stem of a deny or hold: nobody can say that it does not. Pure; what a rule
compares is worked out once for each change of a tenant's rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec

from observatory.features.registry.stage import capabilities_of, types_of
from observatory.pipeline.rows import Agent
from observatory.pipeline.state import Memory
from observatory.protocol.identity import AGENT, agent_entity_id, canonical_id
from observatory.protocol.message import Message
from observatory.protocol.rulebook import NO_TOOL, Match, PolicyRule, is_essential
from observatory.protocol.spelling import are_same, spellings

PLACES = ("type", "cluster", "session")
# What `agent_entity_id` makes of a name: a UUID of version 5. Any other id hides none.
_MADE_OF_A_NAME = re.compile(
    r"agt_[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
).fullmatch
Forms = tuple[str, ...]


class Parties(msgspec.Struct, frozen=True, gc=False):
    """What of a message rules can speak of, by spellings; an empty one is not there."""

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
    # Known by an id alone, which some name has made.
    sender_nameless: bool = False
    recipient_nameless: bool = False


def is_nameless(agent_id: str) -> bool:
    return agent_id.startswith(AGENT) and _MADE_OF_A_NAME(agent_id) is not None


def forms_of(word: str | None) -> Forms:
    return spellings(word) if word else ()


def parties_of(
    message: Message, agent: Agent | None, memory: Memory, recipient: Agent | None = None
) -> Parties:
    sender = forms_of(message.sender_id)
    sender_type, sender_cluster = message.agent_type, message.cluster_id
    if agent is not None:  # the registry's word, where the message itself says nothing
        sender = (*forms_of(agent.agent_id), *forms_of(agent.entity_id))
        sender_type, sender_cluster = sender_type or agent.agent_type, sender_cluster or agent.cluster_id
    names, kind, cluster, session = _addressed(message.recipient, message.recipient_type)
    nameless = False
    if names and message.recipient_type in (None, "agent"):
        entity_id = agent_entity_id(memory.tenant.tenant_id, names)
        recipient = recipient or memory.agents.get(entity_id)
        nameless = is_nameless(names) if recipient is None else is_nameless(recipient.agent_id)
        met = (*forms_of(names), *forms_of(entity_id))
    else:
        met = forms_of(names)
    types, clusters = forms_of(kind), forms_of(cluster)
    if recipient is not None:
        met += (*forms_of(recipient.agent_id), *forms_of(recipient.entity_id))
        # Rules hold for what it claims and for what it was given.
        able = dict.fromkeys((*capabilities_of(recipient), *types_of(recipient, memory.rulebook)))
        types += tuple(form for one in able for form in forms_of(one))
        clusters += forms_of(recipient.cluster_id)
        nameless = nameless or is_nameless(recipient.agent_id)
    return Parties(
        message.message_type,
        forms_of(message.tool),
        sender,
        forms_of(sender_type),
        forms_of(sender_cluster),
        met,
        types,
        clusters,
        forms_of(session),
        is_essential(message.message_type, message.recipient_type),
        agent is not None and is_nameless(agent.agent_id),
        nameless,
    )


def _addressed(to: str | None, kind: str | None) -> tuple[str | None, str | None, str | None, str | None]:
    """Name, type, cluster, session: a place is no name, lest `t*` mean every `type:…`."""
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


class Words(msgspec.Struct, frozen=True, gc=False):
    """Words of a rule, ready to be looked up: whole ones, and the stems of those that end in `*`."""

    whole: frozenset[str]
    stems: tuple[str, ...]
    nothing: bool = False  # one of them means that there is none

    def fit(self, forms: Forms) -> bool:
        if not forms:
            return self.nothing
        return any(form in self.whole or form.startswith(self.stems) for form in forms)


class Party(msgspec.Struct, frozen=True, gc=False):
    """One side of a rule. A place is no name: `t*` means names that begin so, not every `type:…`."""

    names: Words
    # `type:`, `cluster:` and `session:`; None when no word speaks of places, as in most rules.
    places: tuple[Words, Words, Words] | None
    anyone: bool
    by_stem: bool  # of a name; a deny or hold fits whoever might have one

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


# By the identity of a rulebook's tuple, which is kept with it: a tenant's rules are read once a change.
_tests: dict[tuple[int, str], tuple[Sequence[PolicyRule], tuple[Test, ...]]] = {}
_KEPT = 256


def tests_of(rules: Sequence[PolicyRule], tenant_id: str) -> tuple[Test, ...]:
    key = id(rules), tenant_id
    known = _tests.get(key)
    if known is not None and known[0] is rules:
        return known[1]
    if len(_tests) >= _KEPT:
        _tests.clear()
    made = tuple(_test(rule, tenant_id) for rule in rules if rule.enabled)
    _tests[key] = (rules, made)
    return made


def _test(rule: PolicyRule, tenant_id: str) -> Test:
    match = rule.match
    strict = rule.effect != "allow"
    return Test(
        rule,
        rule.effect,
        words_of(match.message_type) if match.message_type else None,
        _tools(match) if match.tool else None,
        words_of(match.cluster) if match.cluster else None,
        _party(match.sender, tenant_id, strict) if match.sender else None,
        _party(match.recipient, tenant_id, strict) if match.recipient else None,
    )


def words_of(words: Iterable[str], nothing: bool = False) -> Words:
    """A word that is drawn as nothing means nothing; only `*` itself is a stem of everything."""
    whole: set[str] = set()
    stems: set[str] = set()
    for word in words:
        if word == "*":
            stems.add("")
        elif word[-1] == "*":
            stems.update(spellings(word[:-1]))
        else:
            whole.update(spellings(word))
    return Words(frozenset(whole), tuple(stems), nothing)


def _tools(match: Match) -> Words:
    """`NO_TOOL` is never the name of a tool, also where an agent calls one so."""
    named = [word for word in match.tool if spellings(word) != (NO_TOOL,)]
    return words_of(named, nothing=len(named) < len(match.tool))


def _party(words: Sequence[str], tenant_id: str, strict: bool) -> Party:
    sorted_out: dict[str, list[str]] = {"": [], **{place: [] for place in PLACES}}
    for word in words:
        place, rest = place_of(word)
        sorted_out[place].append(canonical_id(rest) if place == "session" else rest)
    names, types, clusters, sessions = map(words_of, sorted_out.values())
    whole = [word for word in sorted_out[""] if word[-1] != "*"]
    ids = {one for word in whole for one in ids_of(tenant_id, word)}
    by_stem = strict and any(word[-1] == "*" and word[:4] != AGENT for word in sorted_out[""])
    speaks = any(sorted_out[place] for place in PLACES)
    return Party(
        Words(names.whole | ids, names.stems),
        (types, clusters, sessions) if speaks else None,
        "*" in words,
        by_stem,
    )


def place_of(word: str) -> tuple[str, str]:
    """The place a rule's word means, in any spelling (`Type: clerk`), and which; else "" and the word.

    Taken for a name, such a word would deny and hold nothing.
    """
    at = next((at for at, sign in enumerate(word) if are_same(sign, ":")), len(word))
    place = next((one for one in PLACES if are_same(one, word[:at])), "")
    rest = word[at + 1 :]
    return (place, rest) if place and rest else ("", word)


@lru_cache(maxsize=4_096)
def ids_of(tenant_id: str, name: str) -> frozenset[str]:
    """Entity ids of a name in its usual spellings; an id tells its name only to who guesses it."""
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


def is_agent(word: str, agent: Agent, tenant_id: str) -> bool:
    """Whether a whole word, a name or an entity id, means this agent."""
    return (
        word in (agent.agent_id, agent.entity_id)
        or are_same(word, agent.agent_id)
        or are_same(word, agent.entity_id)
        or agent.entity_id in ids_of(tenant_id, word)
    )
