"""Courses by their keys, and messages that were dealt with before they came."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from observatory import Agent
from observatory.sdk import Approval, Received, gate
from observatory.sdk.integrations import course as courses
from observatory.sdk.integrations import wording
from observatory.sdk.integrations.course import Courses, Terms, Usage
from observatory.sdk.orders import Orders
from observatory.sdk.waiting import Waits


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    one = Agent("alone", url="http://127.0.0.1:9", key="k", data=tmp_path, control=False)
    yield one
    one.close(0)


def test_a_thread_is_a_session_and_a_run_inside_another_goes_on_its_line_s901(agent: Agent) -> None:
    known = Courses(agent)
    assert known.enter("invoice-7") == "invoice-7"
    first = known.of("invoice-7")
    assert known.of("invoice-7") is first and first.session_id == "invoice-7"
    assert known.enter() != known.enter(), "a run without a thread is a session of its own"
    with agent.session(session_id="outer") as outer:
        key = known.enter("invoice-7")
        inner = known.of(key)
        assert inner.line is outer and known.enter("invoice-7") != key
    assert known.of("invoice-7") is first
    assert Courses(agent).of(key).session_id == "outer", "in another process it is still that session"


def test_only_so_many_conversations_are_remembered_s901(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courses, "MAX_COURSES", 2)
    known = Courses(agent)
    first, second = known.of("a"), known.of("b")
    assert known.of("a") is first
    known.of("c")
    assert known.of("a") is first and known.of("b") is not second


@pytest.mark.parametrize(
    ("tool", "asks"), [("pay_invoice", True), ("mcp__bank__pay", False), ("Write", True), ("write", False)]
)
def test_tools_that_ask_are_named_or_meant_by_a_glob_s899(tool: str, asks: bool) -> None:
    assert Terms(needs_approval=["pay_*", "Write"]).asks(tool) is asks


def test_a_price_is_asked_for_with_what_is_known_s900(agent: Agent) -> None:
    asked: list[Usage] = []

    def price(used: Usage) -> float | None:
        asked.append(used)
        return None if used.total_tokens is None else used.total_tokens * 0.5

    course = courses.Course(agent, terms=Terms(cost=price))
    course.thought(Usage("m", 1, 2, 3), ["read"])
    course.thought(Usage(), (), "words")
    assert [used.total_tokens for used in asked] == [3, None]
    assert course.line._shared.costs == {"alone": 1.5}, "a call whose tokens are not known adds nothing"


def message(step_id: str) -> Received:
    received = {"meta": {"step_id": step_id}}
    return Received(f"dlv_{step_id}", "message", session_id="s", message=received)


def test_a_message_dealt_with_in_this_process_counts_as_read_whenever_it_comes_s906() -> None:
    orders = Orders("alone")
    orders.take(message("before"))
    orders.take(message("other"))
    orders.settle_message("s", "before")
    orders.settle_message("s", "after")
    orders.take(message("after"))
    assert [one.delivery_id for one in orders.take_messages()] == ["dlv_other"]
    assert orders.take_acks() == ["dlv_before", "dlv_after", "dlv_other"]
    orders.take(message("after"))
    assert not orders.has_messages, "delivered again, it is known"


def test_one_name_is_a_list_of_one_and_a_generator_gates_more_than_once_s899() -> None:
    assert Terms(needs_approval="pay").asks("pay") and not Terms(needs_approval="pay").asks("p")
    drawn = Terms(needs_approval=(one for one in ["read", "pay"]))
    assert drawn.asks("pay") and drawn.asks("read") and drawn.asks("pay")


def test_a_price_list_that_fails_keeps_no_agent_from_its_work_s900(agent: Agent) -> None:
    course = courses.Course(agent, terms=Terms(cost=lambda used: used.total_tokens * 0.5))  # type: ignore[operator]
    course.thought(Usage(), (), "words")
    assert course.line._shared.costs == {}


HUGE = {"text": "x" * 300_000}


@pytest.mark.parametrize(
    ("args", "given", "runs"),
    [
        ({"day": {3}}, {"day": [3]}, {"day": {3}}),
        (HUGE, wording.bounded_input(HUGE), HUGE),
        (HUGE, {**wording.bounded_input(HUGE), "begins": "y"}, None),
        ({"n": 1}, {"n": 2}, {"n": 2}),
        ({"n": 1}, "2", None),
    ],
    ids=["left alone", "too large, left alone", "too large, edited as shown", "edited", "no object"],
)
def test_what_runs_is_what_a_person_edited_or_what_they_left_alone_s899(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, args: object, given: object, runs: object
) -> None:
    def permitted(*_: object) -> Waits[Approval]:
        return Approval(True, "edited", content={}, tool_call="read", tool_input=given)
        yield

    monkeypatch.setattr(gate, "permit", permitted)
    call = courses.Course(agent).begin("read", args)
    assert (call.args, call.refusal is None) == (runs, runs is not None)
    assert call.edited is (runs == {"n": 2})
