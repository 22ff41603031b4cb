"""A LangChain agent under control: one middleware, nothing else changes.

Start a gateway with `observatory serve`, `pip install 'langchain>=1.4'`, then run
`python examples/adapters/langchain_agent.py`. A scripted model stands in for yours, so that it
runs without a key. While it works:
`observatory pause invoice-7 clerk-1`, then `observatory unpause invoice-7 clerk-1`.
"""

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from observatory import Agent
from observatory.sdk.integrations.langchain import ObservatoryMiddleware


class ScriptedModel(FakeMessagesListChatModel):
    """Put your own in its place: `init_chat_model("…")`."""

    def bind_tools(self, tools, **options):
        return self


@tool
def read_invoice(number: int) -> str:
    """Read an invoice."""
    print(f"reads invoice {number}", flush=True)
    return "1,200 euros, due on Friday"


first = AIMessage(
    "", tool_calls=[{"name": "read_invoice", "args": {"number": 7}, "id": "call_1"}],
    usage_metadata={"input_tokens": 120, "output_tokens": 18, "total_tokens": 138},
)  # fmt: skip
model = ScriptedModel(responses=[first, AIMessage("Invoice 7 is 1,200 euros, due on Friday.")])

with Agent("clerk-1", agent_type="clerk") as clerk:
    clerk.listen(timeout=5)  # so that a pause in force holds from the start
    watch = ObservatoryMiddleware(clerk)  # needs_approval=["pay_*"]: these tools ask a person first
    agent = create_agent(model, [read_invoice], middleware=[watch])
    thread = {"configurable": {"thread_id": "invoice-7"}}  # one thread is one session
    answer = agent.invoke({"messages": [("user", "What about invoice 7?")]}, thread)
    print(answer["messages"][-1].text)
