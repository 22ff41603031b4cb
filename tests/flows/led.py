"""Agents of either SDK in a process of their own, led by a test in the same few words; what they do to
their folder can be noted (tests/flows/power_cut.py).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol

from tests.flows.node_agent import NodeAgent
from tests.flows.sdk_desk import PATIENCE_S, Desk
from tests.flows.server import clean_environment

HERE = Path(__file__).parent


class Led(Protocol):
    pid: int

    def steps(self, first: int, end: int) -> None: ...
    def flush(self) -> bool: ...
    def in_memory(self) -> int: ...
    def lost(self) -> int: ...
    def kill(self) -> None: ...


class PythonLed:
    def __init__(self, script: str, *words: str | Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, HERE / script, *words],
            env=clean_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.pid = self._process.pid

    def _run(self, words: str) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(words + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def steps(self, first: int, end: int) -> None:
        self._run(f"[agent.step(f'step {{n}}') for n in range({first}, {end})] and None")

    def flush(self) -> bool:
        return bool(self._run(f"agent.flush({PATIENCE_S})"))

    def in_memory(self) -> int:
        return int(self._run("agent.outbox.in_memory"))

    def lost(self) -> int:
        return int(self._run("agent.outbox.lost"))

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


class NodeLed:
    def __init__(self, agent: NodeAgent) -> None:
        self._agent = agent
        self.pid = agent.process.pid

    def steps(self, first: int, end: int) -> None:
        self._agent.run(f"for (let n = {first}; n < {end}; n++) agent.step(`step ${{n}}`);")

    def flush(self) -> bool:
        return bool(self._agent.run(f"return await agent.flush({{timeout_s: {PATIENCE_S}}})"))

    def in_memory(self) -> int:
        return int(self._agent.run("return agent.outbox.in_memory"))

    def lost(self) -> int:
        return int(self._agent.run("return agent.outbox.lost"))

    def kill(self) -> None:
        self._agent.kill()


def recorded_python(desk: Desk, journal: Path) -> Led:
    return PythonLed("recorded_agent.py", journal, desk.name, _door(desk))


def recorded_node(desk: Desk, journal: Path) -> Led:
    environment = {
        "NODE_OPTIONS": f"--import {HERE / 'recorded.mjs'}",
        "RECORDED_HOME": str(desk.home),
        "RECORDED_JOURNAL": str(journal),
    }
    return NodeLed(NodeAgent(desk.server, desk.name, desk.home, environment, control=False))


def plain_python(desk: Desk, delivery: dict[str, float]) -> Led:
    return PythonLed("plain_agent.py", desk.name, _door(desk), json.dumps(delivery))


def plain_node(desk: Desk, delivery: dict[str, float]) -> Led:
    return NodeLed(NodeAgent(desk.server, desk.name, desk.home, control=False, delivery=delivery))


def _door(desk: Desk) -> str:
    return json.dumps({**desk.door(), "data": str(desk.home)})
