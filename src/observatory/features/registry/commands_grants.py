"""Whose work an agent gets is an operator's word: grants of capabilities and clusters (S1145).

An address is `type:<capability>` or `cluster:<id>`. What an agent says of itself changes nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from observatory.pipeline import tenant_settings
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Principal, Rulebook, Verdict
from observatory.protocol.answers import Fault, Refused
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.rulebook import RoutingSettings

NAME = "routing"
MAX_GRANTS = 10_000
Row = Mapping[str, Any]


PREFIXES = ("cluster:", "type:")


def address_of(word: str) -> str:
    """As people name it: a capability by its name, a cluster as `cluster:<id>`."""
    return word if word.startswith(PREFIXES) else f"type:{word}"


def word_of(address: str) -> str:
    """What `address_of` reads as this address: a capability may be named like another address (S1312)."""
    word = address.removeprefix("type:")
    return address if word.startswith(PREFIXES) else word


def book_of(settings: Iterable[Row], given: Iterable[Row]) -> Rulebook:
    """What of the rulebook says who gets work, of rows as they are stored."""
    [routing] = [msgspec.json.decode(row["value"], type=RoutingSettings) for row in settings] or [
        RoutingSettings()
    ]
    grants: dict[str, frozenset[str]] = {}
    for row in given:
        if row["removed_ns"] is None:
            grants[row["entity_id"]] = grants.get(row["entity_id"], frozenset()) | {row["address"]}
    return Rulebook(routing=routing, grants=grants)


def settle(who: Principal, asked: dict[str, Any], now_ns: int) -> Act:
    return tenant_settings.change(who, NAME, asked, merged, now_ns)


def merged(before: RoutingSettings, asked: dict[str, Any]) -> tuple[RoutingSettings | None, list[Fault]]:
    after, faults = tenant_settings.merged(before, asked)
    return (None, faults) if faults else (after, [])


def change(who: Principal, agent_id: str, grant: Sequence[str], revoke: Sequence[str], now_ns: int) -> Act:
    """Give and take addresses; what is so already is no event. An agent may be given work before it comes."""
    entity_id = agent_entity_id(who.tenant_id, agent_id)

    def decide(desk: Desk) -> Verdict:
        memory = desk.memory
        before = memory.rulebook.grants.get(entity_id, frozenset())
        after = (before | set(grant)) - set(revoke)
        agent = memory.agents.get(entity_id)
        name = agent_id if agent is None else agent.agent_id
        answer = {"agent_id": name, "entity_id": entity_id, "granted": sorted(map(word_of, after))}
        if after == before:
            return Verdict(200, answer)
        if sum(map(len, memory.rulebook.grants.values())) + len(after) - len(before) > MAX_GRANTS:
            detail = f"a tenant has at most {MAX_GRANTS:,} grants"
            return Verdict(409, Refused(reason="too_many", detail=detail))
        grants = memory.rulebook.grants | {entity_id: after}
        memory.rulebook = msgspec.structs.replace(memory.rulebook, grants=grants)
        memory.tenant.rulebook_version += 1
        told: dict[str, Any] = {"agent_id": name, "entity_id": entity_id}
        told |= {"granted": sorted(after - before), "revoked": sorted(before - after)}
        summary = f"{name} gets work for: {', '.join(map(word_of, sorted(after))) or 'nothing'}"
        event = notice(who.tenant_id, "capability_granted", summary, desk.now_ns, who, told)
        writes = [_given(who, entity_id, name, one, desk.now_ns) for one in sorted(after - before)]
        writes += [_taken(who, entity_id, one, desk.now_ns) for one in sorted(before - after)]
        return Verdict(200, answer, [event], writes)

    act = Act(who, now_ns, decide)
    act.wants.agents.add(entity_id)
    return act


def _given(who: Principal, entity_id: str, agent_id: str, address: str, now_ns: int) -> Write:
    row = {
        "tenant_id": who.tenant_id,
        "entity_id": entity_id,
        "address": address,
        "agent_id": agent_id,
        "granted_ns": now_ns,
        "granted_by": who.entity_id,
        "removed_ns": None,
    }
    return Write("grants", row, key=("tenant_id", "entity_id", "address"))


def _taken(who: Principal, entity_id: str, address: str, now_ns: int) -> Write:
    where = {"tenant_id": who.tenant_id, "entity_id": entity_id, "address": address}
    return Write("grants", {"removed_ns": now_ns}, where)
