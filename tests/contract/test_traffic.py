"""Minute counters over both databases: each message once, edges when both ends are known, in any batches."""

from __future__ import annotations

import random
import uuid
from typing import Any

import pytest

from observatory.features.fleet.types_traffic import Dimension
from observatory.features.relay import commands as interventions
from observatory.pipeline.state import HOME_TENANT, Breach
from tests.contract.analysis import Analyst
from tests.contract.conftest import House
from tests.contract.test_analyst import mixed_record
from tests.contract.test_relay import AGENT, SESSION, act, approve, pause, person, rewritten, said, unpause
from tests.samples import decision_log, envelope

MINUTES = (
    "insight_agent_minutes",
    "insight_session_minutes",
    "insight_edge_minutes",
    "insight_label_minutes",
)


def spoken(step: str, agent: str, *parents: str, status: str = "success", **more: Any) -> dict[str, Any]:
    delta = {"added_to_memory": None, "tokens_consumed": 10, "cumulative_session_cost": None}
    return decision_log(
        meta={
            "session_id": more.get("session", "ses-1"),
            "step_id": step,
            "parent_step_id": parents[0] if parents else None,
            "parent_step_ids": list(parents[1:]),
            "cluster_id": more.get("cluster", "aws-eu-central-1"),
        },
        identity={
            "agent_id": agent,
            "agent_type": f"type-{agent}",
            "recipient": more.get("to"),
            "model": "m-1",
        },
        action={"status": status, "tool_call": more.get("tool", "search")},
        state_delta=delta | more.get("delta", {}),
    )


def numbers(house: House) -> dict[str, int]:
    return {row["agent_id"]: row["agent_no"] for row in house.read(house.store.rows(HOME_TENANT, "agents"))}


def summed(rows: list[dict[str, Any]], *keys: str) -> dict[Any, dict[str, float]]:
    """Over all minutes: a test may run across the end of one."""
    found: dict[Any, dict[str, float]] = {}
    for row in rows:
        mine = found.setdefault(tuple(row[key] for key in keys), {})
        for name, value in row.items():
            if name not in (*keys, "tenant_id", "minute"):
                mine[name] = round(mine.get(name, 0) + value, 9)
    return found


def test_each_message_counts_once_for_its_agent_session_and_labels_s225(house: House) -> None:
    house.send(spoken("1", "alpha", delta={"cumulative_session_cost": 1.0}))
    house.send(spoken("2", "alpha", "1", status="failure", delta={"cumulative_session_cost": 1.5}))
    house.send(spoken("3", "beta", "2", tool="write", delta={"cost": 0.25}))
    house.send(envelope("text"))
    with Analyst(house) as analyst:
        analyst.catch_up()
        agents = summed(analyst.table("insight_agent_minutes"), "agent_no")
        sessions = summed(analyst.table("insight_session_minutes"), "session_no")
        labels = summed(analyst.table("insight_label_minutes"), "kind", "label")
    at = numbers(house)
    assert agents[at["alpha"],] == {
        "messages": 2, "failures": 1, "violations": 0, "alerts": 0, "tokens": 20, "cost": 1.5
    }  # fmt: skip
    assert agents[at["beta"],]["cost"] == 0.25
    assert sum(row["messages"] for row in sessions.values()) == 4
    assert sum(row["cost"] for row in sessions.values()) == 1.75
    assert labels["tool", "search"]["cost"] == 1.5 and labels["tool", "write"]["cost"] == 0.25
    assert labels["type", "type-beta"]["messages"] == 1 and labels["model", "m-1"]["tokens"] == 30
    for kind in ("cluster", "type", "tool", "model"):
        rows = [row for (of, _), row in labels.items() if of == kind]
        assert (sum(row["messages"] for row in rows), sum(row["cost"] for row in rows)) == (4, 1.75)


def test_violations_count_for_who_is_named_and_held_messages_once_s225(house: House) -> None:
    hashed = "sha256:" + "0" * 64
    for name in ("ghost", None):
        house.submit(Breach(house.admin(), house.now(), name, None, "action: missing", hashed, None))
    house.send(said("first"))
    pause(house)
    house.send(said("held"))
    body = said("held") | {"state_delta": {"cumulative_session_cost": 99.0, "tokens_consumed": 5}}
    message = rewritten(house, "held", body)
    act(house, interventions.rewrite(person(house), SESSION, AGENT, "held", message, house.now()))
    unpause(house)
    house.send(said("gate", hitl=True))
    approve(house, "gate")
    with Analyst(house) as analyst:
        analyst.catch_up(page=2)
        agents = summed(analyst.table("insight_agent_minutes"), "agent_no")
    at = numbers(house)
    assert agents[at["ghost"],] == {
        "messages": 0, "failures": 0, "violations": 1, "alerts": 0, "tokens": 0, "cost": 0
    }  # fmt: skip
    assert agents[at[AGENT],]["messages"] == 3
    assert agents[0,]["violations"] == 1  # nobody could be named


def edges(analyst: Analyst, at: dict[str, int]) -> dict[tuple[str, str, str], tuple[float, float, bool]]:
    """(from, to, kind) → messages, failures, whether it took any time."""
    names = {number: name for name, number in at.items()}
    rows = summed(analyst.table("insight_edge_minutes"), "from_no", "to_no", "kind")
    return {
        (names[key[0]], names[key[1]], key[2]): (row["messages"], row["failures"], row["latency_ms"] > 0)
        for key, row in rows.items()
    }


@pytest.mark.parametrize("page", [1, 2, 500])
def test_an_edge_counts_when_the_later_of_its_steps_is_known_s227(house: House, page: int) -> None:
    """S227: once for each parent, whichever came first; not within one agent, nor to an unknown parent."""
    house.send(spoken("a1", "alpha"))
    house.send(spoken("b1", "beta", "a1"))
    house.send(spoken("b2", "beta", "b1"))  # the same agent
    house.send(spoken("c1", "gamma", "b1", "a1"))  # two parents
    house.send(spoken("d1", "delta", "late", status="failure"))  # before its parent
    house.send(spoken("e1", "epsilon", "never"))
    house.send(spoken("late", "alpha"))
    house.send(spoken("f1", "gamma", "late"))
    with Analyst(house) as analyst:
        analyst.catch_up(page=page)
        found = edges(analyst, numbers(house))
    assert found == {
        ("alpha", "beta", "causal"): (1, 0, True),
        ("beta", "gamma", "causal"): (1, 0, True),
        ("alpha", "gamma", "causal"): (2, 0, True),
        ("alpha", "delta", "causal"): (1, 1, False),  # the child came first: no time passed
    }


def test_an_address_makes_an_edge_of_its_own_and_a_span_one_of_its_parent_s227(house: House) -> None:
    house.send(spoken("b1", "beta"))
    house.send(spoken("a1", "alpha", to="beta"))
    house.send(spoken("a2", "alpha", "a1", to="nobody-yet"))
    first = envelope("text", metadata={"session_id": "ses-2"})
    answer = envelope(
        "text",
        metadata={"session_id": "ses-2"},
        parent_span_id=first["span_id"],
        sender={"entity_id": f"agt_{uuid.uuid4()}", "entity_type": "agent"},
    )
    house.send(first, answer)
    with Analyst(house) as analyst:
        analyst.catch_up(page=3)
        found = edges(analyst, numbers(house))
    assert found.pop(("alpha", "beta", "message")) == (1, 0, False)
    ((pair, counts),) = found.items()
    assert (pair[2], counts[:2]) == ("causal", (1, 0))


@pytest.mark.parametrize("seed", range(3))
def test_any_batches_give_the_same_minutes_s225(house: House, seed: int) -> None:
    """S225, S226: with holds, rewrites, violations, parents that come late and figures that fall."""
    dice = random.Random(seed)
    mixed_record(house, seed, 25)
    for number in range(30):
        parent = f"x-{seed}-{dice.randrange(35)}"
        house.send(
            spoken(
                f"x-{seed}-{number}",
                f"agent-{dice.randrange(4)}",
                parent,
                status=dice.choice(("success", "failure")),
                delta={"cumulative_session_cost": round(dice.random(), 3)},
            )
        )
    with Analyst(house) as analyst:
        analyst.catch_up(page=dice.choice((1, 3, 7)))
        small = analyst.everything()
        house.read(analyst.derived.restart(HOME_TENANT))
        analyst.catch_up(page=500)
        whole = analyst.everything()
    for name in (*MINUTES, "insight_gaps"):
        assert whole[name] and small[name] == whole[name], name


def test_a_figure_that_falls_or_differs_is_a_gap_s241(house: House) -> None:
    told: list[dict[str, float]] = [
        {"cumulative_session_cost": 1.0},
        {"cumulative_session_cost": 0.4},  # fell
        {"cumulative_session_cost": 0.9},
        {"cumulative_session_cost": 2.0, "cost": 0.1},  # by its own account 1.0
        {"cost": 0.5},
        {"cumulative_session_cost": 2.5},
    ]
    for number, delta in enumerate(told):
        house.send(spoken(f"{number}", "alpha", delta=delta))
    house.send(spoken("other", "beta", session="ses-2", delta={"cumulative_session_cost": -1.0}))
    with Analyst(house) as analyst:
        analyst.catch_up(page=2)
        derived = analyst.derived
        found = house.read(derived.cost_gaps(HOME_TENANT, None, 10))
        first = house.read(derived.cost_gaps(HOME_TENANT, found[1].seq, 10))
        mine = house.read(derived.cost_gaps(HOME_TENANT, None, 10, agent_no=numbers(house)["alpha"]))
        total = house.read(derived.spent_in_all(HOME_TENANT, 0, 1 << 40))
    assert [(gap.kind, round(gap.reported, 6), round(gap.gap, 6)) for gap in found] == [
        ("fell", -1.0, -1.0),
        ("differs", 2.0, 1.0),
        ("fell", 0.4, -0.6),
    ]
    assert first == found[2:] and mine == found[1:]
    # By the steps' own account and the gaps together it is what was reported: 2.5 and -1. Counted was the
    # growth of the figure where that was more: 1.0 of 1.1 in the fourth step.
    assert round(total.cost - 1.0 + sum(gap.gap for gap in found), 6) == 1.5


DIMENSIONS: tuple[Dimension, ...] = ("agent", "session", "cluster", "type", "tool", "model")


def test_spending_by_every_dimension_adds_up_and_pages_s235(house: House) -> None:
    dice = random.Random(7)
    for number in range(40):
        agent, session = f"agent-{dice.randrange(5)}", f"ses-{dice.randrange(6)}"
        delta = {"cost": dice.choice((0.5, 0.25, 1.0))}
        cluster, tool = f"cluster-{dice.randrange(3)}", dice.choice(("search", "write", "run"))
        house.send(spoken(f"{number}", agent, session=session, cluster=cluster, tool=tool, delta=delta))
    with Analyst(house) as analyst:
        analyst.catch_up()
        derived = analyst.derived
        total = house.read(derived.spent_in_all(HOME_TENANT, 0, 1 << 40))
        assert total.messages == 40 and total.cost > 0
        for by in DIMENSIONS:
            whole = house.read(derived.spent_by(HOME_TENANT, by, 0, 1 << 40, 100))
            assert (sum(row.messages for row in whole), round(sum(row.cost for row in whole), 9)) == (
                40,
                round(total.cost, 9),
            )
            assert [row.cost for row in whole] == sorted((row.cost for row in whole), reverse=True)
            paged, after = [], None
            while page := house.read(derived.spent_by(HOME_TENANT, by, 0, 1 << 40, 2, after)):
                paged += page
                after = (page[-1].cost, page[-1].key)
            assert paged == whole, by
            cells = house.read(derived.cells(HOME_TENANT, by, [row.key for row in whole], 0, 1 << 40, 60))
            assert round(sum(cost for _, _, cost in cells), 9) == round(total.cost, 9)
        columns = house.read(derived.column_sums(HOME_TENANT, 0, 1 << 40, 60))
        assert round(sum(columns.values()), 9) == round(total.cost, 9)
        first = house.read(derived.spent_by(HOME_TENANT, "session", 0, 1 << 40, 1))[0]
        assert isinstance(first.key, int)
        together = house.read(derived.spent_together(HOME_TENANT, 0, session_no=first.key))
        assert round(sum(cost for _, _, cost in together), 9) == round(first.cost, 9)


def test_forks_are_steps_several_name_as_their_parent_s231(house: House) -> None:
    house.send(spoken("root", "alpha"))
    for number in range(4):
        house.send(spoken(f"child-{number}", f"worker-{number % 3}", "root"))
    house.send(spoken("only", "alpha", "child-0"))
    with Analyst(house) as analyst:
        analyst.catch_up()
        (fork,) = house.read(analyst.derived.forks(HOME_TENANT, 0, 1 << 62, 10))
        assert house.read(analyst.derived.forks(HOME_TENANT, 0, 1, 10)) == []
    at = numbers(house)
    assert (fork.agent_no, fork.children) == (at["alpha"], 4)
    assert set(fork.child_agents) == {at["worker-0"], at["worker-1"], at["worker-2"]}


def test_who_is_halted_is_read_with_its_cause_s226(house: House) -> None:
    house.send(said("first"))
    assert house.read(house.store.halted(HOME_TENANT, 10)) == []
    house.send(said("gate", hitl=True))
    pause(house)
    house.send(said("held"))
    found = {row.cause: row for row in house.read(house.store.halted(HOME_TENANT, 10))}
    number = numbers(house)[AGENT]
    assert {row.agent_no for row in found.values()} == {number}
    assert found["paused"].session_id == SESSION and found["gate"].messages == 1


def test_tokens_nobody_can_have_used_do_not_stop_the_count_s225(house: House) -> None:
    """The protocol lets a step claim 2^53 - 1: sums of that do not fit into 64 bits for long."""
    claim = {"tokens_consumed": 2**53 - 1}
    house.send(*(spoken(f"{number}", "a", delta=claim) for number in range(3)))
    with Analyst(house) as analyst:
        analyst.catch_up()
        assert [row["tokens"] for row in analyst.table("insight_steps")] == [10**9] * 3
        for name in ("insight_agent_minutes", "insight_session_minutes"):
            assert sum(row["tokens"] for row in analyst.table(name)) == 3 * 10**9
        labels = summed(analyst.table("insight_label_minutes"), "kind", "label")
        assert labels["model", "m-1"]["tokens"] == 3 * 10**9
