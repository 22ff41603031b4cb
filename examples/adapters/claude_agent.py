"""An agent of the Claude Agent SDK that people can watch, pause, correct and stop.

    pip install claude-agent-sdk        # and ANTHROPIC_API_KEY in the environment
    observatory serve                   # in another terminal
    python examples/adapters/claude_agent.py "Say hello in the shell, then write it to hello.txt"

Meanwhile: `observatory sessions`, `observatory pause SESSION coder-1`, `observatory holds`.
"""

import asyncio
import sys

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

from observatory import AsyncAgent
from observatory.sdk.integrations.claude_agent_sdk import Watch


async def main(prompt: str) -> None:
    async with AsyncAgent("coder-1") as agent:
        watch = Watch(agent, needs_approval=["Write", "Edit"], timeout=3600)
        options = watch.options(ClaudeAgentOptions(allowed_tools=["Bash", "Read", "Write"]))
        async for message in watch.messages(query(prompt=prompt, options=options)):
            if isinstance(message, ResultMessage):
                print(message.result, f"({message.total_cost_usd} USD)")


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "Say hello in the shell."))
