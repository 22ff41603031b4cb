"""Acts by which agents and operators tell the Capability Map: register, beat, leave a room.

Pure decisions, chained like everything else. A pulse by `POST` is chained when its status changes and
otherwise once a minute (ruling 27); the row it renews is written each time. Neither trust nor another's
owner is ever taken from an agent: the server gives the one, a person the other.
"""

from __future__ import annotations

from typing import Any

import msgspec

from observatory.features.registry.stage import (
    CHAINED_NS,
    best_name,
    enrol,
    is_stopped,
    learn_name,
    leave,
    put_pulse,
    recover,
)
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Agent
from observatory.pipeline.state import Act, Desk, Draft, Memory, Principal, Verdict, Wants
from observatory.protocol.answers import Refused
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import agent_entity_id

# What a registration may say of an agent; `capabilities` is a list there and JSON text here.
FIELDS = (
    "agent_type",
    "capabilities",
    "cluster_id",
    "model",
    "provider",
    "display_name",
    "hub_address",
    "owner_id",
    "team_id",
    "workspace_id",
)


# What puts an agent into, or out of, the scope of a kill-switch.
PLACES = frozenset({"agent_type", "cluster_id"})


def register(who: Principal, agent_id: str, told: dict[str, str], now_ns: int) -> Act:
    """Say who an agent is: 201 when it is new, 200 when it was known. What is left out stays as it is."""
    entity_id = agent_entity_id(who.tenant_id, agent_id)

    def decide(desk: Desk) -> Verdict:
        memory, now_ns = desk.memory, desk.now_ns
        agent = memory.agents.get(entity_id)
        if agent is not None and who.role == "agent" and _takes_over(agent, told):
            detail = "this agent has an owner already; an operator can change it"
            return Verdict(403, Refused(reason="not_allowed", detail=detail))
        is_new = agent is None
        if agent is None:
            agent = enrol(memory, entity_id, best_name(who, agent_id, entity_id), now_ns)
        events: list[Draft] = []
        writes = []
        changed = {name: told[name] for name in FIELDS if name in told and getattr(agent, name) != told[name]}
        if is_stopped(agent, memory) and not changed.keys().isdisjoint(PLACES):
            detail = "an engaged kill-switch stops this agent; its type and cluster stay until it is released"
            return Verdict(409, Refused(reason="stopped", detail=detail))
        known_now = learn_name(memory, agent, who, agent_id, now_ns)
        events += [] if known_now is None else [known_now]
        for name, value in changed.items():
            setattr(agent, name, value)
        if who.is_bound and agent.trust_level != "tenant_verified":
            agent.trust_level = changed["trust_level"] = "tenant_verified"
        if is_new or changed:
            memory.touch(agent)
            events.append(_registered(memory, agent, changed, who, now_ns))
        if agent.evicted_ns is not None:
            event, write = recover(memory, agent, who, now_ns)
            events.append(event)
            writes.append(write)
        answer = {"agent_id": agent.agent_id, "entity_id": entity_id, "created": is_new}
        return Verdict(201 if is_new else 200, answer, events, writes)

    return Act(who, now_ns, decide, Wants(agents={entity_id}), speaks_as=_speaker(who, entity_id))


def _speaker(who: Principal, entity_id: str) -> str | None:
    """An agent's key speaks as the agent; a person who says this of it does not."""
    return entity_id if who.role == "agent" else None


def _takes_over(agent: Agent, told: dict[str, str]) -> bool:
    return agent.owner_id is not None and told.get("owner_id", agent.owner_id) != agent.owner_id


def _registered(memory: Memory, agent: Agent, changed: dict[str, str], who: Principal, now_ns: int) -> Draft:
    detail: dict[str, Any] = {"agent_id": agent.agent_id, "entity_id": agent.entity_id}
    detail["set"] = sorted(changed)
    for name in ("agent_type", "cluster_id", "owner_id", "team_id", "workspace_id"):
        detail[name] = getattr(agent, name)
    summary = f"agent {agent.agent_id} registered"
    return notice(memory.tenant.tenant_id, "agent_registered", summary, now_ns, who, detail)


def beat(who: Principal, agent_id: str, agent_no: int | None, told: dict[str, Any], now_ns: int) -> Act:
    """A pulse by POST. `agent_no` is what the door found, so that its row is at hand; None: not known yet."""
    entity_id = agent_entity_id(who.tenant_id, agent_id)
    wants = Wants(agents={entity_id})
    if agent_no is not None:
        wants.row("pulses", agent_no)

    def decide(desk: Desk) -> Verdict:
        memory, now_ns = desk.memory, desk.now_ns
        agent = memory.agents.get(entity_id)
        events, writes = [], []
        if agent is None:
            agent = enrol(memory, entity_id, best_name(who, agent_id, entity_id), now_ns)
            events.append(_registered(memory, agent, {}, who, now_ns))
        elif agent.evicted_ns is not None:
            event, write = recover(memory, agent, who, now_ns)
            events.append(event)
            writes.append(write)
        known_now = learn_name(memory, agent, who, agent_id, now_ns)
        events += [] if known_now is None else [known_now]
        before = memory.rows.get("pulses", {}).get(agent.agent_no, {})
        status = told.get("status") or before.get("status")
        renewed = {"heartbeat_ns": now_ns, "status": status, "chained_ns": before.get("chained_ns", 0)}
        renewed |= {name: told[name] for name in ("task", "usage") if name in told}
        if "task" in told:
            renewed["message_seq"] = None
        chained = (
            "status" not in before
            or status != before["status"]
            or now_ns - before["chained_ns"] >= CHAINED_NS
        )
        if chained:  # only now may the agent's row change: see the head of registry.py
            renewed["chained_ns"] = now_ns
            moved = told.get("cluster_id", agent.cluster_id) != agent.cluster_id
            if moved and not is_stopped(agent, memory):
                agent.cluster_id = told["cluster_id"]
                memory.touch(agent)
            events.append(_beat(memory, agent, status, who, now_ns))
        writes.append(put_pulse(memory, agent.agent_no, renewed))
        answer = {
            "agent_id": agent.agent_id,
            "entity_id": entity_id,
            "liveness": "healthy",
            "status": status,
            "heartbeat_at": from_ns(now_ns),
            "chained": chained,
        }
        return Verdict(200, answer, events, writes)

    return Act(who, now_ns, decide, wants, size=512, speaks_as=entity_id)


def _beat(memory: Memory, agent: Agent, status: str | None, who: Principal, now_ns: int) -> Draft:
    draft = notice(
        memory.tenant.tenant_id,
        "heartbeat",
        f"heartbeat from {agent.agent_id}" + (f": {status}" if status else ""),
        now_ns,
        who,
        {"agent_id": agent.agent_id, "agent_status": status},
    )
    return msgspec.structs.replace(draft, sender_id=agent.entity_id, sender_type="agent")


def leave_room(who: Principal, session_id: str, agent_id: str, now_ns: int) -> Act:
    """Out of the room: what is said to the session is not told to this agent until it speaks there again."""
    entity_id = agent_entity_id(who.tenant_id, agent_id)

    def decide(desk: Desk) -> Verdict:
        memory, now_ns = desk.memory, desk.now_ns
        session, agent = memory.sessions.get(session_id), memory.agents.get(entity_id)
        member = None
        if session is not None and agent is not None:
            member = memory.members.get((session.session_no, agent.agent_no))
        if session is None or agent is None or member is None:
            detail = "no session of this tenant has that id, or that agent is not one of its members"
            return Verdict(404, Refused(reason="not_found", detail=detail))
        event = leave(session, member, agent, memory, now_ns)
        state = "left" if event is not None else "already_left"
        answer = {"session_id": session_id, "agent_id": agent.agent_id, "state": state}
        return Verdict(200, answer, [] if event is None else [event])

    wants = Wants(agents={entity_id}, sessions={session_id})
    return Act(who, now_ns, decide, wants, speaks_as=_speaker(who, entity_id))
