"""The second half of a report: from the analyst's brief to the publisher's desk."""

import asyncio

from observatory.demo.cast import CHECKER, PUBLISHER, WRITER
from observatory.demo.chance import score
from observatory.demo.part import StoryPart
from observatory.demo.story import OBJECTIONS, SECTIONS, Company, Lead, Size


async def publish(analyst: StoryPart, company: Company, size: Size, leads: list[Lead], team: str) -> None:
    story_agents, rng = analyst.story_agents, analyst.rng
    writer = await analyst.hand(
        story_agents.pick(WRITER, rng, team),
        f"Brief the writer: {company.headline}",
        tool_call="brief",
        tool_input={"headline": company.headline, "findings": len(leads)},
        confidence_score=score(rng, 0.8),
    )
    headline = writer.given("headline", company.headline)
    writer = await draft(writer, headline, size, leads)
    if size.is_checked:
        writer = await review(writer, headline, leads, story_agents.pick(CHECKER, rng, team))
    publisher = await writer.hand(
        story_agents.pick(PUBLISHER, rng, team),
        f"Submit: {headline}",
        tool_call="submit_draft",
        tool_input={"headline": headline, "words": rng.randint(380, 1900)},
        confidence_score=score(rng, 0.84),
    )
    await publisher.say(
        f"File: {publisher.given('headline', headline)}",
        tool_call="file_note",
        tool_input={"headline": publisher.given("headline", headline), "audience": "internal"},
        tool_output_summary="Filed for the morning meeting",
        confidence_score=score(rng, 0.92),
        terminal=True,
    )
    story_agents.beat(publisher.name, "idle")
    publisher.end()


async def draft(writer: StoryPart, headline: str, size: Size, leads: list[Lead]) -> StoryPart:
    """Sections side by side, then one text."""
    rng, story_agents = writer.rng, writer.story_agents
    facts = [lead.fact for lead in leads]
    story_agents.beat(writer.name, "busy", headline, 60)
    forks = [writer.fork() for _ in SECTIONS[: size.sections]]
    await asyncio.gather(
        *(
            fork.say(
                f"Write “{section}”: {headline}",
                tool_call="write_section",
                tool_input={"section": section},
                tool_output_summary=f"{rng.randint(90, 420)} words",
                read_from_memory=facts[:2],
                confidence_score=score(rng, 0.78),
            )
            for fork, section in zip(forks, SECTIONS, strict=False)
        )
    )
    writer.join(*forks)
    for fork in forks:
        fork.end()
    await writer.say(
        f"Draft: {headline}",
        tool_call="write_draft",
        tool_input={"headline": headline},
        tool_output_summary=f"{rng.randint(380, 1900)} words",
        read_from_memory=facts,
        reasoning_chain=["Lead with what changed.", "Every figure keeps its source."],
        confidence_score=score(rng, 0.76),
    )
    return writer


def _page(fact: str, attempt: int) -> int:
    """Where a source has a fact; a second look finds it elsewhere too, so it is no repetition."""
    return 3 + sum(map(ord, fact)) % 170 + 11 * attempt


async def review(writer: StoryPart, headline: str, leads: list[Lead], checker_name: str) -> StoryPart:
    """The checker goes through the claims; an objection sends it back once."""
    rng, name = writer.rng, writer.name
    for attempt in range(2):
        checker = await writer.hand(
            checker_name,
            f"{'Revised' if attempt else 'For review'}: {headline}",
            tool_call="request_review",
            tool_input={"headline": headline, "version": attempt + 1},
            confidence_score=score(rng, 0.75),
        )
        for lead in leads[: 3 if attempt else 5]:
            await checker.say(
                f"Check: {lead.fact}",
                tool_call="check_claim",
                tool_input={"claim": lead.fact, "source": lead.source, "draft": attempt + 1},
                tool_output_summary=f"Page {_page(lead.fact, attempt)} of {lead.source} has it",
                read_from_memory=[lead.fact],
                citations=[lead.source],
                confidence_score=score(rng, 0.86),
            )
        is_content = attempt == 1 or rng.random() < 0.7
        writer = await checker.hand(
            name,
            f"{'Clear' if is_content else 'Object to'}: {headline}",
            tool_call="give_verdict",
            tool_output_summary="Every claim has its source" if is_content else rng.choice(OBJECTIONS),
            status="success" if is_content else "failure",
            confidence_score=score(rng, 0.84),
        )
        if is_content:
            break
        await writer.say(
            f"Revise: {headline}",
            tool_call="write_draft",
            tool_input={"headline": headline, "version": attempt + 2},
            tool_output_summary="Two sentences changed, one removed",
            reasoning_chain=[f"The checker objects: {writer.brief}", "It is right."],
            confidence_score=score(rng, 0.72),
        )
    return writer
