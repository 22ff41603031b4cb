"""Sessions as a table shows them: goal, confidence, trail, cap, agents, pauses, one word; found by words."""

from __future__ import annotations

import contextlib
import sqlite3
import uuid
from pathlib import Path

import pytest

from observatory.features.sessions.types_status import STATUSES
from tests.flows.answered import acceptable
from tests.flows.fleet import Json
from tests.flows.graphs import ask, send, step
from tests.flows.insight import settled
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.flows.test_live_folded import following
from tests.flows.workers import work


def line(server: Server, session: str) -> Json:
    (found,) = [one for one in ask(server, "/v1/sessions")["items"] if one["session_id"] == session]
    one = ask(server, f"/v1/sessions/{session}")
    received = {name: one[name] for name in found if name not in ("cost", "cap")}
    assert received == {name: found[name] for name in received}, "the list and the session say the same"
    return dict(found)


def new_message(server: Server, agent: str, session: str, intent: str, **more: object) -> Json:
    thought = {"intent": intent, "confidence_score": more.pop("sure", 0.9)}
    message = work(agent, session=session, **more)
    message["cognition"] |= thought
    message["control"]["is_terminal"] = bool(more.get("last", False))
    return send(server, message)


def commanded(server: Server, session: str, command: str, agent: str) -> None:
    done = server.http("operator").post(f"/v1/sessions/{session}/{command}", json={"agent_id": agent})
    assert done.status_code in (200, 202), done.text


@pytest.mark.req(202)
def test_a_line_tells_the_goal_the_latest_confidence_the_trail_and_the_first_agents_s300(
    either_tenant: Tenant,
) -> None:
    """S300, S301: the goal is the first intent, cut; confidence the latest; at most 20 scores, 5 agents."""
    server, goal = either_tenant, "Value  NVDA\nfor the\tmorning note " + "x" * 200
    new_message(server, "ada", "ses-line", goal, sure=0.9)
    for number in range(7):
        new_message(server, f"agent-{number}", "ses-line", f"Do part {number}", sure=0.5 + number / 100)
    silent = str(uuid.uuid4())
    send(server, step(silent, "one", agent="ada", cognition=None))
    settled(server)
    found = line(server, "ses-line")
    assert found["goal"].startswith("Value NVDA for the morning note x")
    assert len(found["goal"]) == 160 and found["goal"].endswith("…")
    assert found["confidence"] == 0.56
    assert found["agent_names"] == ["ada", "agent-0", "agent-1", "agent-2", "agent-3"]
    assert found["agents_count"] == 8 and len(found["entropy_trail"]) == 8
    assert found["entropy_trail"][-1] == pytest.approx(found["entropy_score"], abs=1e-3)
    for number in range(20):
        new_message(server, "ada", "ses-line", f"Go on with {number}")
    settled(server)
    assert len(line(server, "ses-line")["entropy_trail"]) == 20
    mute = line(server, silent)
    assert (mute["goal"], mute["confidence"], mute["entropy_trail"]) == (None, None, [])


def test_a_held_first_word_gives_the_goal_in_the_words_it_went_on_with(either_tenant: Tenant) -> None:
    """S300: what a person put in its place is the goal from then on."""
    server, session = either_tenant, str(uuid.uuid4())
    first = step(
        session, "one", agent="ada", cognition={"intent": "Sell all"}, control={"hitl_required": True}
    )
    assert send(server, first)["state"] == "held"
    settled(server)
    assert line(server, session)["goal"] == "Sell all"
    first["cognition"]["intent"] = "Sell nothing"
    edited = server.http("admin").post(
        f"/v1/sessions/{session}/edit",
        json={"agent_id": "ada", "message_id": "one", "new_content": first},
    )
    assert edited.status_code == 200, edited.text
    settled(server)
    assert line(server, session)["goal"] == "Sell nothing"


@pytest.mark.req(202, 203)
def test_one_word_says_how_a_session_stands_by_numbered_rules(either_tenant: Tenant) -> None:
    """S302: ended, paused, looping, waiting, running; each can be asked for."""
    server = either_tenant
    new_message(server, "ada", "ses-running", "Go")
    new_message(server, "ada", "ses-ended", "Go", last=True)
    new_message(server, "ada", "ses-paused", "Go")
    new_message(server, "bob", "ses-paused", "Go too")
    new_message(server, "ada", "ses-waiting", "Go", hitl=True)
    new_message(server, "ada", "ses-held-end", "Go", hitl=True, last=True)
    for _ in range(5):
        new_message(server, "ada", "ses-looping", "Find it", status="failure", tool="serp")
    words = {"deadline": None, "auto_action": None}
    asked = acceptable(server, "decision_request", metadata={"session_id": "ses-asked"}, payload=words)
    assert server.send(asked).status_code == 202
    for agent in ("ada", "bob"):
        commanded(server, "ses-paused", "pause", agent)
    settled(server)
    stand = {one["session_id"]: one["status"] for one in ask(server, "/v1/sessions")["items"]}
    assert stand == {
        "ses-running": "running",
        "ses-ended": "ended",
        "ses-paused": "paused",
        "ses-waiting": "waiting",
        "ses-held-end": "waiting",
        "ses-looping": "looping",
        "ses-asked": "waiting",
    }
    assert line(server, "ses-paused")["paused"] == 2
    for word in STATUSES:
        shown = {one["session_id"] for one in ask(server, "/v1/sessions", status=word)["items"]}
        assert shown == {name for name, found in stand.items() if found == word}, word
    page = ask(server, "/v1/sessions", status="waiting", limit=2)
    rest = ask(server, "/v1/sessions", status="waiting", limit=2, cursor=page["next_cursor"])
    assert (len(page["items"]), len(rest["items"]), rest["next_cursor"]) == (2, 1, None)
    commanded(server, "ses-paused", "unpause", "ada")
    assert (line(server, "ses-paused")["paused"], line(server, "ses-paused")["status"]) == (1, "paused")


@pytest.mark.req(204)
def test_a_session_shows_the_budget_nearest_to_its_cap(either_tenant: Tenant) -> None:
    """S304: of its own, its agents', their clusters' and the tenant's the one used up most."""
    server, door = either_tenant, either_tenant.http("operator")

    def cap(**body: object) -> str:
        made = door.put("/v1/budgets", json=body)
        assert made.status_code == 200, made.text
        found: str = made.json()["budget_id"]
        return found

    assert [one["cap"] for one in ask(server, "/v1/sessions")["items"]] == []
    tenant = cap(scope="tenant", hard=100)
    each = cap(scope="session", target="*", hard=10, soft=8)
    spent = {"cumulative_session_cost": 2.0}
    new_message(server, "ada", "ses-a", "Spend", delta=spent)
    new_message(server, "bob", "ses-b", "Spend", delta={"cumulative_session_cost": 0.5})
    new_message(server, "eve", "ses-c", "Spend nothing")
    settled(server)
    assert line(server, "ses-a")["cap"] == {
        "budget_id": each,
        "scope": "session",
        "target": "*",
        "soft": 8.0,
        "hard": 10.0,
        "spent": 2.0,
        "share": 0.2,
    }
    assert line(server, "ses-c")["cap"]["budget_id"] == tenant
    bob = cap(scope="agent", target="bob", hard=2)
    new_message(server, "bob", "ses-b", "Spend more", delta={"cumulative_session_cost": 1.0})
    settled(server)
    found = line(server, "ses-b")["cap"]
    assert (found["budget_id"], found["share"], found["target"]) == (bob, 0.5, "bob")


@pytest.mark.req(202)
def test_sessions_are_found_by_id_goal_and_agent(either_tenant: Tenant) -> None:
    """S305: whatever the case; what is a wildcard in a database is a letter here."""
    server, own = either_tenant, str(uuid.uuid4())
    new_message(server, "researcher-Beta-3", "ses-one", "Find NVDA's fiscal year")
    new_message(server, "writer-1", own, "Write 100% of the Größe report")
    new_message(server, "writer-2", "ses-two", "Plan")
    settled(server)

    def found(q: str, **more: str) -> set[str]:
        return {one["session_id"] for one in ask(server, "/v1/sessions", q=q, **more)["items"]}

    assert found("nvda") == found("FISCAL   year") == found("beta-3") == {"ses-one"}
    assert found(own[:8]) == found(own.upper()) == found("100%") == found("GRÖSSE") == {own}
    assert found("ses-") == {"ses-one", "ses-two"} and found("writer") == {own, "ses-two"}
    assert found("_") == found("%%") == found("nothing of the kind") == set()
    assert found("writer", status="running") == {own, "ses-two"} and found("writer", status="ended") == set()
    first = ask(server, "/v1/sessions", q="writer", limit=1)
    rest = ask(server, "/v1/sessions", q="writer", limit=1, cursor=first["next_cursor"])
    assert [one["session_id"] for one in first["items"] + rest["items"]] == ["ses-two", own]
    assert server.http("operator").get("/v1/sessions?q=").status_code == 400


def test_the_live_topic_tells_the_same_lines(either_tenant: Tenant) -> None:
    """S305: goals come when they are folded, pauses within a second, without a message."""
    server = either_tenant
    assert server.http("operator").put("/v1/budgets", json={"scope": "tenant", "hard": 3}).status_code == 200
    new_message(
        server, "ada", "ses-live", "Watch the tape", delta={"cumulative_session_cost": 1.0}, sure=0.25
    )
    with following(server, "sessions") as reader:
        reader.until(lambda: reader.of("sessions", "session").get("ses-live", {}).get("goal"))
        received = reader.of("sessions", "session")["ses-live"]
        shown = line(server, "ses-live")
        assert {name: received[name] for name in shown if name != "cap"} == {
            name: value for name, value in shown.items() if name != "cap"
        }
        assert (received["cap"]["share"], received["cap"]["spent"]) == (0.33, 0.99)
        assert shown["cap"]["share"] == 0.333333
        commanded(server, "ses-live", "pause", "ada")
        reader.until(lambda: reader.of("sessions", "session")["ses-live"]["status"] == "paused")
        new_message(server, "bob", "ses-new", "Begin")
        reader.until(
            lambda: reader.of("sessions", "session").get("ses-new", {}).get("agent_names") == ["bob"]
        )


def test_without_insight_lines_are_poorer_and_nothing_breaks(tmp_path: Path) -> None:
    """S300: pauses, waiting and caps come from the record."""
    with Server(tmp_path / "data", environment={"OBSERVATORY_INSIGHT": "false"}) as server:
        new_message(server, "ada", "ses-bare", "Go", hitl=True)
        assert server.http("operator").put("/v1/budgets", json={"scope": "tenant", "hard": 3}).is_success
        found = line(server, "ses-bare")
        assert (found["goal"], found["confidence"], found["entropy_trail"], found["agent_names"]) == (
            None, None, [], [],
        )  # fmt: skip
        assert (found["status"], found["cap"]["scope"]) == ("waiting", "tenant")
        assert [one["session_id"] for one in ask(server, "/v1/sessions", q="ad")["items"]] == ["ses-bare"]
        assert ask(server, "/v1/fleet/throughput")["messages"] == 1
        assert ask(server, "/v1/fleet/health")["insight"]["enabled"] is False
        assert ask(server, "/v1/alerts")["items"] == []
        with following(server, "sessions", "fleet", "waiting") as reader:
            reader.until(lambda: reader.of("sessions", "session").get("ses-bare"))
            reader.until(lambda: reader.of("fleet", "throughput").get("now", {}).get("messages_60s"))
            reader.until(lambda: reader.of("waiting", "counts").get("counts", {}).get("gates"))
        # Worse: what was folded cannot be read at all. A gate is of the record, and waits for a person.
        with contextlib.closing(sqlite3.connect(server.folder / "derived.db")) as broken:
            broken.execute("DROP TABLE insight_cursors")
        assert server.http("operator").get("/v1/reviews").status_code == 503, "it is broken indeed"
        assert ask(server, "/v1/waiting")["counts"]["gates"] == 1
        assert line(server, "ses-bare")["status"] == "waiting"
        assert ask(server, "/v1/fleet/throughput")["messages"] == 1
        assert ask(server, "/v1/alerts")["items"] == []
        with following(server, "waiting") as reader:
            reader.until(lambda: reader.of("waiting", "item"))
