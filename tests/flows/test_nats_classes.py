"""Agents at a NATS server as it is deployed: TLS, a user for each class, and nothing heard across classes."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from observatory import Agent
from observatory.protocol import nats
from observatory.protocol.nats_connection import NatsUnavailable, close, connect
from observatory.sdk import NotConfigured
from tests.flows.databases import ALONE
from tests.flows.nats_harness import bus_of, of_agent
from tests.flows.sdk_harness import until
from tests.flows.server import Server
from tests.nats_server import _binary
from tools import mesh

ROOT = Path(__file__).parents[2]
# As deploy/nats.conf says a further class is made: the last user again, with another name and inbox.
SECOND = """    {
      user: auditors
      password: $NATS_AGENTS_PASSWORD
      permissions: {
        publish: ["observatory.ingest.*", "observatory.request", "observatory.channel", "observatory.pipe.>"]
        subscribe: ["_INBOX.auditors.>"]
      }
    }
  ]
"""


class Deployed:
    """deploy/nats.conf with one class more, on a free port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = mesh.free_port()
        self.authority = str(folder / "ca.crt")
        config = (ROOT / "deploy/nats.conf").read_text()
        assert config.count("  ]\n}") == 1
        (folder / "nats.conf").write_text(config.replace("  ]\n}", SECOND + "}"))
        passwords = {"NATS_GATEWAY_PASSWORD": "of-the-gateways", "NATS_AGENTS_PASSWORD": "of-the-agents"}
        where = ["--addr", "127.0.0.1", "--port", str(self.port), "--http_port", str(mesh.free_port())]
        self.log = folder / "nats.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [_binary(), "--config", str(folder / "nats.conf"), *where],
                env=os.environ | {"NATS_STORE": str(folder / "store")} | passwords | mesh.certificate(folder),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until(lambda: "Server is ready" in self.log.read_text() or self.process.poll() is not None)
        assert self.process.poll() is None, self.log.read_text()

    def url(self, user: str, path: str = "") -> str:
        password = "of-the-gateways" if user == "gateway" else "of-the-agents"
        return f"tls://{user}:{password}@127.0.0.1:{self.port}{path}"


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    made = Deployed(tmp_path_factory.mktemp("nats"))
    yield made
    made.process.kill()
    made.process.wait(20)


@pytest.fixture(scope="module")
def gateway(deployed: Deployed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    bus = {
        "OBSERVATORY_BUS": deployed.url("gateway"),
        "OBSERVATORY_BUS_CA": deployed.authority,
    }
    with Server(tmp_path_factory.mktemp("house") / "data", environment=ALONE | bus) as server:
        until(lambda: bus_of(server)["connected"])
        yield server


def agent(gateway: Server, deployed: Deployed, home: Path, name: str, user: str, path: str) -> Agent:
    return Agent(
        name, url=deployed.url(user, path=path), key=gateway.key("agent"), ca=deployed.authority, data=home
    )


def heard(deployed: Deployed, user: str, subjects: list[str], act: Any) -> tuple[list[str], list[str]]:
    """What a stranger with that user's password was sent while `act` ran, and what the server refused."""
    complaints: list[str] = []

    async def listen() -> list[str]:
        came: list[str] = []
        wire = await connect(
            deployed.url(user),
            "a stranger",
            lambda error: complaints.append(str(error)),
            5,
            deployed.authority,
        )

        async def note(message: Any) -> None:
            came.append(message.subject)

        for subject in subjects:
            await wire.client.subscribe(subject, cb=note)
        await wire.client.flush()
        await asyncio.to_thread(act)
        await wire.client.flush()
        await close(wire)
        return came

    return asyncio.run(listen()), complaints


def test_an_agent_of_a_class_works_and_no_other_class_hears_it_s1267(
    gateway: Server, deployed: Deployed, tmp_path: Path
) -> None:
    """S1267, S1266: by the deployed configuration, over TLS that only the given authority makes good."""

    def act() -> None:
        with agent(gateway, deployed, tmp_path, "courier", "agents", "/observatory/agents") as courier:
            courier.step("Carry the parcel", status="success")
            assert courier.flush(timeout=20)

    everything = [
        ">",
        "_INBOX.>",
        "_INBOX.agents.>",
        "observatory.>",
        "observatory.ingest.*",
        "$JS.>",
        "$SYS.>",
    ]
    came, complaints = heard(deployed, "auditors", everything, act)
    assert len(of_agent(gateway, "courier")) == 1
    assert came == []
    assert len([one for one in complaints if "ermissions" in one]) == len(everything)
    came, _ = heard(deployed, "agents", ["_INBOX.agents.>"], act)
    assert came, "its own class does hear the verdicts, so the silence above says something"


def test_an_agent_that_names_another_class_hears_no_verdict_and_keeps_what_it_sent_s1267(
    gateway: Server, deployed: Deployed, tmp_path: Path
) -> None:
    with agent(gateway, deployed, tmp_path, "spy", "auditors", "/observatory/agents") as spy:
        spy.step("Listen elsewhere", status="success")
        assert not spy.flush(timeout=3)


@pytest.mark.parametrize(
    ("server", "trusted", "reason"),
    [
        ("nats://agents:of-the-agents@127.0.0.1:{}", True, "certificate|TLS"),
        ("tls://agents:of-the-agents@127.0.0.1:{}", False, "certificate"),
        ("tls://agents:guessed-words@127.0.0.1:{}", True, "refused"),
        ("tls://127.0.0.1:{}", True, "refused"),
    ],
)
def test_without_tls_trust_or_a_good_password_there_is_no_connection_s1266(
    deployed: Deployed, server: str, trusted: bool, reason: str
) -> None:
    """S1266."""
    with pytest.raises(NatsUnavailable, match=reason):
        asyncio.run(
            connect(server.format(deployed.port), "x", None, 3, deployed.authority if trusted else "")
        )


def test_a_password_is_never_sent_in_clear_s1266(deployed: Deployed) -> None:
    """S1266: the server itself refuses a client that goes on without TLS."""
    with socket.create_connection(("127.0.0.1", deployed.port), timeout=5) as line:
        line.settimeout(5)
        assert b'"tls_required":true' in line.recv(4_096)
        line.sendall(b'CONNECT {"user":"agents","pass":"of-the-agents","verbose":true}\r\nPING\r\n')
        assert b"PONG" not in line.recv(4_096)


def test_a_file_that_is_no_authority_and_a_class_for_a_gateway_stop_the_start_s1266(tmp_path: Path) -> None:
    """S1266: a sentence, not a bus that never comes."""
    empty = tmp_path / "empty.crt"
    empty.write_text("")
    cases = [
        (
            {"OBSERVATORY_BUS": "tls://h:4222", "OBSERVATORY_BUS_CA": str(tmp_path / "none.crt")},
            "does not exist",
        ),
        ({"OBSERVATORY_BUS": "tls://h:4222", "OBSERVATORY_BUS_CA": str(empty)}, "CA certificate"),
        ({"OBSERVATORY_BUS": "tls://h:4222/observatory/agents"}, "an agent class"),
    ]
    for number, (environment, said) in enumerate(cases):
        with pytest.raises(AssertionError, match=said):
            Server(tmp_path / f"data-{number}", environment=environment).start()


@pytest.mark.parametrize("path", ["/observatory/", "/observatory/agents/", "/observatory/agents"])
def test_a_class_behind_the_prefix_names_the_inbox_s1267(path: str) -> None:
    to = nats.address("tls://h" + path)
    assert (to.prefix, to.agent_class) == ("observatory", "agents" if "agents" in path else "")
    below = nats.inbox("AbC123xyz789", to.agent_class)
    assert below.startswith("_INBOX.agents.AbC123xyz789." if to.agent_class else "_INBOX.AbC123xyz789.")
    assert nats.is_inbox(below)


@pytest.mark.parametrize("path", ["//agents", "/observatory/Agents", "/observatory/a.b", "/observatory/a/b"])
def test_a_class_that_is_no_word_is_refused_s1267(path: str, tmp_path: Path) -> None:
    with pytest.raises(NotConfigured, match="class"):
        Agent("x", url="tls://h" + path, key="obs_x", data=tmp_path)
