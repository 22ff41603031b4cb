"""A held message as commands see it: found by its number or by a name, and changed in content."""

from __future__ import annotations

from observatory.features.relay.stage import recipient_of
from observatory.pipeline.rows import Agent, Hold, Session
from observatory.pipeline.state import Memory
from observatory.protocol.message import Message


def changed(hold: Hold, message: Message, memory: Memory) -> None:
    """Other content is in force: whatever was approved was something else, and its gate is open again."""
    hold.digest, hold.approvals = message.digest, None
    hold.gate = 1 if hold.gate else 0
    hold.recipient = recipient_of(message, memory.tenant.tenant_id)
    memory.touch(hold)


def find(memory: Memory, session: Session, agent: Agent, id_text: str | int) -> Hold | None:
    """The open hold of this agent in this session: by its number, as the doors name it, or by message id,
    step id or step name."""
    if isinstance(id_text, int):
        found = memory.holds.get(session.session_no, {}).get(id_text)
        return found if found is not None and found.agent_no == agent.agent_no else None
    for hold in memory.holds.get(session.session_no, {}).values():
        if hold.agent_no == agent.agent_no and id_text in (hold.message_id, hold.step_id, hold.name):
            return hold
    return None
