"""The analyst over both databases: one record, one set of tables, however it was folded."""

from __future__ import annotations

import random
from typing import Any

import pytest

from observatory.derived.ports import CommittedEvent
from observatory.features.relay import commands as interventions
from observatory.features.relay import commands_gates as gates
from observatory.pipeline.state import HOME_TENANT
from observatory.protocol.identity import agent_entity_id
from observatory.runtime import projector as projecting
from observatory.runtime.projector import Projector
from observatory.store.keys import dedupe_key
from tests.contract.analysis import Analyst, Counting, spoken, steps
from tests.contract.conftest import OTHER_TENANT, Harness
from tests.contract.test_policy_budget import put
from tests.contract.test_relay import (
    AGENT,
    SESSION,
    act,
    approve,
    new_message,
    pause,
    person,
    rewritten,
    unpause,
)
from tests.samples import envelope


def mixed_record(harness: Harness, seed: int, size: int = 60) -> None:
    """Logs of several agents and sessions, envelopes, violations of order, holds of every ending."""
    dice = random.Random(seed)
    harness.send(new_message("first"))
    for number in range(size):
        roll = dice.random()
        if roll < 0.6:
            agent, session = f"agent-{dice.randrange(3)}", f"ses-{dice.randrange(3)}"
            cost = {"cumulative_session_cost": round(dice.random() * 5, 3)} if dice.random() < 0.7 else {}
            cost |= {"cost": round(dice.random(), 3)} if dice.random() < 0.3 else {}
            parent = f"step-{dice.randrange(number + 1)}" if dice.random() < 0.8 else None
            harness.send(spoken(f"step-{number}", parent, session, agent=agent, **cost))
        elif roll < 0.8:
            harness.send(envelope(dice.choice(("text", "heartbeat", "action_confirmation", "status_alert"))))
        elif roll < 0.9:
            harness.send(new_message(f"gate-{number}", hitl=True, parent="first"))
            if dice.random() < 0.7:
                approve(harness, f"gate-{number}")
            else:
                deed = gates.reject_message(
                    person(harness), SESSION, AGENT, f"gate-{number}", None, None, harness.now()
                )
                act(harness, deed)
        else:
            pause(harness)
            harness.send(new_message(f"held-{number}"))
            if dice.random() < 0.5:
                body = new_message(f"held-{number}") | {"state_delta": {"cumulative_session_cost": 99.0}}
                message = rewritten(harness, f"held-{number}", body)
                deed = interventions.rewrite(
                    person(harness), SESSION, AGENT, f"held-{number}", message, harness.now()
                )
                act(harness, deed)
            if dice.random() < 0.8:
                unpause(harness)


@pytest.mark.parametrize("seed", range(4))
def test_any_batches_and_restarts_give_the_same_tables_s198(harness: Harness, seed: int) -> None:
    """Folded while the record grew, in batches of any size, by one analyst after another; or in one go."""
    dice = random.Random(seed)
    with Analyst(harness) as analyst:
        mixed_record(harness, seed, 20)
        analyst.catch_up(page=dice.choice((1, 2, 3)))
        for part in range(3):
            mixed_record_more(harness, seed * 10 + part)
            analyst.catch_up(page=dice.choice((1, 2, 5, 17)), rounds=dice.choice((1, 2, 1_000)))
        analyst.catch_up(page=7)
        grown = analyst.everything()
        harness.read(analyst.derived.restart(HOME_TENANT))
        assert all(not rows for rows in analyst.everything().values())
        analyst.catch_up(page=500)
        whole = analyst.everything()
    assert len(whole["insight_steps"]) > 30
    for name, rows in whole.items():
        assert grown[name] == rows, name


def mixed_record_more(harness: Harness, seed: int) -> None:
    dice = random.Random(seed)
    for number in range(12):
        name = f"more-{seed}-{number}"
        if dice.random() < 0.3:
            harness.send(new_message(name, hitl=True))
            if dice.random() < 0.5:
                approve(harness, name)
        else:
            cost = round(dice.random() * 3, 3)
            harness.send(spoken(name, agent=f"agent-{dice.randrange(3)}", cumulative_session_cost=cost))


def test_steps_say_what_the_message_said_s197(harness: Harness) -> None:
    harness.send(spoken("1", cumulative_session_cost=0.5))
    harness.send(spoken("2", "1", cumulative_session_cost=0.75))
    sent = envelope("text", parent_span_id="00f067aa0ba902b7")
    harness.send(sent)
    with Analyst(harness) as analyst:
        analyst.catch_up()
        first, second, third = steps(analyst)
        links = analyst.table("insight_links")
    assert first["name_key"] == dedupe_key(HOME_TENANT, "ses-1/1")
    received = ("message_type", "state", "status", "tool", "tokens", "confidence", "terminal", "reported")
    assert [second[name] for name in received] == [
        "decision_log", "forwarded", "success", "serp_search", 10, 0.94, 0, 0.75
    ]  # fmt: skip
    assert second["cluster_id"] == "aws-eu-central-1-mesh-04"
    assert (third["message_type"], third["cost"]) == ("text", 0.0)
    assert third["span_key"] == dedupe_key(HOME_TENANT, sent["span_id"])
    assert {(row["seq"], row["parent_key"], row["kind"]) for row in links} == {
        (second["seq"], first["name_key"], "declared"),
        (third["seq"], dedupe_key(HOME_TENANT, "00f067aa0ba902b7"), "span"),
    }
    agents = {
        row["agent_no"]: row["entity_id"] for row in harness.read(harness.store.rows(HOME_TENANT, "agents"))
    }
    assert agents[first["agent_no"]] == agent_entity_id(HOME_TENANT, "alpha")


def test_a_step_costs_what_it_says_or_what_the_figure_grew_s202(harness: Harness) -> None:
    said_costs: list[tuple[dict[str, Any], float]] = [
        ({"cumulative_session_cost": 1.0}, 1.0),
        ({"cumulative_session_cost": 1.5}, 0.5),
        ({"cumulative_session_cost": 1.2}, 0.0),  # fell: kept, costs nothing
        ({"cumulative_session_cost": 1.4}, 0.2),
        ({"cost": 0.3}, 0.3),
        ({"cumulative_session_cost": 2.0}, 0.3),  # of which 0.3 were told already
        ({"cumulative_session_cost": 3.0, "cost": 0.1}, 1.0),  # whichever is more
        ({"cost": -4.0}, 0.0),
        ({}, 0.0),
    ]
    for number, (received, _) in enumerate(said_costs):
        harness.send(spoken(f"{number}", **received))
    harness.send(spoken("other", session="ses-2", cumulative_session_cost=7.0))
    with Analyst(harness) as analyst:
        analyst.catch_up(page=2, rounds=3)
        analyst.catch_up(page=2)  # as after a restart: the figure before is read again
        found = [round(row["cost"], 9) for row in steps(analyst)]
    assert found == [cost for _, cost in said_costs] + [7.0]


def test_a_refused_message_costs_nothing_s202(harness: Harness) -> None:
    """Nor do its tokens count; the next figure is held against the one before it, as the corridor does."""
    put(harness, "tenant", HOME_TENANT, hard=1.5)
    for number, figure in enumerate((1.0, 3.0, 1.25)):
        harness.send(spoken(f"{number}", cumulative_session_cost=figure))
    with Analyst(harness) as analyst:
        analyst.catch_up()
        found = [(row["state"], row["cost"], row["tokens"], row["reported"]) for row in steps(analyst)]
    assert found == [
        ("forwarded", 1.0, 10, 1.0),
        ("refused", 0.0, 0, 3.0),
        ("forwarded", 0.25, 10, 1.25),
    ]


@pytest.mark.parametrize("ending", ["approve", "reject", "edit"])
def test_a_held_message_is_folded_again_when_its_hold_ends_s201(harness: Harness, ending: str) -> None:
    harness.send(new_message("1"))
    harness.send(new_message("2", hitl=True, parent="1"))
    with Analyst(harness) as analyst:
        analyst.catch_up()
        held = steps(analyst)[1]
        totals = analyst.table("insight_totals")
        assert (held["state"], held["tool"], held["cost"]) == ("held", "serp_search", 0.0)
        if ending == "approve":
            approve(harness, "2")
        elif ending == "reject":
            deed = gates.reject_message(person(harness), SESSION, AGENT, "2", None, None, harness.now())
            assert act(harness, deed).code == 200
        else:
            body = new_message("2")
            body["action"]["tool_call"] = "safe_search"
            body["state_delta"]["cumulative_session_cost"] = 50.0
            message = rewritten(harness, "2", body)
            deed = interventions.rewrite(person(harness), SESSION, AGENT, "2", message, harness.now())
            assert act(harness, deed).code == 200
            (hold,) = harness.read(harness.store.rows(HOME_TENANT, "holds", state="held"))
            approve(harness, "2", digest="sha256:" + bytes(hold["digest"]).hex())
        analyst.catch_up()
        after = steps(analyst)[1]
        assert after["state"] == ("rejected" if ending == "reject" else "forwarded")
        assert after["tool"] == ("safe_search" if ending == "edit" else "serp_search")
        assert after["cost"] == held["cost"] and analyst.table("insight_totals") == totals
        assert len(analyst.table("insight_links")) == 1


def test_two_analysts_fold_a_record_once_s198(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both on one database, page by page in turn: whoever comes second goes on from the other's cursor."""
    monkeypatch.setattr(projecting, "LOST_S", 0.0)
    monkeypatch.setattr(projecting, "MAX_CLAIMS", 0)
    mixed_record(harness, 5)
    with Analyst(harness) as one, Analyst(harness) as two:
        first, second = one.projector(3), two.projector(5)
        adds = [Counting(), Counting()]
        first._folds, second._folds = [*first._folds, adds[0]], [*second._folds, adds[1]]

        async def race() -> None:
            for _ in range(400):
                for projector in (first, second):
                    await projector.round()

        harness.read(race())
        head, _ = harness.read(harness.store.head(HOME_TENANT))
        assert harness.read(one.derived.progress(HOME_TENANT)).seq == head
        (row,) = [row for row in one.table("insight_session_minutes") if row["minute"] == 1]
        counted, grown = row["messages"], one.everything()
        harness.read(one.derived.restart(HOME_TENANT))
        one.catch_up()
        again = one.everything()
    assert counted == len(grown["insight_steps"])
    del grown["insight_session_minutes"], again["insight_session_minutes"]
    assert grown == again


class Reading:
    """The record, and how often pages of it were read."""

    def __init__(self, harness: Harness) -> None:
        self._store, self.pages = harness.store, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def committed(self, tenant_id: str, after: int, limit: int) -> list[CommittedEvent]:
        self.pages += limit > 1
        return await self._store.committed(tenant_id, after, limit)


def test_of_two_analysts_one_reads_a_tenant_and_the_other_goes_on_when_it_is_gone_s198_s936(
    pg_harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What both folded would be thrown away by one of them, and was paid for twice."""
    harness = pg_harness
    monkeypatch.setattr(projecting, "LOST_S", 0.0)
    with Analyst(harness) as one, Analyst(harness) as two:
        records = [Reading(harness), Reading(harness)]
        first, second = (
            Projector(record, analyst.derived, analyst.folds(), 500, 0.0)
            for record, analyst in zip(records, (one, two), strict=True)
        )

        async def rounds() -> None:
            for projector in (first, second, second):
                await projector.round()

        for number in range(3):
            harness.send(spoken(str(number)))
            harness.read(rounds())
        assert [record.pages for record in records] == [3, 0]
        harness.read(one.derived.stop())
        harness.send(spoken("3"))
        harness.read(second.round())
        assert records[1].pages == 1
        assert len(steps(two)) == 4


def test_an_analyst_that_falls_behind_offers_what_it_has_claimed_to_another_s936(
    pg_harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = pg_harness
    monkeypatch.setattr(projecting, "TURN_S", 0.0)
    harness.create_tenant(OTHER_TENANT)
    for tenant in (HOME_TENANT, OTHER_TENANT):
        harness.send(*(spoken(str(number)) for number in range(9)), tenant_id=tenant)
    with Analyst(harness) as one, Analyst(harness) as two:
        first, second = one.projector(2), two.projector(2)
        harness.read(first.round())
        harness.read(second.round())
        mine, theirs = set(first._claims), set(second._claims)
        assert mine and theirs and not mine & theirs


def test_each_tenant_has_a_cursor_of_its_own_s197(harness: Harness) -> None:
    harness.create_tenant(OTHER_TENANT)
    harness.send(spoken("1"), spoken("2"))
    harness.send(spoken("1"), tenant_id=OTHER_TENANT)
    with Analyst(harness) as analyst:
        analyst.catch_up()
        assert [len(steps(analyst, tenant)) for tenant in (HOME_TENANT, OTHER_TENANT)] == [2, 1]
        for tenant in (HOME_TENANT, OTHER_TENANT):
            head, _ = harness.read(harness.store.head(tenant))
            assert harness.read(analyst.derived.progress(tenant)).seq == head


def test_what_was_folded_of_another_record_is_folded_anew_s199(harness: Harness) -> None:
    """As when a database was put back to an older copy."""
    harness.send(spoken("1"))
    with Analyst(harness) as analyst:
        analyst.catch_up()
        seq = harness.read(analyst.derived.progress(HOME_TENANT)).seq
        assert harness.read(analyst.derived.apply(HOME_TENANT, seq, seq + 50, 77, [], []))
        harness.send(spoken("2"))
        analyst.catch_up()
        head, _ = harness.read(harness.store.head(HOME_TENANT))
        assert harness.read(analyst.derived.progress(HOME_TENANT)).seq == head
        assert len(steps(analyst)) == 2
