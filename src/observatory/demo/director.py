"""The demo's director: starts reports so that the mesh is never idle, and incidents, by the clock or by name.

Law: each incident plays once at a time (gates may wait at the same time), a few minutes apart. Anyone who
injects `incident: loop` into the director's session `atlas-director` starts that one now.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from random import Random
from typing import Any, NamedTuple

from observatory.demo import asking, incidents, spreading, standing
from observatory.demo.agents import StoryAgents
from observatory.demo.cast import DIRECTOR, DIRECTOR_SESSION
from observatory.demo.incidents import Announce
from observatory.demo.part import Ended, NotTaken, StoryPart
from observatory.demo.report import report
from observatory.sdk import Cancelled, Denied, Prompt

log = logging.getLogger("observatory.demo")
CYCLE_S = 270.0
MAX_REPORTS = 48
MAX_WAITING = 6  # for a turn; more reports at once would only queue
MAX_RUNNING = {"gate": 3}
CALL = "incident:"


class Incident(NamedTuple):
    play: Callable[[StoryAgents, Random, Announce], Awaitable[None]]
    at_s: float
    """Seconds into each cycle."""
    needs: tuple[str, ...]


INCIDENTS: dict[str, Incident] = {
    "gate": Incident(asking.gate, 3, ("writer-alpha-1", "publisher-alpha-1", "publisher-beta-1")),
    "proof": Incident(standing.proof, 5, (standing.ANALYST,)),
    "violation": Incident(incidents.violation, 8, ("code-runner-delta-1",)),
    "pause": Incident(standing.pause, 10, (standing.RECALLED,)),
    "loop": Incident(incidents.loop, 14, ("researcher-beta-3",)),
    "infection": Incident(
        spreading.infection,
        6,
        ("researcher-gamma-2", "analyst-gamma-2", "writer-gamma-1", "checker-gamma-1"),
    ),
    "drift": Incident(incidents.drift, 85, ("analyst-alpha-1", "analyst-alpha-2")),
    "cascade": Incident(spreading.cascade, 115, ("filings-epsilon-1", "analyst-epsilon-2")),
    "budget": Incident(spreading.budget, 150, ("writer-beta-1",)),
    "silence": Incident(incidents.silence, 120, ("filings-gamma-1",)),
}


class Director:
    def __init__(self, story_agents: StoryAgents, wanted: Sequence[str], announce: Announce) -> None:
        """`wanted`: only these, at once and every cycle; none: all of them by the clock; `none`: nothing."""
        self._story_agents = story_agents
        self._announce = announce
        self._wanted = wanted
        self._running: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._played: dict[str, int] = {}
        self._reports = self._replies = 0
        story_agents.reserved.add(spreading.SPENDER)
        story_agents.on_idle_prompt = self._answer

    def possible(self) -> list[str]:
        return [name for name, one in INCIDENTS.items() if self._story_agents.has(*one.needs)]

    async def direct(self) -> None:
        """Begin everything; runs until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._story_agents.pacer.run())
            group.create_task(self._story_agents.keep_looking())
            group.create_task(self._keep_busy())
            group.create_task(self._keep_schedule())
            if self._story_agents.has(DIRECTOR):
                group.create_task(self._keep_minutes())

    async def _keep_busy(self) -> None:
        """Start a new report whenever few agents wait for a turn."""
        open_reports = 0

        def done(_: object) -> None:
            nonlocal open_reports
            open_reports -= 1

        while True:
            if self._story_agents.pacer.waiting < MAX_WAITING and open_reports < MAX_REPORTS:
                self._reports += 1
                open_reports += 1
                task = self._start(f"report {self._reports}", report(self._story_agents, self._reports))
                task.add_done_callback(done)
            await asyncio.sleep(0.1)

    async def _keep_schedule(self) -> None:
        possible = self.possible()
        if self._wanted:
            times = [(2.0 + 2.0 * n, name) for n, name in enumerate(self._wanted) if name in possible]
        else:
            times = sorted((INCIDENTS[name].at_s, name) for name in possible)
        while times:
            passed = 0.0
            for at_s, name in times:
                await self._story_agents.rest(at_s - passed)
                passed = at_s
                self.start(name)
            await self._story_agents.rest(CYCLE_S - passed)

    async def _keep_minutes(self) -> None:
        """The director's own session: where incidents are called for by name."""
        rng = Random(f"{self._story_agents.seed}/director")
        part = StoryPart.opening(self._story_agents, DIRECTOR, rng, DIRECTOR_SESSION)
        names = ", ".join(self.possible())
        while True:
            await part.say(
                f"Minutes of the desk: {self._reports} reports begun",
                reasoning_chain=[
                    f"Reports begun so far: {self._reports}.",
                    f"Inject `incident: NAME`: {names}.",
                ],
                tool_output_summary=f"{self._reports} reports begun",
                added_to_memory=[f"Atlas minute {self._reports}"],
                terminal=True,
                cost=0.001,
            )
            part.end()
            await self._story_agents.rest(CYCLE_S)

    def start(self, name: str) -> bool:
        """Play this incident now; False if it plays already or cannot."""
        if name not in self.possible() or self._running.get(name, 0) >= MAX_RUNNING.get(name, 1):
            return False
        number = self._played[name] = self._played.get(name, 0) + 1
        rng = Random(f"{self._story_agents.seed}/{name}/{number}")
        self._running[name] = self._running.get(name, 0) + 1
        play = INCIDENTS[name].play(self._story_agents, rng, self._announce)

        def done(_: object) -> None:
            self._running[name] -= 1

        self._start(name, play).add_done_callback(done)
        return True

    def _start(self, name: str, play: Awaitable[None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(self._guard(name, play))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _guard(self, name: str, play: Awaitable[None]) -> None:
        """Interventions of people end an incident normally; our own defects are logged."""
        try:
            await play
        except NotTaken as no:
            await self._guard(name, _set_aside(no))
        except (Ended, Cancelled, Denied) as no:
            log.info("%s ended: %s", name, no)
        except Exception:  # the runner: one play that fails must not end the mesh
            log.exception("%s failed", name)

    def _answer(self, name: str, session_id: str, prompt: Prompt) -> None:
        """A prompt to an agent without work in that session: it replies, and the director does as it says."""
        words = prompt.text.strip()
        if name == DIRECTOR and words.lower().startswith(CALL):
            wanted = words[len(CALL) :].strip().lower()
            is_on = self.start(wanted)
            log.info("incident %s: %s", wanted, "begins" if is_on else "cannot begin now")
        self._start(f"reply of {name}", self._reply(name, session_id, prompt))

    async def _reply(self, name: str, session_id: str, prompt: Prompt) -> None:
        self._replies += 1  # the same text again would count as a loop
        rng = Random(f"{self._story_agents.seed}/reply/{self._replies}")
        part = StoryPart(self._story_agents, name, rng, self._story_agents.line_of(name, session_id))
        part.put_back(prompt)
        await part.say(
            f"Note {self._replies} of {name}: {prompt.text.partition(chr(10))[0][:80]}",
            reasoning_chain=["My work here was done; this changes what I hold to be true."],
            confidence_score=0.8,
            terminal=True,
        )
        part.end()


def _set_aside(no: NotTaken) -> Coroutine[Any, Any, None]:
    async def say() -> None:
        reasons = [f"{no.to} never got it: {no.why}.", "Without it this work ends here."]
        await no.part.say("Set aside", reasoning_chain=reasons, status="skipped", terminal=True)
        no.part.end()

    return say()
