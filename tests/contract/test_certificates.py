"""Agents bound to certificates, and the inventory of those that were shown, on both databases."""

from __future__ import annotations

import json
import uuid
from typing import Any

import msgspec
import pytest

from observatory.features.certificates import commands as acts
from observatory.features.certificates.authority import issue, make_authority
from observatory.features.certificates.commands import MAX_PRESENTED, PresentedCertificate
from observatory.features.inbox import commands as inbox
from observatory.features.registry import commands as enrolment
from observatory.pipeline.state import (
    HOME_TENANT,
    Command,
    IncomingMessage,
    Principal,
    RejectedBody,
    SubmissionResult,
)
from observatory.protocol.certificates import Certificate, make_binding, read
from observatory.protocol.identity import agent_entity_id
from tests.contract.conftest import OTHER_TENANT, Harness
from tests.samples import decision_log

AUTHORITY = make_authority("Contract authority")
GATEWAY_PRINCIPAL = Principal(tenant_id=HOME_TENANT, role="admin", key_id="sys_gateway")
URI = "urn:observatory:agent:ada"


def certificate(name: str = "ada", uri: str = URI) -> Certificate:
    return read(issue(AUTHORITY, name, "agent", [uri]).der)


def new_message(agent_id: str) -> dict[str, Any]:
    body = decision_log()
    body["meta"] |= {"session_id": str(uuid.uuid4()), "step_id": str(uuid.uuid4())}
    body["identity"]["agent_id"] = agent_id
    return body


class Doors:
    """Every way to speak as an agent, through the corridor; the codes of all."""

    def __init__(self, harness: Harness, agent_id: str = "ada") -> None:
        self.harness, self.agent_id = harness, agent_id
        self.entity_id = agent_entity_id(HOME_TENANT, agent_id)

    def key(self, shown: Certificate | None, role: Any = "agent") -> Principal:
        version = self.harness.admin().access_version
        name = {"agent": "key_agent", "admin": "key_admin"}[role]
        return Principal(
            tenant_id=HOME_TENANT, role=role, key_id=name, access_version=version, certificate=shown
        )

    def say(self, shown: Certificate | None, role: str = "agent") -> SubmissionResult:
        arrival: IncomingMessage = self.harness.arrival(new_message(self.agent_id))
        return self.harness.submit(msgspec.structs.replace(arrival, principal=self.key(shown, role)))[0]

    def acts(self, shown: Certificate | None) -> list[Command]:
        who, now = self.key(shown), self.harness.now()
        return [
            enrolment.record_heartbeat(who, self.agent_id, None, {"status": "idle"}, now),
            enrolment.register(who, self.agent_id, {"model": "m"}, now),
            inbox.connect(who, self.agent_id, now, transport="websocket"),
            inbox.ack(who, self.entity_id, [], {}, now),
        ]

    def codes(self, shown: Certificate | None) -> set[int]:
        found = [self.harness.submit(act)[0].code for act in self.acts(shown)]
        return {self.say(shown).code, *found}

    def row(self) -> dict[str, Any]:
        return self.harness.read(self.harness.store.rows(HOME_TENANT, "agents", entity_id=self.entity_id))[0]

    def bind(self, kind: Any, value: str) -> SubmissionResult:
        act = acts.bind(self.harness.admin(), self.agent_id, make_binding(kind, value), self.harness.now())
        return self.harness.submit(act)[0]


def received(harness: Harness, event_type: str) -> list[dict[str, Any]]:
    bodies = [json.loads(event.record)["body"] for event in harness.trail_of()]
    return [body for body in bodies if body["event_type"] == event_type]


@pytest.mark.req(248)
def test_nobody_speaks_as_a_bound_agent_without_its_certificate_s860_s861_s863(harness: Harness) -> None:
    """S860: by no door, not even as an admin; S861: a name survives rotation; S863: on record, and undone."""
    doors, mine, renewed = Doors(harness), certificate(), certificate()
    another = certificate("eve", "urn:observatory:agent:eve")
    assert doors.bind("uri", URI).code == 404, "nobody knows this agent yet"
    assert doors.say(None).code == 202
    assert doors.row()["certificate"] is None and doors.row()["trust_level"] == "unverified"
    assert doors.bind("uri", URI).code == 200
    head = len(harness.trail_of())
    assert doors.bind("uri", URI).code == 200
    assert len(harness.trail_of()) == head, "what is so already is no change"
    before = doors.row()["messages"]
    for shown in (None, another):
        assert doors.codes(shown) == {403}
    assert doors.say(None, "admin").code == 403
    assert doors.say(mine, "admin").code == 202
    refused = [
        one for one in received(harness, "security_violation") if one["reason"] == "certificate_required"
    ]
    assert len(refused) == 11 and {one["shown"] for one in refused} == {None, another.fingerprint}
    assert doors.row()["messages"] == before + 1, "nothing of what was refused is counted"
    assert doors.codes(mine) == {200, 202} and doors.codes(renewed) == {200, 202}
    row = doors.row()
    assert row["certificate"] == renewed.fingerprint and row["trust_level"] == "tenant_verified"
    # One certificate and no other; an operator's own acts on it are not words of the agent.
    assert doors.bind("fingerprint", mine.fingerprint.upper()).code == 200
    assert doors.say(renewed).code == 403 and doors.say(mine).code == 202
    person = enrolment.register(harness.admin(), "ada", {"model": "other"}, harness.now())
    assert harness.submit(person)[0].code == 200
    # A body nobody could read does not blame an agent that did not send it.
    breach = RejectedBody(
        doors.key(None), harness.now(), "ada", None, "broken", "0" * 64, {"reason": "broken"}
    )
    assert harness.submit(breach)[0].code == 403 and doors.row()["violation_ns"] is None
    assert harness.submit(acts.unbind(harness.admin(), "ada", harness.now()))[0].answer["bound"] is False
    assert harness.submit(acts.unbind(harness.admin(), "ada", harness.now()))[0].code == 200
    assert doors.say(None).code == 202
    assert [one["kind"] for one in received(harness, "certificate_bound")] == ["uri", "fingerprint"]
    assert [one["value"] for one in received(harness, "certificate_unbound")] == [mine.fingerprint]


def test_an_ended_certificate_speaks_for_nobody_and_a_binding_counts_at_once_s860_s862(
    harness: Harness,
) -> None:
    """S860: also on a connection that was opened in time; S862: for what stands behind it in one batch."""
    doors, mine = Doors(harness), certificate()
    doors.say(None)
    act = acts.bind(harness.admin(), "ada", make_binding("subject", "CN=ada"), harness.now())
    beat = enrolment.record_heartbeat(doors.key(None), "ada", None, {}, harness.now())
    version = harness.admin().access_version
    assert [one.code for one in harness.submit(act, beat)] == [200, 403]
    assert harness.admin().access_version == version + 1, "open channels are looked at again"
    assert doors.say(mine).code == 202
    ended = msgspec.structs.replace(mine, not_after_ns=harness.now() - 1)
    early = msgspec.structs.replace(mine, not_before_ns=harness.now() + 10**12)
    assert doors.say(ended).code == 403 and doors.say(early).code == 403


@pytest.mark.req(201)
def test_the_inventory_has_so_many_places_and_is_the_tenant_s_own_s866(harness: Harness) -> None:
    """S866: first and last sight, the keys, and never more rows than places, whatever clients show."""
    harness.create_tenant(OTHER_TENANT)
    one = certificate()
    seen = acts.record_presented(
        GATEWAY_PRINCIPAL, [PresentedCertificate(one, 10, ("key_a",))], harness.now()
    )
    again = acts.record_presented(
        GATEWAY_PRINCIPAL, [PresentedCertificate(one, 30, ("key_b", "key_a"))], harness.now()
    )
    trail = len(harness.trail_of())
    assert [verdict.code for verdict in harness.submit(seen, again)] == [200, 200]
    assert len(harness.trail_of()) == trail

    def rows(tenant_id: str = HOME_TENANT) -> list[dict[str, Any]]:
        return harness.read(harness.store.rows(tenant_id, "certificates"))

    [row] = rows()
    assert (row["first_seen_ns"], row["last_seen_ns"]) == (10, 30)
    assert json.loads(row["key_ids"]) == ["key_b", "key_a"] and json.loads(row["names"]) == [f"uri:{URI}"]
    many = [
        PresentedCertificate(
            msgspec.structs.replace(one, fingerprint=f"{number:064x}"), 100 + number, ("key_x",)
        )
        for number in range(MAX_PRESENTED + 20)
    ]
    harness.submit(acts.record_presented(GATEWAY_PRINCIPAL, many, harness.now()))
    kept = {row["fingerprint"] for row in rows()}
    assert len(kept) == len(rows()) == MAX_PRESENTED
    assert one.fingerprint not in kept and many[-1].certificate.fingerprint in kept
    assert rows(OTHER_TENANT) == []
