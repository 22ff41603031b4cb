"""An operator who answers for agents' tool calls: a tenant with rules about tools, and its gates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.flows.sdk_harness import Json, SdkHarness
from tests.flows.server import Server
from tests.flows.tenant import Tenant

RULES = (
    {"effect": "hold", "match": {"tool": ["deploy"]}},
    {"effect": "deny", "match": {"tool": ["drop_table"]}},
)


@contextmanager
def ruled_tenant(server: Server, folder: Path) -> Iterator[Tenant]:
    """`deploy` waits for a person, `drop_table` is forbidden, all else is free."""
    made = Tenant(server, folder)
    for rule in RULES:
        answer = made.http("admin").post("/v1/policies", json=rule)
        assert answer.status_code < 300, answer.text
    yield made
    made.stop()


class ToolHarness(SdkHarness):
    def answer(self, word: str, held: Json | None = None, **body: Any) -> Json:
        """At the gate of what is held, once something is."""
        held = held or self.held()
        return self.do(word, held["session_id"], message_id=held["message_id"], **body)

    def edit(self, tool_input: Any, held: Json | None = None, **action: Any) -> Json:
        """Let it pass with another input, or as another action."""
        held = held or self.held()
        return self.answer("edit", held, new_content=self.changed(held, tool_input, **action))

    def changed(self, held: Json, tool_input: Any, **action: Any) -> Json:
        items = {item["message_id"]: item["message"] for item in self.archived()}
        new: Json = items[held["message_id"]]
        new["action"] |= {"tool_input": json.dumps(tool_input), **action}
        return new

    def received(self) -> list[tuple[str, str, str | None]]:
        """Of every step in order: what was meant, how it stands, what it said."""
        logs = [item["message"] for item in self.archived()]
        return [
            (log["cognition"]["intent"], log["action"]["status"], log["action"].get("tool_output_summary"))
            for log in logs
        ]

    def parents(self) -> dict[str, list[str]]:
        """Of every step, by intent: the intents of its parents (of steps with one intent the last)."""
        items = self.archived()
        intents = {item["step_id"]: item["message"]["cognition"]["intent"] for item in items}
        return {
            intents[item["step_id"]]: sorted(intents.get(parent, "?") for parent in item["parents"])
            for item in items
        }
