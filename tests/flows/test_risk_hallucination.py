"""The risk of a made-up fact: it spreads over five agents; an operator sees where from and stops it.

Played through the public doors on both databases, among look-alikes, a denial, a conflicting value and the
same words said independently elsewhere. False edges are counted: there are none.
"""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.flows.insight import settled
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.samples import decision_log

Json = dict[str, Any]
FALSE = "NVDA fiscal year ends Jan 28"
CORRECTION = "NVDA's fiscal year ends on the last Sunday of January"


class Story:
    """Agents that talk in two sessions; a step is named by whoever says it and when."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.sessions = {name: f"{name}-{uuid.uuid4().hex[:8]}" for name in ("desk", "plan", "far")}
        self.seqs: dict[str, int] = {}

    def say(
        self,
        name: str,
        agent: str,
        session: str = "desk",
        *,
        parent: str | None = None,
        to: str | None = None,
        cluster: str | None = None,
        intent: str = "work on it",
        reasoning: list[str] | None = None,
        **delta: Any,
    ) -> None:
        log = decision_log(
            meta={
                "trace_id": str(uuid.uuid4()),
                "session_id": self.sessions[session],
                "step_id": name,
                "parent_step_id": parent,
                "cluster_id": cluster,
            },
            identity={"agent_id": agent, "agent_type": "worker", "recipient": to},
            cognition={"intent": intent, "reasoning_chain": reasoning},
            action={"tool_call": None, "tool_input": None, "tool_output_summary": None},
            state_delta={
                "added_to_memory": None,
                "cumulative_session_cost": None,
                "tokens_consumed": 1,
                "cost": 0.01,
            }
            | delta,
        )
        sent = self.server.send(log)
        assert sent.status_code == 202, sent.text
        self.seqs[name] = sent.json()["sequence_number"]

    def play(self) -> None:
        self.say("hello", "planner", "plan")
        self.say("hello-2", "reviewer", "plan")
        self.say("source", "researcher", added_to_memory=[FALSE, "NVDA reports in USD"])
        self.say("copy", "analyst", parent="source", read_from_memory=[FALSE])
        self.say(
            "paraphrase",
            "writer",
            parent="copy",
            to="planner",
            added_to_memory=["NVDA's fiscal year ends on January 28"],
        )
        self.say(
            "planned",
            "planner",
            "plan",
            parent="hello",
            read_from_memory=["NVDA's fiscal year ends on January 28."],
            added_to_memory=["The Q4 report is due on February 21"],
        )
        self.say("again", "planner", "plan", added_to_memory=["NVDA fiscal year closes on 28 January"])
        self.say(
            "reviewed",
            "reviewer",
            "plan",
            reasoning=["Check dates.", "NVDA's fiscal year ends on January 28, that is settled."],
            intent="Review the plan: NVDA fiscal year closes on 28 January",
        )
        # Look-alikes, a conflicting value, a denial, and the same words where nobody could have heard them.
        self.say("alike", "clerk", added_to_memory=["AMD fiscal year ends Dec 28"])
        self.say("alike-2", "clerk-2", added_to_memory=["NVDA fiscal quarter ends Jan 28"])
        self.say("conflict", "auditor", parent="copy", added_to_memory=["NVDA fiscal year ends Jan 31"])
        self.say("denial", "sceptic", intent=f"It is not true that {FALSE}")
        self.say("elsewhere", "stranger", "far", cluster="far-away", added_to_memory=[FALSE])


@pytest.fixture
def story(either_tenant: Tenant) -> Story:
    received = Story(either_tenant)
    received.play()
    settled(either_tenant)
    return received


def fact_of(story: Story, step: str) -> Json:
    found = story.server.http("operator").get("/v1/facts", params={"text": FALSE}).json()["items"]
    (item,) = [one for one in found if one["sequence_number"] == story.seqs[step]]
    return dict(item)


def infection(story: Story, fact_id: str, **params: Any) -> Json:
    answer = story.server.http("operator").get(f"/v1/facts/{fact_id}/infection", params=params)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.mark.req(104, 154)
def test_a_made_up_fact_is_traced_to_its_source_and_to_everybody_who_took_it_up(story: Story) -> None:
    """S248, S249, S250: source, first time, infected steps and agents with evidence; no false edge."""
    fact = fact_of(story, "source")
    received = infection(story, fact["fact_id"])
    assert (received["source"]["agent_id"], received["source"]["sequence_number"]) == (
        "researcher",
        story.seqs["source"],
    )
    assert received["source"]["session_id"] == story.sessions["desk"]
    assert received["source"]["step"] == f"{story.sessions['desk']}/source"
    assert received["first_at"] == fact["at"]
    strong = {step["sequence_number"]: step for step in received["steps"] if step["strength"] == "strong"}
    expected = ["source", "copy", "paraphrase", "planned", "again", "reviewed"]
    assert sorted(strong) == [story.seqs[name] for name in expected], "missed or false edges"
    kinds = {name: strong[story.seqs[name]]["evidence"][0]["kind"] for name in expected}
    assert kinds == {
        "source": "source",
        "copy": "declared",
        "paraphrase": "near",
        "planned": "declared",
        "again": "near",
        "reviewed": "exact",
    }
    for step in strong.values():
        assert all(edge["from_step"] for edge in step["evidence"])
    agents = {one["agent_id"]: one["strength"] for one in received["agents"]}
    assert {name for name, strength in agents.items() if strength == "strong"} == {
        "researcher",
        "analyst",
        "writer",
        "planner",
        "reviewer",
    }
    # Weak is only who came after by cause; look-alikes, denials and strangers are in neither.
    weak = {step["sequence_number"] for step in received["steps"] if step["strength"] == "weak"}
    assert weak == {story.seqs["conflict"]}
    assert agents["auditor"] == "weak"
    assert not {"clerk", "clerk-2", "sceptic", "stranger"} & agents.keys()
    assert [one["agent_id"] for one in received["also_claimed"]] == ["stranger"]
    assert [one["text"] for one in received["later_facts"] if one["strength"] == "strong"] == [
        "The Q4 report is due on February 21"
    ]
    assert received["spend"] == {"strong": 0.06, "weak": 0.01}
    assert received["counts"]["copies"] == 2 and received["truncated"] is False
    # A copy leads to the same source.
    (copy,) = [one for one in received["copies"] if one["agent_id"] == "writer"]
    again = infection(story, copy["fact_id"])
    assert again["source"]["fact_id"] == fact["fact_id"]
    # What the stranger says is an infection of its own.
    alone = infection(story, fact_of(story, "elsewhere")["fact_id"])
    assert [step["sequence_number"] for step in alone["steps"]] == [story.seqs["elsewhere"]]
    # A page at a time.
    first = infection(story, fact["fact_id"], limit=4)
    rest = infection(story, fact["fact_id"], limit=4, cursor=first["next_cursor"])
    assert [*first["steps"], *rest["steps"]] == received["steps"] and rest["next_cursor"] is None


@pytest.mark.req(104)
def test_a_false_fact_is_marked_and_quarantined_through_the_relay(story: Story) -> None:
    """S251, S252, S253: audited without a word of it; paused, told once, previewed first."""
    people = story.server.http("operator")
    fact_id = fact_of(story, "source")["fact_id"]
    marked = people.post(f"/v1/facts/{fact_id}/false", json={"note": "made up by a search snippet"})
    assert (marked.status_code, marked.json()["status"]) == (201, "marked")
    assert people.post(f"/v1/facts/{fact_id}/false", json={}).json()["status"] == "already_marked"
    assert fact_of(story, "source")["marked_false"]["note"] == "made up by a search snippet"
    door = f"/v1/facts/{fact_id}/quarantine"
    plan = people.post(door, params={"dry_run": "true"}, json={"correction": CORRECTION})
    assert plan.status_code == 200, plan.text
    holders = {"researcher", "analyst", "writer", "planner", "reviewer"}
    assert {one["agent_id"] for one in plan.json()["agents"]} == holders
    assert people.post(door, json={"correction": CORRECTION}).json()["reason"] == "confirm"
    assert inbox(story, "planner") == []
    only = people.post(door, json={"correction": CORRECTION, "agents": ["planner"], "confirm": True})
    assert only.status_code == 202, only.text
    (result,) = only.json()["agents"]
    assert (result["pause"]["status"], result["inject"]["status"]) == ("accepted", "accepted")
    done = people.post(door, json={"correction": CORRECTION, "confirm": True})
    assert done.status_code == 202, done.text
    results = {one["agent_id"]: one for one in done.json()["agents"]}
    assert results["planner"]["pause"]["status"] == "already_paused"
    assert results["planner"]["inject"]["status"] == "already_told"
    assert {name for name, one in results.items() if one["inject"]["status"] == "accepted"} == holders - {
        "planner"
    }
    twice = people.post(door, json={"correction": CORRECTION, "confirm": True})
    assert (twice.status_code, twice.json()["status"]) == (200, "already_quarantined")
    for name in sorted(holders):
        received = inbox(story, name)
        assert [item["kind"] for item in received] == ["hold", "inject"], name
        assert CORRECTION in received[1]["body"]["prompt"]
    assert inbox(story, "stranger") == inbox(story, "clerk") == []
    story.say("held", "writer")
    held = people.get("/v1/holds").json()["items"]
    assert [item["agent_id"] for item in held] == ["writer"]
    unasked = people.post(door, json={"correction": CORRECTION, "agents": ["stranger"], "confirm": True})
    assert (unasked.status_code, unasked.json()["reason"]) == (409, "not_infected")
    undone = people.delete(f"/v1/facts/{fact_id}/false")
    assert (undone.status_code, undone.json()["status"]) == (200, "undone")
    assert people.delete(f"/v1/facts/{fact_id}/false").status_code == 404
    trail = story.server.http("admin").get("/v1/audit/tenant", params={"limit": 1_000}).text
    events = story.server.http("admin").get("/v1/audit/tenant", params={"limit": 1_000}).json()["items"]
    kinds = [event["body"]["event_type"] for event in events]
    for kind, count in (("fact_marked_false", 1), ("fact_quarantined", 2), ("fact_mark_undone", 1)):
        assert kinds.count(kind) == count
    (event,) = [event for event in events if event["body"]["event_type"] == "fact_marked_false"]
    assert event["body"]["source_sequence_number"] == story.seqs["source"]
    assert event["body"]["fact_hash"].startswith("sha256:")
    assert FALSE.casefold() not in trail.casefold() and "last Sunday" not in trail and "snippet" not in trail


@pytest.mark.req(154)
def test_memory_is_shown_as_it_was_at_any_step_or_time(story: Story) -> None:
    """S254"""
    people = story.server.http("operator")

    def memory(**params: Any) -> list[Json]:
        answer = people.get("/v1/memory", params=params)
        assert answer.status_code == 200, answer.text
        return list(answer.json()["items"])

    harness = story.sessions["desk"]
    before = memory(session=harness, seq=story.seqs["source"] - 1)
    assert before == []
    then = memory(session=harness, step="source")
    assert sorted(item["text"] for item in then) == [FALSE, "NVDA reports in USD"]
    later = memory(session=harness, step="paraphrase")
    (copy,) = [item for item in later if item["agent_id"] == "writer"]
    assert copy["source"]["agent_id"] == "researcher"
    at = fact_of(story, "source")["at"]
    assert len(memory(session=harness, at=at)) == 2
    planner = memory(agent="planner")
    assert {(item["held_by"], item["agent_id"]) for item in planner} == {
        ("added", "planner"),
        ("read", "writer"),
    }
    people.post(f"/v1/facts/{fact_of(story, 'source')['fact_id']}/false", json={})
    flagged = {item["agent_id"]: item["marked_false"] is not None for item in memory(session=harness)}
    assert flagged["writer"] and not flagged["clerk"] and not flagged["auditor"]
    assert not any(item["marked_false"] for item in memory(agent="stranger"))


def test_bad_questions_about_facts_get_a_sentence(either_tenant: Tenant) -> None:
    people = either_tenant.http("operator")
    for path, code in (
        ("/v1/facts/fct_9-9", 404),
        ("/v1/facts/none", 404),
        ("/v1/facts/fct_99999999999999999999-1/infection", 404),
        ("/v1/facts?text=", 400),
        ("/v1/facts?text=%20", 400),
        ("/v1/facts?agent=nobody", 404),
        ("/v1/facts?session=none", 404),
        ("/v1/facts?cursor=xyz", 400),
        ("/v1/facts?q=%27%3B%20DROP%20TABLE%25_%F0%9F%9A%80", 200),
        ("/v1/memory", 400),
        ("/v1/memory?agent=nobody", 404),
        ("/v1/memory?session=none&at=yesterday", 404),
    ):
        answer = people.get(path)
        assert answer.status_code == code, (path, answer.text)
        assert code == 200 or answer.json()["detail"]
    story = Story(either_tenant)
    story.say("long", "talker", added_to_memory=["x" * 100_000, "🚀" * 2_000, "", "\u200b"])
    settled(either_tenant)
    items = people.get("/v1/facts", params={"agent": "talker"}).json()["items"]
    assert len(items) >= 2 and all(len(item["text"].encode()) <= 4_096 for item in items)
    assert people.get("/v1/memory", params={"agent": "talker", "at": "yesterday"}).status_code == 400
    both: Json = {"agent": "talker", "seq": 1, "at": "2026-01-01T00:00:00Z"}
    assert people.get("/v1/memory", params=both).status_code == 400
    empty = people.post(
        f"/v1/facts/{items[0]['fact_id']}/quarantine", json={"correction": " ", "confirm": True}
    )
    assert empty.status_code == 422


def inbox(story: Story, agent: str) -> list[Json]:
    found = story.server.http("agent").get(f"/v1/agents/{agent}/inbox")
    assert found.status_code == 200, found.text
    return [item for item in found.json()["items"] if item["kind"] in ("hold", "inject")]
