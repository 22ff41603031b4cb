"""The commands an operator can send for an agent in a session.

Law: the seed's three commands with the seed's payloads, `Unpause`, `Cancel`, and three for a gate.
The operator is never in the payload: identity comes from the key (ruling 13).
"""

from typing import Annotated, Any

from msgspec import Meta as Rule
from msgspec import Struct

from observatory.protocol.rules import Name

Prompt = Annotated[str, Rule(min_length=1, max_length=262144)]


class Pause(Struct, frozen=True, kw_only=True, tag_field="command", tag="pause"):
    """Hold all further messages of the agent in that session."""

    session_id: Name
    agent_id: Name


class Unpause(Struct, frozen=True, kw_only=True, tag_field="command", tag="unpause"):
    """Release the held messages, in arrival order."""

    session_id: Name
    agent_id: Name


class Rewrite(Struct, frozen=True, kw_only=True, tag_field="command", tag="rewrite"):
    """Replace a held message with a complete new one of the same form."""

    session_id: Name
    agent_id: Name
    original_message_id: Name
    new_content: dict[str, Any]


class Inject(Struct, frozen=True, kw_only=True, tag_field="command", tag="inject"):
    """Add a prompt to the agent's next context."""

    session_id: Name
    agent_id: Name
    prompt: Prompt


class Cancel(Struct, frozen=True, kw_only=True, tag_field="command", tag="cancel"):
    """Ask the agent to end its work on the session."""

    session_id: Name
    agent_id: Name
    note: str | None = None


class Approve(Struct, frozen=True, kw_only=True, tag_field="command", tag="approve"):
    """Forward the message held at a gate."""

    session_id: Name
    agent_id: Name
    message_id: Name
    note: str | None = None


class Edit(Struct, frozen=True, kw_only=True, tag_field="command", tag="edit"):
    """Rewrite the message held at a gate and forward it."""

    session_id: Name
    agent_id: Name
    message_id: Name
    new_content: dict[str, Any]
    note: str | None = None


class Reject(Struct, frozen=True, kw_only=True, tag_field="command", tag="reject"):
    """Reject the message held at a gate and notify the agent."""

    session_id: Name
    agent_id: Name
    message_id: Name
    note: str | None = None


OperatorCommand = Pause | Unpause | Rewrite | Inject | Cancel | Approve | Edit | Reject
