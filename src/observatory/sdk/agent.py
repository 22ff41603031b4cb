"""`Agent`: sends an agent's steps to the gateway and receives its orders (synchronous API).

    from observatory import Agent
    agent = Agent("researcher-1")
    agent.step("Verify revenue", tool_call="serp_search", tool_input={"query": "NVDA 10-K"}, status="success")
    if approval := agent.ask("Publish the report", tool_call="publish", tool_input={"to": "all"}):
        publish(approval.tool_input)

Rule: every step of every session passes through `gate`, the only place where an agent waits, and only because
a person or a rule ordered it, never because of telemetry.
"""

import concurrent.futures
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self, Unpack

from observatory.protocol.thoughts import RecordedThought as Recorded
from observatory.sdk import decisions, gate, thoughts
from observatory.sdk.client import NoResponse
from observatory.sdk.decisions import ConfirmationStatus, DecisionTerms, Option
from observatory.sdk.errors import NotAnswered
from observatory.sdk.received import Decision, Handoff, Received
from observatory.sdk.sender import Sender
from observatory.sdk.session import Session, SessionBranch, StepMethods, open_line
from observatory.sdk.step import Step
from observatory.sdk.thoughts import TIMEOUT_S, Content, Proof
from observatory.sdk.waiting import run


class Agent(Sender, StepMethods):
    """An agent connected to the gateway. Create one at start and keep it; threads may share it.

    `outbox=` lets many agents of one process share an outbox; its creator closes it. `on_away="deny"`: while
    the gateway is unreachable no tool may run (`permit` is false, `tool` raises `Denied`); otherwise tools
    run and steps are marked `gateway_away`. Default: `OBSERVATORY_ON_AWAY`, else `allow`. `control=False`:
    the agent listens and sends heartbeats only after it first asks something (`ask`, `hitl_required`,
    `decide`, `messages`, `listen`). `heartbeat_s=None`: no automatic heartbeats.
    """

    def decide(self, title: str, options: Sequence[Option], **terms: Unpack[DecisionTerms]) -> Decision:
        """Let the owner choose; returns the id of the chosen option. The gateway takes `default` at
        `deadline` (a time, or seconds from now). Raises `Denied` when no option was chosen, or none within
        `timeout`. Optional: `description`, `owner`."""
        return run(decisions.decide(self._line(), self, title, options, **terms))

    def confirm(
        self,
        decision: Decision | str | None,
        status: ConfirmationStatus = "success",
        summary: str | None = None,
        **fields: Any,
    ) -> Step:
        """Report the result of a decision (`action_confirmation`); `fields` as on the wire. Returns at once,
        paused or not; an agent that was never connected waits for a connection, then raises `NotAnswered`."""
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
        returns. Recorded in the current session, else in the agent's own; `session_id`, `task_id`,
        `references`, `audit_event_ids` and `record_id` are optional. Raises `Rejected`, or `NotAnswered`
        while the gateway is unreachable: then nothing is stored, and retrying with the same `record_id` is
        safe."""
        session_id = session_id or self._line().session_id
        return thoughts.run(
            self, thoughts.record_thought(self, kind, content, session_id=session_id, **more), timeout
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
        """`with agent.proof("Deploy v2.3.1") as proof:` a proof-grade session, sealed when the block ends.
        Uses the current session, else a new one; `predecessor` is the id of the previous session."""
        return Proof(self, intent, task_id, session_id, predecessor, timeout)

    def messages(self, timeout: float | None = 0) -> list[Received]:
        """New messages, oldest first; waits up to `timeout` for the first one."""
        return run(gate.receive(self, timeout))

    def incoming(self, timeout: float | None = None) -> Iterator[Received]:
        """Iterate over messages: `for message in agent.incoming(): …`. Each is acknowledged when the next is
        requested, so a message is delivered again if the agent dies while handling it. Ends after `timeout`
        without a message."""
        while (item := run(gate.next_message(self, timeout))) is not None:
            try:
                yield item
            finally:
                self.orders.finish(item)

    def session(
        self, *, session_id: str | None = None, continues: SessionBranch | Handoff | Received | None = None
    ) -> Session:
        """A new session with its own trace; with `continues`, the continuation of a session, a handoff or a
        received message."""
        return Session(self, *open_line(continues, session_id))

    def raw(self, body: bytes | str | Mapping[str, Any]) -> Step:
        """Send one message unchanged: see `say_raw`. Never waits."""
        return self.queue_raw(body)

    def listen(self, timeout: float | None = 0) -> bool:
        """Start listening, as the first step does; True if the gateway accepts the connection within
        `timeout`."""
        return run(gate.await_connection(self, timeout))

    def register(self, *, timeout: float = 10.0, **fields: Any) -> dict[str, Any]:
        """Register this agent: `capabilities`, `display_name`, `owner`, … as on the wire.
        Raises `Rejected`, or `NotAnswered` while the gateway is unreachable."""
        try:
            response = self.receiver.request("/v1/agents", self._registration(fields), timeout)
            return self._registered(*response.result(timeout + 1))
        except (NoResponse, concurrent.futures.TimeoutError) as exc:
            raise NotAnswered("the gateway did not answer the registration") from exc

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything sent so far is answered; False if `timeout` passed first."""
        return self.outbox.flush(timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Stop listening, send what can be sent, spool the rest; True if nothing is left."""
        return self._close(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
