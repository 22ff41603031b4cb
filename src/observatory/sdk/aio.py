"""`AsyncAgent`: the same words for asyncio.

It sits on the same outbox, sender thread and ear as `Agent`, and obeys the same `gate`: where that makes an
agent wait, a task waits and the loop goes on.
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
from observatory.sdk.client import NoChannel
from observatory.sdk.decisions import ConfirmationStatus, Option, Terms
from observatory.sdk.errors import NotAnswered
from observatory.sdk.gate import Said
from observatory.sdk.received import Decision, Handoff, Received, Verdict
from observatory.sdk.session import Line, ToolCall, open_line
from observatory.sdk.speaker import Speaker
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
        """What came of asking, when it asked (`hitl_required`): `tool_input` is what was approved."""
        return self._step.verdict

    async def answer(self, timeout: float | None = None) -> Answer:  # noqa: ASYNC109 (as Step says it)
        """As `Step.answer`: returns what was accepted; raises `Rejected`, `Lost` or `NotAnswered`."""
        await until(Wait(self._step, lambda: self._step.is_settled, timeout))
        return self._step.judged()

    def __repr__(self) -> str:
        return f"Async{self._step!r}"


class AsyncWords:
    """What async agents and their sessions say alike: `Words`, awaited."""

    def _here(self) -> tuple[Line, Speaker]:
        raise NotImplementedError

    async def step(
        self,
        intent: str,
        *,
        step_id: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
        **fields: Unpack[StepFields],
    ) -> AsyncStep:
        """Say what was done, in the session this task runs in, else in the agent's own: see `Agent.step`."""
        said = Said(*self._here(), intent, step_id, fields, timeout)
        return AsyncStep(await run_async(gate.say(said)))

    async def ask(
        self,
        intent: str,
        *,
        step_id: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
        **fields: Unpack[StepFields],
    ) -> Approval:
        """Ask a person before doing it, and do what the approval says: see `Agent.ask`."""
        return await run_async(gate.ask(Said(*self._here(), intent, step_id, fields, timeout)))

    async def permit(
        self,
        intent: str,
        *,
        needs_approval: bool = False,
        step_id: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
        **fields: Unpack[StepFields],
    ) -> Approval:
        """Ask before doing it whether it may be done: see `Agent.permit`."""
        said = Said(*self._here(), intent, step_id, fields, timeout)
        return await run_async(gate.permit(said, needs_approval))

    async def remind(
        self,
        *,
        in_s: float | None = None,
        at: datetime | str | None = None,
        payload: Any = None,
        intent: str = reminders.INTENT,
    ) -> AsyncStep:
        """Ask to be spoken to later, in the session this task runs in: see `Agent.remind`."""
        said = Said(*self._here(), intent, None, reminders.fields(in_s, at, payload), None)
        return AsyncStep(await run_async(gate.say(said)))

    def tool(self, tool_call: str, tool_input: Any = None, *, intent: str | None = None) -> "AsyncToolCall":
        """`async with s.tool("serp_search", {...}) as call:` times the call and records it."""
        return AsyncToolCall(*self._here(), tool_call, tool_input, intent)


class AsyncSession(Line, AsyncWords):
    """A session as an async agent sees it. Give each task its own `fork()`; `join` them after."""

    async def __aenter__(self) -> Self:
        self._enter()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._leave()


class AsyncToolCall(ToolCall):
    """As `ToolCall`, for `async with`."""

    async def __aenter__(self) -> Self:
        await run_async(self._before())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.step = await run_async(gate.tell(self._done(exc)))


class AsyncAgent(Speaker, AsyncWords):
    """An asyncio agent that speaks to the gateway and obeys it; see `Agent` for what its words mean."""

    async def decide(self, title: str, options: Sequence[Option], **terms: Unpack[Terms]) -> Decision:
        """Let the owner choose: see `Agent.decide`."""
        return await run_async(decisions.decide(self._line(), self, title, options, **terms))

    async def confirm(
        self,
        decision: Decision | str | None,
        status: ConfirmationStatus = "success",
        summary: str | None = None,
        **fields: Any,
    ) -> AsyncStep:
        """Say what came of a decision: see `Agent.confirm`."""
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
        asking = thoughts.thinking(self, kind, content, session_id=session_id, **more)
        return await thoughts.run_async(self, asking, timeout)

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
        """The messages that have come since, oldest first; waits up to `timeout` for the first one."""
        return await run_async(gate.receive(self, timeout))

    async def incoming(self, timeout: float | None = None) -> AsyncIterator[Received]:  # noqa: ASYNC109
        """Messages as they come: `async for message in agent.incoming(): …`; see `Agent.incoming`."""
        while (item := await run_async(gate.next_message(self, timeout))) is not None:
            try:
                yield item
            finally:
                self.orders.finish(item)

    def session(
        self, *, session_id: str | None = None, continues: Line | Handoff | Received | None = None
    ) -> AsyncSession:
        """A new session with a trace of its own; or with `continues`, another's line gone on with."""
        return AsyncSession(self, *open_line(continues, session_id))

    async def raw(self, body: bytes | str | Mapping[str, Any]) -> AsyncStep:
        """Send one message as it is."""
        return AsyncStep(self.say_raw(body))

    async def listen(self, timeout: float | None = 0) -> bool:  # noqa: ASYNC109
        """Begin to listen, as the first step would; True if the gateway greets us within `timeout`."""
        return await run_async(gate.connection(self, timeout))

    async def register(self, *, timeout: float = 10.0, **fields: Any) -> dict[str, Any]:  # noqa: ASYNC109
        """Tell the registry who this is: see `Agent.register`."""
        try:
            asked = self.ear.request("/v1/agents", self._registration(fields), timeout)
            return self._registered(*await asyncio.wait_for(asyncio.wrap_future(asked), timeout + 1))
        except (NoChannel, TimeoutError) as exc:
            raise NotAnswered("the gateway did not answer the registration") from exc

    async def flush(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109
        """Wait until everything said so far is answered; False if `timeout` passed first."""
        return await asyncio.to_thread(self.outbox.flush, timeout)

    async def close(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109
        """Stop listening, send what can be sent, spool the rest; True if nothing is left."""
        return await asyncio.to_thread(self._close, timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
