"""One message on its way through the corridor: what the stages have found out so far."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from observatory.protocol.message import Message
from observatory.state import Agent, Draft, Member, Memory, Principal, Session, Verdict, Write


class Passage(msgspec.Struct, gc=False):
    message: Message
    principal: Principal
    received_ns: int
    agent: Agent | None = None
    session: Session | None = None
    member: Member | None = None
    entity_id: str = ""
    step_id: str = ""
    name: str = ""
    parents: tuple[str, ...] = ()
    parent_inferred: bool = False
    warnings: list[str] = []
    # Told before the message itself, e.g. the agent's registration at first sight.
    events: list[Draft] = []
    writes: list[Write] = []


# A stage is pure: it reads and changes only the passage and the memory. None means: go on.
Stage = Callable[[Passage, Memory, int], Verdict | None]
