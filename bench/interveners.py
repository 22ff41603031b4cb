"""Agents that speak and operators who step in, at once and at random, and what they were answered."""

from __future__ import annotations

import random
import threading
import uuid
from dataclasses import dataclass, field
from typing import Any

import httpx2

from bench.gateway import Gateway

Json = dict[str, Any]


@dataclass
class Promised:
    """What agents and operators were answered."""

    steps: dict[str, Json] = field(default_factory=dict)  # step id -> the answer
    commands: list[str] = field(default_factory=list)  # intervention ids
    faults: list[str] = field(default_factory=list)
    held: set[str] = field(default_factory=set)
    rewritten: threading.Event = field(default_factory=threading.Event)  # at least once


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
                    received = answer.json()
                    self.promised.steps[step] = received
                    if received["state"] == "held":
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
            if word == "rewrite":
                self.promised.rewritten.set()
