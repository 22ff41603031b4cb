"""The agents of the demo story in one event loop, each with a channel, and which of them are free.

Law: a message from one agent to another goes through the gateway and is read from the other's inbox; so what
people hold, change or reject there is held, changed or never arrives here. One loop runs all: an agent that
waits for a person is a waiting task.
"""

import asyncio
import contextlib
import logging
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from random import Random

from observatory.demo.cast import AgentKind, Role
from observatory.demo.pacer import QUICKER, Pacer
from observatory.sdk import AsyncAgent, AsyncSession, Handoff, NotAnswered, Outbox, Prompt, Received, Rejected

log = logging.getLogger("observatory.demo")
HOME_SHARE = 0.65  # how often a colleague of the same team is asked
POLL_S = 0.5  # how often prompts are polled for agents without work
MAX_LINES = 2_000
OPERATOR_S = 20.0
Arrival = Callable[[Received], None]


class StoryAgents:
    """All agents of the story, and their shared state."""

    def __init__(
        self, roles: Sequence[Role], outbox: Outbox, rate: float, seed: int, pace: float, pulse_s: float
    ) -> None:
        self.roles = {role.agent_id: role for role in roles}
        self.outbox = outbox
        self.pacer = Pacer(rate, QUICKER)
        self.seed = seed
        self.pace = pace
        self.owner: str | None = None
        """The user who is asked to decide."""
        self._done: dict[str, asyncio.Event] = {}  # by incident: what the operator has to do in it
        self.reserved: set[str] = set()
        self.at_work: Counter[str] = Counter()
        self.agents: dict[str, AsyncAgent] = {}
        self._pulse_s = pulse_s
        self._awaited: dict[str, asyncio.Future[Received]] = {}
        self._prompts: dict[tuple[str, str | None], deque[Prompt]] = {}
        self._lines: dict[tuple[str, str], AsyncSession] = {}
        self._channels: dict[str, asyncio.Task[None]] = {}
        self._instructions: dict[str, str | None] = {}
        self.on_idle_prompt: Callable[[str, str, Prompt], None] = lambda *_: None
        for name in self.roles:
            self.hire(name)

    # Who is there.

    def hire(self, name: str) -> AsyncAgent:
        role = self.roles[name]
        made = AsyncAgent(
            name,
            agent_type=role.kind.agent_type,
            version=role.kind.version,
            cluster=role.cluster,
            model=role.kind.model,
            provider=role.kind.provider,
            outbox=self.outbox,
            heartbeat_s=self._pulse_s,
        )
        self.agents[name] = made
        return made

    def listen(self, name: str) -> None:
        """Open the agent's channel and handle its inbox from now on."""
        agent = self.agents[name]
        agent.heartbeat("idle")
        self._channels[name] = asyncio.create_task(self._keep_channel(name, agent))

    async def fall_silent(self, name: str) -> None:
        """As if its process had died: no channel, no heartbeat."""
        self._channels.pop(name).cancel()
        await self.agents[name].close(1.0)

    def has(self, *names: str) -> bool:
        return all(name in self.roles for name in names)

    def pick(self, kind: AgentKind, rng: Random, team: str | None = None) -> str:
        """A free agent of this kind, mostly of that team."""
        wanted = [role for role in self.roles.values() if role.kind is kind] or list(self.roles.values())
        home = [role for role in wanted if role.team == team]
        order = home if home and rng.random() < HOME_SHARE else wanted
        first = rng.randrange(len(order))
        around = [*order[first:], *order[:first], *wanted]
        free = (role.agent_id for role in around if role.agent_id not in self.reserved)
        return next(free, around[0].agent_id)

    @contextlib.contextmanager
    def reserve(self, *names: str) -> Iterator[None]:
        """Reserve agents: no other work is given to them meanwhile."""
        self.reserved.update(names)
        try:
            yield
        finally:
            self.reserved.difference_update(names)

    def is_done(self, incident: str) -> None:
        """The operator has done their part of an incident; without a waiter this is dropped."""
        if incident in self._done:
            self._done[incident].set()

    async def operator(self, incident: str) -> None:
        """Wait for the operator's part of an incident, but not for ever: the mesh may run without one."""
        self._done[incident] = asyncio.Event()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._done[incident].wait(), OPERATOR_S)

    async def rest(self, seconds: float) -> None:
        """A pause of the story, shorter when it is played faster."""
        await asyncio.sleep(seconds / self.pace)

    # What comes in.

    def expect(self, step_id: str) -> "asyncio.Future[Received]":
        """The arrival of this step at its recipient, or the verdict against it at its sender."""
        awaited = self._awaited[step_id] = asyncio.get_running_loop().create_future()
        return awaited

    def forget(self, step_id: str) -> None:
        self._awaited.pop(step_id, None)

    async def _keep_channel(self, name: str, agent: AsyncAgent) -> None:
        # Else it stands on the map without a type until it first speaks.
        with contextlib.suppress(Rejected, NotAnswered):
            await agent.register()
        async for item in agent.incoming():
            if item.kind == "message":
                step_id = ((item.message or {}).get("meta") or {}).get("step_id")
            else:
                is_no = item.kind == "verdict" and item.body_value("verdict") in ("rejected", "expired")
                step_id = item.body_value("step_id") if is_no else None
            awaited = self._awaited.get(str(step_id))
            if awaited is not None and not awaited.done():
                awaited.set_result(item)
            else:
                log.debug("%s: unexpected %s", name, item.kind)

    def remember(self, name: str, line: AsyncSession) -> None:
        """Where this agent last stood in this session: there it answers what is injected later."""
        self._lines.pop((name, line.session_id), None)
        self._lines[name, line.session_id] = line
        while len(self._lines) > MAX_LINES:
            del self._lines[next(iter(self._lines))]

    def line_of(self, name: str, session_id: str) -> AsyncSession:
        agent, known = self.agents[name], self._lines.get((name, session_id))
        if known is not None:
            return agent.session(continues=known)
        # A session of an earlier run: its trace is not known any more, its name is.
        trace_id = session_id if re.fullmatch(r"[0-9a-f-]{36}", session_id) else None
        if trace_id is None:
            return agent.session(session_id=session_id)
        return agent.session(continues=Handoff(trace_id=trace_id, session_id=session_id, parent_step_ids=[]))

    def prompts(self, name: str, session_id: str) -> list[Prompt]:
        """What people put into this agent's context of this session since it was last asked."""
        self._gather(name)
        kept = [self._prompts.pop(key, ()) for key in ((name, None), (name, session_id))]
        return [prompt for some in kept for prompt in some]

    def _gather(self, name: str) -> None:
        for prompt in self.agents[name].prompts():
            self._prompts.setdefault((name, prompt.session_id), deque()).append(prompt)

    async def keep_looking(self) -> None:
        """An injected prompt is answered even by an agent that has no work in that session any more."""
        while True:
            await asyncio.sleep(POLL_S)
            for name in self.roles:
                if not self.agents[name].orders.closed:
                    self._gather(name)
            for key in [key for key in self._prompts if not self.at_work[f"{key[0]} {key[1]}"]]:
                name, session_id = key
                for prompt in self._prompts.pop(key):
                    self.on_idle_prompt(name, str(session_id), prompt)

    def news_of_instructions(self, name: str) -> str | None:
        """Instructions this agent has not spoken of yet."""
        now = self.agents[name].instructions
        if now == self._instructions.get(name):
            return None
        self._instructions[name] = now
        return now

    def start_work(self, name: str, session_id: str) -> None:
        self.at_work[f"{name} {session_id}"] += 1

    def end_work(self, name: str, session_id: str) -> None:
        key = f"{name} {session_id}"
        self.at_work[key] -= 1
        if self.at_work[key] <= 0:
            del self.at_work[key]

    def beat(self, name: str, status: str, task: str | None = None, progress: int | None = None) -> None:
        agent = self.agents[name]
        if not agent.orders.closed:
            agent.heartbeat(status, task=task, progress=progress)
