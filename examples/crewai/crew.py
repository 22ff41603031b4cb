"""A crew that reads invoices, observed and controlled: `python examples/crewai/crew.py [how many]`.

Everything about control is in `main`: one `with`. The model is a stand-in that needs no network; put your own
in its place. Pause `bookkeeper`, inject a prompt, resume: it stops before its next step, continues, and ends
with your prompt.
"""

import json
import os
import sys
import time
from typing import Any

os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
os.environ.setdefault("CREWAI_TRACING_ENABLED", "false")

from crewai import Agent, Crew, Task
from crewai.llms.base_llm import BaseLLM
from crewai.tools import tool

from observatory.sdk import Delivery
from observatory.sdk.integrations.crewai import Observer

HOW_MANY = int(sys.argv[1]) if len(sys.argv) > 1 else 20
WORK_S = 0.2  # stands for the real work


@tool("read_invoice")
def read_invoice(number: int) -> str:
    """Read one invoice."""
    time.sleep(WORK_S)
    return f"invoice {number} is over {number * 100}"


class StandIn(BaseLLM):
    """Reads one invoice after the other until all are read, or until a person injects a prompt."""

    turn: int = 0

    def supports_function_calling(self) -> bool:
        return True

    def call(self, messages: Any, tools: Any = None, **more: Any) -> Any:
        self._track_token_usage_internal({"prompt_tokens": 40, "completion_tokens": 8, "total_tokens": 48})
        last = messages[-1]
        if self.turn and last["role"] == "user" and "invoice" not in str(last["content"]):
            return f"A person said: {last['content']}"
        if self.turn == HOW_MANY:
            return f"I have read {HOW_MANY} invoices."
        self.turn += 1
        call = {"name": "read_invoice", "arguments": json.dumps({"number": self.turn})}
        return [{"id": f"call_{self.turn}", "type": "function", "function": call}]


def main() -> None:
    bookkeeper = Agent(
        role="Bookkeeper",
        goal="Know every invoice",
        backstory="Has read invoices for twenty years.",
        llm=StandIn(model="stand-in"),
        tools=[read_invoice],
        max_iter=HOW_MANY + 10,
    )
    task = Task(description="Read every invoice", expected_output="How many there are", agent=bookkeeper)
    with Observer(delivery=Delivery(linger_s=0)) as observer:
        result = Crew(agents=[bookkeeper], tasks=[task]).kickoff()
        print(f"session {observer.session_id}: {result.raw}", flush=True)


if __name__ == "__main__":
    main()
