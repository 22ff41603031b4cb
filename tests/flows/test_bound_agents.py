"""An agent with a key of its own: no other agent's key opens its inbox, and what it says is proven (A5)."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from observatory.protocol.identity import agent_entity_id
from tests.flows.server import Server, clean_environment, observatory
from tests.flows.worker import WAIT_S, Agent, bound_key, hello, ids, take

Json = dict[str, Any]


@pytest.fixture
def server(either_server: Server) -> Server:
    """On both databases."""
    return either_server


@pytest.fixture
def agent(server: Server) -> Agent:
    """Started with the first agent key, and a message waits for it."""
    made = Agent(server)
    made.step()
    made.hear_from("sender-1")
    return made


@contextmanager
def own(agent: Agent) -> Iterator[Agent]:
    """The same agent with a key of its own, from here on."""
    unbound, (key, _) = agent.key, bound_key(agent.server, agent.name)
    agent.key = key
    yield agent
    agent.key = unbound


@pytest.mark.parametrize("name", ["as it is called", "by its entity id"])
def test_an_unbound_key_neither_reads_nor_acknowledges_the_inbox_of_an_agent_with_its_own_s1142(
    agent: Agent, name: str
) -> None:
    """S1142: by poll, stream, socket and acknowledgement; nothing is taken, and each refusal is on record."""
    [item] = agent.poll()
    called = agent.name
    with own(agent):
        bound = agent.key
        agent.key = agent.server.key("agent")
        if name == "by its entity id":
            agent.name = agent_entity_id("tnt_default", called)
        ack = {"ids": [item["delivery_id"]]}
        for answer in (agent._http("GET", "inbox"), agent._http("POST", "inbox/ack", json=ack)):
            assert (answer.status_code, answer.json()["reason"]) == (403, "bound_key_required")
        with pytest.raises(AssertionError), agent.stream():
            pass  # it is JSON, not a stream
        with agent.channel() as socket, pytest.raises(ConnectionClosed) as closed:
            socket.recv(WAIT_S)
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 4403
        page = agent.server.http("admin").get("/v1/audit/tenant", params={"limit": 4}).json()["items"]
        received = [(one["body"]["event_type"], one["body"]["reason"]) for one in page]
        assert received == [("permission_denied", "bound_key_required")] * 4
        assert {one["body"]["agent_id"] for one in page} <= {called, agent.name}
        agent.name, agent.key = called, bound
        assert agent.poll() == [item]
        assert agent.ack(item["delivery_id"])["acked"] == [item["delivery_id"]]


def test_a_channel_that_was_open_ends_when_its_agent_gets_a_key_of_its_own_s1142(agent: Agent) -> None:
    """S1142: before anything said to the agent from then on; acknowledgements on it count for nothing."""
    with agent.channel() as socket, agent.stream() as frames:
        hello(socket)
        [first] = take(socket)
        assert next(frames)[0] == "hello" and next(frames)[0] == "delivery"
        bound_key(agent.server, agent.name)
        agent.hear_from("sender-2")
        said = []
        with suppress(ConnectionClosed):
            socket.send(json.dumps({"op": "ack", "ids": ids([first])}))
            while True:
                said.append(json.loads(socket.recv(WAIT_S))["type"])
        assert set(said) <= {"error"} and socket.close_code == 4403
        assert [kind for kind, *_ in frames] == [], "the stream ended too"
    assert agent.trail("message_read") == []


def test_a_key_that_was_revoked_binds_nothing_any_more_s1142(agent: Agent) -> None:
    """S1142: one that ran out does until then."""
    _, key_id = bound_key(agent.server, agent.name)
    assert agent._http("GET", "inbox").status_code == 403
    assert agent.server.http("admin").delete(f"/v1/keys/{key_id}").status_code == 200
    assert len(agent.poll()) == 1


@pytest.mark.parametrize("whose", ["its own", "unbound", "an admin's"])
def test_a_pause_says_whether_its_acknowledgement_is_proven_s1143(agent: Agent, whose: str) -> None:
    """S1143: in the list, in the terminal, in the graph and on record."""
    agent.ack(*ids(agent.poll()))
    done = agent.command("pause")
    if whose == "its own":
        agent.key, _ = bound_key(agent.server, agent.name)
    elif whose == "an admin's":
        agent.key = agent.server.key("admin")
    listed = f"/v1/sessions/{agent.session}/interventions"
    [row] = agent.server.http("operator").get(listed).json()["items"]
    assert (row["confirmation"], row["proven"]) == ("requested", None)
    agent.ack(*ids(agent.poll()))
    proven = whose == "its own"
    [row] = agent.server.http("operator").get(listed).json()["items"]
    assert row["intervention_id"] == done["intervention_id"] and row["acknowledged_at"]
    assert row["proven"] is proven
    [event] = agent.trail("pause_acknowledged")
    assert event["body"]["proven"] is proven
    received = observatory(
        "interventions", agent.session, "--url", agent.server.url, "--key", agent.server.key("operator")
    )
    assert received.returncode == 0, received.stderr
    assert ("(unproven)" in received.stdout) is not proven


SPEAK = """from observatory import Agent
import sys
with Agent(sys.argv[1]) as one:
    print(one.step("Hello").answer(timeout=10).state, one.outbox.credentials.key)"""


def test_one_command_gives_agents_keys_of_their_own_and_their_code_stays_s1144(
    server: Server, tmp_path: Path
) -> None:
    """S1144: each in a file its SDK finds, its owner's alone; others go on with the folder's key."""
    data = tmp_path / "of-agents"
    data.mkdir()
    shared = {"url": server.url, "agent_key": server.key("agent")}
    (data / "agent.json").write_text(json.dumps(shared))
    asked = ("keys", "bind", "writer", "re/searcher", "--to", str(data), "--json")
    done = observatory(*asked, "--url", server.url, "--key", server.key("admin"))
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert [one["agent_id"] for one in made] == ["writer", "re/searcher"]
    keys = {}
    for one in made:
        file = Path(one["file"])
        assert stat.S_IMODE(file.stat().st_mode) == 0o600 and data in file.parents
        assert file.parent.parent.parent == data, "no name leads out of the folder"
        known = json.loads(file.read_text())
        assert (known["url"], known["agent_id"]) == (server.url, one["agent_id"])
        keys[one["agent_id"]] = known["agent_key"]
        assert keys[one["agent_id"]] not in done.stdout
    for name in ("writer", "re/searcher", "other"):
        environment = clean_environment(OBSERVATORY_DATA=str(data))
        ran = subprocess.run(
            [sys.executable, "-c", SPEAK, name], capture_output=True, text=True, timeout=60, env=environment
        )
        assert ran.stdout.split() == ["forwarded", keys.get(name, shared["agent_key"])], ran.stderr

    refused = observatory(*asked, "--url", server.url, "--key", server.key("agent"))
    assert refused.returncode == 1 and "may not do that" in refused.stderr
    (tmp_path / "file").write_text("")
    nowhere = observatory(
        *("keys", "bind", "writer", "--to", str(tmp_path / "file")),
        *("--url", server.url, "--key", server.key("admin")),
    )
    assert nowhere.returncode == 1 and "cannot be written" in nowhere.stderr
    assert "Traceback" not in nowhere.stderr


def test_an_open_socket_of_its_own_key_goes_on_when_other_keys_are_made_s1142(agent: Agent) -> None:
    agent.key, _ = bound_key(agent.server, agent.name)
    url = f"{agent.server.socket_url}/v1/agents/{agent.name}/channel"
    with connect(url, additional_headers={"Authorization": f"Bearer {agent.key}"}) as socket:
        hello(socket)
        take(socket)
        bound_key(agent.server, agent.name)
        bound_key(agent.server, "another")
        agent.hear_from("sender-2")
        take(socket)
