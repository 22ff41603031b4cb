"""What leads from one session into another, over both databases, whatever came first and in any batches."""

from __future__ import annotations

import random
from typing import Any

import pytest

from observatory.pipeline.state import HOME_TENANT
from tests.contract.analysis import Analyst
from tests.contract.conftest import OTHER_TENANT, Harness
from tests.contract.test_cascade import FACT, step
from tests.samples import envelope

A, B = "a" * 16, "b" * 16


def text(session: str, span: str, above: str | None = None) -> dict[str, Any]:
    return envelope("text", span_id=span, parent_span_id=above, metadata={"session_id": session})


def crossed(harness: Harness, analyst: Analyst, tenant_id: str = HOME_TENANT) -> set[tuple[str, str, str]]:
    """(from, to, kind) by the names of sessions."""
    rows = harness.read(harness.store.rows(tenant_id, "sessions"))
    names = {row["session_no"]: row["session_id"] for row in rows}
    return {
        (names[row["from_no"]], names[row["session_no"]], row["kind"])
        for row in analyst.table("insight_crossings", tenant_id)
    }


@pytest.mark.parametrize("page", [1, 2, 500])
def test_a_link_into_another_session_is_a_crossing_whichever_end_came_first_s937(
    harness: Harness, page: int
) -> None:
    """S937: by name and by span; a link within a session, and one to a step nobody knows, are none."""
    harness.send(
        step("a", "alpha", "s1"),
        step("b", "beta", "s1", parents=["s1-a"]),
        step("c", "gamma", "s2", parents=["s1/s1-b", "s4/s4-late", "s9/never"]),
        text("e1", "c" * 16, A),
        text("e2", A),
        text("e2", "d" * 16, A),
        text("e3", A, B),
        text("e4", "e" * 16, A),
        step("late", "alpha", "s4"),
        text("e5", B),
    )
    with Analyst(harness) as analyst:
        analyst.catch_up(page=page)
        found = crossed(harness, analyst)
        seqs = {row["seq"] for row in analyst.table("insight_crossings")}
        links = {row["seq"] for row in analyst.table("insight_links")}
    assert found == {
        ("s1", "s2", "declared"),
        ("s4", "s2", "declared"),
        ("e2", "e1", "span"),
        ("e3", "e1", "span"),
        ("e3", "e2", "span"),
        ("e2", "e4", "span"),
        ("e3", "e4", "span"),
        ("e5", "e3", "span"),
    }
    assert seqs <= links


def test_a_use_in_another_session_is_told_once_and_tenants_are_apart_s937(harness: Harness) -> None:
    """S937"""
    harness.create_tenant(OTHER_TENANT)
    harness.send(step("x", "alpha", "s1", added=[FACT]), tenant_id=OTHER_TENANT)
    harness.send(
        step("a", "alpha", "s1", added=[FACT]),
        step("b", "alpha", "s1", read=[FACT]),
        step("c", "alpha", "s2", read=[FACT]),
        step("d", "alpha", "s2", read=[FACT]),
    )
    with Analyst(harness) as analyst:
        analyst.catch_up(page=1)
        assert crossed(harness, analyst) == {("s1", "s2", "use")}
        assert len(analyst.table("insight_crossings")) == 1
        assert crossed(harness, analyst, OTHER_TENANT) == set()


def test_sessions_are_led_to_the_nearest_first_and_counted_s938(harness: Harness) -> None:
    """S938: over links and uses, past a number, up to so many."""
    harness.send(
        step("a", "alpha", "s1", added=[FACT]),
        step("b", "beta", "s2", parents=["s1/s1-a"]),
        step("c", "alpha", "s3", read=[FACT]),
        step("d", "beta", "s4", parents=["s2/s2-b"]),
        step("e", "beta", "s4", parents=["s4-d"]),
        step("f", "beta", "s1", parents=["s4/s4-e"]),
        step("g", "delta", "s5"),
    )
    with Analyst(harness) as analyst:
        analyst.catch_up()
        rows = harness.read(harness.store.rows(HOME_TENANT, "sessions"))
        numbers = {row["session_id"]: row["session_no"] for row in rows}

        def led(session: str, after: int = 1, most: int = 500) -> dict[str, int]:
            found = harness.read(analyst.derived.led_to(HOME_TENANT, {numbers[session]}, after, most))
            names = {number: name for name, number in numbers.items()}
            return {names[number]: count for number, count in found.items()}

        every = led("s1")
        assert every == {"s2": 1, "s3": 1, "s4": 2, "s1": 2}
        assert set(list(every)[:2]) == {"s2", "s3"}  # the nearest
        assert len(led("s1", most=1)) == 1
        assert led("s5") == {}
        assert harness.read(analyst.derived.led_to(OTHER_TENANT, {numbers["s1"]}, 1, 500)) == {}
        last = max(row["seq"] for row in analyst.table("insight_steps"))
        assert led("s2", after=last) == {}


@pytest.mark.parametrize("seed", range(3))
def test_any_batches_give_the_same_crossings_s937(harness: Harness, seed: int) -> None:
    """S937: names, spans, uses; parents before and after their children, and while nobody has any yet."""
    dice = random.Random(seed)
    for number in range(60):
        session, other = f"s{dice.randrange(5)}", f"s{dice.randrange(5)}"
        if dice.random() < 0.4:
            above = dice.choice((None, f"{dice.randrange(1, 12):016x}"[::-1]))
            harness.send(text(session, f"{dice.randrange(1, 12):016x}"[::-1], above))
        else:
            added, read = dice.choice(([FACT], None, None)), dice.choice(([FACT], None))
            parent = f"{other}/{other}-{dice.randrange(70)}"
            harness.send(
                step(
                    str(number),
                    f"agent-{dice.randrange(3)}",
                    session,
                    parents=[parent],
                    added=added,
                    read=read,
                )
            )
    with Analyst(harness) as analyst:
        analyst.catch_up(page=dice.choice((1, 3, 7)))
        small = analyst.table("insight_crossings")
        harness.read(analyst.derived.restart(HOME_TENANT))
        analyst.catch_up(page=500)
        whole = analyst.table("insight_crossings")
    assert whole and small == whole
    assert {row["kind"] for row in whole} == {"declared", "span", "use"}
