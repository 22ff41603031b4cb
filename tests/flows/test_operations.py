"""Running the gateway: its figures, its log lines, stopping it under load, and a backup taken meanwhile."""

from __future__ import annotations

import gzip
import json
import re
import signal
import socket
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import connect
from websockets.sync.connection import Connection
from websockets.typing import Subprotocol

from tests.flows.server import Server, observatory
from tests.prometheus import parsed
from tests.samples import decision_log, envelope, full_decision_log
from tests.waiting import until

GUIDE = Path(__file__).parents[2] / "docs/guides/operate.md"
SOURCE = Path(__file__).parents[2] / "src/observatory"
PACE_S = 0.02  # two cores are shared with everything else that is tested
QUIET = {"OBSERVATORY_INSIGHT": "false"}
LOUD = {"LOG_FORMAT": "json", "LOG_LEVEL": "debug", "LOG_REQUESTS": "all"}


@pytest.fixture(scope="module")
def loud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """It tells of everything it may tell of."""
    settings = {f"OBSERVATORY_{name}": value for name, value in LOUD.items()}
    with Server(tmp_path_factory.mktemp("loud") / "data", environment=settings) as running:
        yield running


# --- figures ---


def test_figures_are_told_in_a_form_that_a_strict_reader_takes_and_the_guide_lists_s580_s581(
    loud: Server,
) -> None:
    """S580: every name is in the guide, every name of the guide exists; none is of a tenant or an agent."""
    loud.send(decision_log(identity={"agent_id": "unmeasured"}))
    headers = {"Authorization": f"Bearer {loud.key('admin')}"}
    for nonsense in range(5):
        assert loud.http().get(f"/v1/nowhere/{nonsense}?x=unmeasured").status_code == 404
    loud.http().get("/v1/agents/unmeasured")
    with connect(f"{loud.socket_url}/v1/live", additional_headers=headers) as reader:
        reader.send(json.dumps({"op": "subscribe", "topics": ["events"]}))
        reader.recv(20)
        text = loud.http("viewer").get("/metrics").text
    found = parsed(text)
    assert "unmeasured" not in text and "tnt_" not in text and "key_" not in text
    documented = set(re.findall(r"^\| `(observatory_\w+)` \|", GUIDE.read_text("utf-8"), re.MULTILINE))
    assert sorted(found.keys() - documented) == [], "exposed, and not in docs/guides/operate.md"
    said = "".join(path.read_text("utf-8") for path in SOURCE.rglob("*.py"))
    gone = [name for name in documented - found.keys() if name not in said]
    assert sorted(gone) == [], "in docs/guides/operate.md, and told by nobody"
    kinds = {name: family.kind for name, family in found.items()}
    assert [name for name, kind in kinds.items() if (kind == "counter") != name.endswith("_total")] == []
    doors = {dict(labels)["endpoint"] for _, labels in found["observatory_http_responses_total"].samples}
    assert {"other", "/v1/messages", "/v1/agents/{agent_id}"} <= doors
    up = found["observatory_worker_up"].samples
    assert {"publisher", "dispatcher", "feed", "clock", "sealer"} <= {
        dict(labels)["worker"] for _, labels in up
    }
    assert set(up.values()) == {1.0}


# --- log lines ---


def planted(server: Server, secret: str) -> None:
    """The secret in every place of a request that a log line could be made of."""
    plain = httpx2.Client(base_url=server.url, trust_env=False, timeout=20)
    agent = {"Authorization": f"Bearer {server.key('agent')}"}
    for log in (full_decision_log(), decision_log(), envelope("text")):
        text = re.sub(r'": "[^"]*"', f'": "{secret}"', json.dumps(log))
        for body in (text, text[:-1], f'{{"{secret}": 1}}', secret, f'"\\ud800{secret}"'):
            server.send(body.encode())
    server.send(decision_log(cognition={"intent": secret, "reasoning_chain": [secret]}))
    packed = {"content-encoding": "gzip", "content-type": "application/json"}
    plain.post("/v1/messages", headers=agent | packed, content=gzip.compress(secret.encode())[:-4])
    plain.post("/v1/messages", headers=agent | {"content-type": secret}, content=b"{}")
    for headers in (
        {"Authorization": f"Bearer {secret}"},
        {"Authorization": f"Basic {secret}"},
        {"Cookie": f"observatory={secret}; {secret}={secret}"},
        {"Host": f"{secret}.example"},
        agent | {"Origin": f"https://{secret}.example"},
        agent | {"traceparent": secret, "tracestate": secret, "x-forwarded-for": secret},
    ):
        plain.get("/v1/sessions", headers=headers)
        plain.post("/v1/messages", headers=headers | {"content-type": "application/json"}, content=b"{")
    admin = server.http("admin")
    for path in (
        f"/{secret}",
        f"/v1/sessions/{secret}",
        f"/v1/sessions?cursor={secret}",
        f"/login?token={secret}",
    ):
        admin.get(path)
    admin.post("/v1/users", json={"name": secret, "role": secret})
    admin.post("/v1/keys", json={"role": "agent", "label": secret})
    admin.post("/v1/policies", content=f'{{"note": "{secret}", "note": 1}}'.encode())
    admin.post("/v1/peers", json={"name": secret, "url": f"https://{secret}.invalid", "vkey": secret})
    call = {
        "jsonrpc": "2.0",
        "id": secret,
        "method": "tools/call",
        "params": {"name": secret, "arguments": secret},
    }
    admin.post("/mcp", json=call, headers={"mcp-protocol-version": secret})
    for raw in (
        f"{secret} / HTTP/1.1\r\n\r\n",
        f"GET /{secret}\r\n\r\n",
        f"GET / HTTP/1.1\r\n{secret}\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as line:
            line.sendall(raw.encode())
            line.recv(4096)
    for path in ("/v1/live", "/v1/ingest", f"/v1/agents/{secret}/channel", f"/{secret}"):
        for key in (secret, server.key("admin")):
            with (
                suppress(WebSocketException, ConnectionClosed, InvalidStatus),
                connect(
                    f"{server.socket_url}{path}?key={secret}",
                    subprotocols=[Subprotocol(secret)],
                    additional_headers={"x": secret},
                ) as websocket,
            ):
                websocket.send(json.dumps({"op": "auth", "key": key}))
                websocket.send(secret)
                websocket.send(json.dumps({"id": secret, "message": {secret: secret}}))
                websocket.recv(2)
    plain.close()


def test_no_secret_gets_into_a_log_line_wherever_it_was_put_s590_s591(loud: Server, server: Server) -> None:
    """S590, S591: not at the level debug, of no library, in neither form; and requests are told of."""
    secret = f"hunter2{uuid.uuid4().hex}"
    for deployment in (loud, server):
        planted(deployment, secret)
        assert deployment.http().get("/readyz").status_code == 200
        assert secret not in deployment.log
        assert [
            key
            for name, key in deployment.credentials.items()
            if name.endswith("_key") and key in deployment.log
        ] == []
        assert "Traceback" not in deployment.log
    received = [json.loads(line) for line in loud.log.splitlines() if line.startswith("{")]
    assert len(received) > 40 and all(
        {"time", "level", "logger", "message"} <= line.keys() for line in received
    )
    asked = [line for line in received if line["logger"] == "observatory.requests"]
    mine = [line for line in asked if line["endpoint"] == "/v1/messages" and line["code"] == 202]
    assert mine and {line["tenant"] for line in mine} == {"tnt_default"}
    assert all(line["key"].startswith("key_") and line["ms"] >= 0 for line in mine)
    assert {"/v1/sessions/{session_id}", "/login", "other", "/mcp"} <= {line["endpoint"] for line in asked}
    assert "observatory.requests" not in server.log, "only where somebody asked for it"


# --- stopping ---


class Load:
    """Agents that send without a pause, by POST, in batches and by socket; what was acknowledged is kept."""

    def __init__(self, server: Server) -> None:
        self.acknowledged: set[str] = set()
        self.codes: set[int] = set()
        self.close_code: int | None = None
        self._url, self._key, self._socket = server.url, server.key("agent"), server.socket_url
        self._threads = [threading.Thread(target=way) for way in (self._post, self._batch, self._pipe)]
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(20)
            assert not thread.is_alive()

    def _told(self, code: int, log: dict[str, Any]) -> None:
        self.codes.add(code)
        if code == 202:
            self.acknowledged.add(log["meta"]["step_id"])

    def _client(self) -> httpx2.Client:
        return httpx2.Client(
            base_url=self._url, headers={"Authorization": f"Bearer {self._key}"}, trust_env=False, timeout=20
        )

    def _post(self) -> None:
        with self._client() as client, suppress(httpx2.TransportError):
            while True:
                time.sleep(PACE_S)
                log = full_decision_log()
                self._told(client.post("/v1/messages", json=log).status_code, log)

    def _batch(self) -> None:
        with self._client() as client, suppress(httpx2.TransportError):
            while True:
                time.sleep(PACE_S)
                logs = [full_decision_log() for _ in range(5)]
                body = "\n".join(json.dumps(log) for log in logs)
                kind = {"content-type": "application/x-ndjson"}
                answer = client.post("/v1/messages", content=body.encode(), headers=kind)
                self.codes.add(answer.status_code)
                if answer.status_code == 200:
                    for line, log in zip(answer.text.splitlines(), logs, strict=True):
                        self._told(json.loads(line)["code"], log)

    def _pipe(self) -> None:
        """Frames ahead of their answers, so that some are under way whenever it ends."""
        sent: list[dict[str, Any]] = []
        headers = {"Authorization": f"Bearer {self._key}"}
        with connect(f"{self._socket}/v1/ingest", additional_headers=headers) as websocket:
            with suppress(ConnectionClosed):
                while True:
                    sent.append(full_decision_log())
                    websocket.send(json.dumps({"id": len(sent) - 1, "message": sent[-1]}))
                    if len(sent) % 8 == 0:
                        time.sleep(PACE_S)
                        for _ in range(7):
                            self._heard(websocket, sent)
            with suppress(ConnectionClosed):
                while True:
                    self._heard(websocket, sent)
            self.close_code = websocket.close_code

    def _heard(self, websocket: Connection, sent: list[dict[str, Any]]) -> None:
        answer = json.loads(websocket.recv(20))
        self._told(answer["code"], sent[answer["id"]])


def half_a_request(server: Server) -> socket.socket:
    """Of a client that hangs: it never says the rest."""
    line = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    line.sendall(
        f"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {server.key('agent')}\r\n"
        "content-type: application/json\r\ncontent-length: 1000\r\n\r\n{".encode()
    )
    return line


def ended(process: Any, kind: signal.Signals) -> tuple[int, float]:
    began = time.monotonic()
    process.send_signal(kind)
    code: int = process.wait(30)
    return code, time.monotonic() - began


def stored(folder: Path) -> set[str]:
    connection = sqlite3.connect(f"file:{folder / 'observatory.db'}?mode=ro", uri=True)
    try:
        return {row[0] for row in connection.execute("SELECT step_id FROM messages")}
    finally:
        connection.close()


def test_a_gateway_stopped_under_load_has_answered_what_it_keeps_and_keeps_what_it_answered_s594(
    tmp_path: Path,
) -> None:
    """S594, S595, S585, S588: within its time, though one client hangs; sockets are told 1001.

    A backup was taken meanwhile. What is restored from it says that it is not signed; it has a long time to
    stop, and a second signal ends it at once.
    """
    folder = tmp_path / "data"
    places = ("/v1/agents/listener/channel", "/v1/live")
    with ExitStack() as stack:
        server = stack.enter_context(Server(folder, environment=QUIET | {"OBSERVATORY_SHUTDOWN_S": "4"}))
        headers = {"Authorization": f"Bearer {server.key('admin')}"}
        load = Load(server)
        doors = [
            # Looked at only at the end; pings are answered meanwhile because nothing stands in their way.
            stack.enter_context(
                connect(f"{server.socket_url}{place}", additional_headers=headers, max_queue=None)
            )
            for place in places
        ]
        doors[1].send(json.dumps({"op": "subscribe", "topics": ["fleet"]}))
        until(lambda: len(load.acknowledged) > 50)
        # A backup without a signed checkpoint could be signed anew by whoever restores it.
        until(lambda: server.http("admin").get("/v1/audit/checkpoints?limit=1").json()["items"])
        before = set(load.acknowledged)
        backup = observatory("backup", "--to", str(tmp_path), "--data", str(folder))
        assert backup.returncode == 0, backup.stderr
        stack.enter_context(half_a_request(server))
        until(lambda: len(load.acknowledged) > len(before) + 50)
        code, took = ended(server.process, signal.SIGTERM)
        load.join()
        for websocket in doors:
            with suppress(ConnectionClosed):
                while True:
                    websocket.recv(5)
    assert (code, took < 10) == (0, True), (code, took, server.log)
    assert load.codes <= {200, 202, 429, 503}, load.codes
    assert [load.close_code, *(websocket.close_code for websocket in doors)] == [1001, 1001, 1001]
    found = stored(folder)
    assert len(load.acknowledged) > 100 and load.acknowledged <= found

    [path] = tmp_path.glob("*.backup")
    restored = observatory("restore", "--from", str(path), "--data", str(tmp_path / "restored"), "--json")
    assert restored.returncode == 0, restored.stderr
    [kept] = json.loads(restored.stdout)["tenants"]
    assert kept["valid"] and len(before) <= kept["payloads_checked"] < len(found)
    assert before <= stored(tmp_path / "restored") < found, "all that was acknowledged before it began"

    with Server(tmp_path / "restored", environment=QUIET | {"OBSERVATORY_SHUTDOWN_S": "60"}) as again:
        assert "not signed" in until(lambda: again.http().get("/readyz").json().get("detail", ""))
        with half_a_request(again):
            # Heard before it is told to stop: beside the scrape itself one request is inside.
            until(lambda: "\nobservatory_http_in_flight 2\n" in again.http().get("/metrics").text)
            process = again.process
            process.send_signal(signal.SIGTERM)
            until(lambda: is_closed(again.port))
            time.sleep(0.3)
            assert process.poll() is None, "it waits for the one that hangs"
            code, took = ended(process, signal.SIGTERM)
        assert (code, took < 5) == (0, True), (code, took, again.log)


def is_closed(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
    except OSError:
        return True
    return False
