"""`Agent`: an agent's voice.

    from observatory import Agent
    agent = Agent("researcher-1")
    agent.step("Verify revenue", tool_call="serp_search", tool_input={"query": "NVDA 10-K"}, status="success")

Law: all steps, of whatever session, pass through `Line.record`: the one place where control (a pause, a
gate) will be able to make an agent wait.
"""

import os
import re
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Self, Unpack

import msgspec

from observatory.sdk.credentials import find_door
from observatory.sdk.delivery import Delivery
from observatory.sdk.errors import Rejected
from observatory.sdk.outbox import Outbox
from observatory.sdk.session import Handoff, Line, Session, ToolCall, current_line, open_line
from observatory.sdk.step import Step, StepFields


class Speaker:
    """Who speaks and by which way out; what the sync and the async agent share."""

    def __init__(
        self,
        agent_id: str,
        *,
        agent_type: str | None = None,
        version: str = "1.0.0",
        cluster: str | None = None,
        model: str | None = None,
        provider: str | None = None,
        url: str | None = None,
        key: str | None = None,
        data: str | os.PathLike[str] | None = None,
        delivery: Delivery | None = None,
        on_reject: Callable[[Rejected], None] | None = None,
        outbox: Outbox | None = None,
    ) -> None:
        self.agent_id = agent_id
        self.cluster = cluster or os.environ.get("OBSERVATORY_CLUSTER") or "local"
        self.identity: dict[str, Any] = {
            "agent_id": agent_id,
            "agent_type": agent_type or re.sub(r"[-_.]?\d+$", "", agent_id) or agent_id,
            "capability_version": version,
        }
        self.identity |= {k: v for k, v in (("model", model), ("provider", provider)) if v is not None}
        self._owns_outbox = outbox is None
        if outbox is None:
            door = find_door(url, key, data)
            outbox = Outbox(agent_id, door, delivery or Delivery(), on_reject=on_reject)
        self.outbox = outbox
        self._home = Line(self, *open_line(None, None))

    def _line(self) -> Line:
        """Where a step said without a session belongs: to the one this code runs in, else to our own."""
        return current_line() or self._home

    @property
    def rejections(self) -> deque[Rejected]:
        """The latest refusals (at most 1,000); of all its agents when an outbox is shared."""
        return self.outbox.rejections

    def say_raw(self, body: bytes | str | Mapping[str, Any]) -> Step:
        """Queue one message as it is, unread: for envelopes, other people's logs, and for trying what the
        gateway refuses. It must be one line."""
        line = body.encode() if isinstance(body, str) else body
        line = line if isinstance(line, bytes) else msgspec.json.encode(line)
        if not line.strip() or b"\n" in line or b"\r" in line:
            raise ValueError("a raw message is one line that is not blank")
        step = Step(self.outbox, None, None)
        self.outbox.put(line, step)
        return step


class Agent(Speaker):
    """An agent that speaks to the gateway. Make one at start and keep it; threads may share it.

    `outbox=` lets many agents of one process share a sender; then whoever made the outbox closes it.
    """

    def step(self, intent: str, *, step_id: str | None = None, **fields: Unpack[StepFields]) -> Step:
        """Say what was done, in the session this code runs in, else in the agent's own. Returns at once."""
        return self._line().record(self, intent, step_id, fields)

    def tool(self, tool_call: str, tool_input: Any = None, *, intent: str | None = None) -> ToolCall:
        """Time a tool call and record it: see `Session.tool`."""
        return ToolCall(self._line(), self, tool_call, tool_input, intent)

    def session(self, *, session_id: str | None = None, continues: Line | Handoff | None = None) -> Session:
        """A new session with a trace of its own; or with `continues`, another's line gone on with."""
        return Session(self, *open_line(continues, session_id))

    def raw(self, body: bytes | str | Mapping[str, Any]) -> Step:
        """Send one message as it is: see `say_raw`."""
        return self.say_raw(body)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything said so far is answered; False if `timeout` passed first."""
        return self.outbox.flush(timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Send what can be sent, spool the rest; True if nothing is left."""
        return self.outbox.close(timeout) if self._owns_outbox else self.outbox.flush(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
