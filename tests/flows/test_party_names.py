"""No way to name a party, a tool or a class leads past a rule, a cap or a kill-switch; through HTTP."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from observatory.protocol.identity import agent_entity_id
from tests.flows.fleet import agent_of, inbox, named
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.flows.test_kill_switch import engage
from tests.samples import decision_log

Json = dict[str, Any]
SHELLS = ("Shell", " shell ", "sh\u200bell", "ｓｈｅｌｌ", "shеll", "SΗELL", "s\u034fhell", "shéll", "𝓼𝓱𝓮𝓵𝓵")


@pytest.fixture
def server(either_tenant: Tenant) -> Tenant:
    return either_tenant


def send(server: Server, agent: str, tool: str | None = "search", session: str = "", **more: Any) -> Any:
    return server.send(
        decision_log(
            meta={"step_id": str(uuid.uuid4()), "session_id": session or str(uuid.uuid4())},
            identity={"agent_id": agent, **more.pop("identity", {})},
            action={"tool_call": tool},
            **more,
        )
    )


def rule(server: Server, effect: str, **match: list[str]) -> str:
    made = server.http("operator").post("/v1/policies", json={"effect": effect, "match": match})
    assert made.status_code == 201, made.text
    rule_id: str = made.json()["rule_id"]
    return rule_id


def verdict(answer: Any) -> str:
    if answer.status_code == 403:
        return "deny"
    assert answer.status_code == 202, answer.text
    return str(answer.json()["state"])


def meet(server: Tenant, first: str, entity_id: str) -> None:
    """The agent's first contact, under its id."""
    if first == "a poll of its inbox":
        inbox(server, entity_id)
    elif first == "a message":
        assert send(server, entity_id).status_code == 202


FIRST = pytest.mark.parametrize("first", ["a message", "a poll of its inbox", "nothing"])


@FIRST
def test_a_rule_on_a_name_binds_who_came_first_under_its_id_s941(server: Tenant, first: str) -> None:
    """S941: deny and hold, by whole name and by stem, before and after its name was seen."""
    denied, held, stem = named("denied"), named("held"), named("pay")
    ids = {name: agent_entity_id(server.tenant_id, name) for name in (denied, held, stem)}
    for entity_id in ids.values():
        meet(server, first, entity_id)
    rule(server, "deny", sender=[denied])
    rule(server, "hold", sender=[held])
    assert verdict(send(server, ids[denied])) == verdict(send(server, denied)) == "deny"
    assert verdict(send(server, ids[held])) == verdict(send(server, held)) == "held"
    assert (agent_of(server, ids[held])["agent_id"], agent_of(server, denied)["agent_id"]) == (held, denied)
    rule(server, "deny", sender=["pay-*"])
    nameless = send(server, ids[stem])
    assert verdict(nameless) == "deny" and "register its name" in nameless.json()["detail"]
    # Who says its name is free of what is not meant for it.
    other = named("scout")
    other_id = agent_entity_id(server.tenant_id, other)
    assert verdict(send(server, other_id)) == "deny"
    server.http("agent").post("/v1/agents", json={"agent_id": other})
    assert verdict(send(server, other_id)) == "forwarded"


@pytest.mark.parametrize("first", ["a message", "a poll of its inbox"])
def test_a_hard_cap_on_a_name_binds_who_came_first_under_its_id_s944(server: Tenant, first: str) -> None:
    """S944."""
    agent = named("spender")
    entity_id = agent_entity_id(server.tenant_id, agent)
    meet(server, first, entity_id)
    put = {"scope": "agent", "target": agent, "hard": 1.0}
    assert server.http("operator").put("/v1/budgets", json=put).status_code == 200
    assert send(server, entity_id, state_delta={"cost": 0.9}).status_code == 202
    assert send(server, entity_id, state_delta={"cost": 0.9}).status_code == 402
    assert send(server, agent.upper(), state_delta={"cost": 0.9}).status_code == 402


def test_a_key_bound_by_name_names_who_gives_only_its_id_s942(server: Tenant) -> None:
    """S942."""
    agent = named("pay")
    entity_id = agent_entity_id(server.tenant_id, agent)
    made = server.http("admin").post("/v1/keys", json={"role": "agent", "agent_id": agent}).json()
    rule(server, "deny", sender=["pay-*"])
    bearer = {"Authorization": f"Bearer {made['key']}"}
    body = decision_log(meta={"step_id": str(uuid.uuid4())}, identity={"agent_id": entity_id})
    answer = server.http("agent").post("/v1/messages", json=body, headers=bearer)
    assert verdict(answer) == "deny"
    assert agent_of(server, entity_id)["agent_id"] == agent


@pytest.mark.parametrize("place", ["type", "cluster", "session"])
def test_a_hold_by_recipient_holds_however_it_is_addressed_s943(server: Tenant, place: str) -> None:
    """S943: and once a person approved, it arrives; before, nobody gets it by coming later."""
    bob, asker = named("bob"), named("asker")
    kind, cluster, session = named("kind"), named("zone"), str(uuid.uuid4())
    address = {"type": f"type:{kind}", "cluster": f"cluster:{cluster}", "session": f"session:{session}"}[
        place
    ]
    rule(server, "hold", recipient=[bob])
    assert verdict(send(server, asker, identity={"recipient": bob})) == "held"
    server.http("agent").post("/v1/agents", json={"agent_id": bob, "agent_type": kind, "cluster_id": cluster})
    body = decision_log(
        meta={"step_id": str(uuid.uuid4()), "session_id": session, "cluster_id": cluster},
        identity={"agent_id": bob, "agent_type": kind},
    )
    assert server.send(body).status_code == 202
    sent = send(server, asker, identity={"recipient": address})
    assert verdict(sent) == "held" and inbox(server, bob) == []
    where = f"/v1/sessions/{sent.json()['session_id']}/approve"
    done = server.http("operator").post(
        where, json={"agent_id": asker, "message_id": sent.json()["message_id"]}
    )
    assert done.status_code == 200, done.text
    assert [item["message"]["identity"]["agent_id"] for item in inbox(server, bob)] == [asker]


def test_a_hold_by_type_or_cluster_holds_what_is_addressed_by_name_s943(server: Tenant) -> None:
    """S943: an agent is of the type and of every capability it has, however it is addressed."""
    bob, asker = named("bob"), named("asker")
    received = {"agent_id": bob, "agent_type": "clerk", "cluster_id": "vault", "capabilities": ["payments"]}
    server.http("agent").post("/v1/agents", json=received)
    assert verdict(send(server, asker, identity={"recipient": bob})) == "forwarded"
    for word in ("type:clerk", "type:payments", "cluster:Vault"):
        rule_id = rule(server, "hold", recipient=[word])
        for address in (bob, agent_entity_id(server.tenant_id, bob), "type:payments", "type:clerk"):
            assert verdict(send(server, asker, identity={"recipient": address})) == "held", (word, address)
        server.http("operator").delete(f"/v1/policies/{rule_id}")


def test_a_tool_is_the_same_in_every_spelling_s940(server: Tenant) -> None:
    """S940: and what was sent is kept as it was sent."""
    rule(server, "deny", tool=["shell"])
    rule(server, "hold", tool=["DEPLOY_*"])
    for tool in ("shell", *SHELLS):
        assert verdict(send(server, named(), tool)) == "deny", tool
    assert verdict(send(server, named(), "depl\u200boy_prod")) == "held"
    assert verdict(send(server, named(), "shells")) == "forwarded"
    items = server.http("operator").get("/v1/messages", params={"limit": 50}).json()["items"]
    kept = {item["message"]["action"]["tool_call"] for item in items}
    assert set(SHELLS) <= kept


def test_a_class_kill_switch_stops_every_spelling_of_its_class_s945(server: Tenant) -> None:
    """S945: of what an agent says of itself, and of what was registered."""
    loud, quiet = named(), named()
    assert server.http("agent").post("/v1/agents", json={"agent_id": loud, "agent_type": "WRITER"}).is_success
    kill_id = engage(server, "class", "writer")
    for kind in ("writer", "Writer", "wr\u200biter", "wrіter", "ｗｒｉｔｅｒ"):
        assert verdict(send(server, named(), identity={"agent_type": kind})) == "held", kind
    assert verdict(send(server, loud, identity={"agent_type": "reader"})) == "held"
    assert verdict(send(server, quiet, identity={"agent_type": "reader"})) == "forwarded"
    found = server.http("admin").get(f"/v1/kill-switch/{kill_id}").json()
    assert found["told"] == 1 and found["held"] == 6
    stops = server.http("agent").get(f"/v1/agents/{loud}/inbox").json()["items"]
    assert [item["kind"] for item in stops] == ["stop"]


@pytest.mark.parametrize("said", ["Type:{}", "TYPE: {}", "ty\u200bpe:{}", "type：{}", "cluster :{}"])
def test_a_rule_means_the_place_it_names_in_any_spelling_s1295(server: Tenant, said: str) -> None:
    """S1295: as a sender and as a recipient; it is not taken for a name that no agent has."""
    kind = named("kind")
    place, address = said.format(kind), f"{'cluster' if 'cluster' in said else 'type'}:{kind}"
    rule_id = rule(server, "deny", sender=[place])
    meta = {"step_id": str(uuid.uuid4()), "session_id": str(uuid.uuid4()), "cluster_id": kind}
    body = decision_log(meta=meta, identity={"agent_id": named(), "agent_type": kind})
    assert verdict(server.send(body)) == "deny"
    server.http("operator").delete(f"/v1/policies/{rule_id}")
    rule(server, "deny", recipient=[place])
    assert verdict(send(server, named(), identity={"recipient": address})) == "deny"


def test_a_rule_that_would_stop_no_sender_or_every_one_unseen_is_refused_s1295_s1296(server: Tenant) -> None:
    """S1295, S1296: no sender is a session; every type is every agent, however it is written."""
    operator = server.http("operator")
    for word in ("session:1", "Session: 1"):
        sent = operator.post("/v1/policies", json={"effect": "deny", "match": {"sender": [word]}})
        assert (sent.status_code, sent.json()["reason"]) == (422, "bad_rule") and "session" in sent.text
    wide = operator.post("/v1/policies", json={"effect": "deny", "match": {"sender": ["Type:*"]}})
    assert (wide.status_code, wide.json()["reason"]) == (409, "locks_everyone_out")


@pytest.mark.parametrize("word", ["＊", "pay＊", "type:cl∗", "de⁎"])
def test_a_star_of_another_kind_is_refused_instead_of_matching_nothing_s1404(
    server: Tenant, word: str
) -> None:
    """S1404: a keyboard or an editor may write one; such a deny would stop no agent."""
    for side in ("sender", "recipient", "tool", "cluster"):
        if side in ("tool", "cluster") and ":" in word:
            continue
        made = server.http("operator").post("/v1/policies", json={"effect": "deny", "match": {side: [word]}})
        assert (made.status_code, made.json()["reason"]) == (422, "bad_rule"), made.text
