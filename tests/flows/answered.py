"""One of each answer of the control doors, good and refused: (operation, answer) for whoever compares them.

What is made on the shared gateway is for agents of one name only, and rules are taken back. And one
envelope of each type that is taken as it is.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from tests.flows.server import Server
from tests.samples import decision_log, envelope

Json = dict[str, Any]
Answers = Iterator[tuple[str, Any]]


def acceptable(server: Server, kind: str, **overrides: Any) -> Json:
    """An envelope of this type that the gateway takes: an answer needs a pending decision and its person."""
    if kind != "decision_response":
        return envelope(kind, **overrides)
    asked = envelope("decision_request", payload={"deadline": None, "auto_action": None})
    assert server.send(asked).status_code == 202
    me = server.http("admin").get("/v1/whoami").json()["user_id"]
    sender = {"entity_id": me, "entity_type": "user", "hub_address": None}
    answer = {"decision_id": asked["payload"]["decision_id"]}
    recipient = {"entity_id": asked["sender"]["entity_id"], "entity_type": "agent"}
    return envelope(kind, sender=sender, recipient=recipient, payload=answer, **overrides)


def stopped_and_instructed(http: Any, name: str, user_id: str) -> Answers:
    """Roles, kill-switches and instructions."""
    yield "change_role", http.put(f"/v1/users/{user_id}", json={"role": "auditor"})
    yield "change_role", http.put("/v1/users/none", json={"role": "auditor"})
    armed = http.post("/v1/kill-switch", json={"scope": "class", "target": name, "reason": "fits"})
    path, token = f"/v1/kill-switch/{armed.json()['kill_id']}", armed.json()["token"]
    yield "arm_kill_switch", armed
    yield "arm_kill_switch", http.post("/v1/kill-switch", json={"scope": "class", "reason": "fits"})
    yield "confirm_kill_switch", http.post(f"{path}/confirm", json={"token": "wrong"})
    first = http.post(f"{path}/confirm", json={"token": token})
    yield "confirm_kill_switch", first
    yield "confirm_kill_switch", http.post(f"{path}/confirm", json={"token": first.json()["token"]})
    yield "confirm_kill_switch", http.post(f"{path}/confirm", json={"token": token})
    yield "release_kill_switch", http.post(f"{path}/release", json={"reason": "fits"})
    yield "release_kill_switch", http.post(f"{path}/release", json={"reason": "fits"})
    yield "list_kill_switches", http.get("/v1/kill-switch")
    yield "get_kill_switch", http.get(path)
    yield "get_kill_switch", http.get("/v1/kill-switch/none")
    yield "audit_acts", http.get("/v1/audit/acts", params={"about": "kill_switch"})
    for text in ("be kind", "be terse", "é" * (40 << 10)):
        yield "put_instructions", http.put(f"/v1/instructions/{name}", json={"text": text})
    for version in (1, 9):
        body = {"version": version}
        yield "roll_back_instructions", http.post(f"/v1/instructions/{name}/rollback", json=body)
    yield "list_instructions", http.get("/v1/instructions")
    yield "get_instructions", http.get(f"/v1/instructions/{name}")
    yield "get_instructions", http.get("/v1/instructions/none")


def registered_and_routed(http: Any, name: str, session_id: str) -> Answers:
    """Registry and router."""
    for _ in ("new", "known"):
        yield (
            "register_agent",
            http.post("/v1/agents", json={"agent_id": f"{name}-2", "capabilities": [name]}),
        )
    yield "register_agent", http.post("/v1/agents", json={"agent_id": name, "owner": "usr_nobody"})
    yield "heartbeat", http.post("/v1/heartbeat", json={"agent_id": name, "status": "idle"})
    yield "heartbeat", http.post("/v1/heartbeat", json={"agent_id": name, "timestamp": "soon"})
    yield "list_agents", http.get("/v1/agents", params={"capability": name})
    yield "list_agents", http.get("/v1/agents", params={"liveness": "undead"})
    yield "put_route", http.put("/v1/routes", json={"capability": name, "weights": {"cluster:a": 1}})
    yield "put_route", http.put("/v1/routes", json={"capability": name, "weights": {}})
    yield "list_routes", http.get("/v1/routes")
    yield "set_breaker", http.post(f"/v1/breakers/{name}", json={"state": "open"})
    yield "set_breaker", http.post(f"/v1/breakers/{name}", json={"state": "closed"})
    yield "set_breaker", http.post(f"/v1/breakers/{name}", json={"state": "ajar"})
    yield "list_breakers", http.get("/v1/breakers")
    yield "list_capabilities", http.get("/v1/capabilities")
    yield "list_edges", http.get("/v1/edges")
    yield "leave_session", http.post(f"/v1/sessions/{session_id}/leave", json={"agent_id": name})
    yield "leave_session", http.post("/v1/sessions/none/leave", json={"agent_id": name})
    yield "evict_agent", http.post(f"/v1/agents/{name}-2/evict", json={"note": "gone mad"})
    yield "evict_agent", http.post(f"/v1/agents/{name}-2/evict", json={})


def listened(http: Any, name: str) -> Answers:
    """An agent's inbox, with a message of another and instructions in it."""
    yield "read_inbox", http.get(f"/v1/agents/{name}/inbox")
    yield "read_inbox", http.get(f"/v1/agents/{name}/inbox?wait=61")
    yield "ack_inbox", http.post(f"/v1/agents/{name}/inbox/ack", json={"ids": ["dlv_1-1"]})
    yield "ack_inbox", http.post("/v1/agents/nobody/inbox/ack", json={"ids": ["dlv_1-1"]})
    yield "ack_inbox", http.post(f"/v1/agents/{name}/inbox/ack", json={"ids": []})


def ruled(server: Server, name: str) -> Answers:
    """Policies and budgets, and what a message hears that one of them stops."""
    http = server.http("admin")
    denied, spender = f"{name}-denied", f"{name}-spender"
    rule = {"effect": "deny", "match": {"sender": [denied]}}
    made = http.post("/v1/policies", json=rule)
    path = f"/v1/policies/{made.json()['rule_id']}"
    yield "create_policy", made
    yield "create_policy", http.post("/v1/policies", json={"effect": "deny", "match": {}})
    yield "create_policy", http.post("/v1/policies", json={"effect": "deny"})
    yield "send_messages", server.send(decision_log(identity={"agent_id": denied}))
    listed = http.get("/v1/policies")
    yield "list_policies", listed
    order = [item["rule_id"] for item in listed.json()["items"]]
    yield "order_policies", http.put("/v1/policies/order", json={"order": order})
    yield "order_policies", http.put("/v1/policies/order", json={"order": []})
    yield "replace_policy", http.put(path, json=rule)
    yield "replace_policy", http.put("/v1/policies/none", json=rule)
    yield "replace_policy", http.put(path, json=rule | {"was": rule | {"note": "another"}})  # 409
    yield "try_policies", http.post("/v1/policies/dry-run", json={"rule": {"effect": "deny", "match": {}}})
    yield "try_policies", http.post("/v1/policies/dry-run", json={})
    yield "remove_policy", http.delete(path)
    yield "remove_policy", http.delete(path)
    budget = http.put("/v1/budgets", json={"scope": "agent", "target": spender, "hard": 0.01})
    cap = f"/v1/budgets/{budget.json()['budget_id']}"
    yield "put_budget", budget
    yield "put_budget", http.put("/v1/budgets", json={"scope": "agent", "hard": -1})
    each = http.put("/v1/budgets", json={"scope": "session", "target": "*", "hard": 1_000_000})
    yield "put_budget", each
    yield "send_messages", server.send(decision_log(identity={"agent_id": spender}))
    yield "list_budgets", http.get("/v1/budgets")
    for gone in (cap, cap, f"/v1/budgets/{each.json()['budget_id']}"):
        yield "remove_budget", http.delete(gone)


class Line:
    """A session of one agent, whose steps wait at gates unless told otherwise."""

    def __init__(self, server: Server, agent: str) -> None:
        self.server, self.agent, self.session = server, agent, str(uuid.uuid4())
        self.http = server.http("operator")

    def log(self, step: str, gate: bool = False, **more: Any) -> Json:
        meta = {"trace_id": self.session, "session_id": self.session, "step_id": step, "parent_step_id": None}
        identity = {"agent_id": self.agent}
        return decision_log(meta=meta, identity=identity, control={"hitl_required": gate}, **more)

    def say(self, step: str, gate: bool = False) -> Any:
        return self.server.send(self.log(step, gate))

    def do(self, command: str, role: str = "operator", **body: Any) -> Any:
        path = f"/v1/sessions/{self.session}/{command}"
        return self.server.http(role).post(path, json={"agent_id": self.agent} | body)


def intervened(server: Server, name: str) -> Answers:
    """Pause, rewrite, inject, cancel, undo."""
    line = Line(server, f"{name}-held")
    http = line.http
    yield "send_messages", line.say("0")
    paused = line.do("pause")
    assert [paused.status_code, line.do("pause").status_code] == [202, 200]
    yield from (("pause", one) for one in (paused, line.do("pause")))
    yield "pause", http.post("/v1/sessions/none/pause", json={"agent_id": name})
    yield "send_messages", line.say("1")
    yield "list_holds", http.get("/v1/holds")
    yield "list_holds", http.get("/v1/holds", params={"session_id": line.session, "gates_only": True})
    yield "list_holds", http.get("/v1/holds?cursor=nonsense")
    new = line.log("1", action={"tool_call": "other"})
    rewritten = line.do("rewrite", original_message_id="1", new_content=new)
    yield "rewrite", rewritten
    yield "rewrite", line.do("rewrite", original_message_id="1", new_content={})
    yield "rewrite", line.do("rewrite", original_message_id="1")
    yield "rewrite", line.do("rewrite", original_message_id="none", new_content=new)
    yield "rewrite", line.do("rewrite", original_message_id="0", new_content=line.log("0"))
    path = f"/v1/interventions/{rewritten.json()['intervention_id']}"
    yield "get_rewrite", http.get(f"{path}/content")
    yield "get_rewrite", http.get("/v1/interventions/none/content")
    for gone in (path, path, "/v1/interventions/none"):
        yield "undo", http.post(f"{gone}/undo")
    yield "inject", line.do("inject", prompt="Look again")
    yield "inject", line.do("inject")
    yield from (("unpause", line.do("unpause")) for _ in range(2))
    yield "unpause", http.post("/v1/sessions/none/unpause", json={"agent_id": name})
    yield "cancel", line.do("cancel")
    yield "cancel", http.post("/v1/sessions/none/cancel", json={"agent_id": name})
    yield "list_interventions", http.get(f"/v1/sessions/{line.session}/interventions")
    yield "list_interventions", http.get("/v1/sessions/none/interventions")


def answered_at_gates(server: Server, name: str) -> Answers:
    """Approve, edit, reject; where one person is enough and where two are needed."""
    line, admin = Line(server, f"{name}-gated"), server.http("admin")
    for step in "abc":
        yield "send_messages", line.say(step, gate=True)
    yield "approve", line.do("approve")
    yield "approve", line.do("approve", message_id="a", digest="0" * 64)
    yield "approve", line.do("approve", message_id="a", digest="short")
    yield from (("approve", line.do("approve", message_id="a")) for _ in range(2))
    yield "approve", line.do("approve", message_id="none")
    yield from (("reject", line.do("reject", message_id="b", note="no")) for _ in range(2))
    yield "edit", line.do("edit", message_id="c", new_content={})
    yield from (("edit", line.do("edit", message_id="c", new_content=line.log("c"))) for _ in range(2))
    rule = {"effect": "hold", "match": {"sender": [line.agent]}, "quorum": 2}
    two = admin.post("/v1/policies", json=rule).json()
    for step in "de":
        yield "send_messages", line.say(step)
    first = line.do("approve", message_id="d"), line.do("edit", message_id="e", new_content=line.log("e"))
    assert [one.status_code for one in first] == [202, 202]
    yield from zip(("approve", "edit"), first, strict=True)
    yield from (("approve", line.do("approve", role="admin", message_id=step)) for step in "de")
    yield "remove_policy", admin.delete(f"/v1/policies/{two['rule_id']}")
    yield "list_holds", admin.get("/v1/holds", params={"session_id": line.session})


def decided(server: Server) -> Answers:
    """Decisions: asked, shown, answered, cancelled."""
    http = server.http("operator")
    person = {"entity_id": http.get("/v1/whoami").json()["user_id"], "entity_type": "user"}
    plain = {"deadline": None, "auto_action": None}
    asked = [envelope("decision_request", recipient=person, payload=plain) for _ in range(2)]
    for one in asked:
        yield "send_messages", server.send(one)
    yield "send_messages", server.send(envelope("decision_request", payload=asked[0]["payload"]))
    yield "pending_decisions", http.get("/v1/decisions/pending", params={"user_id": person["entity_id"]})
    yield "pending_decisions", http.get("/v1/decisions/pending?cursor=nonsense")
    yield "list_decisions", http.get("/v1/decisions")
    yield "list_decisions", http.get("/v1/decisions?state=lost")
    first, second = (f"/v1/decisions/{one['payload']['decision_id']}" for one in asked)
    yield from (("get_decision", http.get(path)) for path in (first, "/v1/decisions/none"))
    for path in (first, "/v1/decisions/none"):
        for option in ("unheard of", "approve", "approve"):
            yield "respond_decision", http.post(f"{path}/respond", json={"selected_option_id": option})
    yield "respond_decision", http.post(f"{first}/respond", json={})
    for path in (second, second, "/v1/decisions/none"):
        yield "cancel_decision", http.post(f"{path}/cancel")
    yield "send_messages", server.send(envelope("decision_response", sender=person), "operator")
    yield "send_messages", server.send(envelope("decision_response"), "operator")


def mapped_and_priced(http: Any, name: str, session_id: str) -> Answers:
    """The map, where clusters stand, and costs."""
    for query in ("", "?layout=geographic&level=cluster", "?at=2020-01-01T00:00:00Z", "?at=soon"):
        yield "fleet_map", http.get(f"/v1/fleet{query}")
    place = {"clusters": {f"{name}-cluster": {"region": "eu-west-1"}, f"{name}-own": {"lat": 1.5, "lon": 2}}}
    yield "put_regions", http.put("/v1/fleet/regions", json=place)
    yield "get_regions", http.get("/v1/fleet/regions")
    yield "put_regions", http.put("/v1/fleet/regions", json={"clusters": {"x": {"lat": 1}}})
    yield "put_regions", http.put("/v1/fleet/regions", json={"clusters": {}})
    for by in ("agent", "session", "cluster", "type", "tool", "model"):
        yield "list_costs", http.get("/v1/costs", params={"by": by})
    yield "list_costs", http.get("/v1/costs?since=never")
    yield "cost_heatmap", http.get("/v1/costs/heatmap?by=agent&bucket=hour")
    yield "cost_heatmap", http.get("/v1/costs/heatmap?since=2020-01-01T00:00:00Z")
    cap = http.put("/v1/budgets", json={"scope": "tenant", "hard": 1e9})
    yield "cost_burn", http.get("/v1/costs/burn")
    yield "remove_budget", http.delete(f"/v1/budgets/{cap.json()['budget_id']}")
    yield "cost_gaps", http.get("/v1/costs/gaps")
    yield "cost_gaps", http.get("/v1/costs/gaps", params={"agent": "none"})
    yield "session_costs", http.get(f"/v1/sessions/{session_id}/costs")
    yield "session_costs", http.get("/v1/sessions/none/costs")
