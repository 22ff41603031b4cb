"""Two agents of the OpenAI Agents SDK under control: `watch.run` where it was `Runner.run`.

Start a gateway with `observatory serve`, `pip install 'openai-agents>=0.24'`, then run
`python examples/adapters/openai_agents_team.py`. Scripted models stand in for yours, so that it
runs without a key. While it works:
`observatory pause order-12 billing-1`, then `observatory unpause order-12 billing-1`.
"""

import asyncio

from agents import Agent, RunConfig, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from observatory import AsyncAgent
from observatory.sdk.integrations.openai_agents import ObservatoryRunner


@function_tool
def refund(order: int) -> str:
    """Pay an order back."""
    print(f"pays order {order} back", flush=True)
    return "done"


billing = Agent(
    name="Billing",
    tools=[refund],
    model=ScriptedModel(
        [[function_call("refund", {"order": 12}, call_id="call_2")], [assistant_message("It is paid back.")]]
    ),
)
triage = Agent(
    name="Triage",
    handoffs=[billing],
    model=ScriptedModel([[function_call("transfer_to_billing", {}, call_id="call_1")]]),
)


async def main() -> None:
    async with AsyncAgent("triage-1") as first, AsyncAgent("billing-1") as second:
        await second.listen(timeout=5)  # so that a pause in force holds from the start
        watch = ObservatoryRunner(first, team={"Billing": second})  # needs_approval=["refund"]: ask a person
        config = RunConfig(group_id="order-12", tracing_disabled=True)  # one group is one session
        result = await watch.run(triage, "I want my money back for order 12", run_config=config)
        print(result.final_output)


asyncio.run(main())
