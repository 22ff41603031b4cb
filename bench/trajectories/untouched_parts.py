"""Parts that the generated half of the untouched set is put together from.

Law: knows nothing of the detector; the same random numbers give the same trajectories.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

Step = dict[str, Any]
Trajectory = dict[str, Any]

WARM_UP: tuple[tuple[str, str, str, str], ...] = (
    ("Read the task", "read_task", "{}", "Task with two paragraphs and a deadline on Friday"),
    ("See what the workspace holds", "list_dir", '{"path": "."}', "README.md data/ notes/ out/"),
    ("Recall what is known", "memory_search", '{"about": "this customer"}', "2 facts, both from last week"),
    ("Check the calendar for the deadline", "calendar_today", "", "Wednesday, nothing before noon"),
    ("Look up the policy", "kb_lookup", '{"topic": "policy"}', "Section 4 applies, approvals above 500"),
    ("Count the open items", "sql", "select count(*) from items where state = 'open'", "17"),
)
RECOVERY: tuple[tuple[str, str, str, str], ...] = (
    ("Give up and tell the operator", "notify_human", '{"text": "I am stuck and need help"}', "acknowledged"),
    ("Take another way", "make_plan", '{"alternatives": 2}', "Plan B: ask the owner for access"),
    ("Write down what failed", "write_note", "notes/failed.md", "saved, 12 lines"),
)
BYSTANDER: tuple[tuple[str, str, str, str], ...] = (
    ("Collect the sales figures", "sql", "select sum(net) from sales", "48,112.70"),
    ("Compare them with last year", "sql", "select sum(net) from sales_2025", "44,903.15"),
    ("Draw the chart", "plot", '{"kind": "bar", "series": 2}', "chart.png, 31 kB"),
    ("Write the paragraph", "write_doc", '{"section": "Sales"}', "120 words"),
    ("Check the spelling", "spellcheck", '{"doc": "report"}', "2 typos corrected"),
    ("Send it for review", "send", '{"to": "cfo"}', "sent"),
)


def step(
    agent: str,
    intent: str | None,
    tool: str | None = None,
    given: Any = None,
    output: str | None = None,
    status: str = "success",
    *reasoning: str,
) -> Step:
    """One step; `given` is sent as it is when it is text, as JSON otherwise."""
    text = given if given is None or isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    made: Step = {"agent": agent, "intent": intent, "tool": tool, "tool_input": text}
    made |= {"output": output, "status": status}
    if reasoning:
        made["reasoning"] = list(reasoning)
    return made


def shuffled(rng: Random, given: dict[str, Any]) -> dict[str, Any]:
    """The same object with its keys in another order."""
    keys = list(given)
    rng.shuffle(keys)
    return {key: given[key] for key in keys}


def hexes(rng: Random, length: int) -> str:
    return "".join(rng.choice("0123456789abcdef") for _ in range(length))


def around(rng: Random, agent: str, steps: list[Step]) -> list[Step]:
    """Sensible work before, sometimes a recovery after, sometimes another agent who works well meanwhile."""
    before = rng.sample(WARM_UP, rng.randint(0, 3))
    made = [step(agent, intent, tool, given, output) for intent, tool, given, output in before]
    made += steps
    if rng.random() < 0.35:
        intent, tool, given, output = rng.choice(RECOVERY)
        made.append(step(agent, intent, tool, given, output))
    if rng.random() < 0.3:
        made = beside(rng, made)
    return made


def beside(rng: Random, steps: list[Step]) -> list[Step]:
    """The steps with those of a second agent dropped in between, in their order."""
    places = sorted(rng.sample(range(len(steps) + 1), min(len(BYSTANDER), len(steps))))
    made = list(steps)
    pairs = list(zip(places, BYSTANDER, strict=False))
    for place, (intent, tool, given, output) in reversed(pairs):
        made.insert(place, step("reporter", intent, tool, given, output))
    return made


def timed(rng: Random, steps: list[Step], gap: float) -> list[Step]:
    """Copies of the steps with times about `gap` apart."""
    now, made = 0.0, []
    for one in steps:
        made.append(one | {"offset_s": round(now, 2)})
        now += gap * rng.uniform(0.7, 1.4)
    return made


def trajectory(
    rng: Random, name: str, family: str, label: str, steps: list[Step], polling: Sequence[str] = ()
) -> Trajectory:
    if rng.random() < 0.6:
        steps = timed(rng, steps, rng.choice((0.8, 3.0, 6.0, 20.0)))
    made: Trajectory = {"name": f"{name}-gen", "family": family, "label": label, "steps": steps}
    if polling:
        made["polling_tools"] = list(polling)
    return made
