"""A tenant sees nothing of another one: every route that takes an id, every list, every write."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from observatory.features.hooks.types import HOOK_OPERATIONS
from observatory.features.transparency.types_peers import WITNESS_OPERATIONS
from tests.flows.databases import DATABASES
from tests.flows.naming import named_in_bodies, named_in_path, named_in_queries
from tests.flows.server import Server
from tests.flows.two_tenants import BODIES, TwoTenants, operations
from tests.samples import decision_log, envelope, just_now
from tests.waiting import until

Json = dict[str, Any]


@pytest.fixture(scope="module", params=DATABASES)
def server(request: pytest.FixtureRequest) -> Server:
    """On both databases: each has statements of its own."""
    found: Server = request.getfixturevalue(f"{request.param}_server")
    return found


@pytest.fixture(scope="module")
def deployment(server: Server) -> TwoTenants:
    return TwoTenants(server)


@pytest.mark.req(326, 329, 526)
def test_ids_of_another_tenant_are_answered_as_if_they_did_not_exist_s54(server: Server) -> None:
    """S54: code and text are those of an id that exists nowhere, on every route that takes one."""
    deployment, tried = TwoTenants(server), 0
    before = deployment.state()
    for method, path, operation in operations(deployment.server):
        body = BODIES.get(operation["operationId"])
        # The first two make what is one's own, see the next tests; the others need no key: test_federation.
        if operation["operationId"] in ("read_inbox", "change_grants", *WITNESS_OPERATIONS, *HOOK_OPERATIONS):
            continue
        for known, nowhere in named_in_path(deployment, path):
            one, other = (deployment.home.request(method, url, json=body) for url in (known, nowhere))
            assert one.status_code == other.status_code, (method, path)
            assert one.content == other.content, (method, path)
            assert one.status_code in (200, 404) and "message_id" not in one.text, (method, path)
            tried += 1
    assert tried >= 55
    assert deployment.state() == before, "and nothing has happened there"


def test_a_grant_to_anothers_agent_is_one_to_an_agent_of_ones_own_that_has_not_come_s54(
    server: Server,
) -> None:
    """S54: nothing of theirs is in the answer, and theirs gets no work by it."""
    deployment = TwoTenants(server)
    before = deployment.state()
    for name in (deployment.named["entity_id"], "not-there-yet"):
        path = f"/v1/agents/{name}/grants"
        for asked, granted in (({"grant": ["sweeping"]}, ["sweeping"]), ({"revoke": ["sweeping"]}, [])):
            answer = deployment.home.post(path, json=asked).json()
            assert (answer["agent_id"], answer["granted"]) == (name, granted)
    assert deployment.state() == before


def test_the_inbox_of_anothers_agent_is_that_of_a_new_agent_of_ones_own_s54(server: Server) -> None:
    """S54, S108: by name and by entity id; nothing of theirs is in it, and nothing can be acknowledged."""
    deployment = TwoTenants(server)
    before = deployment.state()
    waiting = [item["delivery_id"] for item in before[1]["items"]]
    assert waiting
    for agent_id in (deployment.named["name"], deployment.named["entity_id"]):
        path = f"/v1/agents/{agent_id}/inbox"
        assert deployment.home.get(path).json() == {"items": []}
        acked = deployment.home.post(f"{path}/ack", json={"ids": waiting})
        assert acked.json() == {"acked": [], "unknown": waiting}
    made = deployment.home.get(f"/v1/agents/{deployment.word}").json()
    assert (made["tenant_id"], made["agent_type"], made["messages"]) == ("tnt_default", None, 0)
    assert deployment.state() == before


def test_ids_of_another_tenant_inside_a_command_name_nothing_either_s54(server: Server) -> None:
    """S54: the refusal is that of an id which exists nowhere, and nothing comes of it."""
    deployment = TwoTenants(server)
    before = deployment.state()
    ours = deployment.home.post("/v1/messages", json=decision_log(identity={"agent_id": "homebody"})).json()
    me = deployment.home.get("/v1/whoami").json()["user_id"]
    deployment.settle()
    nowhere = {
        name: re.sub(r"[0-9a-f-]{32,}", str(uuid.uuid4()), text) for name, text in deployment.named.items()
    }
    asked = [named_in_bodies(ids, ours, me) for ids in (deployment.named, nowhere)]
    for one, other in zip(*asked, strict=True):
        theirs, none = (deployment.home.request(method, url, json=body) for method, url, body in (one, other))
        assert theirs.status_code in (404, 409, 422), (one, theirs.text)
        assert (theirs.status_code, theirs.json()["reason"]) == (none.status_code, none.json()["reason"]), one
        assert theirs.json().get("detail") == none.json().get("detail"), one
    assert deployment.state() == before


def test_rules_and_switches_over_anothers_names_see_nothing_of_theirs_s54(server: Server) -> None:
    """S54: what would be stopped, what was spent, what would have been denied; and whom a message reaches."""
    deployment = TwoTenants(server)
    before, home = deployment.state(), deployment.home
    reach = {"known": False, "agents": 0, "agent_ids": [], "sessions": 0}
    for scope in ("class", "cluster"):
        body = {"scope": scope, "target": deployment.named["name"], "reason": "ours"}
        assert home.post("/v1/kill-switch", json=body).json()["would_hold"] == reach
    for scope, target in (("agent", "name"), ("agent", "entity_id"), ("session", "session_id")):
        cap = home.put(
            "/v1/budgets", json={"scope": scope, "target": deployment.named[target], "hard": 1_000}
        )
        assert (cap.json()["spent"], cap.json()["remaining"]) == (0, 1_000)
        home.delete(f"/v1/budgets/{cap.json()['budget_id']}")
    rule = {"effect": "deny", "match": {"sender": [deployment.named["name"], deployment.named["entity_id"]]}}
    tried = home.post("/v1/policies/dry-run", json={"rule": rule}).json()
    assert (tried["denied"], tried["by_agent"]) == (0, [])
    for recipient in ("name", "entity_id"):
        sent = decision_log(identity={"agent_id": "homebody", "recipient": deployment.named[recipient]})
        assert home.post("/v1/messages", json=sent).status_code == 202
    decision = {"decision_id": deployment.named["decision_id"]}
    for done in (
        envelope("action_confirmation", payload={"triggered_by": decision}, timestamp=just_now()),
        envelope(
            "decision_request",
            payload=decision | {"deadline": None, "auto_action": None},
            timestamp=just_now(),
        ),
    ):
        answer = home.post("/v1/messages", json=done)
        assert answer.status_code == 202, answer.text
        assert len(answer.json()["warnings"]) == (done["message_type"] == "action_confirmation")
    assert deployment.state() == before


# Lists that answer by what they are asked for. Names of theirs are tried in the test after the next.
BY = ("agent", "session", "cluster", "type", "tool", "model")
ASKED: dict[str, list[Json]] = {
    "list_reviews": [{"state": "open"}, {"state": "done"}],
    "audit_consistency": [{"from": 1}],
    "list_costs": [{"by": by} for by in BY],
    "cost_heatmap": [{"by": by} for by in BY[:3]],
    "fleet_map": [
        {"level": level, "layout": layout}
        for level in ("agent", "group", "cluster")
        for layout in ("logical", "geographic")
    ],
    "search": [{}, {"group": "agent"}, {"q": "limit eur"}, {"q": "the limit is 500 EUR", "mode": "semantic"}],
}
# The lists in which something of theirs is to be seen by themselves.
FULL = {
    *("list_annotations", "list_views", "list_facts", "list_reviews", "entropy_alerts", "search", "drift"),
    *("list_costs", "cost_heatmap", "cost_burn", "cost_gaps", "fleet_map", "get_regions", "list_messages"),
    "list_thought_sessions",
    *("list_hooks", "list_hook_calls", "list_webhooks"),
    *(
        "list_agents",
        "list_instructions",
        "list_policies",
        "list_budgets",
        "list_kill_switches",
        "list_users",
        "list_people",
    ),
}


def test_no_list_of_ours_shows_anything_of_theirs_s54(deployment: TwoTenants) -> None:
    """S54: whatever filter is asked for. The one exception is the list of tenants for the home admin."""
    filters = {
        "session_id": deployment.answer["session_id"],
        "agent_id": deployment.word,
        "agent_type": deployment.word,
        "capability": deployment.word,
        "cluster": deployment.word,
        "label": deployment.word,
        "text": deployment.word,
        "user_id": deployment.named["user_id"],
        "state": "pending",
        "after": 0,
        "limit": 1000,
    }
    mine = deployment.mine["session_id"]
    asking = ASKED | {
        "compare_sessions": [{"left": mine, "right": mine}],
        "read_memory": [{"agent": "homebody"}, {"session": mine}],
    }
    tried, full = 0, set()
    for method, path, operation in operations(deployment.server):
        if method != "GET" or "{" in path or not path.startswith("/v1/"):
            continue
        name, takes = operation["operationId"], {one["name"]: one for one in operation.get("parameters", [])}
        most = min(1000, takes.get("limit", {}).get("schema", {}).get("maximum", 1000))
        for needed in asking.get(name, [{}]):
            for asked in ({}, filters):
                query = {key: value for key, value in asked.items() if key in takes}
                query |= needed | ({"limit": most} if "limit" in takes else {})
                states = takes.get("state", {}).get("schema", {}).get("enum", ["pending"])
                query |= {"state": states[0]} if "state" in query and "pending" not in states else {}
                answer = deployment.home.get(path, params=query)
                assert answer.status_code == 200, (path, query, answer.text)
                assert deployment.word not in answer.text, (path, query)
                if path != "/v1/tenants":
                    assert deployment.tenant_id not in answer.text, (path, query)
                full |= (
                    {name} if deployment.word in deployment.theirs("GET", path, params=query).text else set()
                )
                tried += 1
    assert tried >= 100
    assert full >= FULL, "their own lists do show it"


def test_names_of_theirs_in_a_question_are_those_of_nobody_s54(server: Server) -> None:
    """S54: code and text are those of a name that exists nowhere, but for the name itself and the time."""
    deployment = TwoTenants(server)
    before, tried = deployment.state(), 0
    fresh = str(uuid.uuid4())
    nowhere = {name: re.sub(r"[0-9a-f-]{32,}", fresh, text) for name, text in deployment.named.items()}
    nowhere["name"] = nowhere["name"].replace("-", "")  # one word, as theirs is
    asked = [named_in_queries(ids, deployment.mine) for ids in (deployment.named, nowhere)]
    some_id = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
    for (path, known), (other_path, unknown) in zip(*asked, strict=True):
        heard = []
        for url, query in ((path, known), (other_path, unknown)):
            answer = deployment.home.get(f"/v1/{url}", params=query)
            assert answer.status_code in (200, 404), (path, known, answer.text)
            text = some_id.sub("ID", answer.text)
            heard.append((answer.status_code, re.sub(r'"since":"[^"]*"', "", text)))
        assert heard[0] == heard[1], (path, known)
        tried += 1
    assert tried >= 40
    for field in ("cluster", "group"):
        shown = deployment.home.get("/v1/fleet", params={field: deployment.word}).json()
        assert [shown[part] for part in ("nodes", "groups", "edges")] == [[], [], []]
    assert deployment.state() == before


@pytest.fixture
def twin(server: Server) -> Iterator[httpx2.Client]:
    """The admin of a tenant in which nothing was sent yet: its first message has the number of theirs."""
    key = server.http("admin").post("/v1/tenants", json={"display_name": "Twin"}).json()["key"]
    headers = {"authorization": f"Bearer {key}"}
    with httpx2.Client(base_url=server.url, headers=headers, timeout=30, trust_env=False) as made:
        yield made


def test_numbers_are_of_each_tenants_own_record_s54(server: Server, twin: httpx2.Client) -> None:
    """S54: a number or a fact of theirs is here one of ours, or none; acts on it change nothing there."""
    deployment = TwoTenants(server)
    before, number = deployment.state(), deployment.answer["sequence_number"]
    asking = ("steps/{}/blast", "steps/{}/causes", "facts/fct_{}-0", "facts/fct_{}-0/infection")
    acting: list[tuple[str, str, Json | None]] = [
        ("POST", "reviews/{}", {"verdict": "ok"}),
        ("POST", "facts/fct_{}-0/false", {}),
        ("DELETE", "facts/fct_{}-0/false", None),
        ("POST", "facts/fct_{}-0/quarantine", {"correction": "ours", "confirm": True}),
    ]
    for method, door, body in (*(("GET", door, None) for door in asking), *acting):
        asked = [twin.request(method, f"/v1/{door.format(one)}", json=body) for one in (number, 10**6)]
        assert asked[0].status_code == 404 and asked[0].content == asked[1].content, door
    # The same number here is a message of ours: whatever is done to it is done to ours.
    sent = twin.post("/v1/messages", json=decision_log(identity={"agent_id": "twin"})).json()
    assert sent["sequence_number"] == number
    until(lambda: twin.get("/v1/insight/status").json()["lag_messages"] == 0)
    for door in asking:
        ours = twin.get(f"/v1/{door.format(number)}")
        assert ours.status_code == 200 and deployment.word not in ours.text and '"twin"' in ours.text
    done = [twin.request(method, f"/v1/{door.format(number)}", json=body) for method, door, body in acting]
    assert [one.status_code for one in done] == [200, 201, 200, 202], [one.text for one in done]
    assert {one["agent_id"] for one in done[3].json()["agents"]} == {"twin"}
    assert deployment.state() == before


def test_settings_of_theirs_are_not_ours_s54(deployment: TwoTenants) -> None:
    """S54: detectors and places; ours say who set them, and it was nobody of theirs."""
    them = deployment.theirs("GET", "/v1/whoami").json()["user_id"]
    for path in ("settings/detectors", "fleet/regions"):
        ours, theirs = (
            deployment.home.get(f"/v1/{path}").json(),
            deployment.theirs("GET", f"/v1/{path}").json(),
        )
        assert theirs["updated_by"] == them != ours["updated_by"]
        assert theirs != ours


def test_what_one_writes_under_anothers_ids_stays_ones_own_s54(server: Server) -> None:
    """S54: the same step, session, trace and message ids are free here; neither record changes."""
    deployment = TwoTenants(server)
    ours = deployment.home.post("/v1/messages", json=deployment.sent)
    assert ours.status_code == 202
    assert ours.json()["session_id"] == deployment.answer["session_id"]
    assert ours.json()["message_id"] != deployment.answer["message_id"]
    changed = deployment.sent | {"action": {"status": "failure"}}
    assert deployment.theirs("POST", "/v1/messages", json=changed).status_code == 409
    found = deployment.theirs("GET", f"/v1/sessions/{deployment.answer['session_id']}").json()
    assert found["messages"] == 2, "as before: one forwarded, one held"
    agents = [
        deployment.home.get(f"/v1/agents/{deployment.word}"),
        deployment.theirs("GET", f"/v1/agents/{deployment.word}"),
    ]
    assert len({agent.json()["entity_id"] for agent in agents}) == 2
    deployment.settle()
    number, step_id = ours.json()["sequence_number"], deployment.sent["meta"]["step_id"]
    for path in (f"facts/fct_{number}-0/infection", f"steps/{step_id}/blast"):
        spread = deployment.home.get(f"/v1/{path}").json()
        assert len(spread["agents"]) == len(spread["steps"]) == 1, "it spread from nobody to nobody"
        assert {one["sequence_number"] for one in spread["steps"]} == {number}
        assert not spread.get("also_claimed") and not spread.get("copies")
    shared = envelope("text")
    for door in (deployment.home.request, deployment.theirs):
        assert door("POST", "/v1/messages", json=shared).status_code == 202
        assert door("GET", f"/v1/messages/{shared['message_id']}").json()["message"] == shared


def test_rules_of_one_tenant_do_not_bind_another_s54(deployment: TwoTenants) -> None:
    """S54: a version they retired is merely unknown here."""
    sent = decision_log(identity={"agent_type": deployment.word, "capability_version": "1.0.0"})
    assert deployment.theirs("POST", "/v1/messages", json=sent).status_code == 422
    assert deployment.home.post("/v1/messages", json=sent).status_code == 202


@pytest.mark.req(459, 498)
def test_each_tenant_has_a_chain_of_its_own_s54(deployment: TwoTenants) -> None:
    """S54, S41: numbers from one, from the same genesis; and nobody verifies another's."""
    first = deployment.theirs("GET", "/v1/audit/tenant", params={"limit": 1000}).json()["items"]
    numbers = [event["hash_chain"]["sequence_number"] for event in reversed(first)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert first[-1]["body"]["event_type"] == "tenant_created"
    result = deployment.theirs("POST", "/v1/audit/verify", json={"tenant_id": deployment.tenant_id})
    assert result.json()["valid"] and result.json()["events_verified"] == len(numbers)
    for tenant in (deployment.tenant_id, "tnt_nowhere"):
        foreign = deployment.home.post("/v1/audit/verify", json={"tenant_id": tenant})
        assert (foreign.status_code, foreign.json()["reason"]) == (403, "foreign_tenant")
        assert tenant not in foreign.text


def test_only_the_home_admin_makes_tenants_and_each_admin_sees_their_own_s54(deployment: TwoTenants) -> None:
    """S54, S58."""
    answer = deployment.theirs("POST", "/v1/tenants", json={"display_name": "More"})
    assert answer.status_code == 403
    listed = deployment.theirs("GET", "/v1/tenants").json()["items"]
    assert [tenant["tenant_id"] for tenant in listed] == [deployment.tenant_id]
    taken = deployment.home.post("/v1/tenants", json={"display_name": "x", "tenant_id": deployment.tenant_id})
    assert taken.status_code == 409
    for wrong in ("theirs", "tnt_", "tnt_ä", "tnt_" + "a" * 65, "usr_1"):
        body = {"display_name": "x", "tenant_id": wrong}
        assert deployment.home.post("/v1/tenants", json=body).status_code in (400, 422)
    ours = deployment.home.get("/v1/whoami").json()["user_id"]
    for asked in ({"user_id": ours}, {"user_id": "usr_nowhere"}):
        assert deployment.theirs("POST", "/v1/logins", json=asked).status_code == 404
        assert deployment.theirs("POST", "/v1/keys", json={"role": "viewer"} | asked).status_code == 404


def test_the_refusal_of_a_stranger_names_no_tenant(deployment: TwoTenants) -> None:
    """S54: 401 says nothing but what a key looks like."""
    answer = deployment.server.http("nobody").get(f"/v1/sessions/{deployment.answer['session_id']}")
    assert answer.status_code == 401
    assert deployment.tenant_id not in answer.text and deployment.word not in json.dumps(answer.json())
