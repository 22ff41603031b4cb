"""Two agents, one session: a planner forks the work, a writer continues it by handoff.

Start a gateway with `observatory serve`, then run `python examples/fork_join.py`.
"""

import json

from observatory import Agent

planner = Agent("planner-1")
with planner.session() as session:
    session.step("Split the report in two")
    figures, quotes = session.fork(), session.fork()
    figures.step("Collect the figures", tool_call="sql_query", tool_input="select * from revenue", cost=0.01)
    quotes.step(
        "Collect the quotes", tool_call="serp_search", tool_input={"query": "ceo statement"}, cost=0.02
    )
    session.join(figures, quotes)
    session.step("Merge figures and quotes", recipient="writer-1")  # has two parents
    handoff = json.dumps(session.handoff())  # sent along with the work, by any transport

writer = Agent("writer-1")
draft = writer.session(continues=json.loads(handoff)).step("Write the report", terminal=True)
print(f"the writer's step in the planner's session: {draft.answer(timeout=10).state}")
writer.close()
planner.close()
