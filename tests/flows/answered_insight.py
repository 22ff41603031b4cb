"""One of each answer of the doors of insight, good and refused: (operation, answer), as `answered` has them.

All of it is of a tenant of its own: settings, alarms and conflicts are nobody else's.
"""

from __future__ import annotations

import uuid

from tests.flows.answered import Answers, Json, Line, acceptable
from tests.flows.insight import settled
from tests.flows.server import Server
from tests.flows.test_risk_hallucination import CORRECTION, FALSE, Story
from tests.samples import MESSAGE_TYPES, full_decision_log

NONE = "none"


def drilled_down(server: Server) -> Answers:
    """A session with a held, a rewritten, a failed and a doubtful step, and with commands in it."""
    line, other = Line(server, "drilled"), Line(server, "drilled-too")
    http, path = line.http, f"/v1/sessions/{line.session}"
    for step in "ab":
        yield "send_messages", line.say(step)
    doubt = line.log("doubt", cognition={"confidence_score": 0.1}, action={"status": "failure"})
    number = server.send(doubt).json()["sequence_number"]
    yield "send_messages", line.say("gate", gate=True)
    line.do("pause")
    line.say("held")
    line.do("rewrite", original_message_id="held", new_content=line.log("held", action={"tool_call": "x"}))
    line.do("inject", prompt="Look again")
    assert other.say("a").status_code == 202
    for note in (
        {"text": "odd", "label": "look", "category": "made_up"},
        {"text": ""},
        {"text": "é" * 4_000},
    ):
        yield "annotate_step", http.post(f"{path}/steps/doubt/annotations", json=note)
    yield "annotate_step", http.post(f"{path}/steps/{NONE}/annotations", json={"text": "odd"})
    bad = {"text": "odd", "category": "nonsense"}
    yield "annotate_step", http.post(f"{path}/steps/doubt/annotations", json=bad)
    yield "session_annotations", http.get(f"{path}/annotations")
    yield "session_annotations", http.get(f"{path}/annotations?cursor=nonsense")
    listed = http.get("/v1/annotations", params={"category": "made_up", "label": "look"})
    yield "list_annotations", listed
    yield "list_annotations", http.get("/v1/annotations?limit=0")
    yield "annotation_categories", http.get("/v1/annotations/categories")
    for state in ("open", "done", "lost"):
        yield "list_reviews", http.get("/v1/reviews", params={"state": state})
    yield "review_step", http.post(f"/v1/reviews/{number}", json={"verdict": "wrong", "note": "no"})
    yield "review_step", http.post(f"/v1/reviews/{number}", json={"verdict": "perhaps"})
    yield "review_step", http.post(f"/v1/reviews/{NONE}", json={"verdict": "ok"})
    yield "list_reviews", http.get("/v1/reviews?state=done")
    for query in ("", "?after=0", "?after=1&since=2020-01-01T00:00:00Z", "?since=soon"):
        yield "session_dag", http.get(f"{path}/dag{query}")
    yield "session_dag", http.get(f"/v1/sessions/{NONE}/dag")
    for step in ("a", "doubt", "gate", "held", str(number), NONE):
        yield "session_step", http.get(f"{path}/steps/{step}")
    for right in (other.session, line.session, NONE, ""):
        yield "compare_sessions", http.get("/v1/compare", params={"left": line.session, "right": right})
    for gone in (listed.json()["items"][0]["annotation_id"], NONE):
        yield "remove_annotation", http.delete(f"/v1/annotations/{gone}")


def drilled_into_every_type(server: Server) -> Answers:
    """A step of each type of message, and one with every field in use."""
    http = server.http("viewer")
    for sent in (full_decision_log(), *(acceptable(server, kind) for kind in MESSAGE_TYPES)):
        answer = server.send(sent, "admin")
        yield "send_messages", answer
        made = answer.json()
        path = f"/v1/sessions/{made['session_id']}"
        yield "session_dag", http.get(f"{path}/dag")
        yield "session_step", http.get(f"{path}/steps/{made['message_id']}")
        yield "session_costs", http.get(f"{path}/costs")


def alarmed(server: Server) -> Answers:
    """What the detectors go by, and what they find."""
    http, line = server.http("operator"), Line(server, "looping")
    yield "get_detectors", http.get("/v1/settings/detectors")
    for wanted in ({"window": 6}, {"window": None}, {"window": 1, "n_min": 0}, {"windows": 5}):
        yield "put_detectors", http.put("/v1/settings/detectors", json=wanted)
    yield "get_routing_settings", http.get("/v1/settings/routing")
    for word in ("self", "mine"):
        yield "put_routing_settings", http.put("/v1/settings/routing", json={"capabilities": word})
    for verb, words in (("grant", ["reader", "cluster:eu"]), ("revoke", ["reader"]), ("grants", [])):
        yield "change_grants", http.post("/v1/agents/looping/grants", json={verb: words})
    yield "list_grants", http.get("/v1/grants")
    yield "get_decision_settings", http.get("/v1/settings/decisions")
    for settings in ({"auto_risk": "medium"}, {"auto_risk": None}, {"auto_risk": "any", "words": 1}):
        yield "put_decision_settings", http.put("/v1/settings/decisions", json=settings)
    for step in range(12):
        sent = line.log(str(step), cognition={"intent": "Open it"}, action={"status": "failure"})
        assert server.send(sent).status_code == 202
    found = http.get("/v1/entropy/alerts")
    assert found.json()["items"], "an alarm is open"
    yield "entropy_alerts", found
    yield "entropy_alerts", http.get("/v1/entropy/alerts?limit=1")
    yield "entropy_alerts", http.get("/v1/entropy/alerts?cursor=nonsense")
    for limit in (100, 0):
        yield "list_stuck_sessions", http.get("/v1/sessions/stuck", params={"limit": limit})
    yield "session_dag", http.get(f"/v1/sessions/{line.session}/dag")


def believed(server: Server) -> Answers:
    """Facts that spread, what is held in memory, and two who do not agree."""
    http, story = server.http("operator"), Story(server)
    story.play()
    settled(server)
    listed = http.get("/v1/facts", params={"text": FALSE, "session": story.sessions["desk"]})
    assert len(listed.json()["items"]) == 1, listed.text
    yield "list_facts", listed
    for query in ({"limit": 1}, {"agent": "planner"}, {"agent": NONE}, {"session": NONE}, {"text": " "}):
        yield "list_facts", http.get("/v1/facts", params=query)
    path = f"/v1/facts/{listed.json()['items'][0]['fact_id']}"
    for one in (path, f"/v1/facts/{NONE}"):
        yield "get_fact", http.get(one)
        yield "fact_infection", http.get(f"{one}/infection")
        for _ in range(2):
            yield "mark_fact_false", http.post(f"{one}/false", json={"note": "it is not"})
    yield "mark_fact_false", http.post(f"{path}/false", json={"note": 7})
    yield "get_fact", http.get(path)
    for query in ({"agent": "planner"}, {"session": story.sessions["desk"]}, {"agent": NONE}, {}):
        yield "read_memory", http.get("/v1/memory", params=query)
    moments: list[Json] = [{"at": "soon"}, {"seq": 1}]
    for moment in (*moments, {"step": "copy", "session": story.sessions["desk"]}):
        yield "read_memory", http.get("/v1/memory", params=moment | {"agent": "analyst"})
    yield "fact_infection", http.get(f"{path}/infection?limit=2")
    yield "fact_infection", http.get(f"{path}/infection?cursor=nonsense")
    for _ in range(2):
        yield "undo_fact_mark", http.delete(f"{path}/false")
    for body in ({"correction": CORRECTION}, {"correction": " "}, {"correction": "x", "agents": ["nobody"]}):
        yield "quarantine_fact", http.post(f"{path}/quarantine", json=body)
    plan = http.post(f"{path}/quarantine?dry_run=true", json={"correction": CORRECTION})
    assert plan.json()["status"] == "planned"
    yield "quarantine_fact", plan
    done = [http.post(f"{path}/quarantine", json={"correction": CORRECTION, "confirm": True}) for _ in "ab"]
    assert [one.status_code for one in done] == [202, 200]
    yield from (("quarantine_fact", one) for one in done)
    yield "quarantine_fact", http.post(f"/v1/facts/{NONE}/quarantine", json={"correction": CORRECTION})
    yield from _cascaded(server, story)
    yield from _disagreed(server)


def _cascaded(server: Server, story: Story) -> Answers:
    http = server.http("viewer")
    for door in ("blast", "causes"):
        for step in ("source", "planned", "paraphrase"):
            yield f"step_{door}", http.get(f"/v1/steps/{story.seqs[step]}/{door}")
        yield f"step_{door}", http.get(f"/v1/steps/copy/{door}", params={"session": story.sessions["desk"]})
        yield f"step_{door}", http.get(f"/v1/steps/{NONE}/{door}")
    yield "step_blast", http.get(f"/v1/steps/{story.seqs['source']}/blast?limit=1")
    yield "step_blast", http.get(f"/v1/steps/{story.seqs['source']}/blast?minutes=0")


def _disagreed(server: Server) -> Answers:
    http, story = server.http("operator"), Story(server)
    for agent, limit in (("one", 500), ("two", 800)):
        story.say(agent, agent, added_to_memory=[f"The refund limit is {limit} EUR"])
    for number, agent in enumerate(f"peer-{number}" for number in range(5)):
        for _ in range(30):  # tools enough to be compared
            line = Line(server, agent)
            sent = line.log(str(uuid.uuid4()), action={"tool_call": "read" if number else "delete"})
            sent["identity"]["agent_type"] = "peer"
            assert server.send(sent).status_code == 202
    settled(server)
    found = http.get("/v1/drift")
    assert found.json()["conflicts"] and found.json()["divergences"], found.text
    yield "drift", found
    for query in ({"session": story.sessions["desk"]}, {"session": NONE}, {"cluster": NONE}, {"hours": 0}):
        yield "drift", http.get("/v1/drift", params=query)
    scope = f"session:{story.sessions['desk']}"
    ruling = {"subject": "the refund limit", "scope": scope, "value": "500 EUR"}
    yield "reconcile_drift", http.post("/v1/drift/reconcile", json=ruling)
    yield "reconcile_drift", http.post("/v1/drift/reconcile", json=ruling | {"scope": "nowhere"})
    yield "reconcile_drift", http.post("/v1/drift/reconcile", json=ruling | {"scope": "cluster:none"})
    done = [http.post("/v1/drift/reconcile", json=ruling | {"confirm": True}) for _ in "ab"]
    assert [one.status_code for one in done] == [202, 200]
    yield from (("reconcile_drift", one) for one in done)
    yield "drift", http.get("/v1/drift")


def looked_for(server: Server) -> Answers:
    """Search in all its ways, and the questions people keep."""
    http = server.http("operator")
    settled(server)
    first = http.get("/v1/search", params={"q": "revenue", "limit": 1})
    assert first.json()["next_cursor"], first.text
    yield "search", first
    more = {"q": "revenue", "limit": 1, "cursor": first.json()["next_cursor"]}
    yield "search", http.get("/v1/search", params=more)
    for question in (
        "",
        "revenue -nvda",
        '"fiscal year" since:1h',
        "agent:planner confidence:<0.5",
        "agent:x",
    ):
        for mode in ("text", "semantic", "hybrid"):
            yield "search", http.get("/v1/search", params={"q": question, "mode": mode})
        yield "search", http.get("/v1/search", params={"q": question, "group": "agent"})
    for wrong in ({"mode": "psychic"}, {"cursor": "nonsense"}, {"q": "other", "cursor": more["cursor"]}):
        yield "search", http.get("/v1/search", params=wrong)
    view = {"name": "mine", "query": "status:failure", "shared": True}
    made = http.post("/v1/views", json=view)
    yield "save_view", made
    yield "save_view", http.post("/v1/views", json=view)
    yield "save_view", http.post("/v1/views", json=view | {"name": ""})
    yield "save_view", server.http("viewer").post("/v1/views", json=view)
    yield "list_views", server.http("viewer").get("/v1/views")
    yield "list_views", http.get("/v1/views?cursor=nonsense")
    path = f"/v1/views/{made.json()['view_id']}"
    yield "remove_view", server.http("viewer").delete(path)
    yield from (("remove_view", http.delete(path)) for _ in range(2))
    yield "insight_status", http.get("/v1/insight/status")


def spent(server: Server) -> Answers:
    """Costs and the map with something in them: caps that burn, figures that fell, alarms, forks, places."""
    http, line = server.http("operator"), Line(server, "spender")
    for step, total in enumerate((1.0, 3.0, 2.0, 9.0)):
        sent = line.log(str(step), state_delta={"cumulative_session_cost": total})
        sent["meta"] |= {"parent_step_id": "0" if step else None, "cluster_id": "eu-west-1-a"}
        assert server.send(sent).status_code == 202
    caps = {"tenant": None, "session": line.session, "agent": line.agent, "cluster": "eu-west-1-a"}
    for scope, target in caps.items():
        cap = {"scope": scope, "hard": 1e6, "soft": 1.0} | ({"target": target} if target else {})
        yield "put_budget", http.put("/v1/budgets", json=cap)
    settled(server)
    burn = http.get("/v1/costs/burn")
    assert any(one["hottest"] for one in burn.json()["budgets"]), burn.text
    yield "cost_burn", burn
    gaps = http.get("/v1/costs/gaps")
    assert gaps.json()["items"], gaps.text
    yield "cost_gaps", gaps
    yield "cost_gaps", http.get("/v1/costs/gaps?cursor=nonsense")
    for by in ("agent", "session", "cluster", "type", "tool", "model"):
        yield "list_costs", http.get("/v1/costs", params={"by": by, "limit": 1})
    for by in ("cluster", "agent", "session"):
        yield "cost_heatmap", http.get("/v1/costs/heatmap", params={"by": by})
    yield "cost_heatmap", http.get("/v1/costs/heatmap?by=luck")
    yield "session_costs", http.get(f"/v1/sessions/{line.session}/costs")
    yield "session_costs", http.get(f"/v1/sessions/{line.session}/costs?limit=0")
    place = {"clusters": {"eu-west-1-a": {"lat": 1.5, "lon": 2}}}
    yield "put_regions", http.put("/v1/fleet/regions", json=place)
    yield "put_regions", http.put("/v1/fleet/regions", json={"clusters": {"x": {"lat": 1}, "": {}}})
    yield "get_regions", http.get("/v1/fleet/regions")
    now = http.get("/v1/fleet").json()["as_of"]
    for level in ("cluster", "group", "agent", "planet"):
        for layout in ("logical", "geographic"):
            asked: Json = {"level": level, "layout": layout}
            for more in (asked, asked | {"limit": 1}, asked | {"at": now}):
                yield "fleet_map", http.get("/v1/fleet", params=more)


def windowed(server: Server) -> Answers:
    """What the windows ask: panels, the tray, the inbox, an agent where it works."""
    line = Line(server, "windowed")
    http = line.http
    assert line.say("a").status_code == 202
    assert line.say("gate", gate=True).status_code == 202
    assert server.send(acceptable(server, "status_alert")).status_code == 202
    assert server.send(b"{}").status_code == 422
    settled(server)
    for window in ("60s", "1h", "2h"):
        yield "fleet_throughput", http.get("/v1/fleet/throughput", params={"window": window})
    yield "fleet_latency", http.get("/v1/fleet/latency")
    yield "fleet_latency", http.get("/v1/fleet/latency?minutes=0")
    yield "fleet_health", http.get("/v1/fleet/health")
    for query in ("", "?limit=1", "?kind=violation", "?kind=nonsense", "?cursor=nonsense"):
        yield "list_alerts", http.get(f"/v1/alerts{query}")
    for query in ("", "?kind=gate", "?kind=nonsense"):
        yield "list_waiting", http.get(f"/v1/waiting{query}")
    for query in ("?q=windowed", "?status=waiting", "?status=nonsense"):
        yield "list_sessions", http.get(f"/v1/sessions{query}")
    for agent in ("windowed", NONE):
        path = f"/v1/agents/{agent}"
        yield "agent_sessions", http.get(f"{path}/sessions")
        yield "pause_agent", http.post(f"{path}/pause", json={"note": "look"})
        yield "unpause_agent", http.post(f"{path}/unpause", json={})
        yield "unpause_agent", http.post(f"{path}/unpause", json={})
