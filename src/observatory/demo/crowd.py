"""The crowd of the demo: hundreds of agents that only send, for a mesh of any size.

Law: an agent of the crowd has no channel and no heartbeat (a thousand open channels would cost more than they
receive); the gateway still records its messages. Its teams work like those of the story, without
addressing each other: causality is in the parents of its steps.
"""

import asyncio
from collections.abc import Iterator, Sequence
from random import Random
from typing import TypedDict

from observatory.demo.cast import Role
from observatory.demo.chance import score
from observatory.demo.story import COMPANIES, OBSTACLES, Lead
from observatory.sdk import Agent, Outbox, Session

Team = dict[str, list[Agent]]
TICK_S = 0.02
MAX_BEHIND_S = 1.0


def gather(roles: Sequence[Role], outbox: Outbox) -> list[Team]:
    """The teams of these roles, each agent under its type."""
    teams: dict[str, Team] = {}
    for role in roles:
        agent = Agent(
            role.agent_id,
            agent_type=role.kind.agent_type,
            version=role.kind.version,
            cluster=role.cluster,
            model=role.kind.model,
            provider=role.kind.provider,
            outbox=outbox,
            control=False,
        )
        teams.setdefault(role.team, {}).setdefault(role.kind.agent_type, []).append(agent)
    return list(teams.values())


async def play(teams: Sequence[Team], rate: float, seed: int) -> None:
    """Run all teams at `rate` messages a second, for ever."""
    plays = [work(team, teams[n - 1], Random(f"{seed}/crowd/{n}")) for n, team in enumerate(teams)]
    rng, clock = Random(f"{seed}/crowd"), asyncio.get_running_loop().time
    due = clock()
    while plays:
        due = max(due, clock() - MAX_BEHIND_S)
        while due <= clock():
            next(rng.choice(plays))
            due += 1 / rate
        await asyncio.sleep(max(due - clock(), TICK_S))


def work(team: Team, neighbours: Team, rng: Random) -> Iterator[None]:
    """Plan, research in parallel, merge, run, write, check, publish; one message a turn."""

    def one(kind: str, home: Team = team) -> Agent:
        some = home.get(kind) or next(iter(home.values()))
        return rng.choice(some)

    while True:
        company = rng.choice(COMPANIES)
        s = one("planner").session()
        s.step(
            f"Results update: {company.name}",
            reasoning_chain=[company.angle],
            strategy_used="PlanAndExecute",
            **spent(rng),
        )
        yield
        kinds = ("web_researcher", "filings_reader")
        lines = [one(rng.choice(kinds)).session(continues=s) for _ in company.leads]
        tracks = [research(line, lead, rng) for line, lead in zip(lines, company.leads, strict=True)]
        while tracks:  # the branches take turns, as if in parallel
            track = rng.choice(tracks)
            if next(track, 0) == 0:
                tracks.remove(track)
            else:
                yield
        s = one("data_analyst", rng.choice((team, team, neighbours))).session(continues=s.join(*lines))
        facts = [lead.fact for lead in company.leads]
        for who, intent, tool in (
            ("data_analyst", f"Merge findings: {company.name}", None),
            ("code_runner", f"Run models/{company.ticker.lower()}.py", "python_run"),
            ("writer", f"Draft: {company.headline}", "write_draft"),
            ("fact_checker", f"Check: {company.headline}", "check_claim"),
            ("publisher", f"File: {company.headline}", "file_note"),
        ):
            home = neighbours if rng.random() < 0.2 else team
            s = one(who, home).session(continues=s)
            s.step(
                intent,
                tool_call=tool,
                read_from_memory=facts if who == "writer" else None,
                terminal=who == "publisher",
                confidence_score=score(rng, 0.8),
                **spent(rng),
            )
            yield


def research(s: Session, lead: Lead, rng: Random) -> Iterator[int]:
    question, query, source, finding, fact = lead
    if rng.random() < 0.15:
        s.step(
            question, tool_call="http_fetch", tool_input={"url": source}, status="failure",
            tool_output_summary=rng.choice(OBSTACLES), confidence_score=score(rng, 0.55), **spent(rng),
        )  # fmt: skip
        yield 1
    s.step(
        f"Search: {query}", tool_call="serp_search", tool_input={"query": query},
        tool_output_summary=f"{rng.randint(4, 20)} results", confidence_score=score(rng, 0.7), **spent(rng),
    )  # fmt: skip
    yield 1
    s.step(
        question, tool_call="read_document", tool_input={"url": source}, tool_output_summary=finding,
        citations=[source], added_to_memory=[fact], confidence_score=score(rng, 0.85), **spent(rng),
    )  # fmt: skip
    yield 1


class SimulatedCost(TypedDict):
    tokens_consumed: int
    cost: float
    duration_ms: int


def spent(rng: Random) -> SimulatedCost:
    tokens = rng.randint(350, 3200)
    return {"tokens_consumed": tokens, "cost": round(tokens * 4e-6, 6), "duration_ms": rng.randint(40, 2600)}
