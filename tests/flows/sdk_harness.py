"""An operator at a gateway and the agents of one test: for flows in which people command running agents."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from observatory import Agent
from tests.flows.server import Server
from tests.waiting import PATIENCE_S, aside, until

__all__ = ["PATIENCE_S", "Json", "SdkHarness", "aside", "until"]
Json = dict[str, Any]


class SdkHarness:
    """An operator at a gateway, and the agents of one test."""

    def __init__(self, server: Server, home: Path) -> None:
        self.server = server
        self.home = home
        self.name = f"worker-{uuid.uuid4().hex[:8]}"
        self.agents: list[Agent] = []

    def agent(self, name: str | None = None, **more: Any) -> Agent:
        made = Agent(name or self.name, **self.credentials(), **more)
        self.agents.append(made)
        assert made.listen(PATIENCE_S)
        return made

    def credentials(self) -> Json:
        return {"url": self.server.url, "key": self.server.key("agent"), "data": self.home}

    def do(self, command: str, session_id: str | None, **body: Any) -> Json:
        received = {"agent_id": self.name} | body
        answer = self.server.http("operator").post(f"/v1/sessions/{session_id}/{command}", json=received)
        assert answer.status_code < 300, answer.text
        return dict(answer.json())

    def archived(self) -> list[Json]:
        query: Json = {"agent_id": self.name, "after": 0, "limit": 1000}
        items: list[Json] = self.server.http("admin").get("/v1/messages", params=query).json()["items"]
        return items

    def intents(self) -> list[str]:
        return [item["message"]["cognition"]["intent"] for item in self.archived()]

    def held(self) -> Json:
        """The message of the agent that waits at a gate, once it does."""
        return until(self.holds)[0]

    def holds(self) -> list[Json]:
        items = self.server.http("operator").get("/v1/holds", params={"limit": 1000}).json()["items"]
        return [item for item in items if item["agent_id"] == self.name]

    def inbox(self) -> list[Json]:
        answer = self.server.http("admin").get(f"/v1/agents/{self.name}/inbox")
        return list(answer.json()["items"])
