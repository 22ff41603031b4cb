"""Commands on the Capability Map: register an agent, record a heartbeat, leave a session.

Pure decisions, chained like everything else. A heartbeat by `POST` is chained when its status changes and
otherwise once a minute (ruling 27); its row is written each time. An agent can set neither its trust level
nor another agent's owner: the server sets the first, a person the second.
"""

from __future__ import annotations

from typing import Any

import msgspec

from observatory.pipeline.agents import (
    CHAINED_NS,
    best_name,
    create_agent,
    is_stopped,
    learn_name,
    leave_session,
    put_pulse,
    recover,
)
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import AgentRow
from observatory.pipeline.state import (
    BatchState,
    Command,
    EventDraft,
    Principal,
    ReadSet,
    SubmissionResult,
    UnitOfWork,
)
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.responses import Refused

# The fields a registration may set; `capabilities` is a list there and JSON text here.
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


# Fields that put an agent into, or out of, the scope of a kill-switch.
SCOPE_FIELDS = frozenset({"agent_type", "cluster_id"})


def register(who: Principal, agent_id: str, fields: dict[str, str], now_ns: int) -> Command:
    """Register an agent: 201 when it is new, 200 when it was known. Fields left out keep their values."""
    entity_id = agent_entity_id(who.tenant_id, agent_id)

    def decide(uow: UnitOfWork) -> SubmissionResult:
        memory, now_ns = uow.memory, uow.now_ns
        agent = memory.agents.get(entity_id)
        if agent is not None and who.role == "agent" and _takes_over(agent, fields):
            detail = "this agent already has an owner; an operator can change it"
            return SubmissionResult(403, Refused(reason="not_allowed", detail=detail))
        is_new = agent is None
        if agent is None:
            agent = create_agent(memory, entity_id, best_name(who, agent_id, entity_id), now_ns)
        events: list[EventDraft] = []
        writes = []
        changed = {
            name: fields[name] for name in FIELDS if name in fields and getattr(agent, name) != fields[name]
        }
        if is_stopped(agent, memory) and not changed.keys().isdisjoint(SCOPE_FIELDS):
            detail = "an engaged kill-switch stops this agent; its type and cluster stay until it is released"
            return SubmissionResult(409, Refused(reason="stopped", detail=detail))
        name_event = learn_name(memory, agent, who, agent_id, now_ns)
        events += [] if name_event is None else [name_event]
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
        return SubmissionResult(201 if is_new else 200, answer, events, writes)

    return Command(who, now_ns, decide, ReadSet(agents={entity_id}), on_behalf_of=_speaks_as(who, entity_id))


def _speaks_as(who: Principal, entity_id: str) -> str | None:
    """An agent's key acts as the agent; a person who registers an agent does not."""
    return entity_id if who.role == "agent" else None


def _takes_over(agent: AgentRow, fields: dict[str, str]) -> bool:
    return agent.owner_id is not None and fields.get("owner_id", agent.owner_id) != agent.owner_id


def _registered(
    memory: BatchState, agent: AgentRow, changed: dict[str, str], who: Principal, now_ns: int
) -> EventDraft:
    detail: dict[str, Any] = {"agent_id": agent.agent_id, "entity_id": agent.entity_id}
    detail["set"] = sorted(changed)
    for name in ("agent_type", "cluster_id", "owner_id", "team_id", "workspace_id"):
        detail[name] = getattr(agent, name)
    summary = f"agent {agent.agent_id} registered"
    return gateway_event(memory.tenant.tenant_id, "agent_registered", summary, now_ns, who, detail)


def record_heartbeat(
    who: Principal, agent_id: str, agent_no: int | None, fields: dict[str, Any], now_ns: int
) -> Command:
    """A heartbeat by POST. `agent_no` was read by the route, so that its row is loaded; None: unknown."""
    entity_id = agent_entity_id(who.tenant_id, agent_id)
    read_set = ReadSet(agents={entity_id})
    if agent_no is not None:
        read_set.row("pulses", agent_no)

    def decide(uow: UnitOfWork) -> SubmissionResult:
        memory, now_ns = uow.memory, uow.now_ns
        agent = memory.agents.get(entity_id)
        events, writes = [], []
        if agent is None:
            agent = create_agent(memory, entity_id, best_name(who, agent_id, entity_id), now_ns)
            events.append(_registered(memory, agent, {}, who, now_ns))
        elif agent.evicted_ns is not None:
            event, write = recover(memory, agent, who, now_ns)
            events.append(event)
            writes.append(write)
        name_event = learn_name(memory, agent, who, agent_id, now_ns)
        events += [] if name_event is None else [name_event]
        before = memory.rows.get("pulses", {}).get(agent.agent_no, {})
        status = fields.get("status") or before.get("status")
        renewed = {"heartbeat_ns": now_ns, "status": status, "chained_ns": before.get("chained_ns", 0)}
        renewed |= {name: fields[name] for name in ("task", "usage") if name in fields}
        if "task" in fields:
            renewed["message_seq"] = None
        chained = (
            "status" not in before
            or status != before["status"]
            or now_ns - before["chained_ns"] >= CHAINED_NS
        )
        if chained:  # only now may the agent's row change: see the module docstring of stage.py
            renewed["chained_ns"] = now_ns
            moved = fields.get("cluster_id", agent.cluster_id) != agent.cluster_id
            if moved and not is_stopped(agent, memory):
                agent.cluster_id = fields["cluster_id"]
                memory.touch(agent)
            events.append(_heartbeat_event(memory, agent, status, who, now_ns))
        writes.append(put_pulse(memory, agent.agent_no, renewed))
        answer = {
            "agent_id": agent.agent_id,
            "entity_id": entity_id,
            "liveness": "healthy",
            "status": status,
            "heartbeat_at": from_ns(now_ns),
            "chained": chained,
        }
        return SubmissionResult(200, answer, events, writes)

    return Command(who, now_ns, decide, read_set, size=512, on_behalf_of=entity_id)


def _heartbeat_event(
    memory: BatchState, agent: AgentRow, status: str | None, who: Principal, now_ns: int
) -> EventDraft:
    draft = gateway_event(
        memory.tenant.tenant_id,
        "heartbeat",
        f"heartbeat from {agent.agent_id}" + (f": {status}" if status else ""),
        now_ns,
        who,
        {"agent_id": agent.agent_id, "agent_status": status},
    )
    return msgspec.structs.replace(draft, sender_id=agent.entity_id, sender_type="agent")


def leave_session_command(who: Principal, session_id: str, agent_id: str, now_ns: int) -> Command:
    """Leave a session: messages to the session are not delivered to this agent until it sends there again."""
    entity_id = agent_entity_id(who.tenant_id, agent_id)

    def decide(uow: UnitOfWork) -> SubmissionResult:
        memory, now_ns = uow.memory, uow.now_ns
        session, agent = memory.sessions.get(session_id), memory.agents.get(entity_id)
        member = None
        if session is not None and agent is not None:
            member = memory.members.get((session.session_no, agent.agent_no))
        if session is None or agent is None or member is None:
            detail = "no session of this tenant has that id, or that agent is not one of its members"
            return SubmissionResult(404, Refused(reason="not_found", detail=detail))
        event = leave_session(session, member, agent, memory, now_ns)
        state = "left" if event is not None else "already_left"
        answer = {"session_id": session_id, "agent_id": agent.agent_id, "state": state}
        return SubmissionResult(200, answer, [] if event is None else [event])

    read_set = ReadSet(agents={entity_id}, sessions={session_id})
    return Command(who, now_ns, decide, read_set, on_behalf_of=_speaks_as(who, entity_id))
