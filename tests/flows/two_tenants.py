"""Two tenants in one gateway, each with data of every kind: for tests that neither sees any of the other."""

from __future__ import annotations

import uuid
from typing import Any

import httpx2

from observatory.ledger import witness
from tests.calling import signed
from tests.contract.peering import PeerLog
from tests.flows.server import Server
from tests.samples import decision_log, envelope
from tests.waiting import until

Json = dict[str, Any]
# What a command must say to be heard at all.
ON_AGENT: Json = {"agent_id": "ours"}
RULE: Json = {"effect": "deny", "match": {"sender": ["nobody"]}}
JOB: Json = {"name": "ours", "cron": "0 0 29 2 *", "intent": "x", "target": {"kind": "agent", "name": "x"}}
ALERT: Json = {"name": "ours", "condition": "breaker", "target": "ours"}
TRIGGER: Json = {"name": "ours", "condition": "breaker", "direction": "up", "target": "ours"}
BODIES: dict[str, Json] = {
    "ack_inbox": {"ids": ["dlv_1-1"]},
    "change_peer_key": {"vkey": PeerLog().vkey},
    "change_hook": {"state": "disabled"},
    "change_exporter": {"name": "ours"},
    "rewind_exporter": {"to": 1},
    "rotate_hook": {},
    "change_webhook": {"name": "ours", "url": "https://nobody.invalid/"},
    "rotate_webhook_secret": {},
    "replay_webhook": {"after": 1},
    "change_job": JOB,
    "change_alert_rule": ALERT,
    "mute_alert_rule": {"minutes": 1},
    "bind_agent_certificate": {"kind": "dns", "value": "agent.example"},
    "change_scaling_trigger": TRIGGER,
    "mute_scaling_trigger": {"minutes": 1},
    "leave_session": ON_AGENT,
    "evict_agent": {},
    "pause_agent": {},
    "unpause_agent": {},
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
    "annotate_step": {"text": "ours"},
    "review_step": {"verdict": "ok"},
    "mark_fact_false": {},
    "quarantine_fact": {"correction": "ours", "confirm": True},
    "shred_session": {"reason": "ours", "confirm": "none"},
    "shred_thoughts": {"reason": "ours", "confirm": "none"},
    # What is recorded under an id that is nowhere opens a session of ours; a name in it must be somewhere.
    "record_session_thought": {
        "task_id": "ours",
        "type": "plan",
        "content": {"trajectory": "ours"},
        "references": ["rec_none"],
    },
}


class TwoTenants:
    """Two tenants in one gateway: ours (home) and theirs, each with an agent, a session, a user, a key."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.home = server.http("admin")
        made = self.home.post("/v1/tenants", json={"display_name": "Theirs"})
        assert made.status_code == 201, made.text
        self.tenant_id: str = made.json()["tenant_id"]
        self.their_admin: str = made.json()["key"]
        self.word = f"theirs{uuid.uuid4().hex}"
        self.sent = self.log(str(uuid.uuid4()), self.word, 500)
        answer = self.theirs("POST", "/v1/messages", json=self.sent)
        assert answer.status_code == 202, answer.text
        self.answer: Json = answer.json()
        ours = self.home.post("/v1/messages", json=decision_log(identity={"agent_id": "homebody"}))
        self.mine = {"session_id": ours.json()["session_id"], "step": ours.json()["step_id"]}
        self.mine |= {"tenant_id": "tnt_default", "level": "0", "tile": "000.p/1"}
        user = self.theirs("POST", "/v1/users", json={"name": self.word, "role": "viewer"}).json()
        key = self.theirs("POST", "/v1/keys", json={"role": "agent", "label": self.word}).json()
        (login,) = self.theirs("GET", "/v1/logins", params={"user_id": user["user_id"]}).json()["items"]
        versions = {"agent_type": self.word, "versions": [{"version": "1.0.0", "status": "retired"}]}
        assert self.theirs("PUT", "/v1/versions", json=versions).status_code == 200
        switch = {"scope": "class", "target": self.word, "reason": self.word}
        armed = self.theirs("POST", "/v1/kill-switch", json=switch).json()
        received = self.theirs("PUT", f"/v1/instructions/{self.word}", json={"text": self.word})
        assert received.status_code == 201
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
            "login_id": [login["login_id"]],
            "kill_id": [armed["kill_id"]],
            "rule_id": [policy["rule_id"], *self._watched()],
            "budget_id": [budget["budget_id"]],
            "decision_id": [self.asked["payload"]["decision_id"]],
            "intervention_id": [rewritten["intervention_id"], injected["intervention_id"]],
            **self._insight(),
            **self._thoughts(),
            "step": [self.answer["step_id"], self.answer["message_id"]],
            "audit_event_id": [self.theirs("GET", "/v1/audit/tenant").json()["items"][0]["audit_event_id"]],
            "tenant_id": [self.tenant_id],
            **self._federation(),
            **self._hooks(),
            **self._webhooks(),
            **self._export(),
            **self._schedule(),
            "level": ["6"],  # of a tile that no log has; theirs are tried by their tenant
            "tile": ["x999/999.p/1"],
            "agent_type": [],  # a name that every tenant may use; see test_instructions
            "capability": [],  # the same
        }
        self.named = {name: idents[0] for name, idents in self.ids.items() if idents}
        self.named |= {"name": self.word, "entity_id": agent["entity_id"], "step_id": meta["step_id"]}
        self.settle()

    def log(self, session_id: str, agent_id: str, limit: int, **more: Any) -> Json:
        """A doubtful step of theirs that states a limit; its word is all over it."""
        return decision_log(
            identity={"agent_id": agent_id, "agent_type": self.word, "model": self.word},
            meta={"step_id": str(uuid.uuid4()), "session_id": session_id, "cluster_id": self.word},
            cognition={"intent": f"Set the {self.word} limit", "confidence_score": 0.1},
            action={"tool_call": self.word, "status": "failure"},
            state_delta={"added_to_memory": [f"The {self.word} limit is {limit} EUR"]} | more,
        )

    def _insight(self) -> dict[str, list[str]]:
        """Loops, conflicts, doubts, gaps, and what people say about them; ids of what has one."""
        self.loop = str(uuid.uuid4())
        for cost in (5, 4, 3, 2, 1, 0.5):
            sent = self.log(self.loop, f"{self.word}-loop", 800, cumulative_session_cost=cost)
            assert self.theirs("POST", "/v1/messages", json=sent).status_code == 202
        number, word = self.answer["sequence_number"], self.word
        step = f"/v1/sessions/{self.answer['session_id']}/steps/{self.answer['step_id']}"
        self.fact_id = f"fct_{number}-0"
        self.settle()
        alarms = until(lambda: self.theirs("GET", "/v1/entropy/alerts").json()["items"][1:])
        assert {self.loop} == {one["session_id"] for one in alarms}, "both detectors found it"
        made = [
            self.theirs(method, path, json=body)
            for method, path, body in (
                ("POST", f"{step}/annotations", {"text": word, "label": word}),
                ("POST", "/v1/views", {"name": word, "query": word, "shared": True}),
                ("POST", f"/v1/reviews/{number}", {"verdict": "wrong", "note": word}),
                ("POST", f"/v1/facts/{self.fact_id}/false", {"note": word}),
                ("PUT", "/v1/fleet/regions", {"clusters": {word: {"lat": 1, "lon": 2}}}),
                ("PUT", "/v1/settings/detectors", {"window": 7}),
            )
        ]
        assert {one.status_code for one in made} <= {200, 201}, [one.text for one in made]
        ids = {"annotation_id": [made[0].json()["annotation_id"]], "view_id": [made[1].json()["view_id"]]}
        # Numbers of each tenant's own record; see the tests of numbers.
        return ids | {"fact_id": [], "sequence_number": []}

    def _federation(self) -> dict[str, list[str]]:
        log = PeerLog(f"{self.word}.example/log")
        made = self.theirs("POST", "/v1/peers", json={"name": self.word, "vkey": log.vkey})
        assert made.status_code == 201, made.text
        path, body = f"/v1/witness/{self.tenant_id}/add-checkpoint", witness.write(log.offer(0, 5))
        assert self.theirs("POST", path, content=body).status_code == 200
        return {"peer_id": [made.json()["peer_id"]]}

    def _export(self) -> dict[str, list[str]]:
        """Paused: what it would send to is nobody."""
        body = {"name": self.word, "url": "https://192.0.2.1", "headers": {"x-key": self.word}}
        made = self.theirs("POST", "/v1/exporters", json=body).json()
        assert self.theirs("POST", f"/v1/exporters/{made['exporter_id']}/pause").status_code == 200
        return {"exporter_id": [made["exporter_id"]]}

    def _watched(self) -> list[str]:
        """Rules of theirs, for nobody: they name their own agent."""
        whose = {"name": self.word, "target": self.word}
        rule = self.theirs("POST", "/v1/alert-rules", json=ALERT | whose).json()
        trigger = self.theirs("POST", "/v1/scaling-triggers", json=TRIGGER | whose).json()
        return [rule["rule_id"], trigger["rule_id"]]

    def _webhooks(self) -> dict[str, list[str]]:
        """Theirs and ours, and a test of each that reached nobody."""
        found = []
        for ask, name in ((self.theirs, self.word), (self.home.request, f"ours{uuid.uuid4().hex}")):
            body = {"name": name, "url": f"https://{name}.invalid/"}
            endpoint_id = ask("POST", "/v1/webhooks/out", json=body).json()["endpoint_id"]
            tested = ask("POST", f"/v1/webhooks/out/{endpoint_id}/test").json()
            found.append({"endpoint_id": endpoint_id, "delivery_id": tested["delivery_id"]})
        self.mine |= found[1]
        return {name: [known] for name, known in found[0].items()}

    def _hooks(self) -> dict[str, list[str]]:
        """Theirs, and a call of somebody outside who holds its secret."""
        wanted = {"intent": self.word, "target": {"agent": self.word}}
        body = {"name": self.word, "scheme": "github", "mapping": wanted}
        hook = self.theirs("POST", "/v1/webhooks/in", json=body).json()
        headers = signed("github", hook["secret"], b"{}", 0, self.word)
        path = f"/v1/webhooks/{hook['hook_id']}"
        called = self.server.http("nobody").post(path, content=b"{}", headers=headers)
        assert called.status_code == 202, called.text
        return {"hook_id": [hook["hook_id"]], "call_id": [called.json()["call_id"]]}

    def _schedule(self) -> dict[str, list[str]]:
        """Theirs, and what became of it under a rule that the clock may not speak."""
        rule = {"effect": "deny", "match": {"sender": ["sys_scheduler"]}}
        rule_id = self.theirs("POST", "/v1/policies", json=rule).json()["rule_id"]
        made = self.theirs("POST", "/v1/jobs", json=JOB | {"name": self.word, "max_tries": 1}).json()
        assert self.theirs("POST", f"/v1/jobs/{made['job_id']}/run").status_code == 202
        letters = until(lambda: self.theirs("GET", "/v1/dead-letters").json()["items"])
        self.theirs("DELETE", f"/v1/policies/{rule_id}")
        return {"job_id": [made["job_id"]], "letter_id": [letters[0]["letter_id"]]}

    def _thoughts(self) -> dict[str, list[str]]:
        """Theirs are sealed under the name of their session; ours is a record of our own."""
        session_id, task = self.answer["session_id"], {"task_id": self.word}
        path = f"/v1/sessions/{session_id}"
        begun = {"intent": self.word, "session_id": session_id} | task
        plan = task | {"type": "plan", "content": {"trajectory": self.word}}
        closing = {"type": "reflection", "content": dict.fromkeys(("happened", "proved", "uncertain"), "x")}
        made = [
            self.theirs("POST", where, json=body)
            for where, body in (
                ("/v1/thought-sessions", begun),
                (f"{path}/thoughts", plan),
                (f"{path}/thoughts/verify", None),
                (f"{path}/thoughts", task | closing),
                (f"{path}/seal", None),
            )
        ]
        assert {one.status_code for one in made} == {200, 201}, [one.text for one in made]
        ours = {"task_id": "ours", "type": "plan", "content": {"trajectory": "ours"}}
        mine = self.home.post(f"/v1/sessions/{self.mine['session_id']}/thoughts", json=ours)
        self.mine["record_id"] = mine.json()["record_id"]
        return {"record_id": [made[1].json()["record_id"]]}

    def settle(self) -> None:
        """Until what both tenants were sent is folded."""
        until(lambda: self.theirs("GET", "/v1/insight/status").json()["lag_messages"] == 0)
        until(lambda: self.home.get("/v1/insight/status").json()["lag_messages"] == 0)

    def state(self) -> list[Any]:
        """What commands of others could have changed: the record, the inbox, what is held, asked, noted."""
        paths = [
            *("audit/tenant?limit=1", f"agents/{self.word}/inbox", "holds", "decisions", "policies", "facts"),
            *("annotations", "views", "reviews?state=done", "fleet/regions", "settings/detectors"),
            f"sessions/{self.answer['session_id']}/thoughts",
        ]
        return [self.theirs("GET", f"/v1/{path}").json() for path in paths]

    def do(self, command: str, **body: Any) -> Json:
        answer = self.theirs("POST", f"/v1/sessions/{self.answer['session_id']}/{command}", json=body)
        assert answer.status_code in (200, 202), answer.text
        found: Json = answer.json()
        return found

    def theirs(self, method: str, path: str, **more: Any) -> httpx2.Response:
        headers = {"authorization": f"Bearer {self.their_admin}"}
        return self.server.http("nobody").request(method, path, headers=headers, **more)


def operations(server: Server) -> list[tuple[str, str, Json]]:
    paths = server.http("nobody").get("/schemas/openapi.json").json()["paths"]
    return [
        (method.upper(), path, operation)
        for path, methods in paths.items()
        for method, operation in methods.items()
    ]
