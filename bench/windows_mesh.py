"""A mesh for the windows' figures: many agents, three edges each, at a steady rate; and one large session.

Edges are causal: a step of one agent is followed by a step of another in the same session, so nothing has to
acknowledge anything. No two steps are alike, so that no detector has anything to say.
"""

from __future__ import annotations

import itertools
import threading
import time
import uuid
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx2
import msgspec

CLUSTERS = ("aws-eu-central-1", "aws-us-east-1", "gcp-asia-southeast1", "azure-westeurope", "aws-eu-west-2")
TYPES = ("planner", "web_researcher", "filings_reader", "data_analyst", "fact_checker", "writer")
EDGES = 3
TICK_S = 0.05


def log(agent: str, number: int, session: str, step: str, parent: str | None, **more: Any) -> bytes:
    place = zlib.crc32(agent.encode())
    return msgspec.json.encode(
        {
            "meta": {
                "trace_id": session,
                "session_id": session,
                "step_id": step,
                "parent_step_id": parent,
                "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
                "cluster_id": CLUSTERS[place % len(CLUSTERS)],
            },
            "identity": {
                "agent_id": agent,
                "agent_type": TYPES[place % len(TYPES)],
                "capability_version": "v1.0.0",
            },
            "cognition": {
                "intent": f"work on item {number}",
                "reasoning_chain": [f"item {number} comes next"],
                "confidence_score": 0.9,
                "strategy_used": "ReAct",
                "entropy_score": 0.9,
            },
            "action": {
                "tool_call": f"tool_{number % 7}",
                "tool_input": f'{{"n":{number}}}',
                "status": "success",
            },
            "state_delta": {"tokens_consumed": 100, "cost": 0.0001},
            "control": {"hitl_required": False, "is_terminal": False},
        }
        | more
    )


class Mesh:
    """`fill` says every edge once, `run` goes on at the rate until `stop`."""

    def __init__(self, url: str, key: str, agents: int, rate: float) -> None:
        self.agents, self.rate, self.sent = agents, rate, 0
        self._http = httpx2.Client(
            base_url=url, headers={"authorization": f"Bearer {key}"}, timeout=60, trust_env=False
        )
        self._messages = self._endless()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def _endless(self) -> Iterator[bytes]:
        names = [f"agent-{number:05d}" for number in range(self.agents)]
        sessions = [str(uuid.uuid4()) for _ in names]
        number = itertools.count()
        while True:
            for place, name in enumerate(names):
                root = str(uuid.uuid4())
                yield log(name, next(number), sessions[place], root, None)
                for way in range(EDGES):
                    other = names[(place * 7 + way * 131 + 1) % self.agents]
                    yield log(other, next(number), sessions[place], str(uuid.uuid4()), root)

    def say(self, count: int) -> None:
        lines = list(itertools.islice(self._messages, count))
        answer = self._http.post(
            "/v1/messages", content=b"\n".join(lines), headers={"content-type": "application/x-ndjson"}
        )
        answer.raise_for_status()
        self.sent += count

    def fill(self) -> None:
        for _ in range(0, self.agents * (EDGES + 1), 500):
            self.say(500)

    def run(self) -> None:
        self._thread = threading.Thread(target=self._go, daemon=True)
        self._thread.start()

    def _go(self) -> None:
        began, said = time.monotonic(), 0
        while not self._stop.wait(TICK_S):
            due = int((time.monotonic() - began) * self.rate) - said
            if due > 0:
                self.say(min(due, 1_000))
                said += min(due, 1_000)

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._http.close()

    def session_of(self, steps: int) -> str:
        """A session of this many steps: forks of three, joins, some agents."""
        session, made = str(uuid.uuid4()), [str(uuid.uuid4())]
        lines = [log("grower-0", 0, session, made[0], None)]
        for number in range(1, steps):
            step, parent = str(uuid.uuid4()), made[max(0, number // 3 - number % 2)]
            lines.append(log(f"grower-{number % 12}", number, session, step, parent))
            made.append(step)
        for at in range(0, steps, 500):
            answer = self._http.post(
                "/v1/messages",
                content=b"\n".join(lines[at : at + 500]),
                headers={"content-type": "application/x-ndjson"},
            )
            answer.raise_for_status()
        return session
