"""A tenant sees nothing of another one: every route that takes an id, every list, every write."""

from __future__ import annotations

import json
import re
import uuid
from typing import Any

import httpx2
import pytest

from tests.flows.server import Server
from tests.samples import decision_log, envelope

Json = dict[str, Any]


class House:
    """Two tenants in one gateway: ours (home) and theirs, each with an agent, a session, a user, a key."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.home = server.http("admin")
        made = self.home.post("/v1/tenants", json={"display_name": "Theirs"})
        assert made.status_code == 201, made.text
        self.tenant_id: str = made.json()["tenant_id"]
        self.their_admin: str = made.json()["key"]
        self.word = f"theirs{uuid.uuid4().hex}"
        self.sent = decision_log(
            identity={"agent_id": self.word, "agent_type": self.word},
            meta={"step_id": str(uuid.uuid4()), "session_id": str(uuid.uuid4())},
        )
        answer = self.theirs("POST", "/v1/messages", json=self.sent)
        assert answer.status_code == 202, answer.text
        self.answer: Json = answer.json()
        user = self.theirs("POST", "/v1/users", json={"name": self.word, "role": "viewer"}).json()
        key = self.theirs("POST", "/v1/keys", json={"role": "agent", "label": self.word}).json()
        versions = {"agent_type": self.word, "versions": [{"version": "1.0.0", "status": "retired"}]}
        assert self.theirs("PUT", "/v1/versions", json=versions).status_code == 200
        agent = self.theirs("GET", f"/v1/agents/{self.word}").json()
        self.ids = {
            "message_id": [self.answer["message_id"], self.answer["step_id"]],
            "session_id": [self.answer["session_id"]],
            "trace_id": [self.answer["session_id"], self.answer["session_id"].replace("-", "")],
            "entity_id": [agent["entity_id"], user["user_id"], self.word],
            "agent_id": [agent["entity_id"], self.word],
            "user_id": [user["user_id"]],
            "key_id": [key["key_id"]],
        }

    def theirs(self, method: str, path: str, **more: Any) -> httpx2.Response:
        headers = {"authorization": f"Bearer {self.their_admin}"}
        return self.server.http("nobody").request(method, path, headers=headers, **more)


@pytest.fixture(scope="module")
def house(server: Server) -> House:
    return House(server)


def operations(server: Server) -> list[tuple[str, str, Json]]:
    paths = server.http("nobody").get("/schemas/openapi.json").json()["paths"]
    return [
        (method.upper(), path, operation)
        for path, methods in paths.items()
        for method, operation in methods.items()
    ]


@pytest.mark.req(326, 329, 526)
def test_ids_of_another_tenant_are_answered_as_if_they_did_not_exist_s54(house: House) -> None:
    """S54: code and text are those of an id that exists nowhere, on every route that takes one."""
    tried = 0
    for method, path, _ in operations(house.server):
        for name in re.findall(r"\{(\w+)\}", path):
            for known in house.ids[name]:
                shape = re.sub(r"[0-9a-f]{8}-?[0-9a-f]{4}-?.*", lambda _: str(uuid.uuid4()), known)
                nowhere = shape if shape != known else f"nobody{uuid.uuid4().hex}"
                asked = [path.replace(f"{{{name}}}", ident) for ident in (known, nowhere)]
                one, other = (house.home.request(method, url) for url in asked)
                assert one.status_code == other.status_code, (method, path)
                assert one.content == other.content, (method, path)
                assert one.status_code in (200, 404) and "message_id" not in one.text, (method, path)
                tried += 1
    assert tried >= 10


def test_no_list_of_ours_shows_anything_of_theirs_s54(house: House) -> None:
    """S54: whatever filter is asked for. The one exception is the list of tenants for the home admin."""
    filters = {
        "session_id": house.answer["session_id"],
        "agent_id": house.word,
        "agent_type": house.word,
        "after": 0,
        "limit": 1000,
    }
    tried = 0
    for method, path, operation in operations(house.server):
        if method != "GET" or "{" in path or not path.startswith("/v1/"):
            continue
        takes = {parameter["name"] for parameter in operation.get("parameters", [])}
        for asked in ({"limit": 1000}, filters):
            query = {name: value for name, value in asked.items() if name in takes}
            answer = house.home.get(path, params=query)
            assert answer.status_code == 200, answer.text
            assert house.word not in answer.text, (path, query)
            if path != "/v1/tenants":
                assert house.tenant_id not in answer.text, (path, query)
            tried += 1
    assert tried >= 16


def test_what_one_writes_under_anothers_ids_stays_ones_own_s54(server: Server) -> None:
    """S54: the same step, session, trace and message ids are free here; neither record changes."""
    house = House(server)
    ours = house.home.post("/v1/messages", json=house.sent)
    assert ours.status_code == 202
    assert ours.json()["session_id"] == house.answer["session_id"]
    assert ours.json()["message_id"] != house.answer["message_id"]
    changed = house.sent | {"action": {"status": "failure"}}
    assert house.theirs("POST", "/v1/messages", json=changed).status_code == 409
    found = house.theirs("GET", f"/v1/sessions/{house.answer['session_id']}").json()
    assert found["messages"] == 1
    agents = [house.home.get(f"/v1/agents/{house.word}"), house.theirs("GET", f"/v1/agents/{house.word}")]
    assert len({agent.json()["entity_id"] for agent in agents}) == 2
    shared = envelope("text")
    for door in (house.home.request, house.theirs):
        assert door("POST", "/v1/messages", json=shared).status_code == 202
        assert door("GET", f"/v1/messages/{shared['message_id']}").json()["message"] == shared


def test_rules_of_one_tenant_do_not_bind_another_s54(house: House) -> None:
    """S54: a version they retired is merely unknown here."""
    sent = decision_log(identity={"agent_type": house.word, "capability_version": "1.0.0"})
    assert house.theirs("POST", "/v1/messages", json=sent).status_code == 422
    assert house.home.post("/v1/messages", json=sent).status_code == 202


@pytest.mark.req(459, 498)
def test_each_tenant_has_a_chain_of_its_own_s54(house: House) -> None:
    """S54, S41: numbers from one, from the same genesis; and nobody verifies another's."""
    first = house.theirs("GET", "/v1/audit/tenant", params={"limit": 1000}).json()["items"]
    numbers = [event["hash_chain"]["sequence_number"] for event in reversed(first)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert first[-1]["body"]["event_type"] == "tenant_created"
    result = house.theirs("POST", "/v1/audit/verify", json={"tenant_id": house.tenant_id})
    assert result.json()["valid"] and result.json()["events_verified"] == len(numbers)
    for tenant in (house.tenant_id, "tnt_nowhere"):
        foreign = house.home.post("/v1/audit/verify", json={"tenant_id": tenant})
        assert (foreign.status_code, foreign.json()["reason"]) == (403, "foreign_tenant")
        assert tenant not in foreign.text


def test_only_the_home_admin_makes_tenants_and_each_admin_sees_their_own_s54(house: House) -> None:
    """S54, S58."""
    answer = house.theirs("POST", "/v1/tenants", json={"display_name": "More"})
    assert answer.status_code == 403
    listed = house.theirs("GET", "/v1/tenants").json()["items"]
    assert [tenant["tenant_id"] for tenant in listed] == [house.tenant_id]
    taken = house.home.post("/v1/tenants", json={"display_name": "x", "tenant_id": house.tenant_id})
    assert taken.status_code == 409
    for wrong in ("theirs", "tnt_", "tnt_ä", "tnt_" + "a" * 65, "usr_1"):
        body = {"display_name": "x", "tenant_id": wrong}
        assert house.home.post("/v1/tenants", json=body).status_code in (400, 422)
    ours = house.home.get("/v1/whoami").json()["user_id"]
    for asked in ({"user_id": ours}, {"user_id": "usr_nowhere"}):
        assert house.theirs("POST", "/v1/logins", json=asked).status_code == 404
        assert house.theirs("POST", "/v1/keys", json={"role": "viewer"} | asked).status_code == 404


def test_the_refusal_of_a_stranger_names_no_tenant(house: House) -> None:
    """S54: 401 says nothing but what a key looks like."""
    answer = house.server.http("nobody").get(f"/v1/sessions/{house.answer['session_id']}")
    assert answer.status_code == 401
    assert house.tenant_id not in answer.text and house.word not in json.dumps(answer.json())
