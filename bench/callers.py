"""kill -9 amid webhooks that come in: every delivery that was taken becomes one message, and none two.

Callers bring signed deliveries through the public door; most try again until they are answered, as a good
sender does, and some again after that; the others give up at the first failure. The gateway is killed at
random moments. Afterwards the log of calls and the archive must agree: each acknowledged delivery is there
once, nothing that was taken is left behind, nothing came in twice.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2

from bench.evidence import Evidence, check_chain
from bench.gateway import Gateway
from bench.soak import Lost, conduct, table, tell, words

LOAD_S = (0.3, 1.5)
CALLERS = 4
PATIENCE_S = 90
MAPPING = {"intent": "look", "target": {"agent": "watcher"}, "payload": "{name: name}"}


@dataclass
class Outcome:
    cycles: int = 0
    in_transaction: int = 0
    acknowledged: int = 0
    repeated: int = 0
    given_up: int = 0
    finished_later: int = 0
    messages: int = 0
    seconds: float = 0.0

    def table(self) -> str:
        counts = {
            "kills": self.cycles,
            "of these inside a transaction": self.in_transaction,
            "deliveries acknowledged": self.acknowledged,
            "of these answered again as the first time": self.repeated,
            "deliveries their sender gave up": self.given_up,
            "of these taken all the same, and brought to their end": self.finished_later,
            "messages in the archive, each once": self.messages,
        }
        return table(counts, {"it took": f"{self.seconds:.0f}"})


@dataclass
class Caller(threading.Thread):
    """One sender. It knows the hook's address and secret, and no key."""

    gateway: Gateway
    hook: dict[str, Any]
    gate: threading.Event
    number: int
    seed: int
    ending: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)
        self.answers: dict[str, str] = {}
        self.given_up: set[str] = set()
        self.repeated = 0
        self.lost: Lost | None = None

    def __hash__(self) -> int:
        return self.number

    def run(self) -> None:
        chance, count = random.Random(self.seed), 0
        with httpx2.Client(trust_env=False, timeout=10) as client:
            while not self.ending.is_set():
                count += 1
                try:
                    self.bring(client, f"{self.number}-{count}", chance)
                except Lost as lost:  # reported by the judge
                    self.lost = lost
                    return

    def bring(self, client: httpx2.Client, name: str, chance: random.Random) -> None:
        body = json.dumps({"name": name}).encode()
        signed = hmac.new(self.hook["secret"].encode(), body, hashlib.sha256).hexdigest()
        headers = {"X-Hub-Signature-256": f"sha256={signed}", "X-GitHub-Delivery": name}
        is_patient, times = chance.random() < 0.7, 1 + (chance.random() < 0.3)
        while times:
            self.gate.wait()
            url = f"http://127.0.0.1:{self.gateway.port}/v1/webhooks/{self.hook['hook_id']}"
            try:
                answer = client.post(url, content=body, headers=headers)
            except httpx2.TransportError:
                if not is_patient:
                    self.given_up.add(name)
                    return
                continue
            if answer.status_code == 202:
                self._heard(name, answer.json())
                times -= 1
            elif answer.status_code in (429, 503):
                time.sleep(0.05)
            else:
                raise Lost(f"a signed call was answered {answer.status_code}: {answer.text}")

    def _heard(self, name: str, received: dict[str, Any]) -> None:
        before = self.answers.setdefault(name, received["message_id"])
        if before != received["message_id"]:
            raise Lost(f"{name} became two messages: {before} and {received['message_id']}")
        self.repeated += received["repeated"]


def pages(http: httpx2.Client, path: str, **query: Any) -> Iterator[dict[str, Any]]:
    cursor = None
    while True:
        asked = query | {"limit": 1_000} | ({"cursor": cursor} if cursor else {})
        page = http.get(path, params=asked).raise_for_status().json()
        yield from page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return


def admin_of(gateway: Gateway) -> httpx2.Client:
    key = json.loads((gateway.folder / "credentials.json").read_text())["admin_key"]
    url, headers = f"http://127.0.0.1:{gateway.port}", {"Authorization": f"Bearer {key}"}
    return httpx2.Client(base_url=url, headers=headers, trust_env=False, timeout=30)


def run(gateway: Gateway, evidence: Evidence, cycles: int, seed: int) -> Outcome:
    """Raises Lost when a promise is broken or the run proves nothing."""
    outcome, gate, chance, began = Outcome(), threading.Event(), random.Random(seed), time.monotonic()
    gateway.start()
    with admin_of(gateway) as http:
        body = {"name": "callers", "scheme": "github", "mapping": MAPPING}
        hook = http.post("/v1/webhooks/in", json=body).raise_for_status().json()
    team = [Caller(gateway, hook, gate, number, seed * 100 + number) for number in range(CALLERS)]
    for one in team:
        one.start()
    for outcome.cycles in range(1, cycles + 1):
        gate.set()
        time.sleep(chance.uniform(*LOAD_S))  # the load itself: a kill at a random moment of it
        gateway.freeze()
        outcome.in_transaction += evidence.has_open_write(gateway.pid)
        gate.clear()
        gateway.kill()
        gateway.start()
        tell(f"cycle {outcome.cycles:>3}/{cycles}: {sum(len(one.answers) for one in team)} acknowledged")
    for one in team:
        one.ending.set()
    gate.set()
    for one in team:
        one.join(40)
    judge(gateway, evidence, team, outcome)
    gateway.stop()
    outcome.seconds = time.monotonic() - began
    return outcome


def judge(gateway: Gateway, evidence: Evidence, team: list[Caller], outcome: Outcome) -> None:
    for one in team:
        if one.lost is not None:
            raise one.lost
    with admin_of(gateway) as http:
        deadline = time.monotonic() + PATIENCE_S
        while list(pages(http, "/v1/webhooks/in/calls", outcome="taken")):
            if time.monotonic() > deadline:
                raise Lost(f"calls that were taken are left behind after {PATIENCE_S} s")
            time.sleep(1)
        calls = {row["delivery_id"]: row for row in pages(http, "/v1/webhooks/in/calls")}
        archived = Counter(item["message_id"] for item in pages(http, "/v1/messages"))
    answers = {name: message_id for one in team for name, message_id in one.answers.items()}
    given_up = set().union(*(one.given_up for one in team)) - answers.keys()
    for name, message_id in answers.items():
        if name not in calls or calls[name]["message_id"] != message_id or archived[message_id] != 1:
            raise Lost(f"{name} was acknowledged and is not in log and archive, once each")
    if (twice := [ident for ident, times in archived.items() if times > 1]) or len(calls) != len(archived):
        raise Lost(f"{len(calls)} calls became {archived.total()} messages; twice: {twice[:3]}")
    check_chain(evidence)
    outcome.acknowledged, outcome.repeated = len(answers), sum(one.repeated for one in team)
    outcome.given_up, outcome.finished_later = len(given_up), len(given_up & calls.keys())
    outcome.messages = len(archived)
    if outcome.acknowledged < outcome.cycles or not outcome.given_up:
        raise Lost("nothing much was sent: the run proves nothing")


def main() -> None:
    asked = words("bench.callers", __doc__, cycles=40).parse_args()
    conduct("callers", asked, lambda gateway, evidence: run(gateway, evidence, asked.cycles, asked.seed))


if __name__ == "__main__":
    main()
