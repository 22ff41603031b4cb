"""An agent that can prove what it decided: it acts, records its reasons, and seals its thoughts.

Start a gateway (`observatory demo` or `observatory serve`), then run `python examples/prove/decide.py`; name
its folder in OBSERVATORY_DATA if it is not the usual one. It prints the id of the session.
"""

from observatory import Agent

agent = Agent("release-manager-1", agent_type="release_manager")

with agent.session() as session:
    step = session.step(
        "See whether v2.3.1 can be released",
        tool_call="run_tests",
        tool_output_summary="412 of 412 tests passed",
        confidence_score=0.97,
    )
    step.answer(timeout=10)
    with agent.proof("Release v2.3.1") as proof:
        proof.think("plan", "run the tests, decide, release to one node first")
        proof.think("analysis", "412 of 412 tests passed; load was not tested")
        proof.think(
            "decision",
            {
                "choice": "release to one node",
                "alternatives": ["release everywhere", "wait for a load test"],
                "why": "what is not known is load, and one node shows it at a small price",
            },
        )
        session.step("Release v2.3.1 to one node", tool_call="deploy", terminal=True).answer(timeout=10)
        proof.conclude(
            happened="released to one node",
            proved=["it starts", "it answers"],
            uncertain="how it bears a full load",
        )

print(proof.session_id)
agent.close()
