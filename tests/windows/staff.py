"""Agents of the browser tests: one running as a separate process, and sessions of a known shape.

What a click must bring about lies on the other side of the gateway: a process that stops, an inbox that holds
the edited text. Those sides are here, each through the public doors.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.flows.graphs import ask, new, send_all, step
from tests.flows.server import Server, clean_environment
from tests.samples import full_decision_log
from tests.waiting import until

Json = dict[str, Any]
SCRIPT = Path(__file__).with_name("counting.py")


class Worker:
    """`counting.py` as a process: it sends a step per number, until the gateway stops it."""

    def __init__(self, server: Server, home: Path) -> None:
        self.name = f"counter-{uuid.uuid4().hex[:8]}"
        self.session = new()
        self.heard: list[str] = []
        self.count = 0
        self._process = subprocess.Popen(
            [sys.executable, str(SCRIPT), self.name, self.session],
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env=clean_environment(
                OBSERVATORY_URL=server.url, OBSERVATORY_KEY=server.key("agent"), OBSERVATORY_DATA=str(home)
            ),
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, _, rest = line.strip().partition(" ")
            if word == "did":
                self.count = int(rest)
            else:
                self.heard.append(rest)

    def works_on(self, steps: int = 3) -> int:
        """Waits for this many more steps; returns the number reached."""
        wanted = self.count + steps
        until(lambda: self.count >= wanted)
        return self.count

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._listener.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Story:
    """A prepared session: a fork, a join, a failure, low confidence, citations, memory, a gate, an end."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.session = new()
        self.mark = uuid.uuid4().hex[:6]
        self.plan, self.search, self.filing, self.join, self.doubt, self.end = (new() for _ in range(6))
        self.fact = f"NVDA fiscal year ends Dec 31 ({self.mark})"
        self.goal = f"Plan the note {self.mark}"
        send_all(server, self._messages())

    def who(self, role: str) -> str:
        return f"{role}-{self.mark}"

    def _messages(self) -> list[Json]:
        full = full_decision_log()
        plan = step(self.session, self.plan, agent=self.who("planner"), cognition=self._thought(self.goal))
        search = step(
            self.session,
            self.search,
            self.plan,
            agent=self.who("researcher"),
            cognition={
                **self._thought("Search for the fiscal year"),
                "reasoning_chain": ["The news says December.", "The filing may say otherwise."],
                "alternatives": full["cognition"]["alternatives"],
                "citations": full["cognition"]["citations"],
            },
            state_delta={
                "added_to_memory": [self.fact],
                "tokens_consumed": 900,
                "cumulative_session_cost": 0.4,
            },
        )
        filing = step(
            self.session,
            self.filing,
            self.plan,
            agent=self.who("reader"),
            cognition=self._thought("Read the filing"),
            action={"tool_call": "fetch_filing", "tool_input": "{}", "status": "failure"},
        )
        join = step(
            self.session,
            self.join,
            self.search,
            self.filing,
            agent=self.who("analyst"),
            cognition=self._thought("Compare both"),
            state_delta={
                "added_to_memory": [f"{self.fact}, so Q4 ends in December"],
                "read_from_memory": [self.fact],
                "tokens_consumed": 400,
                "cumulative_session_cost": 0.2,
            },
        )
        doubt = step(
            self.session,
            self.doubt,
            self.join,
            agent=self.who("analyst"),
            cognition={**self._thought("Guess the share count"), "confidence_score": 0.2},
        )
        end = step(
            self.session,
            self.end,
            self.doubt,
            agent=self.who("writer"),
            cognition=self._thought("Write it down"),
            control={"hitl_required": False, "is_terminal": True},
        )
        return [plan, search, filing, join, doubt, end]

    @staticmethod
    def _thought(intent: str) -> Json:
        return {"intent": intent, "reasoning_chain": [f"First: {intent}."], "confidence_score": 0.9}

    def folded(self) -> Story:
        """Waits until the analyst has processed it: facts, costs and reviews exist."""
        until(lambda: ask(self.server, "/v1/memory", session=self.session, limit=50)["items"])
        return self


class Gate:
    """A gated message from one agent to another, and what the receiver has got so far."""

    def __init__(self, server: Server, session: str | None = None) -> None:
        self.server = server
        mark = uuid.uuid4().hex[:6]
        self.alice, self.bob, self.session = f"alice-{mark}", f"bob-{mark}", session or new()
        send_all(server, [step(self.session, new(), agent=self.bob)])  # bob is known, his inbox exists
        self.message_id = self.asks("Publish the note")

    def asks(
        self, intent: str, hitl: bool = True, tool: str = "publish", given: str = '{"title": "Q3"}'
    ) -> str:
        log = step(
            self.session,
            new(),
            agent=self.alice,
            cognition={"intent": intent},
            action={"tool_call": tool, "tool_input": given, "status": "pending"},
            control={"hitl_required": hitl, "is_terminal": False},
        )
        log["identity"]["recipient"] = self.bob
        answer = self.server.send(log)
        assert answer.status_code == 202, answer.text
        assert answer.json()["state"] == ("held" if hitl else "forwarded")
        return str(answer.json()["message_id"])

    def got(self) -> list[Json]:
        """The messages in bob's inbox, acknowledged or not, in order of arrival."""
        answer = self.server.http("admin").get(f"/v1/agents/{self.bob}/inbox", params={"limit": 100})
        return [item["message"] for item in answer.json()["items"] if item["kind"] == "message"]

    def state(self) -> str:
        found: str = ask(self.server, f"/v1/messages/{self.message_id}")["state"]
        return found
