"""Agents' inboxes on both databases: what is pending, with what content, for whom, and when no more."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from observatory.features.inbox import commands as inbox
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.ports import InboxDelivery, KillSwitchCoverage, PendingFilter
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import HOME_TENANT, Command, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol.identity import DeliveryKey
from observatory.protocol.otel import span_id_of
from tests.contract.conftest import OTHER_TENANT, Harness
from tests.samples import decision_log

GATEWAY_PRINCIPAL = Principal(tenant_id=HOME_TENANT, role="admin", key_id="sys_gateway")


def log(session: str, agent: str = "worker") -> dict[str, Any]:
    body = decision_log()
    body["meta"] |= {"session_id": session, "step_id": str(uuid.uuid4()), "trace_id": str(uuid.uuid4())}
    body["identity"]["agent_id"] = agent
    return body


class Mesh:
    """A sender and a reader who share a session; the sender's messages are put into the reader's inbox."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.session = str(uuid.uuid4())
        self.sender, self.reader = self._row("sender"), self._row("reader")
        [found] = harness.read(harness.store.rows(HOME_TENANT, "sessions", session_id=self.session))
        self.session_no: int = found["session_no"]
        self.trace_id: str = found["trace_id"]

    def _row(self, name: str) -> dict[str, Any]:
        self.harness.send(log(self.session, name))
        [row] = self.harness.read(self.harness.store.rows(HOME_TENANT, "agents", agent_id=name))
        return row

    def send(self, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        body = body or log(self.session, "sender")
        [verdict] = self.harness.send(body)
        assert verdict.code == 202
        return verdict.answer.sequence_number, body

    def tell(self, kind: str, body: dict[str, Any] | None = None, *, to: int = 0, **more: Any) -> int:
        """Through an act, as everybody does it; the number of the delivery."""
        values = {"session_no": self.session_no} | more

        def decide(uow: UnitOfWork) -> SubmissionResult:
            number = uow.append(gateway_event(HOME_TENANT, "setting_changed", "told", uow.now_ns))
            uow.deliver(number, to or self.reader["agent_no"], kind, body or {}, **values)
            return SubmissionResult(200, number)

        number: int = self.act(decide)
        return number

    def act(self, decide: Any, read_set: ReadSet | None = None) -> Any:
        [verdict] = self.harness.submit(
            Command(GATEWAY_PRINCIPAL, self.harness.now(), decide, read_set or ReadSet())
        )
        assert verdict.code == 200, verdict.answer
        return verdict.answer

    def write(self, table: str, **values: Any) -> None:
        def decide(uow: UnitOfWork) -> SubmissionResult:
            uow.changes.writes.append(RowWrite(table, {"tenant_id": HOME_TENANT} | values))
            return SubmissionResult(200, None)

        self.act(decide)

    def pending(self, limit: int = 100, **where: Any) -> list[InboxDelivery]:
        asked = PendingFilter(agent_no=self.reader["agent_no"], **where)
        return self.harness.read(self.harness.store.pending(HOME_TENANT, asked, limit))

    def facts(self, *numbers: int) -> dict[DeliveryKey, InboxDelivery]:
        keys = [(number, self.reader["agent_no"]) for number in numbers]
        found = self.harness.read(self.harness.store.deliveries(HOME_TENANT, keys, False))
        return {(fact.sequence_number, fact.agent_no): fact for fact in found}

    def ack(self, *numbers: int) -> inbox.AckResult:
        ids = [f"dlv_{number}-{self.reader['agent_no']}" for number in numbers]
        act = inbox.ack(
            GATEWAY_PRINCIPAL, self.reader["entity_id"], ids, self.facts(*numbers), self.harness.now()
        )
        [verdict] = self.harness.submit(act)
        assert verdict.code == 200, verdict.answer
        acked: inbox.AckResult = verdict.answer
        return acked

    def names(self) -> list[str]:
        return [json.loads(event.record)["body"]["event_type"] for event in self.harness.trail_of()]


@pytest.fixture
def mesh(harness: Harness) -> Mesh:
    return Mesh(harness)


def numbers(found: list[InboxDelivery]) -> list[int]:
    return [one.sequence_number for one in found]


@pytest.mark.req(504)
def test_a_message_is_read_with_its_content_its_sender_and_its_trace_s100_s107(mesh: Mesh) -> None:
    """S100, S107: trace of the session, span of the message, whatever event delivers it."""
    number, sent = mesh.send()
    received = mesh.tell("message", message_seq=number, sender_no=mesh.sender["agent_no"])
    [found] = mesh.pending()
    assert (found.sequence_number, found.kind, found.session_id) == (received, "message", mesh.session)
    assert found.raw is not None and json.loads(found.raw) == sent
    assert (found.sender_id, found.sender_entity) == ("sender", mesh.sender["entity_id"])
    assert found.trace_id == mesh.trace_id
    assert found.message_type == "decision_log" and found.message_id is not None
    assert found.span_id == span_id_of(sent["meta"]["step_id"])


def test_the_span_of_a_command_is_that_of_its_event_s107(mesh: Mesh) -> None:
    """S107."""
    number = mesh.tell("hold", {"reason": "paused"})
    [found] = mesh.pending()
    assert found.trace_id == mesh.trace_id
    assert found.span_id == json.loads(mesh.harness.trail_of()[number - 1].record)["span_id"]


def test_what_belongs_to_no_session_has_no_trace_s107(mesh: Mesh) -> None:
    """S107."""
    mesh.tell("instruction", {"version": 3}, session_no=0)
    [found] = mesh.pending()
    assert (found.session_id, found.trace_id, found.span_id, found.raw) == (None, None, None, None)


def hold_row(mesh: Mesh, number: int, rewrite_seq: int | None) -> dict[str, Any]:
    [table] = [mesh.harness.store.rows(HOME_TENANT, "holds")]
    assert mesh.harness.read(table) is not None
    return {
        "sequence_number": number, "session_no": mesh.session_no, "agent_no": mesh.sender["agent_no"],
        "message_id": "msg_x", "step_id": "s", "name": "s", "span_id": "b" * 16,
        "message_type": "decision_log", "cause": "pause", "reason": "pause", "state": "released", "gate": 0,
        "digest": b"", "rewrite_seq": rewrite_seq, "quorum": 1, "requested_by": "k", "bound": 0,
        "on_expiry": "deny", "held_ns": 1,
    }  # fmt: skip


@pytest.mark.parametrize("shredded", [False, True])
def test_a_rewritten_message_shows_nothing_of_the_original_s107(mesh: Mesh, shredded: bool) -> None:
    """S107: not even when what replaced it was shredded."""
    number, _ = mesh.send()
    raw = None if shredded else b'{"new":true}'
    row = {"sequence_number": 1, "message_seq": number, "raw": raw, "digest": b"", "created_ns": 1}
    mesh.write("rewrites", **row)
    mesh.write("holds", **hold_row(mesh, number, 1))
    mesh.tell("message", message_seq=number)
    [found] = mesh.pending()
    assert found.raw == raw


def test_content_that_was_shredded_is_absent_s107(mesh: Mesh) -> None:
    """S107."""
    number, _ = mesh.send()
    mesh.tell("message", message_seq=number)
    key = "key & 1099511627775" if mesh.harness.name == "sqlite" else "sequence_number"
    mesh.harness.sql(f"UPDATE payloads SET raw = NULL, salt = NULL, shredded_by = 1 WHERE {key} = {number}")
    [found] = mesh.pending()
    assert found.raw is None and found.message_id is not None


def test_pending_is_in_order_and_in_pages_s100(mesh: Mesh) -> None:
    """S100."""
    received = [mesh.tell(kind) for kind in ("message", "hold", "message", "resume", "message")]
    assert numbers(mesh.pending()) == received
    assert numbers(mesh.pending(limit=2)) == received[:2]
    assert numbers(mesh.pending(after=received[1])) == received[2:]
    assert numbers(mesh.pending(after=received[0], until=received[3])) == received[1:4]
    assert numbers(mesh.pending(kind="message")) == [received[0], received[2], received[4]]


def test_arrivals_tell_of_every_agent_past_a_key_s100(mesh: Mesh) -> None:
    """S100: numbers told to several agents are not cut in two."""
    reader, sender = mesh.reader["agent_no"], mesh.sender["agent_no"]

    def decide(uow: UnitOfWork) -> SubmissionResult:
        number = uow.append(gateway_event(HOME_TENANT, "setting_changed", "to both", uow.now_ns))
        for agent_no in (reader, sender):
            uow.deliver(number, agent_no, "stop", {})
        return SubmissionResult(200, number)

    first, both = mesh.tell("hold"), mesh.act(decide)
    agents = sorted((reader, sender))
    ask = mesh.harness.store.arrivals
    version = mesh.harness.read(mesh.harness.store.rows(HOME_TENANT, "chain_heads"))[0]["access_version"]
    everything = [
        (first, reader, "hold", "pending", version),
        *((both, one, "stop", "pending", version) for one in agents),
    ]
    assert mesh.harness.read(ask(HOME_TENANT, (0, 0), 100)) == everything
    assert mesh.harness.read(ask(HOME_TENANT, (0, 0), 2)) == everything[:2]
    assert mesh.harness.read(ask(HOME_TENANT, (both, agents[0]), 100)) == everything[2:]
    keys = [(first, reader), (both, sender), (both, reader), (both, 99), (9_999, 1)]
    found = mesh.harness.read(mesh.harness.store.deliveries(HOME_TENANT, keys, True))
    assert sorted((one.sequence_number, one.agent_no) for one in found) == sorted(keys[:3])


def test_many_are_found_by_their_keys_s100(mesh: Mesh) -> None:
    """S100: more than fit into one question; one message's content is shared by all who get it."""
    message, sent = mesh.send()
    received = [mesh.tell("message", message_seq=message) for _ in range(120)]
    keys = [(number, mesh.reader["agent_no"]) for number in received]
    found = mesh.harness.read(mesh.harness.store.deliveries(HOME_TENANT, keys, True))
    assert numbers(found) == received
    assert len({id(one.raw) for one in found}) == 1
    assert json.loads(found[0].raw or b"") == sent


@pytest.mark.req(442)
def test_what_is_acknowledged_is_pending_no_more_s103(mesh: Mesh) -> None:
    """S103."""
    message, _ = mesh.send()
    received = [mesh.tell("message", message_seq=message) for _ in range(3)]
    assert mesh.ack(received[0], received[2], 9_999).unknown == [f"dlv_9999-{mesh.reader['agent_no']}"]
    assert numbers(mesh.pending()) == [received[1]]
    assert mesh.names().count("message_read") == 2
    before = mesh.harness.read(mesh.harness.store.head(HOME_TENANT))
    assert len(mesh.ack(received[0]).acked) == 1
    assert mesh.harness.read(mesh.harness.store.head(HOME_TENANT)) == before
    read = json.loads(mesh.harness.trail_of()[-1].record)
    assert (read["severity_number"], read["trace_id"]) == (9, mesh.trace_id)


def test_an_acknowledged_instruction_is_kept_with_its_agent_s106(mesh: Mesh) -> None:
    """S106."""
    agent_no = mesh.reader["agent_no"]
    assert mesh.harness.read(mesh.harness.store.instructed(HOME_TENANT, agent_no)) == 0
    number = mesh.tell("instruction", {"agent_type": "t", "version": 4, "text": "x"}, session_no=0)
    assert mesh.harness.read(mesh.harness.store.instructed(HOME_TENANT, agent_no)) == 4
    mesh.ack(number)
    assert mesh.harness.read(mesh.harness.store.instructed(HOME_TENANT, agent_no)) == 0
    [row] = mesh.harness.read(mesh.harness.store.rows(HOME_TENANT, "agents", agent_no=agent_no))
    assert row["instructions_version"] == 4


def test_whoever_connects_finds_the_instructions_in_force_s106(mesh: Mesh) -> None:
    """S106: written by another act, in the inbox after the connection."""
    kind = mesh.reader["agent_type"]
    row = {"agent_type": kind, "version": 1, "text": "be kind", "note": "", "created_ns": 1}

    def issue(uow: UnitOfWork) -> SubmissionResult:
        values = {"tenant_id": HOME_TENANT, "created_by": "usr_1", **row}
        uow.changes.writes.append(RowWrite("instructions", values))
        uow.memory.tenant.rulebook_version += 1
        return SubmissionResult(200, None)

    mesh.act(issue)
    who, now = GATEWAY_PRINCIPAL, mesh.harness.now()
    act = inbox.connect(who, "reader", now, transport="websocket", agent_type=kind, instructed=0)
    [verdict] = mesh.harness.submit(act)
    assert verdict.answer.instructions == 1
    [found] = mesh.pending()
    assert json.loads(found.body or "")["text"] == "be kind"
    assert mesh.harness.read(mesh.harness.store.instructed(HOME_TENANT, mesh.reader["agent_no"])) == 1


@pytest.mark.req(192)
def test_a_prompt_is_given_or_withdrawn_never_both_s102(mesh: Mesh) -> None:
    """S102: whichever act comes first under the lock wins."""
    agent_no = mesh.reader["agent_no"]
    given, withdrawn = mesh.tell("inject", {"prompt": "a"}), mesh.tell("inject", {"prompt": "b"})

    def withdraw(uow: UnitOfWork) -> SubmissionResult:
        where = {"tenant_id": HOME_TENANT, "sequence_number": withdrawn, "agent_no": agent_no}
        uow.memory.rows["deliveries"][withdrawn, agent_no]["state"] = "withdrawn"
        uow.changes.writes.append(RowWrite("deliveries", {"state": "withdrawn"}, where))
        return SubmissionResult(200, None)

    read_set = ReadSet()
    read_set.row("deliveries", withdrawn)
    keys = [(given, agent_no), (withdrawn, agent_no)]
    _, taken = mesh.harness.submit(
        Command(GATEWAY_PRINCIPAL, mesh.harness.now(), withdraw, read_set),
        inbox.mark_given(GATEWAY_PRINCIPAL, keys, mesh.harness.now()),
    )
    assert taken.answer == keys[:1]
    [found] = mesh.pending()
    assert found.sequence_number == given and found.given_ns is not None


def test_paused_sessions_are_those_of_the_agent_s105(mesh: Mesh) -> None:
    """S105."""
    agent_no = mesh.reader["agent_no"]
    assert mesh.harness.read(mesh.harness.store.paused_sessions(HOME_TENANT, agent_no)) == []

    def pause(uow: UnitOfWork) -> SubmissionResult:
        member = uow.memory.members[mesh.session_no, agent_no]
        member.paused_ns = uow.now_ns
        uow.memory.touch(member)
        uow.append(gateway_event(HOME_TENANT, "setting_changed", "paused", uow.now_ns))
        return SubmissionResult(200, None)

    mesh.act(pause, ReadSet(sessions={mesh.session}))
    assert mesh.harness.read(mesh.harness.store.paused_sessions(HOME_TENANT, agent_no)) == [mesh.session]
    other = mesh.sender["agent_no"]
    assert mesh.harness.read(mesh.harness.store.paused_sessions(HOME_TENANT, other)) == []


def test_engaged_kill_switches_cover_everyone_or_some_s105(mesh: Mesh) -> None:
    """S105."""
    both = frozenset({mesh.sender["agent_no"], mesh.reader["agent_no"]})

    def engage(kill_id: str, scope: str, target: str, state: str = "engaged") -> KillSwitchCoverage:
        row = {"kill_id": kill_id, "scope": scope, "target": target, "state": state, "reason": "r"}
        times = {"created_ns": 1, "expires_ns": 1, "updated_ns": 1, "requested_by": "usr_1"}
        mesh.write("kill_switches", **row, **times)
        return mesh.harness.read(mesh.harness.store.stops(HOME_TENANT))

    assert engage("kill_1", "global", "", "armed") == KillSwitchCoverage()
    assert engage("kill_2", "class", "nobody") == KillSwitchCoverage()
    assert engage("kill_3", "cluster", mesh.reader["cluster_id"]) == KillSwitchCoverage(agents=both)
    everyone = engage("kill_4", "global", "")
    assert everyone.everyone and everyone.covers(12_345)


def test_a_tenant_sees_nothing_of_another_ones_inboxes_s54_s100(mesh: Mesh) -> None:
    """S54, S100."""
    number = mesh.tell("hold")
    mesh.harness.create_tenant(OTHER_TENANT)
    store, agent_no = mesh.harness.store, mesh.reader["agent_no"]
    assert mesh.harness.read(store.arrivals(OTHER_TENANT, (0, 0), 10)) == []
    assert mesh.harness.read(store.pending(OTHER_TENANT, PendingFilter(agent_no=agent_no), 10)) == []
    assert mesh.harness.read(store.deliveries(OTHER_TENANT, [(number, agent_no)], True)) == []
