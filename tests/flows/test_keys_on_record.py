"""Each event names the key that made it, also an admin's, who speaks for nobody else."""

from __future__ import annotations

import uuid
from typing import Any

import httpx2
import pytest

from tests.flows.server import Server
from tests.flows.test_rbac_events import browser_of, head, new_events, person
from tests.samples import decision_log, envelope

Json = dict[str, Any]


@pytest.fixture
def server(either_server: Server) -> Server:
    """On both databases."""
    return either_server


def new_key(server: Server, **more: Any) -> tuple[str, httpx2.Client]:
    """Its id, and a client that shows it."""
    made = server.http("admin").post("/v1/keys", json={"label": "on record", **more})
    assert made.status_code == 201, made.text
    headers = {"authorization": f"Bearer {made.json()['key']}"}
    client = httpx2.Client(base_url=server.url, headers=headers, trust_env=False, timeout=30)
    return made.json()["key_id"], client


def key_of(event: Json) -> str | None:
    found: str | None = event["attributes"].get("av.sender.key_id")
    return found


def test_each_event_of_an_agent_names_its_key_s1140(server: Server) -> None:
    """S1140: two keys may start one agent; what each of them said, and what followed, is told apart."""
    since, name = head(server), f"two-keys-{uuid.uuid4()}"
    keys = []
    for _ in range(2):
        key_id, client = new_key(server, role="agent")
        keys.append(key_id)
        with client:
            for text in ("plain", "Zürich"):  # both ways of making an event
                log = decision_log(identity={"agent_id": name}, cognition={"intent": text})
                assert client.post("/v1/messages", json=log).status_code == 202
            assert client.post("/v1/heartbeat", json={"agent_id": name, "status": key_id}).status_code == 200
            assert client.get("/v1/keys").status_code == 403
            assert client.post("/v1/messages", json={"meta": {}}).status_code == 422
    received = [event for event in new_events(server, since) if key_of(event) in keys]
    kinds = [(event["body"]["event_type"], key_of(event)) for event in received]
    for key_id in keys:
        assert kinds.count(("message_delivered", key_id)) == 2
        for kind in ("heartbeat", "schema_violation", "permission_denied"):
            assert kinds.count((kind, key_id)) == 1, kinds
    assert ("agent_registered", keys[0]) in kinds
    report = server.http("admin").post("/v1/audit/verify", json={"from_sequence": since}).json()
    assert report["valid"] is True


def test_what_was_held_names_the_senders_key_and_who_released_it_s1140(server: Server) -> None:
    """S1140: an approval speaks for its person, the message for the agent's key."""
    since, session_id = head(server), str(uuid.uuid4())
    key_id, client = new_key(server, role="agent")
    owner = person(server, "approver")
    theirs, approver = new_key(server, role="approver", user_id=owner["user_id"])
    log = decision_log(meta={"session_id": session_id}, control={"hitl_required": True})
    with client, approver:
        assert client.post("/v1/messages", json=log).json()["state"] == "held"
        body = {"agent_id": log["identity"]["agent_id"]}
        done = approver.post(f"/v1/sessions/{session_id}/approve", json=body)
        assert done.status_code == 200, done.text
    received = {event["body"]["event_type"]: event for event in new_events(server, since)}
    assert key_of(received["message_held"]) == key_of(received["gate_opened"]) == key_id
    delivered = received["message_delivered"]
    assert (key_of(delivered), delivered["body"]["key_id"]) == (key_id, theirs)
    assert delivered["body"]["released_by"] == owner["user_id"]
    assert key_of(received["hitl_intervention"]) == theirs


def test_a_browsers_acts_name_its_login_s1140(server: Server) -> None:
    """S1140: two browsers of one person are two logins."""
    user = person(server, "admin")
    since = head(server)
    with browser_of(server, user) as browser:
        assert (
            browser.post("/v1/users", json={"name": str(uuid.uuid4()), "role": "viewer"}).status_code == 201
        )
    made = next(event for event in new_events(server, since) if event["body"]["event_type"] == "user_created")
    assert made["attributes"]["av.sender.entity_id"] == user["user_id"]
    assert str(key_of(made)).startswith("log_")


@pytest.mark.parametrize(
    ("sender", "reason"),
    [
        ({"entity_id": "usr_another", "entity_type": "user"}, "sender_mismatch"),
        ({"entity_id": "sys_gateway", "entity_type": "system"}, "sender_mismatch"),
        ({"entity_id": "agt_7", "entity_type": "agent"}, None),
        ("themselves", None),
    ],
)
def test_an_admin_speaks_as_an_agent_or_for_themselves_s1141(
    server: Server, sender: Json | str, reason: str | None
) -> None:
    """S1141: never as another user, never as `system`; and as an agent the event names the admin's key."""
    user, since = person(server, "admin"), head(server)
    key_id, admin = new_key(server, role="admin", user_id=user["user_id"])
    named = {"entity_id": user["user_id"], "entity_type": "user"} if sender == "themselves" else sender
    with admin:
        answer = admin.post("/v1/messages", json=envelope("text", sender=named))
    received = {event["body"]["event_type"]: event for event in new_events(server, since)}
    if reason is None:
        assert answer.status_code == 202, answer.text
        assert key_of(received["message_delivered"]) == key_id
    else:
        assert (answer.status_code, answer.json()["reason"]) == (403, reason)
        assert key_of(received["security_violation"]) == key_id
        assert "message_delivered" not in received


def test_what_the_gateway_does_by_itself_names_no_key_of_anybody_s1140(server: Server) -> None:
    """S1140: every event of a running gateway has the attribute; its own are told by `sys_`."""
    page = server.http("admin").get("/v1/audit/tenant", params={"limit": 200}).json()["items"]
    assert {str(key_of(event)).partition("_")[0] for event in page} <= {"key", "log", "sys"}
