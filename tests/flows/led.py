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
from tests.flows.sdk_harness import PATIENCE_S, SdkHarness
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


def recorded_python(harness: SdkHarness, journal: Path) -> Led:
    return PythonLed("recorded_agent.py", journal, harness.name, _door(harness))


def recorded_node(harness: SdkHarness, journal: Path) -> Led:
    environment = {
        "NODE_OPTIONS": f"--import {HERE / 'recorded.mjs'}",
        "RECORDED_HOME": str(harness.home),
        "RECORDED_JOURNAL": str(journal),
    }
    return NodeLed(NodeAgent(harness.server, harness.name, harness.home, environment, control=False))


def plain_python(harness: SdkHarness, delivery: dict[str, float]) -> Led:
    return PythonLed("plain_agent.py", harness.name, _door(harness), json.dumps(delivery))


def plain_node(harness: SdkHarness, delivery: dict[str, float]) -> Led:
    return NodeLed(NodeAgent(harness.server, harness.name, harness.home, control=False, delivery=delivery))


def _door(harness: SdkHarness) -> str:
    return json.dumps({**harness.credentials(), "data": str(harness.home)})
