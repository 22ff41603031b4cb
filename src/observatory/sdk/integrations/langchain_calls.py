"""Shared by the LangChain and LangGraph adapters: model answers and tool calls.

Rule: a tool asks for permission first; one that may not run returns the reason to the model. LangGraph's own
interrupts pass through: a tool that was permitted and then interrupted does not ask again when it is resumed
in this process.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from threading import Lock
from typing import Any

from observatory.sdk.integrations import wording
from observatory.sdk.integrations.course import Course, Courses, GatedCall, Terms, Usage, observing
from observatory.sdk.integrations.framework import need
from observatory.sdk.received import Prompt
from observatory.sdk.sender import Sender
from observatory.sdk.step import written_input

need(
    "langgraph",
    "langgraph>=1.2",
    "langgraph.prebuilt.tool_node:ToolCallRequest.override",
    "langgraph.config:get_config",
    "langgraph.errors:GraphInterrupt",
    "langgraph.errors:ParentCommand",
)

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage  # noqa: E402
from langgraph.config import get_config  # noqa: E402
from langgraph.errors import GraphInterrupt, ParentCommand  # noqa: E402
from langgraph.prebuilt.tool_node import ToolCallRequest  # noqa: E402
from langgraph.types import Command  # noqa: E402

MAX_SUSPENDED = 1_000
Result = ToolMessage | Command[Any]


class GatedTools:
    """Base class of middleware and callback; `course_of` returns the course a call belongs to."""

    def __init__(
        self,
        agent: Sender,
        *,
        needs_approval: Sequence[str] = (),
        timeout: float | None = None,
        cost: Callable[[Usage], float | None] | None = None,
    ) -> None:
        super().__init__()
        self.courses = Courses(agent, Terms(needs_approval, timeout, cost))
        self._lock = Lock()
        self._suspended: OrderedDict[tuple[str, str], tuple[Any, GatedCall]] = OrderedDict()

    def course_of(self, state: Any) -> Course:
        raise NotImplementedError

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]
    ) -> Result:
        course = self.course_of(request.state)
        call = self._resumed(course, request)
        if call is not None:
            course.wait()
        else:
            call = course.begin(*_asked(request))
        if call.refusal is not None:
            return _refused(request, call.refusal)
        try:
            with call.line.here():
                result = handler(_permitted(request, call))
        except BaseException as ended:
            self._ended(course, request, call, ended)
            raise
        return _record_result(course, call, result)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        course = self.course_of(request.state)
        call = self._resumed(course, request)
        if call is not None:
            await course.await_()
        else:
            call = await course.abegin(*_asked(request))
        if call.refusal is not None:
            return _refused(request, call.refusal)
        try:
            with call.line.here():
                result = await handler(_permitted(request, call))
        except BaseException as ended:
            self._ended(course, request, call, ended)
            raise
        return _record_result(course, call, result)

    def _ended(self, course: Course, request: ToolCallRequest, call: GatedCall, why: BaseException) -> None:
        if isinstance(why, GraphInterrupt):  # the graph waits for input, then calls the tool again
            with self._lock:
                self._suspended[_key(course, request)] = request.tool_call["args"], call
                while len(self._suspended) > MAX_SUSPENDED:
                    self._suspended.popitem(last=False)
        elif isinstance(why, ParentCommand):  # it finished, and redirects the graph
            course.end(call)
        else:
            course.end(call, error=why)

    def _resumed(self, course: Course, request: ToolCallRequest) -> GatedCall | None:
        """The call permitted before the graph's own interrupt, if it is unchanged."""
        with self._lock:
            args, call = self._suspended.pop(_key(course, request), (None, None))
        asked = wording.tool_name(request.tool_call["name"]), request.tool_call["args"]
        return call if call is not None and (call.tool, args) == asked else None


@observing()
def record_answer(course: Course, messages: Sequence[BaseMessage], started_ns: int | None = None) -> None:
    """Record a model's answer as a step."""
    for message in messages:
        if isinstance(message, AIMessage):
            calls = [str(call["name"]) for call in message.tool_calls]
            details = {"reasoning": _reasoning(message), "started_ns": started_ns}
            course.thought(_usage(message), calls, str(message.text), **details)  # type: ignore[arg-type]
            return


def _usage(message: AIMessage) -> Usage:
    used: Mapping[str, Any] = message.usage_metadata or {}
    model = message.response_metadata.get("model_name")
    counts = (used.get(name) for name in ("input_tokens", "output_tokens", "total_tokens"))
    return Usage(None if model is None else str(model), *counts)


def _reasoning(message: AIMessage) -> list[str]:
    try:
        blocks = message.content_blocks
    except (AttributeError, KeyError, TypeError, ValueError):  # a provider format it cannot read
        return []
    return [str(one["reasoning"]) for one in blocks if one["type"] == "reasoning" and one.get("reasoning")]


def injected(prompts: Sequence[Prompt]) -> list[HumanMessage]:
    return [HumanMessage(prompt.text) for prompt in prompts]


def thread_id() -> Any:
    try:
        return get_config().get("configurable", {}).get("thread_id")
    except RuntimeError:  # not in a graph
        return None


def _key(course: Course, request: ToolCallRequest) -> tuple[str, str]:
    return course.session_id, str(request.tool_call["id"])


def _asked(request: ToolCallRequest) -> tuple[str, Any]:
    return request.tool_call["name"], request.tool_call["args"]


def _permitted(request: ToolCallRequest, call: GatedCall) -> ToolCallRequest:
    """The request as it was approved."""
    if not call.edited:
        return request
    return request.override(tool_call={**request.tool_call, "args": call.args})


def _refused(request: ToolCallRequest, why: str) -> ToolMessage:
    call = request.tool_call
    return ToolMessage(content=why, tool_call_id=str(call["id"]), name=call["name"], status="error")


def _record_result(course: Course, call: GatedCall, result: Result) -> Result:
    """Record the result. The model is informed of an edit, so that it does not assume its own input was
    used."""
    if not isinstance(result, ToolMessage):
        course.end(call)
        return result
    course.end(call, result.text, result.text or "failed" if result.status == "error" else None)
    if call.edited and isinstance(result.content, str):
        note = f"[A person changed the input of this call to {written_input(call.args)}]"
        return result.model_copy(update={"content": f"{result.content}\n{note}"})
    return result
