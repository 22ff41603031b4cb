"""`make mesh`: several gateways behind one address on this machine, and nothing left of it afterwards."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import psutil
from websockets.sync.client import connect

from tests.flows.databases import ALONE
from tests.flows.server import clean_environment
from tests.samples import decision_log
from tests.waiting import until

ROOT = Path(__file__).parents[2]


class Mesh:
    def __init__(self, process: subprocess.Popen[str], said: str) -> None:
        self.process = process
        self.url = re.findall(r"behind (\S+)", said)[0]
        self.gateways = re.findall(r"http://\S+:\d+", said.partition("gateways:")[2].partition("\n")[0])
        self.key = re.findall(r"admin key:\s+(\S+)", said)[0]
        self.agent_key = re.findall(r"agent key:\s+(\S+)", said)[0]
        self.folder = Path(re.findall(r"files:\s+(\S+)", said)[0])

    def http(self, key: str, url: str = "") -> httpx2.Client:
        """A connection for each request: the balancer deals out connections."""
        headers = {"Authorization": f"Bearer {key}", "Connection": "close"}
        return httpx2.Client(base_url=url or self.url, headers=headers, timeout=30, trust_env=False)


@contextmanager
def mesh(*options: str) -> Iterator[Mesh]:
    command = [sys.executable, "-m", "tools.mesh", "--port", "0", *options]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=clean_environment(**ALONE),
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        said = ""
        while "Ctrl-C" not in said:
            line = process.stdout.readline()
            assert line, f"it ended before it was ready: {said}"
            said += line
        yield Mesh(process, said)
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(60)
        process.stdout.close()


def test_two_gateways_answer_as_one_a_dead_one_comes_back_and_nothing_is_left_s854() -> None:
    """S854: requests, sockets and a login through the balancer; a gateway killed; Ctrl-C."""
    with mesh() as made:
        below = psutil.Process(made.process.pid).children(recursive=True)
        assert len(made.gateways) == 2 and made.url not in made.gateways
        until(lambda: made.http(made.key).get("/readyz").status_code == 200)
        until(lambda: all(_took(made, decision_log()) and _sent_by(made, url) for url in made.gateways))
        numbers = []
        headers = {"Authorization": f"Bearer {made.key}"}
        socket_url = made.url.replace("http", "ws", 1) + "/v1/live"
        with made.http(made.agent_key) as agent, connect(socket_url, additional_headers=headers) as reader:
            reader.send(json.dumps({"op": "subscribe", "topics": ["messages"]}))
            assert json.loads(reader.recv(20))["type"] == "snapshot"
            for _ in range(6):
                sent = agent.post("/v1/messages", json=decision_log())
                assert sent.status_code == 202, sent.text
                numbers.append(sent.json()["sequence_number"])
            heard: list[int] = []
            while len(heard) < 6:
                received = [item["sequence_number"] for item in json.loads(reader.recv(20))["items"]]
                # What the other gateway took before may be heard of late, after the snapshot.
                heard += [number for number in received if number >= numbers[0]]
        assert heard == numbers == sorted(numbers)
        victim = int(made.gateways[0].rsplit(":", 1)[1])
        _listening(below, victim).kill()
        step = decision_log(meta={"step_id": str(uuid.uuid4())})
        until(lambda: _took(made, step))
        until(lambda: _is_up(made, made.gateways[0]), 60)
        assert made.http(made.key).post("/v1/audit/verify", json={}).json()["valid"] is True
        below = psutil.Process(made.process.pid).children(recursive=True)
        made.process.send_signal(signal.SIGINT)
        assert made.process.wait(60) == 0
    assert not made.folder.exists()
    gone, alive = psutil.wait_procs(below, timeout=20)
    assert gone and not alive, [one.cmdline() for one in alive]


def _listening(below: list[psutil.Process], port: int) -> psutil.Process:
    word = str(port)
    return next(one for one in below if one.is_running() and word in one.cmdline())


def _sent_by(made: Mesh, url: str) -> int:
    """How many messages this gateway itself has taken."""
    received = made.http(made.key, url).get("/metrics").text
    found = re.findall(r'^observatory_message_responses_total\{code="202"\} (\S+)', received, re.M)
    return int(float(found[0])) if found else 0


def _took(made: Mesh, step: dict[str, object]) -> bool:
    try:
        return made.http(made.agent_key).post("/v1/messages", json=step).status_code == 202
    except httpx2.TransportError:  # it was given to the one that died; the next look finds that out
        return False


def _is_up(made: Mesh, url: str) -> bool:
    try:
        return made.http(made.key, url).get("/readyz").status_code == 200
    except httpx2.TransportError:
        return False
