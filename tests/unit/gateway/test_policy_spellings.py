"""Every way to name a party gives the same verdict (S940, S941): generated rules, 24,000 messages."""

from __future__ import annotations

import json
import random
import unicodedata
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observatory.ledger.chain import GENESIS_HASH, ChainHead
from observatory.pipeline import agents as registry
from observatory.pipeline import policy
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.matching import place_of
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.rows import SessionRow, TenantRow
from observatory.pipeline.state import BatchState, Principal, TenantConfig
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.look_alikes import LOOK_ALIKES
from observatory.protocol.message import Message
from observatory.protocol.tenant_config import Match, PolicyRule
from tests.samples import decision_log

TENANT = "tnt_default"
WHO = Principal(tenant_id=TENANT, role="agent", key_id="key_1")
NAMES = ("payments-1", "payments-2", "scout")
TYPES = ("clerk", "coder")
CLUSTERS = ("vault", "yard")
TOOLS = ("shell", "delete_file", "deploy_prod")
EXAMPLES, SPELT = 500, 8  # of each of six: 24,000 messages
LIKE = {
    "a": "аɑα", "c": "сⅽ", "d": "ԁⅾ", "e": "еé", "i": "іı", "l": "ⅼӏ", "n": "ո", "o": "оοσ", "p": "рρ",
    "r": "г", "s": "ѕ", "t": "τт", "u": "υս", "y": "у", "m": "м", "h": "һ", "f": "ꓝ", "_": "＿", "-": "‐－",
    "A": "АΑ", "C": "СϹ", "E": "ЕΕ", "H": "НΗ", "M": "МΜ", "N": "Ν", "O": "ОΟ", "P": "РΡ", "S": "Ѕ",
    "T": "ТΤ",
}  # fmt: skip
for plain, signs in LOOK_ALIKES.items():
    LIKE[plain] = LIKE.get(plain, "") + signs[:2]
UNSEEN = "\u200b\u200d\u2060\u00ad\u202e\ufe0f\u034f\u2066\U000e0020\u180e "

words = st.lists(
    st.sampled_from(
        (*NAMES, "payments*", "pay*", "type:clerk", "type:c*", "cluster:vault", "cluster:y*", "*")
    ),
    max_size=2,
)
matches = st.fixed_dictionaries(
    {
        "sender": words,
        "recipient": words,
        "tool": st.lists(st.sampled_from((*TOOLS, "de*", "(none)")), max_size=2),
        "cluster": st.lists(st.sampled_from((*CLUSTERS, "va*")), max_size=1),
    }
)
rules = st.lists(
    st.tuples(st.sampled_from(["allow", "deny", "hold"]), matches, st.integers(0, 3)), min_size=1, max_size=3
)
parties = st.tuples(
    st.sampled_from(NAMES),
    st.sampled_from((*NAMES, "type:clerk", "cluster:vault", None)),
    st.sampled_from((*TOOLS, None)),
    st.sampled_from(TYPES),
    st.sampled_from((*CLUSTERS, None)),
)
Case = tuple[str, str | None, str | None, str, str | None]
seeds = st.integers(0, 2**32)


def message() -> Message:
    found = intercept(json.dumps(decision_log()).encode())
    assert isinstance(found, Message)
    return found


BASE = message()


def respelt(word: str, dice: random.Random) -> str:
    """The word as an attacker writes it: case, alphabet, Unicode form, and what nobody sees between."""
    case = dice.choice((str.lower, str.upper, str.title, str))
    signs = [dice.choice(LIKE[sign]) if sign in LIKE and dice.random() < 0.4 else sign for sign in case(word)]
    signs = [
        chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" and dice.random() < 0.1 else sign for sign in signs
    ]
    for _ in range(dice.randrange(3)):
        signs.insert(dice.randrange(len(signs) + 1), dice.choice(UNSEEN))
    return unicodedata.normalize(dice.choice(("NFC", "NFD")), "".join(signs))


def ruled(word: str, dice: random.Random) -> str:
    """A word of a rule as an operator may write it: a place and its colon too, the star as it is."""
    if word == "(none)":
        return word
    place, colon, rest = word.rpartition(":")
    star = "*" if rest.endswith("*") else ""
    stem = rest.removesuffix("*")
    head = dice.choice((place, place.title(), place.upper(), place + " ")) if place else ""
    return head + dice.choice((colon, "：" if colon else "")) + (respelt(stem, dice) if stem else "") + star


def book(drawn: list[tuple[Any, dict[str, list[str]], int]], respell: random.Random | None) -> TenantConfig:
    """The rules, their words respelt too, sometimes."""
    made = []
    for number, (effect, match, chance) in enumerate(drawn):
        lists = {
            side: tuple(ruled(word, respell) if respell and not chance else word for word in said)
            for side, said in match.items()
        }
        made.append(PolicyRule(rule_id=f"pol_{number}", position=1, effect=effect, match=Match(**lists)))
    return TenantConfig(policies=tuple(made))


def memory_of(tenant_config: TenantConfig) -> BatchState:
    return BatchState(TenantRow(tenant_id=TENANT, tenant_no=1), ChainHead(0, GENESIS_HASH), tenant_config)


def verdict(
    memory: BatchState,
    sender: str,
    recipient: str | None,
    tool: str | None,
    kind: str | None,
    cluster: str | None = None,
) -> str:
    """Through the stages that name the sender and judge the message."""
    said = {"tool": tool, "agent_type": kind, "cluster_id": cluster}
    sent = msgspec.structs.replace(BASE, sender_id=sender, recipient=recipient, **said)
    session = SessionRow(session_no=1, session_id="s", trace_id="0" * 31 + "1")
    ctx = MessageContext(sent, WHO, 0, session=session, entity_id=agent_entity_id(TENANT, sender))
    registry.find_or_create_agent(ctx, memory, 0)
    if policy.check(ctx, memory, 0) is not None:
        return "deny"
    return "hold" if ctx.gates else "allow"


def received(tool: str | None, dice: random.Random) -> str | None:
    return None if tool is None else respelt(tool, dice)


def placed(recipient: str | None, dice: random.Random) -> str | None:
    """A place keeps its prefix: another word before the colon is a name, and no place is meant."""
    if recipient is None:
        return None
    place, colon, rest = recipient.rpartition(":")
    return place + colon + respelt(rest, dice)


@pytest.mark.parametrize("default", ["allow", "deny"])
@pytest.mark.parametrize("way", ["spelling", "id of a name that was seen", "id first, its name since"])
def test_the_verdict_does_not_change_with_the_spelling_s940(way: str, default: Any) -> None:
    """S940, S942."""

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(rules, parties, seeds)
    def holds(drawn: list[Any], who: Case, seed: int) -> None:
        sender, recipient, tool, kind, cluster = who
        tenant_config, dice = book(drawn, None), random.Random(seed)
        expected = verdict(memory_of(tenant_config), sender, recipient, tool, kind, cluster)
        for _ in range(SPELT):
            memory, again = memory_of(book(drawn, dice)), sender
            to = placed(recipient, dice)
            entity_id = agent_entity_id(TENANT, sender)
            if way == "spelling":
                again = respelt(sender, dice)
            elif way == "id of a name that was seen":
                verdict(memory, sender, None, None, kind)
                again = entity_id
            else:
                verdict(memory, entity_id, None, None, kind)
                verdict(memory, sender, None, None, kind)
                again = dice.choice((entity_id, sender))
            if recipient in NAMES and way != "spelling":
                verdict(memory, recipient, None, None, None)
                to = agent_entity_id(TENANT, recipient)
            found = verdict(
                memory, again, to, received(tool, dice), respelt(kind, dice), received(cluster, dice)
            )
            assert found == expected

    policy.set_default_effect(default)
    try:
        holds()
    finally:
        policy.set_default_effect("allow")


STRICTNESS = ["allow", "hold", "deny"]


@settings(max_examples=EXAMPLES, deadline=None)
@given(rules, parties)
def test_an_id_whose_name_was_never_seen_leads_past_no_rule_s941(drawn: list[Any], who: Case) -> None:
    """S941: as strict as its name, and by whole names just the same."""
    sender, recipient, tool, kind, cluster = who
    tenant_config = book(drawn, None)
    expected = verdict(memory_of(tenant_config), sender, recipient, tool, kind, cluster)
    to = agent_entity_id(TENANT, recipient) if recipient in NAMES and recipient else recipient
    found = verdict(memory_of(tenant_config), agent_entity_id(TENANT, sender), to, tool, kind, cluster)
    assert STRICTNESS.index(found) >= STRICTNESS.index(expected)
    if not any(
        place_of(word)[0] == "" and word.endswith("*")
        for _, match, _ in drawn
        for word in match["sender"] + match["recipient"]
    ):
        assert found == expected
