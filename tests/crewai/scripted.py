"""A model that says what it was told to say, and crews that ask it: CrewAI's own parts otherwise."""

from __future__ import annotations

import json
import threading
from typing import Any

from crewai import Agent, Crew, Task
from crewai.llms.base_llm import BaseLLM
from crewai.tools import tool
from pydantic import PrivateAttr

USAGE = {"prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42}


class Scripted(BaseLLM):  # type: ignore[misc]
    """Answers in order: a text, or a tool's name and input. What it was asked is kept in `asked`."""

    native: bool = True
    counts: bool = True
    _answers: list[Any] = PrivateAttr(default_factory=list)
    _asked: list[list[dict[str, Any]]] = PrivateAttr(default_factory=list)

    def script(self, *answers: Any) -> Scripted:
        self._answers, self._asked = list(answers), []
        return self

    @property
    def asked(self) -> list[list[dict[str, Any]]]:
        return self._asked

    def said_to_it(self, number: int = -1) -> str:
        return json.dumps(self._asked[number], default=str)

    def supports_function_calling(self) -> bool:
        return self.native

    def call(self, messages: Any, tools: Any = None, **more: Any) -> Any:
        self._asked.append([dict(one) for one in messages])
        if self.counts:
            self._track_token_usage_internal(USAGE)
        answer = self._answers.pop(0) if self._answers else "nothing more to say"
        if isinstance(answer, str):
            return answer if self.native else f"Thought: I know.\nFinal Answer: {answer}"
        if isinstance(answer, Exception):
            raise answer
        calls = answer if isinstance(answer, list) else [answer]
        if not self.native:
            name, given = calls[0]
            return f"Thought: I need {name}.\nAction: {name}\nAction Input: {json.dumps(given)}"
        return [
            {
                "id": f"call_{len(self._asked)}_{n}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(given)},
            }
            for n, (name, given) in enumerate(calls)
        ]


class Till:
    """A tool that pays, and remembers what."""

    def __init__(self) -> None:
        self.paid: list[Any] = []
        self.is_reading, self.may_read = threading.Event(), threading.Event()
        self.may_read.set()

        @tool("pay_invoice")  # type: ignore[untyped-decorator]
        def pay_invoice(number: int, amount: int) -> str:
            """Pay an invoice."""
            self.paid.append((number, amount))
            return f"paid {amount} for invoice {number}"

        @tool("read_invoices")  # type: ignore[untyped-decorator]
        def read_invoices() -> str:
            """Read the invoices."""
            self.is_reading.set()
            assert self.may_read.wait(60)
            self.paid.append("read")
            return "invoice 5 is over 1200"

        @tool("break_down")  # type: ignore[untyped-decorator]
        def break_down() -> str:
            """Breaks."""
            self.paid.append("broke")
            raise ValueError("the printer burns")

        self.tools = [pay_invoice, read_invoices, break_down]


def crew_of(llm: BaseLLM, till: Till, role: str, *more: str) -> Crew:
    """One agent and one task for each role; each task follows the one before."""
    agents = [
        Agent(role=one, goal="g", backstory="b", llm=llm, tools=till.tools, max_retry_limit=0)
        for one in (role, *more)
    ]
    tasks = [
        Task(description=f"task {n}", expected_output="a word", agent=agent) for n, agent in enumerate(agents)
    ]
    return Crew(agents=agents, tasks=tasks, verbose=False)
