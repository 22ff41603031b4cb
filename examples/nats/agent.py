"""An agent that is connected only by NATS: it can be paused, prompted and asked like any other.

    OBSERVATORY_URL=nats://127.0.0.1:4222 OBSERVATORY_KEY=obs_… python examples/nats/agent.py

The gateway runs with OBSERVATORY_BUS=nats://127.0.0.1:4222; see docs/guides/nats.md.
"""

import sys

from observatory import Agent

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 10
agent = Agent("courier-1", agent_type="courier")
agent.register(capabilities=["deliver"])

with agent.session() as session:
    for number in range(1, steps + 1):
        # Waits here while a person has paused it.
        last = session.step(f"Deliver parcel {number}", tool_call="drive", tool_input={"parcel": number})
        for prompt in session.prompts():
            print(f"prompt from an operator: {prompt.text}", flush=True)
    last = session.step("All delivered", terminal=True)

answer = last.answer(timeout=30)
print(f"session {answer.session_id}: {steps + 1} steps, the last as number {answer.sequence_number}")
agent.close()
