"""Acts on certificates: an agent is bound to one or let go of it, and what was shown is noted.

Laws: a binding counts from the transaction that writes it: it raises the rulebook's number, so that the next
message goes by it, and the access version, so that open channels are looked at again. What was shown is no
event and has `PLACES` numbered places a tenant: a new one takes the place of the one longest unseen, so that
no client, however many certificates it has, makes the table grow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Memory, Principal, Verdict, Wants
from observatory.protocol.answers import Refused
from observatory.protocol.certificates import Binding, Certificate
from observatory.protocol.identity import agent_entity_id

PLACES = 1_000
MOST_KEYS = 20  # that showed one certificate; the newest are kept
MOST_BOUND = 10_000  # agents of a tenant that are bound: the rulebook holds them all in memory
Row = dict[str, Any]


class Shown(NamedTuple):
    """A certificate somebody proved to hold: when last, and with which keys."""

    certificate: Certificate
    at_ns: int
    key_ids: tuple[str, ...]


def bind(who: Principal, agent_id: str, binding: Binding, now_ns: int) -> Act:
    """From now on nobody speaks as this agent without that certificate. 200 also when it was bound so."""
    entity_id = agent_entity_id(who.tenant_id, agent_id)
    wants = _wants(entity_id)

    def decide(desk: Desk) -> Verdict:
        memory, now_ns = desk.memory, desk.now_ns
        agent = memory.agents.get(entity_id)
        if agent is None:
            return _unknown()
        bound = memory.rulebook.certificates
        if entity_id not in bound and len(bound) >= MOST_BOUND:
            detail = f"a tenant has at most {MOST_BOUND} agents bound to certificates"
            return Verdict(409, Refused(reason="too_many", detail=detail))
        if bound.get(entity_id) == binding:
            return Verdict(200, memory.rows["agent_certificates"][entity_id])
        row: Row = {
            "tenant_id": who.tenant_id,
            "entity_id": entity_id,
            "agent_id": agent.agent_id,
            "kind": binding.kind,
            "value": binding.value,
            "bound_ns": now_ns,
            "bound_by": who.entity_id,
            "removed_ns": None,
        }
        _obey(memory, bound | {entity_id: binding}, entity_id, row)
        summary = f"agent {agent.agent_id} is bound to a certificate, by {binding.kind}"
        told = {"agent_id": agent.agent_id, "entity_id": entity_id}
        told |= {"kind": binding.kind, "value": binding.value}
        event = notice(who.tenant_id, "certificate_bound", summary, now_ns, who, told)
        write = Write("agent_certificates", row, key=("tenant_id", "entity_id"))
        return Verdict(200, row, [event], [write])

    return Act(who, now_ns, decide, wants)


def unbind(who: Principal, agent_id: str, now_ns: int) -> Act:
    """Let go: its keys alone say again who it is."""
    entity_id = agent_entity_id(who.tenant_id, agent_id)

    def decide(desk: Desk) -> Verdict:
        memory, now_ns = desk.memory, desk.now_ns
        agent = memory.agents.get(entity_id)
        if agent is None:
            return _unknown()
        bound = dict(memory.rulebook.certificates)
        was = bound.pop(entity_id, None)
        answer = {"agent_id": agent.agent_id, "entity_id": entity_id, "bound": False}
        if was is None:
            return Verdict(200, answer)
        row = memory.rows["agent_certificates"][entity_id] | {"removed_ns": now_ns}
        _obey(memory, bound, entity_id, row)
        summary = f"agent {agent.agent_id} is bound to no certificate any more"
        detail = {"agent_id": agent.agent_id, "entity_id": entity_id, "kind": was.kind, "value": was.value}
        event = notice(who.tenant_id, "certificate_unbound", summary, now_ns, who, detail)
        where = {"tenant_id": who.tenant_id, "entity_id": entity_id}
        return Verdict(200, answer, [event], [Write("agent_certificates", {"removed_ns": now_ns}, where)])

    return Act(who, now_ns, decide, _wants(entity_id))


def _wants(entity_id: str) -> Wants:
    wants = Wants(agents={entity_id})
    wants.row("agent_certificates", entity_id)
    return wants


def _unknown() -> Verdict:
    detail = "no agent of this tenant has that name or id; it is known once it has spoken or was registered"
    return Verdict(404, Refused(reason="not_found", detail=detail))


def _obey(memory: Memory, bound: dict[str, Binding], entity_id: str, row: Row) -> None:
    """Acts and messages behind this one in the batch go by it already."""
    memory.tenant.rulebook_version += 1
    memory.tenant.access_version += 1
    memory.rulebook = msgspec.structs.replace(memory.rulebook, certificates=bound)
    memory.rows.setdefault("agent_certificates", {})[entity_id] = row


def note(house: Principal, shown: Iterable[Shown], now_ns: int) -> Act:
    """Keep what was shown. It leaves no event: the events of who showed it are what is on record."""
    tenant_id, seen = house.tenant_id, list(shown)
    wants = Wants()
    wants.row("certificates", tenant_id)

    def decide(desk: Desk) -> Verdict:
        rows = desk.memory.rows.setdefault("certificates", {})
        places = {row["fingerprint"]: slot for (_, slot), row in rows.items()}
        writes = []
        for one in seen:
            slot = places.get(one.certificate.fingerprint)
            before = None if slot is None else rows[(tenant_id, slot)]
            if slot is None:
                slot = _place(rows)
                places = {name: where for name, where in places.items() if where != slot}
            row = _row(tenant_id, slot, one, before)
            rows[(tenant_id, slot)] = row
            places[one.certificate.fingerprint] = slot
            writes.append(Write("certificates", row, key=("tenant_id", "slot")))
        return Verdict(200, len(writes), [], writes)

    return Act(house, now_ns, decide, wants)


def _place(rows: dict[Any, Row]) -> int:
    """A free one, else that of the one longest unseen."""
    if len(rows) < PLACES:
        return len(rows) + 1
    return int(min(rows.values(), key=lambda row: (row["last_seen_ns"], row["slot"]))["slot"])


def _row(tenant_id: str, slot: int, one: Shown, before: Row | None) -> Row:
    facts = one.certificate
    known = [] if before is None else msgspec.json.decode(before["key_ids"])
    keys = list(dict.fromkeys([*one.key_ids, *known]))[:MOST_KEYS]
    return {
        "tenant_id": tenant_id,
        "slot": slot,
        "fingerprint": facts.fingerprint,
        "subject": facts.subject,
        "issuer": facts.issuer,
        "serial": facts.serial,
        "names": msgspec.json.encode(facts.names).decode(),
        "not_before_ns": facts.not_before_ns,
        "not_after_ns": facts.not_after_ns,
        "first_seen_ns": one.at_ns if before is None else before["first_seen_ns"],
        "last_seen_ns": one.at_ns if before is None else max(one.at_ns, before["last_seen_ns"]),
        "key_ids": msgspec.json.encode(keys).decode(),
    }
