"""The agent's channel end to end: socket, stream and poll; at least once, in order, until acknowledged."""

from __future__ import annotations

import json
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from observatory.protocol.otel import parse_traceparent, span_id_of
from tests.flows.databases import ALONE
from tests.flows.server import Server
from tests.flows.worker import WAIT_S, Agent, Json, bound_key, engage, hello, ids, say, take
from tests.samples import decision_log


@pytest.fixture
def agent(either_server: Server) -> Agent:
    """Promises are kept on both databases."""
    return Agent(either_server)


@pytest.fixture
def lone(server: Server) -> Agent:
    """For what only the door decides."""
    return Agent(server)


@pytest.mark.req(443, 444)
def test_opening_and_closing_a_channel_is_told_of_s101(agent: Agent) -> None:
    """S101: an agent nobody has seen may connect and is enrolled."""
    with agent.channel() as socket:
        frame = hello(socket)
        assert (frame["agent_id"], frame["paused"], frame["stopped"]) == (agent.name, [], False)
        assert agent.server.http("admin").get(f"/v1/agents/{agent.name}").status_code == 200
    both = agent.comes_to_tell(2, "agent_connected", "agent_disconnected")
    assert [event["body"]["event_type"] for event in both] == ["agent_connected", "agent_disconnected"]
    assert [event["severity_number"] for event in both] == [9, 9]
    assert all(event["attributes"]["av.sender.entity_id"] == frame["entity_id"] for event in both)


def test_polls_neither_connect_nor_disconnect_s101(lone: Agent) -> None:
    """S101: they enrol an agent nobody has seen, and write nothing else."""
    assert lone.poll() == [] and lone.poll(wait=0.05) == []
    names = ("agent_registered", "agent_connected", "agent_disconnected")
    assert [event["body"]["event_type"] for event in lone.trail(*names)] == ["agent_registered"]


@pytest.mark.req(504)
def test_a_message_crosses_with_its_trace_s100_s107(agent: Agent) -> None:
    """S100, S107: in the sender's own words, and the reader can go on in the same trace."""
    agent.step()
    with agent.channel() as socket:
        hello(socket)
        sent = agent.hear_from("sender-1")
        [frame] = take(socket)
    assert frame["message"] == sent and frame["kind"] == "message"
    assert frame["sender"]["agent_id"] == "sender-1"
    assert frame["session_id"] == agent.session
    traced = parse_traceparent(frame["traceparent"])
    assert traced is not None
    assert traced[:2] == (agent.session.replace("-", ""), span_id_of(sent["meta"]["step_id"]))


@pytest.mark.req(133, 188)
def test_a_pause_reaches_the_agent_as_hold_and_its_acknowledgement_is_told_s104(agent: Agent) -> None:
    """S104."""
    agent.step()
    with agent.channel() as socket:
        hello(socket)
        done = agent.command("pause")
        [frame] = take(socket)
        assert frame["kind"] == "hold" and frame["body"]["reason"] == "paused"
        assert frame["body"]["intervention_id"] == done["intervention_id"]
        assert say(socket, op="ack", ids=ids([frame])) == {"type": "acked", "ids": ids([frame])}
    [event] = agent.trail("pause_acknowledged")
    assert event["body"]["intervention_id"] == done["intervention_id"]
    with agent.channel() as socket:
        assert hello(socket)["paused"] == [agent.session]
    agent.command("unpause")
    assert [item["kind"] for item in agent.poll()] == ["resume"]


@pytest.mark.req(103, 192)
def test_an_injected_prompt_arrives_and_cannot_be_withdrawn_any_more_s102(agent: Agent) -> None:
    """S102."""
    agent.step()
    operator = agent.server.http("operator")
    with agent.channel() as socket:
        hello(socket)
        done = agent.command("inject", prompt="use the primary source")
        [frame] = take(socket)
        assert (frame["kind"], frame["body"]["prompt"]) == ("inject", "use the primary source")
        assert frame["body"]["interrupt_signal"] == "inject"
        undone = operator.post(f"/v1/interventions/{done['intervention_id']}/undo")
        assert undone.status_code == 409, undone.text
    agent.ack(frame["delivery_id"])
    later = agent.command("inject", prompt="never mind")
    assert operator.post(f"/v1/interventions/{later['intervention_id']}/undo").status_code == 200
    assert agent.poll() == []


def test_whatever_is_not_acknowledged_comes_again_with_the_next_connection_s100(agent: Agent) -> None:
    """S100: by whichever way, in order, until it is acknowledged."""
    agent.step()
    for number in range(40):
        agent.hear_from(f"sender-{number % 3}")
    with agent.channel() as socket:
        hello(socket)
        first = take(socket, 40)
    numbers = [frame["sequence_number"] for frame in first]
    assert numbers == sorted(set(numbers))
    with agent.channel() as socket:
        hello(socket)
        assert ids(take(socket, 40)) == ids(first)
        answer = say(socket, op="ack", ids=ids(first[:39]))
        assert answer["ids"] == ids(first[:39])
    assert [item["delivery_id"] for item in agent.poll()] == ids(first[39:])
    assert agent.ack(*ids(first)) == {"acked": ids(first), "unknown": []}
    assert agent.poll() == []
    assert len(agent.trail("message_read")) == 40


def test_acknowledging_is_idempotent_and_reports_what_is_not_ones_own_s103(agent: Agent) -> None:
    """S103."""
    agent.step()
    other = Agent(agent.server)
    other.step()
    agent.hear_from("sender")
    other.hear_from("sender")
    [mine], [foreign] = agent.poll(), other.poll()
    strange = [foreign["delivery_id"], "dlv_1-1", "nonsense"]
    for _ in range(2):
        assert agent.ack(mine["delivery_id"], *strange) == {
            "acked": [mine["delivery_id"]],
            "unknown": strange,
        }
    assert len(agent.trail("message_read")) == 1
    assert len(other.poll()) == 1


@pytest.mark.parametrize("body", [{}, {"ids": []}, {"ids": "dlv_1-1"}, {"ids": ["x"] * 1_001}, {"ids": [1]}])
def test_an_acknowledgement_that_is_none_is_refused_s103(lone: Agent, body: Json) -> None:
    """S103."""
    assert lone._http("POST", "inbox/ack", json=body).status_code == 422


def test_a_poll_waits_for_the_first_and_answers_at_once_then_s100(lone: Agent) -> None:
    """S100."""
    lone.step()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lone.poll, wait=60)
        sent = lone.hear_from("sender")
        [item] = waiting.result(WAIT_S)
    assert item["message"] == sent
    lone.ack(item["delivery_id"])
    assert lone.poll(limit=1) == []
    for code, params in ((400, {"wait": 61}), (400, {"wait": -1}), (400, {"limit": 0})):
        assert lone._http("GET", "inbox", params=params).status_code == code


def test_a_poll_gives_the_oldest_and_no_more_than_asked_s100(agent: Agent) -> None:
    """S100."""
    agent.step()
    for _ in range(70):
        agent.hear_from("sender")
    everything = agent.poll(limit=1_000)
    assert len(everything) == 70
    assert agent.poll(limit=3) == everything[:3]


@pytest.mark.req(443, 444)
def test_the_stream_shows_the_same_items_s100_s101(agent: Agent) -> None:
    """S100, S101: named, with their id, and closing is told of."""
    agent.step()
    agent.hear_from("sender")
    with agent.stream() as stream:
        name, _, greeting = next(stream)
        assert (name, greeting["agent_id"]) == ("hello", agent.name)
        name, ident, item = next(stream)
        assert (name, ident) == ("delivery", item["delivery_id"])
        assert agent.poll() == [item]
        agent.hear_from("sender")
        _, _, later = next(stream)
        assert later["sequence_number"] > item["sequence_number"]
    agent.comes_to_tell(2, "agent_connected", "agent_disconnected")


def test_a_pretty_printed_message_does_not_break_the_stream_s100(lone: Agent) -> None:
    """S100: the agent's bytes may hold line ends between tokens."""
    lone.step()
    meta = {"session_id": lone.session, "step_id": str(uuid.uuid4())}
    sent = decision_log(meta=meta, identity={"agent_id": "pretty", "recipient": lone.name})
    assert lone.server.send(json.dumps(sent, indent=1).encode()).status_code == 202
    with lone.stream() as stream:
        next(stream)
        assert next(stream)[2]["message"] == sent


def closing(agent: Agent, key: str) -> int:
    agent.key = key
    with agent.channel() as socket:
        try:
            socket.recv(WAIT_S)
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd is not None else -1
    return 0


def test_only_the_agent_itself_and_an_admin_listen_s108(lone: Agent) -> None:
    """S108."""
    server = lone.server
    own, foreign = bound_key(server, lone.name)[0], bound_key(server, "somebody-else")[0]
    viewer, operator = server.key("viewer"), server.key("operator")
    for key, code in ((own, 200), (server.key("admin"), 200), (foreign, 403), (viewer, 403), (operator, 403)):
        lone.key = key
        assert lone._http("GET", "inbox").status_code == code
        ack = lone._http("POST", "inbox/ack", json={"ids": ["dlv_1-1"]})
        assert ack.status_code == code
        assert closing(lone, key) == (0 if code == 200 else 4403)
    lone.key = "obs_nothing"
    assert lone._http("GET", "inbox").status_code == 401
    assert closing(lone, "obs_nothing") == 4401


def test_a_key_that_ends_closes_its_channel_s108(agent: Agent) -> None:
    """S108: though nothing was sent on it."""
    agent.key, key_id = bound_key(agent.server, agent.name)
    with agent.channel() as socket:
        hello(socket)
        assert agent.server.http("admin").delete(f"/v1/keys/{key_id}").status_code == 200
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(WAIT_S)
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 4401
    agent.comes_to_tell(1, "agent_disconnected")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"op":"dance"}', '{"op":"ack","ids":7}'])
def test_a_frame_that_is_none_is_answered_and_the_channel_lives_s100(lone: Agent, text: str) -> None:
    """S100."""
    with lone.channel() as socket:
        hello(socket)
        socket.send(text)
        assert json.loads(socket.recv(WAIT_S))["type"] == "error"
        assert say(socket, op="ping") == {"type": "pong"}


def test_what_stays_unacknowledged_is_sent_again_on_the_same_connection_s109(
    either_options: tuple[str, ...], tmp_path: Path
) -> None:
    """S109: after a round, in order; what was acknowledged is not."""
    environment = ALONE | {"OBSERVATORY_REDELIVERY_S": "1"}
    with Server(tmp_path / "data", *either_options, environment=environment) as quick:
        agent = Agent(quick)
        agent.step()
        with agent.channel() as socket:
            hello(socket)
            for _ in range(3):
                agent.hear_from("sender")
            first = take(socket, 3)
            assert say(socket, op="ack", ids=ids(first[1:2]))["ids"] == ids(first[1:2])
            again = take(socket, 2)
            assert ids(again) == [first[0]["delivery_id"], first[2]["delivery_id"]]
            assert ids(take(socket, 2)) == ids(again)


def test_an_agent_that_stops_reading_misses_nothing_s109(lone: Agent) -> None:
    """S109: far more than socket and buffer hold; all of it, in order, once it reads again."""
    lone.step()
    padding = ["word " * 2_000]
    with lone.channel() as socket:
        hello(socket)
        sent: list[str] = []
        for _ in range(6):
            lines = []
            for _ in range(200):
                meta = {"session_id": lone.session, "step_id": str(uuid.uuid4())}
                identity = {"agent_id": "eager", "recipient": lone.name}
                body = decision_log(meta=meta, identity=identity, cognition={"reasoning_chain": padding})
                sent.append(meta["step_id"])
                lines.append(json.dumps(body).encode())
            assert {answer["code"] for answer in lone.server.send_lines(lines)} == {202}
        frames = take(socket, len(sent))
    assert [frame["message"]["meta"]["step_id"] for frame in frames] == sent


def test_a_killed_gateway_loses_nothing_that_waits_s100(either_fresh_server: Server) -> None:
    """S100: kill -9 between the delivery and its acknowledgement; again and in order afterwards."""
    agent = Agent(either_fresh_server)
    agent.step()
    with agent.channel() as socket:
        hello(socket)
        for _ in range(5):
            agent.hear_from("sender")
        first = take(socket, 5)
        assert say(socket, op="ack", ids=ids(first[:2]))["ids"] == ids(first[:2])
        either_fresh_server.kill()
    either_fresh_server.start()
    with agent.channel() as socket:
        hello(socket)
        assert ids(take(socket, 3)) == ids(first[2:])


def test_messages_for_a_stopped_agent_wait_and_commands_pass_s105(agent: Agent) -> None:
    """S105: by socket and by poll; after the release what waited follows."""
    cluster = f"cluster-{uuid.uuid4().hex[:8]}"
    agent.server.send(
        decision_log(
            meta={"session_id": agent.session, "step_id": str(uuid.uuid4()), "cluster_id": cluster},
            identity={"agent_id": agent.name},
        )
    )
    with agent.channel() as socket:
        assert hello(socket)["stopped"] is False
        kill_id = engage(agent.server, cluster)
        [stop] = take(socket)
        assert (stop["kind"], stop["body"]["kill_id"]) == ("stop", kill_id)
        sent = agent.hear_from("somebody-outside")
        agent.command("inject", prompt="stay calm")
        [frame] = take(socket)
        assert frame["kind"] == "inject"
        assert [item["kind"] for item in agent.poll()] == ["stop", "inject"]
        with agent.channel() as second:
            assert hello(second)["stopped"] is True
            assert [one["kind"] for one in take(second, 2)] == ["stop", "inject"]
        path = f"/v1/kill-switch/{kill_id}/release"
        assert agent.server.http("admin").post(path, json={"reason": "over"}).status_code == 202
        after = take(socket, 2)
    assert {one["kind"] for one in after} == {"start", "message"}
    assert [one["message"] for one in after if one["kind"] == "message"] == [sent]
    assert [item["kind"] for item in agent.poll()] == ["stop", "message", "inject", "start"]


def test_instructions_in_force_wait_for_whoever_connects_s106(agent: Agent) -> None:
    """S106: once, until they are acknowledged; polls bring them as well."""
    kind = f"type-{uuid.uuid4().hex[:8]}"
    done = agent.server.http("admin").put(f"/v1/instructions/{kind}", json={"text": "cite your sources"})
    assert done.status_code == 201, done.text
    agent.step(agent_type=kind)
    for _ in range(2):
        with agent.channel() as socket:
            assert hello(socket)["instructions"] == {"version": 1, "text": "cite your sources"}
            [frame] = take(socket)
            assert (frame["kind"], frame["body"]["text"]) == ("instruction", "cite your sources")
            assert frame["session_id"] is None and frame["traceparent"] is None
    assert agent.poll() == [{name: value for name, value in frame.items() if name != "type"}]
    agent.ack(frame["delivery_id"])
    with agent.channel() as socket:
        hello(socket)
        assert say(socket, op="ping") == {"type": "pong"}
    assert agent.poll() == []
    assert len(agent.trail("instruction_sent")) == 1
    [read] = agent.trail("message_read")
    assert (read["body"]["kind"], read["body"]["version"]) == ("instruction", 1)


def test_an_open_poll_or_stream_does_not_hold_up_a_stop_s101(fresh_server: Server) -> None:
    """S101: the channels are let go, and their closing is still told of."""
    agent = Agent(fresh_server)
    with agent.stream() as stream, agent.channel() as socket:
        next(stream)
        hello(socket)
        started = time.monotonic()
        assert fresh_server.stop() == 0
        assert time.monotonic() - started < 9
    fresh_server.start()
    assert len(agent.trail("agent_connected")) == len(agent.trail("agent_disconnected")) == 2


def test_what_another_gateway_commits_arrives_s100(
    postgres_server: Server, postgres_url: str, tmp_path: Path
) -> None:
    """S100: the agent is connected to one gateway, the operator commands through another."""
    url = postgres_url.replace("/postgres?", "/flows?")
    with Server(tmp_path / "second", "--db", url, environment=ALONE) as second:
        agent = Agent(postgres_server)
        agent.step()
        there = Agent(second)
        there.name, there.session = agent.name, agent.session
        with agent.channel() as socket:
            hello(socket)
            there.command("pause")
            there.command("inject", prompt="from afar")
            frames = take(socket, 2)
            assert [frame["kind"] for frame in frames] == ["hold", "inject"]
            assert there.ack(*ids(frames))["acked"] == ids(frames)
        assert agent.poll() == []
