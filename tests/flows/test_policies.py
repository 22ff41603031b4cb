"""Rules between agents, from the operator's door to the agent's answer, with a real gateway."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.flows.databases import ALONE
from tests.flows.fleet import named
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.samples import decision_log, envelope
from tests.samples import shown as shown_as

Json = dict[str, Any]


@pytest.fixture
def server(either_tenant: Tenant) -> Tenant:
    """On both databases; the rules of a test are nobody else's."""
    return either_tenant


def log(agent: str, **more: Any) -> Json:
    meta = {"step_id": str(uuid.uuid4()), "session_id": f"ses-{agent}"}
    return decision_log(meta=meta, identity={"agent_id": agent, **more.pop("identity", {})}, **more)


def create(server: Server, effect: str, role: str = "operator", **more: Any) -> Json:
    match = {name: more.pop(name) for name in list(more) if name in ("sender", "recipient", "tool")}
    answer = server.http(role).post("/v1/policies", json={"effect": effect, "match": match, **more})
    assert answer.status_code == 201, answer.text
    made: Json = answer.json()
    return made


def received(server: Server, session_id: str) -> list[Json]:
    """The session's trail, oldest first."""
    items = server.http("operator").get(f"/v1/audit/trace/{session_id}").json()["items"]
    return list(items)


def house_told(server: Server, event_type: str) -> list[Json]:
    items = server.http("operator").get("/v1/audit/tenant", params={"limit": 200}).json()["items"]
    return [item for item in items if item["body"]["event_type"] == event_type]


def newest(server: Server) -> int:
    (event,) = server.http("operator").get("/v1/audit/tenant", params={"limit": 1}).json()["items"]
    number: int = event["hash_chain"]["sequence_number"]
    return number


@pytest.mark.req(225, 446, 506)
def test_a_denied_message_is_refused_archived_and_audited_s148(server: Server) -> None:
    alice, bob = named("alice"), named("bob")
    rule = create(server, "deny", sender=[alice], recipient=[bob], note="they must not talk")
    body = log(alice, identity={"recipient": bob})
    answer = server.send(body)
    assert answer.status_code == 403
    refused = answer.json()
    assert (refused["status"], refused["reason"]) == ("refused", "policy_denied")
    assert refused["rule_id"] == rule["rule_id"]
    assert server.send(body).json() == refused
    assert server.send(log(alice)).status_code == 202
    assert server.send(log(bob, identity={"recipient": alice})).status_code == 202
    found = server.http("operator").get(f"/v1/messages/{body['meta']['step_id']}").json()
    assert (found["state"], found["message"]) == ("refused", shown_as(body))
    events = [
        item for item in received(server, f"ses-{alice}") if item["body"]["event_type"] == "policy_evaluated"
    ]
    assert len(events) == 1
    assert (events[0]["severity_number"], events[0]["severity_text"]) == (10, "INFO")
    assert events[0]["body"]["rule_id"] == rule["rule_id"] and events[0]["body"]["effect"] == "deny"


@pytest.mark.req(225)
def test_a_held_message_waits_for_a_person_s148(server: Server) -> None:
    agent = named()
    rule = create(server, "hold", sender=[agent], tool=["serp_*"], quorum=2, deadline_s=3600)
    answer = server.send(log(agent)).json()
    assert answer["state"] == "held"
    assert server.send(log(agent, action={"tool_call": "read_file"})).json()["state"] == "forwarded"
    kinds = [item["body"]["event_type"] for item in received(server, f"ses-{agent}")]
    assert kinds[:3] == ["policy_evaluated", "message_held", "gate_opened"]
    (gate,) = [
        item["body"]
        for item in received(server, f"ses-{agent}")
        if item["body"]["event_type"] == "gate_opened"
    ]
    assert gate["quorum"] == 2 and gate["deadline"] is not None
    assert gate["reasons"][0]["rule_id"] == rule["rule_id"]


def test_a_rule_made_while_a_message_waits_is_asked_again_at_release_s148(
    either_fresh_server: Server,
) -> None:
    server = either_fresh_server
    alice, bob, kind = named("alice"), named("bob"), named("type")
    server.send(log(bob, identity={"agent_type": kind}))
    create(server, "hold", sender=[alice])
    held = server.send(log(alice, identity={"recipient": bob})).json()
    assert held["state"] == "held"
    meanwhile = create(server, "deny", recipient=[f"type:{kind}"])
    server.restart(kill=True)  # nothing is known of bob but what the record says
    http, path = server.http("operator"), f"/v1/sessions/ses-{alice}/approve"
    refused = http.post(path, json={"agent_id": alice})
    assert (refused.status_code, refused.json()["reason"]) == (409, "policy_denied")
    assert http.delete(f"/v1/policies/{meanwhile['rule_id']}").status_code == 200
    approved = http.post(path, json={"agent_id": alice})
    assert (approved.status_code, approved.json()["state"]) == (200, "forwarded"), approved.text


def test_deny_wins_and_the_order_is_the_operators_s147(server: Server) -> None:
    agent = named()
    rules = [create(server, effect, sender=[agent])["rule_id"] for effect in ("allow", "hold", "deny")]
    assert server.send(log(agent)).json()["rule_id"] == rules[2]
    http = server.http("operator")
    listed = http.put("/v1/policies/order", json={"order": rules[::-1]})
    assert [item["rule_id"] for item in listed.json()["items"]] == rules[::-1]
    assert [item["position"] for item in http.get("/v1/policies").json()["items"]] == [1, 2, 3]
    assert http.put("/v1/policies/order", json={"order": rules[:2]}).status_code == 409
    assert http.delete(f"/v1/policies/{rules[2]}").status_code == 200
    assert server.send(log(agent)).json()["state"] == "held"
    first = create(server, "deny", sender=[agent], position=1)
    assert first["position"] == 1
    assert server.send(log(agent)).json()["rule_id"] == first["rule_id"]


def test_a_rule_that_is_off_keeps_its_place_and_rules_nothing_s733(server: Server) -> None:
    """S733: nor does it lock anybody out; a dry run tries it all the same."""
    http, agent = server.http("operator"), named()
    rule = create(server, "deny", sender=[agent])
    path, body = f"/v1/policies/{rule['rule_id']}", {"effect": "deny", "match": {"sender": [agent]}}
    assert rule["enabled"] is True
    off = http.put(path, json=body | {"enabled": False}).json()
    assert (off["enabled"], off["position"]) == (False, 1)
    assert server.send(log(agent)).status_code == 202
    tried = http.post("/v1/policies/dry-run", json={"rule": body | {"enabled": False}}).json()
    assert tried["denied"] == 1
    everybody = {"effect": "deny", "match": {}}
    assert http.post("/v1/policies", json=everybody | {"enabled": False}).status_code == 201
    assert server.send(log(agent)).status_code == 202
    assert http.put(path, json=body).json()["enabled"] is True
    assert server.send(log(agent)).status_code == 403


def test_who_changes_what_somebody_else_changed_meanwhile_is_told_s732(server: Server) -> None:
    """S732: `was` is what was seen; without it nothing is compared."""
    http, agent = server.http("operator"), named()
    rules = [create(server, "hold", sender=[agent], note=note)["rule_id"] for note in ("one", "two")]
    path, seen = f"/v1/policies/{rules[0]}", {"effect": "hold", "match": {"sender": [agent]}, "note": "one"}
    mine, theirs = seen | {"quorum": 2}, seen | {"note": "theirs"}
    assert server.http("admin").put(path, json=theirs | {"was": seen}).status_code == 200
    refused = http.put(path, json=mine | {"was": seen})
    assert (refused.status_code, refused.json()["reason"]) == (409, "stale_rule")
    assert http.get("/v1/policies").json()["items"][0]["note"] == "theirs"
    # A rule that only moved is the same rule.
    moved = {"order": rules[::-1], "was": rules}
    assert http.put("/v1/policies/order", json=moved).status_code == 200
    stale = http.put("/v1/policies/order", json=moved)
    assert (stale.status_code, stale.json()["reason"]) == (409, "stale_order")
    assert http.put(path, json=mine | {"was": theirs}).status_code == 200
    assert http.put(path, json=seen).status_code == 200


def test_every_change_is_audited_with_before_and_after_and_outlives_a_kill_s150(
    either_fresh_server: Server,
) -> None:
    server = either_fresh_server
    http, agent = server.http("operator"), named()
    rule = create(server, "deny", sender=[agent])
    changed = {
        "effect": "deny",
        "match": {"sender": [agent], "tool": ["shell"]},
        "note": "only the shell",
    }
    shown = http.put(f"/v1/policies/{rule['rule_id']}", json=changed)
    assert shown.status_code == 200
    assert shown.json()["match"] == changed["match"] and shown.json()["updated_by"].startswith("usr_")
    assert server.send(log(agent)).status_code == 202
    server.restart(kill=True)
    assert server.send(log(agent, action={"tool_call": "shell"})).status_code == 403
    http = server.http("operator")
    assert http.delete(f"/v1/policies/{rule['rule_id']}").json() == {
        "rule_id": rule["rule_id"],
        "removed": True,
    }
    assert server.send(log(agent, action={"tool_call": "shell"})).status_code == 202
    for gone in (http.delete, lambda path: http.put(path, json=changed)):
        assert gone(f"/v1/policies/{rule['rule_id']}").status_code == 404
    sides = [
        (body["before"], body["after"]) for body in (e["body"] for e in house_told(server, "policy_changed"))
    ]
    assert [(before is None, after is None) for before, after in sides] == [
        (False, True), (False, False), (True, False),
    ]  # fmt: skip
    assert sides[1][0]["match"] == {"sender": [agent]} and sides[1][1]["match"] == changed["match"]


def test_a_rule_that_locks_everyone_out_needs_a_second_word_s151(server: Server) -> None:
    http, everybody = server.http("operator"), {"effect": "deny", "match": {}}
    refused = http.post("/v1/policies", json=everybody)
    assert (refused.status_code, refused.json()["reason"]) == (409, "locks_everyone_out")
    assert server.send(log(named())).status_code == 202
    harmless = create(server, "deny", tool=["shell"])
    path = f"/v1/policies/{harmless['rule_id']}"
    assert http.put(path, json=everybody).status_code == 409
    assert http.put(path, json=everybody | {"confirm": True}).status_code == 200
    assert server.send(log(named())).status_code == 403
    assert server.send(envelope("heartbeat")).status_code == 202


@pytest.mark.parametrize("kind", ["heartbeat", "decision_request"])
def test_agents_essential_traffic_passes_every_rule_s149(server: Server, kind: str) -> None:
    create(server, "deny", confirm=True)
    create(server, "hold")
    answer = server.send(envelope(kind))
    assert (answer.status_code, answer.json()["state"]) == (202, "forwarded")
    assert server.send(envelope("text")).status_code == 403


def test_the_house_can_deny_by_default_and_essential_traffic_still_passes_s149(
    either_options: tuple[str, ...], tmp_path: Path
) -> None:
    """S147: what no rule allows is denied; S151: the last rule that allows is not removed unawares."""
    environment = ALONE | {"OBSERVATORY_POLICY_DEFAULT": "deny"}
    with Server(tmp_path / "data", *either_options, environment=environment) as server:
        http, agent = server.http("operator"), named()
        assert http.get("/v1/policies").json() == {"items": [], "next_cursor": None, "default": "deny"}
        assert server.send(log(agent)).json()["rule_id"] == "default"
        assert server.send(envelope("heartbeat")).status_code == 202
        path = f"/v1/policies/{create(server, 'allow', sender=[agent])['rule_id']}"
        assert server.send(log(agent)).status_code == 202
        assert server.send(log(named())).status_code == 403
        assert http.delete(path).json()["reason"] == "locks_everyone_out"
        assert http.delete(path, params={"confirm": True}).status_code == 200
        assert server.send(log(agent)).status_code == 403


def test_only_operators_change_rules_and_everyone_who_reads_sees_them_s150(server: Server) -> None:
    rule = create(server, "deny", sender=[named()])
    body = {"effect": "deny", "match": {"tool": ["x"]}}
    for role in ("viewer", "auditor", "approver"):
        http = server.http(role)
        assert http.get("/v1/policies").json()["items"][0]["rule_id"] == rule["rule_id"]
        assert http.post("/v1/policies", json=body).status_code == 403
        assert http.put(f"/v1/policies/{rule['rule_id']}", json=body).status_code == 403
        assert http.put("/v1/policies/order", json={"order": [rule["rule_id"]]}).status_code == 403
        assert http.delete(f"/v1/policies/{rule['rule_id']}").status_code == 403
        assert http.post("/v1/policies/dry-run", json={"rule": body}).status_code == 403
    assert server.http("agent").get("/v1/policies").status_code == 403
    assert server.http("nobody").get("/v1/policies").status_code == 401


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"effect": "forbid", "match": {}}, "effect"),
        ({"effect": "deny"}, "not valid"),
        ({"effect": "deny", "match": {"sendr": ["a"]}}, "match"),
        ({"effect": "deny", "match": {"sender": "a"}}, "match"),
        ({"effect": "deny", "match": {"sender": [""]}}, "match"),
        ({"effect": "deny", "match": {"sender": ["a*b"]}}, "end of a word"),
        ({"effect": "deny", "match": {"message_type": ["txt"]}}, "the types are"),
        ({"effect": "deny", "match": {"message_type": ["heartbeat"]}}, "always pass"),
        ({"effect": "hold", "match": {"sender": ["a"]}, "quorum": 0}, "quorum"),
        ({"effect": "hold", "match": {"sender": ["a"]}, "deadline_s": -1}, "deadline_s"),
        ({"effect": "hold", "match": {"sender": ["a"]}, "qurum": 2}, "not valid"),
        ({"effect": "deny", "match": {"sender": ["a"] * 101}}, "match"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused_with_a_sentence_s153(
    server: Server, body: Json, word: str
) -> None:
    answer = server.http("operator").post("/v1/policies", json=body)
    assert answer.status_code == 422, answer.text
    assert word in answer.json()["detail"]
    assert server.http("operator").get("/v1/policies").json()["items"] == []


def test_a_dry_run_tells_what_the_last_hour_would_have_lost_s152_s731(server: Server) -> None:
    """S152, S731."""
    alice, bob = named("alice"), named("bob")
    sent = [server.send(log(alice)).json() for _ in range(3)] + [
        server.send(log(bob)).json() for _ in range(2)
    ]
    server.send(envelope("heartbeat"))
    http = server.http("operator")
    head = newest(server)
    deny = {"effect": "deny", "match": {"sender": [alice]}, "rule_id": "pol_mine"}
    hold = {"effect": "hold", "match": {"tool": ["serp_search"], "sender": [alice, bob]}}
    found = http.post("/v1/policies/dry-run", json={"rules": [hold, deny], "minutes": 5}).json()
    assert (found["denied"], found["held"], found["capped"], found["minutes"]) == (3, 2, False, 5)
    assert found["by_rule"] == [
        {"rule_id": "rule-1", "effect": "hold", "messages": 2},
        {"rule_id": "pol_mine", "effect": "deny", "messages": 3},
    ]
    assert found["by_agent"] == [
        {"agent_id": alice, "sent": 3, "denied": 3, "held": 0},
        {"agent_id": bob, "sent": 2, "denied": 0, "held": 2},
    ]
    assert {item["message_id"] for item in found["examples"]} == {item["message_id"] for item in sent}
    first = found["examples"][0]
    assert (first["agent_id"], first["message_type"], first["tool"]) == (bob, "decision_log", "serp_search")
    assert (found["stoppable"], found["agents"]) == (5, 2), "no heartbeat, which no rule can stop"
    assert found["looked_at"] >= 6
    # Nothing was changed: no rule, no event.
    assert http.get("/v1/policies").json()["items"] == []
    assert newest(server) == head
    assert server.send(log(alice)).status_code == 202


def test_a_dry_run_counts_all_and_shows_twenty_s152(server: Server) -> None:
    agent, http = named(), server.http("operator")
    server.send_lines([json.dumps(log(agent)).encode() for _ in range(450)])
    body = {"rule": {"effect": "deny", "match": {"sender": [agent]}}}
    found = http.post("/v1/policies/dry-run", json=body).json()
    assert (found["denied"], len(found["examples"]), found["capped"]) == (450, 20, False)
    rule = body["rule"]
    wrong: list[Json] = [{}, {"rules": []}, {"rule": rule, "rules": [rule]}]
    wrong += [{"rule": rule, "minutes": minutes} for minutes in (0, 1_441, "soon")]
    for bad in wrong:
        assert http.post("/v1/policies/dry-run", json=bad).status_code == 422, bad
