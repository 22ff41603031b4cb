"""One trajectory being written: dice with a fixed seed, a clock, and steps in the words of a subject."""

from __future__ import annotations

import json
import random
import uuid
from typing import Any

from bench.trajectories.subjects import SUBJECTS, Subject

SEED = 20_260_417
Made = dict[str, Any]


class Hand:
    """One trajectory being written."""

    def __init__(self, number: int, family: str) -> None:
        self.dice = random.Random(f"{SEED}:{family}:{number}")
        self.subject: Subject = SUBJECTS[number % len(SUBJECTS)]
        self.steps: list[Made] = []
        self.clock = 0.0
        self.polling: list[str] = []

    def pick(self, words: tuple[str, ...]) -> str:
        return self.dice.choice(words)

    def some(self, words: tuple[str, ...], count: int) -> list[str]:
        return self.dice.sample(words, min(count, len(words)))

    def filled(self, template: str, item: str) -> str:
        return template.replace("{i}", item).replace("{q}", item)

    def step(self, tool: str | None, given: str | None, output: str | None, status: str, **more: Any) -> None:
        """With the subject's own words by default."""
        self.clock += self.dice.choice((0.4, 1.5, 2.0, 3.2, 8.0))
        made: Made = {
            "agent": self.subject.agent,
            "intent": self.subject.says[0],
            "reasoning": [self.subject.whys[0]],
            "tool": tool,
            "tool_input": given,
            "output": output,
            "status": status,
            "offset_s": round(self.clock, 1),
        }
        made.update(more)
        if made["intent"] is None:
            made["reasoning"] = None
        self.steps.append(made)

    def work(self, count: int) -> None:
        """Honest work: other items, other findings."""
        subject = self.subject
        tool, template = subject.read
        for item, found in zip(self.some(subject.items, count), self.some(subject.finds, count), strict=True):
            self.step(
                tool,
                self.filled(template, item),
                found,
                "success",
                reasoning=[f"{item} may tell", found[:30]],
            )

    def noise(self, given: str, keys: tuple[str, ...]) -> str:
        """The same input with values that change on every call."""
        value = json.loads(given)
        for key in keys:
            value[key] = {
                "timestamp": self.moment(),
                "request_id": str(uuid.UUID(int=self.dice.getrandbits(128))),
                "nonce": f"{self.dice.getrandbits(48):012x}",
                "attempt": len(self.steps) + 1,
                "ts": 1_790_000_000 + len(self.steps) * 7,
                "trace_id": f"{self.dice.getrandbits(128):032x}",
                "client_ref": f"{self.dice.getrandbits(64):016x}",
            }[key]
        items = list(value.items())
        self.dice.shuffle(items)
        return json.dumps(dict(items))

    def moment(self) -> str:
        day, hour, part = self.dice.randint(0, 9), self.dice.randint(10, 23), self.dice.randint(100, 999)
        return f"2026-11-1{day}T{hour}:04:05.{part}Z"
