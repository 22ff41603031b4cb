"""An asyncio agent whose tasks run in parallel, each on its own branch.

Start a gateway with `observatory serve`, then run `python examples/async_agent.py`.
"""

import asyncio

from observatory import AsyncAgent

QUESTIONS = ("berth times", "spot rates", "strike notices")


async def main() -> None:
    async with AsyncAgent("port-watch-1", agent_type="port_watch") as agent, agent.session() as session:
        await session.step("Plan the port watch", reasoning_chain=["Three questions, no order between them."])
        branches = [session.fork() for _ in QUESTIONS]

        async def follow(n: int) -> None:
            async with branches[n].tool(
                "fetch", {"what": QUESTIONS[n]}, intent=f"Look up {QUESTIONS[n]}"
            ) as call:
                await asyncio.sleep(0.05)  # the real work
                call.output = f"{QUESTIONS[n]}: nothing unusual"

        await asyncio.gather(*(follow(n) for n in range(len(QUESTIONS))))
        summary = await session.join(*branches).step("Summarise the three answers", terminal=True)
        answer = await summary.answer(timeout=10)
        print(f"session {answer.session_id}: {answer.state} as number {answer.sequence_number}")


asyncio.run(main())
