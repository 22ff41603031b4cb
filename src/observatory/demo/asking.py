"""The demo incident `gate`: agents ask people for an approval and for a decision.

Law: a rejection is a value. What was approved is done as it was approved, perhaps edited; what was rejected
is not done, and the agent reports what it does instead.
"""

import asyncio
from random import Random

from observatory.demo.agents import StoryAgents
from observatory.demo.chance import score
from observatory.demo.incidents import Announce
from observatory.demo.part import Ended, StoryPart
from observatory.demo.story import HELVAR, NVDA
from observatory.sdk import Denied
from observatory.sdk.step import new_id


async def gate(story_agents: StoryAgents, rng: Random, announce: Announce) -> None:
    """publisher-alpha-1 asks before it publishes; a planner asks which date; a claim is weakly founded."""
    name, wire = "publisher-alpha-1", "publisher-beta-1"
    writer = StoryPart.opening(story_agents, "writer-alpha-1", rng)
    headline = rng.choice((NVDA, HELVAR)).headline
    await writer.say(
        f"Client report: {headline}",
        tool_call="write_draft",
        tool_input={"headline": headline},
        tool_output_summary="1,240 words, 6 charts",
        confidence_score=score(rng, 0.8),
    )
    await writer.say(
        "Estimate next year's margin from two quarters",
        reasoning_chain=["Two quarters are not a trend.", "No better figure exists before February."],
        confidence_score=0.34,
    )
    publisher = await writer.hand(
        name, f"Submit: {headline}", tool_call="submit_draft", tool_input={"headline": headline}
    )
    deciding = asyncio.create_task(choose_a_date(story_agents, rng))
    try:
        await ask_to_publish(publisher, publisher.given("headline", headline), wire, announce)
    finally:
        if not deciding.done():
            await asyncio.wait([deciding], timeout=1)


async def ask_to_publish(publisher: StoryPart, headline: str, wire: str, announce: Announce) -> None:
    story_agents, rng = publisher.story_agents, publisher.rng
    step_id = new_id()
    arrival = story_agents.expect(step_id)
    words = f"{publisher.name} asks before it publishes “{headline}”"
    announce("gate", words, "/inbox")
    publisher.begin_work()
    story_agents.beat(publisher.name, "waiting", f"Approval: {headline}", 95)
    order = {"headline": headline, "audience": "all clients", "copies": 4210, "risk": "high"}
    approval = await publisher.line.ask(
        f"Publish to all clients: {headline}",
        step_id=step_id,
        tool_call="publish_report",
        tool_input=order,
        recipient=wire,
        reasoning_chain=["What is sent to clients cannot be called back.", "So a person looks first."],
        alternatives=[{"option": "Publish at once", "why_not": "The desk's rule: nothing leaves unread."}],
        confidence_score=0.9,
    )
    try:
        if not approval:
            why = approval.note or approval.verdict
            await publisher.say(
                f"Not published: {headline}",
                tool_call="file_note",
                tool_input={"headline": headline, "audience": "internal"},
                reasoning_chain=[f"The answer was no: {why}.", "No client gets it; the desk does."],
                terminal=True,
                confidence_score=0.9,
            )
            return
        await asyncio.wait([arrival], timeout=30)
        sent = approval.tool_input if isinstance(approval.tool_input, dict) else order
        received = arrival.result() if arrival.done() else None
        out = StoryPart(
            story_agents, wire, rng, story_agents.agents[wire].session(continues=publisher.line), received
        )
        headline = out.given("headline", str(sent.get("headline", headline)))
        how = "as it was edited" if approval.edited else "as it was written"
        await out.say(
            f"Send to the wire: {headline}",
            tool_call="send_wire",
            tool_input={"headline": headline, "audience": sent.get("audience")},
            tool_output_summary=f"{sent.get('copies', 0)} copies out",
            reasoning_chain=[f"A person let it pass, {how}."],
            confidence_score=0.95,
            terminal=True,
        )
        out.end()
    finally:
        story_agents.forget(step_id)
        publisher.end()


async def choose_a_date(story_agents: StoryAgents, rng: Random) -> None:
    """A choice for a person; the gateway takes the default at the deadline."""
    name = "planner-alpha-1"
    part = StoryPart.opening(story_agents, name, rng)
    await part.say(
        "Schedule: NVIDIA preview",
        reasoning_chain=[
            "Results come out on Wednesday after the close.",
            "Before or after is not mine to say.",
        ],
        confidence_score=0.45,
    )
    options = (
        {"option_id": "tuesday", "label": "Tuesday, before the results", "risk_level": "high"},
        {"option_id": "thursday", "label": "Thursday, after the results", "risk_level": "low"},
    )
    try:
        async with part.line:
            choice = await story_agents.agents[name].decide(
                "When does the NVIDIA preview go out?",
                options,
                deadline=600,
                default="thursday",
                description="Tuesday may be wrong by Wednesday night; Thursday is what everybody prints.",
                owner=story_agents.owner,
            )
            await story_agents.agents[name].confirm(choice, "success", f"The preview goes out on {choice}")
        await part.say(f"Scheduled for {choice}", terminal=True, confidence_score=0.9)
    except Denied as no:
        await part.say(f"Not scheduled: {no.reason}", terminal=True, confidence_score=0.7)
    except Ended:
        pass
    finally:
        part.end()
