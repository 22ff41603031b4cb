"""The operator of the demo mesh "Atlas": what a person sets up before agents work, and says while they do.

Law: an agent's key can do none of this, so the mesh does not; everything here goes through the gateway's own
HTTP API with the operator's key, and is recorded like any other change.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import httpx2
import msgspec

from observatory.cli.gateway_client import GatewayApi
from observatory.cli.terminal import CommandFailed, printable, say

WRITER = "writer-beta-1"
OPERATOR = "atlas-desk"
TIMEOUT = httpx2.Timeout(300, connect=3)
RECALLED = "publisher-delta-1"
# As the mesh says it: nothing here imports the mesh.
FALSE_CLAIM, LIAR = "NVDA fiscal year ends Dec 31", "researcher-gamma-2"
WHY_FALSE = "The annual report: the year ends on the last Sunday of January. A forum post was taken for it."
WHY_PAUSED = "It wrote to the press list instead of the clients'. Held until the list is corrected."
CAPS = {"scope": "agent", "target": WRITER, "soft": 1.5, "hard": 2.0, "period": "daily"}
GATE_NOTE = "Atlas: a person reads what goes to clients"
GATE: dict[str, Any] = {
    "effect": "hold",
    "match": {"sender": ["type:publisher"], "tool": ["publish_report"]},
    "deadline_s": 900,
    "note": GATE_NOTE,
}
PLACES = {"onprem-zrh*": {"name": "Zürich", "lat": 47.38, "lon": 8.54}}
VERSIONS = {
    "planner": ("2.4.0", "2.3.1"),
    "web_researcher": ("2.1.0-stable", "2.0.4"),
    "filings_reader": ("1.8.2", "1.8.1"),
    "data_analyst": ("3.2.1", "3.1.0"),
    "fact_checker": ("1.5.0", "1.4.2"),
    "writer": ("4.0.3", "4.0.2"),
    "code_runner": ("3.0.0", "2.9.4"),
    "publisher": ("1.2.0", "1.1.9"),
}
TOUR = (
    ("The map", "/fleet", "all of Atlas at work; the red node is looping"),
    ("Pause and inspect", "/sessions", "take the entropy alert, pause, inject a hint, let it go on"),
    ("A waiting gate", "/inbox", "read the exact message; approve, edit or reject it"),
    ("How far it went", "/sessions", "in the cascade's session ask a failed step for blast radius and cause"),
    ("What it costs", "/fleet", "the writer that burns its cap, and the branch that did it"),
)


DAY_CAP = 24_000  # dollars; sixty agents at six messages a second spend about 7,200 a day


def prepare(client: GatewayApi, rate: float) -> None:
    """Caps, a gate, versions and a place on the map; the same again on a folder that was used before."""
    rules = client.ask("GET", "/v1/policies")["items"]
    if not any(rule.get("note") == GATE_NOTE for rule in rules):
        client.ask("POST", "/v1/policies", GATE)
    client.ask("PUT", "/v1/fleet/regions", {"clusters": PLACES})
    for agent_type, (current, previous) in VERSIONS.items():
        rows = [{"version": current, "status": "current"}, {"version": previous, "status": "previous"}]
        client.ask("PUT", "/v1/versions", {"agent_type": agent_type, "versions": rows})
    client.ask("PUT", "/v1/budgets", {"scope": "session", "target": "*", "soft": 3.0, "hard": 5.0})
    # A day at this rate and pace must not reach the cap: beyond it everything is refused.
    hard = round(DAY_CAP * max(1.0, rate / 6.0))
    budget = {"scope": "tenant", "soft": 0.75 * hard, "hard": float(hard), "period": "daily"}
    client.ask("PUT", "/v1/budgets", budget)
    client.ask("PUT", "/v1/budgets", CAPS)


def owner_of(client: GatewayApi) -> str | None:
    """Whom the agents ask to decide: the user of this key."""
    found = client.ask("GET", "/v1/whoami").get("user_id")
    return found if isinstance(found, str) else None


@contextlib.contextmanager
def as_operator(admin: GatewayApi) -> Iterator[GatewayApi]:
    """A user of the demo itself, so that its actions are not shown as those of the person watching."""
    people = [one for one in admin.items("/v1/users") if one["name"] == OPERATOR]
    body = {"name": OPERATOR, "display_name": "Atlas desk", "role": "operator"}
    person = people[0] if people else admin.ask("POST", "/v1/users", body)
    key = {"role": "operator", "user_id": person["user_id"], "label": "the demo's own"}
    made = admin.ask("POST", "/v1/keys", key)
    story_agents = GatewayApi(admin.url, made["key"], TIMEOUT, trust=admin.trust)
    try:
        yield story_agents
    finally:
        with contextlib.suppress(CommandFailed):
            admin.ask("DELETE", f"/v1/keys/{made['key_id']}")
        story_agents.close()


class Announcer:
    """Reads the mesh's incident reports, prints them, and does the operator's part."""

    def __init__(self, client: GatewayApi) -> None:
        self._client = client

    def hear(self, line: bytes) -> str | None:
        """The incident, if the mesh waits for what was done here."""
        with contextlib.suppress(msgspec.MsgspecError, KeyError):
            report = msgspec.json.decode(line, type=dict[str, str])
            say(printable(f"[{report['incident']}] {report['what']}  {self._client.url}{report['path']}"))
            if report["incident"] == "pause":
                self._pause(report["path"])
                return "pause"
            if report["incident"] == "refuted":
                self._refute()
            if report["incident"] == "budget":
                self._fresh_cap()
                return "budget"
        return None

    def _pause(self, path: str) -> None:
        """What a person would do who sees it, with the reason that a reader of the record needs."""
        session_id = path.partition("?")[0].rpartition("/")[2]
        with contextlib.suppress(CommandFailed):
            order = {"agent_id": RECALLED, "note": WHY_PAUSED}
            self._client.ask("POST", f"/v1/sessions/{session_id}/pause", order)

    def _refute(self) -> None:
        """The newest of its kind, by its first agent: who reads the record sees what was false and why."""
        with contextlib.suppress(CommandFailed):
            fact = next(iter(self._client.items("/v1/facts", text=FALSE_CLAIM, agent=LIAR)), None)
            if fact is not None:
                self._client.ask("POST", f"/v1/facts/{fact['fact_id']}/false", {"note": WHY_FALSE})

    def _fresh_cap(self) -> None:
        """What the last round left behind is closed, so that the writer can burn its cap again."""
        with contextlib.suppress(CommandFailed):
            for hold in self._client.items("/v1/holds", agent_id=WRITER, gates_only=True):
                if hold["gate"] == "open":
                    answer = {"agent_id": WRITER, "message_id": hold["message_id"]}
                    answer |= {"digest": hold["action_digest"], "note": "Atlas: a new round begins"}
                    self._client.ask("POST", f"/v1/sessions/{hold['session_id']}/reject", answer)
            for budget in self._client.items("/v1/budgets"):
                if budget["scope"] == "agent" and budget["target"] == WRITER:
                    self._client.ask("DELETE", f"/v1/budgets/{budget['budget_id']}")
            self._client.ask("PUT", "/v1/budgets", CAPS)


def show_tour(url: str) -> None:
    say("A tour in five steps:")
    for number, (title, path, words) in enumerate(TOUR, 1):
        say(f"  {number}. {title:18} {url}{path}", f"     {words}")
