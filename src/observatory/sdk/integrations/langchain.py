"""LangChain adapter for agents of `create_agent`.

    from observatory import Agent
    from observatory.sdk.integrations.langchain import ObservatoryMiddleware

    watch = ObservatoryMiddleware(Agent("researcher-1"), needs_approval=["pay_*"])
    agent = create_agent(model, tools, middleware=[watch])

Rule: one `thread_id` is one session; without one it is the current session, else one per run, whose id is
stored in the agent's state. A model call is one step, a tool call two (request, result). Injected prompts
become messages of the conversation. A tool that may not run returns the reason to the model. `Cancelled` ends
the run. Custom graphs are observed by `langgraph`.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, NotRequired

from observatory.sdk.integrations.course import Course
from observatory.sdk.integrations.framework import need
from observatory.sdk.received import Prompt

WANTED = "langchain>=1.4"
need(
    "langchain",
    WANTED,
    *(
        f"langchain.agents.middleware.types:AgentMiddleware.{hook}"
        for hook in ("before_agent", "abefore_agent", "before_model", "abefore_model")
    ),
    *(
        f"langchain.agents.middleware.types:AgentMiddleware.{hook}"
        for hook in ("wrap_model_call", "awrap_model_call", "wrap_tool_call", "awrap_tool_call")
    ),
    "langchain.agents.middleware.types:PrivateStateAttr",
)

from langchain.agents.middleware.types import (  # noqa: E402
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
)

from observatory.sdk.integrations.langchain_calls import GatedTools, injected, record_answer, thread_id  # noqa: E402


class WatchedState(AgentState[Any]):
    """The agent's state, extended by its session id."""

    observatory_session: NotRequired[Annotated[str, PrivateStateAttr]]


class ObservatoryMiddleware(GatedTools, AgentMiddleware[WatchedState, Any, Any]):
    """Middleware for one agent. Put it last, so that it sees the final requests and results.
    `needs_approval`: tools (names or globs) that ask a person first, whatever the gateway's rules are.
    `timeout`: how long a verdict may take. `cost` returns the price of a model call."""

    state_schema = WatchedState

    # Before and after the model.

    def before_agent(self, state: WatchedState, runtime: Any) -> dict[str, Any] | None:
        return {"observatory_session": self.courses.enter(thread_id())}

    async def abefore_agent(self, state: WatchedState, runtime: Any) -> dict[str, Any] | None:
        return self.before_agent(state, runtime)

    def before_model(self, state: WatchedState, runtime: Any) -> dict[str, Any] | None:
        return _update(self.course_of(state).ready())

    async def abefore_model(self, state: WatchedState, runtime: Any) -> dict[str, Any] | None:
        return _update(await self.course_of(state).aready())

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        course, started_ns = self.course_of(request.state), time.perf_counter_ns()
        try:
            response = handler(request)
        except Exception as failed:
            course.failed(failed, started_ns)
            raise
        record_answer(course, response.result, started_ns)
        return response

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        course, started_ns = self.course_of(request.state), time.perf_counter_ns()
        try:
            response = await handler(request)
        except Exception as failed:
            course.failed(failed, started_ns)
            raise
        record_answer(course, response.result, started_ns)
        return response

    def course_of(self, state: Any) -> Course:
        """By the session id in the agent's state; a graph without `before_agent` hooks has only its thread
        id."""
        name = state.get("observatory_session") if isinstance(state, Mapping) else None
        return self.courses.of(name or self.courses.enter(thread_id()))


def _update(prompts: Sequence[Prompt]) -> dict[str, Any] | None:
    return {"messages": injected(prompts)} if prompts else None
