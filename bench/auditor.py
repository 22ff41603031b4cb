"""The outsider who holds the relay to its word: from the trail alone and from what callers were answered."""

from __future__ import annotations

import json
from typing import Any

from bench.evidence import Evidence, check_chain
from bench.interveners import Promised
from bench.soak import Lost
from observatory.ledger.verify import GENESIS

Json = dict[str, Any]


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
