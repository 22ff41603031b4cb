"""Commands of an agent's channel: connect, disconnect, acknowledge, and mark injected prompts as given.

Law: a delivery stays pending until its agent acknowledges it; acknowledging twice changes nothing. An
injected prompt is marked as given, under the tenant's lock, before it is sent: a withdrawal and a delivery
can never both win. What a delivery is about never changes and is read by the endpoint; whether it is still
pending is checked here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from observatory.pipeline import agents as registry
from observatory.pipeline import authority
from observatory.pipeline.event_writer import system_trace
from observatory.pipeline.matching import in_scope
from observatory.pipeline.ports import InboxDelivery
from observatory.pipeline.rows import AgentRow, RowWrite
from observatory.pipeline.state import Command, EventDraft, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol.clock import from_ns
from observatory.protocol.events import SEVERITY
from observatory.protocol.identity import DeliveryKey, agent_entity_id, delivery_id
from observatory.protocol.responses import Refused

_ID = re.compile(r"dlv_([1-9][0-9]{0,12})-([1-9][0-9]{0,12})").fullmatch
# Deliveries marked in one statement.
AT_ONCE = 500
# Kinds an agent reads, as opposed to kinds it obeys.
READ = frozenset({"message", "decision", "instruction", "inject"})


class ConnectedAgent(msgspec.Struct, frozen=True, kw_only=True):
    """The agent that connected, and its current state."""

    agent_no: int
    agent_id: str
    entity_id: str
    stopped: bool
    paused: bool = False  # everywhere
    instructions: int | None
    agent_type: str | None = None
    access_version: int = 0  # of the tenant, when its key was last accepted


class AckResult(msgspec.Struct, frozen=True, kw_only=True):
    """`unknown`: not this agent's, never sent, or withdrawn since."""

    acked: list[str]
    unknown: list[str]


def key_of(id_text: str) -> DeliveryKey | None:
    match = _ID(id_text)
    return (int(match[1]), int(match[2])) if match is not None else None


def connect(
    principal: Principal,
    agent_id: str,
    now_ns: int,
    *,
    transport: str | None,
    agent_type: str | None = None,
    instructed: int = 0,
) -> Command:
    """An agent opens a channel (`transport` names which), or only polls (None: no event is written).

    `agent_type` is what the endpoint knows of it, so that its instructions are loaded; `instructed` is the
    newest version of them already waiting in its inbox.
    """
    entity_id = agent_entity_id(principal.tenant_id, agent_id)
    reads = ReadSet(agents={entity_id})
    if agent_type is not None:
        reads.row("instructions", agent_type)

    def decide(uow: UnitOfWork) -> SubmissionResult:
        memory = uow.memory
        refused = authority.refuse_unbound_key(principal, agent_id, memory, uow.now_ns)
        if refused is not None:
            return refused
        agent = memory.agents.get(entity_id)
        if agent is None:
            name = registry.best_name(principal, agent_id, entity_id)
            agent = registry.create_agent(memory, entity_id, name, uow.now_ns)
            summary = f"agent {agent.agent_id} seen for the first time"
            uow.append(_agent_event(uow, principal, agent, "agent_registered", summary))
        elif agent.evicted_ns is not None:
            event, write = registry.recover(memory, agent, principal, uow.now_ns)
            uow.append(event)
            uow.changes.writes.append(write)
        known_now = registry.learn_name(memory, agent, principal, agent_id, uow.now_ns)
        if known_now is not None:
            uow.append(known_now)
        if transport is not None:
            summary = f"{agent.agent_id} opened its channel"
            detail = {"transport": transport, "key_id": principal.key_id}
            uow.append(_agent_event(uow, principal, agent, "agent_connected", summary, detail))
        version = memory.tenant_config.instructions.get(agent.agent_type) if agent.agent_type else None
        if version is not None and version > max(agent.instructions_version, instructed):
            _instruct(uow, principal, agent, version)
        stopped = any(
            switch.state == "engaged" and in_scope(switch, agent)
            for switch in memory.tenant_config.kill_switches
        )
        welcome = ConnectedAgent(
            agent_no=agent.agent_no,
            agent_id=agent.agent_id,
            entity_id=entity_id,
            stopped=stopped,
            paused=agent.is_paused,
            instructions=version,
            agent_type=agent.agent_type,
            access_version=memory.tenant.access_version,
        )
        return SubmissionResult(200, welcome)

    return Command(principal, now_ns, decide, reads, on_behalf_of=entity_id)


def _instruct(uow: UnitOfWork, principal: Principal, agent: AgentRow, version: int) -> None:
    row = uow.memory.rows.get("instructions", {}).get((agent.agent_type, version))
    if row is None:  # its type was not known at the endpoint; it gets them when it connects next
        return
    body = {name: row[name] for name in ("agent_type", "version", "text", "note")}
    summary = f"instructions {version} of {agent.agent_type} sent to {agent.agent_id}"
    detail = {"agent_type": agent.agent_type, "version": version}
    number = uow.append(_agent_event(uow, principal, agent, "instruction_sent", summary, detail))
    uow.deliver(number, agent.agent_no, "instruction", body)


def disconnect(gateway: Principal, welcome: ConnectedAgent, transport: str, now_ns: int) -> Command:
    """Written as the gateway's principal: the agent's key may be what ended."""
    reads = ReadSet(agents={welcome.entity_id})

    def decide(uow: UnitOfWork) -> SubmissionResult:
        agent = uow.memory.agents[welcome.entity_id]
        detail = {"transport": transport}
        summary = f"the channel of {agent.agent_id} closed"
        uow.append(_agent_event(uow, gateway, agent, "agent_disconnected", summary, detail))
        return SubmissionResult(200, None)

    return Command(gateway, now_ns, decide, reads)


def mark_given(gateway: Principal, keys: Sequence[DeliveryKey], now_ns: int) -> Command:
    """Marks injected prompts as given; the answer lists those that may be sent. Writes no event."""
    reads = ReadSet()
    for number, _ in keys:
        reads.row("deliveries", number)

    def decide(uow: UnitOfWork) -> SubmissionResult:
        rows, taken = uow.memory.rows.get("deliveries", {}), []
        for key in keys:
            row = rows.get(key)
            if row is None or row["state"] != "pending":
                continue
            if row["given_ns"] is None:
                _set(uow, key, row, given_ns=uow.now_ns)
            taken.append(key)
        return SubmissionResult(200, taken)

    return Command(gateway, now_ns, decide, reads)


def ack(
    principal: Principal,
    entity_id: str,
    ids: Sequence[str],
    facts: Mapping[DeliveryKey, InboxDelivery],
    now_ns: int,
) -> Command:
    """One command for many. `facts` is what the endpoint read of the deliveries named."""
    reads = ReadSet(agents={entity_id})
    bodies = {key: _body(fact) for key, fact in facts.items()}
    for key, body in bodies.items():
        reads.row("deliveries", key[0])
        for table, name in (("interventions", "intervention_id"), ("decisions", "decision_id")):
            if name in body:
                reads.row(table, body[name])

    def decide(uow: UnitOfWork) -> SubmissionResult:
        agent = uow.memory.agents.get(entity_id)
        if agent is None:
            return SubmissionResult(
                404, Refused(reason="not_found", detail="no agent of this tenant has that name")
            )
        refused = authority.refuse_unbound_key(principal, agent.agent_id, uow.memory, uow.now_ns)
        if refused is not None:
            return refused
        rows = uow.memory.rows.get("deliveries", {})
        answer, done = AckResult(acked=[], unknown=[]), list[int]()
        for text in dict.fromkeys(ids):
            key = key_of(text)
            row = rows.get(key) if key is not None and key[1] == agent.agent_no and key in facts else None
            if row is None or key is None or row["state"] not in ("pending", "acked"):
                answer.unknown.append(text)
                continue
            answer.acked.append(text)
            if row["state"] == "pending":
                row.update(state="acked", acked_ns=uow.now_ns)
                done.append(key[0])
                _apply_effects(uow, principal, agent, facts[key], bodies[key])
        for start in range(0, len(done), AT_ONCE):
            _acked(uow, agent, done[start : start + AT_ONCE])
        return SubmissionResult(200, answer)

    size = 1_024 + 256 * len(ids)
    return Command(principal, now_ns, decide, reads, size, on_behalf_of=entity_id)


def _acked(uow: UnitOfWork, agent: AgentRow, numbers: list[int]) -> None:
    where = {
        "tenant_id": uow.memory.tenant.tenant_id,
        "agent_no": agent.agent_no,
        "sequence_number": numbers,
    }
    values = {"state": "acked", "acked_ns": uow.now_ns}
    uow.changes.writes.append(RowWrite("deliveries", values, where))


def _apply_effects(
    uow: UnitOfWork, principal: Principal, agent: AgentRow, fact: InboxDelivery, body: dict[str, Any]
) -> None:
    """Further effects of an acknowledgement, by kind."""
    proven = authority.is_proven(principal, agent.entity_id, uow.memory)
    detail: dict[str, Any] = {"kind": fact.kind, "session_id": fact.session_id, "proven": proven}
    intervention = uow.memory.rows.get("interventions", {}).get(body.get("intervention_id"))
    if intervention is not None:
        detail["intervention_id"] = body["intervention_id"]
        if intervention["acknowledged_ns"] is None:
            values = {"acknowledged_ns": uow.now_ns, "proven": int(proven)}
            intervention.update(values)
            where = {
                "tenant_id": uow.memory.tenant.tenant_id,
                "sequence_number": intervention["sequence_number"],
            }
            uow.changes.writes.append(RowWrite("interventions", values, where))
    if fact.kind == "instruction":
        version = detail["version"] = body.get("version", 0)
        agent.instructions_version = max(agent.instructions_version, version)
        uow.memory.touch(agent)
    if fact.kind == "decision":
        decision_id = detail["decision_id"] = body.get("decision_id")
        _execute(uow, decision_id)
    if fact.kind == "hold":
        summary = f"{agent.agent_id} acknowledged its pause" + ("" if proven else " (unproven)")
        uow.append(_agent_event(uow, principal, agent, "pause_acknowledged", summary, detail, fact))
    elif fact.kind in READ:
        summary = f"{agent.agent_id} read a {fact.message_type or fact.kind}"
        uow.append(_agent_event(uow, principal, agent, "message_read", summary, detail, fact))


def _execute(uow: UnitOfWork, decision_id: str | None) -> None:
    """The agent has received the decision and now executes it."""
    row = uow.memory.rows.get("decisions", {}).get(decision_id)
    if row is None or row["state"] != "answered":
        return
    where = {"tenant_id": uow.memory.tenant.tenant_id, "decision_id": decision_id}
    values = {"state": "executing", "updated_ns": uow.now_ns}
    row.update(values)
    uow.changes.writes.append(RowWrite("decisions", values, where))


def _set(uow: UnitOfWork, key: DeliveryKey, row: dict[str, Any], **values: Any) -> None:
    """Changes a delivery, in this batch and in the database."""
    row.update(values)
    where = {"tenant_id": uow.memory.tenant.tenant_id, "sequence_number": key[0], "agent_no": key[1]}
    uow.changes.writes.append(RowWrite("deliveries", values, where))


def _body(fact: InboxDelivery) -> dict[str, Any]:
    return msgspec.json.decode(fact.body, type=dict[str, Any]) if fact.body else {}


def _agent_event(
    uow: UnitOfWork,
    principal: Principal,
    agent: AgentRow,
    event_type: str,
    summary: str,
    detail: dict[str, Any] | None = None,
    fact: InboxDelivery | None = None,
) -> EventDraft:
    """An event of the agent itself: in the session of the delivery it is about, if any."""
    draft = EventDraft(
        event_type=event_type,
        severity=SEVERITY[event_type],
        timestamp=from_ns(uow.now_ns),
        timestamp_ns=uow.now_ns,
        trace_id=system_trace(uow.memory.tenant.tenant_id),
        summary=summary,
        detail={"agent_id": agent.agent_id, "entity_id": agent.entity_id, **(detail or {})},
        attributes={"av.sender.agent_id": agent.agent_id},
        sender_id=agent.entity_id,
        sender_type="agent",
        hub_address=agent.hub_address,
        trust_level="tenant_verified" if principal.is_bound else "unverified",
    )
    if fact is not None:
        draft.detail["delivery_id"] = delivery_id((fact.sequence_number, fact.agent_no))
        draft.message_id, draft.message_type = fact.message_id, fact.message_type
        if fact.trace_id is not None:
            draft.trace_id, draft.parent_span_id, draft.session_no = (
                fact.trace_id,
                fact.span_id,
                fact.session_no,
            )
    return draft
