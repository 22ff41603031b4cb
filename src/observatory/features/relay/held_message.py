"""Finding a held message by number or name, and changing its content."""

from __future__ import annotations

from observatory.pipeline.addresses import recipient_of
from observatory.pipeline.rows import AgentRow, HoldRow, SessionRow
from observatory.pipeline.state import BatchState
from observatory.protocol.message import Message


def content_changed(hold: HoldRow, message: Message, memory: BatchState) -> None:
    """New content is in force: earlier approvals were of other content, so its gate opens again."""
    hold.digest, hold.approvals = message.digest, None
    hold.gate = 1 if hold.gate else 0
    hold.recipient = recipient_of(message, memory.tenant.tenant_id)
    memory.touch(hold)


def find_hold(memory: BatchState, session: SessionRow, agent: AgentRow, id_text: str | int) -> HoldRow | None:
    """The open hold of this agent in this session: by sequence number, as the routes name it, or by message
    id, step id or step name."""
    if isinstance(id_text, int):
        numbered = memory.holds.get(session.session_no, {}).get(id_text)
        return numbered if numbered is not None and numbered.agent_no == agent.agent_no else None
    for hold in memory.holds.get(session.session_no, {}).values():
        if hold.agent_no == agent.agent_no and id_text in (hold.message_id, hold.step_id, hold.name):
            return hold
    return None
