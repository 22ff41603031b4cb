"""Agents made with the Claude Agent SDK (`query`, `ClaudeSDKClient`).

    from observatory import AsyncAgent
    from observatory.sdk.integrations.claude_agent_sdk import Watch

    watch = Watch(AsyncAgent("coder-1"), needs_approval=["Bash", "mcp__*"])
    options = watch.options(ClaudeAgentOptions(allowed_tools=["Bash"]))
    async for message in watch.messages(query(prompt="…", options=options)): ...

Law: hooks of the SDK, beside those that are there; one session of Claude is one session here. A tool call is
two steps (asked, done), a sub-agent goes on from the call that started it. What a person approved is allowed,
as it was edited; what nobody spoke of is left to Claude's own permissions. A hook of ours that fails blocks
the tool. Tokens and cost stand in the result alone, which `messages` sees on its way.
"""

import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from observatory.sdk.errors import Cancelled
from observatory.sdk.integrations import wording
from observatory.sdk.integrations.claude_code import events
from observatory.sdk.integrations.claude_code.events import Json
from observatory.sdk.integrations.course import Call, Course, Courses, Terms
from observatory.sdk.integrations.framework import need
from observatory.sdk.received import Prompt
from observatory.sdk.speaker import Speaker
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

LONGEST_S = 7 * 86_400.0  # of a gate without a limit of its own: Claude has one for every hook
MORE_S = 30.0
MOST_CALLS = 1_000
STARTERS = ("Agent", "Task")
COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
Answered = Callable[[Any, str | None, Any], Awaitable[Any]]


class Watch:
    """One agent, whatever sessions of Claude it has. `needs_approval`: tools (names or globs) that ask a
    person first, whatever the gateway's rules say. `timeout`: how long a verdict may take."""

    def __init__(
        self, agent: Speaker, *, needs_approval: Sequence[str] = (), timeout: float | None = None
    ) -> None:
        self.agent = agent
        self._terms = Terms(needs_approval, timeout)
        self._courses = Courses(agent, self._terms)
        self._open: dict[str, tuple[Course, Call | None]] = {}
        """Tool calls by Claude's own ids: being asked for (None), or running."""
        self._subs: dict[str, Course] = {}
        self._spent: dict[str, float] = {}
        self.unknown: dict[str, int] = {}
        """What hooks told that this version has no place for, and how often."""

    def options(self, options: ClaudeAgentOptions | None = None) -> ClaudeAgentOptions:
        """The same options with our hooks after those that are there."""
        options = options or ClaudeAgentOptions()
        hooks: Any = {event: [*matchers] for event, matchers in (options.hooks or {}).items()}
        limit = LONGEST_S if self._terms.timeout is None else self._terms.timeout + MORE_S
        for event, hook in self._hooks().items():
            failing: Any = "block" if event == "PreToolUse" else None
            ours = HookMatcher(hooks=[self._guarded(hook)], timeout=limit, on_failure=failing)
            hooks.setdefault(event, []).append(ours)
        return dataclasses.replace(options, hooks=hooks)

    async def messages(self, stream: AsyncIterator[Message]) -> AsyncIterator[Message]:
        """What passes, unchanged; of a result, tokens and cost are told."""
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
            "PreCompact": self._said,
            "Notification": self._said,
            "Stop": self._stop,
        }

    def _guarded(self, hook: Callable[[Json, Course], Awaitable[Json]]) -> Answered:
        async def answer(event: Any, tool_use_id: str | None, context: Any) -> Any:
            told: Json = dict(event)
            if tool_use_id:
                told.setdefault("tool_use_id", tool_use_id)
            for member in events.unknown_of(told):
                self.unknown[member] = self.unknown.get(member, 0) + 1
            try:
                return _spelled(await hook(told, self._course(told)))
            except Cancelled as ended:
                return _spelled(events.ended(told, str(ended)))

        return answer

    def _course(self, event: Json) -> Course:
        """The session's, or its sub-agent's."""
        sub = self._subs.get(str(event.get("agent_id") or ""))
        return sub or self._courses.of(wording.session_name(event.get("session_id")))

    async def _prompt(self, event: Json, course: Course) -> Json:
        prompts = await course.aready()
        self._tell(event, course)
        return _with(event, {}, prompts)

    async def _before_tool(self, event: Json, course: Course) -> Json:
        key, call = str(event.get("tool_use_id")), None
        if all(one is not course for one, _ in self._open.values()):
            course.gather()  # calls that run at once have the same parents
        while len(self._open) >= MOST_CALLS:  # of those that never told their end
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
        told = events.told_of(event)
        _, call = self._open.pop(str(event.get("tool_use_id")), (course, None))
        if call is None:  # watched from the middle of a session on
            self._tell(event, course)
        elif told is not None and told.fields["status"] == "failure":
            course.end(call, error=told.fields["tool_output_summary"] or "it failed")
        elif told is not None:
            course.end(call, told.fields["tool_output_summary"])
        return _with(event, {}, self._prompts(course))

    async def _sub_begins(self, event: Json, course: Course) -> Json:
        """On the line of the call that started it, whose outcome then comes of what it did."""
        taken = {id(sub.line) for sub in self._subs.values()}
        session_id = course.session_id
        for _, call in self._open.values():
            if call is None or call.tool not in STARTERS or call.line.session_id != session_id:
                continue
            if id(call.line) not in taken:
                course = self._subs[str(event.get("agent_id"))] = Course(self.agent, call.line, self._terms)
                break
        self._tell(event, course)
        return {}

    async def _sub_ends(self, event: Json, course: Course) -> Json:
        self._tell(event, course)
        self._subs.pop(str(event.get("agent_id")), None)
        return {}

    async def _said(self, event: Json, course: Course) -> Json:
        self._tell(event, course)
        return {}

    async def _stop(self, event: Json, course: Course) -> Json:
        """What people injected meanwhile is still worked on: the turn goes on with it."""
        # Claude's own permissions refuse a tool without telling: nothing is running any more.
        self._open = {key: held for key, held in self._open.items() if held[0] is not course}
        self._tell(event, course)
        return _with(event, {}, self._prompts(course))

    def _tell(self, event: Json, course: Course) -> None:
        if (told := events.told_of(event)) is not None:
            fields: StepFields = {**told.fields}  # type: ignore[typeddict-item]
            course.said(told.intent, **fields)

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
        """Of this run: Claude tells the sum of all runs of a connection."""
        before = self._spent.get(session_id, 0.0)
        self._spent[session_id] = total
        return round(total - before, 10) if total >= before else total


def _with(event: Json, answer: Json, prompts: Sequence[Prompt]) -> Json:
    texts = [f"{one.by or 'An operator'} says by the Observatory:\n{one.text}" for one in prompts]
    return events.with_context(answer, event, "\n\n".join(texts)) if texts else answer


def _spelled(answer: Json) -> Json:
    """As the SDK spells what is a word of Python."""
    return {"continue_" if name == "continue" else name: value for name, value in answer.items()}
