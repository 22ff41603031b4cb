"""CrewAI kickoffs as sessions: maps crew agents to Observatory agents and tasks to parent steps.

Rule: a kickoff is one session; each agent of the crew is one Observatory agent. A task follows from the tasks
named as its context, else from whatever had ended when it began; a coworker's steps in a delegated task
follow from the delegating call. Nothing here uses CrewAI's hooks; only names are read from its objects.
"""

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from threading import Lock
from typing import Any

from observatory.sdk.agent import Agent
from observatory.sdk.integrations import wording
from observatory.sdk.integrations.course import Course, GatedCall, Terms, Usage
from observatory.sdk.integrations.crewai_once import SingleRun
from observatory.sdk.outbox import Outbox
from observatory.sdk.received import Prompt
from observatory.sdk.session import SessionBranch, open_line

MAX_RUNS = 1_000  # agents without a crew have no end event
MAX_MODELS = 1_000
MAX_AGENTS = 200  # each listens; beyond this, idle ones are closed
NAME_CHARS = 100
Tips = tuple[str, ...]


class ToolCallFrame:
    """A tool call between its two hooks; within it other agents may be at work."""

    def __init__(
        self, work: "CrewTaskRun | None", call: GatedCall | None, refusal: str | None, given: Any
    ) -> None:
        self.work, self.call, self.refusal = work, call, refusal
        self.given = given  # the same object that CrewAI passes to both hooks
        self.above = inside.get()
        self.within: list[CrewTaskRun] = []
        self.once: SingleRun | None = None  # for a call that a person approved
        self.errors = errors_of(self.task)

    @property
    def task(self) -> Any:
        return self.work.task if self.work is not None else None


inside: ContextVar[ToolCallFrame | None] = ContextVar("observatory_crewai_call", default=None)


def once_of(tool: Any) -> SingleRun | None:
    """The approved call of this tool that is currently running."""
    frame = inside.get()
    while frame is not None and (frame.once is None or frame.once.tool is not tool):
        frame = frame.above
    return frame.once if frame is not None else None


class ModelTurn:
    """A model call without an answer yet."""

    def __init__(self, llm: Any) -> None:
        self.llm = llm
        self.began_ns = time.perf_counter_ns()


class CrewTaskRun:
    """The work of one agent on one task."""

    def __init__(self, course: Course, task: Any, agent: Any) -> None:
        self.course, self.task, self.agent = course, task, agent
        self.origin: Tips = course.line.tips
        self.prompts: list[Prompt] = []
        self._lock = Lock()
        self._turn: ModelTurn | None = None

    def ask(self, llm: Any) -> None:
        with self._lock:
            self._turn = ModelTurn(llm)

    def record_answer(
        self, spent: Callable[[Any], int | None], response: Any = None, calls: Sequence[str] = ()
    ) -> None:
        """Record the model's answer, once per call; unknown token counts are omitted."""
        if (turn := self._taken()) is not None:
            usage = Usage(model_of(turn.llm), total_tokens=spent(turn.llm))
            self.course.thought(usage, calls, response, started_ns=turn.began_ns)

    def record_missing(self, error: BaseException | None = None) -> None:
        """Record a failed model call, if one has no answer."""
        if (turn := self._taken()) is not None:
            self.course.failed(error or RuntimeError("CrewAI reported no answer"), turn.began_ns)

    def _taken(self) -> ModelTurn | None:
        with self._lock:
            turn, self._turn = self._turn, None
        return turn


class CrewRun:
    """One kickoff of a crew, or an agent that works without one."""

    def __init__(self, owner: Any, agents: Iterable[Any] = ()) -> None:
        self.owner = owner  # referenced: its id() is the key of this run
        self.shared, _ = open_line(None, None)
        self.ended_by: str | None = None  # a person's reason for ending it
        self.last: CrewTaskRun | None = None
        self._front: Tips = ()
        self._lock = Lock()
        self._works: dict[Any, CrewTaskRun] = {}
        self._done: dict[Any, Tips] = {}
        self._names: dict[int, str] = {}
        for agent in agents:
            self.name_of(agent)

    @property
    def session_id(self) -> str:
        return self.shared.session_id

    @property
    def names(self) -> list[str]:
        with self._lock:
            return list(self._names.values())

    def name_of(self, agent: Any) -> str:
        """Of two agents with the same role, the second gets a number."""
        with self._lock:
            if id(agent) not in self._names:
                base, taken = slug(getattr(agent, "role", None)), set(self._names.values())
                unique = next(
                    name
                    for n in range(1, len(taken) + 2)
                    if (name := base if n == 1 else f"{base}-{n}") not in taken
                )
                self._names[id(agent)] = unique
            return self._names[id(agent)]

    def work(self, task: Any, agent: Any, sender: Agent, terms: Terms) -> CrewTaskRun:
        """The work of this agent on this task; a new one starts from its parent steps."""
        key = (getattr(task, "id", None), id(agent))
        frame = inside.get()
        with self._lock:
            work = self._works.get(key)
            if work is None:
                call = frame.call if frame is not None and frame.task is not task else None
                origin = call.line.tips if call is not None else self._before(task)
                course = Course(sender, SessionBranch(sender, self.shared, origin), terms)
                work = self._works[key] = CrewTaskRun(course, task, agent)
                if call is not None and frame is not None:
                    frame.within.append(work)
            self.last = work
            return work

    def done(self, work: CrewTaskRun) -> None:
        """Its task has ended: the next task follows from it."""
        with self._lock:
            tips = work.course.line.tips
            self._done[getattr(work.task, "id", None)] = tips
            self._front = tuple(
                dict.fromkeys([*(one for one in self._front if one not in work.origin), *tips])
            )
            self._works = {key: one for key, one in self._works.items() if one is not work}

    def of_agent(self, agent: Any) -> CrewTaskRun | None:
        """The latest work of this agent: a model call outside any task belongs to it."""
        with self._lock:
            return next((one for one in reversed(self._works.values()) if one.agent is agent), None)

    def _before(self, task: Any) -> Tips:
        named = getattr(task, "context", None)
        if isinstance(named, list) and named:
            tips = [tip for one in named for tip in self._done.get(getattr(one, "id", None), ())]
            if tips:
                return tuple(dict.fromkeys(tips))
        return self._front


class CrewRuns:
    """All running kickoffs, and the Observatory agents they share."""

    def __init__(self, outbox: Outbox, terms: Terms, version: str, cluster: str | None) -> None:
        self._outbox, self._terms, self._version, self._cluster = outbox, terms, version, cluster
        self._lock = Lock()
        self._runs: OrderedDict[int, CrewRun] = OrderedDict()
        self._agents: OrderedDict[str, Agent] = OrderedDict()
        self._counted: OrderedDict[int, tuple[Any, int]] = (
            OrderedDict()
        )  # by model: the model, its tokens already recorded

    def begin(self, crew: Any) -> CrewRun:
        agents = [*(getattr(crew, "agents", None) or ()), getattr(crew, "manager_agent", None)]
        return self._keep(crew, CrewRun(crew, [one for one in agents if one is not None]))

    def of(self, crew: Any, agent: Any) -> CrewRun:
        owner = crew if crew is not None else getattr(agent, "crew", None)
        owner = owner if owner is not None and not isinstance(owner, str) else agent
        with self._lock:
            run = self._runs.get(id(owner))
        return run or self._keep(owner, CrewRun(owner))

    def end(self, crew: Any) -> CrewRun | None:
        with self._lock:
            return self._runs.pop(id(crew), None)

    def _keep(self, owner: Any, run: CrewRun) -> CrewRun:
        with self._lock:
            self._runs[id(owner)] = run
            while len(self._runs) > MAX_RUNS:
                self._runs.popitem(last=False)
        return run

    def work(self, crew: Any, task: Any, agent: Any) -> tuple[CrewRun, CrewTaskRun]:
        run = self.of(crew, agent)
        sender = self._sender(run.name_of(agent), agent)
        return run, run.work(task, agent, sender, self._terms)

    def _sender(self, name: str, agent: Any) -> Agent:
        llm = getattr(agent, "llm", None)
        fields = {"model": model_of(llm), "provider": text_of(getattr(llm, "provider", None))}
        with self._lock:
            known = self._agents.get(name)
            if known is None:
                known = Agent(name, version=self._version, cluster=self._cluster, outbox=self._outbox)
            self._agents[name] = known
            self._agents.move_to_end(name)
            # The same agent may use another model the next time.
            known.identity = known.identity | {name: value for name, value in fields.items() if value}
            idle = self._idle()
        for one in idle:
            one.close(0)
        return known

    def _idle(self) -> list[Agent]:
        """Agents beyond the limit, longest unused first, that no running kickoff needs."""
        beyond = len(self._agents) - MAX_AGENTS
        if beyond <= 0:
            return []
        needed = {name for run in self._runs.values() for name in run.names}
        idle = [name for name in self._agents if name not in needed]
        return [self._agents.pop(name) for name in idle[:beyond]]

    def meet(self, llm: Any) -> None:
        """A model counts tokens over its lifetime: ignore those used before observation started."""
        with self._lock:
            if id(llm) not in self._counted and (total := total_of(llm)) is not None:
                self._counted[id(llm)] = (llm, total)
            while len(self._counted) > MAX_MODELS:
                self._counted.popitem(last=False)

    def spent(self, llm: Any) -> int | None:
        """The tokens this model used since the last call. Agents may share a model: no token is counted
        twice."""
        total = total_of(llm)
        if total is None:
            return None
        with self._lock:
            _, counted = self._counted.get(id(llm), (llm, total))
            self._counted[id(llm)] = (llm, total)
        return total - counted if total > counted else None

    def close(self) -> None:
        with self._lock:
            agents = list(self._agents.values())
            self._agents.clear()
            self._runs.clear()
        for one in agents:
            one.close(0)


def slug(role: Any) -> str:
    """A role as an agent's name: `Senior Researcher` is `senior-researcher`."""
    plain = re.sub(r"[^\w.-]+", "-", str(role or "").strip().lower()).strip("-.")
    return plain[:NAME_CHARS].strip("-.") or "crewai-agent"


def model_of(llm: Any) -> str | None:
    return text_of(llm if isinstance(llm, str) else getattr(llm, "model", None))


def text_of(value: Any) -> str | None:
    return wording.clip(value, NAME_CHARS) if isinstance(value, str) and value else None


def total_of(llm: Any) -> int | None:
    summary = getattr(llm, "get_token_usage_summary", None)
    total = getattr(summary(), "total_tokens", None) if callable(summary) else None
    return total if isinstance(total, int) else None


def errors_of(task: Any) -> int:
    errors = getattr(task, "tools_errors", 0)
    return errors if isinstance(errors, int) else 0
