"""The second loop detector over both databases: what it finds in the record, however that was folded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from observatory.daemons.folds.loops import Loops
from observatory.daemons.folds.session_lines import SessionLines
from observatory.gateway import detectors
from observatory.state import HOME_TENANT
from tests.contract.analysis import Analyst
from tests.contract.conftest import House
from tests.contract.test_relay import act, person
from tests.samples import decision_log


def log(number: int, agent: str = "alpha", parent: str | None = None, **action: Any) -> dict[str, Any]:
    done = {"tool_call": "fetch", "tool_input": json.dumps({"url": "/rates", "request_id": str(number)})}
    done |= {"status": "failure", "tool_output_summary": "403 Forbidden"} | action
    return decision_log(
        meta={"session_id": "ses-1", "step_id": f"{agent}-{number}", "parent_step_id": parent},
        identity={"agent_id": agent, "agent_type": "fetcher"},
        cognition={"intent": f"Fetch the rates, {number} swordfish", "reasoning_chain": ["They are due"]},
        action=done,
        state_delta={"added_to_memory": None, "tokens_consumed": 1, "cumulative_session_cost": None},
    )


def found(analyst: Analyst) -> list[tuple[str, str]]:
    return [(row["kind"], row["agent_id"]) for row in analyst.table("insight_findings")]


def rows(analyst: Analyst) -> list[tuple[str, str, int]]:
    return [(row["kind"], row["agent_id"], row["seq"]) for row in analyst.table("insight_findings")]


@pytest.mark.req(53, 85)
def test_a_loop_is_found_when_it_begins_and_when_it_ends(house: House) -> None:
    """S192, S194, S196: names the sub-detector, holds no payload text, and looks per agent."""
    for number in range(8):
        house.send(log(number), log(number, "beta", tool_input=f'{{"path": "{number}"}}', status="success"))
    with Analyst(house) as analyst:
        analyst.catch_up()
        assert found(analyst) == [("loop_detected", "alpha")]
        (row,) = analyst.table("insight_findings")
        body = json.loads(row["body"])
        assert body["detector"] == "fingerprint" and body["period"] == 1 and body["tool"] == "fetch"
        assert "swordfish" not in row["body"] and "/rates" not in row["body"]
        house.send(log(8, status="success", tool_output_summary="1.08"))
        analyst.catch_up()
        assert found(analyst) == [("loop_detected", "alpha"), ("loop_ended", "alpha")]


@pytest.mark.parametrize("page", [1, 3, 500])
def test_whoever_stops_and_starts_again_finds_the_same(house: House, page: int) -> None:
    """S196: each round is a process of its own, in pages of any size."""
    with Analyst(house) as analyst:
        for number in range(17):
            house.send(
                log(number), log(number, "beta", tool_input=f'{{"path": "{number}"}}', status="success")
            )
            if number == 9:
                house.send(log(90, status="success", tool_output_summary="1.08"))
            analyst.catch_up(page)
        told = rows(analyst)
        assert [kind for kind, _, _ in told] == ["loop_detected", "loop_ended", "loop_detected"]
        house.read(analyst.derived.restart(HOME_TENANT))
        analyst.catch_up()
        assert rows(analyst)[-len(told) :] == told  # a finding's number only grows


def test_a_child_that_is_new_to_the_session_is_progress(house: House) -> None:
    """S193: whoever sets others to work with the same words each time is not stuck."""
    same = {"tool_call": "delegate", "tool_input": '{"task": "read"}', "status": "success"}
    with Analyst(house) as analyst:
        for number in range(9):
            house.send(log(number, "boss", **same, tool_output_summary="accepted"))
            house.send(log(0, f"worker-{number}", parent=f"boss-{number}"))
            analyst.catch_up()
        assert found(analyst) == []


def test_the_operators_knob_reaches_the_detector(house: House) -> None:
    """S195: a tool on the allow-list is left alone; the setting is read at run time."""
    knob = {"loops": {"polling_tools": ["fetch"]}}
    act(house, detectors.change(person(house), knob, house.now()))
    with Analyst(house) as analyst:
        for number in range(8):
            house.send(log(number))
        analyst.catch_up()
        assert found(analyst) == []


def test_memory_is_bounded_and_what_was_dropped_is_read_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S196: with room for one agent only, three that go round are found all the same."""
    monkeypatch.setattr("observatory.daemons.folds.loops.KEPT", 1)
    monkeypatch.setattr("observatory.daemons.folds.loops.KNOWN", 1)
    with Analyst(house) as analyst:
        fold = Loops(analyst.derived, house.store)
        for number in range(6):
            for agent in ("alpha", "beta", "gamma"):
                house.send(log(number, agent))
                analyst.catch_up(folds=[SessionLines(analyst.derived), fold])
        assert sorted(found(analyst)) == [("loop_detected", name) for name in ("alpha", "beta", "gamma")]
        assert len(fold._watches) <= 1 and len(fold._crowds) <= 1


def test_what_is_counted_as_kept_is_what_is_kept(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """S196: steps are counted, not agents, for a long watch weighs as much as many short ones."""
    monkeypatch.setattr("observatory.daemons.folds.loops.KEPT", 40)
    with Analyst(house) as analyst:
        fold = Loops(analyst.derived, house.store)
        for number in range(24):
            house.send(log(number), log(number, f"agent-{number}", tool_input=f"page {number}"))
            analyst.catch_up(3, folds=[SessionLines(analyst.derived), fold])
            assert fold._kept == sum(len(one) + 1 for one in fold._watches.values())
            assert fold._known == sum(len(one) + 1 for one in fold._crowds.values())
        assert len(fold._watches) > 5, "of the short ones many fit"
        assert ("loop_detected", "alpha") in found(analyst)
