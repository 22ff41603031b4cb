"""Addresses that mean more than one agent, and whom they mean now: `type:x`, `cluster:y`, `session:z`.

Pure over the batch's memory, which was asked for the rows by `router.want`. Rules and the router look here,
so that what is judged is what can be reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from observatory.pipeline.rows import Agent, Member
from observatory.pipeline.state import Memory
from observatory.protocol.identity import canonical_id
from observatory.protocol.message import Message

PLACES = ("type:", "cluster:", "session:")


def session_of(address: str) -> str:
    return canonical_id(address.removeprefix("session:"))


def room(memory: Memory, address: str) -> Sequence[Member]:
    """Who is in a session now. Looked up once a batch for each size the room had: members are many."""
    session = memory.sessions.get(session_of(address))
    if session is None:
        return ()
    rooms = memory.rows.setdefault("rooms", {})
    known = rooms.get(session.session_no)
    if known is None or known["size"] != session.agents:
        found = [member for member in memory.members.values() if member.session_no == session.session_no]
        known = rooms[session.session_no] = {"size": session.agents, "members": found}
    return [member for member in known["members"] if member.arrived_ns]


def meant(memory: Memory, address: str) -> Iterable[Agent]:
    """The agents an address may reach now."""
    if address.startswith("session:"):
        inside = {member.agent_no for member in room(memory, address)}
        return [agent for agent in memory.agents.values() if agent.agent_no in inside] if inside else ()
    return [agent for agent in map(memory.agents.get, memory.fleet.get(address, ())) if agent is not None]


def candidates(memory: Memory, message: Message) -> Iterable[Agent]:
    """The agents a message may reach by its address; none when it names its one recipient."""
    to = message.recipient
    if to is None or message.recipient_type is not None or not to.startswith(PLACES):
        return ()
    return meant(memory, to)
