"""The risk of a cascade: a failing tool's output goes over agents and sessions; an operator sees how far,
pauses the fewest agents that contain it, and is told where it came from.

Played through the public doors on both databases beside an unrelated branch. False members are counted:
there are none.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.flows.insight import settled
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.samples import decision_log

Json = dict[str, Any]


class Play:
    """Agents in three sessions; a step is named by whoever says it and when."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.sessions = {name: f"{name}-{uuid.uuid4().hex[:8]}" for name in ("ops", "sales", "other")}
        self.seqs: dict[str, int] = {}
        self.people = server.http("operator")

    def log(self, name: str, agent: str, session: str = "ops", **more: Any) -> Json:
        parent = more.get("parent")
        return decision_log(
            meta={
                "trace_id": str(uuid.uuid4()),
                "session_id": self.sessions[session],
                "step_id": name,
                "parent_step_id": parent,
                "parent_step_ids": more.get("parents"),
            },
            identity={"agent_id": agent, "agent_type": "worker", "recipient": more.get("to")},
            cognition={"intent": f"work on {name}", "reasoning_chain": None, "confidence_score": 0.9},
            action={
                "tool_call": more.get("tool"),
                "status": more.get("status", "success"),
                "tool_input": None,
                "tool_output_summary": None,
            },
            state_delta={
                "added_to_memory": more.get("added"),
                "read_from_memory": more.get("read"),
                "cumulative_session_cost": None,
                "tokens_consumed": 1,
                "cost": 0.01,
            },
        )

    def say(self, name: str, agent: str, session: str = "ops", **more: Any) -> Json:
        sent = self.server.send(self.log(name, agent, session, **more))
        assert sent.status_code == 202, sent.text
        self.seqs[name] = sent.json()["sequence_number"]
        return dict(sent.json())

    def name(self, step: str, session: str = "ops") -> str:
        return f"{self.sessions[session]}/{step}"

    def play(self) -> None:
        self.say("plan", "planner")
        # How work usually goes: the desk hands on to the clerk, the relay to the archive.
        self.say("usual", "desk", "sales")
        self.say("usual-2", "clerk", "sales", parent="usual")
        self.say("usual-3", "desk", "sales", parent="usual-2")
        self.say("quiet", "watcher", "other")
        self.say("failing", "fetcher", parent="plan", tool="query_prices", status="failure")
        self.say(
            "pricing",
            "pricer",
            parent="failing",
            tool="set_price",
            added=["The list price of the blue widget is 0 EUR"],
        )
        self.say("notify", "pricer", parent="pricing", tool="send_mail", status="pending")
        self.say(
            "offer",
            "desk",
            "sales",
            parent=self.name("pricing"),
            tool="send_offer",
            read=["The list price of the blue widget is 0 EUR"],
        )
        self.say("broken", "desk", "sales", parent="offer", tool="send_offer", status="failure")
        # Unrelated: a branch of the same plan, an agent of its own, and own work of agents that hold it.
        self.say("apart", "tester", parent="plan", tool="run_tests")
        self.say("apart-2", "tester", parent="apart", tool="run_tests")
        self.say("before", "fetcher", parent="plan", tool="query_stock")
        self.say("elsewhere", "watcher", "other", parent="quiet")
        settled(self.server)

    def ask(self, step: str | int, what: str, **params: Any) -> Json:
        answer = self.people.get(f"/v1/steps/{step}/{what}", params=params)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())


@pytest.fixture
def play(either_tenant: Tenant) -> Play:
    received = Play(either_tenant)
    received.play()
    return received


@pytest.mark.req(103)
def test_a_failing_tool_is_followed_over_agents_and_sessions_and_nothing_else_is(play: Play) -> None:
    """S262, S263, S264, S269: steps, agents, sessions, facts, side effects and spend; no false member."""
    received = play.ask(play.seqs["failing"], "blast")
    strong = {one["sequence_number"]: one for one in received["steps"] if one["strength"] == "strong"}
    members = ["failing", "pricing", "notify", "offer", "broken"]
    assert sorted(strong) == sorted(play.seqs[name] for name in members), "missed or false members"
    assert [one["sequence_number"] for one in received["steps"] if one["strength"] == "weak"] == []
    assert [strong[play.seqs[name]]["depth"] for name in members] == [0, 1, 2, 2, 3]
    offer = strong[play.seqs["offer"]]
    assert {edge["kind"] for edge in offer["evidence"]} == {"parent", "read"}
    assert all(edge["from_step"] == play.name("pricing") for edge in offer["evidence"])
    assert {one["agent_id"] for one in received["agents"]} == {"fetcher", "pricer", "desk"}
    assert set(received["sessions"]) == {play.sessions["ops"], play.sessions["sales"]}
    assert [one["text"] for one in received["facts"]] == ["The list price of the blue widget is 0 EUR"]
    effects = {
        one["tool"]: (one["succeeded"], one["pending"], one["failed"]) for one in received["side_effects"]
    }
    assert effects == {"set_price": (1, 0, 0), "send_mail": (0, 1, 0), "send_offer": (1, 0, 1)}
    assert received["spend"] == {"strong": 0.05, "weak": 0.0}
    assert received["origin"]["step"] == play.name("failing")
    assert (
        received["first_at"] == received["origin"]["at"] < received["last_at"]
        and received["truncated"] is False
    )
    # By id in its session, by message id, and a page at a time.
    assert play.ask("failing", "blast", session=play.sessions["ops"])["steps"] == received["steps"]
    first = play.ask(play.seqs["failing"], "blast", limit=3)
    rest = play.ask(play.seqs["failing"], "blast", limit=3, cursor=first["next_cursor"])
    assert [*first["steps"], *rest["steps"]] == received["steps"] and rest["next_cursor"] is None


@pytest.mark.req(99, 103)
def test_pausing_the_smallest_set_stops_the_spread_before_it_reaches_anybody_else(play: Play) -> None:
    """S265, S266: only the desk hands on to somebody who does not hold it; its next message is held."""
    found = play.ask(play.seqs["failing"], "blast")["containment"]
    assert [one["agent_id"] for one in found["agents"]] == ["desk"], "not the smallest set"
    assert found["exact"] and not found["contained"] and found["smaller"] is None
    assert found["reached"] == ["clerk"] and "clerk" in found["agents"][0]["reason"]
    assert [(one["session_id"], one["agent_id"]) for one in found["pause"]] == [
        (play.sessions["sales"], "desk")
    ]
    for command in found["pause"]:
        done = play.people.post(command["path"], json=command["body"])
        assert done.status_code == 202, done.text
    play.say("spread", "desk", "sales", parent="broken", to="clerk")
    (held,) = play.people.get("/v1/holds").json()["items"]
    assert (held["agent_id"], held["cause"]) == ("desk", "pause")
    inbox = play.server.http("agent").get("/v1/agents/clerk/inbox").json()["items"]
    assert [item for item in inbox if item["kind"] == "message"] == []
    settled(play.server)
    after = play.ask(play.seqs["failing"], "blast")
    assert after["containment"]["contained"] and after["containment"]["pause"] == []
    assert after["containment"]["already_halted"] == ["desk"]
    assert "clerk" not in {one["agent_id"] for one in after["agents"]}


@pytest.mark.req(99)
def test_whoever_is_paused_where_it_says_nothing_is_still_reached(play: Play) -> None:
    """S265: the pause holds what it would say there, not what the desk tells it here."""
    made = play.server.http("agent").post("/v1/agents", json={"agent_id": "auditor"})
    assert made.status_code in (200, 201), made.text
    play.say("memo", "desk", "sales", parent="usual", to="auditor")  # from before, and says nothing of it
    where = f"/v1/sessions/{play.sessions['ops']}/pause"
    paused = play.people.post(where, json={"agent_id": "auditor", "force": True})
    assert paused.status_code == 202, paused.text
    settled(play.server)
    found = play.ask(play.seqs["failing"], "blast")["containment"]
    assert sorted(found["reached"]) == ["auditor", "clerk"] and found["already_halted"] == []


@pytest.mark.req(103)
def test_the_failing_step_ranks_first_among_the_causes(play: Play) -> None:
    """S267, S268: with reasons in words and the way from it; nothing unrelated is a candidate."""
    received = play.ask(play.seqs["broken"], "causes")
    first = received["items"][0]
    assert first["step"] == play.name("failing") and first["rank"] == 1
    assert [one["sign"] for one in first["reasons"]] == ["failed", "first"]
    assert "query_prices" in first["reasons"][0]["text"]
    way = [one["step"] for one in first["path"]]
    names = [play.name("failing"), play.name("pricing"), play.name("offer", "sales")]
    assert way == [*names, play.name("broken", "sales")]
    candidates = {one["sequence_number"] for one in received["items"]}
    assert candidates <= {play.seqs[name] for name in ("plan", "usual", "failing", "broken")}
    assert "is no proof" in received["note"]
    (fact,) = play.people.get("/v1/facts", params={"agent": "pricer"}).json()["items"]
    assert play.people.post(f"/v1/facts/{fact['fact_id']}/false", json={}).status_code == 201
    again = {one["step"]: one for one in play.ask(play.seqs["broken"], "causes")["items"]}
    assert "false_fact" in [one["sign"] for one in again[play.name("pricing")]["reasons"]]


def test_bad_questions_about_steps_get_a_sentence(
    either_server: Server, either_tenant: Tenant, play: Play, tmp_path: Path
) -> None:
    """S269: unknown steps, numbers of events that are no steps, steps of other tenants, circles."""
    for step in ("none", "999999999", "0", "99999999999999999999", "msg_1-1", "%27%3B--", "🚀"):
        for what in ("blast", "causes"):
            answer = play.people.get(f"/v1/steps/{step}/{what}")
            assert answer.status_code == 404, (step, answer.text)
            assert answer.json()["detail"]
    other = Tenant(either_server, tmp_path / "stranger")
    mine = other.send(decision_log())
    stranger = mine.json()["message_id"]
    settled(other)
    assert other.http("operator").get(f"/v1/steps/{stranger}/blast").status_code == 200
    assert play.people.get(f"/v1/steps/{stranger}/blast").status_code == 404
    assert play.people.get(f"/v1/steps/{stranger}/causes").status_code == 404
    other.stop()
    assert play.people.get(f"/v1/steps/{play.seqs['plan']}/blast?limit=0").status_code == 400
    assert play.people.get(f"/v1/steps/{play.seqs['plan']}/blast?cursor=x").status_code == 400
    play.say("a", "agent-a", "other", parent="c")
    play.say("b", "agent-b", "other", parent="a")
    play.say("c", "agent-c", "other", parent="b")
    settled(either_tenant)
    circle = play.ask(play.seqs["a"], "blast")
    assert [one["sequence_number"] for one in circle["steps"]] == [play.seqs[name] for name in "abc"]
    assert [one["sequence_number"] for one in play.ask(play.seqs["c"], "blast")["steps"]] == [play.seqs["c"]]
    assert play.ask(play.seqs["c"], "causes")["ancestors"] == 2
