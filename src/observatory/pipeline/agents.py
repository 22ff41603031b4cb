"""The Capability Map: agents, their liveness, and the sessions they are in (ruling 27).

Rows are created by the first message or by registration and updated by what agents send. The server sets
`trust_level` (ruling 9): a key bound to this agent makes it `tenant_verified`; an unbound key leaves it
`unverified`. Liveness comes from heartbeats alone and lives in `pulses`, never in the agent's row: that row
is cached from batch to batch and so may change only together with an event, while most heartbeats write none.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import msgspec

from observatory.pipeline.event_draft import in_session
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.rows import AgentRow, MemberRow, RowWrite, SessionRow
from observatory.pipeline.state import (
    BatchState,
    EventDraft,
    Principal,
    SubmissionResult,
    TenantConfig,
    UnitOfWork,
)
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.messages import Heartbeat
from observatory.protocol.spelling import are_same_name

Liveness = Literal["healthy", "zombie", "evicted", "unknown"]
SECOND = 1_000_000_000
# A heartbeat whose status is unchanged is chained once in this time.
CHAINED_NS = 60 * SECOND
# Columns of an agent that decide where it can be reached.
ADDRESS_COLUMNS = ("agent_no", "entity_id", "agent_id", "agent_type", "cluster_id", "capabilities")


class LivenessTimes(msgspec.Struct):
    """When an agent counts as silent; set once at start from the settings, by `commands_eviction`."""

    check_ns: int = 30 * SECOND
    timeout_ns: int = 90 * SECOND


TIMES = LivenessTimes()


def liveness(evicted_ns: int | None, heartbeat_ns: int | None, now_ns: int) -> Liveness:
    if evicted_ns is not None:
        return "evicted"
    if heartbeat_ns is None:
        return "unknown"
    return "healthy" if now_ns - heartbeat_ns <= TIMES.check_ns else "zombie"


def find_or_create_agent(ctx: MessageContext, memory: BatchState, now_ns: int) -> SubmissionResult | None:
    """The stage that finds or creates the message's agent, before placement."""
    message = ctx.message
    if message.sender_type != "agent":
        return None
    agent = memory.agents.get(ctx.entity_id)
    if agent is None:
        name = best_name(ctx.principal, message.sender_id, ctx.entity_id)
        agent = create_agent(memory, ctx.entity_id, name, now_ns)
        ctx.events.append(_first_seen_event(memory, agent, ctx.principal, now_ns))
    elif agent.agent_id == agent.entity_id:
        event = learn_name(memory, agent, ctx.principal, message.sender_id, now_ns)
        ctx.events += [] if event is None else [event]
    ctx.agent = agent
    return None


def best_name(who: Principal, agent_id: str, entity_id: str) -> str:
    """The bound key's agent name if the message gives only the entity id, else the given name."""
    bound = who.agent_id
    if agent_id == entity_id and bound is not None and agent_entity_id(who.tenant_id, bound) == entity_id:
        return bound
    return agent_id


def join_session(ctx: MessageContext, memory: BatchState, now_ns: int) -> SubmissionResult | None:
    """The stage after all that may refuse: an evicted agent recovers; a first message joins the session."""
    agent, member = ctx.agent, ctx.member
    if agent is None or member is None:
        return None
    if agent.evicted_ns is not None:
        event, write = recover(memory, agent, ctx.principal, now_ns)
        ctx.events.append(event)
        ctx.writes.append(write)
    if member.arrived_ns == 0:  # never joined, or left
        session = ctx.session
        assert session is not None
        if session.agents > (member.messages > 0):
            ctx.events.append(_membership_event("agent_joined_room", session, agent, now_ns))
    return None


def create_agent(memory: BatchState, entity_id: str, agent_id: str, now_ns: int) -> AgentRow:
    memory.tenant.agents += 1
    agent = memory.agents[entity_id] = AgentRow(
        agent_no=memory.tenant.agents,
        entity_id=entity_id,
        agent_id=agent_id,
        first_seen_ns=now_ns,
    )
    memory.touch(agent)
    return agent


def learn_name(
    memory: BatchState, agent: AgentRow, who: Principal, agent_id: str, now_ns: int
) -> EventDraft | None:
    """Name an agent known by its entity id alone: the event, or None when nothing is new."""
    name = best_name(who, agent_id, agent.entity_id)
    if agent.agent_id != agent.entity_id or name == agent.entity_id:
        return None
    agent.agent_id = name
    memory.touch(agent)
    return gateway_event(
        memory.tenant.tenant_id,
        "agent_registered",
        f"agent {agent.agent_id}, known by its entity id until now, has a name",
        now_ns,
        who,
        {"agent_id": agent.agent_id, "entity_id": agent.entity_id, "set": ["agent_id"]},
    )


def recover(
    memory: BatchState, agent: AgentRow, who: Principal | None, now_ns: int
) -> tuple[EventDraft, RowWrite]:
    """Register an evicted agent again. Its silence is reset, or it would be evicted again at once."""
    agent.evicted_ns = None
    memory.touch(agent)
    for address in addresses_of(agent, memory.tenant_config):
        _add_to_fleet(memory, address, agent)
    tenant_id = memory.tenant.tenant_id
    event = gateway_event(
        tenant_id,
        "agent_recovered",
        f"agent {agent.agent_id} recovered",
        now_ns,
        who,
        {"agent_id": agent.agent_id, "entity_id": agent.entity_id},
    )
    return event, put_pulse(memory, agent.agent_no, {"heartbeat_ns": now_ns, "chained_ns": now_ns})


def is_stopped(agent: AgentRow, memory: BatchState) -> bool:
    """Whether an engaged kill-switch covers its type or cluster, which then cannot change.

    A kill-switch on the agent itself applies under any type and cluster.
    """
    current = {"cluster": agent.cluster_id, "class": agent.agent_type}
    return any(
        switch.state == "engaged"
        and (switch.scope == "global" or are_same_name(switch.target, current.get(switch.scope)))
        for switch in memory.tenant_config.kill_switches
    )


def update_agent(ctx: MessageContext, memory: BatchState) -> None:
    """An accepted message updates its agent's row and clears a violation mark."""
    agent, message = ctx.agent, ctx.message
    if agent is None:
        return
    if memory.tenant_config.kill_switches and is_stopped(agent, memory):
        agent.agent_type = agent.agent_type or message.agent_type
        agent.cluster_id = agent.cluster_id or message.cluster_id
    else:
        agent.agent_type = message.agent_type or agent.agent_type
        agent.cluster_id = message.cluster_id or agent.cluster_id
    agent.capability_version = message.capability_version or agent.capability_version
    agent.model = message.model or agent.model
    agent.provider = message.provider or agent.provider
    agent.hub_address = message.hub_address or agent.hub_address
    agent.last_seen_ns = max(agent.last_seen_ns, ctx.received_ns)
    agent.violation_ns = None
    agent.messages += 1
    certificate = ctx.principal.certificate
    agent.certificate = None if certificate is None else certificate.fingerprint
    if ctx.principal.is_bound:
        agent.trust_level = "tenant_verified"
    if memory.fleet:  # a message of this batch is addressed by type or cluster
        for address in addresses_of(agent, memory.tenant_config):
            _add_to_fleet(memory, address, agent)
    memory.touch(agent)


def apply_registry_effects(ctx: MessageContext, uow: UnitOfWork, number: int) -> None:
    """An effect: heartbeats update the pulse, outcomes the circuit breakers."""
    message = ctx.message
    if message.message_type == "heartbeat" and ctx.agent is not None:
        assert message.envelope is not None and isinstance(message.envelope.payload, Heartbeat)
        pulse = message.envelope.payload
        beat: dict[str, Any] = {
            "heartbeat_ns": ctx.received_ns,
            "chained_ns": uow.now_ns,
            "status": pulse.agent_status,
            "task": _text(pulse.current_task),
            "usage": _text(pulse.resource_usage),
            "message_seq": number,  # shredding that message's bytes shreds these values too
        }
        uow.changes.writes.append(put_pulse(uow.memory, ctx.agent.agent_no, beat))


def put_pulse(memory: BatchState, agent_no: int, beat: dict[str, Any]) -> RowWrite:
    """Columns left out of `beat` keep their values."""
    memory.rows.setdefault("pulses", {}).setdefault(agent_no, {}).update(beat)
    values = {"tenant_id": memory.tenant.tenant_id, "agent_no": agent_no} | beat
    return RowWrite("pulses", values, key=("tenant_id", "agent_no"))


def capabilities_of(agent: AgentRow) -> tuple[str, ...]:
    """Its type, and the capabilities it registered."""
    more = _decoded(agent.capabilities) if agent.capabilities else ()
    return (
        more if agent.agent_type is None else (agent.agent_type, *(c for c in more if c != agent.agent_type))
    )


def claimed_addresses(agent: AgentRow) -> list[str]:
    """The addresses that its registration claims."""
    addresses = [f"type:{capability}" for capability in capabilities_of(agent)]
    return addresses if agent.cluster_id is None else [*addresses, f"cluster:{agent.cluster_id}"]


def addresses_of(agent: AgentRow, tenant_config: TenantConfig) -> list[str]:
    """The addresses whose work it gets: what it claims, or only what an operator granted (S1145)."""
    if tenant_config.routing.capabilities == "self":
        return claimed_addresses(agent)
    return sorted(tenant_config.grants.get(agent.entity_id, ()))


def may_get_work(agent: AgentRow, address: str, tenant_config: TenantConfig) -> bool:
    """Whether work for an address may go to it under the present configuration."""
    granted = tenant_config.routing.capabilities == "granted"
    return not granted or address in tenant_config.grants.get(agent.entity_id, ())


def types_of(agent: AgentRow, tenant_config: TenantConfig) -> list[str]:
    """Capabilities whose work it gets."""
    addresses = addresses_of(agent, tenant_config)
    return [one.removeprefix("type:") for one in addresses if one.startswith("type:")]


@lru_cache(maxsize=1024)
def _decoded(capabilities: str) -> tuple[str, ...]:
    return msgspec.json.decode(capabilities, type=tuple[str, ...])


def _add_to_fleet(memory: BatchState, address: str, agent: AgentRow) -> None:
    """The fleet was read before this batch; an agent added here counts for the messages after it."""
    fleet = memory.fleet.get(address)
    if fleet is not None and agent.entity_id not in fleet:
        fleet.append(agent.entity_id)


def _text(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def _first_seen_event(memory: BatchState, agent: AgentRow, who: Principal, now_ns: int) -> EventDraft:
    return gateway_event(
        memory.tenant.tenant_id,
        "agent_registered",
        f"agent {agent.agent_id} seen for the first time",
        now_ns,
        who,
        {"agent_id": agent.agent_id, "entity_id": agent.entity_id},
    )


def _membership_event(event_type: str, session: SessionRow, agent: AgentRow, now_ns: int) -> EventDraft:
    verb = "joined" if event_type == "agent_joined_room" else "left"
    detail = {"session_id": session.session_id, "agent_id": agent.agent_id}
    sender = {"sender_id": agent.entity_id, "sender_type": "agent"}
    return in_session(session, event_type, f"{agent.agent_id} {verb} the session", detail, now_ns, **sender)


def leave_session(
    session: SessionRow, member: MemberRow, agent: AgentRow, memory: BatchState, now_ns: int
) -> EventDraft | None:
    """Remove it from the session until it sends there again; None when it had already left."""
    if member.arrived_ns == 0:
        return None
    member.arrived_ns = 0
    memory.touch(member)
    return _membership_event("agent_left_room", session, agent, now_ns)
