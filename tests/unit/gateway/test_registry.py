"""The Capability Map as pure functions: liveness, first sight, recovery, rooms, registration and pulses."""

import json
from typing import Any

import msgspec
import pytest

from observatory.features.registry import commands as enrolment
from observatory.features.registry import commands_eviction as reaping
from observatory.ledger.chain import GENESIS_HASH, ChainHead
from observatory.pipeline import agents as registry
from observatory.pipeline.agents import SECOND, capabilities_of, liveness
from observatory.pipeline.event_writer import EventWriter
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.message_event import ServiceInfo
from observatory.pipeline.ports import SilentAgent
from observatory.pipeline.rows import AgentRow, AuditRow, MemberRow, SessionRow, TenantRow
from observatory.pipeline.state import (
    BatchState,
    Command,
    Principal,
    SubmissionResult,
    TenantConfig,
    TransactionChanges,
)
from observatory.protocol.message import Message
from observatory.protocol.responses import Refused
from tests.samples import decision_log, envelope

TENANT = "tnt_default"
NOW = 1_000 * SECOND
AGENT_KEY = Principal(tenant_id=TENANT, role="agent", key_id="key_1")
OPERATOR = Principal(tenant_id=TENANT, role="operator", key_id="key_2", user_id="usr_op")
GATEWAY_PRINCIPAL = Principal(tenant_id=TENANT, role="admin", key_id="sys_gateway")


def memory_of(*agents: AgentRow) -> BatchState:
    memory = BatchState(TenantRow(tenant_id=TENANT, tenant_no=1), ChainHead(0, GENESIS_HASH), TenantConfig())
    for agent in agents:
        memory.agents[agent.entity_id] = agent
    memory.tenant.agents = len(agents)
    return memory


def agent(number: int = 1, **more: Any) -> AgentRow:
    return AgentRow(agent_no=number, entity_id=f"agt_{number}", agent_id=f"a{number}", **more)


def event_writer_of(memory: BatchState, now_ns: int = NOW) -> EventWriter:
    return EventWriter(ServiceInfo("observatory", "0", "test"), memory, TransactionChanges(), now_ns)


def passage_of(sent: dict[str, Any], who: AgentRow, member: MemberRow, session: SessionRow) -> MessageContext:
    message = intercept(json.dumps(sent).encode())
    assert isinstance(message, Message)
    return MessageContext(message, AGENT_KEY, NOW, who, session, member, entity_id=who.entity_id)


def run(act: Command, memory: BatchState, now_ns: int = NOW) -> tuple[SubmissionResult, list[str]]:
    """The verdict, and the names of the events it wrote."""
    event_writer = event_writer_of(memory, now_ns)
    verdict = act.decide(event_writer)
    names = [_name(row) for row in event_writer.changes.audit] + [
        event.event_type for event in verdict.events
    ]
    return verdict, names


def _name(row: AuditRow) -> str:
    return str(msgspec.json.decode(row.record)["body"]["event_type"])


def room() -> tuple[SessionRow, MemberRow]:
    session = SessionRow(session_no=1, session_id="room", trace_id="1" * 32)
    return session, MemberRow(session_no=1, agent_no=1)


@pytest.mark.parametrize(
    ("evicted_ns", "silent_s", "expected"),
    [
        (None, 0, "healthy"),
        (None, 30, "healthy"),
        (None, 31, "zombie"),
        (None, 1_000, "zombie"),
        (1, 0, "evicted"),
    ],
)
def test_liveness_goes_by_the_last_heartbeat(evicted_ns: int | None, silent_s: int, expected: str) -> None:
    """S130: silent past one interval is a zombie; evicted stays evicted until it is heard."""
    assert liveness(evicted_ns, NOW - silent_s * SECOND, NOW) == expected


def test_an_agent_never_heard_by_heartbeat_is_unknown() -> None:
    """S130: whatever it sent and however long ago."""
    assert liveness(None, None, NOW) == "unknown"


def test_a_message_of_an_evicted_agent_brings_it_back_and_starts_its_clock_anew() -> None:
    """S133"""
    gone = agent(evicted_ns=5)
    memory = memory_of(gone)
    session, member = room()
    ctx = passage_of(decision_log(), gone, member, session)
    assert registry.join_session(ctx, memory, NOW) is None
    assert [event.event_type for event in ctx.events] == ["agent_recovered"]
    assert gone.evicted_ns is None
    assert ctx.writes[0].values["heartbeat_ns"] == NOW  # else it would be evicted again at once


@pytest.mark.parametrize(
    ("others", "said", "arrived_ns", "joins"),
    [(0, 0, 0, False), (1, 0, 0, True), (1, 3, 7, False), (1, 3, 0, True)],
)
def test_who_speaks_first_in_a_session_of_others_has_joined_the_room(
    others: int, said: int, arrived_ns: int, joins: bool
) -> None:
    """S134: alone it is no room; who was there says nothing new; who left joins again by speaking."""
    me = agent()
    memory, (session, member) = memory_of(me), room()
    member.messages, member.arrived_ns = said, arrived_ns
    session.agents = others + (said > 0)
    ctx = passage_of(decision_log(), me, member, session)
    registry.join_session(ctx, memory, NOW)
    assert [event.event_type for event in ctx.events] == ["agent_joined_room"] * joins


def test_a_heartbeat_message_feeds_the_pulse_with_status_task_and_usage() -> None:
    """S131"""
    me = agent()
    memory, (session, member) = memory_of(me), room()
    event_writer = event_writer_of(memory)
    registry.apply_registry_effects(passage_of(envelope("heartbeat"), me, member, session), event_writer, 1)
    (write,) = event_writer.changes.writes
    assert write.table == "pulses" and write.key == ("tenant_id", "agent_no")
    assert write.values["status"] == "working" and write.values["heartbeat_ns"] == NOW
    assert json.loads(write.values["task"])["progress_pct"] == 67
    assert json.loads(write.values["usage"])["tokens_consumed_24h"] == 14500
    assert memory.rows["pulses"][1]["status"] == "working"  # seen by what follows in this batch


def test_a_plain_message_writes_no_pulse() -> None:
    """S130: liveness is never taken from the last message."""
    me = agent()
    memory, (session, member) = memory_of(me), room()
    event_writer = event_writer_of(memory)
    registry.apply_registry_effects(passage_of(decision_log(), me, member, session), event_writer, 1)
    assert event_writer.changes.writes == []


def beats(memory: BatchState, *received: tuple[int, str]) -> list[bool]:
    """Pulses at these seconds with these statuses; whether each was chained."""
    chained = []
    for at_s, status in received:
        verdict, names = run(
            enrolment.record_heartbeat(AGENT_KEY, "agt_1", 1, {"status": status}, NOW),
            memory,
            NOW + at_s * SECOND,
        )
        assert verdict.code == 200
        chained.append("heartbeat" in names)
    return chained


def test_a_pulse_by_post_is_chained_when_its_status_changes_and_else_once_a_minute() -> None:
    """S131"""
    received = [(0, "idle"), (1, "idle"), (2, "working"), (30, "working"), (62, "working"), (63, "working")]
    assert beats(memory_of(agent()), *received) == [True, False, True, False, True, False]


def test_a_pulse_of_an_unknown_agent_enrols_it_and_one_of_an_evicted_brings_it_back() -> None:
    """S131, S133"""
    memory = memory_of()
    _, names = run(enrolment.record_heartbeat(AGENT_KEY, "new", None, {"cluster_id": "c1"}, NOW), memory)
    assert names == ["agent_registered", "heartbeat"]
    (made,) = memory.agents.values()
    assert made.cluster_id == "c1"
    made.evicted_ns = NOW
    _, names = run(enrolment.record_heartbeat(AGENT_KEY, "new", 1, {}, NOW), memory, NOW + SECOND)
    assert names[0] == "agent_recovered" and made.evicted_ns is None


def test_registration_answers_201_once_and_tells_only_of_changes() -> None:
    """S128"""
    memory = memory_of()
    received = {"agent_type": "writer", "capabilities": '["edit"]', "team_id": "team-1"}
    first, names = run(enrolment.register(AGENT_KEY, "w", received, NOW), memory)
    assert (first.code, names) == (201, ["agent_registered"])
    again, names = run(enrolment.register(AGENT_KEY, "w", received, NOW), memory)
    assert (again.code, names) == (200, [])
    (made,) = memory.agents.values()
    assert capabilities_of(made) == ("writer", "edit") and made.team_id == "team-1"
    assert made.trust_level == "unverified"  # the server's word: the key was not bound


def test_a_bound_key_makes_its_agent_verified_and_no_agent_takes_an_owner_over() -> None:
    """S128, S129"""
    memory = memory_of(agent(owner_id="usr_anna"))
    bound = Principal(tenant_id=TENANT, role="agent", key_id="key_3", agent_id="agt_1")
    refused, names = run(enrolment.register(bound, "agt_1", {"owner_id": "usr_eve"}, NOW), memory)
    assert (refused.code, names) == (403, []) and isinstance(refused.answer, Refused)
    assert memory.agents["agt_1"].owner_id == "usr_anna"
    run(enrolment.register(bound, "agt_1", {}, NOW), memory)
    assert memory.agents["agt_1"].trust_level == "tenant_verified"
    run(enrolment.register(OPERATOR, "agt_1", {"owner_id": "usr_eve"}, NOW), memory)
    assert memory.agents["agt_1"].owner_id == "usr_eve"


def test_leaving_a_room_is_told_once_and_the_unknown_are_not_found() -> None:
    """S134"""
    memory, (session, member) = memory_of(agent()), room()
    member.arrived_ns = 7
    memory.sessions["room"], memory.members[1, 1] = session, member
    left, names = run(enrolment.leave_session_command(AGENT_KEY, "room", "agt_1", NOW), memory)
    assert (left.answer["state"], names) == ("left", ["agent_left_room"])
    again, names = run(enrolment.leave_session_command(AGENT_KEY, "room", "agt_1", NOW), memory)
    assert (again.answer["state"], names) == ("already_left", [])
    assert run(enrolment.leave_session_command(AGENT_KEY, "elsewhere", "agt_1", NOW), memory)[0].code == 404
    assert run(enrolment.leave_session_command(AGENT_KEY, "room", "agt_9", NOW), memory)[0].code == 404


@pytest.mark.parametrize(("silent_s", "evicted"), [(89, False), (90, True)])
def test_eviction_looks_at_the_pulse_again_under_the_lock(silent_s: int, evicted: bool) -> None:
    """S132: who was heard meanwhile stays; a second gateway finds nothing to do."""
    memory = memory_of(agent())
    memory.rows["pulses"] = {1: {"heartbeat_ns": NOW - silent_s * SECOND}}
    act = reaping.evict(GATEWAY_PRINCIPAL, SilentAgent(1, "agt_1", 0), NOW)
    verdict, names = run(act, memory)
    assert (verdict.answer, names) == (int(evicted), ["agent_evicted"] * evicted)
    assert (memory.agents["agt_1"].evicted_ns is not None) == evicted
    assert run(act, memory)[1] == []


def test_an_agent_without_a_pulse_is_never_evicted() -> None:
    """S130, S132"""
    assert run(reaping.evict(GATEWAY_PRINCIPAL, SilentAgent(1, "agt_1", 0), NOW), memory_of(agent()))[1] == []


def test_the_evicted_leave_their_rooms_and_the_recovered_stay() -> None:
    """S134"""
    gone = agent(evicted_ns=NOW)
    memory, (session, member) = memory_of(gone), room()
    member.arrived_ns = 7
    memory.sessions["room"], memory.members[1, 1] = session, member
    gone.evicted_ns = None
    assert run(reaping.leave_sessions(GATEWAY_PRINCIPAL, "agt_1", ["room"], NOW), memory)[1] == []
    gone.evicted_ns = NOW
    assert run(reaping.leave_sessions(GATEWAY_PRINCIPAL, "agt_1", ["room", "unknown"], NOW), memory)[1] == [
        "agent_left_room"
    ]
    assert member.arrived_ns == 0
