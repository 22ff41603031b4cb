"""An agent that requests a reminder, does something else, and continues when the reminder arrives.

The gateway stores the reminder: it arrives in the same session, after two seconds or two months, also if the
agent or the gateway was restarted meanwhile. Start a gateway with `observatory serve`, then
run `python examples/reminder.py`.
"""

from observatory import Agent

with Agent("release-watch-1", agent_type="release_watch") as agent:
    with agent.session() as session:
        session.step("Start the canary release", tool_call="deploy", tool_input={"share": 0.05})
        session.remind(in_s=2, payload={"check": "error rate of the canary"}).answer(timeout=10)

    for message in agent.incoming(timeout=20):
        if not message.is_reminder:
            continue
        with agent.session(continues=message) as session:
            session.step(f"Check the {message.payload['check']}", tool_output_summary="0.02 %")
            last = session.step("Release to everybody", terminal=True)
        break
    else:
        raise SystemExit("no reminder arrived")

    answer = last.answer(timeout=10)
    print(f"reminded in session {answer.session_id}; its last step is number {answer.sequence_number}")
