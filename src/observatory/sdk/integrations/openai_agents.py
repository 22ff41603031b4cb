"""OpenAI Agents SDK adapter: `ObservatoryRunner`, a replacement for `Runner`.

    from observatory import AsyncAgent
    from observatory.sdk.integrations.openai_agents import ObservatoryRunner

    watch = ObservatoryRunner(AsyncAgent("triage-1"), needs_approval=["pay_*"])
    result = await watch.run(agent, "Hello", session=session)  # also run_sync, run_streamed

Rule: one conversation (`group_id`, the session's or the conversation's id) is one session; otherwise each run
is one. A model call is one step, a function tool call two (request, result). The given agents are not
changed: copies run, which ask before each of their tools (functions, MCP, agents as tools, shell, custom).
Local tools that cannot be refused (computer, patches) end the run with `Denied`; tools that run at the
provider are recorded only afterwards. A handoff is a message to the other agent, and its next step follows
from it. `Cancelled` ends the run.
"""

import dataclasses
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from observatory.sdk.errors import Cancelled, Denied, NotSupported
from observatory.sdk.integrations.course import Course, Courses, GatedCall, Terms, observing
from observatory.sdk.integrations.course import Usage as Used
from observatory.sdk.integrations.framework import need
from observatory.sdk.sender import Sender

WANTED = "openai-agents>=0.24"
need(
    "openai-agents",
    WANTED,
    "agents:Agent.get_all_tools",
    *(f"agents:AgentHooks.{hook}" for hook in ("on_llm_start", "on_llm_end", "on_handoff", "on_tool_start")),
    *(f"agents:AgentHooks.{hook}" for hook in ("on_start", "on_end", "on_tool_end")),
    "agents:RunConfig.call_model_input_filter",
    "agents:Runner.run",
    "agents:Runner.run_streamed",
)

from agents import (  # noqa: E402
    Agent,
    AgentHooks,
    Handoff,
    ModelResponse,
    RunConfig,
    Runner,
    RunResult,
    RunResultStreaming,
    Tool,
)
from agents.run import CallModelData, ModelInputData  # noqa: E402

from observatory.sdk.integrations.openai_calls import WatchedRun, current, governed, inner_agent, is_governed  # noqa: E402

log = logging.getLogger("observatory.sdk")
Json = dict[str, Any]


class ObservatoryRunner:
    """`Runner` under the gateway's control. `needs_approval`: tools (names or globs) that ask a person first,
    whatever the gateway's rules are. `team`: which Observatory agent represents which SDK agent, by name; the
    others are represented by `speaker`. `cost` returns the price of a model call."""

    def __init__(
        self,
        speaker: Sender,
        *,
        team: Mapping[str, Sender] | None = None,
        needs_approval: Sequence[str] = (),
        timeout: float | None = None,
        cost: Callable[[Used], float | None] | None = None,
    ) -> None:
        self._sender = speaker
        self._team = dict(team or {})
        self._courses = Courses(speaker, Terms(needs_approval, timeout, cost))

    async def run(self, starting_agent: Agent[Any], input: Any, **options: Any) -> RunResult:
        """Like `Runner.run`, with all its options."""
        with self._running(options) as run, _record_failure(run.course):
            result = await Runner.run(self.watched(starting_agent), input, **options)
        session = options.get("session")
        if session is not None and run.injected:  # so that the session's next run contains them
            try:
                await session.add_items([item for _, item in run.injected])
            except Exception:  # the user's store failed: the run still has its result
                log.exception("injected prompts could not be stored in the session")
        return result

    def run_sync(self, starting_agent: Agent[Any], input: Any, **options: Any) -> RunResult:
        """Like `Runner.run_sync`."""
        with self._running(options) as run, _record_failure(run.course):
            return Runner.run_sync(self.watched(starting_agent), input, **options)

    def run_streamed(self, starting_agent: Agent[Any], input: Any, **options: Any) -> RunResultStreaming:
        """Like `Runner.run_streamed`."""
        with self._running(options):
            return Runner.run_streamed(self.watched(starting_agent), input, **options)

    def watched(self, agent: Agent[Any], known: "dict[int, Agent[Any]] | None" = None) -> Agent[Any]:
        """The copy that runs: with hooks, tools that ask first, and handoffs to such copies."""
        known = {} if known is None else known
        if isinstance(agent, WatchedAgent):
            return agent
        if id(agent) not in known:
            fields = {one.name: getattr(agent, one.name) for one in dataclasses.fields(agent) if one.init}
            twin = WatchedAgent(**{**fields, "handoffs": [], "hooks": _Hooks(self, agent.hooks)})
            known[id(agent)] = twin  # before its handoffs, which may refer back to it
            twin.handoffs = [self._handoff(one, known) for one in agent.handoffs]
        return known[id(agent)]

    def sender_of(self, agent: Agent[Any]) -> Sender:
        return self._team.get(agent.name, self._sender)

    def _handoff(self, given: Any, known: "dict[int, Agent[Any]]") -> Any:
        if not isinstance(given, Handoff):
            return self.watched(given, known)
        inner = given.on_invoke_handoff

        async def invoke(context: Any, arguments: str) -> Any:
            return self.watched(await inner(context, arguments), known)

        return dataclasses.replace(given, on_invoke_handoff=invoke)

    @contextmanager
    def _running(self, options: Json) -> Iterator[WatchedRun]:
        """The course and options of a run: its filter waits and injects, after the given filter."""
        config = options.get("run_config")
        config = RunConfig(**config) if isinstance(config, Mapping) else config or RunConfig()
        thread = getattr(options.get("session"), "session_id", None) or options.get("conversation_id")
        course = self._courses.of(self._courses.enter(config.group_id or thread))
        remote = ("conversation_id", "previous_response_id", "auto_previous_response_id")
        run = WatchedRun(course, any(options.get(name) for name in remote))
        run.model = _model_of(config.model)
        given = config.call_model_input_filter

        async def fill(data: CallModelData[Any]) -> ModelInputData:
            if given is not None:
                changed: Any = given(data)
                data.model_data = await changed if hasattr(changed, "__await__") else changed
            return await _filled(current.get() or run, data.model_data)

        options["run_config"] = dataclasses.replace(config, call_model_input_filter=fill)
        token = current.set(run)
        try:
            yield run
        finally:
            current.reset(token)


@dataclasses.dataclass
class WatchedAgent(Agent[Any]):
    """A copy of an agent whose function tools, from whatever source, ask first."""

    _governed: dict[int, tuple[Tool, Tool]] = dataclasses.field(default_factory=dict, repr=False)

    async def get_all_tools(self, run_context: Any) -> list[Tool]:
        tools = await super().get_all_tools(run_context)
        for tool in tools:
            if (agent := inner_agent(tool)) is not None and not isinstance(agent, WatchedAgent):
                raise NotSupported(
                    f"the agent {agent.name!r} runs as the tool {tool.name!r}, and its own tools would not "
                    "ask for permission: use its watched copy, watch.watched(agent).as_tool(…)"
                )
        known = {id(tool): self._governed.get(id(tool)) or (tool, governed(tool)) for tool in tools}
        self._governed = known  # the same tool gets the same copy in every turn
        return [known[id(tool)][1] for tool in tools]


async def _filled(run: WatchedRun, data: ModelInputData) -> ModelInputData:
    """Wait while paused; return the input with all injected prompts at their positions."""
    prompts = await run.course.aready()
    items: list[Any] = list(data.input)
    for at, item in () if run.is_stored_remotely else run.injected:
        items.insert(min(at, len(items)), item)
    for prompt in prompts:
        item = {"role": "user", "content": prompt.text}
        run.injected.append((len(items), item))
        items.append(item)
    return ModelInputData(input=items, instructions=data.instructions)


class _Hooks(AgentHooks[Any]):
    """The adapter's hooks, followed by those the agent had."""

    def __init__(self, runner: ObservatoryRunner, given: Any) -> None:
        self._runner = runner
        self._given = given if given is not None else AgentHooks()
        self._calls: dict[int, list[GatedCall]] = {}  # of tools that cannot ask themselves, by tool

    async def on_start(self, context: Any, agent: Any) -> None:
        await self._given.on_start(context, agent)

    async def on_end(self, context: Any, agent: Any, output: Any) -> None:
        await self._given.on_end(context, agent, output)

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: Any, input_items: Any) -> None:
        if (run := current.get()) is not None:
            run.course.sender = self._runner.sender_of(agent)
            await run.course.await_()  # also in a run started without the filter
            run.started_ns = time.perf_counter_ns()
        await self._given.on_llm_start(context, agent, system_prompt, input_items)

    async def on_llm_end(self, context: Any, agent: Any, response: ModelResponse) -> None:
        if (run := current.get()) is not None:
            _record_answer(run, run.model or _model_of(agent.model), response)
        await self._given.on_llm_end(context, agent, response)

    async def on_handoff(self, context: Any, agent: Any, source: Any) -> None:
        """`source` hands over to `agent`."""
        if (run := current.get()) is not None:
            target = self._runner.sender_of(agent)
            run.course.sender = self._runner.sender_of(source)
            other = target if target is not run.course.sender else None
            await run.course.ahand_over(agent.name, other)
        await self._given.on_handoff(context, agent, source)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        run = current.get()
        if run is not None and not is_governed(tool):
            call = await run.course.abegin(tool.name)
            if call.refusal is not None:  # this kind cannot be refused
                raise Denied(call.approval.verdict, call.refusal, call.approval.by, call.approval.step)
            self._calls.setdefault(id(tool), []).append(call)
        await self._given.on_tool_start(context, agent, tool)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        if (calls := self._calls.get(id(tool))) and (run := current.get()) is not None:
            run.course.end(calls.pop(0), result)
        await self._given.on_tool_end(context, agent, tool, result)


def _model_of(given: Any) -> str | None:
    """A model's name, from a string or an object that has one."""
    name = given if isinstance(given, str) else getattr(given, "model", None)
    return name if isinstance(name, str) else None


@observing()
def _record_answer(run: WatchedRun, model: str | None, response: ModelResponse) -> None:
    calls, texts, thoughts = [], [], []
    for item in response.output:
        content: Json = item if isinstance(item, dict) else item.model_dump()
        if content.get("type") == "message":
            texts += [str(part.get("text") or "") for part in content.get("content") or ()]
        elif content.get("type") == "reasoning":
            parts = [*(content.get("summary") or ()), *(content.get("content") or ())]
            thoughts += [str(part.get("text") or "") for part in parts]
        elif str(content.get("type")).endswith("_call"):
            calls.append(str(content.get("name") or content["type"].removesuffix("_call")))
    used = response.usage
    reported = (used.input_tokens, used.output_tokens, used.total_tokens)
    counts = reported if any(reported) else (None, None, None)  # all zero: the provider did not report usage
    text = "\n".join(one for one in texts if one)
    reasoning = [one for one in thoughts if one]
    run.course.thought(Used(model, *counts), calls, text, reasoning=reasoning, started_ns=run.started_ns)


@contextmanager
def _record_failure(course: Course) -> Iterator[None]:
    try:
        yield
    except (Cancelled, Denied):
        raise
    except Exception as failed:
        course.failed(failed)
        raise
