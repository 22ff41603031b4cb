"""Acts of an agent's channel: it comes, it goes, it acknowledges, and it is given what may be withdrawn.

Law: a delivery stays pending until its agent acknowledges it; acknowledging twice changes nothing. An
injected prompt is marked as given, under the tenant's lock, before it is sent: a withdrawal and a delivery
can never both win. What a delivery is about never changes and is read by the door; whether it is still
pending is looked at here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from observatory.features.access import stage as authority
from observatory.features.registry import stage as registry
from observatory.features.relay import stage as relay
from observatory.pipeline.event_writer import system_trace
from observatory.pipeline.ports import Delivery
from observatory.pipeline.rows import Agent, Write
from observatory.pipeline.state import Act, Desk, Draft, Principal, Verdict, Wants
from observatory.protocol.answers import Refused
from observatory.protocol.clock import from_ns
from observatory.protocol.events import SEVERITY
from observatory.protocol.identity import agent_entity_id

Key = tuple[int, int]  # sequence number, agent number
_ID = re.compile(r"dlv_([1-9][0-9]{0,12})-([1-9][0-9]{0,12})").fullmatch
# Deliveries marked in one statement.
AT_ONCE = 500
# What an agent reads, as against what it obeys.
READ = frozenset({"message", "decision", "instruction", "inject"})


class Welcome(msgspec.Struct, frozen=True, kw_only=True):
    """Who has come, and how things stand for it."""

    agent_no: int
    agent_id: str
    entity_id: str
    stopped: bool
    paused: bool = False  # everywhere
    instructions: int | None
    agent_type: str | None = None
    access_version: int = 0  # of the tenant, when its key was last found good


class Acked(msgspec.Struct, frozen=True, kw_only=True):
    """`unknown`: not this agent's, never sent, or withdrawn since."""

    acked: list[str]
    unknown: list[str]


def delivery_id(key: Key) -> str:
    return f"dlv_{key[0]}-{key[1]}"


def key_of(id_text: str) -> Key | None:
    found = _ID(id_text)
    return (int(found[1]), int(found[2])) if found is not None else None


def arrive(
    who: Principal,
    agent_id: str,
    now_ns: int,
    *,
    transport: str | None,
    agent_type: str | None = None,
    instructed: int = 0,
) -> Act:
    """An agent opens a channel (`transport` names which), or only asks (None: a poll, not told of).

    `agent_type` is what the door knows of it, so that its instructions are at hand; `instructed` the
    newest version of them that waits for it already.
    """
    entity_id = agent_entity_id(who.tenant_id, agent_id)
    wants = Wants(agents={entity_id})
    if agent_type is not None:
        wants.row("instructions", agent_type)

    def decide(desk: Desk) -> Verdict:
        memory = desk.memory
        refused = authority.unbound(who, agent_id, memory, desk.now_ns)
        if refused is not None:
            return refused
        agent = memory.agents.get(entity_id)
        if agent is None:
            name = registry.best_name(who, agent_id, entity_id)
            agent = registry.enrol(memory, entity_id, name, desk.now_ns)
            summary = f"agent {agent.agent_id} seen for the first time"
            desk.append(_of_agent(desk, who, agent, "agent_registered", summary))
        elif agent.evicted_ns is not None:
            event, write = registry.recover(memory, agent, who, desk.now_ns)
            desk.append(event)
            desk.changes.writes.append(write)
        known_now = registry.learn_name(memory, agent, who, agent_id, desk.now_ns)
        if known_now is not None:
            desk.append(known_now)
        if transport is not None:
            summary = f"{agent.agent_id} opened its channel"
            detail = {"transport": transport, "key_id": who.key_id}
            desk.append(_of_agent(desk, who, agent, "agent_connected", summary, detail))
        version = memory.rulebook.instructions.get(agent.agent_type) if agent.agent_type else None
        if version is not None and version > max(agent.instructions_version, instructed):
            _instruct(desk, who, agent, version)
        stopped = any(
            switch.state == "engaged" and relay.in_scope(switch, agent)
            for switch in memory.rulebook.kill_switches
        )
        welcome = Welcome(
            agent_no=agent.agent_no,
            agent_id=agent.agent_id,
            entity_id=entity_id,
            stopped=stopped,
            paused=agent.is_paused,
            instructions=version,
            agent_type=agent.agent_type,
            access_version=memory.tenant.access_version,
        )
        return Verdict(200, welcome)

    return Act(who, now_ns, decide, wants, speaks_as=entity_id)


def _instruct(desk: Desk, who: Principal, agent: Agent, version: int) -> None:
    row = desk.memory.rows.get("instructions", {}).get((agent.agent_type, version))
    if row is None:  # its type was not known at the door; it is told when it comes next
        return
    body = {name: row[name] for name in ("agent_type", "version", "text", "note")}
    summary = f"instructions {version} of {agent.agent_type} sent to {agent.agent_id}"
    detail = {"agent_type": agent.agent_type, "version": version}
    number = desk.append(_of_agent(desk, who, agent, "instruction_sent", summary, detail))
    desk.tell(number, agent.agent_no, "instruction", body)


def leave(house: Principal, welcome: Welcome, transport: str, now_ns: int) -> Act:
    """The house tells of it: the agent's key may be the very thing that ended."""
    wants = Wants(agents={welcome.entity_id})

    def decide(desk: Desk) -> Verdict:
        agent = desk.memory.agents[welcome.entity_id]
        detail = {"transport": transport}
        summary = f"the channel of {agent.agent_id} closed"
        desk.append(_of_agent(desk, house, agent, "agent_disconnected", summary, detail))
        return Verdict(200, None)

    return Act(house, now_ns, decide, wants)


def take(house: Principal, keys: Sequence[Key], now_ns: int) -> Act:
    """Mark injected prompts as given; the answer lists those that may be sent. Writes no event."""
    wants = Wants()
    for number, _ in keys:
        wants.row("deliveries", number)

    def decide(desk: Desk) -> Verdict:
        rows, taken = desk.memory.rows.get("deliveries", {}), []
        for key in keys:
            row = rows.get(key)
            if row is None or row["state"] != "pending":
                continue
            if row["given_ns"] is None:
                _set(desk, key, row, given_ns=desk.now_ns)
            taken.append(key)
        return Verdict(200, taken)

    return Act(house, now_ns, decide, wants)


def ack(
    who: Principal, entity_id: str, ids: Sequence[str], facts: Mapping[Key, Delivery], now_ns: int
) -> Act:
    """One act for many. `facts` is what the door read of the deliveries named."""
    wants = Wants(agents={entity_id})
    bodies = {key: _body(fact) for key, fact in facts.items()}
    for key, body in bodies.items():
        wants.row("deliveries", key[0])
        for table, name in (("interventions", "intervention_id"), ("decisions", "decision_id")):
            if name in body:
                wants.row(table, body[name])

    def decide(desk: Desk) -> Verdict:
        agent = desk.memory.agents.get(entity_id)
        if agent is None:
            return Verdict(404, Refused(reason="not_found", detail="no agent of this tenant has that name"))
        refused = authority.unbound(who, agent.agent_id, desk.memory, desk.now_ns)
        if refused is not None:
            return refused
        rows = desk.memory.rows.get("deliveries", {})
        answer, done = Acked(acked=[], unknown=[]), list[int]()
        for text in dict.fromkeys(ids):
            key = key_of(text)
            row = rows.get(key) if key is not None and key[1] == agent.agent_no and key in facts else None
            if row is None or key is None or row["state"] not in ("pending", "acked"):
                answer.unknown.append(text)
                continue
            answer.acked.append(text)
            if row["state"] == "pending":
                row.update(state="acked", acked_ns=desk.now_ns)
                done.append(key[0])
                _follow(desk, who, agent, facts[key], bodies[key])
        for start in range(0, len(done), AT_ONCE):
            _acked(desk, agent, done[start : start + AT_ONCE])
        return Verdict(200, answer)

    size = 1_024 + 256 * len(ids)
    return Act(who, now_ns, decide, wants, size, speaks_as=entity_id)


def _acked(desk: Desk, agent: Agent, numbers: list[int]) -> None:
    where = {
        "tenant_id": desk.memory.tenant.tenant_id,
        "agent_no": agent.agent_no,
        "sequence_number": numbers,
    }
    values = {"state": "acked", "acked_ns": desk.now_ns}
    desk.changes.writes.append(Write("deliveries", values, where))


def _follow(desk: Desk, who: Principal, agent: Agent, fact: Delivery, body: dict[str, Any]) -> None:
    """What an acknowledgement means beyond itself, by kind."""
    proven = authority.is_proven(who, agent.entity_id, desk.memory)
    detail: dict[str, Any] = {"kind": fact.kind, "session_id": fact.session_id, "proven": proven}
    intervention = desk.memory.rows.get("interventions", {}).get(body.get("intervention_id"))
    if intervention is not None:
        detail["intervention_id"] = body["intervention_id"]
        if intervention["acknowledged_ns"] is None:
            values = {"acknowledged_ns": desk.now_ns, "proven": int(proven)}
            intervention.update(values)
            where = {
                "tenant_id": desk.memory.tenant.tenant_id,
                "sequence_number": intervention["sequence_number"],
            }
            desk.changes.writes.append(Write("interventions", values, where))
    if fact.kind == "instruction":
        version = detail["version"] = body.get("version", 0)
        agent.instructions_version = max(agent.instructions_version, version)
        desk.memory.touch(agent)
    if fact.kind == "decision":
        decision_id = detail["decision_id"] = body.get("decision_id")
        _execute(desk, decision_id)
    if fact.kind == "hold":
        summary = f"{agent.agent_id} knows that it is paused" + ("" if proven else " (unproven)")
        desk.append(_of_agent(desk, who, agent, "pause_acknowledged", summary, detail, fact))
    elif fact.kind in READ:
        summary = f"{agent.agent_id} read a {fact.message_type or fact.kind}"
        desk.append(_of_agent(desk, who, agent, "message_read", summary, detail, fact))


def _execute(desk: Desk, decision_id: str | None) -> None:
    """The agent has its answer: from now on it acts on it."""
    row = desk.memory.rows.get("decisions", {}).get(decision_id)
    if row is None or row["state"] != "answered":
        return
    where = {"tenant_id": desk.memory.tenant.tenant_id, "decision_id": decision_id}
    values = {"state": "executing", "updated_ns": desk.now_ns}
    row.update(values)
    desk.changes.writes.append(Write("decisions", values, where))


def _set(desk: Desk, key: Key, row: dict[str, Any], **values: Any) -> None:
    """Change a delivery, for this batch and in the database."""
    row.update(values)
    where = {"tenant_id": desk.memory.tenant.tenant_id, "sequence_number": key[0], "agent_no": key[1]}
    desk.changes.writes.append(Write("deliveries", values, where))


def _body(fact: Delivery) -> dict[str, Any]:
    return msgspec.json.decode(fact.body, type=dict[str, Any]) if fact.body else {}


def _of_agent(
    desk: Desk,
    who: Principal,
    agent: Agent,
    event_type: str,
    summary: str,
    detail: dict[str, Any] | None = None,
    fact: Delivery | None = None,
) -> Draft:
    """An event of the agent itself: in the session of the delivery it is about, else in none."""
    draft = Draft(
        event_type=event_type,
        severity=SEVERITY[event_type],
        timestamp=from_ns(desk.now_ns),
        timestamp_ns=desk.now_ns,
        trace_id=system_trace(desk.memory.tenant.tenant_id),
        summary=summary,
        detail={"agent_id": agent.agent_id, "entity_id": agent.entity_id, **(detail or {})},
        attributes={"av.sender.agent_id": agent.agent_id},
        sender_id=agent.entity_id,
        sender_type="agent",
        hub_address=agent.hub_address,
        trust_level="tenant_verified" if who.is_bound else "unverified",
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
