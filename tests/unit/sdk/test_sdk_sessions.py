"""Sessions, parents, forks, joins and costs: what the SDK keeps so that the agent need not."""

import asyncio
import contextvars
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from observatory import Agent, AsyncAgent
from observatory.sdk import NotAnswered, Outbox, Rejected
from tests.unit.sdk.sdk_gateway import PATIENCE_S, QUICK, FakeGateway


@pytest.fixture
def outbox(gateway: FakeGateway, tmp_path: Path) -> Iterator[Outbox]:
    one = Outbox("mesh", gateway.credentials(tmp_path), QUICK)
    yield one
    one.close()


def received(gateway: FakeGateway, outbox: Outbox) -> dict[str, dict[str, Any]]:
    """What arrived, by intent."""
    assert outbox.flush(PATIENCE_S)
    assert not outbox.rejections
    return {log["cognition"]["intent"]: log for log in gateway.logs}


def parents(log: dict[str, Any]) -> list[str]:
    meta = log["meta"]
    return meta.get("parent_step_ids") or ([meta["parent_step_id"]] if meta["parent_step_id"] else [])


def test_each_step_has_the_one_before_as_parent_and_each_session_its_own_trace(
    gateway: FakeGateway, outbox: Outbox
) -> None:
    agent = Agent(
        "researcher-1", agent_type="web_researcher", cluster="eu", model="m", provider="p", outbox=outbox
    )
    home = agent.step("home")
    with agent.session() as first:
        one, two = first.step("one"), agent.step("two")
    with agent.session(session_id="ses_mine") as second:
        three = agent.step("three", terminal=True)
    four = agent.step("four")
    logs = received(gateway, outbox)
    assert parents(logs["one"]) == []
    assert parents(logs["two"]) == [one.step_id]
    assert parents(logs["four"]) == [home.step_id]
    assert one.session_id == two.session_id == logs["one"]["meta"]["trace_id"] == first.trace_id
    assert three.session_id == second.session_id == "ses_mine"
    assert four.session_id == home.session_id
    assert logs["three"]["control"]["is_terminal"]
    assert logs["one"]["identity"]["model"] == "m"
    assert logs["one"]["meta"]["cluster_id"] == "eu"


def test_branches_share_the_fork_point_and_a_join_names_them_all(
    gateway: FakeGateway, outbox: Outbox
) -> None:
    agent = Agent("planner", outbox=outbox)
    with agent.session() as s:
        plan = s.step("plan")
        left, right, idle = s.fork(), s.fork(), s.fork()
        left.step("left")
        l2, r = left.step("left 2"), right.step("right")
        s.join(left, right, idle)
        merged = s.step("merged")
        s.step("after")
    logs = received(gateway, outbox)
    assert parents(logs["left"]) == parents(logs["right"]) == [plan.step_id]
    assert parents(logs["merged"]) == [l2.step_id, r.step_id]
    assert logs["merged"]["meta"]["parent_step_id"] == l2.step_id
    assert parents(logs["after"]) == [merged.step_id]


def test_a_line_that_went_on_itself_is_a_parent_of_its_join_too(gateway: FakeGateway, outbox: Outbox) -> None:
    s = Agent("planner", outbox=outbox).session()
    s.step("plan")
    branch = s.fork()
    child, own = branch.step("child"), s.step("own")
    s.join(branch).step("merged")
    assert parents(received(gateway, outbox)["merged"]) == [own.step_id, child.step_id]


def test_lines_of_two_sessions_cannot_be_joined(outbox: Outbox) -> None:
    agent = Agent("planner", outbox=outbox)
    with pytest.raises(ValueError, match="handoff"):
        agent.session().join(agent.session())


def test_another_agent_goes_on_by_handoff_or_by_context(gateway: FakeGateway, outbox: Outbox) -> None:
    planner, writer = Agent("planner", outbox=outbox), Agent("writer", outbox=outbox)
    with planner.session() as s:
        plan = s.step("plan", recipient="writer")
        inside = writer.step("called in the planner's session")
        carried = s.handoff()
    s2 = writer.session(continues=carried)
    s2.step("carried on elsewhere")
    logs = received(gateway, outbox)
    assert parents(logs["called in the planner's session"]) == [plan.step_id]
    assert parents(logs["carried on elsewhere"]) == [inside.step_id]
    assert logs["carried on elsewhere"]["identity"]["agent_id"] == "writer"
    assert logs["carried on elsewhere"]["meta"]["trace_id"] == s.trace_id
    assert logs["plan"]["identity"]["recipient"] == "writer"


def test_a_thread_goes_on_in_the_session_whose_context_it_is_given(
    gateway: FakeGateway, outbox: Outbox
) -> None:
    agent = Agent("worker", outbox=outbox)
    with agent.session() as s:
        context = contextvars.copy_context()
        for run in (lambda: context.run(agent.step, "inside"), lambda: agent.step("outside")):
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
    logs = received(gateway, outbox)
    assert logs["inside"]["meta"]["session_id"] == s.session_id
    assert logs["outside"]["meta"]["session_id"] != s.session_id


def test_cumulative_cost_is_kept_for_each_agent_and_session(gateway: FakeGateway, outbox: Outbox) -> None:
    a, b = Agent("a", outbox=outbox), Agent("b", outbox=outbox)
    with a.session() as s:
        a.step("free")
        a.step("a1", cost=0.1)
        b.step("b1", cost=Decimal("0.5"))  # type: ignore[arg-type]
        s.fork().step("a2", cost=0.2)
        a.step("a3")
    a.step("elsewhere", cost=1)
    totals = {
        k: v["state_delta"].get("cumulative_session_cost") for k, v in received(gateway, outbox).items()
    }
    assert totals == {"free": None, "a1": 0.1, "b1": 0.5, "a2": 0.3, "a3": 0.3, "elsewhere": 1.0}


def test_a_tool_call_is_timed_and_its_failure_recorded_and_passed_on(
    gateway: FakeGateway, outbox: Outbox
) -> None:
    agent = Agent("worker", outbox=outbox)
    with agent.session() as s:
        with s.tool("serp_search", {"q": "NVDA"}, intent="Search") as call:
            call.output = "3 hits"
            call.fields["cost"] = 0.01
        with pytest.raises(LookupError), agent.tool("sec_edgar"):
            raise LookupError("no such filing")
    logs = received(gateway, outbox)
    assert logs["Search"]["action"]["tool_output_summary"] == "3 hits"
    assert logs["Search"]["action"]["duration_ms"] >= 0
    failed = logs["Call sec_edgar"]
    assert failed["action"]["status"] == "failure"
    assert failed["action"]["tool_output_summary"] == "LookupError: no such filing"
    assert parents(failed) == [logs["Search"]["meta"]["step_id"]]


@pytest.mark.parametrize(
    "said",
    [
        {"tool_input": {"at": object(), "when": Decimal("1.5")}},
        {"reasoning_chain": "one string"},
        {"tool_input": {("odd", "key"): 1}},
    ],
)
def test_odd_values_are_written_somehow(said: dict[str, Any], gateway: FakeGateway, outbox: Outbox) -> None:
    Agent("a", outbox=outbox).step("odd", **said)
    assert "odd" in received(gateway, outbox)


@pytest.mark.parametrize(
    "said",
    [{"cost": "cheap"}, {"tool_output_summary": "\ud800"}, {"tokens_consumed": object()}],
)
def test_what_the_wire_forbids_is_refused_by_the_gateway_not_raised_in_the_agent(
    said: dict[str, Any], gateway: FakeGateway, outbox: Outbox
) -> None:
    step = Agent("a", outbox=outbox).step("bad", **said)
    with pytest.raises(Rejected):
        step.answer(PATIENCE_S)


def test_an_unknown_argument_is_an_error_at_the_call_and_says_nothing(
    gateway: FakeGateway, outbox: Outbox
) -> None:
    agent = Agent("a", outbox=outbox)
    with pytest.raises(TypeError, match="confidense"):
        agent.step("typo", confidense=1)  # type: ignore[call-arg]
    agent.step("fine")
    assert parents(received(gateway, outbox)["fine"]) == []


@pytest.mark.parametrize("body", ["", " ", "{}\n{}", b"{\r}"])
def test_a_raw_message_is_one_line(body: str | bytes, outbox: Outbox) -> None:
    with pytest.raises(ValueError, match="one line"):
        Agent("a", outbox=outbox).raw(body)


def test_the_async_agent_says_the_same(gateway: FakeGateway, tmp_path: Path) -> None:
    async def life() -> None:
        outbox = Outbox("async-1", gateway.credentials(tmp_path), QUICK)
        agent = AsyncAgent("async-1", outbox=outbox)
        async with agent.session() as s:
            plan = await agent.step("plan", cost=0.5)
            lines = [s.fork() for _ in range(3)]

            async def child(n: int) -> None:
                async with lines[n], lines[n].tool("fetch", {"n": n}, intent=f"fetch {n}"):
                    await agent.step(f"child {n}")

            await asyncio.gather(*(child(n) for n in range(3)))
            merged = await s.join(*lines).step("merged")
        assert (await plan.answer(PATIENCE_S)).step_id == plan.step_id
        assert await agent.flush(PATIENCE_S)
        assert (await merged.answer()).accepted
        with pytest.raises(Rejected):
            await (await agent.raw({})).answer(PATIENCE_S)
        gateway.stop()
        silent = await agent.step("nobody hears this")
        with pytest.raises(NotAnswered):
            await silent.answer(0.01)
        closing = asyncio.create_task(silent.answer())
        await asyncio.to_thread(outbox.close)
        with pytest.raises(NotAnswered):
            await closing

    asyncio.run(life())
    logs = {log["cognition"]["intent"]: log for log in gateway.logs}
    plan_id = logs["plan"]["meta"]["step_id"]
    assert [parents(logs[f"child {n}"]) for n in range(3)] == [[plan_id]] * 3
    assert parents(logs["merged"]) == [logs[f"fetch {n}"]["meta"]["step_id"] for n in range(3)]
