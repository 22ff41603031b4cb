"""Commands on instructions: the system prompt of an agent type, versioned, never edited (R227).

Law: a change is a new version, a rollback too; the newest is in force. The record has the hash of the text,
never the text. Every agent of the type gets it in the same transaction; an agent that connects later gets it
through its channel, and each acknowledges separately.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

from observatory.pipeline import row_statements as stating
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import AgentRow, RowWrite
from observatory.pipeline.state import BatchState, Command, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol.responses import Refused

TABLE = "instructions"
MAX_BYTES = 64 << 10


def issue(
    principal: Principal,
    agent_type: str,
    text: str,
    note: str,
    entities: Iterable[str],
    now_ns: int,
    was: int | None = None,
) -> Command:
    """`entities` are the agents of the type as last committed; those just registered are found too.

    `was` is the version its author saw in force (0 for none): a text cannot be replaced unread.
    """

    def decide(uow: UnitOfWork) -> SubmissionResult:
        return _stale(uow, agent_type, was) or _put(principal, agent_type, text, note, uow)

    return Command(principal, now_ns, decide, _wants(agent_type, entities), size=len(text) + 1_024)


def roll_back(
    principal: Principal,
    agent_type: str,
    version: int,
    entities: Iterable[str],
    now_ns: int,
    was: int | None = None,
) -> Command:
    """A new version with the text of an old one: history only grows."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        stale = _stale(uow, agent_type, was)
        if stale is not None:
            return stale
        old = uow.memory.rows.get(TABLE, {}).get((agent_type, version))
        if old is None:
            detail = "this agent type has no instructions of that version"
            return SubmissionResult(404, Refused(reason="not_found", detail=detail))
        if version == uow.memory.tenant_config.instructions.get(agent_type):
            return SubmissionResult(
                409, Refused(reason="conflict", detail="this version is in force already")
            )
        note = f"rolled back to version {version}"
        return _put(principal, agent_type, old["text"], note, uow, rolled_back_to=version)

    read_set = _wants(agent_type, entities)
    read_set.row(TABLE, agent_type)
    return Command(principal, now_ns, decide, read_set)


def text_hash(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def agents_of(memory: BatchState, agent_type: str) -> list[AgentRow]:
    """Agents of this type; an agent that only registers a capability of the same name is not one."""
    found = [agent for agent in memory.agents.values() if agent.agent_type == agent_type]
    return sorted((agent for agent in found if agent.evicted_ns is None), key=lambda agent: agent.agent_no)


def _stale(uow: UnitOfWork, agent_type: str, was: int | None) -> SubmissionResult | None:
    version = uow.memory.tenant_config.instructions.get(agent_type, 0)
    if was is None or was == version:
        return None
    detail = f"version {version} was issued meanwhile; review it, then issue yours"
    return SubmissionResult(409, Refused(reason="stale_instructions", detail=detail))


def _wants(agent_type: str, entities: Iterable[str]) -> ReadSet:
    return ReadSet(agents=set(entities), addresses={f"type:{agent_type}"})


def _put(
    principal: Principal,
    agent_type: str,
    text: str,
    note: str,
    uow: UnitOfWork,
    rolled_back_to: int | None = None,
) -> SubmissionResult:
    memory = uow.memory
    version = memory.tenant_config.instructions.get(agent_type, 0) + 1
    row: dict[str, Any] = {
        "tenant_id": principal.tenant_id,
        "agent_type": agent_type,
        "version": version,
        "text": text,
        "note": note,
        "created_ns": uow.now_ns,
        "created_by": principal.entity_id,
    }
    uow.changes.writes.append(RowWrite(TABLE, row))
    memory.rows.setdefault(TABLE, {})[agent_type, version] = row
    memory.tenant.rulebook_version += 1
    memory.tenant_config = msgspec.structs.replace(
        memory.tenant_config, instructions=memory.tenant_config.instructions | {agent_type: version}
    )
    agents = agents_of(memory, agent_type)
    detail = {
        "agent_type": agent_type,
        "version": version,
        "text_hash": text_hash(text),
        "note": note,
        "rolled_back_to": rolled_back_to,
        "agents": len(agents),
    }
    count = f"{len(agents)} {'agent' if len(agents) == 1 else 'agents'}"
    summary = f"instructions of {agent_type}, version {version}, issued to {count}"
    event = gateway_event(principal.tenant_id, "instruction_issued", summary, uow.now_ns, principal, detail)
    stating.attach_rows(event, [stating.stated_row(TABLE, row)])
    number = uow.append(event)
    body = {"agent_type": agent_type, "version": version, "text": text, "note": note}
    for agent in agents:
        uow.deliver(number, agent.agent_no, "instruction", body)
    return SubmissionResult(201, row | {"told": len(agents)})
