"""`Agent`: an agent's voice and ear.

    from observatory import Agent
    agent = Agent("researcher-1")
    agent.step("Verify revenue", tool_call="serp_search", tool_input={"query": "NVDA 10-K"}, status="success")
    if approval := agent.ask("Publish the report", tool_call="publish", tool_input={"to": "all"}):
        publish(approval.tool_input)

Law: all steps, of whatever session, pass through `gate`: the one place where an agent is made to wait, and
only by a person's or a rule's order, never by its telemetry.
"""

import concurrent.futures
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self, Unpack

from observatory.protocol.thoughts import RecordedThought as Recorded
from observatory.sdk import decisions, gate, thoughts
from observatory.sdk.client import NoChannel
from observatory.sdk.decisions import ConfirmationStatus, Option, Terms
from observatory.sdk.errors import NotAnswered
from observatory.sdk.received import Decision, Handoff, Received
from observatory.sdk.session import Line, Session, Words, open_line
from observatory.sdk.speaker import Speaker
from observatory.sdk.step import Step
from observatory.sdk.thoughts import TIMEOUT_S, Content, Proof
from observatory.sdk.waiting import run


class Agent(Speaker, Words):
    """An agent that speaks to the gateway and obeys it. Make one at start and keep it; threads may share it.

    `outbox=` lets many agents of one process share a sender; then whoever made the outbox closes it.
    `on_away="deny"`: while the gateway is away no tool may be run (`permit` is a no, `tool` raises `Denied`);
    otherwise it may, and the step is marked `gateway_away`. Default: `OBSERVATORY_ON_AWAY`, else `allow`.
    `control=False`: it listens only from when it asks something (`ask`, `hitl_required`, `decide`,
    `messages`, `listen`), and sends no heartbeats before. `heartbeat_s=None`: none by itself.
    """

    def decide(self, title: str, options: Sequence[Option], **terms: Unpack[Terms]) -> Decision:
        """Let the owner choose; the id of the option chosen. `default` is taken by the gateway at `deadline`
        (a time, or seconds from now). Raises `Denied` when nobody chose, also within `timeout`. May be told
        besides: `description`, `owner`."""
        return run(decisions.decide(self._line(), self, title, options, **terms))

    def confirm(
        self,
        decision: Decision | str | None,
        status: ConfirmationStatus = "success",
        summary: str | None = None,
        **fields: Any,
    ) -> Step:
        """Say what came of a decision (`action_confirmation`); `fields` as on the wire. Returns at once,
        paused or not; an agent that was never connected waits for that, and raises `NotAnswered`."""
        return run(decisions.confirm(self._line(), self, decision, status, summary, fields))

    def think(
        self,
        kind: str,
        content: Content,
        *,
        session_id: str | None = None,
        timeout: float = TIMEOUT_S,
        **more: Any,
    ) -> Recorded:
        """Record a plan, an analysis, a decision or a reflection in the decision trail; durable when it
        returns. In the session this runs in, else in the agent's own; `session_id`, `task_id`, `references`,
        `audit_event_ids` and `record_id` may be given. Raises `Rejected`, or `NotAnswered` while the gateway
        is away: then nothing is kept, and thinking it again with the same `record_id` is safe."""
        session_id = session_id or self._line().session_id
        return thoughts.run(
            self, thoughts.thinking(self, kind, content, session_id=session_id, **more), timeout
        )

    def proof(
        self,
        intent: str,
        *,
        task_id: str | None = None,
        session_id: str | None = None,
        predecessor: str | None = None,
        timeout: float = TIMEOUT_S,
    ) -> Proof:
        """`with agent.proof("Deploy v2.3.1") as proof:` a proof-grade session, sealed when the block is left.
        Of the session this runs in, else one of its own; `predecessor` is the id of the session before."""
        return Proof(self, intent, task_id, session_id, predecessor, timeout)

    def messages(self, timeout: float | None = 0) -> list[Received]:
        """The messages that have come since, oldest first; waits up to `timeout` for the first one."""
        return run(gate.receive(self, timeout))

    def incoming(self, timeout: float | None = None) -> Iterator[Received]:
        """Messages as they come: `for message in agent.incoming(): …`. Each counts as read when the next is
        asked for, so one that an agent dies over comes again. Ends after `timeout` without any."""
        while (item := run(gate.next_message(self, timeout))) is not None:
            try:
                yield item
            finally:
                self.orders.finish(item)

    def session(
        self, *, session_id: str | None = None, continues: Line | Handoff | Received | None = None
    ) -> Session:
        """A new session with a trace of its own; or with `continues`, another's line gone on with: that of a
        session, of a handoff, or of a message received."""
        return Session(self, *open_line(continues, session_id))

    def raw(self, body: bytes | str | Mapping[str, Any]) -> Step:
        """Send one message as it is: see `say_raw`. It never waits."""
        return self.say_raw(body)

    def listen(self, timeout: float | None = 0) -> bool:
        """Begin to listen, as the first step would; True if the gateway greets us within `timeout`."""
        return run(gate.connection(self, timeout))

    def register(self, *, timeout: float = 10.0, **fields: Any) -> dict[str, Any]:
        """Tell the registry who this is: `capabilities`, `display_name`, `owner`, … as on the wire.
        Raises `Rejected`, or `NotAnswered` while the gateway is away."""
        try:
            asked = self.ear.request("/v1/agents", self._registration(fields), timeout)
            return self._registered(*asked.result(timeout + 1))
        except (NoChannel, concurrent.futures.TimeoutError) as exc:
            raise NotAnswered("the gateway did not answer the registration") from exc

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything said so far is answered; False if `timeout` passed first."""
        return self.outbox.flush(timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Stop listening, send what can be sent, spool the rest; True if nothing is left."""
        return self._close(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
