"""Agents at first sight: the Capability Map's rows, made and kept by what agents send.

Runs before placement so that a message knows its agent. `trust_level` is the server's word (ruling 9):
a key bound to this agent makes it `tenant_verified`; an unbound key leaves it `unverified`.
"""

from __future__ import annotations

from observatory.gateway.passage import Passage
from observatory.gateway.record import notice
from observatory.state import Agent, Memory, Verdict


def recognise(passage: Passage, memory: Memory, now_ns: int) -> Verdict | None:
    message = passage.message
    if message.sender_type != "agent":
        return None
    agent = memory.agents.get(passage.entity_id)
    if agent is None:
        agent = enrol(memory, passage.entity_id, message.sender_id, now_ns)
        event = notice(
            memory.tenant.tenant_id,
            "agent_registered",
            f"agent {message.sender_id} seen for the first time",
            now_ns,
            passage.principal,
            {"agent_id": message.sender_id, "entity_id": passage.entity_id},
        )
        passage.events.append(event)
    passage.agent = agent
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


def heard(passage: Passage, memory: Memory) -> None:
    """An accepted message renews what the map knows of its agent and ends a violation's mark."""
    agent, message = passage.agent, passage.message
    if agent is None:
        return
    agent.agent_type = message.agent_type or agent.agent_type
    agent.capability_version = message.capability_version or agent.capability_version
    agent.cluster_id = message.cluster_id or agent.cluster_id
    agent.model = message.model or agent.model
    agent.provider = message.provider or agent.provider
    agent.hub_address = message.hub_address or agent.hub_address
    agent.last_seen_ns = max(agent.last_seen_ns, passage.received_ns)
    agent.violation_ns = None
    agent.messages += 1
    if passage.principal.is_bound:
        agent.trust_level = "tenant_verified"
    memory.touch(agent)
