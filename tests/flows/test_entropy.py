"""Entropy through the public doors: alert, recovery, settings, what is stuck; on both databases."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.flows.databases import ALONE, DATABASES, options_of
from tests.flows.hand import answer, done, refused
from tests.flows.server import Server, observatory
from tests.flows.tenant import Tenant
from tests.flows.test_live import live, take
from tests.samples import decision_log
from tests.waiting import until

Json = dict[str, Any]
TOPIC = "gateway:entropy_alerts"


@pytest.fixture(scope="module", params=DATABASES)
def lone(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Without an analyst: what its second detector finds of the same steps comes at a moment of its own."""
    with Server(tmp_path_factory.mktemp("lone") / "data", *options_of(request), environment=ALONE) as running:
        yield running


@pytest.fixture
def server(lone: Server, tmp_path: Path) -> Iterator[Tenant]:
    """On both databases; settings and alarms of a test are nobody else's."""
    made = Tenant(lone, tmp_path / "tenant")
    yield made
    made.stop()


def step(session: str, intent: str = "Open the ledger", agent: str = "looper", **sections: Any) -> Json:
    given: Json = {
        "cognition": {"intent": intent, "entropy_score": None},
        "action": {"tool_call": "open_file", "status": "failure"},
    }
    return decision_log(
        meta={"step_id": str(uuid.uuid4()), "session_id": session, "parent_step_id": None},
        identity={"agent_id": agent},
        **(given | sections),
    )


def send(server: Server, *bodies: Json) -> list[Json]:
    return server.send_lines([json.dumps(body).encode() for body in bodies])


def get(server: Server, path: str, **params: Any) -> Any:
    found = server.http("viewer").get(path, params=params)
    assert found.status_code == 200, found.text
    return found.json()


def by_ratio(server: Server) -> list[Json]:
    """The second detector finds the same loop, a moment later."""
    return [one for one in get(server, "/v1/entropy/alerts")["items"] if one["detector"] == "ratio"]


def received(server: Server, *names: str) -> list[Json]:
    items = get(server, "/v1/audit/tenant", limit=1000)["items"]
    return [item["body"] for item in reversed(items) if item["body"]["event_type"] in names]


@pytest.mark.req(53, 56, 58, 60, 61, 63, 64, 66, *range(72, 79), 85, 89, 90, 91, 238)
def test_five_failing_steps_of_one_kind_are_an_alert_and_another_way_ends_it_s183_s184_s188(
    server: Server,
) -> None:
    with live(server, TOPIC) as reader:
        answers = send(server, *(step("ses-loop") for _ in range(5)))
        (heard,), _ = take(reader, 1)
        (alert,) = by_ratio(server)
        for seen in (heard, alert):
            assert seen["event_type"] == "entropy_alert"
            assert (seen["session_id"], seen["agent_id"]) == ("ses-loop", "looper")
            assert (seen["entropy_score"], seen["window_size"], seen["occurrence_count"]) == (0.2, 5, 5)
            assert seen["repeated_pattern"] == {
                "intent": "Open the ledger",
                "tool_call": "open_file",
                "action_status": "failure",
            }
            assert (seen["detector"], seen["sequence_number"]) == ("ratio", answers[4]["sequence_number"])
        session = get(server, "/v1/sessions/ses-loop")
        assert (session["severity"], session["entropy_score"]) == ("loop", 0.2)
        assert [one["session_id"] for one in get(server, "/v1/sessions", severity="loop")["items"]] == [
            "ses-loop"
        ]
        agent = get(server, "/v1/agents/looper")
        assert (agent["state"], agent["colour"]) == ("alert_entropy", "#ef4444")
        send(server, step("ses-loop"), step("ses-loop"))
        assert by_ratio(server)[0]["occurrence_count"] == 7
        assert len(received(server, "entropy_alert")) == 1
        send(server, step("ses-loop", "Ask for the right path"))
        (heard,), _ = take(reader, 1)
        assert (heard["event_type"], heard["severity"], heard["occurrence_count"]) == (
            "entropy_recovered",
            "warning",
            7,
        )
    assert get(server, "/v1/entropy/alerts")["items"] == []
    assert get(server, "/v1/sessions/ses-loop")["severity"] == "warning"
    assert "Open the ledger" not in json.dumps(get(server, "/v1/audit/tenant", limit=1000))


@pytest.mark.req(62, 68, 70, 71, 86, 88)
def test_a_warning_colours_the_node_and_tells_nobody_s181(server: Server) -> None:
    send(server, *(step("ses-files", agent="reader") for _ in range(2)))
    assert get(server, "/v1/sessions/ses-files")["severity"] == "normal"  # two files in a row
    assert get(server, "/v1/agents/reader")["state"] == "active"
    # What the interceptor refuses is not scored.
    assert server.send(step("ses-files", action={"status": "nonsense"})).status_code == 422
    send(server, *(step("ses-files", agent="reader") for _ in range(2)))
    session = get(server, "/v1/sessions/ses-files")
    assert (session["severity"], session["entropy_score"]) == ("warning", 0.25)
    assert get(server, "/v1/agents/reader")["state"] == "blocked"
    assert received(server, "entropy_alert", "entropy_warning") == []
    assert get(server, "/v1/entropy/alerts")["items"] == []
    send(server, *(step("ses-files", f"Open file {n}", "reader") for n in range(5)))
    assert get(server, "/v1/sessions/ses-files")["entropy_score"] == 1.0
    assert get(server, "/v1/agents/reader")["state"] == "active"


@pytest.mark.req(59, 81, 82, 83)
def test_the_computed_score_is_shown_and_a_wrong_report_is_told_of_once_s185_s186(server: Server) -> None:
    bodies = [
        step("ses-gap", f"Look at {n}", cognition={"intent": f"Look at {n}", "entropy_score": 0.05})
        for n in range(4)
    ]
    answers = send(server, *bodies)
    (event,) = received(server, "entropy_discrepancy")
    assert (event["entropy_score"], event["reported_entropy_score"]) == ("1", "0.05")
    assert event["message_sequence_number"] == answers[2]["sequence_number"]
    for body, sent in zip(bodies, answers, strict=True):
        shown = get(server, f"/v1/messages/{sent['message_id']}")["message"]["cognition"]
        assert (shown["entropy_score"], shown["reported_entropy_score"]) == (1.0, 0.05)
        raw = server.http("viewer").get(f"/v1/messages/{sent['message_id']}", params={"raw": True}).content
        assert json.loads(raw) == body
    (omitted, bare) = send(server, step("ses-gap"), step("ses-gap", cognition=None))
    shown = get(server, f"/v1/messages/{omitted['message_id']}")["message"]["cognition"]
    assert (shown["entropy_score"], shown["reported_entropy_score"]) == (1.0, None)
    assert get(server, f"/v1/messages/{bare['message_id']}")["message"]["cognition"] is None


@pytest.mark.req(93, 94)
def test_settings_are_read_at_run_time_and_refused_when_they_cannot_be_meant_s187(server: Server) -> None:
    before = get(server, "/v1/settings/detectors")
    assert (before["window"], before["loop_below"], before["warning_up_to"]) == (5, 0.25, 0.5)
    assert before["updated_by"] is None
    send(server, *(step("ses-set") for _ in range(3)))
    door = server.http("operator")
    bad = door.put("/v1/settings/detectors", json={"window": 99, "loop_below": 0.8, "nonsense": 1})
    assert bad.status_code == 422 and bad.json()["reason"] == "bad_settings"
    assert [fault["path"] for fault in bad.json()["faults"]] == ["window", "$", "loop_below"]
    assert get(server, "/v1/settings/detectors") == before
    wrong: tuple[Any, ...] = ([], "x", 5)
    for body in wrong:
        assert door.put("/v1/settings/detectors", json=body).status_code in (400, 422)
    good = door.put("/v1/settings/detectors", json={"window": 4, "loop_below": 0.3})
    assert good.status_code == 200 and good.json()["window"] == 4 and good.json()["updated_by"]
    assert received(server, "entropy_alert") == []
    send(server, step("ses-set"))
    (alert,) = received(server, "entropy_alert")
    assert (alert["window_size"], alert["entropy_score"]) == (4, "0.25")
    (changed,) = received(server, "setting_changed")
    assert changed["changed"] == ["window", "loop_below"] and changed["after"]["loop_below"] == "0.3"
    assert server.http("viewer").put("/v1/settings/detectors", json={"window": 5}).status_code == 403


def test_the_terminal_shows_and_sets_them_s187(server: Server) -> None:
    assert "window\t5" in done(server, "detectors")
    done(server, "detectors", "set", "window=6", "loops.rounds=7", "stuck_s=900")
    shown = answer(server, "detectors")
    assert (shown["window"], shown["loops"]["rounds"], shown["stuck_s"]) == (6, 7, 900)
    assert "window: must be an integer from 2 to 50" in refused(server, "detectors", "set", "window=1")
    assert "name=value" in refused(server, "detectors", "set", "window", code=2)
    done(server, "detectors", "set", "window=default")
    assert answer(server, "detectors")["window"] == 5


@pytest.mark.req(87)
def test_a_kill_in_the_middle_of_a_window_loses_none_of_it_s180(either_fresh_server: Server) -> None:
    server = either_fresh_server
    send(server, *(step("ses-kill") for _ in range(3)))
    server.restart(kill=True)
    send(server, step("ses-kill"))
    assert get(server, "/v1/sessions/ses-kill")["entropy_score"] == 0.25
    server.restart(kill=True)
    send(server, step("ses-kill"))
    (alert,) = get(server, "/v1/entropy/alerts")["items"]
    assert (alert["occurrence_count"], alert["entropy_score"]) == (5, 0.2)
    assert server.http().post("/v1/audit/verify", json={}).json()["valid"]


def test_a_session_that_stands_still_is_listed_s294_s295_s296(server: Server) -> None:
    pending = {"tool_call": "wait", "status": "pending"}
    send(
        server,
        step("ses-silent", agent="quiet"),
        step("ses-ended", control={"is_terminal": True}),
        step("ses-pending", agent="waiter", action=pending),
    )
    assert get(server, "/v1/sessions/stuck")["items"] == []
    put = server.http("operator").put("/v1/settings/detectors", json={"stuck_s": 1})
    assert put.status_code == 200

    def stuck() -> dict[str, str]:
        # Others go on in the session of the one that waits.
        send(server, step("ses-pending", str(uuid.uuid4()), "other"))
        items = get(server, "/v1/sessions/stuck")["items"]
        return {item["session_id"]: item["stuck_reason"] for item in items}

    wanted = {"ses-silent": "silent", "ses-pending": "pending"}
    until(lambda: stuck() == wanted)
    listed = {one["session_id"]: one["stuck"] for one in get(server, "/v1/sessions")["items"]}
    assert listed == {"ses-silent": True, "ses-ended": False, "ses-pending": True}
    only = [one["session_id"] for one in get(server, "/v1/sessions", stuck=True)["items"]]
    assert sorted(only) == sorted(wanted)
    first = get(server, "/v1/sessions/stuck", limit=1)
    second = get(server, "/v1/sessions/stuck", limit=1, cursor=first["next_cursor"])
    assert {first["items"][0]["session_id"], second["items"][0]["session_id"]} == set(wanted)
    assert get(server, "/v1/sessions/ses-silent")["stuck_since"] is not None
    send(server, step("ses-pending", agent="waiter"), step("ses-silent", agent="quiet"))
    assert get(server, "/v1/sessions/stuck")["items"] == []


@pytest.mark.req(90)
def test_the_second_detector_stands_beside_the_ratio_s188_s189(either_analysed_server: Server) -> None:
    """A-B-A-B… is a warning to the ratio and a loop to the other; the panel is given both."""
    server = either_analysed_server
    with live(server, TOPIC) as reader:
        for number in range(20):
            send(server, step("ses-pair", ("Read the page", "Load it again")[number % 2], "pair"))
        heard, _ = take(reader, 1)
    assert heard[0]["event_type"] == "loop_detected" and heard[0]["agent_id"] == "pair"
    session = get(server, "/v1/sessions/ses-pair")
    assert session["severity"] == "warning" and session["loop_detected_at"] is not None
    (alert,) = get(server, "/v1/entropy/alerts")["items"]
    assert (alert["event_type"], alert["session_id"]) == ("loop_detected", "ses-pair")
    assert alert["detector"] != "ratio" and alert["reason"]
    assert alert["repeated_pattern"]["intent"] in ("Read the page", "Load it again")
    assert get(server, "/v1/agents/pair")["state"] == "alert_entropy"
    server.restart(kill=True)
    assert len(received(server, "loop_detected")) == 1
    assert [one["event_type"] for one in get(server, "/v1/entropy/alerts")["items"]] == ["loop_detected"]


def test_each_agents_loop_is_listed_and_only_its_own_end_clears_it_s189(either_tenant: Tenant) -> None:
    """Two agents go in circles in one session; one stops, and the other's alarm stays."""

    def looping() -> list[str]:
        items = get(either_tenant, "/v1/entropy/alerts")["items"]
        return sorted(item["agent_id"] for item in items if item["event_type"] == "loop_detected")

    for number in range(20):
        intent = ("Read the page", "Load it again")[number % 2]
        send(either_tenant, *(step("ses-two", f"{intent} {agent}", agent) for agent in ("one", "two")))
    until(lambda: looping() == ["one", "two"])
    for agent in ("one", "two"):
        assert get(either_tenant, f"/v1/agents/{agent}")["state"] == "alert_entropy"
    for number, word in enumerate(
        ["apple", "bridge", "candle", "desert", "engine", "forest", "garden", "harbour", "island"] * 2
    ):
        fresh = {"tool_call": f"{word}_{number}", "status": "success"}
        send(either_tenant, step("ses-two", f"{word} {uuid.uuid4()}", "two", action=fresh))
    until(lambda: looping() == ["one"])
    assert get(either_tenant, "/v1/sessions/ses-two")["loop_detected_at"] is not None


def test_an_import_has_the_same_scores_alarms_and_settings_s180_s187(
    fresh_server: Server, tmp_path: Path
) -> None:
    def portrait(server: Server) -> list[Any]:
        settings = get(server, "/v1/settings/detectors")
        alerts = get(server, "/v1/entropy/alerts")["items"]
        sessions = [
            {name: one[name] for name in ("session_id", "severity", "entropy_score", "messages")}
            for one in get(server, "/v1/sessions")["items"]
        ]
        messages = [one["message"] for one in get(server, "/v1/messages", limit=1000)["items"]]
        return [settings, alerts, sessions, messages]

    first = fresh_server
    send(first, *(step("ses-a") for _ in range(3)))
    asked = {"window": 4, "loop_below": 0.3, "loops": {"on": False}}
    assert first.http("operator").put("/v1/settings/detectors", json=asked).status_code == 200
    send(first, *(step("ses-a") for _ in range(3)))
    wrong = {"entropy_score": 0.1}
    send(first, *(step("ses-b", cognition={"intent": str(n)} | wrong) for n in range(4)))
    before = portrait(first)
    assert len(before[1]) == 1 and received(first, "entropy_discrepancy")
    first.stop()
    out = tmp_path / "trail.jsonl"
    assert observatory("export", "--data", str(first.folder), "--out", str(out)).returncode == 0
    run = observatory("import", "--in", str(out), "--data", str(tmp_path / "new"))
    assert run.returncode == 0, run.stderr
    with Server(tmp_path / "new", environment=ALONE) as second:
        assert portrait(second) == before
        send(second, step("ses-a"))  # and it goes on: no second alert, the count grows
        assert get(second, "/v1/entropy/alerts")["items"][0]["occurrence_count"] == (
            before[1][0]["occurrence_count"] + 1
        )
        assert len(received(second, "entropy_alert")) == 1


@pytest.mark.req(84)
def test_scoring_is_the_least_of_what_a_message_costs(lone: Server, server: Tenant) -> None:
    """A ratio, never a time: the gateway's own CPU for steps that are scored beside as many that are not, at
    the same length and whatever tongue they speak. Fifteen hundred steps of one session each time."""
    process, least = psutil.Process(lone.pid), dict.fromkeys((True, False), math.inf)
    for number in range(3):
        for is_scored in least:
            session, why = f"cost-{is_scored}-{number}", "台帳を開く" * 40
            unscored: Json = {"cognition": None, "action": {"status": "failure", "tool_output_summary": why}}
            more: Json = {"cognition": {"intent": why}} if is_scored else unscored
            lines = [json.dumps(step(session, **more)).encode() for _ in range(1_500)]
            before = process.cpu_times()
            answers = server.send_lines(lines)
            after = process.cpu_times()
            assert {one["code"] for one in answers} == {202}
            spent = after.user + after.system - before.user - before.system
            least[is_scored] = min(least[is_scored], spent)
            (last,) = get(server, "/v1/messages", session_id=session, limit=1)["items"]
            assert (last["message"].get("cognition") or {}).get("entropy_score") == (
                0.2 if is_scored else None
            )
    assert least[True] < 2 * least[False], least
