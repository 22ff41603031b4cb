"""`AsyncAgent`: the asyncio version of `Agent`.

It uses the same outbox, sender thread, receiver and `gate` as `Agent`: where `Agent` blocks a thread, only
the calling task waits.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self, Unpack

from observatory.protocol.thoughts import RecordedThought as Recorded
from observatory.sdk import decisions, gate, reminders, thoughts
from observatory.sdk.answers import Answer
from observatory.sdk.approval import Approval
from observatory.sdk.client import NoResponse
from observatory.sdk.decisions import ConfirmationStatus, DecisionTerms, Option
from observatory.sdk.errors import NotAnswered
from observatory.sdk.gate import StepRequest
from observatory.sdk.received import Decision, Handoff, Received, Verdict
from observatory.sdk.sender import Sender
from observatory.sdk.session import SessionBranch, ToolCall, open_line
from observatory.sdk.step import Step, StepFields
from observatory.sdk.thoughts import TIMEOUT_S, AsyncProof, Content
from observatory.sdk.waiting import Wait, run_async, until


class AsyncStep:
    """One step taken; `await step.answer()` waits for the gateway's answer."""

    def __init__(self, step: Step) -> None:
        self._step = step

    @property
    def step_id(self) -> str | None:
        return self._step.step_id

    @property
    def session_id(self) -> str | None:
        return self._step.session_id

    @property
    def verdict(self) -> Verdict | None:
        """The verdict, for a step with `hitl_required`; `tool_input` is what was approved."""
        return self._step.verdict

    async def answer(self, timeout: float | None = None) -> Answer:  # noqa: ASYNC109 (the signature of Step.answer)
        """Like `Step.answer`: returns the acceptance; raises `Rejected`, `Lost` or `NotAnswered`."""
        await until(Wait(self._step, lambda: self._step.is_settled, timeout))
        return self._step.result()

    def __repr__(self) -> str:
        return f"Async{self._step!r}"


class AsyncStepMethods:
    """The async version of `StepMethods`, shared by async agents and sessions."""

    def _here(self) -> tuple[SessionBranch, Sender]:
        raise NotImplementedError

    async def step(
        self,
        intent: str,
        *,
        step_id: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
        **fields: Unpack[StepFields],
    ) -> AsyncStep:
        """Record what was done, in the current session, else in the agent's own: see `Agent.step`."""
        request = StepRequest(*self._here(), intent, step_id, fields, timeout)
        return AsyncStep(await run_async(gate.take_step(request)))

    async def ask(
        self,
        intent: str,
        *,
        step_id: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
        **fields: Unpack[StepFields],
    ) -> Approval:
        """Ask a person before doing it, and use the approval: see `Agent.ask`."""
        return await run_async(gate.ask(StepRequest(*self._here(), intent, step_id, fields, timeout)))

    async def permit(
        self,
        intent: str,
        *,
        needs_approval: bool = False,
        step_id: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
        **fields: Unpack[StepFields],
    ) -> Approval:
        """Ask whether an action is allowed before doing it: see `Agent.permit`."""
        request = StepRequest(*self._here(), intent, step_id, fields, timeout)
        return await run_async(gate.permit(request, needs_approval))

    async def remind(
        self,
        *,
        in_s: float | None = None,
        at: datetime | str | None = None,
        payload: Any = None,
        intent: str = reminders.INTENT,
    ) -> AsyncStep:
        """Request a reminder in the current session: see `Agent.remind`."""
        request = StepRequest(*self._here(), intent, None, reminders.fields(in_s, at, payload), None)
        return AsyncStep(await run_async(gate.take_step(request)))

    def tool(self, tool_call: str, tool_input: Any = None, *, intent: str | None = None) -> "AsyncToolCall":
        """`async with s.tool("serp_search", {...}) as call:` times the call and records it."""
        return AsyncToolCall(*self._here(), tool_call, tool_input, intent)


class AsyncSession(SessionBranch, AsyncStepMethods):
    """A session of an async agent. Give each task its own `fork()`; `join` them afterwards."""

    async def __aenter__(self) -> Self:
        self._enter()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._leave()


class AsyncToolCall(ToolCall):
    """`ToolCall` for `async with`."""

    async def __aenter__(self) -> Self:
        await run_async(self._before())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.step = await run_async(gate.record_step(self._done(exc)))


class AsyncAgent(Sender, AsyncStepMethods):
    """An asyncio agent connected to the gateway; its methods are described at `Agent`."""

    async def decide(self, title: str, options: Sequence[Option], **terms: Unpack[DecisionTerms]) -> Decision:
        """Let the owner choose: see `Agent.decide`."""
        return await run_async(decisions.decide(self._line(), self, title, options, **terms))

    async def confirm(
        self,
        decision: Decision | str | None,
        status: ConfirmationStatus = "success",
        summary: str | None = None,
        **fields: Any,
    ) -> AsyncStep:
        """Report the result of a decision: see `Agent.confirm`."""
        confirming = decisions.confirm(self._line(), self, decision, status, summary, fields)
        return AsyncStep(await run_async(confirming))

    async def think(
        self,
        kind: str,
        content: Content,
        *,
        session_id: str | None = None,
        timeout: float = TIMEOUT_S,  # noqa: ASYNC109
        **more: Any,
    ) -> Recorded:
        """Record a thought in the decision trail: see `Agent.think`."""
        session_id = session_id or self._line().session_id
        requests = thoughts.record_thought(self, kind, content, session_id=session_id, **more)
        return await thoughts.run_async(self, requests, timeout)

    def proof(
        self,
        intent: str,
        *,
        task_id: str | None = None,
        session_id: str | None = None,
        predecessor: str | None = None,
        timeout: float = TIMEOUT_S,
    ) -> AsyncProof:
        """`async with agent.proof("…") as proof:` a proof-grade session: see `Agent.proof`."""
        return AsyncProof(self, intent, task_id, session_id, predecessor, timeout)

    async def messages(self, timeout: float | None = 0) -> list[Received]:  # noqa: ASYNC109
        """New messages, oldest first; waits up to `timeout` for the first one."""
        return await run_async(gate.receive(self, timeout))

    async def incoming(self, timeout: float | None = None) -> AsyncIterator[Received]:  # noqa: ASYNC109
        """Iterate over messages: `async for message in agent.incoming(): …`; see `Agent.incoming`."""
        while (item := await run_async(gate.next_message(self, timeout))) is not None:
            try:
                yield item
            finally:
                self.orders.finish(item)

    def session(
        self, *, session_id: str | None = None, continues: SessionBranch | Handoff | Received | None = None
    ) -> AsyncSession:
        """A new session with its own trace; with `continues`, the continuation of another."""
        return AsyncSession(self, *open_line(continues, session_id))

    async def raw(self, body: bytes | str | Mapping[str, Any]) -> AsyncStep:
        """Send one message unchanged."""
        return AsyncStep(self.queue_raw(body))

    async def listen(self, timeout: float | None = 0) -> bool:  # noqa: ASYNC109
        """Start listening, as the first step does; True if the gateway accepts the connection within
        `timeout`."""
        return await run_async(gate.await_connection(self, timeout))

    async def register(self, *, timeout: float = 10.0, **fields: Any) -> dict[str, Any]:  # noqa: ASYNC109
        """Register this agent: see `Agent.register`."""
        try:
            response = self.receiver.request("/v1/agents", self._registration(fields), timeout)
            return self._registered(*await asyncio.wait_for(asyncio.wrap_future(response), timeout + 1))
        except (NoResponse, TimeoutError) as exc:
            raise NotAnswered("the gateway did not answer the registration") from exc

    async def flush(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109
        """Wait until everything sent so far is answered; False if `timeout` passed first."""
        return await asyncio.to_thread(self.outbox.flush, timeout)

    async def close(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109
        """Stop listening, send what can be sent, spool the rest; True if nothing is left."""
        return await asyncio.to_thread(self._close, timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
