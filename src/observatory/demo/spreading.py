"""What goes wrong in the mesh: the second half, where it spreads from agent to agent or from step to step."""

import asyncio
from random import Random
from urllib.parse import quote

from observatory.demo.agents import StoryAgents
from observatory.demo.cast import PLANNER
from observatory.demo.chance import score
from observatory.demo.incidents import Announce
from observatory.demo.part import NotTaken, StoryPart
from observatory.demo.story import FALSE_CLAIM, NVDA
from observatory.sdk import Received
from observatory.sdk.step import new_id

SPENDER = "writer-beta-1"  # works for this story alone: daily work would use its cap up unseen
OUTAGE = "HTTP 503 from the filings API: upstream unavailable"


async def infection(story_agents: StoryAgents, rng: Random, announce: Announce) -> None:
    """researcher-gamma-2 makes a fact up; analysts and writers build on it, in this session and in others."""
    planner = StoryPart.opening(story_agents, story_agents.pick(PLANNER, rng, "gamma"), rng)
    await planner.say(
        "Calendar of results: semiconductors",
        reasoning_chain=["Fiscal years differ; get them right before anything is compared."],
        confidence_score=score(rng, 0.8),
    )
    source = await planner.hand(
        "researcher-gamma-2",
        "Assign: when does NVIDIA's fiscal year end?",
        tool_call="assign",
        tool_input={"question": "When does NVIDIA's fiscal year end?"},
    )
    await source.say(
        "When does NVIDIA's fiscal year end?",
        tool_call="serp_search",
        tool_input={"query": "NVDA fiscal year end"},
        tool_output_summary="A forum post of 2019 ranks first",
        reasoning_chain=["Most companies close their books in December.", "The snippet does not object."],
        added_to_memory=[FALSE_CLAIM],
        confidence_score=0.61,
    )
    announce(
        "infection",
        f"researcher-gamma-2 made up “{FALSE_CLAIM}”; watch who builds on it",
        f"/sessions/{source.session_id}",
    )
    origin = source.fork()
    part = source
    for name, intent, tool in (
        ("analyst-gamma-1", "Align NVIDIA's quarters with the calendar", "align_calendar"),
        ("analyst-gamma-2", "Compare December quarters across the sector", "compare_quarters"),
        ("writer-gamma-1", "Write: who reports when", "write_section"),
        ("checker-gamma-1", "Check: who reports when", "check_claim"),
    ):
        part = await part.hand(
            name, f"Pass on: {intent}", tool_call="hand_over", tool_output_summary=FALSE_CLAIM,
            read_from_memory=[FALSE_CLAIM], confidence_score=score(rng, 0.75),
        )  # fmt: skip
        await part.say(
            intent,
            tool_call=tool,
            tool_input={"company": "NVDA"},
            tool_output_summary="Done with the year end as handed over",
            reasoning_chain=[f"Given: {FALSE_CLAIM}.", "So its fourth quarter is the calendar's."],
            read_from_memory=[FALSE_CLAIM],
            confidence_score=score(rng, 0.78),
        )
    await part.say("Calendar filed", terminal=True, read_from_memory=[FALSE_CLAIM], confidence_score=0.8)
    part.end()
    origin.end()
    await elsewhere(story_agents, rng)
    announce(
        "refuted",
        f"the desk reads the annual report and marks “{FALSE_CLAIM}” false: see whom it reached",
        f"/forensics/infections?q={quote(FALSE_CLAIM)}",
    )


async def elsewhere(story_agents: StoryAgents, rng: Random) -> None:
    """Colleagues of the same cluster draw the claim out of memory for another report."""
    second = StoryPart.opening(story_agents, "analyst-gamma-1", rng)
    await second.say(
        f"Run rate: {NVDA.name}", reasoning_chain=["Start from what the team knows."], confidence_score=0.8
    )
    await second.say(
        "Annualise the last quarter",
        tool_call="python_run",
        tool_output_summary="Run rate as of December",
        read_from_memory=[FALSE_CLAIM],
        added_to_memory=["NVDA December quarter is its fourth"],
        confidence_score=score(rng, 0.8),
    )
    writer = await second.hand(
        "writer-gamma-1", "Brief the writer: the run rate", tool_call="brief",
        tool_output_summary=FALSE_CLAIM, read_from_memory=[FALSE_CLAIM],
    )  # fmt: skip
    await writer.say(
        "Draft: NVIDIA closes its year with the calendar",
        tool_call="write_draft",
        read_from_memory=[FALSE_CLAIM],
        confidence_score=score(rng, 0.7),
    )
    await writer.say("Draft set aside for the checker", terminal=True, confidence_score=0.75)
    writer.end()


async def cascade(story_agents: StoryAgents, rng: Random, announce: Announce) -> None:
    """The filings API is down: one reader fails, and the agents that need it fail after it."""
    reader_name = "filings-epsilon-1"
    planner = StoryPart.opening(story_agents, story_agents.pick(PLANNER, rng, "epsilon"), rng)
    await planner.say(
        "Model refresh: Kastell Energie",
        reasoning_chain=["Everything here starts from the half-year filing."],
        confidence_score=score(rng, 0.8),
    )
    reader = await planner.hand(
        reader_name,
        "Assign: fetch Kastell's half-year filing",
        tool_call="assign",
        tool_input={"question": "fetch Kastell's half-year filing"},
    )
    root = await reader.say(
        "Fetch Kastell's half-year filing",
        tool_call="filings_api",
        tool_input={"path": "/v2/kstl/half-year"},
        tool_output_summary=OUTAGE,
        status="failure",
        reasoning_chain=["The API answered 503.", "Hand on what is cached and say so."],
        confidence_score=0.4,
    )
    announce(
        "cascade",
        "the filings API is away; see how far one failed fetch goes",
        f"/sessions/{reader.session_id}?step={root.step_id}",
    )
    branches = [
        (reader.fork(), "analyst-epsilon-1", "Value the grid assets", "Balance sheet missing: no filing"),
        (reader.fork(), "analyst-epsilon-2", "Check the debt schedule", "No maturity table: no filing"),
        (reader.fork(), "checker-epsilon-1", "Check the half-year figures", "Nothing to check against"),
    ]
    reader.end()
    failed = await asyncio.gather(*(spread(*branch) for branch in branches), return_exceptions=True)
    parts = [part for part in failed if isinstance(part, StoryPart)]
    if not parts:
        return
    await report_failure(story_agents, parts)


async def spread(part: StoryPart, name: str, intent: str, problem: str) -> StoryPart:
    """What follows from a failure fails too."""
    nxt = await part.hand(
        name, f"Hand over the cached half: {intent}", tool_call="hand_over",
        tool_output_summary="Filing incomplete: " + OUTAGE, status="failure", confidence_score=0.38,
    )  # fmt: skip
    for attempt in range(2):
        await nxt.say(
            intent if not attempt else f"{intent}, second attempt",
            tool_call="python_run",
            tool_input={"attempt": attempt + 1},
            tool_output_summary=problem,
            status="failure",
            reasoning_chain=["The filing I was given is not whole."],
            confidence_score=0.3,
        )
    return nxt


async def report_failure(story_agents: StoryAgents, parts: list[StoryPart]) -> None:
    """The writer and the code runner downstream fail as well; then the work is put off."""
    runner_name, writer_name = "code-runner-epsilon-1", "writer-epsilon-1"
    try:
        runner = await parts[0].hand(
            runner_name, "Run the model without the filing", tool_call="request_run",
            tool_output_summary=OUTAGE, status="failure", confidence_score=0.35,
        )  # fmt: skip
        await runner.say(
            "Execute models/kstl.py",
            tool_call="python_run",
            tool_output_summary="KeyError: 'total_debt'",
            status="failure",
            confidence_score=0.3,
        )
        runner.end()
    except NotTaken:
        pass
    writer = await parts[-1].hand(
        writer_name, "Nothing checked: draft without figures", tool_call="hand_over",
        tool_output_summary="No figure could be checked", status="failure", confidence_score=0.35,
    )  # fmt: skip
    await story_agents.rest(4)
    await writer.say(
        "Put off: Kastell Energie",
        reasoning_chain=["The filings API is away; a report without figures is none."],
        status="failure",
        confidence_score=0.6,
        terminal=True,
    )
    for part in (*parts, writer):
        part.end()


async def budget(story_agents: StoryAgents, rng: Random, announce: Announce) -> None:
    """writer-beta-1 burns its cap: past the soft one a gate waits, elsewhere it nears the hard one."""
    announce("budget", f"{SPENDER} burns its cap of $2", f"/fleet?peek=agent:{SPENDER}")
    await story_agents.operator("budget")  # the operator raises its cap, or does not
    first = StoryPart.opening(story_agents, SPENDER, rng)
    story_agents.beat(SPENDER, "busy", "Long read: the year in chips", 10)
    await first.say("Long read: the year in chips", cost=0.05, confidence_score=score(rng, 0.8))
    verdicts: dict[str, asyncio.Future[Received]] = {}
    for chapter in range(1, 9):  # eight times 0.21: the soft cap of 1.50 is passed with the seventh
        step_id = new_id()
        verdicts[step_id] = story_agents.expect(step_id)
        await first.say(
            f"Rewrite chapter {chapter} in the company style",
            step_id=step_id,
            is_urgent=True,
            tool_call="write_section",
            tool_input={"chapter": chapter},
            tool_output_summary=f"{rng.randint(2100, 2900)} words, third version",
            tokens_consumed=rng.randint(21_000, 25_000),
            cost=0.21,
            confidence_score=score(rng, 0.7),
        )
        await story_agents.rest(1.6)
    second = StoryPart.opening(story_agents, SPENDER, rng)
    for box in range(1, 4):
        await second.say(
            f"Side box {box}: the year in chips",
            tool_call="write_section",
            tool_input={"box": box},
            tool_output_summary=f"{rng.randint(200, 300)} words",
            tokens_consumed=rng.randint(9_000, 12_000),
            cost=0.07,
            confidence_score=score(rng, 0.7),
        )
    first.end()
    patience_s = 200 / story_agents.pace
    done, _ = await asyncio.wait(verdicts.values(), timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
    for step_id in verdicts:
        story_agents.forget(step_id)
    reasons = [str(one.result().body_value("note") or one.result().body_value("verdict")) for one in done]
    words = "Chapters stopped, side boxes handed in" if reasons else "Side boxes handed in"
    reasons = [f"A person stopped the chapters: {why}." for why in reasons[:1]]
    await second.say(words, cost=0.0, terminal=True, reasoning_chain=reasons or None, confidence_score=0.8)
    second.end()
