"""The lean client: a process of its own, raw sockets, prebuilt requests, one epoll loop, keep-alive.

It measures what it sees (rate, latency) and what it costs (its own CPU). Every answer is read whole and
checked; whatever is not the answer expected is counted and its first sample kept.
"""

from __future__ import annotations

import multiprocessing
import select
import socket
import time
from collections import deque
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Literal

from bench.messages import Mesh
from bench.spans import Batch, batches

Kind = Literal["logs", "violations", "spans"]


@dataclass(frozen=True)
class Job:
    """`lines` of 0 means single POSTs."""

    port: int
    key: str
    messages: int
    lines: int
    connections: int
    sessions: int = 200
    kind: Kind = "logs"


@dataclass
class Tally:
    messages: int = 0
    requests: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0
    wrong: int = 0
    sample: str = ""
    message_bytes: float = 0.0
    latencies_ms: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return self.messages / self.seconds

    def quantile_ms(self, share: float) -> float:
        ordered = sorted(self.latencies_ms)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(frozen=True)
class Request:
    data: bytes
    messages: int
    status: bytes
    mark: bytes

    def is_answered_by(self, answer: bytes) -> bool:
        if not answer.startswith(self.status):
            return False
        return not self.mark or answer.count(self.mark) == self.messages


def request_bytes(port: int, key: str, body: bytes, is_batch: bool) -> bytes:
    kind = "x-ndjson" if is_batch else "json"
    head = (
        f"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/{kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def build(job: Job, mesh: Mesh) -> list[Request]:
    if job.kind == "spans":
        return [spans_request(job.port, job.key, part) for part in batches(job.messages, job.lines)]
    bodies = mesh.logs(job.messages) if job.kind == "logs" else mesh.violations(job.messages)
    code = b"202" if job.kind == "logs" else b"422"
    if not job.lines:
        status = b"HTTP/1.1 " + code
        return [Request(request_bytes(job.port, job.key, body, False), 1, status, b"") for body in bodies]
    chunks = [bodies[i : i + job.lines] for i in range(0, len(bodies), job.lines)]
    mark = b'"code":' + code + b","
    return [
        Request(
            request_bytes(job.port, job.key, b"\n".join(part) + b"\n", True), len(part), b"HTTP/1.1 200", mark
        )
        for part in chunks
    ]


def spans_request(port: int, key: str, batch: Batch) -> Request:
    """All of them taken is answered with nothing at all."""
    head = (
        f"POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/x-protobuf\r\nContent-Length: {len(batch.body)}\r\n\r\n"
    )
    return Request(head.encode() + batch.body, batch.spans, b"HTTP/1.1 200", b"")


class _Wire:
    """One connection: one request in flight."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.request: Request | None = None
        self.unsent = memoryview(b"")
        self.received = bytearray()
        self.total = 0
        self.began = 0.0

    def begin(self, request: Request) -> None:
        self.request, self.unsent, self.total = request, memoryview(request.data), 0
        self.received.clear()
        self.began = time.perf_counter()
        self.send()

    def send(self) -> None:
        try:
            while self.unsent:
                self.unsent = self.unsent[self.socket.send(self.unsent) :]
        except BlockingIOError:
            pass

    def receive(self) -> bool:
        """True once the whole answer is here."""
        part = self.socket.recv(1 << 20)
        if not part:
            raise ConnectionError("the server closed the connection")
        self.received += part
        if not self.total:
            end = self.received.find(b"\r\n\r\n")
            if end < 0:
                return False
            head = self.received[:end].lower()
            self.total = end + 4 + int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        return len(self.received) >= self.total


def drive(port: int, requests: list[Request], connections: int) -> Tally:
    tally, waiting = Tally(), deque(requests)
    poll = select.epoll()
    wires: dict[int, _Wire] = {}
    for _ in range(min(connections, len(requests))):
        wire = _Wire(port)
        wires[wire.socket.fileno()] = wire
        poll.register(wire.socket.fileno(), select.EPOLLIN)
    cpu, began = time.process_time(), time.perf_counter()
    for wire in wires.values():
        _begin(poll, wire, waiting.popleft())
    busy = len(wires)
    while busy:
        for number, event in poll.poll(30):
            wire = wires[number]
            if event & select.EPOLLOUT:
                wire.send()
                if not wire.unsent:
                    poll.modify(number, select.EPOLLIN)
            if not event & ~select.EPOLLOUT or not wire.receive():
                continue
            _count(tally, wire)
            if waiting:
                _begin(poll, wire, waiting.popleft())
            else:
                busy -= 1
    tally.seconds = time.perf_counter() - began
    tally.cpu_s = time.process_time() - cpu
    for wire in wires.values():
        wire.socket.close()
    return tally


def _begin(poll: select.epoll, wire: _Wire, request: Request) -> None:
    wire.begin(request)
    if wire.unsent:
        poll.modify(wire.socket.fileno(), select.EPOLLIN | select.EPOLLOUT)


def _count(tally: Tally, wire: _Wire) -> None:
    assert wire.request is not None
    tally.latencies_ms.append((time.perf_counter() - wire.began) * 1_000)
    tally.requests += 1
    tally.messages += wire.request.messages
    if not wire.request.is_answered_by(bytes(wire.received)):
        tally.wrong += 1
        tally.sample = tally.sample or wire.received[:600].decode(errors="replace")


def _serve(pipe: Connection) -> None:
    while (job := pipe.recv()) is not None:
        requests = build(job, Mesh(job.sessions, seed=time.time_ns()))
        pipe.send("built")
        pipe.recv()
        tally = drive(job.port, requests, job.connections)
        size = sum(len(one.data) - one.data.index(b"\r\n\r\n") - 4 for one in requests)
        tally.message_bytes = size / tally.messages
        pipe.send(tally)


class Client:
    """A client process: `build` first, then `run`, so that only sending is measured."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def build(self, job: Job) -> None:
        self._pipe.send(job)
        self._pipe.recv()

    def run(self) -> Tally:
        self._pipe.send("go")
        tally: Tally = self._pipe.recv()
        return tally

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.is_alive():
            self._pipe.send(None)
            self._process.join(5)
        self._process.kill()
