"""Whom a message reaches, as a pure function over a memory made by hand."""

import hashlib
import json
import uuid
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from observatory.features.registry import commands_eviction as reaping
from observatory.features.registry import router
from observatory.features.registry.routes_routing import problem_with_weights
from observatory.ledger.chain import GENESIS_HASH, ChainHead
from observatory.pipeline.agents import SECOND
from observatory.pipeline.event_writer import EventWriter
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.message_event import ServiceInfo
from observatory.pipeline.ports import BacklogDelivery
from observatory.pipeline.rows import AgentRow, DeliveryRow, MemberRow, SessionRow, TenantRow
from observatory.pipeline.state import BatchState, Principal, ReadSet, TenantConfig, TransactionChanges
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.message import Message
from observatory.protocol.tenant_config import Route
from tests.samples import decision_log, envelope

TENANT = "tnt_default"
NOW = 1_000 * SECOND
KEY = Principal(tenant_id=TENANT, role="agent", key_id="key_1")
GATEWAY_PRINCIPAL = Principal(tenant_id=TENANT, role="admin", key_id="sys_gateway")
SENDER = 99


def agent(number: int, kind: str = "writer", **more: Any) -> AgentRow:
    name = f"a{number}"
    return AgentRow(
        agent_no=number, entity_id=agent_entity_id(TENANT, name), agent_id=name, agent_type=kind, **more
    )


def memory_of(*agents: AgentRow, weights: dict[str, float] | None = None) -> BatchState:
    routes = {} if weights is None else {"writer": Route(capability="writer", weights=weights)}
    memory = BatchState(
        TenantRow(tenant_id=TENANT, tenant_no=1), ChainHead(0, GENESIS_HASH), TenantConfig(routes=routes)
    )
    for one in agents:
        memory.agents[one.entity_id] = one
        memory.fleet.setdefault(f"type:{one.agent_type}", []).append(one.entity_id)
        memory.fleet.setdefault(f"cluster:{one.cluster_id}", []).append(one.entity_id)
    return memory


def beating(memory: BatchState, **silent_s: int) -> BatchState:
    """Pulses: `a1=5` was heard five seconds ago."""
    memory.rows["pulses"] = {int(n[1:]): {"heartbeat_ns": NOW - s * SECOND} for n, s in silent_s.items()}
    return memory


def message_to(recipient: str | None) -> Message:
    found = intercept(json.dumps(decision_log(identity={"recipient": recipient})).encode())
    assert isinstance(found, Message)
    return found


def passage_of(message: Message) -> MessageContext:
    session = SessionRow(session_no=3, session_id="here", trace_id="2" * 32)
    return MessageContext(
        message, KEY, NOW, agent(SENDER, "editor"), session, MemberRow(session_no=3, agent_no=SENDER)
    )


def routed(
    message: Message, memory: BatchState, **more: Any
) -> tuple[list[DeliveryRow], list[dict[str, Any]]]:
    """The deliveries made and the bodies of the events told."""
    event_writer = EventWriter(ServiceInfo("observatory", "0", "test"), memory, TransactionChanges(), NOW)
    ctx = passage_of(message)
    for name, value in more.items():
        setattr(ctx, name, value)
    router.route_message(ctx, event_writer, 7)
    return event_writer.changes.deliveries, [
        msgspec.json.decode(row.record)["body"] for row in event_writer.changes.audit
    ]


def reached(recipient: str, memory: BatchState) -> list[int]:
    return [row.agent_no for row in routed(message_to(recipient), memory)[0]]


def test_a_message_without_an_agent_as_recipient_makes_no_delivery() -> None:
    """S135: nothing is delivered to nobody, to people or to the house."""
    memory = memory_of(agent(1))
    assert routed(message_to(None), memory) == ([], [])
    for kind in ("user", "system"):
        party = {"entity_id": "usr_1", "entity_type": kind}
        found = intercept(json.dumps(envelope("text", recipient=party)).encode())
        assert isinstance(found, Message)
        assert routed(found, memory) == ([], [])
    assert routed(message_to("usr_1"), memory) == ([], [])


@pytest.mark.parametrize("recipient", ["a1", agent_entity_id(TENANT, "a1")])
def test_an_explicit_recipient_is_told_by_name_or_entity_id(recipient: str) -> None:
    """S135"""
    ((row,), events) = routed(message_to(recipient), memory_of(agent(1), agent(2)))
    assert (row.agent_no, row.state, row.address, events) == (1, "pending", None, [])
    assert (row.sequence_number, row.message_seq, row.sender_no, row.session_no) == (7, 7, SENDER, 3)


def test_a_released_message_is_delivered_under_its_release_and_carries_the_archived_one() -> None:
    """S135: the row's number is that of `message_delivered`, its content that of the held message."""
    ((row,), _) = routed(message_to("a1"), memory_of(agent(1)), archived_seq=4)
    assert (row.sequence_number, row.message_seq) == (7, 4)


def test_what_nobody_can_take_is_parked_under_its_address_and_told_of() -> None:
    """S138"""
    for recipient in ("type:writer", "cluster:c1", "session:nowhere", "a1"):
        ((row,), (event,)) = routed(message_to(recipient), memory_of())
        address = agent_entity_id(TENANT, "a1") if recipient == "a1" else recipient
        assert (row.agent_no, row.state, row.address) == (0, "parked", address)
        assert event["event_type"] == "message_undeliverable" and event["address"] == address


def test_nothing_goes_back_to_its_own_sender() -> None:
    """S135: by name it is dropped, by type it is parked for somebody else."""
    me = agent(SENDER, "editor")
    assert reached("a99", memory_of(me)) == []
    assert reached("type:editor", memory_of(me)) == [0]


def test_a_capability_prefers_healthy_over_unknown_over_zombie_and_never_the_evicted() -> None:
    """S136"""
    fleet = [agent(1), agent(2), agent(3), agent(4, evicted_ns=5)]
    assert reached("type:writer", beating(memory_of(*fleet), a1=60, a3=1, a4=1)) == [3]
    assert reached("type:writer", beating(memory_of(*fleet), a1=60, a3=60)) == [2]
    assert reached("type:writer", beating(memory_of(*fleet), a1=60, a2=60, a3=60)) != [4]


def test_without_weights_work_is_spread_evenly_and_the_same_message_goes_the_same_way() -> None:
    """S136"""
    memory = memory_of(*(agent(number, cluster_id="c1") for number in range(1, 5)))
    messages = [message_to("type:writer") for _ in range(800)]
    first = [routed(message, memory)[0][0].agent_no for message in messages]
    assert first == [routed(message, memory)[0][0].agent_no for message in messages]
    assert all(150 <= count <= 250 for count in Counter(first).values()) and len(set(first)) == 4
    assert set(reached("cluster:c1", memory)) < {1, 2, 3, 4}


def test_weights_share_out_the_work_of_a_capability() -> None:
    """S137: clusters and agents by weight; 0 gets none, a dead target lends its share to the others."""
    fleet = [agent(1, cluster_id="a"), agent(2, cluster_id="b"), agent(3, cluster_id="b"), agent(4)]
    weights = {"cluster:a": 3.0, "cluster:b": 1.0, "a4": 0.0}
    memory = memory_of(*fleet, weights=weights)
    got = Counter(routed(message_to("type:writer"), memory)[0][0].agent_no for _ in range(2_000))
    assert 1_350 <= got[1] <= 1_650 and got[4] == 0
    assert 180 <= got[2] <= 320 and 180 <= got[3] <= 320
    fleet[0].evicted_ns = 1
    got = Counter(routed(message_to("type:writer"), memory)[0][0].agent_no for _ in range(200))
    assert set(got) == {2, 3}


def test_who_has_no_weight_is_asked_only_when_no_named_target_has_an_instance() -> None:
    """S137"""
    weights = {"cluster:a": 1.0, "a2": 0.0}
    named, forbidden, other = agent(1, cluster_id="a"), agent(2), agent(3)
    assert reached("type:writer", memory_of(named, forbidden, other, weights=weights)) == [1]
    assert reached("type:writer", memory_of(forbidden, other, weights=weights)) == [3]
    assert reached("type:writer", memory_of(forbidden, weights=weights)) == [0]


@given(
    st.dictionaries(st.sampled_from(["cluster:a", "cluster:b", "a3"]), st.floats(0, 1e6), min_size=1),
    st.binary(min_size=8, max_size=8),
)
def test_whatever_the_weights_a_live_instance_is_found_when_one_may_be_asked(
    weights: dict[str, float], digest: bytes
) -> None:
    """S137"""
    fleet = [agent(1, cluster_id="a"), agent(2, cluster_id="b"), agent(3)]
    memory = memory_of(*fleet, weights=weights)
    chosen = router.choose_agent(memory, "type:writer", hashlib.sha256(digest).digest(), SENDER, NOW)
    may = [1, 2, 3]
    for target, number in (("cluster:a", 1), ("cluster:b", 2), ("a3", 3)):
        if weights.get(target) == 0:
            may.remove(number)
    assert (chosen.agent_no in may) if chosen is not None else not may


def test_a_session_is_told_to_everyone_who_is_in_it_but_the_sender() -> None:
    """S135: who left is not told; ids compare without case and hyphens."""
    memory = memory_of()
    name = str(uuid.uuid4())
    memory.sessions[name] = SessionRow(session_no=5, session_id=name, trace_id="3" * 32, agents=4)
    for number, arrived in ((1, 9), (2, 9), (3, 0), (SENDER, 9)):
        member = MemberRow(session_no=5, agent_no=number, arrived_ns=arrived)
        memory.members[5, number] = member
    memory.members[6, 4] = MemberRow(session_no=6, agent_no=4, arrived_ns=9)
    assert reached(f"session:{name}", memory) == [1, 2]
    assert reached(f"session:{name.replace('-', '').upper()}", memory) == [1, 2]
    memory.members[5, 7] = MemberRow(session_no=5, agent_no=7, arrived_ns=9)
    memory.sessions[name].agents = 5  # somebody came within this batch
    assert reached(f"session:{name}", memory) == [1, 2, 7]


def test_the_rows_a_delivery_needs_are_named_and_a_plain_message_names_none() -> None:
    """S135"""
    read_set = ReadSet()
    router.add_route_reads(message_to(None), TENANT, read_set)
    assert read_set == ReadSet()
    for recipient in ("type:writer", "cluster:c", "session:room", "a1", "usr_1"):
        router.add_route_reads(message_to(recipient), TENANT, read_set)
    assert read_set.addresses == {"type:writer", "cluster:c"} and read_set.sessions == {"room"}
    assert read_set.agents == {agent_entity_id(TENANT, "a1")}


@pytest.mark.parametrize(
    ("weights", "is_good"),
    [
        ({"cluster:a": 1.0}, True),
        ({"a1": 0.0, "cluster:b": 0.5}, True),
        ({}, False),
        ({"cluster:a": -1.0}, False),
        ({"cluster:a": 0.0, "a1": 0.0}, False),
        ({"cluster:a": float("nan")}, False),
        ({"cluster:a": float("inf")}, False),
        ({"cluster:a": 1e308, "cluster:b": 1e308}, False),
        ({"type:writer": 1.0}, False),
        ({"session:s": 1.0}, False),
    ],
)
def test_weights_that_share_out_nothing_are_refused_in_a_sentence(
    weights: dict[str, float], is_good: bool
) -> None:
    """S137"""
    problem = problem_with_weights(weights)
    assert (problem is None) == is_good
    assert is_good or len(str(problem)) > 20


# --- handing on what waits ---


def waiting(memory: BatchState, agent_no: int, address: str | None, state: str) -> BacklogDelivery:
    memory.rows["deliveries"] = {(7, agent_no): {"state": state}}
    return BacklogDelivery(7, agent_no, SENDER, 3, address, 7, "2" * 32)


def handed(
    memory: BatchState, work: BacklogDelivery, holder: str | None, target: str
) -> tuple[list[DeliveryRow], list[str]]:
    event_writer = EventWriter(ServiceInfo("observatory", "0", "test"), memory, TransactionChanges(), NOW)
    reaping.reroute_delivery(GATEWAY_PRINCIPAL, work, holder, target, NOW).decide(event_writer)
    received = [
        str(msgspec.json.decode(row.record)["body"]["event_type"]) for row in event_writer.changes.audit
    ]
    assert bool(event_writer.changes.writes) == bool(event_writer.changes.deliveries)
    return event_writer.changes.deliveries, received


def test_parked_work_goes_to_whoever_comes_and_only_once() -> None:
    """S138"""
    memory = memory_of(agent(1))
    work = waiting(memory, 0, "type:writer", "parked")
    ((row,), received) = handed(memory, work, None, "type:writer")
    assert (row.agent_no, row.state, row.message_seq, received) == (1, "pending", 7, ["message_rerouted"])
    assert row.sequence_number == memory.head.sequence_number  # that of the event which tells of it
    assert handed(memory, work, None, "type:writer") == ([], [])  # a second gateway finds nothing to do


def test_undelivered_work_of_an_evicted_agent_goes_to_another_of_its_capability() -> None:
    """S139"""
    gone, other = agent(1, evicted_ns=5), agent(2)
    memory = memory_of(gone, other)
    work = waiting(memory, 1, None, "pending")
    ((row,), received) = handed(memory, work, gone.entity_id, "type:writer")
    assert (row.agent_no, received) == (2, ["message_rerouted"])


def test_without_another_work_by_name_waits_in_its_inbox_and_work_by_type_is_parked() -> None:
    """S139"""
    gone = agent(1, evicted_ns=5)
    memory = memory_of(gone)
    assert handed(memory, waiting(memory, 1, None, "pending"), gone.entity_id, "type:writer") == ([], [])
    work = waiting(memory, 1, "type:writer", "pending")
    ((row,), received) = handed(memory, work, gone.entity_id, "type:writer")
    assert (row.agent_no, row.state, received) == (0, "parked", ["message_undeliverable"])


@pytest.mark.parametrize("state", ["acked", "rerouted", "parked"])
def test_what_was_acknowledged_or_handed_on_already_stays_as_it_is(state: str) -> None:
    """S139"""
    gone = agent(1, evicted_ns=5)
    memory = memory_of(gone, agent(2))
    assert handed(memory, waiting(memory, 1, None, state), gone.entity_id, "type:writer") == ([], [])


def test_work_of_an_agent_that_came_back_is_left_to_it() -> None:
    """S139"""
    back = agent(1)
    memory = memory_of(back, agent(2))
    assert handed(memory, waiting(memory, 1, None, "pending"), back.entity_id, "type:writer") == ([], [])
