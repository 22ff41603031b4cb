"""The second loop detector as a pure thing: what is the same, what is progress, when loops begin and end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observatory.features.loops import tokenizer as wording
from observatory.features.loops.call_fingerprint import StepFingerprint, fingerprint, fingerprint_of
from observatory.features.loops.second_detector import WINDOW, LoopVerdict, LoopWatch
from observatory.protocol.tenant_config import LoopOverride, LoopSettings
from tests.samples import decision_log

RULES = LoopSettings()


def step(
    tool: str | None = "fetch",
    given_: Any = None,
    output: str | None = "403 Forbidden",
    status: str = "failure",
    intent: str | None = "Fetch the rates",
    reasoning: list[str] | None = None,
    facts: list[str] | None = None,
) -> StepFingerprint:
    asked = given_ if isinstance(given_, str) else json.dumps(given_ if given_ is not None else {"page": 1})
    return fingerprint(intent, reasoning, tool, asked if tool else None, output, status, facts)


def run(steps: list[StepFingerprint], rules: LoopSettings = RULES) -> list[tuple[int, LoopVerdict]]:
    watch = LoopWatch()
    said = [(number, watch.push(number, one, rules)) for number, one in enumerate(steps)]
    return [(number, verdict) for number, verdict in said if verdict is not None]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"url": "/a", "request_id": "1"}, {"request_id": "2", "url": "/a"}),
        (
            {"url": "/a", "timestamp": "2026-11-16T01:02:03Z"},
            {"url": "/a", "timestamp": "2026-11-16T09:02:03Z"},
        ),
        ({"url": "/a", "meta": {"nonce": "8f"}}, {"url": "/a", "meta": {"nonce": "9e", "attempt": 4}}),
        (
            {"url": "/a", "ref": "0f8fad5b-d9cb-469f-a165-70867728950e"},
            {"url": "/a", "ref": "7c9e6679-7425-40de-944b-e07fc1f90ae7"},
        ),
        ('{"a": 1, ts: 1790000001', '{"a": 1, ts: 1790000944'),
        ({"url": "https://x/a?id=4&ts=1"}, {"url": "https://x/a?id=4&ts=2"}),
    ],
)
def test_s190_what_changes_with_every_call_is_no_part_of_its_fingerprint(left: Any, right: Any) -> None:
    assert step(given_=left).call == step(given_=right).call


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"path": "a.py"}, {"path": "b.py"}),
        ({"page": 1}, {"page": 2}),
        (
            {"document_id": "0f8fad5b-d9cb-469f-a165-70867728950e"},
            {"document_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7"},
        ),
        ({"since": "2026-11-16T01:00:00Z"}, {"since": "2026-11-16T02:00:00Z"}),
        ({"date": "2026-11-15"}, {"date": "2026-11-16"}),
        ({"text": "x " * 2_000 + "a"}, {"text": "x " * 2_000 + "b"}),
    ],
)
def test_s190_what_names_another_item_is_another_call(left: Any, right: Any) -> None:
    assert step(given_=left).call != step(given_=right).call


def test_s190_another_tool_or_outcome_is_another_fingerprint() -> None:
    assert step("fetch").call != step("store").call
    assert step(output="403").outcome != step(output="404").outcome
    assert step(status="success").outcome != step(status="failure").outcome
    assert step(output="failed after 20 ms").outcome == step(output="failed after 31 ms").outcome


def test_s191_words_count_not_their_order_or_endings() -> None:
    one = wording.tokenize("searching for the invoices of March").words
    assert wording.likeness(one, wording.tokenize("search March invoice").words) == 1.0
    assert wording.likeness(one, wording.tokenize("deploy the new gateway").words) == 0.0


@settings(deadline=None)
@given(st.text(max_size=400), st.text(max_size=400), st.sampled_from(["success", "failure", "pending"]))
def test_s191_any_text_can_be_read_and_reads_the_same_twice(intent: str, given_: str, status: str) -> None:
    first = fingerprint(intent, [given_], "tool", given_, intent, status, [intent])
    wording.clear_cache()
    assert fingerprint(intent, [given_], "tool", given_, intent, status, [intent]) == first


def test_s191_of_a_huge_payload_only_a_part_is_read() -> None:
    """What lies beyond the first words of an intent or a reasoning chain changes nothing."""
    filler = "word " * 20_000
    one = fingerprint(
        filler, [filler] * 100, "t", json.dumps({"x": filler}), filler, "success", [filler] * 100
    )
    other = fingerprint(
        filler + "a", [filler] * 200, "t", json.dumps({"x": filler}), filler, "success", [filler] * 200
    )
    assert one == other
    assert len(one.facts) <= 8


CYCLES = {1: "a" * 6, 2: "ab" * 4, 3: "abc" * 4, 4: "abcd" * 4}


@pytest.mark.parametrize(("period", "letters"), CYCLES.items())
def test_s192_a_cycle_of_one_to_four_calls_is_found_with_its_period(period: int, letters: str) -> None:
    said = run([step(f"tool_{letter}", output=f"{letter} failed") for letter in letters])
    assert [(verdict.kind, verdict.detector, verdict.period) for _, verdict in said] == [
        ("detected", "fingerprint", period)
    ]
    assert said[0][1].occurrences >= 4


def test_s192_four_times_the_same_is_no_loop_yet() -> None:
    assert run([step() for _ in range(4)]) == []
    assert [number for number, _ in run([step() for _ in range(9)])] == [4]


def test_s192_a_failing_call_in_other_words_is_found_by_similarity() -> None:
    asks = [
        "tax rounding total",
        "total tax rounding",
        "rounding of the total tax",
        "tax total: rounding?",
    ] * 2
    said = run([step("search", {"query": ask}, "no results", "failure", f"Find {ask}") for ask in asks])
    assert said[0][1].detector == "similarity"


def test_s192_thoughts_that_go_round_are_found_as_a_monologue() -> None:
    thoughts = ["I should decide on the plan", "Now decide on the plan", "The plan: I should decide"] * 3
    said = run([step(None, output=None, status="success", intent=thought) for thought in thoughts])
    assert said[0][1].detector == "monologue"


def test_s192_the_verdict_holds_no_text_of_the_steps() -> None:
    said = run([step("fetch", {"secret": "swordfish"}, "swordfish is wrong", intent="try swordfish")] * 6)
    assert said and "swordfish" not in repr(said)


@pytest.mark.parametrize(
    "steps",
    [
        [step(given_={"path": f"{n}.py"}, output="ok", status="success") for n in range(12)],
        [step(given_={"page": n}, output="50 rows", status="success") for n in range(12)],
        [step(output=f"{n * 7} of 100 files", status="pending") for n in range(12)],
        [step(output=f"{40 - n * 3} tests failed") for n in range(12)],
        [step(output="ok", status="success", facts=[f"User {n} lives in street {n}"]) for n in range(12)],
    ],
    ids=["many files", "pagination", "figures that rise", "figures that fall", "new facts"],
)
def test_s193_progress_argues_against_a_loop(steps: list[StepFingerprint]) -> None:
    assert run(steps) == []


def test_s193_a_new_child_is_progress() -> None:
    watch = LoopWatch()
    same = step("delegate", {"task": "read"}, "accepted", "success")
    assert all(watch.push(number, same, RULES, child=True) is None for number in range(12))


def test_s193_the_same_fact_again_or_a_note_of_the_failure_is_none() -> None:
    notes = ["export failed with 403", "the export failed again: 403", "403, export failed (attempt 3)"] * 3
    assert run([step(facts=[note]) for note in notes])


def test_s194_a_loop_ends_with_progress() -> None:
    said = run([step()] * 6 + [step(output="1.08", status="success")])
    assert [verdict.kind for _, verdict in said] == ["detected", "ended"]


def test_s194_a_loop_ends_when_the_pattern_is_broken_for_some_steps_not_for_one() -> None:
    other = [step(f"other_{n}", {"path": f"{n}"}, f"found {word}", "success") for n, word in enumerate("xyz")]
    assert [verdict.kind for _, verdict in run([step()] * 6 + other[:1] + [step()] * 3)] == ["detected"]
    said = run([step()] * 6 + other)
    assert [(number, verdict.kind) for number, verdict in said] == [(4, "detected"), (8, "ended")]


def test_s194_after_it_ended_the_same_loop_is_told_of_again() -> None:
    rounds = [step()] * 6 + [step(output="1.08", status="success")]
    assert [verdict.kind for _, verdict in run(rounds * 2)] == ["detected", "ended"] * 2


def test_s195_a_polling_tool_may_be_called_as_often_as_it_likes() -> None:
    same = [step("deploy_status", output="waiting", status="pending")] * 30
    assert run(same)
    assert run(same, LoopSettings(polling_tools=("deploy_status",))) == []
    assert run(same, LoopSettings(polling_tools=("deploy_*",))) == []


def test_s195_an_agent_and_a_type_of_agents_may_have_rules_of_their_own() -> None:
    agents = {"type:crawler": LoopOverride(rounds=8), "agt_1": LoopOverride(on=False)}
    rules = LoopSettings(agents=agents)
    assert rules.for_agent("agt_2", "writer") == rules
    assert rules.for_agent("agt_2", "crawler").rounds == 8
    assert rules.for_agent("agt_1", "crawler").on is False
    assert run([step()] * 9, rules.for_agent("agt_2", "crawler"))[0][0] == 7
    assert run([step()] * 9, rules.for_agent("agt_1", None)) == []


def test_s195_switching_the_detector_off_ends_what_it_found() -> None:
    watch = LoopWatch()
    for number in range(6):
        watch.push(number, step(), RULES)
    ended = watch.push(7, step(), LoopSettings(on=False))
    assert ended is not None and ended.kind == "ended"


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from("aabcdxyz"), max_size=120))
def test_s196_a_new_watch_over_the_last_steps_stands_where_the_old_one_does(letters: list[str]) -> None:
    steps = [
        step(f"tool_{one}", {"n": number if one in "xyz" else 0}, f"{one} failed")
        for number, one in enumerate(letters)
    ]
    old, new = LoopWatch(), LoopWatch()
    for number, one in enumerate(steps):
        old.push(number, one, RULES)
    for number, one in list(enumerate(steps))[-3 * WINDOW :]:
        new.push(number, one, RULES)
    assert (old.active is None) == (new.active is None)


def test_a_log_without_cognition_or_content_is_a_step_all_the_same_or_none() -> None:
    import msgspec

    from observatory.protocol.decision_log import DecisionLog

    log = msgspec.convert(decision_log(), DecisionLog)
    assert fingerprint_of(log, None) is not None
    assert fingerprint_of(None, None) is None
