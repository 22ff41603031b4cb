"""One agent at work on one line of a session: what it says, hands on, and how it obeys.

Law: before each word it looks up. Paused, it waits; what was injected, and new instructions, are in the
reasoning of its very next step; cancelled, it says one last word. What it hands on is built upon as it
arrived, not as it was sent; what never arrives is not built upon.
"""

import asyncio
import contextlib
import json
import re
from random import Random
from typing import Any, Self

from observatory.demo.agents import StoryAgents
from observatory.sdk import AsyncSession, AsyncStep, Cancelled, NotAnswered, Prompt, Received, Rejected, gate
from observatory.sdk.step import new_id
from observatory.sdk.waiting import run_async

ARRIVAL_S = 30.0
LOOK_AGAIN_S = 2.0
# How the gateway words a ruling on what two agents disagree about.
_RULING = re.compile(r"the true value is (?P<value>.+?)\. You stated", re.DOTALL)


class NotTaken(Exception):
    """A handed-over message did not arrive: rejected by a person, a rule or a cap, or timed out."""

    def __init__(self, part: "StoryPart", to: str, why: str) -> None:
        super().__init__(f"{part.name} to {to}: {why}")
        self.part, self.to, self.why = part, to, why


class Ended(Exception):
    """A person ended this work; the final message was sent."""


class StoryPart:
    def __init__(
        self,
        story_agents: StoryAgents,
        name: str,
        rng: Random,
        line: AsyncSession,
        heard: Received | None = None,
    ) -> None:
        self.story_agents, self.name, self.rng, self.line, self.heard = story_agents, name, rng, line, heard
        self._is_new = heard is not None
        self._at_work = False
        self._put_back: list[Prompt] = []

    @classmethod
    def opening(
        cls, story_agents: StoryAgents, name: str, rng: Random, session_id: str | None = None
    ) -> Self:
        """This agent begins a session."""
        return cls(story_agents, name, rng, story_agents.agents[name].session(session_id=session_id))

    @property
    def session_id(self) -> str:
        return self.line.session_id

    @property
    def brief(self) -> str:
        """What it was given, in the words that arrived: perhaps a person's."""
        message = (self.heard.message if self.heard is not None else None) or {}
        summary = (message.get("action") or {}).get("tool_output_summary")
        return str(summary or (message.get("cognition") or {}).get("intent") or "")

    def given(self, field: str, otherwise: str) -> str:
        """A member of the input that arrived."""
        message = (self.heard.message if self.heard is not None else None) or {}
        notes = (message.get("action") or {}).get("tool_input")
        with contextlib.suppress(ValueError, TypeError, AttributeError):
            return str(json.loads(str(notes)).get(field) or otherwise)
        return otherwise

    def fork(self) -> "StoryPart":
        """A second line with chances of its own: what it says must not depend on who else speaks first."""
        return StoryPart(self.story_agents, self.name, Random(self.rng.random()), self.line.fork())

    def join(self, *others: "StoryPart") -> Self:
        self.line.join(*(other.line for other in others))
        return self

    async def say(
        self, intent: str, *, step_id: str | None = None, is_urgent: bool = False, **fields: Any
    ) -> AsyncStep:
        """Send one step, when the pacer allows it and the agent is not paused."""
        self.begin_work()
        if not is_urgent:
            await self.story_agents.pacer.turn()
        try:
            await run_async(gate.wait_while_held(self.story_agents.agents[self.name], self.session_id))
            fields = self._looked_up(fields) | self._spent(fields)
            return await self.line.step(intent, step_id=step_id, **fields)
        except Cancelled as no:
            with contextlib.suppress(Cancelled):  # the mesh itself is closing
                words = f"Stopped by a person{f': {no.reason}' if no.reason else ''}"
                await self.line.step(words, status="skipped", terminal=True)
            raise Ended(words) from no

    async def hand(self, to: str, intent: str, **fields: Any) -> "StoryPart":
        """Send it to a colleague and go on as that colleague, with what arrived there. If it does not
        arrive, this agent says so, on a line that does not follow from it, and `NotTaken` is raised."""
        step_id, tips = new_id(), self.line.tips
        arrival = self.story_agents.expect(step_id)
        try:
            step = await self.say(intent, step_id=step_id, recipient=to, **fields)
            item = await self._arrived(to, step, arrival)
            if item.kind == "verdict":
                raise NotTaken(self, to, str(item.body_value("note") or item.body_value("verdict")))
        except NotTaken as no:
            self.line.retreat(step_id, tips)
            await self.say(
                f"Not handed to {to}: {intent}",
                status="skipped",
                reasoning_chain=[f"It did not pass: {no.why}.", "I leave it out and do not send it again."],
                confidence_score=0.6,
            )
            raise
        finally:
            self.story_agents.forget(step_id)
        self.end()
        return StoryPart(
            self.story_agents, to, self.rng, self.story_agents.agents[to].session(continues=self.line), item
        )

    async def _arrived(self, to: str, step: AsyncStep, arrival: "asyncio.Future[Received]") -> Received:
        try:
            is_held = (await step.answer(ARRIVAL_S)).state == "held"
        except (Rejected, NotAnswered) as no:
            reason = no.reason if isinstance(no, Rejected) else "the gateway does not answer"
            raise NotTaken(self, to, reason or "refused") from no
        waited, orders = 0.0, self.story_agents.agents[self.name].orders
        while waited < ARRIVAL_S or is_held:  # held, it waits for a person, however long that takes
            done, _ = await asyncio.wait([arrival], timeout=LOOK_AGAIN_S)
            if done:
                return arrival.result()
            if orders.is_cancelled(self.session_id) or orders.closed:
                break
            waited += LOOK_AGAIN_S
        raise NotTaken(self, to, "it did not arrive within half a minute")

    async def has_prompts(self) -> bool:
        """Wait while it is paused; whether a person has sent it prompts, which its next message answers."""
        self.begin_work()
        with contextlib.suppress(Cancelled):  # its next message will find out
            await run_async(gate.wait_while_held(self.story_agents.agents[self.name], self.session_id))
        self._put_back += self.story_agents.prompts(self.name, self.session_id)
        return bool(self._put_back)

    def put_back(self, prompt: Prompt) -> None:
        """To be met by the next word."""
        self._put_back.append(prompt)

    def end(self) -> None:
        """Nothing more to do on this line."""
        if self._at_work:
            self._at_work = False
            self.story_agents.end_work(self.name, self.session_id)
            self.story_agents.remember(self.name, self.line)

    def begin_work(self) -> None:
        if not self._at_work:
            self._at_work = True
            self.story_agents.start_work(self.name, self.session_id)

    # What it received.

    def _looked_up(self, fields: dict[str, Any]) -> dict[str, Any]:
        notes: list[str] = []
        facts: list[str] = []
        kept, self._put_back = self._put_back, []
        for prompt in (*kept, *self.story_agents.prompts(self.name, self.session_id)):
            notes.append(spoken_of(prompt))
            facts += ruled(prompt)
        if (instructions := self.story_agents.news_of_instructions(self.name)) is not None:
            notes.append(
                f"New instructions for my type: “{_short(instructions)}” From here on I work by them."
            )
        if self._is_new and self.heard is not None:
            self._is_new = False
            sender = self.heard.sender.agent_id if self.heard.sender is not None else "A colleague"
            notes.append(f"{sender} hands over: “{_short(self.brief)}”")
        if not notes and not facts:
            return fields
        memory = [*(fields.get("added_to_memory") or ()), *facts]
        chain = [*notes, *(fields.get("reasoning_chain") or ())]
        return fields | {"reasoning_chain": chain} | ({"added_to_memory": memory} if memory else {})

    def _spent(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Tokens, money and time, where the play does not say."""
        tokens = fields.get("tokens_consumed") or self.rng.randint(600, 4200)
        price = self.story_agents.roles[self.name].kind.price
        cost = fields.get("cost", round(tokens / 1000 * price, 6))
        duration = fields.get("duration_ms", self.rng.randint(80, 2600))
        return {"tokens_consumed": tokens, "cost": cost, "duration_ms": duration}


def spoken_of(prompt: Prompt) -> str:
    """Its first paragraph: what follows there quotes agents, and is not to be repeated."""
    words = _short(prompt.text.partition("\n\n")[0]).rstrip(".")
    return f"A person says: “{words}.” I take that into account before I go on."


def ruled(prompt: Prompt) -> list[str]:
    """A ruling on a disagreement, as the fact it makes: the agent states it and holds it from now on."""
    found = _RULING.search(prompt.text)
    if found is None:
        return []
    with contextlib.suppress(ValueError):
        subject = json.loads(prompt.text.rpartition(": ")[2])
        return [f"{subject} is {found['value']}"]
    return []


def _short(text: str, most: int = 280) -> str:
    words = " ".join(text.split())
    return words if len(words) <= most else words[: most - 1] + "…"
