"""Commands on certificates: bind an agent, unbind it, and record which certificates were presented.

Invariants: a binding counts from the transaction that writes it: it raises the policy version, so that the
next message is checked against it, and the access version, so that open channels are checked again. A
presented certificate writes no event; it takes one of `PLACES` numbered rows per tenant, replacing the one
unseen longest, so that no client can make the table grow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import BatchState, Command, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol.certificates import Binding, Certificate
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.responses import Refused

MAX_PRESENTED = 1_000
MAX_KEYS = 20  # keys seen with one certificate; the newest are kept
MAX_BOUND = 10_000  # bound agents of a tenant: the tenant's policies keep them all in memory
Row = dict[str, Any]


class PresentedCertificate(NamedTuple):
    """A certificate a client proved to own: when last, and with which API keys."""

    certificate: Certificate
    at_ns: int
    key_ids: tuple[str, ...]


def bind(who: Principal, agent_id: str, binding: Binding, now_ns: int) -> Command:
    """From now on no key can act as this agent without that certificate. 200 also when it was bound
    already."""
    entity_id = agent_entity_id(who.tenant_id, agent_id)
    read_set = _wants(entity_id)

    def decide(uow: UnitOfWork) -> SubmissionResult:
        memory, now_ns = uow.memory, uow.now_ns
        agent = memory.agents.get(entity_id)
        if agent is None:
            return _unknown()
        bound = memory.tenant_config.certificates
        if entity_id not in bound and len(bound) >= MAX_BOUND:
            detail = f"a tenant has at most {MAX_BOUND} agents bound to certificates"
            return SubmissionResult(409, Refused(reason="too_many", detail=detail))
        if bound.get(entity_id) == binding:
            return SubmissionResult(200, memory.rows["agent_certificates"][entity_id])
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
        _apply(memory, bound | {entity_id: binding}, entity_id, row)
        summary = f"agent {agent.agent_id} is bound to a certificate, by {binding.kind}"
        event_detail = {"agent_id": agent.agent_id, "entity_id": entity_id}
        event_detail |= {"kind": binding.kind, "value": binding.value}
        event = gateway_event(who.tenant_id, "certificate_bound", summary, now_ns, who, event_detail)
        write = RowWrite("agent_certificates", row, key=("tenant_id", "entity_id"))
        return SubmissionResult(200, row, [event], [write])

    return Command(who, now_ns, decide, read_set)


def unbind(who: Principal, agent_id: str, now_ns: int) -> Command:
    """Remove the binding: the agent's API keys alone identify it again."""
    entity_id = agent_entity_id(who.tenant_id, agent_id)

    def decide(uow: UnitOfWork) -> SubmissionResult:
        memory, now_ns = uow.memory, uow.now_ns
        agent = memory.agents.get(entity_id)
        if agent is None:
            return _unknown()
        bound = dict(memory.tenant_config.certificates)
        was = bound.pop(entity_id, None)
        answer = {"agent_id": agent.agent_id, "entity_id": entity_id, "bound": False}
        if was is None:
            return SubmissionResult(200, answer)
        row = memory.rows["agent_certificates"][entity_id] | {"removed_ns": now_ns}
        _apply(memory, bound, entity_id, row)
        summary = f"agent {agent.agent_id} is no longer bound to a certificate"
        detail = {"agent_id": agent.agent_id, "entity_id": entity_id, "kind": was.kind, "value": was.value}
        event = gateway_event(who.tenant_id, "certificate_unbound", summary, now_ns, who, detail)
        where = {"tenant_id": who.tenant_id, "entity_id": entity_id}
        return SubmissionResult(
            200, answer, [event], [RowWrite("agent_certificates", {"removed_ns": now_ns}, where)]
        )

    return Command(who, now_ns, decide, _wants(entity_id))


def _wants(entity_id: str) -> ReadSet:
    read_set = ReadSet(agents={entity_id})
    read_set.row("agent_certificates", entity_id)
    return read_set


def _unknown() -> SubmissionResult:
    detail = (
        "no agent of this tenant has that name or id; agents appear with their first message or registration"
    )
    return SubmissionResult(404, Refused(reason="not_found", detail=detail))


def _apply(memory: BatchState, bound: dict[str, Binding], entity_id: str, row: Row) -> None:
    """Later commands and messages of this batch are already checked against it."""
    memory.tenant.rulebook_version += 1
    memory.tenant.access_version += 1
    memory.tenant_config = msgspec.structs.replace(memory.tenant_config, certificates=bound)
    memory.rows.setdefault("agent_certificates", {})[entity_id] = row


def record_presented(gateway: Principal, shown: Iterable[PresentedCertificate], now_ns: int) -> Command:
    """Record presented certificates. Writes no event: the events of the clients are on record."""
    tenant_id, seen = gateway.tenant_id, list(shown)
    read_set = ReadSet()
    read_set.row("certificates", tenant_id)

    def decide(uow: UnitOfWork) -> SubmissionResult:
        rows = uow.memory.rows.setdefault("certificates", {})
        slots = {row["fingerprint"]: slot for (_, slot), row in rows.items()}
        writes = []
        for one in seen:
            slot = slots.get(one.certificate.fingerprint)
            before = None if slot is None else rows[(tenant_id, slot)]
            if slot is None:
                slot = _free_slot(rows)
                slots = {name: where for name, where in slots.items() if where != slot}
            row = _row(tenant_id, slot, one, before)
            rows[(tenant_id, slot)] = row
            slots[one.certificate.fingerprint] = slot
            writes.append(RowWrite("certificates", row, key=("tenant_id", "slot")))
        return SubmissionResult(200, len(writes), [], writes)

    return Command(gateway, now_ns, decide, read_set)


def _free_slot(rows: dict[Any, Row]) -> int:
    """A free slot, else the slot of the one unseen longest."""
    if len(rows) < MAX_PRESENTED:
        return len(rows) + 1
    return int(min(rows.values(), key=lambda row: (row["last_seen_ns"], row["slot"]))["slot"])


def _row(tenant_id: str, slot: int, one: PresentedCertificate, before: Row | None) -> Row:
    facts = one.certificate
    known = [] if before is None else msgspec.json.decode(before["key_ids"])
    keys = list(dict.fromkeys([*one.key_ids, *known]))[:MAX_KEYS]
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
