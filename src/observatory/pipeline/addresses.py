"""Group addresses (`type:x`, `cluster:y`, `session:z`) and the agents they resolve to now.

Pure over the batch state, which `router.want` asked to load the rows. Policies and the router both resolve
addresses here, so that what is checked is what can be reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from observatory.pipeline.rows import AgentRow, MemberRow
from observatory.pipeline.state import BatchState
from observatory.protocol.identity import agent_entity_id, canonical_id
from observatory.protocol.message import Message

GROUP_PREFIXES = ("type:", "cluster:", "session:")


def session_of(address: str) -> str:
    return canonical_id(address.removeprefix("session:"))


def members_of_session(memory: BatchState, address: str) -> Sequence[MemberRow]:
    """Members of a session now. Cached per batch by its member count: a session may have many."""
    session = memory.sessions.get(session_of(address))
    if session is None:
        return ()
    cached = memory.rows.setdefault("rooms", {})
    known = cached.get(session.session_no)
    if known is None or known["size"] != session.agents:
        members = [member for member in memory.members.values() if member.session_no == session.session_no]
        known = cached[session.session_no] = {"size": session.agents, "members": members}
    return [member for member in known["members"] if member.arrived_ns]


def agents_at(memory: BatchState, address: str) -> Iterable[AgentRow]:
    """The agents an address may reach now."""
    if address.startswith("session:"):
        inside = {member.agent_no for member in members_of_session(memory, address)}
        return [agent for agent in memory.agents.values() if agent.agent_no in inside] if inside else ()
    return [agent for agent in map(memory.agents.get, memory.fleet.get(address, ())) if agent is not None]


def candidates(memory: BatchState, message: Message) -> Iterable[AgentRow]:
    """The agents a message may reach through a group address; none when it names one recipient."""
    to = message.recipient
    if to is None or message.recipient_type is not None or not to.startswith(GROUP_PREFIXES):
        return ()
    return agents_at(memory, to)


def recipient_of(message: Message, tenant_id: str) -> str | None:
    """The recipient, as `Wants.recipient` takes it; people and the system have no inbox."""
    target = message.recipient
    if target is None or message.recipient_type in ("user", "system"):
        return None
    if target.startswith(("type:", "cluster:", "session:")):
        return target
    return agent_entity_id(tenant_id, target)
