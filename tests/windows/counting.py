"""An agent that counts, run as a process by the browser tests: `counting.py NAME SESSION`.

It says on stdout what it has done and what people told it; being held is the SDK's business, inside `step`.
"""

import sys
import time

from observatory.sdk import Agent, Cancelled, Delivery

WORK_S = 0.1  # in place of the real work


def main(name: str, session_id: str) -> None:
    # A heartbeat before its first message has no effect, so that a test need not wait for the next.
    agent = Agent(name, agent_type="counter", delivery=Delivery(linger_s=0), heartbeat_s=1.0)
    agent.listen(30)  # known to be reachable before it says its first word
    session = agent.session(session_id=session_id)
    number = 0
    try:
        while True:
            number += 1
            session.step(f"Count to {number}", tool_call="count", tool_input={"to": number}, status="success")
            print(f"did {number}", flush=True)
            for prompt in session.prompts():
                print(f"heard {prompt.text}", flush=True)
            time.sleep(WORK_S)
    except Cancelled:
        print("heard cancelled", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
