"""People of a test's own, and the questions agents ask them."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2

from tests.flows.server import Server
from tests.samples import envelope

Json = dict[str, Any]


class People:
    """Users of this file's own, each with a client; made once, by name."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.ids: dict[str, str] = {}
        self._clients: dict[str, httpx2.Client] = {}

    def client(self, name: str, role: str = "approver", **key: Any) -> httpx2.Client:
        if name not in self._clients:
            admin = self.server.http("admin")
            user = admin.post("/v1/users", json={"name": f"{name}-{uuid.uuid4().hex}", "role": role}).json()
            made = admin.post("/v1/keys", json={"role": role, "user_id": user["user_id"]} | key)
            assert made.status_code == 201, made.text
            headers = {"authorization": f"Bearer {made.json()['key']}"}
            self.ids[name] = user["user_id"]
            self._clients[name] = httpx2.Client(
                base_url=self.server.url, headers=headers, timeout=30, trust_env=False
            )
        return self._clients[name]

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


def soon(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


def ask(people: People, session_id: str | None = None, **payload: Any) -> Json:
    """Sent and accepted; the envelope as it was sent."""
    plain = {"deadline": soon(3_600), "auto_action": None}
    sent = envelope(
        "decision_request",
        recipient={"entity_id": people.ids["owner"], "entity_type": "user"},
        payload=plain | payload,
        metadata={} if session_id is None else {"session_id": session_id},
    )
    answer = people.server.send(sent)
    assert answer.status_code == 202, answer.text
    return sent


def id_of(sent: Json) -> str:
    found: str = sent["payload"]["decision_id"]
    return found


def respond(client: httpx2.Client, sent: Json, option_id: str = "approve", **more: Any) -> httpx2.Response:
    body = {"selected_option_id": option_id} | more
    return client.post(f"/v1/decisions/{id_of(sent)}/respond", json=body)


def decision(server: Server, sent: Json) -> Json:
    answer = server.http("operator").get(f"/v1/decisions/{id_of(sent)}")
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


def pending(server: Server, **where: Any) -> list[Json]:
    """Every page of it."""
    found: list[Json] = []
    while True:
        answer = server.http("operator").get("/v1/decisions/pending", params=where)
        assert answer.status_code == 200, answer.text
        found += answer.json()["items"]
        if answer.json()["next_cursor"] is None:
            return found
        where["cursor"] = answer.json()["next_cursor"]


def trail(server: Server, sent: Json) -> list[Json]:
    found: list[Json] = server.http("admin").get(f"/v1/audit/trace/{sent['trace_id']}").json()["items"]
    return found
