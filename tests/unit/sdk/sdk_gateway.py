"""A small gateway for SDK tests: real sockets, the contract's answers, and every way to misbehave.

It judges with the protocol's own strict decoder, so a line the SDK writes must fit the wire exactly.
"""

import json
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec

from observatory import Agent
from observatory.protocol.decision_log import DecisionLog
from observatory.protocol.decoders import strict_decoder
from observatory.sdk import Outbox
from observatory.sdk.credentials import GatewayCredentials
from observatory.sdk.delivery import Delivery

KEY = "obs_test_key"
PATIENCE_S = 20.0
QUICK = Delivery(linger_s=0.005, backoff_s=0.01, max_backoff_s=0.05)
_decode = strict_decoder(DecisionLog).decode


class FakeGateway:
    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.logs: list[dict[str, Any]] = []
        self.requests: list[list[bytes]] = []
        self.repeats = 0
        self.refused = 0
        self.replies: deque[tuple[int, dict[str, str]]] = deque()
        self.cut_after: int | None = None
        self.refuse_size: int | None = None
        self.refusal: dict[str, Any] | None = None  # what it says to every line
        self.hang = threading.Event()
        self.key = KEY
        self._seen: dict[str, tuple[bytes, dict[str, Any]]] = {}
        self._server: ThreadingHTTPServer | None = None
        self._open: set[socket.socket] = set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def credentials(self, data: Any) -> GatewayCredentials:
        return GatewayCredentials(self.url, KEY, data)

    def start(self) -> "FakeGateway":
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16  # one packet an answer: two would wait 40 ms for a delayed ACK

            def setup(self) -> None:
                super().setup()
                gateway._open.add(self.connection)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                authorization = self.headers.get("Authorization", "")
                if self.path == "/v1/messages":
                    self.answer(*gateway.judge(authorization, body))
                else:
                    self.answer(*gateway.other(authorization, self.path, body))

            def do_GET(self) -> None:
                authorization = self.headers.get("Authorization", "")
                if self.headers.get("Upgrade") == "websocket":
                    gateway.upgrade(self, authorization)
                else:
                    self.answer(*gateway.other(authorization, self.path, b""))

            def answer(self, status: int, headers: dict[str, str], answer: bytes) -> None:
                with suppress(OSError):
                    self.send_response(status)
                    for name, value in {**headers, "Content-Length": str(len(answer))}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(answer)

            def log_message(self, *_: Any) -> None: ...

        class Server(ThreadingHTTPServer):
            allow_reuse_address = True

            def handle_error(self, *_: Any) -> None: ...  # a client that went away

        self._server = Server(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def stop(self) -> None:
        """Gone, as by kill -9: nothing listens, open connections break."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def other(self, authorization: str, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """All but `POST /v1/messages`: this gateway only takes messages."""
        return 404, {}, b""

    def upgrade(self, handler: Any, authorization: str) -> None:
        handler.answer(404, {}, b"")

    def judge(self, authorization: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        lines = body.splitlines()
        with self.changed:
            self.requests.append(lines)
            self.changed.notify_all()
            reply = self.replies.popleft() if self.replies else None
        if self.hang.is_set():
            with self.changed:
                self.changed.wait_for(lambda: not self.hang.is_set(), PATIENCE_S)
        if reply is not None:
            return *reply, b""
        if authorization != f"Bearer {self.key}":
            return 401, {}, b""
        if self.refuse_size is not None and len(body) > self.refuse_size:
            return 413, {}, b""
        with self.changed:
            answers = [self._answer(line) for line in lines[: self.cut_after]]
            self.cut_after = None
            self.changed.notify_all()
        return 200, {"Content-Type": "application/x-ndjson"}, b"".join(a + b"\n" for a in answers)

    def _answer(self, line: bytes) -> bytes:
        if self.refusal is not None:
            return json.dumps(self.refusal).encode()
        try:
            log = _decode(line)
        except msgspec.MsgspecError as exc:
            self.refused += 1
            faults = [{"path": "$", "problem": str(exc).partition(" - ")[0]}]
            said: dict[str, Any] = {"code": 422, "status": "rejected", "reason": "schema_violation"}
            return json.dumps(said | {"faults": faults, "raw_payload_hash": "sha256:0"}).encode()
        step_id = str(log.meta.step_id)
        if step_id in self._seen:
            before, answer = self._seen[step_id]
            self.repeats += 1
            return json.dumps(answer if before == line else {"code": 409, "reason": "conflict"}).encode()
        self.logs.append(json.loads(line))
        answer = {
            "code": 202, "status": "accepted", "message_id": f"msg_{len(self.logs)}", "step_id": step_id,
            "session_id": log.meta.session_id, "sequence_number": len(self.logs), "state": "forwarded",
            "warnings": [],
        }  # fmt: skip
        self._seen[step_id] = line, answer
        return json.dumps(answer).encode()

    def wait_for(self, done: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(done, PATIENCE_S), len(self.logs)

    def let_go(self) -> None:
        with self.changed:
            self.hang.clear()
            self.changed.notify_all()

    @property
    def intents(self) -> list[str]:
        return [log["cognition"]["intent"] for log in self.logs]


@contextmanager
def running() -> Iterator[FakeGateway]:
    gateway = FakeGateway().start()
    try:
        yield gateway
    finally:
        gateway.let_go()
        gateway.stop()


def agent_at(gateway: FakeGateway, data: Path, name: str = "researcher-1", **delivery: float) -> Agent:
    return Agent(name, outbox=Outbox(name, gateway.credentials(data), QUICK._replace(**delivery)))  # type: ignore[arg-type]


def spooled(data: Path) -> list[str]:
    """The messages on disk; the first line of a file says for which gateway they are."""
    return [line for path in sorted(data.glob("spool/*.jsonl")) for line in path.read_text().splitlines()[1:]]


class FakeClock:
    """Time that stands still until it is told to move; `waits` lets a test see the sender at rest."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float | None] = []
        self._rested = threading.Condition()

    def monotonic(self) -> float:
        return self.now

    def wait(self, changed: threading.Condition, timeout: float | None) -> None:
        with self._rested:
            self.waits.append(timeout)
            self._rested.notify_all()
        changed.wait(PATIENCE_S)

    def rest(self, n: int) -> None:
        """Wait until the sender has gone to rest `n` times in all."""
        with self._rested:
            assert self._rested.wait_for(lambda: len(self.waits) >= n, PATIENCE_S)

    def advance(self, seconds: float, changed: threading.Condition) -> None:
        with changed:
            self.now += seconds
            changed.notify_all()
