"""A gateway on which everything was done once that a person, an agent or the clock can do, in two tenants."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import httpx2

from tests.flows import (
    answered,
    answered_alerts,
    answered_certificates,
    answered_export,
    answered_federation,
    answered_hooks,
    answered_insight,
    answered_redaction,
    answered_schedule,
    answered_thoughts,
    answered_webhooks,
)
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.samples import decision_log, envelope

CAPABILITY = "sorting"


def lead(server: Server, folder: Path) -> str:
    """The name of the second tenant; the first is the home tenant."""
    http, name = server.http("admin"), f"busy-{uuid.uuid4()}"
    own = Tenant(server, folder)
    first = server.send(decision_log(identity={"agent_id": name})).json()
    user = http.post("/v1/users", json={"name": name, "role": "viewer"}).json()["user_id"]
    key = http.post("/v1/keys", json={"role": "viewer", "user_id": user}).json()["key_id"]
    http.post("/v1/keys", json={"role": "agent", "agent_id": name, "label": "kept"})
    versions = {"agent_type": name, "versions": [{"version": "1.0.0", "status": "current"}]}
    http.put("/v1/versions", json=versions)
    http.delete(f"/v1/keys/{key}")
    for doors in (
        answered.registered_and_routed(http, name, first["session_id"]),
        answered_certificates.certified(http, name),
        answered.stopped_and_instructed(http, name, user),
        answered.ruled(server, name),
        answered.intervened(server, name),
        answered.answered_at_gates(server, name),
        answered.decided(server),
        answered.mapped_and_priced(http, name, first["session_id"]),
        answered_federation.federated(own),
        answered_export.exported(own),
        answered_hooks.hooked(own),
        answered_webhooks.told_outside(own),
        answered_schedule.scheduled(own),
        answered_alerts.watched(own),
        answered_thoughts.thought(own),
        answered_insight.drilled_down(own),
        answered_redaction.redacted(own),
    ):
        for _ in doors:
            pass
    waiting(server, name)
    stopped(server, name)
    signed_in(server, name)
    return own.tenant_id


def waiting(server: Server, name: str) -> None:
    """What stays: rules in force, a message that waits, work in an inbox, one read and one not."""
    http = server.http("admin")
    http.post("/v1/policies", json={"effect": "deny", "match": {"sender": [f"{name}-never"]}, "note": "no"})
    http.put("/v1/budgets", json={"scope": "agent", "target": f"{name}-poor", "hard": 1.5})
    http.put("/v1/routes", json={"capability": CAPABILITY, "weights": {"cluster:a": 2}})
    http.put("/v1/instructions/sorter", json={"text": "sort by name", "note": "first"})
    armed = http.post("/v1/kill-switch", json={"scope": "class", "target": "none", "reason": "kept"})
    assert armed.status_code == 202, armed.text
    received: dict[str, Any] = {"agent_id": f"{name}-reader"}
    server.send(decision_log(identity=received))
    for _ in range(2):
        server.send(decision_log(identity={"agent_id": "teller", "recipient": received["agent_id"]}))
    waits = http.get(f"/v1/agents/{received['agent_id']}/inbox").json()["items"]
    http.post(f"/v1/agents/{received['agent_id']}/inbox/ack", json={"ids": [waits[0]["delivery_id"]]})
    line = answered.Line(server, f"{name}-waits")
    line.say("0")
    line.do("pause", note="look first")
    line.say("1")
    line.do("inject", prompt="Read it again")
    server.send(envelope("heartbeat"))
    gated = answered.Line(server, f"{name}-asks")
    gated.say("0", gate=True)


def stopped(server: Server, name: str) -> None:
    """An agent that stands everywhere, with work that was given and taken back; one that may not speak."""
    http = server.http("admin")
    assert http.post(f"/v1/agents/{name}-reader/pause", json={"note": "everywhere"}).status_code == 202
    for words in ({"grant": [CAPABILITY, "cluster:a"]}, {"revoke": ["cluster:a"]}):
        assert http.post(f"/v1/agents/{name}-reader/grants", json=words).status_code == 200
    order = {"scope": "agent", "target": f"{name}-never", "reason": "kept"}
    assert http.post("/v1/kill-switch", json=order).status_code == 202


def signed_in(server: Server, name: str) -> None:
    """A link that waits, a browser whose user was given another role since, and one that signed out."""
    http = server.http("admin")
    user = http.post("/v1/users", json={"name": f"{name}-browses", "role": "operator"}).json()
    links = [http.post("/v1/logins", json={"user_id": user["user_id"]}).json()["url"] for _ in range(3)]
    for link in links[1:]:
        assert httpx2.post(link, trust_env=False).status_code == 303
    browsers = http.get("/v1/logins", params={"user_id": user["user_id"]}).json()["items"]
    cookies = [one["login_id"] for one in browsers if one["kind"] == "browser"]
    assert http.delete(f"/v1/logins/{cookies[0]}").status_code == 200
    assert http.put(f"/v1/users/{user['user_id']}", json={"role": "viewer"}).status_code == 200
