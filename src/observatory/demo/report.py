"""The daily work: a report from the plan to the desk of the publisher, by agents that hand it to each other.

Each report is its own session: planned, forked into questions that are followed in parallel, joined,
modelled, written, checked, filed. Law: its content depends on the seed and the report's number, and on what
people do to it.
"""

import asyncio
from random import Random

from observatory.demo.agents import StoryAgents
from observatory.demo.cast import ANALYST, FILINGS, PLANNER, RESEARCHER, RUNNER
from observatory.demo.chance import new_run, score
from observatory.demo.part import Ended, NotTaken, StoryPart
from observatory.demo.story import COMPANIES, METHODS, OBSTACLES, PLAN_STEPS, SNIPPETS, Company, Lead, Size
from observatory.demo.writing import publish

FLASH = Size("Flash note", 1, 0, False, False)
UPDATE = Size("Results update", 3, 2, True, True)
INITIATION = Size("Initiation", 5, 5, True, True)


async def report(story_agents: StoryAgents, number: int) -> None:
    """One report, begun to filed."""
    rng = Random(f"{story_agents.seed}/report/{number}")
    company = rng.choice(COMPANIES)
    size = rng.choices((FLASH, UPDATE, INITIATION), (3, 5, 2))[0]
    team = rng.choice(sorted({role.team for role in story_agents.roles.values()}))
    planner = StoryPart.opening(story_agents, story_agents.pick(PLANNER, rng, team), rng)
    await write_report(planner, company, size, team)


async def write_report(planner: StoryPart, company: Company, size: Size, team: str) -> None:
    story_agents, rng = planner.story_agents, planner.rng
    title = f"{size.title}: {company.name}"
    story_agents.beat(planner.name, "busy", title, 5)
    taken, dropped, why = rng.choice(METHODS)
    await planner.say(
        title,
        reasoning_chain=[company.angle, *PLAN_STEPS],
        strategy_used="PlanAndExecute",
        alternatives=[{"option": f"{taken} over {dropped}", "why_not": why}],
        confidence_score=score(rng, 0.8),
    )
    leads = company.leads[: size.leads]
    lines = await asyncio.gather(
        *(follow(planner.fork(), lead, company, team) for lead in leads), return_exceptions=True
    )
    found = [(part, lead) for part, lead in zip(lines, leads, strict=True) if isinstance(part, StoryPart)]
    for lost in lines:
        if isinstance(lost, BaseException) and not isinstance(lost, Ended | NotTaken):
            raise lost
    planner.end()
    if not found:
        last = planner.fork()
        await last.say(f"Shelve: {title}", reasoning_chain=["No question was answered."], terminal=True)
        return last.end()
    analyst = await merge(found, company, team, story_agents.pick(ANALYST, rng, team))
    if size.is_modelled:
        analyst = await model(analyst, company, team)
    await publish(analyst, company, size, [lead for _, lead in found], team)


async def follow(planner: StoryPart, lead: Lead, company: Company, team: str) -> StoryPart:
    """One question: assigned, searched, read. Ends with the agent that found the answer."""
    story_agents, rng = planner.story_agents, planner.rng
    is_filing = "filings" in lead.source or "sec." in lead.source
    reader = story_agents.pick(FILINGS if is_filing else RESEARCHER, rng, team)
    part = await planner.hand(
        reader,
        f"Assign: {lead.question}",
        tool_call="assign",
        tool_input={"question": lead.question, "company": company.name},
        confidence_score=score(rng, 0.85),
    )
    question = part.given("question", lead.question)
    story_agents.beat(reader, "busy", question, 10)
    if rng.random() < 0.25:
        await part.say(
            question,
            tool_call="edgar_fetch" if is_filing else "http_fetch",
            tool_input={"url": lead.source},
            tool_output_summary=rng.choice(OBSTACLES),
            status="failure",
            reasoning_chain=["Start with the primary source.", "It does not answer; look for a mirror."],
            confidence_score=score(rng, 0.38),
        )
    await part.say(
        f"Search: {lead.query}",
        tool_call="edgar_search" if is_filing else "serp_search",
        tool_input={"query": lead.query, "limit": rng.choice((5, 10, 20))},
        tool_output_summary=f"{rng.randint(4, 20)} results; {lead.source} ranks first",
        reasoning_chain=["Find the document first.", "Prefer the primary source over news."],
        strategy_used="ReAct",
        confidence_score=score(rng, 0.68),
    )
    option, why_not = rng.choice(SNIPPETS)
    await part.say(
        question,
        tool_call="read_document",
        tool_input={"url": lead.source},
        tool_output_summary=lead.finding,
        reasoning_chain=["The document answers the question directly.", f"It says: {lead.finding}."],
        alternatives=[{"option": option, "why_not": why_not}],
        citations=[lead.source],
        added_to_memory=[lead.fact],
        confidence_score=score(rng, 0.86),
    )
    story_agents.beat(reader, "busy", question, 90)
    return part


async def merge(found: list[tuple[StoryPart, Lead]], company: Company, team: str, analyst: str) -> StoryPart:
    """Every finding goes to the analyst, who joins them."""
    rng = found[0][0].rng
    arrived = await asyncio.gather(
        *(
            part.hand(
                analyst,
                f"Report: {lead.question}",
                tool_call="report_finding",
                tool_input={"finding": lead.finding},
                tool_output_summary=lead.finding,
                citations=[lead.source],
                confidence_score=score(rng, 0.85),
            )
            for part, lead in found
        ),
        return_exceptions=True,
    )
    lines = [part for part in arrived if isinstance(part, StoryPart)]
    if not lines:
        raise next(no for no in arrived if isinstance(no, BaseException))
    first, *others = lines
    # A handed-over message is the last step of its sender.
    sent = [part.line for (part, _), got in zip(found, arrived, strict=True) if isinstance(got, StoryPart)]
    first.line.join(*sent[1:])
    briefs = [part.brief for part in lines]
    first.story_agents.beat(analyst, "busy", f"Merge: {company.name}", 40)
    await first.say(
        f"Merge {len(lines)} findings: {company.name}",
        reasoning_chain=[f"In hand: {'; '.join(briefs)}.", "No two of them contradict each other."],
        read_from_memory=[lead.fact for _, lead in found],
        confidence_score=score(rng, 0.82),
    )
    for other in others:
        other.end()
    return first


async def model(analyst: StoryPart, company: Company, team: str) -> StoryPart:
    """The analyst has the model run and reads what comes back."""
    story_agents, rng = analyst.story_agents, analyst.rng
    name, growth = analyst.name, rng.randint(3, 14)
    runner = await analyst.hand(
        story_agents.pick(RUNNER, rng, team),
        f"Run the model: {company.ticker}",
        tool_call="request_run",
        tool_input={"notebook": f"models/{company.ticker.lower()}.py", "growth_pct": growth},
        confidence_score=score(rng, 0.8),
    )
    story_agents.beat(runner.name, "busy", f"Model of {company.ticker}", 50)
    await runner.say(
        f"Execute models/{company.ticker.lower()}.py",
        tool_call="python_run",
        tool_input={"file": f"models/{company.ticker.lower()}.py", "growth_pct": growth},
        tool_output_summary=f"exit 0, {rng.randint(8, 40)} scenarios in {rng.randint(2, 9)} s",
        confidence_score=score(rng, 0.9),
    )
    low = rng.randint(40, 180)
    back = await runner.hand(
        name,
        f"Return the scenarios of {company.ticker}",
        tool_call="return_result",
        tool_output_summary=f"Fair value {low} to {low + rng.randint(8, 30)} a share",
        confidence_score=score(rng, 0.88),
    )
    await back.say(
        f"Read the range: {company.name}",
        reasoning_chain=[f"The model says: {back.brief}.", "Growth moves it more than the discount rate."],
        alternatives=[{"option": "Publish the midpoint", "why_not": "It hides what the range depends on."}],
        added_to_memory=[f"{company.name} model run {new_run(rng)}: {back.brief}"],
        confidence_score=score(rng, 0.74),
    )
    return back
