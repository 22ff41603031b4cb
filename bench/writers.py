"""Writers that stay at it: each sends unit after unit and remembers only what was answered whole.

A unit is one POST or one NDJSON batch. When the connection breaks, the same bytes are sent again once the
gateway is back, so that idempotency is tried with every kill.
"""

from __future__ import annotations

import hashlib
import json
import random
import socket
import threading
from dataclasses import dataclass, field

from bench.load import request_bytes
from bench.messages import Mesh

MARK = b'"step_id":"'


@dataclass(frozen=True)
class Ack:
    sequence_number: int
    message_id: str
    digest: bytes


@dataclass
class Ledger:
    """What the writers were promised, by step id."""

    acks: dict[str, Ack] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    resent: int = 0
    refused: int = 0
    # The head found after the last restart: a repeat answered with a number up to it was stored before.
    head_at_start: int = 0
    answered_as_before: int = 0


def step_of(body: bytes) -> str:
    start = body.index(MARK) + len(MARK)
    return body[start : start + 36].decode()


class Writer(threading.Thread):
    """`gate` is open while the gateway is up and may be written to."""

    def __init__(
        self, number: int, port: int, key: str, ledger: Ledger, gate: threading.Event, seed: int
    ) -> None:
        super().__init__(name=f"writer-{number}", daemon=True)
        self._port, self._key, self._ledger, self._gate = port, key, ledger, gate
        self._random = random.Random(seed * 1_000 + number)
        self._mesh = Mesh(10, seed * 1_000 + number)
        self._socket: socket.socket | None = None
        self._ending = threading.Event()
        self.in_flight = 0

    def end(self) -> None:
        self._ending.set()

    def run(self) -> None:
        while not self._ending.is_set():
            lines = 0 if self._random.random() < 0.5 else self._random.randrange(2, 60)
            bodies = self._mesh.logs(max(1, lines))
            data = request_bytes(self._port, self._key, b"\n".join(bodies), lines > 0)
            self._deliver(data, bodies, lines > 0)
        self._hang_up()

    def _deliver(self, data: bytes, bodies: list[bytes], is_batch: bool) -> None:
        """Until it is answered, or the end is called: then nothing was promised."""
        resent = False
        while not self._ending.is_set():
            if not self._gate.wait(0.2):
                continue
            try:
                status, answer = self._exchange(data, len(bodies))
            except OSError:
                self._hang_up()
                if self.in_flight:
                    resent = True
                    self._ledger.resent += len(bodies)
                self.in_flight = 0
                self._ending.wait(0.01)
                continue
            if self._record(status, answer, bodies, is_batch, resent):
                return
            self._ending.wait(0.02)

    def _exchange(self, data: bytes, count: int) -> tuple[int, bytes]:
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=30)
        self.in_flight = count
        self._socket.sendall(data)
        received, total = b"", -1
        while len(received) != total:
            part = self._socket.recv(1 << 20)
            if not part:
                raise ConnectionError("cut off")
            received += part
            end = received.find(b"\r\n\r\n")
            if total < 0 and end >= 0:
                length = received[:end].lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
                total = end + 4 + int(length)
        self.in_flight = 0
        return int(received[9:12]), received.partition(b"\r\n\r\n")[2]

    def _record(self, status: int, answer: bytes, bodies: list[bytes], is_batch: bool, resent: bool) -> bool:
        """False when the unit must be sent again (429, 503)."""
        ledger = self._ledger
        if status in (429, 503):
            ledger.refused += 1
            return False
        parts = [json.loads(line) for line in answer.splitlines()] if is_batch else [json.loads(answer)]
        codes = [part["code"] for part in parts] if is_batch else [status]
        if len(parts) != len(bodies) or (set(codes) - {202, 429, 503}):
            ledger.faults.append(f"answered {status} with {sorted(set(codes))} for {len(bodies)} messages")
            return True
        for code, part, body in zip(codes, parts, bodies, strict=True):
            if code == 202:
                step = step_of(body)
                ack = Ack(part["sequence_number"], part["message_id"], hashlib.sha256(body).digest())
                ledger.answered_as_before += resent and ack.sequence_number <= ledger.head_at_start
                before = ledger.acks.setdefault(step, ack)
                if (before.sequence_number, before.message_id) != (ack.sequence_number, ack.message_id):
                    ledger.faults.append(f"step {step} was answered with two numbers")
        return set(codes) == {202}

    def _hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
