"""How the simulated agents behave: each play is an endless generator that says one message per turn.

Law: content depends on the seed alone; ids and times are real. Plays use the SDK as an agent would
(sessions, forks, joins, handoffs), and the one that misbehaves does so through `raw`.
"""

import time
from collections.abc import Iterator
from random import Random
from typing import TypedDict

from observatory.demo.story import OBJECTIONS, OBSTACLES, STUCK, TOPICS, Lead, Topic
from observatory.sdk import Agent, Session
from observatory.sdk.step import new_id

Crew = dict[str, list[Agent]]
_PRICE = 0.000004  # a token, in dollars


def newsroom(crew: Crew, rng: Random) -> Iterator[None]:
    """Plan, research in parallel, merge, write, review, publish; then the next topic."""
    planners = crew.get("planner") or next(iter(crew.values()))
    while True:
        topic = rng.choice(TOPICS)
        s = rng.choice(planners).session()
        s.step(
            f"Plan: {topic.title}",
            reasoning_chain=[topic.angle, f"{len(topic.leads)} questions can be followed in parallel."],
            strategy_used="PlanAndExecute",
            confidence_score=_score(rng, 0.7),
            **_spent(rng),
        )
        yield
        researchers = crew.get("researcher") or planners
        lines = [researchers[n % len(researchers)].session(continues=s) for n in range(len(topic.leads))]
        tracks = [_research(line, lead, rng) for line, lead in zip(lines, topic.leads, strict=True)]
        while tracks:  # the branches talk in turns, as they would in parallel
            track = rng.choice(tracks)
            try:
                next(track)
            except StopIteration:
                tracks.remove(track)
                continue
            yield
        s.join(*lines).step(
            f"Merge findings: {topic.title}",
            reasoning_chain=["All questions came back.", "No two findings contradict each other."],
            read_from_memory=[lead.fact for lead in topic.leads],
            confidence_score=_score(rng, 0.8),
            **_spent(rng),
        )
        yield
        yield from _publish(crew, planners, s, topic, rng)


def _research(s: Session, lead: Lead, rng: Random) -> Iterator[None]:
    if rng.random() < 0.25:
        s.step(
            lead.question,
            tool_call="http_fetch",
            tool_input={"url": lead.source},
            tool_output_summary=rng.choice(OBSTACLES),
            status="failure",
            reasoning_chain=["Start with the primary source."],
            confidence_score=_score(rng, 0.3),
            **_spent(rng),
        )
        yield
    s.step(
        lead.question,
        tool_call="serp_search",
        tool_input={"query": lead.query, "limit": rng.choice((5, 10, 20))},
        tool_output_summary=f"{rng.randint(4, 20)} results; {lead.source} ranks first",
        reasoning_chain=["Find the document first.", "Prefer the primary source over news."],
        strategy_used="ReAct",
        confidence_score=_score(rng, 0.6),
        **_spent(rng),
    )
    yield
    s.step(
        lead.question,
        tool_call="read_document",
        tool_input={"url": lead.source},
        tool_output_summary=lead.finding,
        reasoning_chain=["The document answers the question directly."],
        alternatives=[{"option": "Trust the search snippet", "why_not": "Snippets are often a year old."}],
        citations=[lead.source],
        added_to_memory=[lead.fact],
        confidence_score=_score(rng, 0.85),
        **_spent(rng),
    )
    yield


def _publish(crew: Crew, planners: list[Agent], s: Session, topic: Topic, rng: Random) -> Iterator[None]:
    writer = rng.choice(crew.get("writer") or planners)
    reviewer = rng.choice(crew.get("reviewer") or planners)
    deployer = rng.choice(crew.get("deployer") or planners)
    for attempt in range(3):
        s = writer.session(continues=s)
        s.step(
            f"{'Revise' if attempt else 'Draft'}: {topic.headline}",
            tool_call="write_draft",
            tool_input={"headline": topic.headline, "version": attempt + 1},
            tool_output_summary=f"{rng.randint(380, 900)} words",
            read_from_memory=[lead.fact for lead in topic.leads],
            recipient=reviewer.agent_id,
            confidence_score=_score(rng, 0.75),
            **_spent(rng),
        )
        yield
        s = reviewer.session(continues=s)
        content = attempt == 2 or rng.random() < 0.65
        s.step(
            f"Review: {topic.headline}",
            tool_call="check_claims",
            tool_input={"claims": len(topic.leads)},
            tool_output_summary="Every claim has its source" if content else rng.choice(OBJECTIONS),
            status="success" if content else "failure",
            recipient=deployer.agent_id if content else writer.agent_id,
            confidence_score=_score(rng, 0.8),
            **_spent(rng),
        )
        yield
        if content:
            break
    s = deployer.session(continues=s)
    outcomes = [False, True] if rng.random() < 0.2 else [True]
    for live in outcomes:
        s.step(
            f"Publish: {topic.headline}",
            tool_call="deploy_page",
            tool_input={"slug": topic.title.lower().replace(": ", "-").replace(" ", "-")},
            tool_output_summary="Live on all edges" if live else "CDN purge answered 502",
            status="success" if live else "failure",
            terminal=live,
            **_spent(rng),
        )
        yield


def looper(crew: Crew, rng: Random) -> Iterator[None]:
    """A crawler that works for a while, then says the same and fails the same way again and again."""
    (agent,) = (agent for agents in crew.values() for agent in agents)
    while True:
        s = agent.session()
        topic = rng.choice(TOPICS)
        for lead in topic.leads[: rng.randint(1, 2)]:
            s.step(
                lead.question,
                tool_call="crawl",
                tool_input={"url": lead.source},
                tool_output_summary=lead.finding,
                confidence_score=_score(rng, 0.6),
                **_spent(rng),
            )
            yield
        intent, tool, tool_input, outcome = rng.choice(STUCK)
        for _ in range(rng.randint(8, 16)):
            s.step(
                intent,
                tool_call=tool,
                tool_input=tool_input,
                tool_output_summary=outcome,
                status="failure",
                reasoning_chain=["The page was not ready.", "Trying the same again should work."],
                confidence_score=0.55,
                entropy_score=0.1,
                **_spent(rng),
            )
            yield


def sloppy(crew: Crew, rng: Random) -> Iterator[None]:
    """An old scraper: every few messages one does not follow the schema."""
    (agent,) = (agent for agents in crew.values() for agent in agents)
    while True:
        s = agent.session()
        for lead in rng.choice(TOPICS).leads:
            s.step(
                lead.question,
                tool_call="scrape",
                tool_input={"url": lead.source},
                tool_output_summary=lead.finding,
                added_to_memory=[lead.fact],
                **_spent(rng),
            )
            yield
        agent.raw(_broken(agent, lead, rng.randrange(5)))
        yield


def _broken(agent: Agent, lead: Lead, how: int) -> dict[str, object]:
    meta: dict[str, object] = {
        "trace_id": new_id(),
        "parent_step_id": None,
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cluster_id": agent.cluster,
    }
    cognition: dict[str, object] = {"intent": lead.question, "confidence_score": 0.5}
    action: dict[str, object] = {"tool_call": "scrape", "status": "success"}
    log: dict[str, object] = {"meta": meta, "identity": agent.identity}
    log |= {"cognition": cognition, "action": action}
    match how:
        case 0:
            cognition["confidence_score"] = 7.5  # a percentage where a share was asked for
        case 1:
            action["status"] = "done"
        case 2:
            del log["action"]
        case 3:
            meta["timestamp"] = "yesterday 14:32"
        case _:
            cognition["reasoning_chain"] = "one long string"
            meta["trace_id"] = "run-17"
    return log


def _score(rng: Random, middle: float) -> float:
    return round(min(max(rng.gauss(middle, 0.08), 0.05), 0.99), 2)


class _Spent(TypedDict):
    tokens_consumed: int
    cost: float
    duration_ms: int


def _spent(rng: Random) -> _Spent:
    tokens = rng.randint(350, 3200)
    return {
        "tokens_consumed": tokens,
        "cost": round(tokens * _PRICE, 6),
        "duration_ms": rng.randint(40, 2600),
    }
