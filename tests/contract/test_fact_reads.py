"""What is read of facts, their uses, and the steps around them, over both databases."""

from __future__ import annotations

from typing import Any

from observatory.features.facts.types import FactFilter, fact_number
from observatory.features.graph.types_spread import HELD, LINK_KINDS, READ, STATES, Spread
from observatory.pipeline.state import HOME_TENANT
from tests.contract.analysis import Analyst
from tests.contract.conftest import OTHER_TENANT, Harness
from tests.contract.test_facts import FACT, seq, step


def test_the_spread_of_sessions_is_read_whole_from_a_number_on(harness: Harness) -> None:
    """S248, S250: steps, their children anywhere, facts, and their uses anywhere; cut says there was more."""
    harness.create_tenant(OTHER_TENANT)
    with Analyst(harness) as analyst:
        first = seq(harness, step("a", session="s1"))[0]
        made = seq(harness, step("b", session="s1", parent="a", cluster="c1", added=[FACT]))[0]
        child = step("c", "beta", session="s2", cluster="c1", read=[FACT], to="alpha")
        child["meta"]["parent_step_id"] = "s1/s1-b"
        abroad = seq(harness, child)[0]
        many = seq(harness, *(step(str(n), "gamma", session="s3") for n in range(30)))
        harness.send(step("x", session="s1", added=[FACT]), tenant_id=OTHER_TENANT)
        analyst.catch_up()
        table = {row["seq"]: row for row in analyst.table("insight_steps")}
        places = [table[number]["session_no"] for number in (made, abroad, many[0])]

        def spread(sessions: set[int], after: int, limit: int = 1_000) -> Spread:
            return harness.read(analyst.derived.spread(HOME_TENANT, sessions, after, limit))

        for among in ({places[0]}, {places[0], places[2]}):  # few of many, and most of them
            found = spread(among, first)
            numbers = found.steps.seq.tolist()
            assert numbers[:2] == [first, made] and numbers == sorted(numbers)
            row = table[made]
            for name in ("agent_no", "recipient_no", "name_key", "span_key", "session_no", "cost", "at_ns"):
                assert getattr(found.steps, name)[1] == row[name]
            assert list(found.facts.rows()) == [(fact_number(made, 0), places[0])]
            names = dict(zip(found.steps.name_key.tolist(), numbers, strict=True))
            edges = {(names[key], child) for child, key, _, _ in found.links.rows() if key in names}
            edges |= {(names[key], child) for _, _, key, child, _ in found.abroad.rows()}
            assert {(first, made), (made, abroad)} <= edges
            assert list(found.uses.rows()) == [
                (READ, places[0], fact_number(made, 0), abroad, 1.0, places[1], 0)
            ]
            assert not found.cut
        assert spread({places[0]}, made).steps.seq.tolist() == [made]
        for limit in (1, 10, 29):
            some = spread({places[2]}, first, limit)
            assert some.steps.seq.tolist() == many[:limit] and some.cut
            assert set(some.links.seq.tolist()) <= set(many[:limit])
        assert not spread({places[2]}, first, 30).cut
        assert [len(one) for one in spread({999}, first)[:-1]] == [0] * 5


def test_a_blast_is_read_with_state_status_and_tool_of_its_steps(harness: Harness) -> None:
    """S262: words of any kind, and none."""
    with Analyst(harness) as analyst:
        texts: list[dict[str, Any]] = [step(str(n), session="s1", parent=str(n - 1)) for n in range(4)]
        texts[0]["action"] |= {"tool_call": 'say "hé" \\ 😀\n[1,2]', "status": "failure"}
        texts[1]["action"] |= {"tool_call": None, "status": "pending"}
        texts[2]["control"] = {"hitl_required": True}
        numbers = seq(harness, *texts)
        analyst.catch_up()
        table = {row["seq"]: row for row in analyst.table("insight_steps")}
        place = table[numbers[0]]["session_no"]
        found = harness.read(analyst.derived.downstream(HOME_TENANT, {place}, 1, 100))
        shown = zip(found.steps.state.tolist(), found.steps.status, found.steps.tool, strict=True)
        assert [(STATES[state], status, tool) for state, status, tool in shown] == [
            (table[number]["state"], table[number]["status"], table[number]["tool"]) for number in numbers
        ]
        assert found.steps.tool[0] == texts[0]["action"]["tool_call"] and found.steps.tool[1] is None
        assert HELD in found.steps.state.tolist()
        assert {LINK_KINDS[kind] for kind in found.links.kind.tolist()} == {"declared"}
        plain = harness.read(analyst.derived.spread(HOME_TENANT, {place}, 1, 100))
        assert plain.steps.seq.tolist() == numbers and set(plain.steps.tool.tolist()) == {None}


def test_beliefs_are_read_with_when_they_were_stated_last(harness: Harness) -> None:
    """S257: of contested subjects only, or of one subject; a text said again moves it."""
    with Analyst(harness) as analyst:
        one, two, other, again = seq(
            harness,
            step("a", added=["The limit is 5 EUR"]),
            step("b", "beta", added=["The limit is 7 EUR"]),
            step("c", "beta", added=["The colour is red"]),
            step("d", added=["the limit is 5 EUR."]),
        )
        analyst.catch_up()
        contested = harness.read(analyst.derived.contested(HOME_TENANT, 0, 10))
        assert [(row.fact.seq, row.last_seq) for row in contested] == [(two, two), (one, again)]
        assert harness.read(analyst.derived.contested(HOME_TENANT, 1 << 62, 10)) == []
        key = contested[0].fact.subject_key
        assert key is not None
        assert harness.read(analyst.derived.believed(HOME_TENANT, key, 0, 10)) == contested
        assert harness.read(analyst.derived.believed(HOME_TENANT, key, 0, 1)) == contested[:1]
        assert harness.read(analyst.derived.believed(OTHER_TENANT, key, 0, 10)) == []
        assert other not in {row.fact.seq for row in contested}


def test_what_an_agent_read_and_which_tools_it_called(harness: Harness) -> None:
    """S254, S259"""
    with Analyst(harness) as analyst:
        log = step("t", "tooler")
        log["action"]["tool_call"] = "shell"
        first, read = seq(harness, step("a", added=[FACT]), step("b", "beta", read=[FACT]))
        (later,) = seq(harness, step("c", "beta", read=[FACT]))
        seq(harness, step("d", "beta", intent=f"As {FACT}, so be it"), log)
        analyst.catch_up()
        rows = {row["seq"]: row for row in analyst.table("insight_steps")}
        beta, at_ns = rows[read]["agent_no"], rows[read]["at_ns"]

        def used(until_seq: int | None, until_ns: int | None, limit: int = 10) -> list[int]:
            found = analyst.derived.uses_by(HOME_TENANT, beta, until_seq, until_ns, limit)
            return [row.seq for row in harness.read(found)]

        assert used(None, None) == [later, read]
        assert used(None, None, 1) == [later]
        assert used(read, None) == [read] and used(None, at_ns) == [read] and used(first, None) == []
        tools = harness.read(analyst.derived.tools_used(HOME_TENANT, 0))
        number = max(row["agent_no"] for row in rows.values())
        assert (number, "shell", 1) in tools
        assert harness.read(analyst.derived.tools_used(HOME_TENANT, 1 << 62)) == []


def test_pages_of_facts_and_other_tenants(harness: Harness) -> None:
    harness.create_tenant(OTHER_TENANT)
    with Analyst(harness) as analyst:
        for number in range(5):
            harness.send(step(str(number), added=[f"fact 100%_{number} of many words"]))
        harness.send(step("x", added=["fact of others"]), tenant_id=OTHER_TENANT)
        analyst.catch_up()

        def page(where: FactFilter, before: int | None = None) -> list[str]:
            found = harness.read(analyst.derived.facts_page(HOME_TENANT, where, before, 3))
            return [row.text for row in found]

        assert page(FactFilter()) == [f"fact 100%_{number} of many words" for number in (4, 3, 2)]
        assert page(FactFilter(contains="100%_1 OF")) == ["fact 100%_1 of many words"]
        assert page(FactFilter(contains="100__")) == []
        assert page(FactFilter(agent_no=999)) == []
