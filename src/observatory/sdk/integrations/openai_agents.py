"""The OpenAI Agents SDK: its own `Runner`, watched.

    from observatory import Agent as Speaker
    from observatory.sdk.integrations.openai_agents import ObservatoryRunner

    watch = ObservatoryRunner(Speaker("triage-1"), needs_approval=["pay_*"])
    result = await watch.run(agent, "Hello", session=session)      # as Runner.run; run_sync, run_streamed too

Law: one conversation (`group_id`, the session's or the conversation's id) is one session, else each run is
one. A call of a model is a step, a call of a function tool two (asked, done). The agents given are not
changed: what runs are copies that ask before each of their tools (functions, MCP's, agents as tools, shell,
custom ones). Local tools that cannot be told no (computer, patches) end the run with `Denied` when they are
refused; what the provider runs on its own side is seen afterwards only. A handoff is a message to the other
agent, and its next step follows from it. `Cancelled` ends the run.
"""

import dataclasses
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from observatory.sdk.errors import Cancelled, Denied, NotSupported
from observatory.sdk.integrations.course import Call, Course, Courses, Terms, observing
from observatory.sdk.integrations.course import Usage as Used
from observatory.sdk.integrations.framework import need
from observatory.sdk.speaker import Speaker

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

from observatory.sdk.integrations.openai_calls import Run, current, governed, inner_agent, is_governed  # noqa: E402

log = logging.getLogger("observatory.sdk")
Json = dict[str, Any]


class ObservatoryRunner:
    """`Runner` with a person's hand on it. `needs_approval`: tools (names or globs) that ask a person first,
    whatever the gateway's rules say. `team`: who speaks for which of the SDK's agents, by their names; the
    others' words are `speaker`'s. `cost` prices a call of a model."""

    def __init__(
        self,
        speaker: Speaker,
        *,
        team: Mapping[str, Speaker] | None = None,
        needs_approval: Sequence[str] = (),
        timeout: float | None = None,
        cost: Callable[[Used], float | None] | None = None,
    ) -> None:
        self._speaker = speaker
        self._team = dict(team or {})
        self._courses = Courses(speaker, Terms(needs_approval, timeout, cost))

    async def run(self, starting_agent: Agent[Any], input: Any, **options: Any) -> RunResult:
        """As `Runner.run`, with all its options."""
        with self._running(options) as run, _told_if_it_fails(run.course):
            result = await Runner.run(self.watched(starting_agent), input, **options)
        session = options.get("session")
        if session is not None and run.injected:  # or its next run would not know what was said in this one
            try:
                await session.add_items([item for _, item in run.injected])
            except Exception:  # the user's own store: the run has its result all the same
                log.exception("what was injected could not be kept in the session")
        return result

    def run_sync(self, starting_agent: Agent[Any], input: Any, **options: Any) -> RunResult:
        """As `Runner.run_sync`."""
        with self._running(options) as run, _told_if_it_fails(run.course):
            return Runner.run_sync(self.watched(starting_agent), input, **options)

    def run_streamed(self, starting_agent: Agent[Any], input: Any, **options: Any) -> RunResultStreaming:
        """As `Runner.run_streamed`."""
        with self._running(options):
            return Runner.run_streamed(self.watched(starting_agent), input, **options)

    def watched(self, agent: Agent[Any], known: "dict[int, Agent[Any]] | None" = None) -> Agent[Any]:
        """The agent as it is run: with our hooks, tools that ask first, and handoffs to such agents."""
        known = {} if known is None else known
        if isinstance(agent, WatchedAgent):
            return agent
        if id(agent) not in known:
            fields = {one.name: getattr(agent, one.name) for one in dataclasses.fields(agent) if one.init}
            twin = WatchedAgent(**{**fields, "handoffs": [], "hooks": _Hooks(self, agent.hooks)})
            known[id(agent)] = twin  # before its handoffs, which may lead back to it
            twin.handoffs = [self._handoff(one, known) for one in agent.handoffs]
        return known[id(agent)]

    def speaker_of(self, agent: Agent[Any]) -> Speaker:
        return self._team.get(agent.name, self._speaker)

    def _handoff(self, given: Any, known: "dict[int, Agent[Any]]") -> Any:
        if not isinstance(given, Handoff):
            return self.watched(given, known)
        inner = given.on_invoke_handoff

        async def invoke(context: Any, told: str) -> Any:
            return self.watched(await inner(context, told), known)

        return dataclasses.replace(given, on_invoke_handoff=invoke)

    @contextmanager
    def _running(self, options: Json) -> Iterator[Run]:
        """A run's course and options: its filter waits, and injects, after the one that was given."""
        config = options.get("run_config")
        config = RunConfig(**config) if isinstance(config, Mapping) else config or RunConfig()
        told = getattr(options.get("session"), "session_id", None) or options.get("conversation_id")
        course = self._courses.of(self._courses.enter(config.group_id or told))
        remote = ("conversation_id", "previous_response_id", "auto_previous_response_id")
        run = Run(course, any(options.get(name) for name in remote))
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
    """A copy of an agent whose function tools, wherever they come from, ask first."""

    _governed: dict[int, tuple[Tool, Tool]] = dataclasses.field(default_factory=dict, repr=False)

    async def get_all_tools(self, run_context: Any) -> list[Tool]:
        tools = await super().get_all_tools(run_context)
        for tool in tools:
            if (agent := inner_agent(tool)) is not None and not isinstance(agent, WatchedAgent):
                raise NotSupported(
                    f"the agent {agent.name!r} runs as the tool {tool.name!r}, and its own tools would ask "
                    "nobody: make the tool of its watched copy, watch.watched(agent).as_tool(…)"
                )
        known = {id(tool): self._governed.get(id(tool)) or (tool, governed(tool)) for tool in tools}
        self._governed = known  # the same tool is the same copy in every turn
        return [known[id(tool)][1] for tool in tools]


async def _filled(run: Run, data: ModelInputData) -> ModelInputData:
    """Wait while paused; then the input with all that people have injected, each where it was said."""
    prompts = await run.course.aready()
    items: list[Any] = list(data.input)
    for at, item in () if run.is_kept_elsewhere else run.injected:
        items.insert(min(at, len(items)), item)
    for prompt in prompts:
        item = {"role": "user", "content": prompt.text}
        run.injected.append((len(items), item))
        items.append(item)
    return ModelInputData(input=items, instructions=data.instructions)


class _Hooks(AgentHooks[Any]):
    """Ours, then those the agent had."""

    def __init__(self, runner: ObservatoryRunner, given: Any) -> None:
        self._runner = runner
        self._given = given if given is not None else AgentHooks()
        self._calls: dict[int, list[Call]] = {}  # of tools that cannot ask themselves, by tool

    async def on_start(self, context: Any, agent: Any) -> None:
        await self._given.on_start(context, agent)

    async def on_end(self, context: Any, agent: Any, output: Any) -> None:
        await self._given.on_end(context, agent, output)

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: Any, input_items: Any) -> None:
        if (run := current.get()) is not None:
            run.course.speaker = self._runner.speaker_of(agent)
            await run.course.await_()  # also in a run that was started without our filter
            run.started_ns = time.perf_counter_ns()
        await self._given.on_llm_start(context, agent, system_prompt, input_items)

    async def on_llm_end(self, context: Any, agent: Any, response: ModelResponse) -> None:
        if (run := current.get()) is not None:
            _say_answer(run, run.model or _model_of(agent.model), response)
        await self._given.on_llm_end(context, agent, response)

    async def on_handoff(self, context: Any, agent: Any, source: Any) -> None:
        """`source` hands over to `agent`."""
        if (run := current.get()) is not None:
            whose = self._runner.speaker_of(agent)
            run.course.speaker = self._runner.speaker_of(source)
            other = whose if whose is not run.course.speaker else None
            await run.course.ahand_over(agent.name, other)
        await self._given.on_handoff(context, agent, source)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        run = current.get()
        if run is not None and not is_governed(tool):
            call = await run.course.abegin(tool.name)
            if call.refusal is not None:  # this kind cannot be told no
                raise Denied(call.approval.verdict, call.refusal, call.approval.by, call.approval.step)
            self._calls.setdefault(id(tool), []).append(call)
        await self._given.on_tool_start(context, agent, tool)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        if (calls := self._calls.get(id(tool))) and (run := current.get()) is not None:
            run.course.end(calls.pop(0), result)
        await self._given.on_tool_end(context, agent, tool, result)


def _model_of(given: Any) -> str | None:
    """A model's name, of the name itself or of an object that has one."""
    name = given if isinstance(given, str) else getattr(given, "model", None)
    return name if isinstance(name, str) else None


@observing()
def _say_answer(run: Run, model: str | None, response: ModelResponse) -> None:
    calls, texts, thoughts = [], [], []
    for item in response.output:
        told: Json = item if isinstance(item, dict) else item.model_dump()
        if told.get("type") == "message":
            texts += [str(part.get("text") or "") for part in told.get("content") or ()]
        elif told.get("type") == "reasoning":
            parts = [*(told.get("summary") or ()), *(told.get("content") or ())]
            thoughts += [str(part.get("text") or "") for part in parts]
        elif str(told.get("type")).endswith("_call"):
            calls.append(str(told.get("name") or told["type"].removesuffix("_call")))
    used = response.usage
    told_of_it = (used.input_tokens, used.output_tokens, used.total_tokens)
    counts = (
        told_of_it if any(told_of_it) else (None, None, None)
    )  # no answer is free: its provider told none
    text = "\n".join(one for one in texts if one)
    told_of = [one for one in thoughts if one]
    run.course.thought(Used(model, *counts), calls, text, reasoning=told_of, started_ns=run.started_ns)


@contextmanager
def _told_if_it_fails(course: Course) -> Iterator[None]:
    try:
        yield
    except (Cancelled, Denied):
        raise
    except Exception as failed:
        course.failed(failed)
        raise
