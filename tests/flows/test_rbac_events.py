"""Roles in motion: a change counts at once for browsers, sockets and keys, and every step of it is told."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest
from websockets.sync.client import connect

from tests.flows.server import Server
from tests.samples import decision_log, envelope

Json = dict[str, Any]


@pytest.fixture
def server(either_server: Server) -> Server:
    """On both databases."""
    return either_server


def person(server: Server, role: str) -> Json:
    made = server.http("admin").post("/v1/users", json={"name": f"{role}-{uuid.uuid4()}", "role": role})
    assert made.status_code == 201, made.text
    found: Json = made.json()
    return found


def key_of(server: Server, user: Json, role: str) -> str:
    made = server.http("admin").post("/v1/keys", json={"role": role, "user_id": user["user_id"]})
    assert made.status_code == 201, made.text
    key: str = made.json()["key"]
    return key


@contextmanager
def browser_of(server: Server, user: Json) -> Iterator[httpx2.Client]:
    """Signed in by the invitation's link."""
    with httpx2.Client(base_url=server.url, trust_env=False, timeout=30) as browser:
        assert browser.post(user["invite_url"]).status_code == 303
        yield browser


def change(server: Server, user: Json, role: str, code: int = 200) -> Json:
    answer = server.http("admin").put(f"/v1/users/{user['user_id']}", json={"role": role})
    assert answer.status_code == code, answer.text
    found: Json = answer.json()
    return found


def new_events(server: Server, since: int) -> list[Json]:
    page = server.http("admin").get("/v1/audit/tenant", params={"limit": 200}).json()["items"]
    return [event for event in reversed(page) if event["hash_chain"]["sequence_number"] > since]


def head(server: Server) -> int:
    page = server.http("admin").get("/v1/audit/tenant", params={"limit": 1}).json()["items"]
    number: int = page[0]["hash_chain"]["sequence_number"]
    return number


@pytest.mark.req(509)
def test_a_change_of_role_is_told_with_each_permission_gained_s171(server: Server) -> None:
    """S171: from whom to what, by whom; losing writes `role_changed` alone; the same role again nothing."""
    user = person(server, "viewer")
    since = head(server)
    assert change(server, user, "operator") == {
        "user_id": user["user_id"],
        "role": "operator",
        "revoked_keys": [],
    }
    received = new_events(server, since)
    assert [event["body"]["event_type"] for event in received] == [
        "role_changed",
        *["permission_granted"] * 4,
    ]
    assert {name: received[0]["body"][name] for name in ("user_id", "from", "to")} == {
        "user_id": user["user_id"],
        "from": "viewer",
        "to": "operator",
    }
    gained = [event["body"]["permission"] for event in received[1:]]
    assert gained == ["approve", "operate", "send", "verify"]
    admin = server.http("admin").get("/v1/whoami").json()["user_id"]
    assert {event["attributes"]["av.sender.entity_id"] for event in received} == {admin}
    since = head(server)
    change(server, user, "viewer")
    change(server, user, "viewer")
    assert [event["body"]["event_type"] for event in new_events(server, since)] == ["role_changed"]


@pytest.mark.req(509)
def test_a_new_key_is_a_permission_granted_and_a_refused_attempt_one_denied_s171(server: Server) -> None:
    """S171."""
    user, since = person(server, "operator"), head(server)
    body = {"role": "operator", "user_id": user["user_id"], "scopes": ["read"]}
    made = server.http("admin").post("/v1/keys", json=body).json()
    headers = {"authorization": f"Bearer {made['key']}"}
    assert (
        server.http("nobody")
        .put(f"/v1/users/{user['user_id']}", json={"role": "admin"}, headers=headers)
        .status_code
        == 403
    )
    created, granted, denied = (event["body"] for event in new_events(server, since))
    assert (created["event_type"], granted["event_type"]) == ("key_created", "permission_granted")
    assert (granted["key_id"], granted["role"], granted["scopes"]) == (made["key_id"], "operator", ["read"])
    assert (denied["event_type"], denied["permission"]) == ("permission_denied", "admin")
    assert made["key"] not in str(new_events(server, since))


def test_an_open_browser_and_an_open_socket_obey_a_new_role_at_once_s170(server: Server) -> None:
    """S170: signed in as an admin, made a viewer in mid-session; the browser stays signed in as a viewer."""
    user = person(server, "admin")
    text = envelope("text", sender={"entity_id": user["user_id"], "entity_type": "user", "hub_address": None})
    with browser_of(server, user) as browser:
        assert browser.get("/v1/keys").status_code == 200
        cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        with connect(f"{server.socket_url}/v1/ingest", additional_headers={"cookie": cookie}) as websocket:
            websocket.send(json.dumps({"id": 1, "message": text}))
            assert json.loads(websocket.recv(20))["code"] == 202
            change(server, user, "viewer")
            again = envelope("text", sender=text["sender"])
            websocket.send(json.dumps({"id": 2, "message": again}))
            assert json.loads(websocket.recv(20))["code"] in (401, 403)
        assert browser.get("/v1/whoami").json()["role"] == "viewer"
        assert browser.get("/v1/keys").status_code == 403
        assert browser.get("/v1/messages").status_code == 200
        assert browser.post("/v1/messages", json=again).status_code == 403
        change(server, user, "operator")
        assert browser.post("/v1/messages", json=again).status_code == 202
        assert browser.get("/logout").status_code == 303
        assert browser.get("/v1/whoami").status_code == 401


def test_keys_that_could_do_more_end_with_the_role_s170(server: Server) -> None:
    """S170: those that could not go on; each end is told of."""
    user = person(server, "operator")
    strong, weak = key_of(server, user, "operator"), key_of(server, user, "viewer")
    since = head(server)
    revoked = change(server, user, "auditor")["revoked_keys"]
    codes = [
        server.http("nobody").get("/v1/messages", headers={"authorization": f"Bearer {key}"}).status_code
        for key in (strong, weak)
    ]
    assert codes == [401, 200]
    ends = [
        event["body"] for event in new_events(server, since) if event["body"]["event_type"] == "key_revoked"
    ]
    assert [(body["key_id"], body["reason"]) for body in ends] == [(revoked[0], "role_changed")]


def test_a_tenant_keeps_its_last_admin_s170(server: Server) -> None:
    """S170: also when two admins are made less at the same moment."""
    tenant = server.http("admin").post("/v1/tenants", json={"display_name": "Roles"}).json()
    headers = {"authorization": f"Bearer {tenant['key']}"}
    with httpx2.Client(base_url=server.url, headers=headers, trust_env=False, timeout=30) as http:
        path = f"/v1/users/{tenant['user_id']}"
        refused = http.put(path, json={"role": "viewer"})
        assert (refused.status_code, refused.json()["reason"]) == (409, "last_admin")
        for turn in range(5):
            second = http.post("/v1/users", json={"name": f"second-{turn}", "role": "admin"}).json()
            key = http.post("/v1/keys", json={"role": "admin", "user_id": second["user_id"]}).json()["key"]
            both = [tenant["user_id"], second["user_id"]]
            codes: dict[str, int] = {}

            def lower(who: str, key: str = key, codes: dict[str, int] = codes) -> None:
                mine = {"authorization": f"Bearer {key}"}
                answer = httpx2.put(
                    f"{server.url}/v1/users/{who}",
                    json={"role": "viewer"},
                    headers=mine,
                    trust_env=False,
                    timeout=30,
                )
                codes[who] = answer.status_code

            threads = [threading.Thread(target=lower, args=(who,)) for who in both]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(codes.values())[0] == 200 and sorted(codes.values())[1] in (401, 409), codes
            if (
                codes[tenant["user_id"]] == 200
            ):  # then the second is the one left; give the first its role back
                mine = {"authorization": f"Bearer {key}"}
                assert http.put(path, json={"role": "admin"}, headers=mine).status_code == 200
                made = http.post(
                    "/v1/keys", json={"role": "admin", "user_id": tenant["user_id"]}, headers=mine
                ).json()
                http.headers["authorization"] = f"Bearer {made['key']}"
                left = http.put(f"/v1/users/{second['user_id']}", json={"role": "viewer"})
                assert left.status_code == 200


def test_what_is_no_role_or_nobodys_is_refused_s170(server: Server) -> None:
    """S170."""
    user = person(server, "viewer")
    for body in ({"role": "agent"}, {"role": "king"}, {"role": None}, {}):
        answer = server.http("admin").put(f"/v1/users/{user['user_id']}", json=body)
        assert (answer.status_code, bool(answer.json()["detail"])) == (422, True)
    assert server.http("admin").put("/v1/users/usr_none", json={"role": "viewer"}).status_code == 404


@pytest.mark.req(508)
def test_events_of_an_agent_carry_its_team_and_workspace_s172(server: Server) -> None:
    """S172: as resource attributes, from its registration on."""
    name = f"teamed-{uuid.uuid4()}"
    body = {"agent_id": name, "team_id": "team-blue", "workspace_id": "ws-7"}
    assert server.http("admin").post("/v1/agents", json=body).status_code in (200, 201)
    sent = server.send(decision_log(identity={"agent_id": name})).json()
    events = server.http("admin").get(f"/v1/audit/trace/{sent['session_id']}").json()["items"]
    (event,) = [event for event in events if event["body"]["event_type"] == "message_delivered"]
    resource = event["resource"]
    assert (resource["av.team.id"], resource["av.workspace.id"]) == ("team-blue", "ws-7")
    other = server.send(decision_log(identity={"agent_id": f"alone-{uuid.uuid4()}"})).json()
    plain = server.http("admin").get(f"/v1/audit/trace/{other['session_id']}").json()["items"][-1]["resource"]
    assert "av.team.id" not in plain and "av.workspace.id" not in plain
