"""Loops of less common kinds: hand-overs, undo and redo, escalation, one lost agent among busy ones.

First untouched part; opened after it was scored at 0.849, from then on used for tuning.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from bench.trajectories.opened_loops_tables import (
    BLIND,
    BUSYWORK,
    CAROUSELS,
    CROWDS,
    EMPTY,
    ESCALATING,
    OSCILLATIONS,
    QUESTIONS,
    RECOVERIES,
    TOPICS,
    TRANSLATIONS,
)
from bench.trajectories.opened_parts import AGENTS, Step, Trajectory, leads, step, trajectory


def _carousel(
    rng: random.Random, pair: tuple[str, str], left: Sequence[str], right: Sequence[str]
) -> list[Step]:
    steps: list[Step] = []
    for _ in range(rng.randint(5, 8)):
        for me, you, texts in ((pair[0], pair[1], left), (pair[1], pair[0], right)):
            text = rng.choice(texts)
            steps.append(step(me, text, "handoff", {"to": you, "message": text}, f"{you} has taken over"))
    return steps


def more_loops(rng: random.Random) -> list[Trajectory]:
    made: list[Trajectory] = []

    def add(family: str, name: str, steps: list[Step]) -> None:
        made.append(trajectory(rng, family, "loop", name, steps, rng.choice((2.0, 8.0, 30.0))))

    for name, intent, tool, fixed, key, values, output in ESCALATING:
        agent = rng.choice(AGENTS)
        tries = [step(agent, intent, tool, {**fixed, key: value}, output, "failure") for value in values]
        add("escalating_arguments", name, leads(rng, agent) + tries)
    for name, pair, left, right in CAROUSELS:
        add("handover_carousel", name, _carousel(rng, pair, left, right))
    for name, tool, do, undo, _ in OSCILLATIONS:
        agent = rng.choice(AGENTS)
        both = [step(agent, do[0], tool, do[1], do[2]), step(agent, undo[0], tool, undo[1], undo[2])]
        add("undo_redo_oscillation", name, leads(rng, agent) + both * rng.randint(5, 8))
    for name, tool, path, output, ranges in BLIND:
        agent = rng.choice(AGENTS)
        looks = [
            step(
                agent,
                f"Look for the answer in {path}",
                tool,
                {"file": path, "range": part},
                output,
                "failure",
            )
            for part in ranges
        ]
        add("blind_rereading", name, leads(rng, agent) + looks)
    for name, first, text, second, other in TRANSLATIONS:
        one = step(f"to_{second}", f"Convert to {second}", "convert", {"text": text, "to": second}, other)
        two = step(f"to_{first}", f"Convert to {first}", "convert", {"text": other, "to": first}, text)
        add("translation_ping_pong", name, [one, two] * rng.randint(5, 8))
    for name, tool, queries in EMPTY:
        agent = rng.choice(AGENTS)
        asked = [*queries, *rng.sample(queries, 3)]
        finds = [step(agent, f"Search: {query}", tool, {"q": query}, "no results") for query in asked]
        add("empty_search_rephrasing", name, leads(rng, agent) + finds)
    for name, questions, answers in QUESTIONS:
        agent = rng.choice(AGENTS)
        asks = [
            step(agent, "Ask the user", "ask_user", rng.choice(questions), rng.choice(answers))
            for _ in range(rng.randint(8, 11))
        ]
        add("clarification_deadlock", name, leads(rng, agent) + asks)
    for name, tool, intents, bodies, output in BUSYWORK:
        agent = rng.choice(AGENTS)
        work = [
            step(agent, rng.choice(intents), tool, rng.choice(bodies), output)
            for _ in range(rng.randint(8, 13))
        ]
        add("busywork_rewriting", name, leads(rng, agent) + work)
    for name, stuck in CROWDS:
        topics = rng.sample(TOPICS, 16)
        steps: list[Step] = [
            step("lead", "Begin", "spawn", {"n": 3}, "ok", children=["busy_1", "busy_2", "lost"])
        ]
        for topic in topics[:8]:
            steps.append(
                step(
                    "busy_1",
                    f"Describe {topic}",
                    "write_file",
                    {"path": f"{topic}.md"},
                    f"{rng.randint(200, 900)} words on {topic}",
                )
            )
            steps.append(step("lost", *stuck))
            if rng.random() < 0.6:
                found = topics[8 + rng.randrange(8)]
                steps.append(
                    step(
                        "busy_2",
                        f"Find sources on {found} for {topic}",
                        "web_search",
                        {"q": f"{found} {topic}"},
                        f"{rng.randint(2, 40)} sources, best: {found} and {topic}, vol. {rng.randint(1, 90)}",
                    )
                )
        add("loop_in_a_crowd", name, steps)
    for name, bad, good in RECOVERIES:
        agent = rng.choice(AGENTS)
        stuck_steps = [step(agent, *bad, "failure")] * rng.randint(7, 10)
        tail = [step(agent, *good), step(agent, "Report", "post_status", f"{name}: done", "posted")]
        add("loop_then_recovery", name, leads(rng, agent) + stuck_steps + tail)
    return made
