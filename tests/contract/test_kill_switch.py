"""Kill-switches and instructions over both databases: what is stored, held, counted and staged."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Sequence
from typing import Any

import pytest

from observatory.features.instructions import commands as instructions
from observatory.features.kill_switch import commands as kill_switch
from observatory.features.kill_switch.worker import stage
from observatory.features.relay import commands as interventions
from observatory.pipeline.rows import Reach
from observatory.pipeline.state import HOME_TENANT, Principal, Submission, Verdict
from observatory.protocol.credentials import digest
from observatory.protocol.rulebook import KillScope
from observatory.runtime.worker_context import Watch
from observatory.settings import Settings
from tests.contract.conftest import OTHER_TENANT, House
from tests.samples import decision_log, envelope

ONE, TWO = digest("one"), digest("two")


class Home:
    """The contract's house as the stager sees one."""

    def __init__(self, house: House, batch: int) -> None:
        self._house = house
        self.settings = Settings(kill_release_batch=batch)
        self.store = house.store
        self.committer = self
        self.watch = Watch(house.store)

    async def submit(self, tenant_id: str, items: Sequence[Submission]) -> list[Verdict]:
        return await asyncio.to_thread(self._house.submit, *items, tenant_id=tenant_id)

    def principal_of_house(self, tenant_id: str) -> Principal:
        return Principal(tenant_id=tenant_id, role="admin", key_id="sys_gateway")


def person(house: House, tenant_id: str = HOME_TENANT) -> Principal:
    version = house.admin(tenant_id).access_version
    return Principal(
        tenant_id=tenant_id, role="admin", key_id="sys_ann", user_id="usr_ann", access_version=version
    )


def log(agent: str, step: str, session: str = "s1", kind: str = "writer", cluster: str = "north") -> Any:
    meta = {"session_id": session, "step_id": step, "parent_step_id": None, "cluster_id": cluster}
    meta["trace_id"] = str(uuid.uuid5(uuid.NAMESPACE_OID, session))
    return decision_log(meta=meta, identity={"agent_id": agent, "agent_type": kind})


def engage(house: House, scope: KillScope = "global", target: str = "", tenant_id: str = HOME_TENANT) -> str:
    who, kill_id = person(house, tenant_id), f"kil_{uuid.uuid4()}"
    rows = house.read(house.store.rows(tenant_id, "agents"))
    entities = [row["entity_id"] for row in rows]
    codes = [
        house.submit(act, tenant_id=tenant_id)[0].code
        for act in (
            kill_switch.arm(who, kill_id, scope, target, "drill", ONE, house.now()),
            kill_switch.confirm(who, kill_id, ONE, TWO, entities, house.now()),
            kill_switch.confirm(who, kill_id, TWO, ONE, entities, house.now()),
        )
    ]
    assert codes == [202, 202, 200]
    return kill_id


def release(house: House, kill_id: str) -> None:
    act = kill_switch.release(person(house), kill_id, "over", 0, (), house.now())
    assert house.submit(act)[0].code == 202


def states(house: House, *bodies: dict[str, Any], tenant_id: str = HOME_TENANT) -> list[str]:
    return [verdict.answer.state for verdict in house.send(*bodies, tenant_id=tenant_id)]


def bodies(house: House, kind: str) -> list[dict[str, Any]]:
    found = [json.loads(event.record)["body"] for event in house.trail_of()]
    return [body for body in found if body["event_type"] == kind]


def delivered(house: House) -> list[str]:
    found = [json.loads(event.record) for event in house.trail_of()]
    kept = [event for event in found if event["body"]["event_type"] == "message_delivered"]
    return [event["attributes"]["av.step.id"] for event in kept]


def row_of(house: House, kill_id: str) -> dict[str, Any]:
    (row,) = house.read(house.store.rows(HOME_TENANT, "kill_switches", kill_id=kill_id))
    return row


def reach(house: House, **agents: str) -> Reach:
    return house.read(house.store.reach(HOME_TENANT, **agents))


def test_who_has_obeyed_is_counted_in_the_database_and_named_up_to_a_number_s742(house: House) -> None:
    """S742: of thousands only so many are named; who came later and others' agents are told apart."""
    house.send(*(log(f"a{n}", f"s{n}") for n in range(5)), log("p1", "sp", kind="planner"))
    engage(house, "class", "writer")
    (engaged,) = (
        event for event in house.trail_of() if b'"event_type":"kill_switch_engaged"' in event.record
    )
    number = engaged.sequence_number
    house.send(log("late", "s9"))
    found = house.read(house.store.obeyed(HOME_TENANT, number, 3, agent_type="writer"))
    assert (found.agents, found.told, found.acknowledged, found.later) == (6, 5, 0, 1)
    assert len(found.unheard) == 3 and {row["agent_id"] for row in found.unheard} < {
        f"a{n}" for n in range(5)
    }
    nobody = house.read(house.store.obeyed(HOME_TENANT, 0, 3))
    assert (nobody.agents, nobody.told, nobody.unheard) == (7, 0, [])
    house.create_tenant(OTHER_TENANT)
    others = house.read(house.store.obeyed(OTHER_TENANT, number, 3, agent_type="writer"))
    assert (others.agents, others.told, others.acknowledged, others.unheard) == (0, 0, 0, [])


@pytest.mark.req(226)
def test_what_is_engaged_holds_from_the_next_message_on_and_survives_a_reopening_s162(house: House) -> None:
    """S162, S163: the state is a row; a gateway that starts anew reads it before it judges anything."""
    assert states(house, log("a1", "one")) == ["forwarded"]
    kill_id = engage(house)
    assert (row_of(house, kill_id)["state"], row_of(house, kill_id)["token_hash"]) == ("engaged", None)
    assert states(house, log("a1", "two")) == ["held"]
    house.reopen()
    beat = envelope("heartbeat", sender={"entity_id": "agt_x", "entity_type": "agent"})
    assert states(house, log("a1", "three"), beat) == ["held", "forwarded"]
    assert delivered(house) == ["one"]
    assert house.read(house.store.waiting(HOME_TENANT)) == [("s1", 2)]


def test_a_switch_of_one_tenant_says_nothing_to_another_s164(house: House) -> None:
    """S164: global means this tenant."""
    house.create_tenant(OTHER_TENANT)
    engage(house)
    assert states(house, log("a1", "one"), tenant_id=OTHER_TENANT) == ["forwarded"]
    assert states(house, log("a1", "one")) == ["held"]
    assert house.read(house.store.reach(OTHER_TENANT)).held == 0


def test_how_far_a_switch_reaches_is_counted_s167(house: House) -> None:
    """S167: agents, sessions, and messages that wait, by scope."""
    house.send(log("a1", "1", "s1"), log("a2", "2", "s1", "reader"), log("a3", "3", "s2", "writer", "south"))
    assert reach(house) == Reach(3, 2, 0)
    assert reach(house, cluster_id="north") == Reach(2, 1, 0)
    assert reach(house, agent_type="writer") == Reach(2, 2, 0)
    assert reach(house, agent_type="nobody") == Reach(0, 0, 0)
    engage(house, "class", "writer")
    house.send(log("a1", "4", "s1"), log("a2", "5", "s1", "reader"), log("a3", "6", "s2", "writer", "south"))
    assert reach(house, agent_type="writer") == Reach(2, 2, 2)
    assert (reach(house, agent_type="reader").held, reach(house).held) == (0, 2)


def test_every_agent_in_scope_finds_the_stop_in_its_inbox_s165(house: House) -> None:
    """S165: a thousand of them in the engaging transaction; one event."""
    house.send(*(log(f"a{number}", "1", f"s{number}") for number in range(1_000)))
    before = house.read(house.store.head(HOME_TENANT))[0]
    engage(house, "cluster", "north")
    assert house.read(house.store.head(HOME_TENANT))[0] == before + 3
    rows = house.read(house.store.rows(HOME_TENANT, "deliveries", kind="stop"))
    assert len({row["agent_no"] for row in rows}) == len(rows) == 1_000
    assert {row["sequence_number"] for row in rows} == {before + 3}


@pytest.mark.req(226)
def test_a_release_goes_in_stages_oldest_first_and_loses_nothing_s166(house: House) -> None:
    """S166: each stage is an event; what arrives meanwhile does not overtake; then the switch is released."""
    kill_id = engage(house)
    steps = [(f"{number:02}", f"s{number % 3}", f"a{number % 2}") for number in range(20)]
    assert set(states(house, *(log(agent, step, session) for step, session, agent in steps))) == {"held"}
    release(house, kill_id)
    # s0 is the oldest session: the agent's line still stands, so its next message waits behind it.
    assert states(house, log("a0", "late", "s0")) == ["held"]
    home, counts = Home(house, 8), []
    while row_of(house, kill_id)["state"] == "releasing":
        counts.append(house.read(stage(home, home.watch, house.now())))
        assert len(counts) < 10
    assert counts[:2] == [8, 8] and sum(counts) == 21
    assert sorted(delivered(house)) == sorted([step for step, *_ in steps] + ["late"])
    for session in ("s0", "s1", "s2"):
        for agent in ("a0", "a1"):
            mine = [step for step, where, who in steps if (where, who) == (session, agent)]
            mine += ["late"] if (session, agent) == ("s0", "a0") else []
            assert [step for step in delivered(house) if step in mine] == mine
    told = [body for body in bodies(house, "kill_switch_released") if body["stage"] == "stage"]
    assert [body["released"] for body in told] == [count for count in counts if count]
    assert [body["remaining"] for body in told] == [13, 5, 0]
    assert bodies(house, "kill_switch_released")[-1]["stage"] == "released"
    assert house.read(stage(home, home.watch, house.now())) == 0
    assert states(house, log("a0", "after", "s0")) == ["forwarded"]


def test_a_release_leaves_what_a_person_paused_and_what_another_switch_holds_s166(house: House) -> None:
    """S166, S164: the first switch is done all the same; the second one's release brings the rest."""
    house.send(log("a1", "0"), log("a2", "0b"), log("a3", "0c", "s1", "reader"))
    who = person(house)
    assert house.submit(interventions.pause(who, "s1", "a1", None, house.now()))[0].code in (200, 202)
    everything, readers = engage(house), engage(house, "class", "reader")
    sent = (log("a1", "1"), log("a2", "2"), log("a3", "3", "s1", "reader"))
    assert states(house, *sent) == ["held"] * 3
    home = Home(house, 500)
    release(house, everything)
    house.read(stage(home, home.watch, house.now()))
    assert delivered(house)[3:] == ["2"]
    assert (row_of(house, everything)["state"], row_of(house, readers)["state"]) == ("released", "engaged")
    release(house, readers)
    house.read(stage(home, home.watch, house.now()))
    assert (delivered(house)[3:], row_of(house, readers)["state"]) == (["2", "3"], "released")
    assert house.submit(interventions.unpause(who, "s1", "a1", None, house.now()))[0].code in (200, 202)
    assert delivered(house)[3:] == ["2", "3", "1"]


def test_a_persons_message_is_held_by_a_global_switch_only_s164(house: House) -> None:
    """S164, S163: a person is of no class; what they decide passes always."""
    sender = {"entity_id": "usr_ann", "entity_type": "user", "hub_address": None}
    classes, everything = engage(house, "class", "writer"), ""
    assert states(house, envelope("text", sender=sender)) == ["forwarded"]
    release(house, classes)
    everything = engage(house)
    texts = [envelope("text", sender=sender, metadata={"session_id": "talk"}) for _ in range(3)]
    assert states(house, *texts) == ["held"] * 3
    assert reach(house).held == 3
    release(house, everything)
    home = Home(house, 2)
    assert house.read(stage(home, home.watch, house.now())) == 2
    assert house.read(stage(home, home.watch, house.now())) == 1
    assert row_of(house, everything)["state"] == "released"
    assert delivered(house)[1:] == [text["message_id"] for text in texts]


def test_a_thousand_that_wait_on_do_not_hide_those_that_are_free_s166(house: House) -> None:
    """S166: in one session, behind another class's long line."""
    house.send(log("w", "w0"), log("r", "r0", "s1", "reader"))
    engage(house, "class", "writer")
    readers = engage(house, "class", "reader")
    assert set(states(house, *(log("w", f"w{number}") for number in range(1, 1_101)))) == {"held"}
    assert states(house, *(log("r", step, "s1", "reader") for step in ("r1", "r2"))) == ["held"] * 2
    release(house, readers)
    home = Home(house, 500)
    house.read(stage(home, home.watch, house.now()))
    assert delivered(house) == ["w0", "r0", "r1", "r2"]
    assert row_of(house, readers)["state"] == "released"


def test_it_can_be_engaged_again_while_a_release_is_under_way_s166(house: House) -> None:
    """S166: what had not gone yet stays; nothing is lost."""
    first = engage(house)
    states(house, *(log("a1", f"{number}") for number in range(6)))
    release(house, first)
    home = Home(house, 2)
    assert house.read(stage(home, home.watch, house.now())) == 2
    second = engage(house)
    assert house.read(stage(home, home.watch, house.now())) == 0
    assert (row_of(house, first)["state"], row_of(house, second)["state"]) == ("released", "engaged")
    assert bodies(house, "kill_switch_released")[-1]["held_by_another"] == 4
    release(house, second)
    while row_of(house, second)["state"] == "releasing":
        house.read(stage(home, home.watch, house.now()))
    assert delivered(house) == [f"{number}" for number in range(6)]


def test_instructions_are_stored_version_by_version_and_wait_in_inboxes_s169(house: House) -> None:
    """S168, S169: the text is in the database and in the inbox, not in the record."""
    house.send(log("a1", "1"), log("a2", "2", "s2", "reader"))
    who = person(house)
    acts = [
        instructions.issue(who, "writer", "be kind", "first", (), house.now()),
        instructions.issue(who, "writer", "be terse", "second", (), house.now()),
        instructions.roll_back(who, "writer", 1, (), house.now()),
    ]
    assert [verdict.answer["told"] for verdict in house.submit(*acts[:2])] == [1, 1]
    assert house.submit(acts[2])[0].answer["version"] == 3
    rows = house.read(house.store.rows(HOME_TENANT, "instructions", agent_type="writer"))
    texts = {row["version"]: row["text"] for row in rows}
    assert texts == {1: "be kind", 2: "be terse", 3: "be kind"}
    waiting = house.read(house.store.rows(HOME_TENANT, "deliveries", kind="instruction"))
    assert sorted(json.loads(row["body"])["version"] for row in waiting) == [1, 2, 3]
    assert not [event for event in house.trail_of() if b"be kind" in event.record]
