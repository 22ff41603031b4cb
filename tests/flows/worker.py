"""A worker for flow tests: an agent with a name and a session, reached by socket, stream or poll."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from tests.flows.server import Server
from tests.samples import decision_log

Json = dict[str, Any]
WAIT_S = 20


class Agent:
    """A worker of a test: a name, a session, and ways to be told something."""

    def __init__(self, server: Server, key: str = "") -> None:
        self.server = server
        self.key = key or server.key("agent")
        self.name = f"worker-{uuid.uuid4().hex[:8]}"
        self.session = str(uuid.uuid4())

    def step(self, **identity: Any) -> Json:
        meta = {"session_id": self.session, "step_id": str(uuid.uuid4()), "trace_id": str(uuid.uuid4())}
        body = decision_log(meta=meta, identity={"agent_id": self.name, **identity})
        answer = self.server.send(body)
        assert answer.status_code == 202, answer.text
        return body

    def hear_from(self, sender: str, **identity: Any) -> Json:
        """Somebody of the same session sends it a message."""
        other = Agent(self.server)
        other.name, other.session = sender, self.session
        return other.step(recipient=self.name, **identity)

    def command(self, verb: str, **body: Any) -> Json:
        path = f"/v1/sessions/{self.session}/{verb}"
        answer = self.server.http("operator").post(path, json={"agent_id": self.name, **body})
        assert answer.status_code in (200, 202), answer.text
        done: Json = answer.json()
        return done

    @contextmanager
    def channel(self) -> Iterator[Connection]:
        headers = {"Authorization": f"Bearer {self.key}"}
        url = f"{self.server.socket_url}/v1/agents/{self.name}/channel"
        with connect(url, additional_headers=headers, max_size=None) as socket:
            yield socket

    def poll(self, **params: Any) -> list[Json]:
        answer = self._http("GET", "inbox", params=params)
        assert answer.status_code == 200, answer.text
        items: list[Json] = answer.json()["items"]
        return items

    def ack(self, *ids: str) -> Json:
        answer = self._http("POST", "inbox/ack", json={"ids": list(ids)})
        assert answer.status_code == 200, answer.text
        done: Json = answer.json()
        return done

    def _http(self, method: str, path: str, **more: Any) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.key}"}
        url = f"{self.server.url}/v1/agents/{self.name}/{path}"
        with httpx2.Client(trust_env=False, timeout=60) as client:
            return client.request(method, url, headers=headers, **more)

    @contextmanager
    def stream(self) -> Iterator[Iterator[tuple[str, str, Json]]]:
        headers = {"Authorization": f"Bearer {self.key}", "Accept": "text/event-stream"}
        url = f"{self.server.url}/v1/agents/{self.name}/inbox"
        with (
            httpx2.Client(trust_env=False, timeout=60) as client,
            client.stream("GET", url, headers=headers) as answer,
        ):
            assert answer.headers["content-type"].startswith("text/event-stream")
            yield events(answer.iter_lines())

    def trail(self, *names: str) -> list[Json]:
        """Events of these names about this agent, oldest first."""
        found = self.server.http("admin").get(f"/v1/audit/entity/{self.name}", params={"limit": 1_000})
        received = [event for event in found.json()["items"] if event["body"]["event_type"] in names]
        return list(reversed(received))

    def comes_to_tell(self, count: int, *names: str) -> list[Json]:
        deadline = time.monotonic() + WAIT_S
        while len(received := self.trail(*names)) < count:
            assert time.monotonic() < deadline, f"{names}: {len(received)} of {count}"
            time.sleep(0.02)
        return received


def events(lines: Iterator[str]) -> Iterator[tuple[str, str, Json]]:
    """(event, id, data) of a stream; comments are passed over."""
    fields: dict[str, str] = {}
    for line in lines:
        if not line and "event" in fields:
            yield fields["event"], fields.get("id", ""), json.loads(fields["data"])
            fields = {}
        elif line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value


def take(socket: Connection, count: int = 1) -> list[Json]:
    frames = [json.loads(socket.recv(WAIT_S)) for _ in range(count)]
    assert all(frame["type"] == "delivery" for frame in frames), frames
    return frames


def hello(socket: Connection) -> Json:
    frame: Json = json.loads(socket.recv(WAIT_S))
    assert frame["type"] == "hello"
    return frame


def say(socket: Connection, **frame: Any) -> Json:
    """Send, and the answer to it; deliveries that come in between are left out."""
    socket.send(json.dumps(frame))
    while (answer := json.loads(socket.recv(WAIT_S)))["type"] == "delivery":
        pass
    done: Json = answer
    return done


def ids(frames: list[Json]) -> list[str]:
    return [frame["delivery_id"] for frame in frames]


def bound_key(server: Server, agent_id: str) -> tuple[str, str]:
    body = {"role": "agent", "label": "bound", "agent_id": agent_id}
    made = server.http("admin").post("/v1/keys", json=body)
    assert made.status_code == 201, made.text
    return made.json()["key"], made.json()["key_id"]


def engage(server: Server, cluster: str) -> str:
    """Armed and confirmed twice, over one cluster."""
    http = server.http("admin")
    armed = http.post("/v1/kill-switch", json={"scope": "cluster", "target": cluster, "reason": "a test"})
    assert armed.status_code == 202, armed.text
    kill_id, token = armed.json()["kill_id"], armed.json()["token"]
    for _ in range(2):
        done = http.post(f"/v1/kill-switch/{kill_id}/confirm", json={"token": token})
        assert done.status_code == 200, done.text
        token = done.json().get("token")
    assert done.json()["state"] == "engaged"
    found: str = kill_id
    return found
