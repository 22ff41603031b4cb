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
from observatory.features.kill_switch.worker import release_stage
from observatory.features.relay import commands as interventions
from observatory.pipeline.rows import KillSwitchCounts
from observatory.pipeline.state import HOME_TENANT, Principal, Submission, SubmissionResult
from observatory.protocol.credentials import digest
from observatory.protocol.tenant_config import KillScope
from observatory.runtime.worker_context import TenantWatch
from observatory.settings import Settings
from tests.contract.conftest import OTHER_TENANT, Harness
from tests.samples import decision_log, envelope

ONE, TWO = digest("one"), digest("two")


class Home:
    """The contract's house as the stager sees one."""

    def __init__(self, harness: Harness, batch: int) -> None:
        self._harness = harness
        self.settings = Settings(kill_release_batch=batch)
        self.store = harness.store
        self.committer = self
        self.watch = TenantWatch(harness.store)

    async def submit(self, tenant_id: str, items: Sequence[Submission]) -> list[SubmissionResult]:
        return await asyncio.to_thread(self._harness.submit, *items, tenant_id=tenant_id)

    def gateway_principal(self, tenant_id: str) -> Principal:
        return Principal(tenant_id=tenant_id, role="admin", key_id="sys_gateway")


def person(harness: Harness, tenant_id: str = HOME_TENANT) -> Principal:
    version = harness.admin(tenant_id).access_version
    return Principal(
        tenant_id=tenant_id, role="admin", key_id="sys_ann", user_id="usr_ann", access_version=version
    )


def log(agent: str, step: str, session: str = "s1", kind: str = "writer", cluster: str = "north") -> Any:
    meta = {"session_id": session, "step_id": step, "parent_step_id": None, "cluster_id": cluster}
    meta["trace_id"] = str(uuid.uuid5(uuid.NAMESPACE_OID, session))
    return decision_log(meta=meta, identity={"agent_id": agent, "agent_type": kind})


def engage(
    harness: Harness, scope: KillScope = "global", target: str = "", tenant_id: str = HOME_TENANT
) -> str:
    who, kill_id = person(harness, tenant_id), f"kil_{uuid.uuid4()}"
    rows = harness.read(harness.store.rows(tenant_id, "agents"))
    entities = [row["entity_id"] for row in rows]
    codes = [
        harness.submit(act, tenant_id=tenant_id)[0].code
        for act in (
            kill_switch.arm(who, kill_id, scope, target, "drill", ONE, harness.now()),
            kill_switch.confirm(who, kill_id, ONE, TWO, entities, harness.now()),
            kill_switch.confirm(who, kill_id, TWO, ONE, entities, harness.now()),
        )
    ]
    assert codes == [202, 202, 200]
    return kill_id


def release(harness: Harness, kill_id: str) -> None:
    act = kill_switch.release(person(harness), kill_id, "over", 0, (), harness.now())
    assert harness.submit(act)[0].code == 202


def states(harness: Harness, *bodies: dict[str, Any], tenant_id: str = HOME_TENANT) -> list[str]:
    return [verdict.answer.state for verdict in harness.send(*bodies, tenant_id=tenant_id)]


def bodies(harness: Harness, kind: str) -> list[dict[str, Any]]:
    found = [json.loads(event.record)["body"] for event in harness.trail_of()]
    return [body for body in found if body["event_type"] == kind]


def delivered(harness: Harness) -> list[str]:
    found = [json.loads(event.record) for event in harness.trail_of()]
    kept = [event for event in found if event["body"]["event_type"] == "message_delivered"]
    return [event["attributes"]["av.step.id"] for event in kept]


def row_of(harness: Harness, kill_id: str) -> dict[str, Any]:
    (row,) = harness.read(harness.store.rows(HOME_TENANT, "kill_switches", kill_id=kill_id))
    return row


def reach(harness: Harness, **agents: str) -> KillSwitchCounts:
    return harness.read(harness.store.reach(HOME_TENANT, **agents))


def test_who_has_obeyed_is_counted_in_the_database_and_named_up_to_a_number_s742(harness: Harness) -> None:
    """S742: of thousands only so many are named; who came later and others' agents are told apart."""
    harness.send(*(log(f"a{n}", f"s{n}") for n in range(5)), log("p1", "sp", kind="planner"))
    engage(harness, "class", "writer")
    (engaged,) = (
        event for event in harness.trail_of() if b'"event_type":"kill_switch_engaged"' in event.record
    )
    number = engaged.sequence_number
    harness.send(log("late", "s9"))
    found = harness.read(harness.store.acknowledgements(HOME_TENANT, number, 3, agent_type="writer"))
    assert (found.agents, found.told, found.acknowledged, found.later) == (6, 5, 0, 1)
    assert len(found.unheard) == 3 and {row["agent_id"] for row in found.unheard} < {
        f"a{n}" for n in range(5)
    }
    nobody = harness.read(harness.store.acknowledgements(HOME_TENANT, 0, 3))
    assert (nobody.agents, nobody.told, nobody.unheard) == (7, 0, [])
    harness.create_tenant(OTHER_TENANT)
    others = harness.read(harness.store.acknowledgements(OTHER_TENANT, number, 3, agent_type="writer"))
    assert (others.agents, others.told, others.acknowledged, others.unheard) == (0, 0, 0, [])


@pytest.mark.req(226)
def test_what_is_engaged_holds_from_the_next_message_on_and_survives_a_reopening_s162(
    harness: Harness,
) -> None:
    """S162, S163: the state is a row; a gateway that starts anew reads it before it judges anything."""
    assert states(harness, log("a1", "one")) == ["forwarded"]
    kill_id = engage(harness)
    assert (row_of(harness, kill_id)["state"], row_of(harness, kill_id)["token_hash"]) == ("engaged", None)
    assert states(harness, log("a1", "two")) == ["held"]
    harness.reopen()
    beat = envelope("heartbeat", sender={"entity_id": "agt_x", "entity_type": "agent"})
    assert states(harness, log("a1", "three"), beat) == ["held", "forwarded"]
    assert delivered(harness) == ["one"]
    assert harness.read(harness.store.waiting(HOME_TENANT)) == [("s1", 2)]


def test_a_switch_of_one_tenant_says_nothing_to_another_s164(harness: Harness) -> None:
    """S164: global means this tenant."""
    harness.create_tenant(OTHER_TENANT)
    engage(harness)
    assert states(harness, log("a1", "one"), tenant_id=OTHER_TENANT) == ["forwarded"]
    assert states(harness, log("a1", "one")) == ["held"]
    assert harness.read(harness.store.reach(OTHER_TENANT)).held == 0


def test_how_far_a_switch_reaches_is_counted_s167(harness: Harness) -> None:
    """S167: agents, sessions, and messages that wait, by scope."""
    harness.send(
        log("a1", "1", "s1"), log("a2", "2", "s1", "reader"), log("a3", "3", "s2", "writer", "south")
    )
    assert reach(harness) == KillSwitchCounts(3, 2, 0)
    assert reach(harness, cluster_id="north") == KillSwitchCounts(2, 1, 0)
    assert reach(harness, agent_type="writer") == KillSwitchCounts(2, 2, 0)
    assert reach(harness, agent_type="nobody") == KillSwitchCounts(0, 0, 0)
    engage(harness, "class", "writer")
    harness.send(
        log("a1", "4", "s1"), log("a2", "5", "s1", "reader"), log("a3", "6", "s2", "writer", "south")
    )
    assert reach(harness, agent_type="writer") == KillSwitchCounts(2, 2, 2)
    assert (reach(harness, agent_type="reader").held, reach(harness).held) == (0, 2)


def test_every_agent_in_scope_finds_the_stop_in_its_inbox_s165(harness: Harness) -> None:
    """S165: a thousand of them in the engaging transaction; one event."""
    harness.send(*(log(f"a{number}", "1", f"s{number}") for number in range(1_000)))
    before = harness.read(harness.store.head(HOME_TENANT))[0]
    engage(harness, "cluster", "north")
    assert harness.read(harness.store.head(HOME_TENANT))[0] == before + 3
    rows = harness.read(harness.store.rows(HOME_TENANT, "deliveries", kind="stop"))
    assert len({row["agent_no"] for row in rows}) == len(rows) == 1_000
    assert {row["sequence_number"] for row in rows} == {before + 3}


@pytest.mark.req(226)
def test_a_release_goes_in_stages_oldest_first_and_loses_nothing_s166(harness: Harness) -> None:
    """S166: each stage is an event; what arrives meanwhile does not overtake; then the switch is released."""
    kill_id = engage(harness)
    steps = [(f"{number:02}", f"s{number % 3}", f"a{number % 2}") for number in range(20)]
    assert set(states(harness, *(log(agent, step, session) for step, session, agent in steps))) == {"held"}
    release(harness, kill_id)
    # s0 is the oldest session: the agent's line still stands, so its next message waits behind it.
    assert states(harness, log("a0", "late", "s0")) == ["held"]
    home, counts = Home(harness, 8), []
    while row_of(harness, kill_id)["state"] == "releasing":
        counts.append(harness.read(release_stage(home, home.watch, harness.now())))
        assert len(counts) < 10
    assert counts[:2] == [8, 8] and sum(counts) == 21
    assert sorted(delivered(harness)) == sorted([step for step, *_ in steps] + ["late"])
    for session in ("s0", "s1", "s2"):
        for agent in ("a0", "a1"):
            mine = [step for step, where, who in steps if (where, who) == (session, agent)]
            mine += ["late"] if (session, agent) == ("s0", "a0") else []
            assert [step for step in delivered(harness) if step in mine] == mine
    received = [body for body in bodies(harness, "kill_switch_released") if body["stage"] == "stage"]
    assert [body["released"] for body in received] == [count for count in counts if count]
    assert [body["remaining"] for body in received] == [13, 5, 0]
    assert bodies(harness, "kill_switch_released")[-1]["stage"] == "released"
    assert harness.read(release_stage(home, home.watch, harness.now())) == 0
    assert states(harness, log("a0", "after", "s0")) == ["forwarded"]


def test_a_release_leaves_what_a_person_paused_and_what_another_switch_holds_s166(harness: Harness) -> None:
    """S166, S164: the first switch is done all the same; the second one's release brings the rest."""
    harness.send(log("a1", "0"), log("a2", "0b"), log("a3", "0c", "s1", "reader"))
    who = person(harness)
    assert harness.submit(interventions.pause(who, "s1", "a1", None, harness.now()))[0].code in (200, 202)
    everything, readers = engage(harness), engage(harness, "class", "reader")
    sent = (log("a1", "1"), log("a2", "2"), log("a3", "3", "s1", "reader"))
    assert states(harness, *sent) == ["held"] * 3
    home = Home(harness, 500)
    release(harness, everything)
    harness.read(release_stage(home, home.watch, harness.now()))
    assert delivered(harness)[3:] == ["2"]
    assert (row_of(harness, everything)["state"], row_of(harness, readers)["state"]) == (
        "released",
        "engaged",
    )
    release(harness, readers)
    harness.read(release_stage(home, home.watch, harness.now()))
    assert (delivered(harness)[3:], row_of(harness, readers)["state"]) == (["2", "3"], "released")
    assert harness.submit(interventions.unpause(who, "s1", "a1", None, harness.now()))[0].code in (200, 202)
    assert delivered(harness)[3:] == ["2", "3", "1"]


def test_a_persons_message_is_held_by_a_global_switch_only_s164(harness: Harness) -> None:
    """S164, S163: a person is of no class; what they decide passes always."""
    sender = {"entity_id": "usr_ann", "entity_type": "user", "hub_address": None}
    classes, everything = engage(harness, "class", "writer"), ""
    assert states(harness, envelope("text", sender=sender)) == ["forwarded"]
    release(harness, classes)
    everything = engage(harness)
    texts = [envelope("text", sender=sender, metadata={"session_id": "talk"}) for _ in range(3)]
    assert states(harness, *texts) == ["held"] * 3
    assert reach(harness).held == 3
    release(harness, everything)
    home = Home(harness, 2)
    assert harness.read(release_stage(home, home.watch, harness.now())) == 2
    assert harness.read(release_stage(home, home.watch, harness.now())) == 1
    assert row_of(harness, everything)["state"] == "released"
    assert delivered(harness)[1:] == [text["message_id"] for text in texts]


def test_a_thousand_that_wait_on_do_not_hide_those_that_are_free_s166(harness: Harness) -> None:
    """S166: in one session, behind another class's long line."""
    harness.send(log("w", "w0"), log("r", "r0", "s1", "reader"))
    engage(harness, "class", "writer")
    readers = engage(harness, "class", "reader")
    assert set(states(harness, *(log("w", f"w{number}") for number in range(1, 1_101)))) == {"held"}
    assert states(harness, *(log("r", step, "s1", "reader") for step in ("r1", "r2"))) == ["held"] * 2
    release(harness, readers)
    home = Home(harness, 500)
    harness.read(release_stage(home, home.watch, harness.now()))
    assert delivered(harness) == ["w0", "r0", "r1", "r2"]
    assert row_of(harness, readers)["state"] == "released"


def test_it_can_be_engaged_again_while_a_release_is_under_way_s166(harness: Harness) -> None:
    """S166: what had not gone yet stays; nothing is lost."""
    first = engage(harness)
    states(harness, *(log("a1", f"{number}") for number in range(6)))
    release(harness, first)
    home = Home(harness, 2)
    assert harness.read(release_stage(home, home.watch, harness.now())) == 2
    second = engage(harness)
    assert harness.read(release_stage(home, home.watch, harness.now())) == 0
    assert (row_of(harness, first)["state"], row_of(harness, second)["state"]) == ("released", "engaged")
    assert bodies(harness, "kill_switch_released")[-1]["held_by_another"] == 4
    release(harness, second)
    while row_of(harness, second)["state"] == "releasing":
        harness.read(release_stage(home, home.watch, harness.now()))
    assert delivered(harness) == [f"{number}" for number in range(6)]


def test_instructions_are_stored_version_by_version_and_wait_in_inboxes_s169(harness: Harness) -> None:
    """S168, S169: the text is in the database and in the inbox, not in the record."""
    harness.send(log("a1", "1"), log("a2", "2", "s2", "reader"))
    who = person(harness)
    acts = [
        instructions.issue(who, "writer", "be kind", "first", (), harness.now()),
        instructions.issue(who, "writer", "be terse", "second", (), harness.now()),
        instructions.roll_back(who, "writer", 1, (), harness.now()),
    ]
    assert [verdict.answer["told"] for verdict in harness.submit(*acts[:2])] == [1, 1]
    assert harness.submit(acts[2])[0].answer["version"] == 3
    rows = harness.read(harness.store.rows(HOME_TENANT, "instructions", agent_type="writer"))
    texts = {row["version"]: row["text"] for row in rows}
    assert texts == {1: "be kind", 2: "be terse", 3: "be kind"}
    waiting = harness.read(harness.store.rows(HOME_TENANT, "deliveries", kind="instruction"))
    assert sorted(json.loads(row["body"])["version"] for row in waiting) == [1, 2, 3]
    assert not [event for event in harness.trail_of() if b"be kind" in event.record]
