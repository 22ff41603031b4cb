"""`python -m bench.webhooks [--quick]`: receivers fail, the sender is killed, nothing is lost.

Three receivers: two answer 30 % of what they get with a failure of some kind (a code, a redirect, a broken
line, silence), one never answers well. Messages are sent, the gateway is killed (-9) at a random moment and
started again. At the end every event, for every endpoint, must be delivered or in the dead letters; what was
sent more than once must have come under the same id with the same bytes; and no id may stand for two events.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import socket
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

import httpx2

from bench.gateway import Gateway
from bench.postgres import database
from bench.report import OUT
from bench.soak import Lost, table, tell

FAILING = 0.3
SCHEDULE_S = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
DEAD_SCHEDULE_S = [0.1, 0.1]
EVENT = "message_delivered"
Json = dict[str, Any]


@dataclass
class Outcome:
    kills: int = 0
    events: int = 0
    deliveries: int = 0
    delivered: int = 0
    dead: int = 0
    requests: int = 0
    failed_by_receivers: int = 0
    repeats: int = 0
    seconds: float = 0.0

    def table(self) -> str:
        counts = {
            "kill -9 of the sender": self.kills,
            "events": self.events,
            "deliveries (an event for an endpoint)": self.deliveries,
            "… delivered": self.delivered,
            "… in the dead letters": self.dead,
            "requests the receivers got": self.requests,
            "… that they failed": self.failed_by_receivers,
            "… that were repeats of what had been taken": self.repeats,
            "events lost": 0,
            "ids with two bodies, or of two events": 0,
        }
        return table(counts, {"whole run": f"{self.seconds:.1f}"})


@dataclass
class Receivers:
    """What came, by path and id; what was taken."""

    chance: random.Random
    bodies: dict[tuple[str, str], set[bytes]] = field(default_factory=dict)
    taken: Counter[tuple[str, str]] = field(default_factory=Counter)
    requests: int = 0
    failed: int = 0
    failing: float = FAILING

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                body = self.rfile.read(length)
                if len(body) < length:  # the sender was killed amid it: its signature would not be valid
                    self.close_connection = True
                    return
                code = outer.heard(self.path, str(self.headers["webhook-id"]), body)
                if code == 0:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
                self.send_response(code)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """A sender that was killed breaks its lines off."""

        self._server = Quiet(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def heard(self, path: str, name: str, body: bytes) -> int:
        with self._lock:
            self.requests += 1
            self.bodies.setdefault((path, name), set()).add(body)
            if path == "/never" or self.chance.random() < self.failing:
                self.failed += 1
                return self.chance.choice((500, 503, 404, 302, 0))
            self.taken[path, name] += 1
            return 204


class Killable(Protocol):
    """A gateway on a folder of its own."""

    @property
    def folder(self) -> Path: ...
    def start(self) -> object: ...
    def kill(self) -> object: ...


class Run:
    def __init__(self, gateway: Killable, seed: int, say: Callable[[str], None]) -> None:
        self.gateway, self.say = gateway, say
        self.chance = random.Random(seed)
        self.receivers = Receivers(random.Random(seed + 1))
        self.endpoints: dict[str, str] = {}
        self.sent = 0

    def http(self) -> httpx2.Client:
        found = json.loads((self.gateway.folder / "credentials.json").read_text())
        headers = {"authorization": f"Bearer {found['admin_key']}"}
        return httpx2.Client(base_url=found["url"], headers=headers, timeout=30, trust_env=False)

    def furnish(self) -> None:
        with self.http() as http:
            for path in ("/one", "/two", "/never"):
                schedule = DEAD_SCHEDULE_S if path == "/never" else SCHEDULE_S
                body: Json = {"name": path, "url": f"{self.receivers.url}{path}", "events": [EVENT]}
                body |= {"schedule_s": schedule, "rate_per_min": 60_000}
                made = http.post("/v1/webhooks/out", json=body)
                assert made.status_code == 201, made.text
                self.endpoints[path] = made.json()["endpoint_id"]

    def send(self, many: int) -> None:
        lines = b"\n".join(_message(self.chance.randrange(8)) for _ in range(many))
        with self.http() as http:
            received = http.post(
                "/v1/messages", content=lines, headers={"content-type": "application/x-ndjson"}
            )
        codes = [json.loads(line)["code"] for line in received.text.splitlines()]
        if codes != [202] * many:
            raise Lost(f"messages were not accepted: {codes}")
        self.sent += many

    def settle(self, patience_s: float) -> None:
        """Until nothing waits any more."""
        end = time.monotonic() + patience_s
        self.receivers.failing = FAILING / 2  # the last few need not be unlucky for ever
        with self.http() as http:
            while True:
                items = http.get("/v1/webhooks/out").json()["items"]
                waiting = [one["waiting"] for one in items]
                # Nothing waits, and as many deliveries were made as there are events to send.
                if not any(waiting) and all(len(self.rows(http, one)) >= self.sent for one in self.endpoints):
                    return
                if time.monotonic() > end:
                    raise Lost(f"deliveries still wait: {waiting}")
                time.sleep(0.2)

    def rows(self, http: httpx2.Client, path: str) -> list[Json]:
        found, cursor = list[Json](), None
        while True:
            query: Json = {"limit": 1000} | ({"cursor": cursor} if cursor else {})
            answer = http.get(f"/v1/webhooks/out/{self.endpoints[path]}/deliveries", params=query).json()
            found += answer["items"]
            cursor = answer["next_cursor"]
            if cursor is None:
                return found

    def letters(self, http: httpx2.Client) -> set[str]:
        found, cursor = set[str](), None
        while True:
            query: Json = {"kind": "webhook", "limit": 1000} | ({"cursor": cursor} if cursor else {})
            answer = http.get("/v1/dead-letters", params=query).json()
            found |= {one["subject_id"] for one in answer["items"]}
            cursor = answer["next_cursor"]
            if cursor is None:
                return found

    def judge(self, outcome: Outcome) -> None:
        """Raises Lost when a promise was broken, or nothing was proved."""
        outcome.events = self.sent
        outcome.requests, outcome.failed_by_receivers = self.receivers.requests, self.receivers.failed
        with self.http() as http:
            buried = self.letters(http)
            for path in self.endpoints:
                self._judge(path, self.rows(http, path), buried, outcome)
        for (path, name), bodies in self.receivers.bodies.items():
            if len(bodies) != 1:
                raise Lost(f"{name} came to {path} with {len(bodies)} bodies")
        outcome.repeats = sum(times - 1 for times in self.receivers.taken.values())
        if not outcome.dead or not self.receivers.failed:
            raise Lost("nothing failed for good: the run proves nothing")

    def _judge(self, path: str, rows: list[Json], buried: set[str], outcome: Outcome) -> None:
        numbers = {row["sequence_number"] for row in rows}
        if len(rows) != self.sent or len(numbers) != self.sent:
            raise Lost(f"{path}: {len(rows)} deliveries of {self.sent} events")
        for row in rows:
            name = row["delivery_id"]
            outcome.deliveries += 1
            if row["state"] == "delivered":
                outcome.delivered += 1
                if not self.receivers.taken[path, name]:
                    raise Lost(f"{name} is said to be delivered to {path}, which never took it")
            elif row["state"] == "dead" and name in buried:
                outcome.dead += 1
            else:
                raise Lost(f"{name} for {path} is {row['state']} and in no dead letter")


def _message(session: int) -> bytes:
    step, at = str(uuid.uuid4()), datetime.now(UTC).isoformat()
    meta = {"trace_id": str(uuid.uuid4()), "parent_step_id": None, "step_id": step, "timestamp": at}
    meta |= {"session_id": f"ses_{session}", "cluster_id": "bench"}
    who = {"agent_id": f"agent-{session}", "agent_type": "bench", "capability_version": "1.0.0"}
    return json.dumps(
        {"meta": meta, "identity": who, "action": {"status": "success", "tool_call": step}}
    ).encode()


def run(gateway: Killable, kills: int, seed: int, say: Callable[[str], None], many: int = 20) -> Outcome:
    began, outcome = time.monotonic(), Outcome()
    work = Run(gateway, seed, say)
    gateway.start()
    work.furnish()
    for number in range(kills):
        work.send(many)
        time.sleep(work.chance.uniform(0.05, 0.9))
        gateway.kill()
        outcome.kills += 1
        gateway.start()
        if (number + 1) % 10 == 0:
            say(f"{number + 1} kills, {work.receivers.requests:,} requests, {work.receivers.failed:,} failed")
    work.send(many)
    work.settle(60 + kills)
    work.judge(outcome)
    outcome.seconds = time.monotonic() - began
    return outcome


SETTINGS = {"egress_allow": "127.0.0.1", "insight": "false"}


def main() -> None:
    received = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m bench.webhooks", description=received)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--db", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    OUT.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="webhooks-", dir=OUT))
    kills = 2 if asked.quick else asked.kills
    try:
        if asked.db == "sqlite":
            outcome = _conduct(Gateway(folder, settings=SETTINGS), kills, asked.seed)
        else:
            with database() as url:
                outcome = _conduct(Gateway(folder, db=url, settings=SETTINGS), kills, asked.seed)
    except Lost as lost:
        print(f"\nFAILED: {lost}\nthe folder is kept: {folder}", file=sys.stderr)
        sys.exit(1)
    print("\n" + outcome.table())
    shutil.rmtree(folder, ignore_errors=True)


def _conduct(gateway: Killable, kills: int, seed: int) -> Outcome:
    try:
        return run(gateway, kills, seed, tell)
    finally:
        gateway.kill()


if __name__ == "__main__":
    main()
