"""The second loop detector over both databases: what it finds in the record, however that was folded."""

from __future__ import annotations

import gc
import json
import tracemalloc
from typing import Any

import msgspec
import pytest

from observatory.derived.seen import Fold
from observatory.features.loops import commands as detectors
from observatory.features.loops.fold import KEPT, SESSION, WATCH, LoopFold, _push
from observatory.features.loops.second_detector import LoopWatch
from observatory.features.sessions.fold_lines import SessionLines
from observatory.pipeline.state import HOME_TENANT
from observatory.protocol.decision_log import DecisionLog
from observatory.protocol.tenant_config import LoopSettings
from observatory.runtime.fold_memory import IDLE_S
from tests.contract.analysis import Analyst
from tests.contract.conftest import Harness
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
def test_a_loop_is_found_when_it_begins_and_when_it_ends(harness: Harness) -> None:
    """S192, S194, S196: names the sub-detector, holds no payload text, and looks per agent."""
    for number in range(8):
        harness.send(log(number), log(number, "beta", tool_input=f'{{"path": "{number}"}}', status="success"))
    with Analyst(harness) as analyst:
        analyst.catch_up()
        assert found(analyst) == [("loop_detected", "alpha")]
        (row,) = analyst.table("insight_findings")
        body = json.loads(row["body"])
        assert body["detector"] == "fingerprint" and body["period"] == 1 and body["tool"] == "fetch"
        assert "swordfish" not in row["body"] and "/rates" not in row["body"]
        harness.send(log(8, status="success", tool_output_summary="1.08"))
        analyst.catch_up()
        assert found(analyst) == [("loop_detected", "alpha"), ("loop_ended", "alpha")]


@pytest.mark.parametrize("page", [1, 3, 500])
def test_whoever_stops_and_starts_again_finds_the_same(harness: Harness, page: int) -> None:
    """S196: each round is a process of its own, in pages of any size."""
    with Analyst(harness) as analyst:
        for number in range(17):
            harness.send(
                log(number), log(number, "beta", tool_input=f'{{"path": "{number}"}}', status="success")
            )
            if number == 9:
                harness.send(log(90, status="success", tool_output_summary="1.08"))
            analyst.catch_up(page)
        received = rows(analyst)
        assert [kind for kind, _, _ in received] == ["loop_detected", "loop_ended", "loop_detected"]
        harness.read(analyst.derived.restart(HOME_TENANT))
        analyst.catch_up()
        assert rows(analyst)[-len(received) :] == received  # a finding's number only grows


def test_a_child_that_is_new_to_the_session_is_progress(harness: Harness) -> None:
    """S193: whoever sets others to work with the same words each time is not stuck."""
    same = {"tool_call": "delegate", "tool_input": '{"task": "read"}', "status": "success"}
    with Analyst(harness) as analyst:
        for number in range(9):
            harness.send(log(number, "boss", **same, tool_output_summary="accepted"))
            harness.send(log(0, f"worker-{number}", parent=f"boss-{number}"))
            analyst.catch_up()
        assert found(analyst) == []


def test_the_operators_knob_reaches_the_detector(harness: Harness) -> None:
    """S195: a tool on the allow-list is left alone; the setting is read at run time."""
    knob = {"loops": {"polling_tools": ["fetch"]}}
    act(harness, detectors.change(person(harness), knob, harness.now()))
    with Analyst(harness) as analyst:
        for number in range(8):
            harness.send(log(number))
        analyst.catch_up()
        assert found(analyst) == []


def test_memory_is_bounded_and_what_was_dropped_is_read_again(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S196: with room for one agent only, three that go round are found all the same."""
    monkeypatch.setattr("observatory.features.loops.fold.KEPT", 1)
    monkeypatch.setattr("observatory.features.loops.fold.KNOWN", 1)
    with Analyst(harness) as analyst:
        fold = LoopFold(analyst.derived, harness.store)
        for number in range(6):
            for agent in ("alpha", "beta", "gamma"):
                harness.send(log(number, agent))
                analyst.catch_up(folds=[SessionLines(analyst.derived, analyst.derived), fold])
        assert sorted(found(analyst)) == [("loop_detected", name) for name in ("alpha", "beta", "gamma")]
        assert len(fold._watches) <= 1 and len(fold._crowds) <= 1


def test_what_is_counted_as_kept_is_what_is_kept(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """S196: steps are counted, not agents, for a long watch weighs as much as many short ones."""
    monkeypatch.setattr("observatory.features.loops.fold.KEPT", 60)
    with Analyst(harness) as analyst:
        fold = LoopFold(analyst.derived, harness.store)
        for number in range(24):
            harness.send(log(number), log(number, f"agent-{number}", tool_input=f"page {number}"))
            analyst.catch_up(3, folds=[SessionLines(analyst.derived, analyst.derived), fold])
            assert fold._kept == sum(len(one) + WATCH for one in fold._watches.values())
            assert fold._known == sum(len(one) + SESSION for one in fold._crowds.values())
        assert len(fold._watches) > 5, "of the short ones many fit"
        assert ("loop_detected", "alpha") in found(analyst)


def test_what_the_detector_keeps_takes_the_memory_that_its_bound_says_s1201() -> None:
    """Of many agents with a few steps each and of few with many; the folds of an hour took 400 MB."""
    for agents, many in ((400, 2), (30, 40)):
        logs = [
            [
                heard(log(number, f"agent-{agent}", tool_input=f"page {agent} {number}"))
                for number in range(many)
            ]
            for agent in range(agents)
        ]
        kept_of(logs)  # what is remembered of texts is bounded by itself
        gc.collect()
        tracemalloc.start()
        try:
            watches = kept_of(logs)
            taken = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        weight = sum(len(watch) + WATCH for watch in watches)
        assert taken < 1_500 * weight
        assert 1_500 * KEPT < 40_000_000


def test_the_detector_forgets_sessions_that_fell_silent_and_knows_them_when_they_go_on_s1201(
    harness: Harness,
) -> None:
    clock = Ticking()
    with Analyst(harness) as analyst:
        fold = LoopFold(analyst.derived, harness.store, clock)
        folds: list[Fold] = [SessionLines(analyst.derived, analyst.derived), fold]
        for number in range(5):
            harness.send(log(number))
        analyst.catch_up(folds=folds)
        assert len(fold._watches) == len(fold._crowds) == 1
        for _ in range(2):
            clock.now += IDLE_S
            harness.send(decision_log(meta={"session_id": "another"}))
            analyst.catch_up(folds=folds)
        assert [key[1] for key in fold._watches] == [key[1] for key in fold._crowds] == ["another"]
        assert fold._kept == len(next(iter(fold._watches.values()))) + WATCH
        harness.send(log(5))
        analyst.catch_up(folds=folds)
        assert ("loop_detected", "alpha") in found(analyst), "the six rounds are one loop"


def kept_of(logs: list[list[DecisionLog]]) -> list[LoopWatch]:
    watches = [LoopWatch() for _ in logs]
    for watch, steps in zip(watches, logs, strict=True):
        for seq, step in enumerate(steps):
            _push(watch, seq, step, None, LoopSettings())
    return watches


def heard(body: dict[str, Any]) -> DecisionLog:
    return msgspec.json.decode(json.dumps(body), type=DecisionLog)


class Ticking:
    now = 0.0

    def __call__(self) -> float:
        return self.now
