"""The smallest agent: two lines to connect, one line a step.

Start a gateway with `observatory serve`, then run `python examples/first_agent.py`.
"""

from observatory import Agent

agent = Agent("researcher-1", agent_type="web_researcher")

with agent.session() as session:
    session.step(
        "Verify quarterly revenue for NVDA",
        tool_call="serp_search",
        tool_input={"query": "NVDA 10-K revenue 2023"},
        tool_output_summary="Retrieved 10-K; Revenue confirmed at $26.97B",
        reasoning_chain=["Sources disagree on the fiscal year end.", "The primary source decides."],
        confidence_score=0.94,
        added_to_memory=["NVDA FY2023 revenue was $26.97B"],
        tokens_consumed=1250,
        cost=0.084,
    )
    with session.tool(
        "read_document", {"url": "https://www.sec.gov/edgar"}, intent="Read the filing"
    ) as call:
        call.output = "Fiscal year ended January 29, 2023"
    last = session.step("Answer the question", terminal=True)

answer = last.answer(timeout=10)
print(f"session {answer.session_id}: last step {answer.state} as number {answer.sequence_number}")
agent.close()
