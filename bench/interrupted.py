"""`python -m bench.interrupted --cycles N`: kill -9 of the gateway amid pauses, rewrites, injects and gates.

Agents speak in sessions of their own while operators pause, unpause, rewrite, inject, approve and reject at
random; the gateway is killed at random moments and started again on the same folder. Then the trail alone
is asked, by an outsider: was anything forwarded while its agent was paused; is arrival order kept; was a
gated message forwarded without its approval, or a rejected one at all; does what was delivered have the
digest of the rewrite in force; is every acknowledged message there once and ended once; is every answered
command recorded once. A run in which nothing was held at any kill proves nothing and fails.
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
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from bench.evidence import Evidence, check_chain
from bench.gateway import Gateway
from bench.kill import Lost, arena
from bench.report import OUT
from observatory.ledger.verify import GENESIS

Json = dict[str, Any]
LOAD_S = (0.15, 0.5)
MANY = 20
FIRST_S = 30


@dataclass
class Promised:
    """What agents and operators were answered."""

    steps: dict[str, Json] = field(default_factory=dict)  # step id -> the answer
    commands: list[str] = field(default_factory=list)  # intervention ids
    faults: list[str] = field(default_factory=list)
    held: set[str] = field(default_factory=set)
    rewrites: int = 0


class Caller(threading.Thread):
    """Speaks HTTP while the gate is open; whatever is cut off is its own to repeat."""

    def __init__(
        self, gateway: Gateway, key: str, gate: threading.Event, promised: Promised, seed: int
    ) -> None:
        super().__init__(daemon=True)
        self.gateway, self.gate, self.promised = gateway, gate, promised
        self.dice, self.ending = random.Random(seed), threading.Event()
        self.http = httpx2.Client(headers={"Authorization": f"Bearer {key}"}, timeout=20, trust_env=False)

    def call(self, method: str, path: str, body: Json | None = None) -> httpx2.Response | None:
        """None when the gateway is away or died meanwhile: the outcome is not known."""
        if not self.gate.wait(0.2):
            return None
        try:
            return self.http.request(method, f"http://127.0.0.1:{self.gateway.port}{path}", json=body)
        except httpx2.HTTPError:
            return None


class Voice(Caller):
    """One agent in one session; a step is sent until it is answered."""

    def __init__(self, number: int, gateway: Gateway, gate: threading.Event, promised: Promised, seed: int):
        super().__init__(gateway, gateway.key, gate, promised, seed)
        self.agent = f"voice-{number}"
        self.session = str(uuid.UUID(int=self.dice.getrandbits(128), version=4))
        self.count = 0

    def log(self, step: str, hitl: bool = False) -> Json:
        return {
            "meta": {
                "trace_id": self.session,
                "session_id": self.session,
                "step_id": step,
                "parent_step_id": None,
                "timestamp": "2026-02-16T14:32:00Z",
                "cluster_id": "local",
            },
            "identity": {"agent_id": self.agent, "agent_type": "voice", "capability_version": "1.0.0"},
            "cognition": {"intent": f"step {step}"},
            "action": {"status": "success"},
            "control": {"hitl_required": hitl},
        }

    def run(self) -> None:
        while not self.ending.is_set():
            self.count += 1
            step = f"{self.agent}-{self.count}"
            body = self.log(step, hitl=self.dice.random() < 0.08)
            while not self.ending.is_set():
                answer = self.call("POST", "/v1/messages", body)
                if answer is not None and answer.status_code == 202:
                    told = answer.json()
                    self.promised.steps[step] = told
                    if told["state"] == "held":
                        self.promised.held.add(step)
                    break
                if answer is not None and answer.status_code not in (429, 503):
                    self.promised.faults.append(f"{step}: {answer.status_code} {answer.text[:200]}")
                    break


class Hand(Caller):
    """An operator who steps in all the time."""

    def __init__(
        self, voices: list[Voice], gateway: Gateway, gate: threading.Event, promised: Promised, seed: int
    ):
        super().__init__(gateway, gateway.reader_key, gate, promised, seed)
        self.voices = voices

    def run(self) -> None:
        while not self.ending.is_set():
            self.command(self.dice.choice(self.voices), self.dice.random())

    def command(self, voice: Voice, roll: float) -> None:
        if roll < 0.3:
            self.do(voice, "pause", {})
        elif roll < 0.55:
            self.do(voice, "unpause", {})
        elif roll < 0.65:
            self.do(voice, "inject", {"prompt": "mind the order"})
        else:
            self.answer_what_is_held(voice)

    def answer_what_is_held(self, voice: Voice, gates_only: bool = False) -> bool:
        path = f"/v1/holds?session_id={voice.session}&limit=1000"
        found = self.call("GET", path)
        items = found.json()["items"] if found is not None and found.status_code == 200 else []
        gates = [item for item in items if item["gate"] == "open"]
        others = [item for item in items if item["gate"] == "none"]
        if gates:
            word = "approve" if self.dice.random() < 0.6 else "reject"
            self.do(voice, word, {"message_id": self.dice.choice(gates)["message_id"]})
        elif others and not gates_only:
            one = self.dice.choice(others)
            new = voice.log(one["step_id"]) | {"cognition": {"intent": f"rewritten {self.dice.random()}"}}
            self.do(voice, "rewrite", {"original_message_id": one["message_id"], "new_content": new})
        return bool(items)

    def do(self, voice: Voice, word: str, body: Json) -> None:
        answer = self.call("POST", f"/v1/sessions/{voice.session}/{word}", {"agent_id": voice.agent} | body)
        if answer is None or answer.status_code in (404, 409, 429, 503):
            return  # not known, or too late: both are allowed
        if answer.status_code not in (200, 202):
            self.promised.faults.append(f"{word}: {answer.status_code} {answer.text[:200]}")
        elif (done := answer.json().get("intervention_id")) is not None:
            self.promised.commands.append(done)
            self.promised.rewrites += word == "rewrite"


@dataclass
class Outcome:
    cycles: int = 0
    acknowledged: int = 0
    held: int = 0
    released: int = 0
    rejected: int = 0
    rewritten: int = 0
    commands: int = 0
    commands_unanswered: int = 0
    kills_in_transaction: int = 0
    kills_with_messages_held: int = 0
    events: int = 0
    seconds: float = 0.0

    def judge(self) -> None:
        if not self.released or not self.rewritten:
            raise Lost("nothing was held and released, or nothing rewritten: the run proves nothing")
        if self.cycles >= MANY and not self.kills_with_messages_held:
            raise Lost("nothing was held at any audited kill: the run proves nothing")

    def table(self) -> str:
        rows = [
            ("kill -9 cycles amid commands", self.cycles),
            ("kills that met an open write transaction", self.kills_in_transaction),
            ("audited kills with messages held", self.kills_with_messages_held),
            ("messages acknowledged", self.acknowledged),
            ("… held on arrival", self.held),
            ("… released", self.released),
            ("… of these rewritten", self.rewritten),
            ("… rejected", self.rejected),
            ("commands answered, each recorded once", self.commands),
            ("commands recorded whose answer was cut off", self.commands_unanswered),
            ("forwarded while paused, gated or rejected", 0),
            ("out of order, lost, doubled", 0),
            ("events verified in the chain", self.events),
        ]
        lines = [f"{name:<52}{value:>10,}" for name, value in rows]
        lines.append(f"{'whole run':<52}{self.seconds:>8.1f} s")
        return "\n".join(lines)


class Auditor:
    """Reads the trail from its beginning and holds the relay to its word."""

    def __init__(self) -> None:
        self.arrived: dict[str, list[str]] = {}  # agent -> steps in order of arrival
        self.ended: dict[str, str] = {}  # step -> delivered or rejected
        self.delivered: dict[str, list[str]] = {}
        self.paused: set[str] = set()
        self.gated: set[str] = set()
        self.approved: set[str] = set()
        self.content: dict[str, str] = {}  # step -> digest in force
        self.rewritten: set[str] = set()
        self.commands: dict[str, int] = {}
        self.step_of: dict[str, str] = {}  # message id -> step

    def read(self, event: Json) -> None:
        body, said = event["body"], event["attributes"]
        match body["event_type"]:
            case "message_held":
                self._arrive(body, said)
            case "gate_opened":
                self.gated.add(self.step_of[body["message_id"]])
            case "message_delivered":
                self._deliver(body, said)
            case "message_rejected":
                self._end(self.step_of[body["message_id"]], "rejected")
            case "hitl_intervention":
                self._command(body)

    def _arrive(self, body: Json, said: Json) -> str:
        step, agent = said["av.step.id"], said["av.sender.agent_id"]
        if step in self.content:
            raise Lost(f"{step} arrived twice")
        self.arrived.setdefault(agent, []).append(step)
        self.content[step], self.step_of[body["message_id"]] = said["av.message.digest"], step
        return str(step)

    def _deliver(self, body: Json, said: Json) -> None:
        agent = said["av.sender.agent_id"]
        if "held_sequence_number" not in body:
            step = self._arrive(body, said)
        else:
            step = self.step_of[body["message_id"]]
        if agent in self.paused:
            raise Lost(f"{step} was forwarded while {agent} was paused")
        if step in self.gated and step not in self.approved:
            raise Lost(f"{step} was forwarded without its approval")
        if said["av.message.digest"] != self.content[step]:
            raise Lost(f"{step} was forwarded with other content than is in force")
        self._end(step, "delivered")
        if step not in self.gated:
            self.delivered.setdefault(agent, []).append(step)

    def _end(self, step: str, how: str) -> None:
        if step in self.ended:
            raise Lost(f"{step} was {self.ended[step]} and then {how}")
        self.ended[step] = how

    def _command(self, body: Json) -> None:
        self.commands[body["intervention_id"]] = self.commands.get(body["intervention_id"], 0) + 1
        step = self.step_of.get(body["message_id"] or "")
        match body["command"]:
            case "pause":
                self.paused.add(body["agent_id"])
            case "unpause":
                self.paused.discard(body["agent_id"])
            case "approve" if step is not None:
                self.approved.add(step)
            case "rewrite" if step is not None:
                self.content[step] = body["after_hash"]
                self.rewritten.add(step)

    def judge(self, promised: Promised, is_over: bool) -> None:
        if promised.faults:
            raise Lost(f"a wrong answer: {promised.faults[0]} ({len(promised.faults)} in all)")
        for agent, steps in self.delivered.items():
            known = set(steps)
            if steps != [step for step in self.arrived[agent] if step in known]:
                raise Lost(f"what {agent} said was forwarded out of order")
        for step, answer in list(promised.steps.items()):
            if step not in self.content:
                raise Lost(f"{step}, acknowledged as {answer['sequence_number']}, is not in the trail")
            if is_over and step not in self.ended:
                raise Lost(f"{step} was neither forwarded nor rejected")
        for command in list(promised.commands):
            if self.commands.get(command) != 1:
                raise Lost(f"the command {command} is recorded {self.commands.get(command, 0)} times")


def audit(evidence: Evidence, promised: Promised, is_over: bool) -> tuple[Auditor, int]:
    head, broken = check_chain(evidence, (0, GENESIS))
    if broken:
        raise Lost(f"the chain is broken: {broken}")
    auditor = Auditor()
    for row in evidence.events(0):
        auditor.read(json.loads(row[1]))
    auditor.judge(promised, is_over)
    return auditor, head[0]


def run(
    gateway: Gateway,
    evidence: Evidence,
    cycles: int,
    seed: int,
    say: Callable[[str], None],
    audit_every: int = 10,
) -> Outcome:
    """Raises Lost when a promise is broken or the run proves nothing."""
    outcome, promised, gate = Outcome(), Promised(), threading.Event()
    chance, began = random.Random(seed), time.monotonic()
    gateway.start()
    voices = [Voice(number, gateway, gate, promised, seed * 100 + number) for number in range(4)]
    hands = [Hand(voices, gateway, gate, promised, seed * 100 + 50 + number) for number in range(3)]
    team: list[Caller] = [*voices, *hands]
    for one in team:
        one.start()
    try:
        gate.set()
        deadline = time.monotonic() + FIRST_S
        while not promised.rewrites and time.monotonic() < deadline:  # else a short run may prove nothing
            time.sleep(0.05)
        for number in range(1, cycles + 1):
            gate.set()
            time.sleep(chance.uniform(*LOAD_S))
            gate.clear()
            gateway.freeze()
            is_open = evidence.has_open_write(gateway.pid)
            gateway.kill()
            outcome.kills_in_transaction += is_open
            gateway.start()
            auditor = None
            if number % audit_every == 0 or number == cycles:
                auditor, outcome.events = audit(evidence, promised, is_over=False)
                outcome.kills_with_messages_held += len(auditor.content) > len(auditor.ended)
            outcome.cycles = number
            checked = (
                "" if auditor is None else f"; audited, {len(auditor.content) - len(auditor.ended)} held"
            )
            say(f"cycle {number:>3}/{cycles}: {'transaction open' if is_open else 'between'}{checked}")
    finally:
        for one in team:
            one.ending.set()
        gate.set()
        for one in team:
            one.join(40)
    _finish(hands[0], voices)
    for one in team:
        one.http.close()
    auditor, outcome.events = audit(evidence, promised, is_over=True)
    gateway.stop()
    fates = list(auditor.ended.values())
    outcome.acknowledged, outcome.held = len(promised.steps), len(promised.held)
    outcome.released = sum(auditor.ended.get(step) == "delivered" for step in promised.held)
    outcome.rejected, outcome.rewritten = fates.count("rejected"), len(auditor.rewritten)
    outcome.commands = len(promised.commands)
    outcome.commands_unanswered = len(auditor.commands) - outcome.commands
    outcome.seconds = time.monotonic() - began
    outcome.judge()
    return outcome


def _finish(hand: Hand, voices: list[Voice]) -> None:
    """Let everybody go and answer every gate."""
    for voice in voices:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            hand.do(voice, "unpause", {})
            if not hand.answer_what_is_held(voice, gates_only=True):
                break


def main() -> None:
    told = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m bench.interrupted", description=told)
    parser.add_argument("--cycles", type=int, default=200)
    parser.add_argument("--db", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    OUT.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="interrupted-", dir=OUT))
    try:
        with arena(asked.db, folder) as (gateway, evidence):
            outcome = run(gateway, evidence, asked.cycles, asked.seed, lambda text: print(text, flush=True))
    except Lost as lost:
        print(f"\nFAILED: {lost}\nthe folder is kept: {folder}", file=sys.stderr)
        sys.exit(1)
    print("\n" + outcome.table())
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
