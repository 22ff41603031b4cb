"""Reads of cascades over both databases: whole sessions down and up, children abroad, other tenants."""

from __future__ import annotations

from typing import Any

from observatory.features.cascade.cascade import ForwardWalk
from observatory.features.relay import commands as interventions
from observatory.pipeline.state import HOME_TENANT
from tests.contract.analysis import Analyst
from tests.contract.conftest import OTHER_TENANT, Harness
from tests.contract.test_facts import seq
from tests.contract.test_relay import act, person
from tests.samples import decision_log

FACT = "The list price of the blue widget is 0 EUR"


def step(name: str, agent: str, session: str = "s1", **more: Any) -> dict[str, Any]:
    return decision_log(
        meta={
            "session_id": session,
            "step_id": f"{session}-{name}",
            "parent_step_id": None,
            "parent_step_ids": more.get("parents", []),
        },
        identity={"agent_id": agent, "recipient": more.get("to")},
        cognition={"intent": "go on", "reasoning_chain": None},
        action={"tool_input": None, "tool_output_summary": None, "status": more.get("status", "success")},
        state_delta={
            "added_to_memory": more.get("added"),
            "read_from_memory": more.get("read"),
            "cumulative_session_cost": None,
        },
    )


def blast(harness: Harness, analyst: Analyst, number: int) -> tuple[ForwardWalk, set[int]]:
    (spot,) = harness.read(analyst.derived.spots(HOME_TENANT, numbers=[number]))
    cascade = ForwardWalk(spot.seq, spot.session_no)
    while cascade.wanted:
        wanted = set(cascade.wanted)
        cascade.feed(harness.read(analyst.derived.downstream(HOME_TENANT, wanted, 1, 10_000)), wanted)
    return cascade, set(cascade.settle().depth)


def test_a_blast_goes_on_in_other_sessions_and_stays_in_its_tenant_s262(harness: Harness) -> None:
    """S262"""
    harness.create_tenant(OTHER_TENANT)
    with Analyst(harness) as analyst:
        first, child, abroad, reader, apart = seq(
            harness,
            step("a", "alpha", added=[FACT]),
            step("b", "beta", parents=["s1-a"]),
            step("c", "gamma", "s2", parents=["s1/s1-b"]),
            step("d", "alpha", "s3", read=[FACT]),
            step("e", "delta", "s4"),
        )
        harness.send(step("a", "alpha", added=[FACT]), tenant_id=OTHER_TENANT)
        analyst.catch_up()
        _, found = blast(harness, analyst, first)
        assert found == {first, child, abroad, reader} and apart not in found
        derived = analyst.derived
        agents = {row["seq"]: row["agent_no"] for row in analyst.table("insight_steps")}
        homes = {row["seq"]: row["session_no"] for row in analyst.table("insight_steps")}
        everybody = set(agents.values())
        assert harness.read(derived.taken_from(HOME_TENANT, everybody, 1)) == []  # alpha read its own
        pairs = harness.read(harness.store.spoken_in(HOME_TENANT, {agents[first]}, 1))
        assert len(pairs) == 2 and {agent for agent, *_ in pairs} == {agents[first]}
        assert [pair[:2] for pair in pairs] == sorted((agents[one], homes[one]) for one in (first, reader))
        lately = harness.read(harness.store.spoken_in(HOME_TENANT, everybody, reader))
        assert {(agent, place) for agent, place, *_ in lately} == {
            (agents[one], homes[one]) for one in (reader, apart)
        }
        down = harness.read(derived.downstream(HOME_TENANT, {1}, 1, 1))
        assert down.cut and len(down.steps) == 1
        up = harness.read(derived.upstream(HOME_TENANT, {1, 2, 3, 4}, reader, 100))
        assert [row[0] for row in up.steps] == [reader, abroad, child, first]
        assert [(row[0], row[1] >> 18) for row in up.uses] == [(reader, first)]
        assert harness.read(derived.first_since(HOME_TENANT, 0)) == first
        assert harness.read(derived.first_since(HOME_TENANT, 1 << 62)) is None
        assert harness.read(derived.spots(HOME_TENANT, numbers=[10_000])) == []
        assert harness.read(derived.troubles(HOME_TENANT, everybody, 0, 1 << 40)) == []


def test_a_pause_where_an_agent_is_silent_is_told_apart_from_where_it_speaks_s265(harness: Harness) -> None:
    """S265: or whoever was paused in an old session would count as halted in those it reads now."""
    old, new = seq(harness, step("a", "alpha", "old"), step("b", "alpha", "new"))
    act(harness, interventions.pause(person(harness), "old", "alpha", None, harness.now()))
    rows = harness.read(harness.store.rows(HOME_TENANT, "sessions"))
    names = {row["session_no"]: row["session_id"] for row in rows}
    agents = {row["agent_no"] for row in harness.read(harness.store.rows(HOME_TENANT, "agents"))}
    found = harness.read(harness.store.spoken_in(HOME_TENANT, agents, new))
    assert {names[place]: (spoke, paused) for _, place, spoke, paused in found} == {
        "old": (False, True),
        "new": (True, False),
    }
    assert old < new


def test_two_thousand_children_and_a_circle_s264(harness: Harness) -> None:
    """S264, S269"""
    with Analyst(harness) as analyst:
        (root,) = seq(harness, step("root", "alpha"))
        children = seq(harness, *(step(f"n{i}", f"agent-{i % 7}", parents=["s1-root"]) for i in range(2_000)))
        one, two, three = seq(
            harness,
            step("x", "beta", "s2", parents=["s2-z"]),
            step("y", "beta", "s2", parents=["s2-x"]),
            step("z", "beta", "s2", parents=["s2-y"]),
        )
        analyst.catch_up()
        cascade, found = blast(harness, analyst, root)
        assert found == {root, *children}
        assert cascade.settle().depth[children[-1]] == 1
        assert blast(harness, analyst, one)[1] == {one, two, three}
        assert blast(harness, analyst, three)[1] == {three}
