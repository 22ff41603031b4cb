"""Two short plays whose end stays to be looked at: an agent that the desk pauses, and a sealed decision."""

from random import Random

from observatory.demo.agents import StoryAgents
from observatory.demo.chance import score
from observatory.demo.incidents import Announce
from observatory.demo.part import StoryPart
from observatory.sdk import NotAnswered, Rejected

RECALLED = "publisher-delta-1"
ANALYST = "analyst-delta-1"


async def pause(story_agents: StoryAgents, rng: Random, announce: Announce) -> None:
    """publisher-delta-1 writes to the wrong list; the operator pauses it, and it waits."""
    with story_agents.reserve(RECALLED):
        part = StoryPart.opening(story_agents, RECALLED, rng)
        step = await part.say(
            "Send the Helvar note to its readers",
            tool_call="send_wire",
            tool_input={"list": "press", "note": "Helvar Robotics, orders"},
            tool_output_summary="312 addresses of the press list; the clients' list was meant",
            status="failure",
            reasoning_chain=["The list is called readers.", "The first match is the press list."],
            confidence_score=0.64,
        )
        words = f"{RECALLED} wrote to the press list: the desk pauses it and says why"
        announce("pause", words, f"/sessions/{part.session_id}?step={step.step_id}")
        await story_agents.operator("pause")  # however late: what it says next is to be held
        await story_agents.rest(4)
        await part.say(  # it waits here for as long as it is paused
            "Correct the list and send the note to the clients",
            tool_call="send_wire",
            tool_input={"list": "clients", "note": "Helvar Robotics, orders"},
            tool_output_summary="4,210 addresses",
            reasoning_chain=["I was resumed; the list is the clients' now."],
            confidence_score=0.9,
            terminal=True,
        )
        part.end()


async def proof(story_agents: StoryAgents, rng: Random, announce: Announce) -> None:
    """analyst-delta-1 writes its reasons down as it decides, and seals them."""
    agent = story_agents.agents[ANALYST]
    part = StoryPart.opening(story_agents, ANALYST, rng)
    step = await part.say(
        "Rate Kastell Energie: hold or reduce",
        tool_call="read_model",
        tool_input={"model": "models/kstl.py"},
        tool_output_summary="Debt is 4.1 times earnings; the covenant allows 4.5",
        reasoning_chain=["A rating moves money, so its reasons are written down and sealed."],
        confidence_score=score(rng, 0.82),
    )
    await part.has_prompts()  # paused meanwhile, it waits
    try:
        async with agent.proof("Rate Kastell Energie: hold or reduce", session_id=part.session_id) as trail:
            await trail.think("plan", "Debt against the covenant first, then what the price already knows.")
            await trail.think("analysis", "4.1 times earnings in June, 3.6 a year before; the limit is 4.5.")
            await trail.think(
                "decision",
                {
                    "choice": "Hold",
                    "alternatives": ["Reduce: the next step up in debt breaks the covenant", "Buy"],
                    "why": "The price is that of a breach, and two quarters of room are left.",
                },
            )
            trail.conclude(
                happened="The rating stays at hold.",
                proved="Debt stands at 4.1 times earnings by the half-year filing.",
                uncertain="Whether the sale of the grid closes before December.",
            )
    except (Rejected, NotAnswered):  # the words of the step stand; only nothing was proved
        part.end()
        return
    words = f"{ANALYST} rated Kastell Energie and sealed its reasons: prove them"
    announce("proof", words, f"/sessions/{part.session_id}?step={step.step_id}")
    await part.say(
        "Hand in the rating: hold",
        tool_call="file_rating",
        tool_input={"ticker": "KSTL", "rating": "hold"},
        tool_output_summary="Filed, with its sealed reasons",
        confidence_score=score(rng, 0.86),
        terminal=True,
    )
    part.end()
