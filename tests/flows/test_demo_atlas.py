"""The story of the demo, through public doors: each incident shows where the product shows such things, and
the agents obey. One demo for all tests, played fast.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest

from tests.flows.server import COMMAND, clean_environment
from tests.waiting import until

PATIENCE_S = 90.0  # five processes start and play; on a crowded machine that takes its time
T = TypeVar("T")
SUPPLIER = "researcher-beta-3"
INCIDENTS = ("silence", "gate", "loop", "pause", "proof", "infection", "drift", "cascade", "budget")


class Atlas:
    """A running demo as an operator sees it."""

    def __init__(self, folder: Path) -> None:
        received = json.loads((folder / "credentials.json").read_text())
        headers = {"Authorization": f"Bearer {received['operator_key']}"}
        self._http = httpx2.Client(base_url=received["url"], headers=headers, timeout=30, trust_env=False)

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, **query: Any) -> Any:
        answer = self._http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, **body: Any) -> Any:
        answer = self._http.post(path, json=body)
        assert answer.status_code in (200, 202), answer.text
        return answer.json()

    def call(self, incident: str) -> None:
        """Start one by name, as the guide says."""
        self.post("/v1/sessions/atlas-director/inject", agent_id="director", prompt=f"incident: {incident}")

    def node(self, agent_id: str) -> dict[str, Any]:
        nodes: list[dict[str, Any]] = self.get("/v1/fleet")["nodes"]
        return next((node for node in nodes if node["agent_id"] == agent_id), {"state": None})

    def words(self, session_id: str) -> list[dict[str, Any]]:
        """What was said in a session, newest first."""
        items: list[dict[str, Any]] = self.get("/v1/messages", session_id=session_id, limit=100)["items"]
        return [item["message"] | {"state": item["state"]} for item in items]

    def loop(self) -> str | None:
        alerts = self.get("/v1/entropy/alerts")["items"]
        return next((one["session_id"] for one in alerts if one["agent_id"] == SUPPLIER), None)

    def gate(self, agent_id: str) -> dict[str, Any] | None:
        holds: list[dict[str, Any]] = self.get("/v1/holds", gates_only=True)["items"]
        return next((one for one in holds if one["agent_id"] == agent_id and one["gate"] == "open"), None)


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atlas]:
    folder = tmp_path_factory.mktemp("atlas") / "demo"
    command = [*COMMAND, "demo", "--data", str(folder), "--port", "0", "--rate", "30", "--pace", "6"]
    command += [word for name in INCIDENTS for word in ("--incident", name)]
    with (folder.parent / "log").open("wb") as log:
        demo = subprocess.Popen(command, stdout=log, stderr=log, env=clean_environment())
    try:
        seen((folder / "credentials.json").exists)
        atlas = Atlas(folder)
        seen(lambda: answers(atlas))
        yield atlas
        atlas.close()
    finally:
        demo.terminate()
        demo.wait(30)


def seen(look: Callable[[], T | None]) -> T:
    found = until(look, PATIENCE_S)
    assert found is not None
    return found


def answers(atlas: Atlas) -> bool:
    with contextlib.suppress(httpx2.TransportError):
        return bool(atlas.get("/v1/sessions")["items"])
    return False


def test_the_first_seconds_show_all_clusters_sixty_agents_and_several_sessions(atlas: Atlas) -> None:
    seen(lambda: len(atlas.get("/v1/fleet")["nodes"]) == 60)

    def placed() -> dict[str, Any] | None:
        """Whoever was heard before it said where it is has no place for a moment."""
        found: dict[str, Any] = atlas.get("/v1/fleet", layout="geographic", level="cluster")
        return found if found["unplaced"] == [] else None

    clusters = seen(placed)
    assert {group["name"] for group in clusters["groups"]} >= {"Zürich", "Frankfurt"} or clusters["groups"]
    seen(lambda: len(atlas.get("/v1/sessions")["items"]) >= 5)
    seen(lambda: any(edge["latency_p50_ms"] is not None for edge in atlas.get("/v1/fleet")["edges"]))


def test_a_loop_is_seen_pausing_stops_it_and_a_prompt_ends_it(atlas: Atlas) -> None:
    session = seen(atlas.loop)
    assert atlas.node(SUPPLIER)["state"] == "alert_entropy"
    place = f"/v1/sessions/{session}"
    atlas.post(f"{place}/pause", agent_id=SUPPLIER)
    seen(lambda: atlas.get(f"{place}/interventions")["items"][-1]["confirmation"] == "confirmed")
    before = len(atlas.words(session))
    atlas.post(f"{place}/inject", agent_id=SUPPLIER, prompt="Read the annual report instead.")
    assert len(atlas.words(session)) == before
    atlas.post(f"{place}/unpause", agent_id=SUPPLIER)
    seen(lambda: len(atlas.words(session)) > before)
    following = atlas.words(session)[::-1][before]
    assert "Read the annual report instead." in following["cognition"]["reasoning_chain"][0]
    assert following["action"]["tool_call"] == "read_document"
    seen(lambda: atlas.loop() != session)


def test_a_bad_deploy_paints_code_runners_orange(atlas: Atlas) -> None:
    atlas.call("violation")
    seen(lambda: atlas.node("code-runner-delta-1")["state"] == "schema_violation")


def test_a_gate_waits_with_a_deadline_and_what_is_edited_arrives_edited(atlas: Atlas) -> None:
    hold = seen(lambda: atlas.gate("publisher-alpha-1"))
    assert hold["deadline"] is not None
    decisions = seen(lambda: atlas.get("/v1/decisions/pending")["items"])
    assert decisions[0]["risk"] == "high" and decisions[0]["deadline"] is not None
    session = hold["session_id"]
    content = next(one for one in atlas.words(session) if one["state"] == "held")
    del content["state"]
    content["cognition"].pop("entropy_score", None)
    content["action"]["tool_input"] = json.dumps({"headline": "Better words", "copies": 3})
    named = {"agent_id": "publisher-alpha-1", "message_id": hold["message_id"]}
    digest = hold["action_digest"]
    atlas.post(f"/v1/sessions/{session}/edit", **named, digest=digest, new_content=content)
    sent = seen(lambda: [one for one in atlas.words(session) if one["control"]["is_terminal"]])[0]
    assert sent["identity"]["agent_id"] == "publisher-beta-1"
    assert sent["cognition"]["intent"] == "Send to the wire: Better words"


def test_what_is_rejected_never_arrives_and_the_asker_says_so(atlas: Atlas) -> None:
    atlas.call("gate")
    hold = seen(lambda: atlas.gate("publisher-alpha-1"))
    session = hold["session_id"]
    named = {"agent_id": "publisher-alpha-1", "message_id": hold["message_id"]}
    atlas.post(f"/v1/sessions/{session}/reject", **named, digest=hold["action_digest"], note="old figures")
    last = seen(lambda: [one for one in atlas.words(session) if one["control"]["is_terminal"]])[0]
    assert last["cognition"]["intent"].startswith("Not published: ")
    assert "The answer was no: old figures." in last["cognition"]["reasoning_chain"]
    assert "publisher-beta-1" not in {one["identity"]["agent_id"] for one in atlas.words(session)}


def test_a_made_up_fact_spreads_to_four_agents_and_more(atlas: Atlas) -> None:
    def spread() -> int:
        facts = atlas.get("/v1/facts", q="NVDA fiscal year ends Dec 31")["items"]
        found = [one for one in facts if one["text"] == "NVDA fiscal year ends Dec 31"]
        return len(atlas.get(f"/v1/facts/{found[-1]['fact_id']}/infection")["agents"]) if found else 0

    seen(lambda: spread() >= 4)


def test_two_analysts_disagree_until_a_person_says_what_is_true(atlas: Atlas) -> None:
    def conflict() -> dict[str, Any] | None:
        found: list[dict[str, Any]] = atlas.get("/v1/drift")["conflicts"]
        return next((one for one in found if "share count" in one["subject"]), None)

    one = seen(conflict)
    assert {side["value"] for side in one["sides"]} == {"48.2 million", "51.7 million"}
    ruling = {"subject": one["subject"], "scope": one["scope"], "value": "48.2 million", "confirm": True}
    atlas.post("/v1/drift/reconcile", **ruling)
    seen(lambda: (conflict() or {"scope": ""})["scope"] != one["scope"])


def test_an_outage_spreads_and_its_root_is_the_filings_api(atlas: Atlas) -> None:
    def last_failure() -> list[dict[str, Any]]:
        found = atlas.get("/v1/messages", agent_id="filings-epsilon-1", limit=100)["items"]
        return [
            one for one in found if (one["message"].get("action") or {}).get("tool_call") == "filings_api"
        ]

    def reached() -> int:
        with contextlib.suppress(AssertionError):  # not folded yet: 404
            return len(atlas.get(f"/v1/steps/{root}/blast")["agents"])
        return 0

    root = seen(last_failure)[0]["sequence_number"]
    seen(lambda: reached() >= 4)
    blast = atlas.get(f"/v1/steps/{root}/blast")
    last = max(step["sequence_number"] for step in blast["steps"])
    first = atlas.get(f"/v1/steps/{last}/causes")["items"][0]
    assert (first["sequence_number"], first["tool"]) == (root, "filings_api")


def test_a_writer_passes_its_soft_cap_and_nears_the_hard_one(atlas: Atlas) -> None:
    hold = seen(lambda: atlas.gate("writer-beta-1"))
    assert hold["reason"] == "budget"

    def share() -> float:
        budgets = atlas.get("/v1/budgets")["items"]
        return float(next((one["share"] for one in budgets if one["target"] == "writer-beta-1"), 0))

    seen(lambda: 0.9 < share() <= 1)


def test_a_silent_agent_is_shown_as_dead(atlas: Atlas) -> None:
    seen(lambda: atlas.node("filings-gamma-1")["state"] == "dead")


def test_unsure_steps_wait_for_review_and_a_cancelled_agent_stops(atlas: Atlas) -> None:
    assert seen(lambda: atlas.get("/v1/reviews")["items"])
    atlas.call("loop")
    session = seen(atlas.loop)
    atlas.post(f"/v1/sessions/{session}/cancel", agent_id=SUPPLIER, note="not needed")
    last = seen(lambda: [one for one in atlas.words(session) if one["control"]["is_terminal"]])[0]
    assert last["cognition"]["intent"] == "Stopped by a person: not needed"


def test_webhooks_arrive_come_late_and_die_and_calls_are_good_and_bad_s782(atlas: Atlas) -> None:
    """S781, S782: to the one address that is allowed; retries and dead letters have something to show."""
    ends = {one["name"]: one for one in seen(lambda: atlas.get("/v1/webhooks/out")["items"])}
    places = {name: f"/v1/webhooks/out/{one['endpoint_id']}/deliveries" for name, one in ends.items()}

    def states(name: str) -> set[tuple[str, int]]:
        return {(one["state"], one["attempts"]) for one in atlas.get(places[name])["items"]}

    seen(lambda: ("delivered", 1) in states("Desk feed"))
    seen(lambda: ("delivered", 2) in states("Risk desk"))
    seen(lambda: ("dead", 3) in states("Report archive"))
    letters = atlas.get("/v1/dead-letters", kind="webhook")["items"]
    assert {one["source_name"] for one in letters} == {"Report archive"}
    calls = seen(lambda: _three(atlas.get("/v1/webhooks/in/calls")["items"]))
    assert {one["signature"]: one["outcome"] for one in calls} == {
        "valid": "forwarded",
        "invalid": "turned_away",
        "missing": "turned_away",
    }


def _three(items: list[Any]) -> list[Any]:
    return items if len(items) == 3 else []


def test_jobs_run_one_dies_the_lead_has_changed_and_a_witness_cosigns_s782_s783(atlas: Atlas) -> None:
    """S782, S783: a rule refuses the job that dies; the house stepped back from the lead once."""
    names = ("Watch the filings API", "Feed the old terminal")

    def outcomes() -> list[str | None]:
        jobs = {one["name"]: one["last_outcome"] for one in atlas.get("/v1/jobs")["items"]}
        return [jobs.get(name) for name in names]

    seen(lambda: outcomes() == ["sent", "dead"])
    assert atlas.get("/v1/dead-letters", kind="job")["items"][0]["source_name"] == "Feed the old terminal"
    leader = seen(lambda: atlas.get("/v1/scheduler")["leader"])
    assert leader["epoch"] > 1
    (peer,) = seen(lambda: [one for one in atlas.get("/v1/peers")["items"] if one["cosigned_size"]])
    assert (peer["name"], peer["asked"]["state"]) == ("Notary next door", "cosigned")
    received = {one["agent_type"]: one for one in seen(lambda: atlas.get("/v1/instructions")["items"])}
    seen(lambda: atlas.get("/v1/instructions/writer")["agents"])
    assert {"fact_checker", "writer"} >= received.keys()
    assert len(atlas.get("/v1/alert-rules")["items"]) == 2 and len(atlas.get("/v1/policies")["items"]) == 3


def test_the_first_hours_questions_have_answers_s784(atlas: Atlas) -> None:
    """S784: why it is paused, what proves a decision, who began the false fact, what each branch cost."""
    seen(lambda: atlas.node("publisher-delta-1")["state"] == "blocked")
    session = atlas.node("publisher-delta-1")["reason"].rpartition(" ")[2]
    done = atlas.get(f"/v1/sessions/{session}/interventions")["items"]
    assert ["press list" in one["note"] for one in done if one["command"] == "pause"] == [True]
    (trail,) = seen(lambda: [one for one in atlas.get("/v1/thought-sessions")["items"] if one["root"]])[:1]
    place = f"/v1/sessions/{trail['session_id']}/thoughts"
    assert atlas.post(f"{place}/verify")["valid"] is True
    kinds = [one["type"] for one in atlas.get(place)["items"]]
    assert kinds == ["plan", "analysis", "decision", "reflection"]
    claim = "NVDA fiscal year ends Dec 31"
    facts = seen(lambda: [one for one in atlas.get("/v1/facts", q=claim)["items"] if one["text"] == claim])
    source = atlas.get(f"/v1/facts/{facts[-1]['fact_id']}/infection")["source"]
    assert source["agent_id"] == "researcher-gamma-2"
    dear = seen(lambda: atlas.get("/v1/costs", by="session")["items"])[0]["id"]
    assert atlas.get(f"/v1/sessions/{dear}/costs")["branches"]
