"""Kickoffs as sessions: which agent of ours stands for which of a crew, and what follows from what.

Law: a kickoff is one session, an agent of the crew one agent of ours. A task follows from the tasks named as
its context, else from whatever had ended when it began; what a coworker does of a delegated task follows from
the call that delegated it. Nothing here knows CrewAI's hooks: its objects are only asked for their names.
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
from observatory.sdk.integrations.course import Call, Course, Terms, Usage
from observatory.sdk.integrations.crewai_once import Once
from observatory.sdk.outbox import Outbox
from observatory.sdk.received import Prompt
from observatory.sdk.session import Line, open_line

MOST_RUNS = 1_000  # of agents without a crew nobody says when they end
MOST_MODELS = 1_000
MOST_AGENTS = 200  # each listens; those of no kickoff at work are let go beyond
NAME_CHARS = 100
Tips = tuple[str, ...]


class Frame:
    """A tool call between its two hooks; within it other agents may be at work."""

    def __init__(self, work: "Work | None", call: Call | None, refusal: str | None, given: Any) -> None:
        self.work, self.call, self.refusal = work, call, refusal
        self.given = given  # the very object CrewAI passes to both hooks
        self.above = inside.get()
        self.within: list[Work] = []
        self.once: Once | None = None  # of a call that a person approved
        self.errors = errors_of(self.task)

    @property
    def task(self) -> Any:
        return self.work.task if self.work is not None else None


inside: ContextVar[Frame | None] = ContextVar("observatory_crewai_call", default=None)


def once_of(tool: Any) -> Once | None:
    """The approved run of this tool that this code is in."""
    frame = inside.get()
    while frame is not None and (frame.once is None or frame.once.tool is not tool):
        frame = frame.above
    return frame.once if frame is not None else None


class Turn:
    """A model that was asked and has not been heard."""

    def __init__(self, llm: Any) -> None:
        self.llm = llm
        self.began_ns = time.perf_counter_ns()


class Work:
    """What one agent does of one task."""

    def __init__(self, course: Course, task: Any, agent: Any) -> None:
        self.course, self.task, self.agent = course, task, agent
        self.origin: Tips = course.line.tips
        self.prompts: list[Prompt] = []
        self._lock = Lock()
        self._turn: Turn | None = None

    def ask(self, llm: Any) -> None:
        with self._lock:
            self._turn = Turn(llm)

    def hear(
        self, spent: Callable[[Any], int | None], response: Any = None, calls: Sequence[str] = ()
    ) -> None:
        """Say what the model did, once for each time it was asked; tokens nobody told are left out."""
        if (turn := self._taken()) is not None:
            usage = Usage(model_of(turn.llm), total_tokens=spent(turn.llm))
            self.course.thought(usage, calls, response, started_ns=turn.began_ns)

    def miss(self, error: BaseException | None = None) -> None:
        """Say that the model was asked in vain, if it was: what it had said would have been heard."""
        if (turn := self._taken()) is not None:
            self.course.failed(error or RuntimeError("CrewAI told no answer of it"), turn.began_ns)

    def _taken(self) -> Turn | None:
        with self._lock:
            turn, self._turn = self._turn, None
        return turn


class Run:
    """One kickoff of a crew, or an agent that works without one."""

    def __init__(self, owner: Any, agents: Iterable[Any] = ()) -> None:
        self.owner = owner  # kept: its identity is this run's name
        self.shared, _ = open_line(None, None)
        self.ended_by: str | None = None  # a person's reason for ending it
        self.last: Work | None = None
        self._front: Tips = ()
        self._lock = Lock()
        self._works: dict[Any, Work] = {}
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
        """Of two with one role, the second gets a number: they are two agents."""
        with self._lock:
            if id(agent) not in self._names:
                wanted, taken = slug(getattr(agent, "role", None)), set(self._names.values())
                found = next(
                    name
                    for n in range(1, len(taken) + 2)
                    if (name := wanted if n == 1 else f"{wanted}-{n}") not in taken
                )
                self._names[id(agent)] = found
            return self._names[id(agent)]

    def work(self, task: Any, agent: Any, speaker: Agent, terms: Terms) -> Work:
        """That of this task and agent; begun if it is new, from what it follows from."""
        key = (getattr(task, "id", None), id(agent))
        frame = inside.get()
        with self._lock:
            found = self._works.get(key)
            if found is None:
                call = frame.call if frame is not None and frame.task is not task else None
                origin = call.line.tips if call is not None else self._before(task)
                course = Course(speaker, Line(speaker, self.shared, origin), terms)
                found = self._works[key] = Work(course, task, agent)
                if call is not None and frame is not None:
                    frame.within.append(found)
            self.last = found
            return found

    def done(self, work: Work) -> None:
        """Its task has ended: what comes next follows from it."""
        with self._lock:
            tips = work.course.line.tips
            self._done[getattr(work.task, "id", None)] = tips
            self._front = tuple(
                dict.fromkeys([*(one for one in self._front if one not in work.origin), *tips])
            )
            self._works = {key: one for key, one in self._works.items() if one is not work}

    def of_agent(self, agent: Any) -> Work | None:
        """What this agent did last here: a call of its model outside any task belongs to that."""
        with self._lock:
            return next((one for one in reversed(self._works.values()) if one.agent is agent), None)

    def _before(self, task: Any) -> Tips:
        named = getattr(task, "context", None)
        if isinstance(named, list) and named:
            tips = [tip for one in named for tip in self._done.get(getattr(one, "id", None), ())]
            if tips:
                return tuple(dict.fromkeys(tips))
        return self._front


class Runs:
    """All kickoffs at work, and the agents of ours they share."""

    def __init__(self, outbox: Outbox, terms: Terms, version: str, cluster: str | None) -> None:
        self._outbox, self._terms, self._version, self._cluster = outbox, terms, version, cluster
        self._lock = Lock()
        self._runs: OrderedDict[int, Run] = OrderedDict()
        self._agents: OrderedDict[str, Agent] = OrderedDict()
        self._told: OrderedDict[int, tuple[Any, int]] = OrderedDict()  # by model: itself, its tokens told

    def begin(self, crew: Any) -> Run:
        agents = [*(getattr(crew, "agents", None) or ()), getattr(crew, "manager_agent", None)]
        return self._keep(crew, Run(crew, [one for one in agents if one is not None]))

    def of(self, crew: Any, agent: Any) -> Run:
        owner = crew if crew is not None else getattr(agent, "crew", None)
        owner = owner if owner is not None and not isinstance(owner, str) else agent
        with self._lock:
            found = self._runs.get(id(owner))
        return found or self._keep(owner, Run(owner))

    def end(self, crew: Any) -> Run | None:
        with self._lock:
            return self._runs.pop(id(crew), None)

    def _keep(self, owner: Any, run: Run) -> Run:
        with self._lock:
            self._runs[id(owner)] = run
            while len(self._runs) > MOST_RUNS:
                self._runs.popitem(last=False)
        return run

    def work(self, crew: Any, task: Any, agent: Any) -> tuple[Run, Work]:
        run = self.of(crew, agent)
        speaker = self._speaker(run.name_of(agent), agent)
        return run, run.work(task, agent, speaker, self._terms)

    def _speaker(self, name: str, agent: Any) -> Agent:
        llm = getattr(agent, "llm", None)
        told = {"model": model_of(llm), "provider": text_of(getattr(llm, "provider", None))}
        with self._lock:
            found = self._agents.get(name)
            if found is None:
                found = Agent(name, version=self._version, cluster=self._cluster, outbox=self._outbox)
            self._agents[name] = found
            self._agents.move_to_end(name)
            # The same agent may come with another model the next time.
            found.identity = found.identity | {name: value for name, value in told.items() if value}
            idle = self._idle()
        for one in idle:
            one.close(0)
        return found

    def _idle(self) -> list[Agent]:
        """Those beyond the most, longest unused first, that no run at work needs."""
        beyond = len(self._agents) - MOST_AGENTS
        if beyond <= 0:
            return []
        needed = {name for run in self._runs.values() for name in run.names}
        idle = [name for name in self._agents if name not in needed]
        return [self._agents.pop(name) for name in idle[:beyond]]

    def meet(self, llm: Any) -> None:
        """A model's count is of its whole life: what it spent before it was watched is nobody's here."""
        with self._lock:
            if id(llm) not in self._told and (total := total_of(llm)) is not None:
                self._told[id(llm)] = (llm, total)
            while len(self._told) > MOST_MODELS:
                self._told.popitem(last=False)

    def spent(self, llm: Any) -> int | None:
        """What this model spent since it was last asked this. Agents may share a model: nothing of its
        count is told twice."""
        total = total_of(llm)
        if total is None:
            return None
        with self._lock:
            _, told = self._told.get(id(llm), (llm, total))
            self._told[id(llm)] = (llm, total)
        return total - told if total > told else None

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
    found = getattr(summary(), "total_tokens", None) if callable(summary) else None
    return found if isinstance(found, int) else None


def errors_of(task: Any) -> int:
    found = getattr(task, "tools_errors", 0)
    return found if isinstance(found, int) else 0
