"""Agents bound to certificates, and the inventory of those that were shown, on both databases."""

from __future__ import annotations

import json
import uuid
from typing import Any

import msgspec
import pytest

from observatory.features.certificates import commands as acts
from observatory.features.certificates.authority import issue, make_authority
from observatory.features.certificates.commands import PLACES, Shown
from observatory.features.inbox import commands as inbox
from observatory.features.registry import commands as enrolment
from observatory.pipeline.state import HOME_TENANT, Act, Arrival, Breach, Principal, Verdict
from observatory.protocol.certificates import Certificate, bound_to, read
from observatory.protocol.identity import agent_entity_id
from tests.contract.conftest import OTHER_TENANT, House
from tests.samples import decision_log

AUTHORITY = make_authority("Contract authority")
HOUSE = Principal(tenant_id=HOME_TENANT, role="admin", key_id="sys_gateway")
URI = "urn:observatory:agent:ada"


def certificate(name: str = "ada", uri: str = URI) -> Certificate:
    return read(issue(AUTHORITY, name, "agent", [uri]).der)


def said(agent_id: str) -> dict[str, Any]:
    body = decision_log()
    body["meta"] |= {"session_id": str(uuid.uuid4()), "step_id": str(uuid.uuid4())}
    body["identity"]["agent_id"] = agent_id
    return body


class Doors:
    """Every way to speak as an agent, through the corridor; the codes of all."""

    def __init__(self, house: House, agent_id: str = "ada") -> None:
        self.house, self.agent_id = house, agent_id
        self.entity_id = agent_entity_id(HOME_TENANT, agent_id)

    def key(self, shown: Certificate | None, role: Any = "agent") -> Principal:
        version = self.house.admin().access_version
        name = {"agent": "key_agent", "admin": "key_admin"}[role]
        return Principal(
            tenant_id=HOME_TENANT, role=role, key_id=name, access_version=version, certificate=shown
        )

    def say(self, shown: Certificate | None, role: str = "agent") -> Verdict:
        arrival: Arrival = self.house.arrival(said(self.agent_id))
        return self.house.submit(msgspec.structs.replace(arrival, principal=self.key(shown, role)))[0]

    def acts(self, shown: Certificate | None) -> list[Act]:
        who, now = self.key(shown), self.house.now()
        return [
            enrolment.beat(who, self.agent_id, None, {"status": "idle"}, now),
            enrolment.register(who, self.agent_id, {"model": "m"}, now),
            inbox.arrive(who, self.agent_id, now, transport="websocket"),
            inbox.ack(who, self.entity_id, [], {}, now),
        ]

    def codes(self, shown: Certificate | None) -> set[int]:
        found = [self.house.submit(act)[0].code for act in self.acts(shown)]
        return {self.say(shown).code, *found}

    def row(self) -> dict[str, Any]:
        return self.house.read(self.house.store.rows(HOME_TENANT, "agents", entity_id=self.entity_id))[0]

    def bind(self, kind: Any, value: str) -> Verdict:
        act = acts.bind(self.house.admin(), self.agent_id, bound_to(kind, value), self.house.now())
        return self.house.submit(act)[0]


def told(house: House, event_type: str) -> list[dict[str, Any]]:
    bodies = [json.loads(event.record)["body"] for event in house.trail_of()]
    return [body for body in bodies if body["event_type"] == event_type]


@pytest.mark.req(248)
def test_nobody_speaks_as_a_bound_agent_without_its_certificate_s860_s861_s863(house: House) -> None:
    """S860: by no door, not even as an admin; S861: a name survives rotation; S863: on record, and undone."""
    doors, mine, renewed = Doors(house), certificate(), certificate()
    another = certificate("eve", "urn:observatory:agent:eve")
    assert doors.bind("uri", URI).code == 404, "nobody knows this agent yet"
    assert doors.say(None).code == 202
    assert doors.row()["certificate"] is None and doors.row()["trust_level"] == "unverified"
    assert doors.bind("uri", URI).code == 200
    head = len(house.trail_of())
    assert doors.bind("uri", URI).code == 200
    assert len(house.trail_of()) == head, "what is so already is no change"
    before = doors.row()["messages"]
    for shown in (None, another):
        assert doors.codes(shown) == {403}
    assert doors.say(None, "admin").code == 403
    assert doors.say(mine, "admin").code == 202
    refused = [one for one in told(house, "security_violation") if one["reason"] == "certificate_required"]
    assert len(refused) == 11 and {one["shown"] for one in refused} == {None, another.fingerprint}
    assert doors.row()["messages"] == before + 1, "nothing of what was refused is counted"
    assert doors.codes(mine) == {200, 202} and doors.codes(renewed) == {200, 202}
    row = doors.row()
    assert row["certificate"] == renewed.fingerprint and row["trust_level"] == "tenant_verified"
    # One certificate and no other; an operator's own acts on it are not words of the agent.
    assert doors.bind("fingerprint", mine.fingerprint.upper()).code == 200
    assert doors.say(renewed).code == 403 and doors.say(mine).code == 202
    person = enrolment.register(house.admin(), "ada", {"model": "other"}, house.now())
    assert house.submit(person)[0].code == 200
    # A body nobody could read does not blame an agent that did not send it.
    breach = Breach(doors.key(None), house.now(), "ada", None, "broken", "0" * 64, {"reason": "broken"})
    assert house.submit(breach)[0].code == 403 and doors.row()["violation_ns"] is None
    assert house.submit(acts.unbind(house.admin(), "ada", house.now()))[0].answer["bound"] is False
    assert house.submit(acts.unbind(house.admin(), "ada", house.now()))[0].code == 200
    assert doors.say(None).code == 202
    assert [one["kind"] for one in told(house, "certificate_bound")] == ["uri", "fingerprint"]
    assert [one["value"] for one in told(house, "certificate_unbound")] == [mine.fingerprint]


def test_an_ended_certificate_speaks_for_nobody_and_a_binding_counts_at_once_s860_s862(house: House) -> None:
    """S860: also on a connection that was opened in time; S862: for what stands behind it in one batch."""
    doors, mine = Doors(house), certificate()
    doors.say(None)
    act = acts.bind(house.admin(), "ada", bound_to("subject", "CN=ada"), house.now())
    beat = enrolment.beat(doors.key(None), "ada", None, {}, house.now())
    version = house.admin().access_version
    assert [one.code for one in house.submit(act, beat)] == [200, 403]
    assert house.admin().access_version == version + 1, "open channels are looked at again"
    assert doors.say(mine).code == 202
    ended = msgspec.structs.replace(mine, not_after_ns=house.now() - 1)
    early = msgspec.structs.replace(mine, not_before_ns=house.now() + 10**12)
    assert doors.say(ended).code == 403 and doors.say(early).code == 403


@pytest.mark.req(201)
def test_the_inventory_has_so_many_places_and_is_the_tenant_s_own_s866(house: House) -> None:
    """S866: first and last sight, the keys, and never more rows than places, whatever clients show."""
    house.create_tenant(OTHER_TENANT)
    one = certificate()
    seen = acts.note(HOUSE, [Shown(one, 10, ("key_a",))], house.now())
    again = acts.note(HOUSE, [Shown(one, 30, ("key_b", "key_a"))], house.now())
    trail = len(house.trail_of())
    assert [verdict.code for verdict in house.submit(seen, again)] == [200, 200]
    assert len(house.trail_of()) == trail

    def rows(tenant_id: str = HOME_TENANT) -> list[dict[str, Any]]:
        return house.read(house.store.rows(tenant_id, "certificates"))

    [row] = rows()
    assert (row["first_seen_ns"], row["last_seen_ns"]) == (10, 30)
    assert json.loads(row["key_ids"]) == ["key_b", "key_a"] and json.loads(row["names"]) == [f"uri:{URI}"]
    many = [
        Shown(msgspec.structs.replace(one, fingerprint=f"{number:064x}"), 100 + number, ("key_x",))
        for number in range(PLACES + 20)
    ]
    house.submit(acts.note(HOUSE, many, house.now()))
    kept = {row["fingerprint"] for row in rows()}
    assert len(kept) == len(rows()) == PLACES
    assert one.fingerprint not in kept and many[-1].certificate.fingerprint in kept
    assert rows(OTHER_TENANT) == []
