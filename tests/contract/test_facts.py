"""Facts and their uses over both databases: what is written, however it was folded."""

from __future__ import annotations

import random
from typing import Any

import pytest

from observatory.features.facts import fold as facts_fold
from observatory.features.facts import fold_memory as fact_memory
from observatory.features.facts.claims import key_of, normalise
from observatory.features.facts.types import fact_name, fact_number
from observatory.features.redaction import commands_shredding as shredding
from observatory.features.relay import commands as interventions
from observatory.features.relay import commands_gates as gates
from observatory.pipeline.state import HOME_TENANT
from tests.contract.analysis import Analyst
from tests.contract.conftest import Harness
from tests.contract.test_relay import AGENT, SESSION, act, approve, new_message, person, rewritten
from tests.samples import decision_log, envelope

FACT = "NVDA fiscal year ends Jan 28"


def step(
    name: str,
    agent: str = "alpha",
    *,
    session: str = "ses-1",
    cluster: str | None = None,
    parent: str | None = None,
    added: list[str] | None = None,
    read: list[str] | None = None,
    intent: str = "work on",
    to: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    return decision_log(
        meta={
            "session_id": session,
            "step_id": f"{session}-{name}",
            "parent_step_id": f"{session}-{parent}" if parent else None,
            "cluster_id": cluster,
        },
        identity={"agent_id": agent, "recipient": to},
        cognition={"intent": intent, "reasoning_chain": more.pop("reasoning", None)},
        action={"tool_input": more.pop("tool_input", None), "tool_output_summary": more.pop("output", None)},
        state_delta={"added_to_memory": added, "read_from_memory": read, "cumulative_session_cost": None}
        | more,
    )


def uses(analyst: Analyst) -> list[tuple[str, int, str, float]]:
    """(fact, step's number, kind, weight)"""
    return [
        (fact_name(row["fact_id"]), row["seq"], row["kind"], row["weight"])
        for row in analyst.table("insight_uses")
    ]


def seq(harness: Harness, *bodies: dict[str, Any]) -> list[int]:
    return [verdict.answer.sequence_number for verdict in harness.send(*bodies)]


@pytest.mark.req(154)
def test_every_added_text_is_a_fact_with_its_first_step_and_time(harness: Harness) -> None:
    """S243, S244"""
    long = "x" * 100_000
    with Analyst(harness) as analyst:
        (number,) = seq(
            harness, step("a", added=[FACT, "", "  ", "🚀 emoji 🚀", long, FACT.upper()], cluster="c1")
        )
        (again,) = seq(harness, step("b", added=[f" {FACT}. "]))
        analyst.catch_up()
        rows = analyst.table("insight_facts")
        assert [row["text"] for row in rows] == [FACT, "🚀 emoji 🚀", "x" * 4_096]
        assert {row["seq"] for row in rows} == {number}
        assert rows[0]["fact_key"] == key_of(normalise(FACT))
        assert rows[2]["fact_key"] == key_of(long)
        assert (rows[0]["subject"], rows[0]["value"]) == ("nvda fiscal year ends", "date:--01-28")
        assert rows[0]["at_ns"] > 0 and rows[0]["cluster_id"] == "c1"
        # The same agent said it again in the same session: no new fact, a use of its own.
        assert uses(analyst) == [(fact_name(rows[0]["fact_id"]), again, "exact", 1.0)]


def test_later_steps_are_linked_by_what_they_read_repeat_or_say(harness: Harness) -> None:
    """S245, S246: declared, exact and near; look-alikes, denials and conflicting values are no uses."""
    with Analyst(harness) as analyst:
        (first,) = seq(harness, step("a", added=[FACT]))
        good = seq(
            harness,
            step("read", "b1", read=[FACT]),
            step("read-near", "b2", read=["NVDA's fiscal year ends on January 28"]),
            step("add", "b3", added=[FACT]),
            step("add-near", "b4", added=["NVDA's fiscal year ends on January 28"]),
            step("say", "b5", intent=f"As {FACT}, Q4 is over"),
            step("say-near", "b6", reasoning=["NVDA's fiscal year closes on January 28. So Q4 is over."]),
            step("tool", "b7", tool_input='{"note": "nvda fiscal year ends jan 28"}'),
            step("out", "b8", output=f"found: {FACT}"),
        )
        seq(
            harness,
            step("other", "c1", added=["NVDA fiscal year ends Jan 31"]),
            step(
                "alike", "c2", added=["AMD fiscal year ends Dec 28"], read=["NVDA fiscal quarter ends Jan 28"]
            ),
            step("deny", "c3", intent=f"It is wrong that {FACT}"),
            step("none", "c4", intent="NVDA fiscal year"),
        )
        analyst.catch_up()
        found = uses(analyst)
        source = f"fct_{first}-0"
        by_step = {number: (kind, weight) for fact, number, kind, weight in found if fact == source}
        kinds = [by_step.get(number, ("", 0.0))[0] for number in good]
        assert kinds == ["declared", "declared", "exact", "near", "exact", "near", "exact", "exact"]
        assert {number for _, number, _, _ in found} == set(good), "false edges"
        assert by_step[good[0]][1] == 1.0 > by_step[good[1]][1] > 0.5


def test_only_what_was_within_reach_is_a_use(harness: Harness) -> None:
    """S247: the session, the agent itself, its cluster, a room it spoke in, a letter it got; else nothing."""
    with Analyst(harness) as analyst:
        seq(harness, step("hello", "mailed", session="s5"))
        (first,) = seq(harness, step("a", "alpha", session="s1", cluster="c1", added=[FACT], to="mailed"))
        seq(harness, step("b", "roomer", session="s1"))
        near = seq(
            harness,
            step("own", "alpha", session="s2", read=[FACT]),
            step("cluster", "gamma", session="s3", cluster="c1", read=[FACT]),
            step("room", "roomer", session="s4", read=[FACT]),
        )
        # Mail counts from when it came, and alpha had the fact by then.
        near += seq(harness, step("mail", "mailed", session="s5", added=[FACT]))
        seq(harness, step("far", "stranger", session="s6", cluster="c2", added=[FACT], read=[FACT]))
        analyst.catch_up()
        found = uses(analyst)
        assert {number for _, number, _, _ in found} == set(near)
        claimed = harness.read(analyst.derived.claimed(HOME_TENANT, {key_of(normalise(FACT))}, 10))
        assert claimed[0].seq == first
        assert len(claimed) == 3


def random_record(harness: Harness, seed: int, size: int = 70) -> None:
    dice = random.Random(seed)
    claims = [
        "NVDA fiscal year ends Jan 28",
        "NVDA's fiscal year ends on January 28",
        "NVDA fiscal year ends Jan 31",
        "retries = 5",
        "retries: 7",
        "The deploy window opens on Monday at 9",
    ]
    harness.send(new_message("first"))
    for number in range(size):
        some = [claim for claim in claims if dice.random() < 0.3]
        if dice.random() < 0.1:
            harness.send(new_message(f"gate-{number}", hitl=True, parent="first"))
            approve(harness, f"gate-{number}")
        if dice.random() < 0.1:
            harness.send(envelope("text", payload={"content": dice.choice(claims)}))
        harness.send(
            step(
                str(number),
                f"agent-{dice.randrange(4)}",
                session=f"ses-{dice.randrange(3)}",
                cluster=dice.choice([None, "c1", "c2"]),
                added=some if dice.random() < 0.6 else None,
                read=[dice.choice(claims)] if dice.random() < 0.3 else None,
                intent=dice.choice([*claims, "go on"]),
                to=f"agent-{dice.randrange(4)}" if dice.random() < 0.3 else None,
            )
        )


@pytest.mark.parametrize(("most", "known"), [(512, 100_000), (3, 20)])
def test_facts_are_the_same_in_any_batch_size(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, most: int, known: int
) -> None:
    """S244: also when scopes remember only a few facts, and when few scopes and claims are remembered."""
    for room in (fact_memory, facts_fold):
        monkeypatch.setattr(room, "MAX_FACTS", (most, max(3, most // 8), most))
    monkeypatch.setattr(facts_fold, "KNOWN", known)
    monkeypatch.setattr(facts_fold, "KNOWN_CLAIMS", known)
    random_record(harness, 7)
    tables = ("insight_facts", "insight_uses", "insight_claims", "insight_reach")
    shapes = []
    with Analyst(harness) as analyst:
        for page in (500, 1, 7):
            harness.read(analyst.derived.restart(HOME_TENANT))
            analyst.catch_up(page)
            shapes.append({name: analyst.table(name) for name in tables})
    assert shapes[0]["insight_facts"] and shapes[0]["insight_uses"]
    for name in tables:
        assert shapes[0][name] == shapes[1][name] == shapes[2][name], name


def test_who_made_a_claim_first_is_remembered_until_that_is_shredded(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S246, S450: what the analyst remembers of older claims is what the store would say."""
    monkeypatch.setattr(facts_fold, "MAX_FACTS", (2, 2, 2))
    others = [f"Shelf {number} holds {number * 7} crates" for number in range(4)]
    with Analyst(harness) as analyst:
        folds = analyst.folds()  # the same ones: what they remember stays

        def read_by(name: str) -> list[int]:
            (number,) = seq(harness, step(name, "reader", read=[FACT]))
            analyst.catch_up(folds=folds)
            return [row["fact_id"] for row in analyst.table("insight_uses") if row["seq"] == number]

        assert read_by("too-early") == []
        first = seq(harness, step("a", added=[FACT]))[0]
        harness.send(step("b", "beta", added=others))
        analyst.catch_up(folds=folds)
        assert read_by("c") == read_by("d") == [fact_number(first, 0)]
        harness.submit(shredding.shred(harness.admin(), [first], "asked for", harness.now()))
        analyst.catch_up(folds=folds)
        assert read_by("e") == []
        again = seq(harness, step("f", "beta", added=[FACT]))[0]
        harness.send(step("g", "beta", added=[f"{other} more" for other in others]))
        assert read_by("h") == [fact_number(again, 0)]


def test_a_rewritten_message_makes_the_facts_it_was_released_with_and_a_rejected_one_none(
    harness: Harness,
) -> None:
    """S244: held, rewritten, released; and held, then refused."""

    def asked(name: str, fact: str) -> dict[str, Any]:
        body = new_message(name, hitl=True, parent="first")
        body["state_delta"]["added_to_memory"] = [fact]
        return body

    for page in (500, 1):
        with Analyst(harness) as analyst:
            harness.read(analyst.derived.restart(HOME_TENANT))
            one, two = f"gate-1-{page}", f"gate-2-{page}"
            harness.send(
                new_message("first"), asked(one, f"The limit is {page} EUR"), asked(two, f"No {page} is real")
            )
            harness.send(step(f"reader-{page}", "reader", session=SESSION, read=[f"The limit is {page} EUR"]))
            analyst.catch_up(page)
            before = {row["text"]: row["seq"] for row in analyst.table("insight_facts")}
            assert {f"The limit is {page} EUR", f"No {page} is real"} <= before.keys()
            new = rewritten(harness, one, asked(one, f"The limit is {page} USD"))
            act(harness, interventions.rewrite(person(harness), SESSION, AGENT, one, new, harness.now()))
            approve(harness, one)
            act(
                harness, gates.reject_message(person(harness), SESSION, AGENT, two, None, None, harness.now())
            )
            analyst.catch_up(page)
            after = {row["text"]: row["seq"] for row in analyst.table("insight_facts")}
            assert after[f"The limit is {page} USD"] == before[f"The limit is {page} EUR"]
            assert f"The limit is {page} EUR" not in after and f"No {page} is real" not in after
            texts = {row["text"] for row in analyst.table("insight_facts")}
            harness.read(analyst.derived.restart(HOME_TENANT))
            analyst.catch_up(7)
            assert {row["text"] for row in analyst.table("insight_facts")} == texts


def test_of_a_message_with_very_many_texts_the_first_thousand_are_facts(harness: Harness) -> None:
    """S243, S246: and of a step with very many sentences the first thousand are compared in sense."""
    with Analyst(harness) as analyst:
        (number,) = seq(harness, step("many", added=["again", "AGAIN", *(f"s{n}" for n in range(80_000))]))
        analyst.catch_up()
        rows = analyst.table("insight_facts")
        assert [row["text"] for row in rows] == ["again", *(f"s{n}" for n in range(998))]
        assert {row["seq"] for row in rows} == {number}
        assert [row["fact_id"] & 0x3FFFF for row in rows[:3]] == [0, 2, 3]  # places are those in the message
        near = "NVDA's fiscal year closes on January 28. "
        chatter = ["One two three. " * 500] * 2
        seq(harness, step("fact", added=[FACT]))
        (early,) = seq(harness, step("early", "b1", reasoning=[*chatter[:1], near, *chatter]))
        seq(harness, step("late", "b2", reasoning=[*chatter, near]))
        analyst.catch_up()
        assert [use[1] for use in uses(analyst) if use[2] == "near"] == [early]
