"""What goes wrong in the mesh, each by its name: the first half, where one agent is the matter.

Each incident is a session or two of its own, played by the same rules as all work: who is paused waits, what
is injected is heeded, what is rejected never happens. Law: an incident announces itself once it can be seen.
"""

import asyncio
from collections.abc import Callable
from random import Random

from observatory.demo.agents import StoryAgents
from observatory.demo.cast import PLANNER
from observatory.demo.chance import score
from observatory.demo.part import StoryPart
from observatory.demo.story import SHARES_A, SHARES_B
from observatory.sdk.step import new_id, write_log

LEAST_SILENCE_S = 40.0
Announce = Callable[[str, str, str], None]
"""(incident, what happens, path of the page that shows it)."""


async def loop(story_agents: StoryAgents, rng: Random, announce: Announce) -> None:
    """researcher-beta-3 repeats a failing search until a person says something, or it gives up."""
    name = "researcher-beta-3"
    with story_agents.reserve(name):
        planner = StoryPart.opening(story_agents, story_agents.pick(PLANNER, rng, "beta"), rng)
        await planner.say(
            "Supplier check: Helvar Robotics",
            reasoning_chain=[
                "One missing figure: the top supplier's share.",
                "beta-3 knows the trade press.",
            ],
            confidence_score=score(rng, 0.8),
        )
        part = await planner.hand(
            name,
            "Assign: find the share of Helvar's top supplier",
            tool_call="assign",
            tool_input={"question": "find the share of Helvar's top supplier"},
            confidence_score=score(rng, 0.8),
        )
        story_agents.beat(name, "busy", "Share of Helvar's top supplier", 20)
        for turn in range(30):
            step = await part.say(
                "Find the share of Helvar's top supplier",
                is_urgent=True,
                tool_call="serp_search",
                tool_input={"query": "Helvar Robotics top supplier share of purchases", "limit": 10},
                tool_output_summary="HTTP 429 from the search API: quota used up",
                status="failure",
                reasoning_chain=["The search did not answer.", "Trying the same again should work."],
                confidence_score=0.55,
                entropy_score=0.9,
            )
            if turn == 5:
                words = f"{name} repeats a failing `serp_search`: pause it, inject a hint, let it go on"
                announce("loop", words, f"/sessions/{part.session_id}?step={step.step_id}")
            await story_agents.rest(2.6)
            if await part.has_prompts():
                break
        await part.say(
            "Look for the supplier in the annual report instead",
            tool_call="read_document",
            tool_input={"url": "https://filings.example/hlvr/annual", "section": "suppliers"},
            tool_output_summary="Largest supplier: 23 % of purchases",
            reasoning_chain=["The search API is exhausted; the filing is not."],
            alternatives=[{"option": "Search once more", "why_not": "The quota is used up until midnight."}],
            citations=["https://filings.example/hlvr/annual"],
            added_to_memory=["Helvar top supplier share was 23 percent"],
            confidence_score=0.83,
        )
        await part.say("Supplier share found, work done", terminal=True, confidence_score=0.85)
        part.end()


async def violation(story_agents: StoryAgents, rng: Random, announce: Announce) -> None:
    """A bad deploy: code_runner v3.0.0 forgets `intent`; after a minute it is rolled back."""
    names = [name for name in ("code-runner-delta-1", "code-runner-gamma-1") if story_agents.has(name)]
    with story_agents.reserve(*names):
        await story_agents.rest(1)
        for turn in range(14):
            for name in names[: 1 if turn < 2 else 2]:
                await story_agents.agents[name].raw(without_intent(story_agents, name))
            if turn == 1:
                words = "the new code_runner v3.0.0 drops `intent`: its messages are refused"
                announce("violation", words, f"/fleet?peek=agent:{names[0]}")
            await story_agents.rest(4.5)
        for name in names:
            part = StoryPart.opening(story_agents, name, rng)
            await part.say(
                "Roll back to 2.9.4 and run the self-test",
                tool_call="self_test",
                tool_output_summary="42 of 42 passed",
                reasoning_chain=["v3.0.0 wrote logs without intent.", "2.9.4 is known to be good."],
                confidence_score=0.95,
                terminal=True,
            )
            part.end()


def without_intent(story_agents: StoryAgents, name: str) -> bytes:
    """A DecisionLog as v3.0.0 writes it."""
    agent = story_agents.agents[name]
    step_id = new_id()
    meta = {"trace_id": step_id, "step_id": step_id, "parent_step_id": None, "cluster_id": agent.cluster}
    identity = {**agent.identity, "capability_version": "v3.0.0"}
    log = write_log(meta, identity, None, "?", tool_call="python_run", tool_input={"file": "models/kstl.py"})
    return log.replace(b'"intent":"?"', b'"confidence_score":0.9')


async def drift(story_agents: StoryAgents, rng: Random, announce: Announce) -> None:
    """Two analysts of one cluster hold different share counts of the same company."""
    first, second = "analyst-alpha-1", "analyst-alpha-2"
    with story_agents.reserve(first, second):
        planner = StoryPart.opening(story_agents, story_agents.pick(PLANNER, rng, "alpha"), rng)
        await planner.say(
            "Per-share figures: Helvar Robotics",
            reasoning_chain=["Both analysts check the share count on their own."],
            confidence_score=score(rng, 0.8),
        )
        sides = ((first, SHARES_A, "annual report, note 21"), (second, SHARES_B, "convertible prospectus"))
        parts = []
        for name, claim, source in sides:
            part = await planner.fork().hand(
                name, "Assign: diluted share count", tool_call="assign", confidence_score=score(rng, 0.8)
            )
            await part.say(
                "State the diluted share count",
                tool_call="read_document",
                tool_input={"document": source},
                tool_output_summary=claim,
                reasoning_chain=[f"Source: {source}.", claim],
                alternatives=[{"option": "Take the count of the terminal", "why_not": "It lags a quarter."}],
                added_to_memory=[claim],
                confidence_score=0.88,
            )
            parts.append(part)
        planner.end()
        page = f"/sessions/{planner.session_id}"
        announce("drift", f"{first} and {second} hold different share counts of Helvar", page)
        for _ in range(15):
            await story_agents.rest(3)
            for part in parts:
                if await part.has_prompts():
                    await part.say("State the diluted share count again", confidence_score=0.95)
        for part, (_, claim, _) in zip(parts, sides, strict=True):
            await part.say(
                "Compute earnings per share",
                tool_call="python_run",
                tool_output_summary="0.91 a share" if claim is SHARES_A else "0.85 a share",
                read_from_memory=[claim],
                confidence_score=0.8,
            )
        parts[0].join(parts[1])
        await parts[0].say("Hand in the per-share table", terminal=True, confidence_score=0.7)
        for part in parts:
            part.end()


async def silence(story_agents: StoryAgents, rng: Random, announce: Announce) -> None:
    """An agent stops its heartbeat in the middle of its work; much later it is started again."""
    name = "filings-gamma-1"
    with story_agents.reserve(name):
        planner = StoryPart.opening(story_agents, story_agents.pick(PLANNER, rng, "gamma"), rng)
        await planner.say("Read the annual report: Bremelle Foods", confidence_score=score(rng, 0.8))
        part = await planner.hand(name, "Assign: read chapter 4", tool_call="assign")
        story_agents.beat(name, "busy", "Chapter 4 of Bremelle's annual report", 40)
        await part.say(
            "Open chapter 4 of the annual report",
            tool_call="read_document",
            tool_input={"url": "https://filings.example/brml/annual", "chapter": 4},
            tool_output_summary="212 pages; reading",
            confidence_score=0.8,
        )
        await story_agents.fall_silent(name)
        words = f"{name} has stopped its heartbeat in the middle of its work"
        announce("silence", words, f"/fleet?peek=agent:{name}")
        await asyncio.sleep(
            max(100 / story_agents.pace, LEAST_SILENCE_S)
        )  # the gateway's clock knows no pace
        agent = story_agents.hire(name)
        story_agents.listen(name)
        back = StoryPart(story_agents, name, rng, agent.session(continues=part.line))
        await back.say(
            "Restarted: go on with chapter 4",
            reasoning_chain=["My process was killed; what I had read is on record."],
            confidence_score=0.75,
        )
        await back.say("Chapter 4 read, nothing unusual", terminal=True, confidence_score=0.8)
        part.end()
        back.end()
