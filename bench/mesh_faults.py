"""`python -m bench.mesh_faults [--messages 100000]`: two gateways, one and NATS killed -9, again and again.

Writers send batches to one gateway and, when it is cut off, the same bytes to the other; each remembers only
what was answered whole. Every few seconds a gateway is killed and started again, or NATS is and stays away
for a moment. At the end, straight from the database: every acknowledged message is there once, under its
number, id and bytes; no step is there twice; the sequence is dense and the chain verifies. A run in which no
kill met a message under way proves nothing and fails. A reader of the live feed, which moves to the other
gateway whenever its own dies, must have heard every number once and in order.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from bench.evidence import PostgresEvidence
from bench.gateway import Gateway
from bench.kill import Witness
from bench.load import request_bytes
from bench.mesh import deployment
from bench.report import OUT
from bench.soak import Lost, table, tell
from bench.writers import Ledger, Writer
from tests.nats_server import Nats

LINES = 100
BETWEEN_S = (1.0, 2.5)  # so long the writers write between two faults
AWAY_S = 0.5  # so long NATS is away


class Mover(Writer):
    """A writer that knows several gateways and goes to the next when its own is cut off."""

    def __init__(self, number: int, ports: list[int], key: str, ledger: Ledger, seed: int) -> None:
        gate = threading.Event()
        gate.set()
        super().__init__(number, ports[number % len(ports)], key, ledger, gate, seed)
        self._ports = ports

    def run(self) -> None:
        while not self._ending.is_set():
            bodies = self._mesh.logs(LINES)
            self._deliver(request_bytes(self._port, self._key, b"\n".join(bodies), True), bodies, True)
        super()._hang_up()

    def _hang_up(self) -> None:
        super()._hang_up()
        self._port = self._ports[(self._ports.index(self._port) + 1) % len(self._ports)]


class Listener(threading.Thread):
    """A reader of the live feed that comes back with its cursor, at the other gateway."""

    def __init__(self, ports: list[int], key: str) -> None:
        super().__init__(daemon=True)
        self._ports, self._key = ports, key
        self.cursor = self.heard = self.moves = 0
        self.fault = ""
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.is_set() and not self.fault:
            try:
                self._listen(self._ports[self.moves % len(self._ports)])
            except (OSError, WebSocketException):
                self.moves += 1
                time.sleep(0.05)

    def _listen(self, port: int) -> None:
        headers = {"Authorization": f"Bearer {self._key}"}
        url = f"ws://127.0.0.1:{port}/v1/live"
        with connect(url, additional_headers=headers, max_size=None, open_timeout=5) as socket:
            wish = {"op": "subscribe", "topics": ["events"], "after": self.cursor}
            socket.send(json.dumps(wish))
            while not self.over.is_set():
                try:
                    frame = json.loads(socket.recv(1))
                except TimeoutError:
                    continue
                if frame["type"] == "resync":  # it was too slow: the archive has what it missed
                    return
                for item in frame["items"]:
                    number = item["hash_chain"]["sequence_number"]
                    if number != self.heard + 1:
                        self.fault = f"event {number} was heard after {self.heard}"
                        return
                    self.heard = number
                self.cursor = max(self.cursor, frame["seq"])


@dataclass
class Outcome:
    acknowledged: int = 0
    stored: int = 0
    gateway_kills: int = 0
    nats_kills: int = 0
    kills_with_messages_in_flight: int = 0
    resent: int = 0
    refused: int = 0
    events: int = 0
    heard: int = 0
    moves: int = 0
    seconds: float = 0.0

    def judge(self) -> None:
        if not self.kills_with_messages_in_flight or not self.resent:
            raise Lost("no message was in flight at any kill: the run proves nothing")
        if not self.nats_kills:
            raise Lost("NATS was never killed: the run proves nothing")

    def table(self) -> str:
        counts = {
            "messages acknowledged": self.acknowledged,
            "messages stored": self.stored,
            "acknowledged messages lost": 0,
            "messages stored twice": 0,
            "gateways killed with kill -9": self.gateway_kills,
            "… with messages in flight": self.kills_with_messages_in_flight,
            "NATS killed with kill -9": self.nats_kills,
            "messages sent again, to the other gateway": self.resent,
            "requests told to come again (429, 503)": self.refused,
            "events verified in the chain": self.events,
            "events heard live, each once and in order": self.heard,
            "… by a reader that moved so often": self.moves,
        }
        rate = self.acknowledged / max(0.001, self.seconds)
        counts["messages a second"] = round(rate)
        return table(counts, {"whole run": f"{self.seconds:.1f}"})


def run(
    gateways: list[Gateway], nats: Nats, db: str, messages: int, seed: int, say: Callable[[str], None]
) -> Outcome:
    """Raises Lost when a promise is broken or the run proves nothing."""
    outcome, ledger, chance = Outcome(), Ledger(), random.Random(seed)
    ports, key, began = [one.port for one in gateways], gateways[0].key, time.monotonic()
    team = [Mover(number, ports, key, ledger, seed) for number in range(4)]
    listener = Listener(ports, gateways[0].reader_key)
    for thread in (*team, listener):
        thread.start()
    try:
        # A short run goes on until both have been killed.
        while (len(ledger.acks) < messages or not outcome.nats_kills) and not ledger.faults:
            time.sleep(chance.uniform(*BETWEEN_S))  # the load itself: a fault at a random moment of it
            if outcome.gateway_kills > outcome.nats_kills:
                nats.kill()
                outcome.nats_kills += 1
                time.sleep(AWAY_S)
                nats.start()
                line = "NATS killed and started"
            else:
                line = _kill(gateways[outcome.gateway_kills % len(gateways)], team, outcome)
            say(f"{len(ledger.acks):>9,} acknowledged: {line}")
    finally:
        for writer in team:
            writer.end()
        for writer in team:
            writer.join(60)
    outcome.seconds = time.monotonic() - began
    witness = Witness(PostgresEvidence(db))
    witness.check(ledger, whole=True)
    _hear_all(listener, witness.head)
    outcome.acknowledged, outcome.stored, outcome.events = len(ledger.acks), witness.stored, witness.head
    outcome.resent, outcome.refused = ledger.resent, ledger.refused
    outcome.heard, outcome.moves = listener.heard, listener.moves
    outcome.judge()
    return outcome


def _kill(victim: Gateway, team: list[Mover], outcome: Outcome) -> str:
    victim.freeze()
    waiting = sum(writer.in_flight for writer in team)
    victim.kill()
    outcome.gateway_kills += 1
    outcome.kills_with_messages_in_flight += waiting > 0
    victim.start()
    return f"gateway on port {victim.port} killed with {waiting} messages in flight, and started"


def _hear_all(listener: Listener, head: int) -> None:
    deadline = time.monotonic() + 120
    while listener.heard < head and not listener.fault and time.monotonic() < deadline:
        time.sleep(0.05)
    listener.over.set()
    listener.join(10)
    if listener.fault or listener.heard < head:
        raise Lost(listener.fault or f"the live reader heard {listener.heard:,} of {head:,} events")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.mesh_faults", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--quick", action="store_true", help="5,000 messages")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    OUT.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="mesh-faults-", dir=OUT))
    try:
        with deployment(folder, 2, insight="false") as (gateways, server, nats):
            db = server.url.replace("/postgres?", "/observatory?")
            count = 5_000 if asked.quick else asked.messages
            outcome = run(gateways, nats, db, count, asked.seed, tell)
    except Lost as lost:
        print(f"\nFAILED: {lost}\nthe folder is kept: {folder}", file=sys.stderr)
        sys.exit(1)
    print("\n" + outcome.table())
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
