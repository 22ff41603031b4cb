"""Claude Agent SDK adapter (`query`, `ClaudeSDKClient`).

    from observatory import AsyncAgent
    from observatory.sdk.integrations.claude_agent_sdk import Watch

    watch = Watch(AsyncAgent("coder-1"), needs_approval=["Bash", "mcp__*"])
    options = watch.options(ClaudeAgentOptions(allowed_tools=["Bash"]))
    async for message in watch.messages(query(prompt="…", options=options)): ...

Rule: adds hooks to those already set; one Claude session is one session here. A tool call is two steps
(request, result); a sub-agent continues from the call that started it. What a person approved is allowed, as
edited; without a verdict Claude's own permissions apply. A failing hook blocks the tool. Tokens and cost are
only in the result, which `messages` reads as it passes.
"""

import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from observatory.sdk.errors import Cancelled
from observatory.sdk.integrations import wording
from observatory.sdk.integrations.claude_code import events
from observatory.sdk.integrations.claude_code.events import Json
from observatory.sdk.integrations.course import Course, Courses, GatedCall, Terms
from observatory.sdk.integrations.framework import need
from observatory.sdk.received import Prompt
from observatory.sdk.sender import Sender
from observatory.sdk.step import StepFields

WANTED = "claude-agent-sdk>=0.2.182"
need(
    "claude-agent-sdk",
    WANTED,
    "claude_agent_sdk:ClaudeAgentOptions.hooks",
    "claude_agent_sdk:HookMatcher.timeout",
    "claude_agent_sdk:HookMatcher.on_failure",
    "claude_agent_sdk:ResultMessage.total_cost_usd",
)

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, Message, ResultMessage  # noqa: E402

MAX_GATE_S = 7 * 86_400.0  # for a gate without a timeout: Claude requires one for every hook
MORE_S = 30.0
MAX_CALLS = 1_000
STARTERS = ("Agent", "Task")
COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
Answered = Callable[[Any, str | None, Any], Awaitable[Any]]


class Watch:
    """Observes one agent in all its Claude sessions. `needs_approval`: tools (names or globs) that ask a
    person first, whatever the gateway's rules are. `timeout`: how long a verdict may take."""

    def __init__(
        self, agent: Sender, *, needs_approval: Sequence[str] = (), timeout: float | None = None
    ) -> None:
        self.agent = agent
        self._terms = Terms(needs_approval, timeout)
        self._courses = Courses(agent, self._terms)
        self._open: dict[str, tuple[Course, GatedCall | None]] = {}
        """Tool calls by Claude's ids: waiting for permission (None) or running."""
        self._subs: dict[str, Course] = {}
        self._spent: dict[str, float] = {}
        self.unknown: dict[str, int] = {}
        """Unknown hook members, with counts."""

    def options(self, options: ClaudeAgentOptions | None = None) -> ClaudeAgentOptions:
        """The same options with the adapter's hooks after the existing ones."""
        options = options or ClaudeAgentOptions()
        hooks: Any = {event: [*matchers] for event, matchers in (options.hooks or {}).items()}
        limit = MAX_GATE_S if self._terms.timeout is None else self._terms.timeout + MORE_S
        for event, hook in self._hooks().items():
            failing: Any = "block" if event == "PreToolUse" else None
            matcher = HookMatcher(hooks=[self._guarded(hook)], timeout=limit, on_failure=failing)
            hooks.setdefault(event, []).append(matcher)
        return dataclasses.replace(options, hooks=hooks)

    async def messages(self, stream: AsyncIterator[Message]) -> AsyncIterator[Message]:
        """Pass messages through unchanged; record tokens and cost of a result."""
        async for message in stream:
            if isinstance(message, ResultMessage):
                self._result(message)
            yield message

    def _hooks(self) -> dict[str, Callable[[Json, Course], Awaitable[Json]]]:
        return {
            "UserPromptSubmit": self._prompt,
            "PreToolUse": self._before_tool,
            "PostToolUse": self._after_tool,
            "PostToolUseFailure": self._after_tool,
            "SubagentStart": self._sub_begins,
            "SubagentStop": self._sub_ends,
            "PreCompact": self._record_only,
            "Notification": self._record_only,
            "Stop": self._stop,
        }

    def _guarded(self, hook: Callable[[Json, Course], Awaitable[Json]]) -> Answered:
        async def answer(event: Any, tool_use_id: str | None, context: Any) -> Any:
            data: Json = dict(event)
            if tool_use_id:
                data.setdefault("tool_use_id", tool_use_id)
            for member in events.unknown_members(data):
                self.unknown[member] = self.unknown.get(member, 0) + 1
            try:
                return _sdk_names(await hook(data, self._course(data)))
            except Cancelled as ended:
                return _sdk_names(events.ended(data, str(ended)))

        return answer

    def _course(self, event: Json) -> Course:
        """The course of the session or of its sub-agent."""
        sub = self._subs.get(str(event.get("agent_id") or ""))
        return sub or self._courses.of(wording.session_name(event.get("session_id")))

    async def _prompt(self, event: Json, course: Course) -> Json:
        prompts = await course.aready()
        self._record(event, course)
        return _with(event, {}, prompts)

    async def _before_tool(self, event: Json, course: Course) -> Json:
        key, call = str(event.get("tool_use_id")), None
        if all(one is not course for one, _ in self._open.values()):
            course.gather()  # parallel calls have the same parents
        while len(self._open) >= MAX_CALLS:  # calls whose end was never reported
            del self._open[next(iter(self._open))]
        self._open[key] = course, None
        try:
            intent = events.intent_of(event)
            call = await course.abegin(events.tool_of(event), event.get("tool_input"), intent=intent)
        finally:
            if not call:
                self._open.pop(key, None)
        if call.refusal is not None:
            return events.denied(event, call.refusal)
        self._open[key] = course, call
        answer = events.granted(event, call.approval) if call.approval.by is not None else {}
        return _with(event, answer, self._prompts(course))

    async def _after_tool(self, event: Json, course: Course) -> Json:
        step = events.step_of_event(event)
        _, call = self._open.pop(str(event.get("tool_use_id")), (course, None))
        if call is None:  # observation started in mid-session
            self._record(event, course)
        elif step is not None and step.fields["status"] == "failure":
            course.end(call, error=step.fields["tool_output_summary"] or "it failed")
        elif step is not None:
            course.end(call, step.fields["tool_output_summary"])
        return _with(event, {}, self._prompts(course))

    async def _sub_begins(self, event: Json, course: Course) -> Json:
        """Continue from the call that started it; that call's result follows from the sub-agent's steps."""
        taken = {id(sub.line) for sub in self._subs.values()}
        session_id = course.session_id
        for _, call in self._open.values():
            if call is None or call.tool not in STARTERS or call.line.session_id != session_id:
                continue
            if id(call.line) not in taken:
                course = self._subs[str(event.get("agent_id"))] = Course(self.agent, call.line, self._terms)
                break
        self._record(event, course)
        return {}

    async def _sub_ends(self, event: Json, course: Course) -> Json:
        self._record(event, course)
        self._subs.pop(str(event.get("agent_id")), None)
        return {}

    async def _record_only(self, event: Json, course: Course) -> Json:
        self._record(event, course)
        return {}

    async def _stop(self, event: Json, course: Course) -> Json:
        """Prompts injected meanwhile continue the turn."""
        # Claude's own permissions refuse a tool without a hook event: nothing is running any more.
        self._open = {key: held for key, held in self._open.items() if held[0] is not course}
        self._record(event, course)
        return _with(event, {}, self._prompts(course))

    def _record(self, event: Json, course: Course) -> None:
        if (step := events.step_of_event(event)) is not None:
            fields: StepFields = {**step.fields}  # type: ignore[typeddict-item]
            course.said(step.intent, **fields)

    def _prompts(self, course: Course) -> list[Prompt]:
        return self.agent.orders.take_prompts(course.session_id)

    def _result(self, result: ResultMessage) -> None:
        course = self._courses.of(wording.session_name(result.session_id))
        usage = result.usage or {}
        fields: StepFields = {
            "status": "failure" if result.is_error else "success",
            "tokens_consumed": wording.tokens(*(usage.get(name) for name in COUNTS)),
            "duration_ms": result.duration_ms,
        }
        if result.total_cost_usd is not None:
            fields["cost"] = self._cost(course.session_id, result.total_cost_usd)
        if result.result:
            fields["tool_output_summary"] = wording.clip(result.result)
        course.said(f"Result: {wording.clip(result.terminal_reason or result.subtype, 100)}", **fields)

    def _cost(self, session_id: str, total: float) -> float:
        """The cost of this run: Claude reports the sum of all runs of a connection."""
        before = self._spent.get(session_id, 0.0)
        self._spent[session_id] = total
        return round(total - before, 10) if total >= before else total


def _with(event: Json, answer: Json, prompts: Sequence[Prompt]) -> Json:
    texts = [f"{one.by or 'An operator'} says through the Observatory:\n{one.text}" for one in prompts]
    return events.with_context(answer, event, "\n\n".join(texts)) if texts else answer


def _sdk_names(answer: Json) -> Json:
    """Rename `continue`, a Python keyword, as the SDK expects it."""
    return {"continue_" if name == "continue" else name: value for name, value in answer.items()}
