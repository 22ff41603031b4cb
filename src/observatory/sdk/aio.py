"""`AsyncAgent`: the same words for asyncio.

It sits on the same outbox and sender thread as `Agent`: `await agent.step(...)` does not wait for
anything today (it writes to a queue, some 15 µs). It is awaited so that a paused agent can be
made to wait there without a new signature. Waiting for answers, flushing and closing never block the loop.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, Unpack

from observatory.sdk.agent import Speaker
from observatory.sdk.client import Answer
from observatory.sdk.session import Handoff, Line, ToolCall, open_line
from observatory.sdk.step import Step, StepFields


class AsyncStep:
    """One step taken; `await step.answer()` waits for the gateway's verdict."""

    def __init__(self, step: Step) -> None:
        self._step = step

    @property
    def step_id(self) -> str | None:
        return self._step.step_id

    @property
    def session_id(self) -> str | None:
        return self._step.session_id

    async def answer(self, timeout: float | None = None) -> Answer:  # noqa: ASYNC109 (as Step says it)
        """As `Step.answer`: returns what was accepted; raises `Rejected`, `Lost` or `NotAnswered`."""
        loop, judged = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended; nobody waits any more
                loop.call_soon_threadsafe(judged.set)

        self._step.when_judged(tell)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(judged.wait(), timeout)
        return self._step.judged()

    def __repr__(self) -> str:
        return f"Async{self._step!r}"


class AsyncSession(Line):
    """A session as an async agent sees it. Give each task its own `fork()`; `join` them after."""

    async def step(
        self, intent: str, *, step_id: str | None = None, **fields: Unpack[StepFields]
    ) -> AsyncStep:
        """Say what was done; the step is sent in the background."""
        return AsyncStep(self.record(self._speaker, intent, step_id, fields))

    def tool(self, tool_call: str, tool_input: Any = None, *, intent: str | None = None) -> "AsyncToolCall":
        """`async with s.tool("serp_search", {...}) as call:` times the call and records it."""
        return AsyncToolCall(self, self._speaker, tool_call, tool_input, intent)

    async def __aenter__(self) -> Self:
        self._enter()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._leave()


class AsyncToolCall(ToolCall):
    """As `ToolCall`, for `async with`."""

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, exc, trace)


class AsyncAgent(Speaker):
    """An asyncio agent that speaks to the gateway; see `Agent` for what its words mean."""

    async def step(
        self, intent: str, *, step_id: str | None = None, **fields: Unpack[StepFields]
    ) -> AsyncStep:
        """Say what was done, in the session this task runs in, else in the agent's own."""
        return AsyncStep(self._line().record(self, intent, step_id, fields))

    def tool(self, tool_call: str, tool_input: Any = None, *, intent: str | None = None) -> AsyncToolCall:
        """Time a tool call and record it: see `AsyncSession.tool`."""
        return AsyncToolCall(self._line(), self, tool_call, tool_input, intent)

    def session(
        self, *, session_id: str | None = None, continues: Line | Handoff | None = None
    ) -> AsyncSession:
        """A new session with a trace of its own; or with `continues`, another's line gone on with."""
        return AsyncSession(self, *open_line(continues, session_id))

    async def raw(self, body: bytes | str | Mapping[str, Any]) -> AsyncStep:
        """Send one message as it is."""
        return AsyncStep(self.say_raw(body))

    async def flush(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109
        """Wait until everything said so far is answered; False if `timeout` passed first."""
        return await asyncio.to_thread(self.outbox.flush, timeout)

    async def close(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109
        """Send what can be sent, spool the rest; True if nothing is left."""
        return await asyncio.to_thread(self.outbox.close if self._owns_outbox else self.outbox.flush, timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
