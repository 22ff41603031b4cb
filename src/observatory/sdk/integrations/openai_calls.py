"""Tool calls of the OpenAI Agents SDK: copies of its tools that ask for permission first.

Rule: a tool that may not run returns the reason to the model; what runs is what was permitted. A function
tool asks in its last guardrail, so that waiting for a person does not count against its timeout. Tools that
cannot be refused (computer, patches) are handled by the hook before them, which ends the run.
"""

import copy
import dataclasses
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import msgspec

from observatory.sdk.errors import Cancelled
from observatory.sdk.integrations import wording
from observatory.sdk.integrations.course import Course, GatedCall
from observatory.sdk.integrations.framework import need
from observatory.sdk.step import written_input

need(
    "openai-agents",
    "openai-agents>=0.24",
    "agents:FunctionTool.tool_input_guardrails",
    "agents:ShellTool.executor",
    "agents:CustomTool",
    "agents:ToolInputGuardrail",
    "agents:ToolGuardrailFunctionOutput.reject_content",
    "agents:default_tool_error_function",
)

from agents import (  # noqa: E402
    AgentsException,
    CustomTool,
    FunctionTool,
    ShellCommandRequest,
    ShellTool,
    Tool,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolInputGuardrailData,
    default_tool_error_function,
)
from agents.tool_context import ToolContext  # noqa: E402

Json = dict[str, Any]


class RunCancelled(Cancelled, AgentsException):
    """`Cancelled` in a form the SDK passes on: other exceptions of a tool become a `UserError`."""


class WatchedRun:
    """One run in progress: its course, injected items with their positions, and permitted calls."""

    def __init__(self, course: Course, is_stored_remotely: bool = False) -> None:
        self.course = course
        self.injected: list[tuple[int, Json]] = []
        self.is_stored_remotely = is_stored_remotely  # the provider stores the conversation: inject once
        self.permitted: dict[tuple[str, str, str], GatedCall] = {}  # by tool, call and input
        self.started_ns: int | None = None
        self.model: str | None = None  # of the whole run; overrides the agents' models


current: ContextVar[WatchedRun | None] = ContextVar("observatory_openai_run", default=None)


def is_governed(tool: Tool) -> bool:
    """Whether the tool asks for permission itself."""
    is_shell = isinstance(tool, ShellTool) and tool.executor is not None
    return is_shell or isinstance(tool, FunctionTool | CustomTool)


def inner_agent(tool: Tool) -> Any:
    """The agent that runs as this tool, if it has tools or agents of its own."""
    agent = getattr(tool, "_agent_instance", None)
    within = ("tools", "handoffs", "mcp_servers")
    return agent if any(getattr(agent, name, None) for name in within) else None


def governed(tool: Tool) -> Tool:
    """A copy that asks first; the tool itself if that is impossible."""
    match tool:
        case FunctionTool():
            return _function(tool)
        case ShellTool() if tool.executor is not None:
            return _shell(tool)
        case CustomTool():
            return _custom(tool)
    return tool


def _shell(tool: ShellTool) -> ShellTool:
    inner: Any = tool.executor

    async def execute(request: ShellCommandRequest) -> Any:
        action = request.data.action

        async def do(args: Any) -> Any:
            given = args["commands"]
            commands = [given] if isinstance(given, str) else [str(one) for one in given]
            edited = dataclasses.replace(action, commands=commands)
            return await _done(
                inner(dataclasses.replace(request, data=dataclasses.replace(request.data, action=edited)))
            )

        return await _governed(tool.name, {"commands": list(action.commands)}, do)

    twin = copy.copy(tool)
    twin.executor = execute
    return twin


def _custom(tool: CustomTool) -> CustomTool:
    inner: Any = tool.on_invoke_tool

    async def invoke(context: ToolContext[Any], arguments: str) -> Any:
        return await _governed(tool.name, arguments, lambda args: _done(inner(context, written_input(args))))

    twin = copy.copy(tool)
    twin.on_invoke_tool = invoke
    return twin


async def _governed(name: str, args: Any, do: Callable[[Any], Any]) -> Any:
    run = current.get()
    if run is None:  # run by another runner
        return await do(args)
    return await run.course.agovern(name, args, do, lambda why: why)


async def _done(result: Any) -> Any:
    return await result if hasattr(result, "__await__") else result


def _function(tool: FunctionTool) -> FunctionTool:
    inner, name = tool.on_invoke_tool, tool.name

    async def ask(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        call = await _begun(data.context, name, data.context.tool_arguments)
        if call is None or call.refusal is None:
            return ToolGuardrailFunctionOutput.allow()
        return ToolGuardrailFunctionOutput.reject_content(call.refusal)

    async def invoke(context: ToolContext[Any], arguments: str) -> Any:
        run = current.get()
        key = (
            name,
            context.tool_call_id,
            arguments,
        )  # a model may use one id twice: the arguments identify the permitted call
        call = run.permitted.pop(key, None) if run is not None else None
        if run is not None and call is None:  # called without its guardrails
            call = await _begun(context, name, arguments)
            if call is not None and call.refusal is not None:
                return call.refusal
            run.permitted.pop(key, None)
        if run is None or call is None:  # run by another runner
            return await inner(context, arguments)
        return await _invoked(run, call, context, arguments, inner)

    twin = copy.copy(tool)
    twin.on_invoke_tool = invoke
    guardrails = [*(tool.tool_input_guardrails or ()), ToolInputGuardrail(ask, name="observatory")]
    twin.tool_input_guardrails = guardrails
    return twin


async def _begun(context: ToolContext[Any], name: str, arguments: str) -> GatedCall | None:
    run = current.get()
    if run is None:
        return None
    try:
        call = await run.course.abegin(name, _decoded(arguments))
    except Cancelled as end:
        raise RunCancelled(end.session_id, end.reason, end.by) from end
    if call.refusal is None:
        run.permitted[name, context.tool_call_id, arguments] = call
    return call


async def _invoked(
    run: WatchedRun, call: GatedCall, context: ToolContext[Any], arguments: str, inner: Any
) -> Any:
    course = run.course
    given = written_input(call.args) or "" if call.edited else arguments
    within = WatchedRun(Course(course.sender, call.line, course.terms))  # for an agent that runs as a tool
    within.model = run.model
    token = current.set(within)
    try:
        with call.line.here():
            result = await inner(context, given)
    except BaseException as failed:
        course.end(call, error=failed)
        raise
    finally:
        current.reset(token)
    course.end(call, result, result if _has_failed(result) else None)
    if call.edited and isinstance(result, str):
        return f"{result}\n[A person changed the input of this call to {given}]"
    return result


def _has_failed(result: Any) -> bool:
    """The SDK reports a failure to the model as text: its default, unless the tool has its own."""
    prefix = default_tool_error_function(None, Exception(""))  # type: ignore[arg-type]
    return isinstance(result, str) and result.startswith(prefix)


def _decoded(arguments: str) -> Any:
    try:
        return msgspec.json.decode(arguments)
    except (msgspec.DecodeError, TypeError):  # not JSON: the tool will report what is wrong
        return wording.clip(arguments)
