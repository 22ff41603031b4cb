"""Acts on instructions: the words every agent of a class works by, versioned, never edited (R227).

Law: a change is a new version, a roll back too; the newest is in force. The record holds the hash of the
text, never the text. Every agent of the class is told in the same transaction; who connects later is
told by the channel, and each acknowledges by itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

from observatory.pipeline import row_statements as stating
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Agent, Write
from observatory.pipeline.state import Act, Desk, Memory, Principal, Verdict, Wants
from observatory.protocol.answers import Refused

TABLE = "instructions"
MAX_BYTES = 64 << 10


def issue(
    who: Principal,
    agent_type: str,
    text: str,
    note: str,
    entities: Iterable[str],
    now_ns: int,
    was: int | None = None,
) -> Act:
    """`entities` are the agents of the class as last committed; those just registered are found besides.

    `was` is the version its author saw in force (0 for none): nobody replaces words they did not read.
    """

    def decide(desk: Desk) -> Verdict:
        return _stale(desk, agent_type, was) or _put(who, agent_type, text, note, desk)

    return Act(who, now_ns, decide, _wants(agent_type, entities), size=len(text) + 1_024)


def roll_back(
    who: Principal,
    agent_type: str,
    version: int,
    entities: Iterable[str],
    now_ns: int,
    was: int | None = None,
) -> Act:
    """A new version with the words of an old one: history only grows."""

    def decide(desk: Desk) -> Verdict:
        stale = _stale(desk, agent_type, was)
        if stale is not None:
            return stale
        old = desk.memory.rows.get(TABLE, {}).get((agent_type, version))
        if old is None:
            told = "this agent type has no instructions of that version"
            return Verdict(404, Refused(reason="not_found", detail=told))
        if version == desk.memory.rulebook.instructions.get(agent_type):
            return Verdict(409, Refused(reason="conflict", detail="this version is in force already"))
        note = f"rolled back to version {version}"
        return _put(who, agent_type, old["text"], note, desk, rolled_back_to=version)

    wants = _wants(agent_type, entities)
    wants.row(TABLE, agent_type)
    return Act(who, now_ns, decide, wants)


def text_hash(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def agents_of(memory: Memory, agent_type: str) -> list[Agent]:
    """Who works by these words; a registered capability of the same name makes nobody one of the class."""
    found = [agent for agent in memory.agents.values() if agent.agent_type == agent_type]
    return sorted((agent for agent in found if agent.evicted_ns is None), key=lambda agent: agent.agent_no)


def _stale(desk: Desk, agent_type: str, was: int | None) -> Verdict | None:
    version = desk.memory.rulebook.instructions.get(agent_type, 0)
    if was is None or was == version:
        return None
    told = f"somebody issued version {version} meanwhile; look at it, then issue yours"
    return Verdict(409, Refused(reason="stale_instructions", detail=told))


def _wants(agent_type: str, entities: Iterable[str]) -> Wants:
    return Wants(agents=set(entities), addresses={f"type:{agent_type}"})


def _put(
    who: Principal, agent_type: str, text: str, note: str, desk: Desk, rolled_back_to: int | None = None
) -> Verdict:
    memory = desk.memory
    version = memory.rulebook.instructions.get(agent_type, 0) + 1
    row: dict[str, Any] = {
        "tenant_id": who.tenant_id,
        "agent_type": agent_type,
        "version": version,
        "text": text,
        "note": note,
        "created_ns": desk.now_ns,
        "created_by": who.entity_id,
    }
    desk.changes.writes.append(Write(TABLE, row))
    memory.rows.setdefault(TABLE, {})[agent_type, version] = row
    memory.tenant.rulebook_version += 1
    memory.rulebook = msgspec.structs.replace(
        memory.rulebook, instructions=memory.rulebook.instructions | {agent_type: version}
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
    summary = f"instructions of {agent_type}, version {version}, issued to {len(agents)} agents"
    event = notice(who.tenant_id, "instruction_issued", summary, desk.now_ns, who, detail)
    stating.put_on(event, [stating.row_of(TABLE, row)])
    number = desk.append(event)
    body = {"agent_type": agent_type, "version": version, "text": text, "note": note}
    for agent in agents:
        desk.tell(number, agent.agent_no, "instruction", body)
    return Verdict(201, row | {"told": len(agents)})
