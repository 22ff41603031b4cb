"""CrewAI's crews through its own hooks: every kickoff is seen, held, corrected and ended as our own are."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from crewai import Agent, Crew, Process, Task
from crewai.hooks.dispatch import HookAborted

from observatory.sdk import Delivery
from observatory.sdk.errors import NotSupported
from observatory.sdk.integrations import crewai as adapter
from observatory.sdk.integrations.course import Course, Usage
from observatory.sdk.integrations.crewai import Observer
from observatory.sdk.integrations.crewai_runs import slug
from tests.crewai.scripted import Scripted, Till, crew_of
from tests.flows.sdk_harness import PATIENCE_S, Json, SdkHarness, aside, until

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
AT_ONCE = Delivery(linger_s=0)
dispatch = importlib.import_module("crewai.hooks.dispatch")  # the package names a function so
PAY = ("pay_invoice", {"number": 5, "amount": 1200})


@pytest.fixture
def observer(harness: SdkHarness) -> Iterator[Observer]:
    with Observer(cost=priced, delivery=AT_ONCE, **harness.credentials()) as watching:
        yield watching


def priced(usage: Usage) -> float | None:
    return None if usage.total_tokens is None else usage.total_tokens * 0.02


@pytest.fixture(params=[True, False], ids=["native", "react"])
def llm(request: pytest.FixtureRequest) -> Scripted:
    """CrewAI has two ways to call tools: the model's own, and by text."""
    return Scripted(model="pocket-1", native=request.param)


def steps(harness: SdkHarness, session: str | None) -> list[Json]:
    items = harness.server.http().get("/v1/messages", params={"session_id": session, "limit": 1000}).json()
    return [one["message"] | {"state": one["state"]} for one in reversed(items["items"])]


def intent(step: Json) -> str:
    return str(step["cognition"]["intent"])


@pytest.mark.req(504)
def test_a_kickoff_is_a_session_and_its_agents_are_ours_s926(
    harness: SdkHarness, observer: Observer, llm: Scripted
) -> None:
    """S926: agents, tasks in their order, tools with their outcome, tokens where they are told."""
    till = Till()
    llm.script(("read_invoices", {}), ("break_down", {}), "it broke", PAY, "all is paid")
    crew = crew_of(llm, till, "Chief Auditor", "Cashier")
    assert crew.kickoff().raw == "all is paid"
    found = until(lambda: said if len(said := steps(harness, observer.session_id)) >= 16 else [])
    assert {one["identity"]["agent_id"] for one in found} == {"chief-auditor", "cashier"}
    assert {one["identity"]["model"] for one in found} == {"pocket-1"}
    ids = {one["meta"]["step_id"]: n for n, one in enumerate(found)}
    roots = [one for one in found if one["meta"]["parent_step_id"] is None]
    assert [intent(one) for one in roots] == ["Begin: task 0"]
    assert all(ids[one["meta"]["parent_step_id"]] < n for n, one in enumerate(found) if n), "causes first"
    by = {intent(one): one for one in found}
    assert by["Begin: task 1"]["meta"]["parent_step_id"] == by["Finish: task 0"]["meta"]["step_id"]
    assert by["Called read_invoices"]["action"]["tool_output_summary"] == "invoice 5 is over 1200"
    failed = by["Failed to call break_down"]
    assert (
        failed["action"]["status"] == "failure" and "printer burns" in failed["action"]["tool_output_summary"]
    )
    turns = [one for one in found if one["state_delta"].get("tokens_consumed")]
    assert [one["state_delta"]["tokens_consumed"] for one in turns] == [42] * 5
    assert {one["state_delta"]["cost"] for one in turns} == {0.84}
    assert found[-1]["control"]["is_terminal"] and intent(found[-1]) == "Finish the crew's work"

    # A model that does not count its tokens: unknown, not zero; a second kickoff is a second session.
    quiet, first = Scripted(model="mute-1", counts=False).script("done"), observer.session_id
    crew_of(quiet, till, "Cashier").kickoff()
    assert observer.session_id != first
    found = until(lambda: said if len(said := steps(harness, observer.session_id)) >= 4 else [])
    (turn,) = [one for one in found if intent(one) == "Answered"]
    assert turn["identity"]["model"] == "mute-1"
    assert not {"tokens_consumed", "cost"} & set(turn["state_delta"])


def test_tasks_beside_each_other_fork_and_join_and_a_failure_is_said_s926(
    harness: SdkHarness, observer: Observer
) -> None:
    """S926: two tasks at once, a third that names both; a model that fails, and the crew with it."""
    till, llms = Till(), [Scripted(model=f"pocket-{n}") for n in range(3)]
    llms[0].script(("read_invoices", {}), "a")
    llms[1].script(PAY, "b")
    llms[2].script("c")
    agents = [
        Agent(role=f"Fork {n}", goal="g", backstory="b", llm=llm, tools=till.tools)
        for n, llm in enumerate(llms)
    ]
    one, two = (
        Task(description=f"side {n}", expected_output="w", agent=agents[n], async_execution=True)
        for n in (0, 1)
    )
    last = Task(description="join", expected_output="w", agent=agents[2], context=[one, two])
    assert Crew(agents=agents, tasks=[one, two, last]).kickoff().raw == "c"
    found = until(lambda: said if len(said := steps(harness, observer.session_id)) >= 16 else [])
    by = {intent(one): one["meta"] for one in found}
    ends = {by[f"Finish: side {n}"]["step_id"] for n in (0, 1)}
    assert set(by["Begin: join"]["parent_step_ids"]) == ends
    assert by["Begin: side 0"]["parent_step_id"] is by["Begin: side 1"]["parent_step_id"] is None

    llm = Scripted(model="pocket-1", counts=False).script(RuntimeError("no quota"))
    with pytest.raises(RuntimeError, match="no quota"):
        crew_of(llm, till, "Unlucky").kickoff()
    found = until(lambda: said if len(said := steps(harness, observer.session_id)) >= 3 else [])
    assert [intent(one) for one in found[1:]] == ["Failed to ask the model", "Give up the crew's work"]
    assert all(one["action"]["status"] == "failure" for one in found[1:])
    assert "no quota" in found[1]["action"]["tool_output_summary"]


@pytest.mark.req(97, 187)
def test_a_pause_blocks_and_what_was_injected_arrives_s927(
    harness: SdkHarness, observer: Observer, llm: Scripted
) -> None:
    """S927: paused while a tool runs, it asks neither model nor tool; resumed, the model reads the prompt."""
    till, role = Till(), f"Pausing {llm.native}"
    harness.name = slug(role)
    till.may_read.clear()
    llm.script(("read_invoices", {}), PAY, "done")
    done = aside(crew_of(llm, till, role).kickoff)
    assert till.is_reading.wait(PATIENCE_S)
    harness.do("pause", observer.session_id)
    until(lambda: not harness.inbox())  # acknowledged: it holds
    till.may_read.set()
    until(lambda: "Called read_invoices" in harness.intents())
    harness.do("inject", observer.session_id, prompt="Invoice 5 is a copy.")
    assert not done.done() and till.paid == ["read"] and len(llm.asked) == 1
    harness.do("unpause", observer.session_id)
    assert done.result(PATIENCE_S).raw == "done"
    assert till.paid == ["read", (5, 1200)]
    assert "Invoice 5 is a copy." in llm.said_to_it(1) and "Invoice 5 is a copy." not in llm.said_to_it(0)


def edited(harness: SdkHarness, held: Json, **tool_input: Any) -> Json:
    new: Json = harness.server.http().get(f"/v1/messages/{held['message_id']}").json()["message"]
    new["action"]["tool_input"] = json.dumps(tool_input)
    return new


@pytest.mark.req(99, 188, 190)
def test_a_person_approves_edits_or_rejects_a_tool_s928(
    harness: SdkHarness, observer: Observer, llm: Scripted
) -> None:
    """S928: by a rule of the gateway; what was edited is what runs, and why it may not reaches the model."""
    till, role = Till(), f"Ruled {llm.native}"
    harness.name = slug(role)
    llm.script(PAY, PAY, ("read_invoices", {}), "done")
    done = aside(crew_of(llm, till, role).kickoff)
    held = harness.held()
    assert till.paid == [] and not done.done()
    new = edited(harness, held, number=5, amount=12)
    harness.do("edit", held["session_id"], message_id=held["message_id"], new_content=new)
    held = until(lambda: [one for one in harness.holds() if one["message_id"] != held["message_id"]])[0]
    assert till.paid == [(5, 12)], "what was edited ran, and nothing else"
    harness.do("reject", held["session_id"], message_id=held["message_id"], note="it is a copy of 4")
    assert done.result(PATIENCE_S).raw == "done"
    assert till.paid == [(5, 12), "read"]
    assert "paid 12 for invoice 5" in llm.said_to_it(1)
    assert "a person rejected it" in llm.said_to_it(2) and "it is a copy of 4" in llm.said_to_it(2)


def test_the_adapters_own_list_asks_and_siblings_do_not_wait_s928(harness: SdkHarness) -> None:
    """S928: of two calls at once one asks, the other runs; without the gateway the one is refused."""
    till, role = Till(), "Asker"
    harness.name = slug(role)
    llm = Scripted(model="pocket-1").script([PAY, ("read_invoices", {})], "done")
    with Observer(needs_approval="pay_*", delivery=AT_ONCE, **harness.credentials()):
        done = aside(crew_of(llm, till, role).kickoff)
        held = harness.held()
        until(lambda: till.paid == ["read"])
        harness.do("approve", held["session_id"], message_id=held["message_id"])
        assert done.result(PATIENCE_S).raw == "done"
        assert till.paid == ["read", (5, 1200)]
        with pytest.raises(NotSupported, match="close it first"):
            Observer(**harness.credentials())

    away: Json = {
        "url": "http://127.0.0.1:9",
        "key": harness.server.key("agent"),
        "data": harness.home / "away",
    }
    llm.script([PAY, ("read_invoices", {})], "done")
    till.paid.clear()
    till.tools[0].name = "Pay Invoice"  # which CrewAI's hooks know as `pay_invoice`
    with Observer(needs_approval=["Pay Inv*"], timeout=0.2, delivery=AT_ONCE, **away) as watching:
        assert crew_of(llm, till, "Absent").kickoff().raw == "done"
        assert till.paid == ["read"], "telemetry fails open, a gate closed"
        assert "no verdict was received" in llm.said_to_it()
        watching.close(0)


def test_what_a_person_approved_runs_once_though_it_fails_s928(harness: SdkHarness, llm: Scripted) -> None:
    """S928: CrewAI tries a tool that failed again, behind one hook; one approval is of one run."""
    till, role = Till(), f"Breaker {llm.native}"
    harness.name = slug(role)
    llm.script(("break_down", {}), "done")
    with Observer(needs_approval="break_down", delivery=AT_ONCE, **harness.credentials()):
        done = aside(crew_of(llm, till, role).kickoff)
        held = harness.held()
        harness.do("approve", held["session_id"], message_id=held["message_id"])
        assert done.result(PATIENCE_S).raw == "done"
    assert till.paid == ["broke"] and "printer burns" in llm.said_to_it(1)


@pytest.mark.req(192)
def test_who_ends_an_agents_work_ends_the_crew_s929(
    harness: SdkHarness, observer: Observer, llm: Scripted
) -> None:
    """S929: nothing more is asked or run, also of those who come after; the kickoff says why."""
    till, role = Till(), f"Ending {llm.native}"
    harness.name = slug(role)
    till.may_read.clear()
    llm.script(("read_invoices", {}), PAY, "done", PAY, "done")
    done = aside(crew_of(llm, till, role, "Successor").kickoff)
    assert till.is_reading.wait(PATIENCE_S)
    harness.do("cancel", observer.session_id, note="enough for today")
    until(lambda: not harness.inbox())
    till.may_read.set()
    with pytest.raises(HookAborted, match="enough for today"):
        done.result(PATIENCE_S)
    assert till.paid == ["read"] and len(llm.asked) == 1
    last = until(
        lambda: [one for one in steps(harness, observer.session_id) if one["control"]["is_terminal"]]
    )[0]
    assert (
        last["action"]["status"] == "failure" and "enough for today" in last["action"]["tool_output_summary"]
    )


def test_what_a_coworker_does_follows_from_the_call_that_delegated_it_s926(
    harness: SdkHarness, observer: Observer
) -> None:
    """S926: a manager's crew; the coworker's steps are children of the delegation, and it returns to them."""
    llm, till = Scripted(model="pocket-1"), Till()
    ask = {"task": "count", "context": "now", "coworker": "Counter"}
    llm.script(("delegate_work_to_coworker", ask), ("read_invoices", {}), "counted", "managed")
    worker = Agent(role="Counter", goal="g", backstory="b", llm=llm, tools=till.tools, max_retry_limit=0)
    task = Task(description="manage", expected_output="a word")
    crew = Crew(agents=[worker], tasks=[task], process=Process.hierarchical, manager_llm=llm, verbose=False)
    assert crew.kickoff().raw == "managed"
    found = until(lambda: said if len(said := steps(harness, observer.session_id)) >= 11 else [])
    (asked,) = [one for one in found if intent(one) == "Call delegate_work_to_coworker"]
    theirs = [one for one in found if one["identity"]["agent_id"] == "counter"]
    assert theirs[0]["meta"]["parent_step_id"] == asked["meta"]["step_id"]
    (back,) = [one for one in found if intent(one) == "Called delegate_work_to_coworker"]
    parents = {back["meta"]["parent_step_id"], *back["meta"].get("parent_step_ids", ())}
    assert theirs[-1]["meta"]["step_id"] in parents
    assert back["identity"]["agent_id"] != "counter"


def test_a_crewai_whose_hooks_changed_is_refused_and_a_broken_gate_is_closed_s930(
    harness: SdkHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """S930: a sentence at the import, nothing hooked; a gate that fails lets nothing through."""
    name = adapter.__name__
    with monkeypatch.context() as changed:
        changed.delitem(sys.modules, name)
        changed.delattr(dispatch, "register")
        with pytest.raises(NotSupported, match=r"has no crewai\.hooks\.dispatch\.register.*no hook was set"):
            importlib.import_module(name)
    llm, till = Scripted(model="pocket-1").script(PAY, "done"), Till()

    def broken(*given: Any, **more: Any) -> Any:
        raise RuntimeError("broken")

    with Observer(delivery=AT_ONCE, **harness.credentials()) as watching:
        monkeypatch.setattr(Course, "begin", broken)
        assert crew_of(llm, till, "Broken").kickoff().raw == "done"
        assert till.paid == [] and "its gate failed" in llm.said_to_it()
        assert "a tool call was blocked" in caplog.text
        monkeypatch.undo()
        # What only observes may fail; the crew goes on.
        monkeypatch.setattr(Course, "said", broken)
        assert crew_of(llm.script(PAY, "done"), till, "Mute").kickoff().raw == "done"
        assert till.paid == [(5, 1200)] and "was not recorded" in caplog.text
        assert watching.session_id
    assert not any(dispatch.get_hooks(point) for point in dispatch.InterceptionPoint), (
        "nothing is left behind"
    )
