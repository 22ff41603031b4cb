"""NATS and gateways that die, freeze or come late: slower, never lost, nothing twice."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from websockets.sync.client import connect

from observatory import Agent
from observatory.sdk import Step
from observatory.sdk.delivery import Delivery
from tests.flows.databases import ALONE, new_database
from tests.flows.letters import by_hand
from tests.flows.nats_harness import NatsHarness, bus_of, of_agent
from tests.flows.sdk_harness import PATIENCE_S, aside, until
from tests.flows.server import Server, clean_environment
from tests.nats_server import Nats, running

if TYPE_CHECKING:
    from nats.aio.client import Client

Json = dict[str, Any]
# As patient as the default, but sooner again: a test waits for what an agent need not.
EAGER = Delivery(timeout_s=2.0, backoff_s=0.05, max_backoff_s=0.3, batch_lines=20, linger_s=0.01)


@pytest.fixture(scope="module")
def nats_server() -> Iterator[Nats]:
    with running() as server:
        yield server


@pytest.fixture(scope="module")
def pair(
    nats_server: Nats, postgres_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Server]]:
    """Two gateways on one database and one NATS; the second shares the first one's log key and keys."""
    folder, database = tmp_path_factory.mktemp("pair"), new_database(postgres_url)
    environment = ALONE | {"OBSERVATORY_BUS": f"{nats_server.url}/pair"}
    with Server(folder / "a", "--db", database, environment=environment) as first:
        environment["OBSERVATORY_LOG_KEY"] = str(folder / "a" / "log.key")
        with Server(folder / "b", "--db", database, environment=environment) as second:
            yield first, second


@pytest.fixture
def harness(pair: tuple[Server, Server], nats_server: Nats, tmp_path: Path) -> Iterator[NatsHarness]:
    one = NatsHarness(pair[1], tmp_path / "home", f"{nats_server.url}/pair")
    yield one
    for agent in one.agents:
        agent.close()


@pytest.mark.req(110, 230)
def test_nats_and_a_gateway_killed_in_mid_load_lose_and_double_nothing_s827_s829_s838(
    harness: NatsHarness, nats_server: Nats, pair: tuple[Server, Server]
) -> None:
    """S827, S829, S838: what only the stream had acknowledged is sent again, and archived once."""
    agents = [harness.agent(f"{harness.name}-{n}", delivery=EAGER) for n in range(3)]
    received: dict[str, list[Step]] = {agent.agent_id: [] for agent in agents}
    over = threading.Event()

    def speak(agent: Agent) -> None:
        mine = received[agent.agent_id]
        while not over.is_set():
            mine += [agent.step(f"step {len(mine) + n}") for n in range(20)]
            agent.flush(0.3)  # goes on whether or not it is answered
            over.wait(0.05)

    def answered() -> int:
        return sum(step.is_settled for steps in received.values() for step in list(steps))

    def further(than: dict[str, int]) -> list[Agent]:
        """Whoever has begun and ended a round since: of the one before, answers may be on their way."""
        return [one for one in agents if len(received[one.agent_id]) > than[one.agent_id] + 20]

    speakers = [threading.Thread(target=speak, args=(agent,)) for agent in agents]
    for one in speakers:
        one.start()
    try:
        for harm in ("kill", "gateway", "freeze", "kill"):
            reached = answered()
            until(lambda least=reached: answered() > least)  # type: ignore[misc]
            if harm == "kill":
                nats_server.kill()
                nats_server.start()
            elif harm == "gateway":
                pair[0].kill()  # the other one goes on meanwhile
                pair[0].start()
            else:
                nats_server.freeze()
                begun = {one.agent_id: len(received[one.agent_id]) for one in agents}
                waits = until(lambda than=begun: further(than))  # type: ignore[misc]
                with pytest.raises(TimeoutError):
                    aside(waits[0].flush).result(0.5)
                nats_server.thaw()
        reached = answered()
        until(lambda: answered() > reached)
    finally:
        over.set()
        nats_server.thaw()  # or whatever comes after would wait for it
    for one in speakers:
        one.join()
    for agent in agents:
        assert agent.flush(2 * PATIENCE_S)
        steps = received[agent.agent_id]
        found = [item["message"]["cognition"]["intent"] for item in everything(harness, agent.agent_id)]
        assert found == [f"step {n}" for n in range(len(steps))]
        assert {step.answer(PATIENCE_S).code for step in steps} == {202}


def everything(harness: NatsHarness, agent_id: str) -> list[Json]:
    """All that is archived of one agent, in order."""
    found: list[Json] = []
    while page := of_agent(harness.server, agent_id, found[-1]["sequence_number"] if found else 0):
        found += page
    return found


@pytest.mark.req(110, 230)
def test_a_commit_at_one_gateway_is_told_live_at_the_other_s822(
    pair: tuple[Server, Server], harness: NatsHarness
) -> None:
    """S822: whoever took it; and the notices went by NATS."""
    first, second = pair
    agent = harness.agent()
    headers = {"Authorization": f"Bearer {first.key('admin')}"}
    with (
        connect(f"{first.socket_url}/v1/live", additional_headers=headers) as at_first,
        connect(f"{second.socket_url}/v1/live", additional_headers=headers) as at_second,
    ):
        for reader in (at_first, at_second):
            reader.send(json.dumps({"op": "subscribe", "topics": ["messages"]}))
            # Told only what comes after: a gateway slow to read this would leave out what came before.
            assert json.loads(reader.recv(PATIENCE_S))["type"] == "snapshot"
        steps = [agent.step(f"live {n}") for n in range(30)]
        ids = [step.answer(PATIENCE_S).message_id for step in steps]
        for reader in (at_first, at_second):
            seen: list[str] = []
            while not set(ids) <= set(seen):
                text = reader.recv(PATIENCE_S)
                seen += [one for one in ids if one is not None and one in str(text) and one not in seen]
            assert seen == ids


@pytest.mark.req(97)
@pytest.mark.parametrize("end", ["kill", "stop"])
def test_an_agent_whose_gateway_ends_opens_its_channel_at_the_other_s835(
    end: str, pair: tuple[Server, Server], harness: NatsHarness
) -> None:
    """S835: and gets there what it had not acknowledged; orders given meanwhile are not lost."""
    first, second = pair
    agent = harness.agent()
    step = agent.step("before")
    step.answer(PATIENCE_S)
    holder = first if channels(first, harness.name) else second
    other = second if holder is first else first
    harness.server = other
    getattr(holder, end)()
    try:
        harness.do("pause", step.session_id)
        until(lambda: agent.orders.is_held(step.session_id or ""))
        until(lambda: not harness.inbox())
        harness.do("unpause", step.session_id)
        assert aside(lambda: agent.step("after")).result(PATIENCE_S).answer(PATIENCE_S).code == 202
        assert harness.intents() == ["before", "after"]
    finally:
        holder.start()


def channels(server: Server, name: str) -> int:
    """Whether this gateway holds a channel by NATS now; the desk's agent has the only one."""
    lines = server.http().get("/metrics").text.splitlines()
    return int(
        float(next(line for line in lines if line.startswith("observatory_nats_channels")).split()[-1])
    )


SILENT = """
import sys
from observatory import Agent
agent = Agent(sys.argv[1])
agent.step("here").answer(30)
assert agent.listen(30)
print("listening", flush=True)
sys.stdin.read()
"""


def test_an_agent_that_is_killed_is_noticed_and_its_channel_closed_s835(
    pair: tuple[Server, Server], harness: NatsHarness
) -> None:
    """S835: NATS says that nobody hears there any more, or its silence does."""
    door = harness.credentials()
    environment = clean_environment(
        OBSERVATORY_URL=door["url"], OBSERVATORY_KEY=door["key"], OBSERVATORY_DATA=str(door["data"])
    )
    process = subprocess.Popen(
        [sys.executable, "-c", SILENT, harness.name],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"listening\n"
        process.kill()

    def received() -> bool:
        items = harness.server.http().get("/v1/audit/tenant", params={"limit": 1000}).json()["items"]
        kinds = [item["body"]["event_type"] for item in items if harness.name in json.dumps(item)]
        return "agent_disconnected" in kinds

    until(received)


def test_a_gateway_starts_without_nats_and_takes_it_when_it_comes_s821_s829(tmp_path: Path) -> None:
    """S821: it serves by HTTP meanwhile, says what is missing, and an agent's messages wait in its outbox."""
    absent = Nats(tmp_path / "nats", 'authorization { token: "hush-hush@,:" }')
    url = absent.url.replace("nats://", "nats://hush-hush%40%2C%3A@")
    with Server(tmp_path / "data", environment=ALONE | {"OBSERVATORY_BUS": url}) as server:
        shown = bus_of(server)
        assert (shown["status"], shown["connected"]) == ("degraded", False)
        assert shown["away_since"] and shown["last_error"] and "nothing is lost" in shown["text"]
        over_http = Agent("by-http", url=server.url, key=server.key("agent"), data=tmp_path / "one")
        assert over_http.step("heard").answer(PATIENCE_S).code == 202
        early = Agent("early", url=url, key=server.key("agent"), data=tmp_path / "two", delivery=EAGER)
        step = early.step("said before NATS was there")
        until(lambda: list((tmp_path / "two" / "spool").glob("*.jsonl")))
        kept = b"".join(path.read_bytes() for path in (tmp_path / "two" / "spool").iterdir())
        assert b"said before NATS" in kept and b"hush-hush" not in kept
        with absent:
            assert step.answer(PATIENCE_S).code == 202
            until(lambda: bus_of(server)["connected"])
            assert bus_of(server)["away_since"] is None
            server.kill()
            step = early.step("taken by the stream alone")
            until(lambda: by_hand(url, waiting_in_stream))
            assert not step.is_settled, "S829: that the stream has it counts for nothing"
            server.start()
            assert step.answer(PATIENCE_S).code == 202
            assert len(of_agent(server, "early")) == 2
            early.close()
            over_http.close()
        until(lambda: not bus_of(server)["connected"])
        assert "hush-hush" not in server.log


async def waiting_in_stream(client: Client) -> int:
    return (await client.jetstream().stream_info("OBSERVATORY_INGEST")).state.messages


def test_what_is_too_large_for_nats_is_refused_by_name_and_the_rest_goes_on_s837(tmp_path: Path) -> None:
    """S837: one message that no packing brings under the server's max_payload; its neighbours are sent."""
    noise = "".join(random.Random(3).choices("0123456789abcdef", k=60_000))
    with running("max_payload: 16KB") as small:
        environment = ALONE | {"OBSERVATORY_BUS": small.url}
        with Server(tmp_path / "data", environment=environment) as server:
            agent = Agent(
                "wordy", url=small.url, key=server.key("agent"), data=tmp_path / "home", delivery=EAGER
            )
            steps = [agent.step(f"small {n}") for n in range(5)]
            large = agent.step("large", tool_call="tell", tool_input={"story": noise})
            packed = agent.step("packed", tool_call="tell", tool_input={"story": "la " * 20_000})
            assert agent.flush(PATIENCE_S)
            assert {step.answer(PATIENCE_S).code for step in [*steps, packed]} == {202}
            assert [rejected.code for rejected in agent.outbox.rejections] == [413]
            assert large.step_id == agent.outbox.rejections[0].step_id
            agent.close()
