"""The acts of an agent's channel, over a memory made by hand."""

from typing import Any

import msgspec
import pytest

from observatory.features.inbox import commands as inbox
from observatory.ledger.chain import GENESIS_HASH, ChainHead
from observatory.pipeline.event_writer import EventWriter, system_trace
from observatory.pipeline.message_event import ServiceInfo
from observatory.pipeline.ports import InboxDelivery
from observatory.pipeline.rows import AgentRow, RowWrite, TenantRow
from observatory.pipeline.state import BatchState, Command, Principal, TenantConfig, TransactionChanges
from observatory.protocol.identity import DeliveryKey, delivery_id
from observatory.protocol.tenant_config import KillSwitch

TENANT = "tnt_default"
WHO = Principal(tenant_id=TENANT, role="agent", key_id="key_1")
GATEWAY_PRINCIPAL = Principal(tenant_id=TENANT, role="admin", key_id="sys_gateway")
NOW = 1_700_000_000_000_000_000
WORKER = "agt_worker"


def memory_with(**tenant_config: Any) -> BatchState:
    agent = AgentRow(agent_no=7, entity_id=WORKER, agent_id="worker", agent_type="writer", cluster_id="c1")
    rules = TenantConfig(version=0, **tenant_config)
    tenant = TenantRow(tenant_id=TENANT, tenant_no=1, agents=7)
    return BatchState(tenant, ChainHead(100, GENESIS_HASH), rules, agents={WORKER: agent})


def received(
    memory: BatchState, *deliveries: InboxDelivery, state: str = "pending"
) -> dict[DeliveryKey, InboxDelivery]:
    rows = memory.rows.setdefault("deliveries", {})
    for one in deliveries:
        rows[one.sequence_number, one.agent_no] = {"state": state, "given_ns": one.given_ns, "acked_ns": None}
    return {(one.sequence_number, one.agent_no): one for one in deliveries}


def delivery(number: int, kind: str = "message", **more: Any) -> InboxDelivery:
    body = more.pop("body", {})
    values: dict[str, Any] = {"session_no": 3, "session_id": "s", "trace_id": "a" * 32, "span_id": "b" * 16}
    text = msgspec.json.encode(body).decode()
    return InboxDelivery(
        **{
            "sequence_number": number,
            "agent_no": 7,
            "kind": kind,
            "created_ns": NOW,
            "body": text,
            **values,
            **more,
        }
    )


class Done:
    """One act decided: its answer and what it wrote."""

    def __init__(self, act: Command, memory: BatchState) -> None:
        self.changes = TransactionChanges()
        event_writer = EventWriter(ServiceInfo("observatory", "0", "test"), memory, self.changes, NOW)
        verdict = act.decide(event_writer)
        self.code, self.answer = verdict.code, verdict.answer
        self.events = [msgspec.json.decode(row.record) for row in self.changes.audit]

    @property
    def names(self) -> list[str]:
        return [event["body"]["event_type"] for event in self.events]

    def written(self, table: str) -> list[RowWrite]:
        return [write for write in self.changes.writes if write.table == table]


def acked(memory: BatchState, facts: dict[DeliveryKey, InboxDelivery], *ids: str) -> Done:
    return Done(inbox.ack(WHO, WORKER, ids, facts, NOW), memory)


# --- coming and going ---


def test_an_agent_never_seen_is_enrolled_when_it_connects_s101() -> None:
    """S101."""
    memory = memory_with()
    done = Done(inbox.connect(WHO, "stranger", NOW, transport="websocket"), memory)
    assert done.names == ["agent_registered", "agent_connected"]
    assert done.answer.agent_id == "stranger" and done.answer.agent_no == 8
    assert done.events[1]["severity_number"] == 9
    assert done.events[1]["attributes"]["av.sender.entity_id"] == done.answer.entity_id
    assert done.events[1]["body"]["transport"] == "websocket"


def test_a_poll_of_a_known_agent_writes_nothing_s101() -> None:
    """S101."""
    done = Done(inbox.connect(WHO, WORKER, NOW, transport=None), memory_with())
    assert (done.names, done.changes.writes, done.answer.agent_no) == ([], [], 7)


def test_one_that_was_evicted_is_back_when_it_connects_s101() -> None:
    """S101."""
    memory = memory_with()
    memory.agents[WORKER].evicted_ns = 1
    done = Done(inbox.connect(WHO, WORKER, NOW, transport="sse"), memory)
    assert done.names == ["agent_recovered", "agent_connected"]
    assert memory.agents[WORKER].evicted_ns is None


def test_a_closed_channel_is_told_of_by_the_house_s101() -> None:
    """S101: the agent's key may be the very thing that ended."""
    memory = memory_with()
    welcome = Done(inbox.connect(WHO, WORKER, NOW, transport="sse"), memory).answer
    act = inbox.disconnect(GATEWAY_PRINCIPAL, welcome, "sse", NOW)
    done = Done(act, memory)
    assert act.principal.key_id == "sys_gateway"
    assert done.names == ["agent_disconnected"]
    assert done.events[0]["attributes"]["av.sender.entity_id"] == WORKER


SCOPES = [
    ("global", "", "engaged", True),
    ("cluster", "c1", "engaged", True),
    ("cluster", "c2", "engaged", False),
    ("class", "writer", "engaged", True),
    ("class", "reader", "engaged", False),
    ("global", "", "releasing", False),
]


@pytest.mark.parametrize(("scope", "target", "state", "stopped"), SCOPES)
def test_whoever_comes_learns_whether_it_is_stopped_s105(
    scope: Any, target: str, state: Any, stopped: bool
) -> None:
    """S105."""
    switch = KillSwitch(kill_id="kill_1", scope=scope, target=target, state=state)
    done = Done(inbox.connect(WHO, WORKER, NOW, transport=None), memory_with(kill_switches=(switch,)))
    assert done.answer.stopped is stopped


# --- instructions ---


def instructed(memory: BatchState, version: int) -> BatchState:
    row = {"agent_type": "writer", "version": version, "text": "be brief", "note": "n", "created_ns": 1}
    memory.rows["instructions"] = {("writer", version): row}
    return memory


VERSIONS = [(0, 0, True), (1, 0, True), (2, 0, False), (3, 0, False), (0, 2, False), (0, 1, True)]


@pytest.mark.parametrize(("acknowledged", "waiting", "sent"), VERSIONS)
@pytest.mark.parametrize("transport", ["websocket", None])
def test_instructions_it_has_not_acknowledged_are_put_in_once_s106(
    acknowledged: int, waiting: int, sent: bool, transport: str | None
) -> None:
    """S106: version 2 is in force."""
    memory = instructed(memory_with(instructions={"writer": 2}), 2)
    memory.agents[WORKER].instructions_version = acknowledged
    act = inbox.connect(WHO, WORKER, NOW, transport=transport, agent_type="writer", instructed=waiting)
    assert act.read_set.rows == {"instructions": {"writer"}}
    done = Done(act, memory)
    assert done.answer.instructions == 2
    assert ("instruction_sent" in done.names) is sent
    assert [row.kind for row in done.changes.deliveries] == (["instruction"] if sent else [])
    if sent:
        [row] = done.changes.deliveries
        assert row.body is not None and row.agent_no == 7
        body = {"agent_type": "writer", "version": 2, "text": "be brief", "note": "n"}
        assert msgspec.json.decode(row.body) == body


def test_acknowledged_instructions_are_the_agents_version_and_never_an_older_one_s106() -> None:
    """S106."""
    memory = memory_with()
    new, old = (delivery(n, "instruction", body={"version": v}, session_no=0, session_id=None, trace_id=None)
                for n, v in ((10, 5), (11, 4)))  # fmt: skip
    done = acked(memory, received(memory, new, old), "dlv_10-7", "dlv_11-7")
    assert memory.agents[WORKER].instructions_version == 5
    assert memory.agents[WORKER] in memory.changed
    assert done.names == ["message_read", "message_read"]
    assert done.events[0]["body"]["kind"] == "instruction" and done.events[0]["body"]["version"] == 5
    assert done.events[0]["trace_id"] == system_trace(TENANT)


# --- acknowledging ---


@pytest.mark.parametrize(
    ("kind", "body", "event"),
    [
        ("message", {}, "message_read"),
        ("decision", {"decision_id": "dec_1"}, "message_read"),
        ("inject", {"intervention_id": "int_1"}, "message_read"),
        ("hold", {"intervention_id": "int_1"}, "pause_acknowledged"),
        ("resume", {"intervention_id": "int_1"}, None),
        ("verdict", {}, None),
        ("stop", {}, None),
        ("cancel", {}, None),
    ],
)
def test_an_acknowledgement_ends_the_delivery_and_is_told_by_kind_s103(
    kind: str, body: dict[str, Any], event: str | None
) -> None:
    """S103."""
    memory = memory_with()
    one = delivery(10, kind, body=body, message_id="msg_1", message_type="text")
    done = acked(memory, received(memory, one), "dlv_10-7")
    assert done.answer == inbox.AckResult(acked=["dlv_10-7"], unknown=[])
    [write] = done.written("deliveries")
    assert write.values == {"state": "acked", "acked_ns": NOW}
    assert write.where == {"tenant_id": TENANT, "sequence_number": [10], "agent_no": 7}
    assert done.names == ([] if event is None else [event])
    for told_of in done.events:
        assert told_of["trace_id"] == "a" * 32 and told_of["parent_span_id"] == "b" * 16
        assert told_of["body"]["delivery_id"] == "dlv_10-7" and told_of["body"]["message_id"] == "msg_1"
        assert told_of["severity_number"] == 9


def test_acknowledging_twice_changes_nothing_more_s103() -> None:
    """S103: neither in one request, nor in the next of the same batch."""
    memory = memory_with()
    facts = received(memory, delivery(10))
    first = acked(memory, facts, "dlv_10-7", "dlv_10-7")
    assert (first.answer.acked, len(first.events)) == (["dlv_10-7"], 1)
    again = acked(memory, facts, "dlv_10-7")
    assert again.answer.acked == ["dlv_10-7"]
    assert (again.events, again.changes.writes) == ([], [])


STRANGE = ["dlv_11-7", "dlv_10-8", "dlv_10", "dlv_0-7", "10-7", "", "dlv_10-7\n", "dlv_99999999999999-7"]


def test_what_is_not_its_own_is_reported_and_spoils_nothing_s103() -> None:
    """S103: unknown, foreign, malformed and withdrawn ids beside a good one."""
    memory = memory_with()
    facts = received(memory, delivery(10), delivery(10, agent_no=8)) | received(
        memory, delivery(12, "inject"), state="withdrawn"
    )
    done = acked(memory, facts, *STRANGE, "dlv_12-7", "dlv_10-7")
    assert done.answer == inbox.AckResult(acked=["dlv_10-7"], unknown=[*STRANGE, "dlv_12-7"])
    assert len(done.written("deliveries")) == 1


def test_many_are_one_act_s103() -> None:
    """S103."""
    memory = memory_with()
    facts = received(memory, *(delivery(number) for number in range(1, 501)))
    ids = [delivery_id(key) for key in facts]
    act = inbox.ack(WHO, WORKER, ids, facts, NOW)
    assert act.read_set.rows["deliveries"] == set(range(1, 501))
    done = Done(act, memory)
    assert done.answer.acked == ids and len(done.events) == 500


def test_an_agent_that_is_not_known_has_nothing_to_acknowledge_s103() -> None:
    """S103."""
    done = Done(inbox.ack(WHO, "agt_nobody", ["dlv_10-7"], {}, NOW), memory_with())
    assert done.code == 404


def test_an_acknowledged_pause_is_so_in_its_intervention_once_s104() -> None:
    """S104."""
    memory = memory_with()
    memory.rows["interventions"] = {"int_1": {"sequence_number": 9, "acknowledged_ns": None}}
    facts = received(memory, *(delivery(n, "hold", body={"intervention_id": "int_1"}) for n in (10, 11)))
    assert inbox.ack(WHO, WORKER, [], facts, NOW).read_set.rows["interventions"] == {"int_1"}
    done = acked(memory, facts, "dlv_10-7", "dlv_11-7")
    [write] = done.written("interventions")
    assert write.values == {"acknowledged_ns": NOW, "proven": 0}
    assert write.where == {"tenant_id": TENANT, "sequence_number": 9}
    assert done.events[0]["body"]["intervention_id"] == "int_1"


@pytest.mark.parametrize(("before", "after"), [("answered", "executing"), ("succeeded", "succeeded")])
def test_a_decision_that_reached_its_agent_is_being_executed_s104(before: str, after: str) -> None:
    """S104."""
    memory = memory_with()
    memory.rows["decisions"] = {"dec_1": {"state": before, "updated_ns": 0}}
    facts = received(memory, delivery(10, "decision", body={"decision_id": "dec_1"}))
    done = acked(memory, facts, "dlv_10-7")
    assert memory.rows["decisions"]["dec_1"]["state"] == after
    assert len(done.written("decisions")) == (before != after)


# --- what may be withdrawn ---


def test_a_prompt_is_marked_as_given_once_and_a_withdrawn_one_is_not_given_s102() -> None:
    """S102."""
    memory = memory_with()
    received(memory, delivery(10, "inject"), delivery(11, "inject", given_ns=5))
    received(memory, delivery(12, "inject"), state="withdrawn")
    keys = [(10, 7), (11, 7), (12, 7), (13, 7)]
    done = Done(inbox.mark_given(GATEWAY_PRINCIPAL, keys, NOW), memory)
    assert done.answer == [(10, 7), (11, 7)]
    [write] = done.written("deliveries")
    assert write.values == {"given_ns": NOW}
    assert memory.rows["deliveries"][10, 7]["given_ns"] == NOW
    assert done.names == []


@pytest.mark.parametrize("key", [(1, 1), (123, 45), (10**13 - 1, 10**13 - 1)])
def test_an_id_names_its_delivery_s103(key: DeliveryKey) -> None:
    """S103."""
    assert inbox.key_of(delivery_id(key)) == key
