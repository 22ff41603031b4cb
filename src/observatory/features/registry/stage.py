"""The Capability Map: who the agents are, whether they live, and in which rooms they speak (ruling 27).

Rows are made at first sight or by registration and kept by what agents send. `trust_level` is the server's
word (ruling 9): a key bound to this agent makes it `tenant_verified`; an unbound key leaves it `unverified`.
Liveness comes from heartbeats alone and lives in `pulses`, never in the agent's row: that row is kept from
batch to batch and so may change only together with an event, while most pulses write none.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import msgspec

from observatory.features.registry import circuit_breaker as breaker
from observatory.pipeline.event_draft import in_session
from observatory.pipeline.event_writer import notice
from observatory.pipeline.message_context import Passage
from observatory.pipeline.rows import Agent, Member, Session, Write
from observatory.pipeline.state import Desk, Draft, Memory, Principal, Rulebook, Verdict
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.messages import Heartbeat
from observatory.protocol.spelling import are_same

Liveness = Literal["healthy", "zombie", "evicted", "unknown"]
SECOND = 1_000_000_000
# A pulse whose status stays the same is chained once in this time.
CHAINED_NS = 60 * SECOND
# Columns of an agent that tell where it can be reached.
NAMED = ("agent_no", "entity_id", "agent_id", "agent_type", "cluster_id", "capabilities")


class Times(msgspec.Struct):
    """When silence counts; set once at start from the settings, by `reaping.obey`."""

    check_ns: int = 30 * SECOND
    timeout_ns: int = 90 * SECOND


TIMES = Times()


def liveness(evicted_ns: int | None, heartbeat_ns: int | None, now_ns: int) -> Liveness:
    if evicted_ns is not None:
        return "evicted"
    if heartbeat_ns is None:
        return "unknown"
    return "healthy" if now_ns - heartbeat_ns <= TIMES.check_ns else "zombie"


def recognise(passage: Passage, memory: Memory, now_ns: int) -> Verdict | None:
    """A stage before placement, so that a message knows its agent."""
    message = passage.message
    if message.sender_type != "agent":
        return None
    agent = memory.agents.get(passage.entity_id)
    if agent is None:
        name = best_name(passage.principal, message.sender_id, passage.entity_id)
        agent = enrol(memory, passage.entity_id, name, now_ns)
        passage.events.append(_first_sight(memory, agent, passage.principal, now_ns))
    elif agent.agent_id == agent.entity_id:
        event = learn_name(memory, agent, passage.principal, message.sender_id, now_ns)
        passage.events += [] if event is None else [event]
    passage.agent = agent
    return None


def best_name(who: Principal, agent_id: str, entity_id: str) -> str:
    """A key that is bound to an agent by name says more than one who gives only the agent's id."""
    bound = who.agent_id
    if agent_id == entity_id and bound is not None and agent_entity_id(who.tenant_id, bound) == entity_id:
        return bound
    return agent_id


def enter(passage: Passage, memory: Memory, now_ns: int) -> Verdict | None:
    """The stage after all that may refuse: who was evicted is back, who speaks first here has joined."""
    agent, member = passage.agent, passage.member
    if agent is None or member is None:
        return None
    if agent.evicted_ns is not None:
        event, write = recover(memory, agent, passage.principal, now_ns)
        passage.events.append(event)
        passage.writes.append(write)
    if member.arrived_ns == 0:  # never here, or gone since
        session = passage.session
        assert session is not None
        if session.agents > (member.messages > 0):
            passage.events.append(_moved("agent_joined_room", session, agent, now_ns))
    return None


def enrol(memory: Memory, entity_id: str, agent_id: str, now_ns: int) -> Agent:
    memory.tenant.agents += 1
    agent = memory.agents[entity_id] = Agent(
        agent_no=memory.tenant.agents,
        entity_id=entity_id,
        agent_id=agent_id,
        first_seen_ns=now_ns,
    )
    memory.touch(agent)
    return agent


def learn_name(memory: Memory, agent: Agent, who: Principal, agent_id: str, now_ns: int) -> Draft | None:
    """An agent known by its id alone gets the name that makes it: the event, None when nothing is new."""
    name = best_name(who, agent_id, agent.entity_id)
    if agent.agent_id != agent.entity_id or name == agent.entity_id:
        return None
    agent.agent_id = name
    memory.touch(agent)
    return notice(
        memory.tenant.tenant_id,
        "agent_registered",
        f"agent {agent.agent_id} was known by its entity id, now by its name",
        now_ns,
        who,
        {"agent_id": agent.agent_id, "entity_id": agent.entity_id, "set": ["agent_id"]},
    )


def recover(memory: Memory, agent: Agent, who: Principal | None, now_ns: int) -> tuple[Draft, Write]:
    """Back in the map. Its clock starts anew: silent as it was, it would be evicted again at once."""
    agent.evicted_ns = None
    memory.touch(agent)
    for address in addresses_of(agent, memory.rulebook):
        _line_up(memory, address, agent)
    tenant_id = memory.tenant.tenant_id
    event = notice(
        tenant_id,
        "agent_recovered",
        f"agent {agent.agent_id} is back",
        now_ns,
        who,
        {"agent_id": agent.agent_id, "entity_id": agent.entity_id},
    )
    return event, put_pulse(memory, agent.agent_no, {"heartbeat_ns": now_ns, "chained_ns": now_ns})


def is_stopped(agent: Agent, memory: Memory) -> bool:
    """Whether an engaged kill-switch covers it by what it says of itself: that cannot change meanwhile.

    One on the agent itself holds under any type and cluster.
    """
    said = {"cluster": agent.cluster_id, "class": agent.agent_type}
    return any(
        switch.state == "engaged"
        and (switch.scope == "global" or are_same(switch.target, said.get(switch.scope)))
        for switch in memory.rulebook.kill_switches
    )


def heard(passage: Passage, memory: Memory) -> None:
    """An accepted message renews what the map knows of its agent and ends a violation's mark."""
    agent, message = passage.agent, passage.message
    if agent is None:
        return
    if memory.rulebook.kill_switches and is_stopped(agent, memory):
        agent.agent_type = agent.agent_type or message.agent_type
        agent.cluster_id = agent.cluster_id or message.cluster_id
    else:
        agent.agent_type = message.agent_type or agent.agent_type
        agent.cluster_id = message.cluster_id or agent.cluster_id
    agent.capability_version = message.capability_version or agent.capability_version
    agent.model = message.model or agent.model
    agent.provider = message.provider or agent.provider
    agent.hub_address = message.hub_address or agent.hub_address
    agent.last_seen_ns = max(agent.last_seen_ns, passage.received_ns)
    agent.violation_ns = None
    agent.messages += 1
    shown = passage.principal.certificate
    agent.certificate = None if shown is None else shown.fingerprint
    if passage.principal.is_bound:
        agent.trust_level = "tenant_verified"
    if memory.fleet:  # somebody in this batch asks for agents by type or cluster
        for address in addresses_of(agent, memory.rulebook):
            _line_up(memory, address, agent)
    memory.touch(agent)


def follow(passage: Passage, desk: Desk, number: int) -> None:
    """An effect: heartbeats feed the pulse, outcomes the breakers that somebody has asked for."""
    message = passage.message
    if message.log is not None:
        if desk.memory.breakers and passage.agent is not None:
            breaker.learn(types_of(passage.agent, desk.memory.rulebook), message.log.action.status, desk)
    elif message.message_type == "heartbeat" and passage.agent is not None:
        assert message.envelope is not None and isinstance(message.envelope.payload, Heartbeat)
        pulse = message.envelope.payload
        beat: dict[str, Any] = {
            "heartbeat_ns": passage.received_ns,
            "chained_ns": desk.now_ns,
            "status": pulse.agent_status,
            "task": _text(pulse.current_task),
            "usage": _text(pulse.resource_usage),
            "message_seq": number,  # with whose bytes these words go, should they be shredded
        }
        desk.changes.writes.append(put_pulse(desk.memory, passage.agent.agent_no, beat))


def put_pulse(memory: Memory, agent_no: int, beat: dict[str, Any]) -> Write:
    """What is left out of `beat` stays as it is."""
    memory.rows.setdefault("pulses", {}).setdefault(agent_no, {}).update(beat)
    values = {"tenant_id": memory.tenant.tenant_id, "agent_no": agent_no} | beat
    return Write("pulses", values, key=("tenant_id", "agent_no"))


def capabilities_of(agent: Agent) -> tuple[str, ...]:
    """What it can be asked for: its type, and what it registered."""
    more = _decoded(agent.capabilities) if agent.capabilities else ()
    return (
        more if agent.agent_type is None else (agent.agent_type, *(c for c in more if c != agent.agent_type))
    )


def claimed(agent: Agent) -> list[str]:
    """The addresses it says are its own."""
    found = [f"type:{capability}" for capability in capabilities_of(agent)]
    return found if agent.cluster_id is None else [*found, f"cluster:{agent.cluster_id}"]


def addresses_of(agent: Agent, rulebook: Rulebook) -> list[str]:
    """The addresses whose work it gets: what it claims, or only what an operator gave it (S1145)."""
    if rulebook.routing.capabilities == "self":
        return claimed(agent)
    return sorted(rulebook.grants.get(agent.entity_id, ()))


def gets(agent: Agent, address: str, rulebook: Rulebook) -> bool:
    """Whether work for an address may go to it; looked at again by the rules of the very moment."""
    granted = rulebook.routing.capabilities == "granted"
    return not granted or address in rulebook.grants.get(agent.entity_id, ())


def types_of(agent: Agent, rulebook: Rulebook) -> list[str]:
    """Capabilities whose work it gets."""
    places = addresses_of(agent, rulebook)
    return [one.removeprefix("type:") for one in places if one.startswith("type:")]


@lru_cache(maxsize=1024)
def _decoded(capabilities: str) -> tuple[str, ...]:
    return msgspec.json.decode(capabilities, type=tuple[str, ...])


def _line_up(memory: Memory, address: str, agent: Agent) -> None:
    """The fleet was read before this batch; who comes in it counts for those behind."""
    fleet = memory.fleet.get(address)
    if fleet is not None and agent.entity_id not in fleet:
        fleet.append(agent.entity_id)


def _text(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def _first_sight(memory: Memory, agent: Agent, who: Principal, now_ns: int) -> Draft:
    return notice(
        memory.tenant.tenant_id,
        "agent_registered",
        f"agent {agent.agent_id} seen for the first time",
        now_ns,
        who,
        {"agent_id": agent.agent_id, "entity_id": agent.entity_id},
    )


def _moved(event_type: str, session: Session, agent: Agent, now_ns: int) -> Draft:
    did = "joined" if event_type == "agent_joined_room" else "left"
    detail = {"session_id": session.session_id, "agent_id": agent.agent_id}
    sender = {"sender_id": agent.entity_id, "sender_type": "agent"}
    return in_session(session, event_type, f"{agent.agent_id} {did} the room", detail, now_ns, **sender)


def leave(session: Session, member: Member, agent: Agent, memory: Memory, now_ns: int) -> Draft | None:
    """Out of the room until it speaks there again; None when it was out already."""
    if member.arrived_ns == 0:
        return None
    member.arrived_ns = 0
    memory.touch(member)
    return _moved("agent_left_room", session, agent, now_ns)
