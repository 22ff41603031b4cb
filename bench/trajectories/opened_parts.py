"""What the generators of this part share.

First untouched part; opened after it was scored at 0.849, from then on used for tuning.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Sequence
from typing import Any

Step = dict[str, Any]
Trajectory = dict[str, Any]

AGENTS = (
    "agt_7",
    "coder-1",
    "research_bot",
    "Ops Copilot",
    "assistant",
    "agt_nightshift",
    "helper.eu",
    "サポート",
)

LEADS: tuple[tuple[str, str, str, str], ...] = (
    (
        "Get an overview of the workspace",
        "list_dir",
        '{"path":"."}',
        "README.md, src, tests, data, notes.txt",
    ),
    ("Read the task", "read_file", '{"path":"TASK.md"}', "Three acceptance criteria, due on Friday."),
    ("Who am I logged in as", "bash", "whoami && date -u", "svc-agent\nMon Feb  2 08:14:11 UTC 2026"),
    (
        "Recall earlier notes",
        "memory_search",
        '{"q":"open points"}',
        "2 notes: ask Petra, mind the time zone",
    ),
    ("Die Vorgaben lesen", "read_file", '{"path":"docs/vorgaben.md"}', "Fristen, Ansprechpartner, Formate"),
    ("Check the environment", "bash", "python --version; uname -r", "Python 3.12.4\n6.8.0-45-generic"),
)


def step(
    agent: str,
    intent: str | None,
    tool: str | None = None,
    tool_input: object = None,
    output: str | None = None,
    status: str = "success",
    **extra: object,
) -> Step:
    """One step; an input that is not text is written as JSON."""
    text = tool_input if tool_input is None or isinstance(tool_input, str) else dump(tool_input)
    return {
        "agent": agent,
        "intent": intent,
        "tool": tool,
        "tool_input": text,
        "output": output,
        "status": status,
        **extra,
    }


def dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def shuffled(rng: random.Random, value: dict[str, Any]) -> dict[str, Any]:
    """The same object with its keys in another order."""
    keys = list(value)
    rng.shuffle(keys)
    return {key: value[key] for key in keys}


def request_id(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def leads(rng: random.Random, agent: str, at_most: int = 3) -> list[Step]:
    """Nothing to a few steps of honest work before the matter itself."""
    return [step(agent, *lead) for lead in rng.sample(LEADS, rng.randint(0, at_most))]


def trajectory(
    rng: random.Random,
    family: str,
    label: str,
    name: str,
    steps: Sequence[Step],
    pace: float = 4.0,
    polling_tools: Sequence[str] = (),
) -> Trajectory:
    """Puts the steps on a clock of about the given pace."""
    clock = 0.0
    timed: list[Step] = []
    for one in steps:
        timed.append({**one, "offset_s": round(clock, 1)})
        clock += pace * rng.uniform(0.5, 1.6)
    made: Trajectory = {
        "name": f"{family.replace('_', '-')}-{name}",
        "family": family,
        "label": label,
        "steps": timed,
    }
    if polling_tools:
        made["polling_tools"] = list(polling_tools)
    return made
