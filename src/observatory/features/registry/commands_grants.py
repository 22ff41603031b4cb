"""Commands on grants: the capabilities and clusters whose work operators give to agents (S1145).

An address is `type:<capability>` or `cluster:<id>`. What an agent registers changes nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from observatory.pipeline import tenant_settings
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, Principal, SubmissionResult, TenantConfig, UnitOfWork
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.responses import Fault, Refused
from observatory.protocol.tenant_config import RoutingSettings

NAME = "routing"
MAX_GRANTS = 10_000
Row = Mapping[str, Any]


PREFIXES = ("cluster:", "type:")


def address_of(name: str) -> str:
    """The address a person means: a capability by its name, a cluster as `cluster:<id>`."""
    return name if name.startswith(PREFIXES) else f"type:{name}"


def grant_name(address: str) -> str:
    """The name that `address_of` reads as this address: a capability may be named like an address (S1312)."""
    name = address.removeprefix("type:")
    return address if name.startswith(PREFIXES) else name


def routing_config_from_rows(settings: Iterable[Row], given: Iterable[Row]) -> TenantConfig:
    """The part of the tenant's configuration that decides who gets work, from stored rows."""
    [routing] = [msgspec.json.decode(row["value"], type=RoutingSettings) for row in settings] or [
        RoutingSettings()
    ]
    grants: dict[str, frozenset[str]] = {}
    for row in given:
        if row["removed_ns"] is None:
            grants[row["entity_id"]] = grants.get(row["entity_id"], frozenset()) | {row["address"]}
    return TenantConfig(routing=routing, grants=grants)


def change_routing(who: Principal, changes: dict[str, Any], now_ns: int) -> Command:
    return tenant_settings.change_settings(who, NAME, changes, merged, now_ns)


def merged(before: RoutingSettings, changes: dict[str, Any]) -> tuple[RoutingSettings | None, list[Fault]]:
    after, faults = tenant_settings.merge_settings(before, changes)
    return (None, faults) if faults else (after, [])


def change(
    who: Principal, agent_id: str, grant: Sequence[str], revoke: Sequence[str], now_ns: int
) -> Command:
    """Grant and revoke addresses; no change, no event. Grants may precede the agent's registration."""
    entity_id = agent_entity_id(who.tenant_id, agent_id)

    def decide(uow: UnitOfWork) -> SubmissionResult:
        memory = uow.memory
        before = memory.tenant_config.grants.get(entity_id, frozenset())
        after = (before | set(grant)) - set(revoke)
        agent = memory.agents.get(entity_id)
        name = agent_id if agent is None else agent.agent_id
        answer = {"agent_id": name, "entity_id": entity_id, "granted": sorted(map(grant_name, after))}
        if after == before:
            return SubmissionResult(200, answer)
        if sum(map(len, memory.tenant_config.grants.values())) + len(after) - len(before) > MAX_GRANTS:
            limit = f"a tenant has at most {MAX_GRANTS:,} grants"
            return SubmissionResult(409, Refused(reason="too_many", detail=limit))
        grants = memory.tenant_config.grants | {entity_id: after}
        memory.tenant_config = msgspec.structs.replace(memory.tenant_config, grants=grants)
        memory.tenant.rulebook_version += 1
        detail: dict[str, Any] = {"agent_id": name, "entity_id": entity_id}
        detail |= {"granted": sorted(after - before), "revoked": sorted(before - after)}
        summary = f"{name} gets work for: {', '.join(map(grant_name, sorted(after))) or 'nothing'}"
        event = gateway_event(who.tenant_id, "capability_granted", summary, uow.now_ns, who, detail)
        writes = [_grant_row(who, entity_id, name, one, uow.now_ns) for one in sorted(after - before)]
        writes += [_revocation(who, entity_id, one, uow.now_ns) for one in sorted(before - after)]
        return SubmissionResult(200, answer, [event], writes)

    act = Command(who, now_ns, decide)
    act.read_set.agents.add(entity_id)
    return act


def _grant_row(who: Principal, entity_id: str, agent_id: str, address: str, now_ns: int) -> RowWrite:
    row = {
        "tenant_id": who.tenant_id,
        "entity_id": entity_id,
        "address": address,
        "agent_id": agent_id,
        "granted_ns": now_ns,
        "granted_by": who.entity_id,
        "removed_ns": None,
    }
    return RowWrite("grants", row, key=("tenant_id", "entity_id", "address"))


def _revocation(who: Principal, entity_id: str, address: str, now_ns: int) -> RowWrite:
    where = {"tenant_id": who.tenant_id, "entity_id": entity_id, "address": address}
    return RowWrite("grants", {"removed_ns": now_ns}, where)
