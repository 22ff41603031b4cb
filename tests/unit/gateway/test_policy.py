"""Policy as pure functions: which rule speaks, what wins, and what never can be stopped."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observatory.features.policies import routes_dry_run as dry_run
from observatory.ledger.chain import GENESIS_HASH, ChainHead
from observatory.pipeline import policy
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.ports import EventFilter, MessageFilter, StoredEvent, StoredMessage
from observatory.pipeline.rows import AgentRow, SessionRow, TenantRow
from observatory.pipeline.state import BatchState, IncomingMessage, Principal, SubmissionResult, TenantConfig
from observatory.pipeline.system_message import MessageTarget, message_id_of, system_message
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.message import Message
from observatory.protocol.tenant_config import ESSENTIAL, Effect, Match, PolicyRule
from tests.samples import MESSAGE_TYPES, decision_log, envelope

TENANT = "tnt_default"
WHO = Principal(tenant_id=TENANT, role="agent", key_id="key_1")
RANK = {"deny": 0, "hold": 1, "allow": 2}


@pytest.fixture(autouse=True)
def default_allow() -> Iterator[None]:
    yield
    policy.set_default_effect("allow")


def rule(effect: Effect, rule_id: str = "pol_1", **more: Any) -> PolicyRule:
    words = {name: tuple(more.pop(name)) for name in list(more) if name in Match.__struct_fields__}
    return PolicyRule(rule_id=rule_id, position=1, effect=effect, match=Match(**words), **more)


def memory_of(*rules: PolicyRule) -> BatchState:
    memory = BatchState(
        TenantRow(tenant_id=TENANT, tenant_no=1), ChainHead(0, GENESIS_HASH), TenantConfig(policies=rules)
    )
    for number, (name, kind, cluster) in enumerate(
        [("researcher-alpha-9", "web_researcher", "c-1"), ("writer-1", "writer", "c-2")], 1
    ):
        entity_id = agent_entity_id(TENANT, name)
        memory.agents[entity_id] = AgentRow(
            agent_no=number, entity_id=entity_id, agent_id=name, agent_type=kind, cluster_id=cluster
        )
    return memory


def passage_of(sent: dict[str, Any], memory: BatchState) -> MessageContext:
    message = intercept(json.dumps(sent).encode())
    assert isinstance(message, Message)
    entity_id = agent_entity_id(TENANT, message.sender_id)
    return MessageContext(
        message,
        WHO,
        0,
        agent=memory.agents.get(entity_id),
        session=SessionRow(session_no=1, session_id="s", trace_id="0" * 31 + "1"),
        entity_id=entity_id,
        step_id="step",
    )


def outcome(sent: dict[str, Any], *rules: PolicyRule) -> str:
    memory = memory_of(*rules)
    ctx = passage_of(sent, memory)
    verdict = policy.check(ctx, memory, 0)
    if verdict is not None:
        assert verdict.code == 403 and verdict.archived
        return "deny"
    return "hold" if ctx.gates else "allow"


def log(**identity: Any) -> dict[str, Any]:
    return decision_log(identity=identity)


@pytest.mark.parametrize(
    ("match", "sent", "hit"),
    [
        ({}, log(), True),
        ({"sender": ["researcher-alpha-9"]}, log(), True),
        ({"sender": [agent_entity_id(TENANT, "researcher-alpha-9")]}, log(), True),
        ({"sender": ["researcher-*"]}, log(), True),
        ({"sender": ["researcher"]}, log(), False),
        ({"sender": ["writer-*", "researcher-*"]}, log(), True),
        ({"sender": ["type:web_researcher"]}, log(), True),
        ({"sender": ["type:web*"]}, log(), True),
        ({"sender": ["type:writer"]}, log(), False),
        ({"sender": ["t*"]}, log(), False),  # names that begin with t, not every `type:`
        ({"sender": ["c*"]}, log(), False),
        ({"sender": ["cluster:aws-eu-*"]}, log(), True),
        ({"sender": ["type:*"]}, log(), True),
        ({"sender": ["*"]}, log(), True),
        ({"recipient": ["*"]}, log(), False),
        ({"recipient": ["*"]}, log(recipient="cluster:c-2"), True),
        ({"recipient": ["writer-1"]}, log(recipient="writer-1"), True),
        ({"recipient": [agent_entity_id(TENANT, "writer-1")]}, log(recipient="writer-1"), True),
        ({"recipient": ["writer-1"]}, log(recipient=agent_entity_id(TENANT, "writer-1")), True),
        # An agent nobody has met is still who its name says, however it is addressed.
        ({"recipient": ["ghost"]}, log(recipient="ghost"), True),
        ({"recipient": ["ghost"]}, log(recipient=agent_entity_id(TENANT, "ghost")), True),
        ({"recipient": ["ghost"]}, log(recipient=agent_entity_id("tnt_other", "ghost")), False),
        ({"recipient": ["ghost"]}, log(recipient=agent_entity_id(TENANT, "ghoul")), False),
        ({"recipient": ["type:writer"]}, log(recipient="writer-1"), True),
        ({"recipient": ["type:writer"]}, log(recipient="type:writer"), True),
        ({"recipient": ["cluster:c-2"]}, log(recipient="writer-1"), True),
        ({"recipient": ["cluster:c-2"]}, log(recipient="cluster:c-2"), True),
        ({"recipient": ["cluster:c-2"]}, log(recipient="type:writer"), False),
        ({"recipient": ["t*"]}, log(recipient="type:writer"), False),
        ({"recipient": ["session:s-*"]}, log(recipient="session:s-1"), True),
        ({"tool": ["serp_search"]}, log(), True),
        ({"tool": ["serp_*"]}, log(), True),
        ({"tool": ["shell"]}, log(), False),
        ({"tool": ["*"]}, decision_log(action={"tool_call": None}), False),
        ({"cluster": ["aws-eu-central-1-mesh-04"]}, log(), True),
        ({"cluster": ["us-*"]}, log(), False),
        ({"cluster": ["c-1"]}, decision_log(meta={"cluster_id": None}), True),  # as the registry knows it
        ({"message_type": ["text"]}, log(), False),
        ({"message_type": ["text"]}, envelope("text"), True),
        ({"sender": ["researcher-*"], "tool": ["shell"]}, log(), False),
        ({"sender": ["researcher-*"], "tool": ["serp_search"]}, log(), True),
    ],
)
def test_a_rule_matches_what_it_names_and_nothing_else_s146(
    match: dict[str, Any], sent: dict[str, Any], hit: bool
) -> None:
    assert outcome(sent, rule("deny", **match)) == ("deny" if hit else "allow")


@pytest.mark.parametrize("word", ["ghost", "gho*", agent_entity_id(TENANT, "ghost")])
def test_a_rule_on_a_name_holds_for_what_the_house_says_to_an_agent_nobody_has_met_s464(word: str) -> None:
    """S464: a job's message is judged by the target's name, registered or not."""
    arrival = system_message(
        WHO,
        message_id=message_id_of("job_1", 1, 0),
        sender="sys_scheduler",
        target=MessageTarget("agent", "ghost"),
        intent="sweep",
        payload={},
        session_id=None,
        at_ns=10**18,
        now_ns=10**18,
    )
    assert isinstance(arrival, IncomingMessage)
    spoken = policy.denies(arrival.message, None, memory_of(rule("deny", recipient=[word])))
    assert spoken is not None and spoken.rule_id == "pol_1"
    assert policy.denies(arrival.message, None, memory_of(rule("deny", recipient=["ghoul"]))) is None


EFFECTS = st.lists(st.sampled_from(["allow", "deny", "hold"]), max_size=6)


@given(EFFECTS, st.sampled_from(["allow", "deny"]))
def test_deny_wins_over_hold_over_allow_whatever_the_order_s147(effects: list[Effect], default: Any) -> None:
    policy.set_default_effect(default)
    try:
        found = outcome(log(), *(rule(effect, f"pol_{n}") for n, effect in enumerate(effects)))
    finally:
        policy.set_default_effect("allow")
    assert found == (min(effects, key=RANK.__getitem__) if effects else default)


def test_of_one_effect_the_first_in_order_is_named_s147() -> None:
    memory = memory_of(
        rule("allow", "pol_0"),
        rule("hold", "pol_1", quorum=2, deadline_s=60, on_expiry="approve"),
        rule("hold", "pol_2"),
    )
    ctx = passage_of(log(), memory)
    assert policy.check(ctx, memory, 5) is None
    (gate,) = ctx.gates
    assert (gate.reason, gate.rule_id, gate.quorum) == ("policy", "pol_1", 2)
    assert (gate.deadline_ns, gate.on_expiry) == (60_000_000_005, "approve")
    (event,) = ctx.events
    assert (event.event_type, event.severity, event.detail["rule_id"]) == ("policy_evaluated", 10, "pol_1")


def test_a_denial_names_its_rule_and_is_archived_s148() -> None:
    memory = memory_of(rule("deny", "pol_9", tool=["serp_search"]))
    verdict = policy.check(passage_of(log(), memory), memory, 0)
    assert isinstance(verdict, SubmissionResult)
    assert (verdict.code, verdict.archived) == (403, True)
    assert (verdict.answer.reason, verdict.answer.rule_id) == ("policy_denied", "pol_9")
    (event,) = verdict.events
    assert (event.event_type, event.detail["effect"]) == ("policy_evaluated", "deny")
    assert event.trace_id == "0" * 31 + "1" and event.session_no == 1


@pytest.mark.parametrize("default", ["allow", "deny"])
@pytest.mark.parametrize("effect", ["deny", "hold"])
def test_essential_traffic_is_never_stopped_s149(effect: Effect, default: Any) -> None:
    policy.set_default_effect(default)
    for kind in MESSAGE_TYPES:
        assert outcome(envelope(kind), rule(effect)) == ("allow" if kind in ESSENTIAL else effect)


def test_under_the_default_deny_only_what_a_rule_allows_passes_s147() -> None:
    policy.set_default_effect("deny")
    assert policy.default_effect() == "deny"
    assert outcome(log()) == "deny"
    assert outcome(log(), rule("allow", sender=["writer-*"])) == "deny"
    assert outcome(log(), rule("allow", sender=["researcher-*"])) == "allow"
    # A hold speaks of it too: after a person's word it may go on.
    assert outcome(log(), rule("hold", sender=["researcher-*"])) == "hold"


def test_what_is_asked_again_at_release_is_only_whether_it_is_denied_s148() -> None:
    message, agent = passage_of(log(recipient="type:writer"), memory_of()).message, None
    assert policy.denies(message, agent, memory_of()) is None
    assert policy.denies(message, agent, memory_of(rule("hold"))) is None
    denying = memory_of(rule("deny", "pol_3", recipient=["writer-1"]))
    assert policy.denies(message, agent, denying) is None
    # Who would really get it, once the router has chosen.
    chosen = denying.agents[agent_entity_id(TENANT, "writer-1")]
    found = policy.denies(message, agent, denying, recipient=chosen)
    assert found is not None and found.rule_id == "pol_3"
    policy.set_default_effect("deny")
    assert policy.denies(message, agent, memory_of()) is policy.DEFAULT_RULE


@pytest.mark.parametrize(
    ("effect", "match", "shut"),
    [
        ("deny", {}, True),
        ("deny", {"sender": ["*"]}, True),
        ("deny", {"sender": ["type:*"], "recipient": ["*"]}, True),
        ("deny", {"sender": ["agt_*", "x"]}, True),
        ("deny", {"message_type": ["decision_*"]}, True),
        ("deny", {"tool": ["*"]}, True),
        ("deny", {"tool": ["shell"]}, False),
        ("deny", {"sender": ["researcher-*"]}, False),
        ("deny", {"message_type": ["text"]}, False),
        ("deny", {"cluster": ["c-1"]}, False),
        ("hold", {}, False),
        ("allow", {}, False),
    ],
)
def test_a_rule_that_locks_everyone_out_is_known_s151(
    effect: Effect, match: dict[str, Any], shut: bool
) -> None:
    assert policy.denies_every_step(rule(effect, **match)) is shut
    assert policy.allows_no_step([rule("allow"), rule(effect, **match)]) is shut


def test_under_the_default_deny_the_last_allowing_rule_is_the_door_s151() -> None:
    assert not policy.allows_no_step([])
    policy.set_default_effect("deny")
    assert policy.allows_no_step([]) and policy.allows_no_step([rule("deny", tool=["x"])])
    assert not policy.allows_no_step([rule("hold", tool=["x"])])


BEGIN = 86_400_000_000_000


class Archive:
    """Event n was written n seconds after `BEGIN`, and each is a message of the same agent."""

    def __init__(self, events: int) -> None:
        self.events_written = events
        self.raw = json.dumps(log()).encode()

    async def head(self, tenant_id: str) -> tuple[int, str]:
        return self.events_written, GENESIS_HASH

    async def rows(self, tenant_id: str, table: str, **where: Any) -> list[dict[str, Any]]:
        return []

    async def events(
        self, tenant_id: str, where: EventFilter, limit: int, newest_first: bool
    ) -> list[StoredEvent]:
        assert where.after is not None and where.before == where.after + 2
        number = where.after + 1
        record = {"observed_timestamp": from_ns(BEGIN + number * 1_000_000_000), "timestamp": from_ns(0)}
        return [StoredEvent(number, json.dumps(record).encode(), b"")]

    async def messages(
        self, tenant_id: str, where: MessageFilter, limit: int, newest_first: bool
    ) -> list[StoredMessage]:
        first, end = (where.after or 0) + 1, where.before or self.events_written + 1
        numbers = range(first, end)[::-1][:limit]
        kind = "decision_log"
        return [
            StoredMessage(n, f"msg_{n}", "s", str(n), kind, "forwarded", None, False, self.raw)
            for n in numbers
        ]


class Harness:
    def __init__(self, events: int, now_s: int) -> None:
        self.store, self._now_ns = Archive(events), BEGIN + now_s * 1_000_000_000

    def clock(self) -> int:
        return self._now_ns


def tried(harness: Harness, minutes: int) -> dry_run.DryRunAnswer:
    wanted = [rule("deny", sender=["researcher-*"])]
    return asyncio.run(dry_run.dry_run(harness, TENANT, wanted, minutes))  # type: ignore[arg-type]


@pytest.mark.parametrize("events", [0, 1, 59, 60, 61, 199, 200, 201, 1_000])
def test_a_dry_run_looks_back_by_the_gateways_clock_s152(events: int) -> None:
    found = tried(Harness(events, now_s=events), minutes=1)
    # The message written just 60 s ago still counts.
    assert found.looked_at == found.denied == min(events, 61)
    assert not found.capped and len(found.examples) == min(events, 20)


def test_a_dry_run_says_when_it_looked_at_a_part_only_s152(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dry_run, "LOOKED_AT", 450)
    found = tried(Harness(1_000, now_s=1_000), minutes=60)
    assert found.capped and found.looked_at == found.denied == 450
    assert found.examples[0].sequence_number == 1_000
    whole = tried(Harness(450, now_s=450), minutes=60)
    assert not whole.capped and whole.looked_at == 450
    monkeypatch.setattr(dry_run, "LOOKED_BYTES", 0)
    assert tried(Harness(450, now_s=450), minutes=60).looked_at == 1
