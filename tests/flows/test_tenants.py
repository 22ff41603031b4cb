"""A tenant sees nothing of another one: every route that takes an id, every list, every write."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.flows.server import Server
from tests.samples import decision_log, envelope

Json = dict[str, Any]
# What a command must say to be heard at all.
ON_AGENT: Json = {"agent_id": "ours"}
RULE: Json = {"effect": "deny", "match": {"sender": ["nobody"]}}
BODIES: dict[str, Json] = {
    "ack_inbox": {"ids": ["dlv_1-1"]},
    "leave_session": ON_AGENT,
    "evict_agent": {},
    "pause": ON_AGENT,
    "unpause": ON_AGENT,
    "cancel": ON_AGENT,
    "approve": ON_AGENT,
    "reject": ON_AGENT,
    "inject": ON_AGENT | {"prompt": "ours"},
    "edit": ON_AGENT | {"new_content": {}},
    "rewrite": ON_AGENT | {"new_content": {}, "original_message_id": "none"},
    "respond_decision": {"selected_option_id": "approve"},
    "replace_policy": RULE,
    "change_role": {"role": "viewer"},
    "confirm_kill_switch": {"token": "theirs"},
    "release_kill_switch": {"reason": "ours"},
}


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
        switch = {"scope": "class", "target": self.word, "reason": self.word}
        armed = self.theirs("POST", "/v1/kill-switch", json=switch).json()
        told = self.theirs("PUT", f"/v1/instructions/{self.word}", json={"text": self.word})
        assert told.status_code == 201
        agent = self.theirs("GET", f"/v1/agents/{self.word}").json()
        rule = {"effect": "hold", "match": {"sender": [self.word]}, "note": self.word}
        policy = self.theirs("POST", "/v1/policies", json=rule).json()
        cap = {"scope": "agent", "target": self.word, "hard": 1_000}
        budget = self.theirs("PUT", "/v1/budgets", json=cap).json()
        weights = {"capability": self.word, "weights": {f"cluster:{self.word}": 1}}
        assert self.theirs("PUT", "/v1/routes", json=weights).status_code == 200
        beat = self.theirs("POST", "/v1/heartbeat", json={"agent_id": self.word, "status": self.word})
        assert beat.status_code == 200, beat.text
        # Held by their rule, rewritten, and told of in their agent's inbox.
        meta = {"step_id": str(uuid.uuid4()), "session_id": self.answer["session_id"], "parent_step_id": None}
        self.held = decision_log(identity=self.sent["identity"], meta=meta)
        held = self.theirs("POST", "/v1/messages", json=self.held)
        assert held.status_code == 202 and held.json()["state"] == "held", held.text
        change = {"agent_id": self.word, "original_message_id": meta["step_id"], "new_content": self.held}
        rewritten = self.do("rewrite", **change)
        injected = self.do("inject", agent_id=self.word, prompt=self.word)
        plain = {"title": self.word, "deadline": None, "auto_action": None}
        person = {"entity_id": user["user_id"], "entity_type": "user"}
        self.asked = envelope("decision_request", recipient=person, payload=plain)
        assert self.theirs("POST", "/v1/messages", json=self.asked).status_code == 202
        self.ids = {
            "message_id": [self.answer["message_id"], self.answer["step_id"]],
            "session_id": [self.answer["session_id"]],
            "trace_id": [self.answer["session_id"], self.answer["session_id"].replace("-", "")],
            "entity_id": [agent["entity_id"], user["user_id"], self.word],
            "agent_id": [agent["entity_id"], self.word],
            "user_id": [user["user_id"]],
            "key_id": [key["key_id"]],
            "kill_id": [armed["kill_id"]],
            "rule_id": [policy["rule_id"]],
            "budget_id": [budget["budget_id"]],
            "decision_id": [self.asked["payload"]["decision_id"]],
            "intervention_id": [rewritten["intervention_id"], injected["intervention_id"]],
            "agent_type": [],  # a name that every tenant may use; see test_instructions
            "capability": [],  # the same
        }
        self.named = {name: idents[0] for name, idents in self.ids.items() if idents}
        self.named |= {"name": self.word, "entity_id": agent["entity_id"], "step_id": meta["step_id"]}

    def state(self) -> list[Any]:
        """What commands of others could have changed: the record, the inbox, what is held and asked."""
        paths = ("audit/tenant?limit=1", f"agents/{self.word}/inbox", "holds", "decisions", "policies")
        return [self.theirs("GET", f"/v1/{path}").json() for path in paths]

    def do(self, command: str, **body: Any) -> Json:
        answer = self.theirs("POST", f"/v1/sessions/{self.answer['session_id']}/{command}", json=body)
        assert answer.status_code in (200, 202), answer.text
        found: Json = answer.json()
        return found

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
def test_ids_of_another_tenant_are_answered_as_if_they_did_not_exist_s54(server: Server) -> None:
    """S54: code and text are those of an id that exists nowhere, on every route that takes one."""
    house, tried = House(server), 0
    before = house.state()
    for method, path, operation in operations(house.server):
        body = BODIES.get(operation["operationId"])
        if operation["operationId"] == "read_inbox":  # makes an agent of one's own; see the next test
            continue
        for name in re.findall(r"\{(\w+)\}", path):
            for known in house.ids[name]:
                shape = re.sub(r"[0-9a-f]{8}-?[0-9a-f]{4}-?.*", lambda _: str(uuid.uuid4()), known)
                nowhere = shape if shape != known else f"nobody{uuid.uuid4().hex}"
                asked = [path.replace(f"{{{name}}}", ident) for ident in (known, nowhere)]
                one, other = (house.home.request(method, url, json=body) for url in asked)
                assert one.status_code == other.status_code, (method, path)
                assert one.content == other.content, (method, path)
                assert one.status_code in (200, 404) and "message_id" not in one.text, (method, path)
                tried += 1
    assert tried >= 35
    assert house.state() == before, "and nothing has happened there"


def test_the_inbox_of_anothers_agent_is_that_of_a_new_agent_of_ones_own_s54(server: Server) -> None:
    """S54, S108: by name and by entity id; nothing of theirs is in it, and nothing can be acknowledged."""
    house = House(server)
    before = house.state()
    waiting = [item["delivery_id"] for item in before[1]["items"]]
    assert waiting
    for agent_id in (house.named["name"], house.named["entity_id"]):
        path = f"/v1/agents/{agent_id}/inbox"
        assert house.home.get(path).json() == {"items": []}
        acked = house.home.post(f"{path}/ack", json={"ids": waiting})
        assert acked.json() == {"acked": [], "unknown": waiting}
    made = house.home.get(f"/v1/agents/{house.word}").json()
    assert (made["tenant_id"], made["agent_type"], made["messages"]) == ("tnt_default", None, 0)
    assert house.state() == before


def named_in_bodies(ids: Json, session_id: str, me: str) -> Iterator[tuple[str, str, Json]]:
    """Commands in a session of our own that name an agent, a message, a user, a rule or a decision."""
    path, ours = f"/v1/sessions/{session_id}", {"agent_id": "homebody", "new_content": {}}
    for agent_id in (ids["name"], ids["entity_id"]):
        for command in ("pause", "unpause", "inject", "cancel", "approve", "reject", "edit"):
            yield "POST", f"{path}/{command}", BODIES[command] | {"agent_id": agent_id}
        yield "POST", f"{path}/leave", {"agent_id": agent_id}
    for ident in (ids["message_id"], ids["step_id"]):
        for command in ("approve", "reject", "edit"):
            yield "POST", f"{path}/{command}", ours | {"message_id": ident}
        yield "POST", f"{path}/rewrite", ours | {"original_message_id": ident}
    yield "POST", "/v1/agents", {"agent_id": "homebody", "owner": ids["user_id"]}
    yield "PUT", "/v1/policies/order", {"order": [ids["rule_id"]]}
    person, answer = {"entity_id": me, "entity_type": "user"}, {"decision_id": ids["decision_id"]}
    yield "POST", "/v1/messages", envelope("decision_response", sender=person, payload=answer)


def test_ids_of_another_tenant_inside_a_command_name_nothing_either_s54(server: Server) -> None:
    """S54: the refusal is that of an id which exists nowhere, and nothing comes of it."""
    house = House(server)
    before = house.state()
    ours = house.home.post("/v1/messages", json=decision_log(identity={"agent_id": "homebody"})).json()
    me = house.home.get("/v1/whoami").json()["user_id"]
    nowhere = {name: re.sub(r"[0-9a-f-]{32,}", str(uuid.uuid4()), text) for name, text in house.named.items()}
    asked = [named_in_bodies(ids, ours["session_id"], me) for ids in (house.named, nowhere)]
    for one, other in zip(*asked, strict=True):
        theirs, none = (house.home.request(method, url, json=body) for method, url, body in (one, other))
        assert theirs.status_code in (404, 409, 422), (one, theirs.text)
        assert (theirs.status_code, theirs.json()["reason"]) == (none.status_code, none.json()["reason"]), one
        assert theirs.json().get("detail") == none.json().get("detail"), one
    assert house.state() == before


def test_rules_and_switches_over_anothers_names_see_nothing_of_theirs_s54(server: Server) -> None:
    """S54: what would be stopped, what was spent, what would have been denied; and whom a message reaches."""
    house = House(server)
    before, home = house.state(), house.home
    reach = {"agents": 0, "agent_ids": [], "sessions": 0}
    for scope in ("class", "cluster"):
        body = {"scope": scope, "target": house.named["name"], "reason": "ours"}
        assert home.post("/v1/kill-switch", json=body).json()["would_hold"] == reach
    for scope, target in (("agent", "name"), ("agent", "entity_id"), ("session", "session_id")):
        cap = home.put("/v1/budgets", json={"scope": scope, "target": house.named[target], "hard": 1_000})
        assert (cap.json()["spent"], cap.json()["remaining"]) == (0, 1_000)
        home.delete(f"/v1/budgets/{cap.json()['budget_id']}")
    rule = {"effect": "deny", "match": {"sender": [house.named["name"], house.named["entity_id"]]}}
    tried = home.post("/v1/policies/dry-run", json={"rule": rule}).json()
    assert (tried["denied"], tried["by_agent"]) == (0, [])
    for recipient in ("name", "entity_id"):
        sent = decision_log(identity={"agent_id": "homebody", "recipient": house.named[recipient]})
        assert home.post("/v1/messages", json=sent).status_code == 202
    decision = {"decision_id": house.named["decision_id"]}
    for done in (
        envelope("action_confirmation", payload={"triggered_by": decision}),
        envelope("decision_request", payload=decision | {"deadline": None, "auto_action": None}),
    ):
        answer = home.post("/v1/messages", json=done)
        assert answer.status_code == 202, answer.text
        assert len(answer.json()["warnings"]) == (done["message_type"] == "action_confirmation")
    assert house.state() == before


def test_no_list_of_ours_shows_anything_of_theirs_s54(house: House) -> None:
    """S54: whatever filter is asked for. The one exception is the list of tenants for the home admin."""
    filters = {
        "session_id": house.answer["session_id"],
        "agent_id": house.word,
        "agent_type": house.word,
        "capability": house.word,
        "cluster": house.word,
        "user_id": house.named["user_id"],
        "state": "pending",
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
    assert tried >= 30


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
    assert found["messages"] == 2, "as before: one forwarded, one held"
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
