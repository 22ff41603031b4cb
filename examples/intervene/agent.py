"""An agent that pays invoices and can be held, corrected, answered and stopped by people.

Nothing here is about control but three things: it asks before it pays, it reads what people put into its
context, and it knows that its work may be ended. All waiting is done by the SDK.
"""

import time

from observatory.sdk import Agent, Cancelled, Delivery, Denied

INVOICES = {5: 1_200, 6: 98_000, 7: 1_200}
LONGEST_S = 600  # for somebody who plays the operator by hand
WORK_S = 0.2  # in place of the real work


def say(text: str) -> None:
    print(text, flush=True)


def read_invoices(agent: Agent) -> None:
    """Work in small steps. A pause holds the agent in `step`; a prompt is there with the next look."""
    end = time.monotonic() + LONGEST_S
    while time.monotonic() < end:
        begun = time.monotonic()
        agent.step("Read the next invoice", tool_call="read_invoice", status="success")
        if time.monotonic() - begun > 0.3:
            say(f"was held in step() for {time.monotonic() - begun:.1f} s, now goes on")
        for prompt in agent.prompts():
            say(f"a person says: {prompt.text}")
            return
        time.sleep(WORK_S)


def pay(agent: Agent, number: int, amount: int) -> None:
    say(f"asks: may I pay {amount:,} for invoice {number}?")
    approval = agent.ask(
        f"Pay invoice {number}",
        tool_call="pay",
        tool_input={"invoice": number, "amount": amount},
        timeout=LONGEST_S,
    )
    if not approval:
        say(f"invoice {number} is not paid: {approval.verdict} ({approval.note})")
        return
    order = approval.tool_input  # what counts is what was approved: a person may have edited it
    say(f"{approval.verdict}: pays {order['amount']:,} for invoice {order['invoice']}")
    agent.step(f"Paid invoice {order['invoice']}", tool_call="pay", tool_input=order, cost=0.01)


def close_the_books(agent: Agent) -> None:
    """The same question as a step: a no is an exception, and nothing below it happens."""
    try:
        say("asks: may I close the books of October?")
        step = agent.step(
            "Close the books",
            tool_call="close_books",
            tool_input={"month": "October"},
            status="pending",
            hitl_required=True,
            timeout=LONGEST_S,
        )
        say(f"closes the books of {step.verdict.tool_input['month']}")
    except Denied as no:
        say(f"does not close the books: {no.reason} ({no.note})")


def reconcile(agent: Agent) -> None:
    """Until a person ends it. An engaged kill-switch holds it in `step` as a pause does."""
    end = time.monotonic() + LONGEST_S
    while time.monotonic() < end:
        begun = time.monotonic()
        agent.step("Reconcile the accounts", tool_call="reconcile", status="success")
        if time.monotonic() - begun > 0.3:
            say(f"was stopped for {time.monotonic() - begun:.1f} s, now reconciles again")
        time.sleep(WORK_S)


def main() -> None:
    at_once = Delivery(linger_s=0)  # what it says leaves at once instead of in batches
    treasurer = Agent("treasurer-1", agent_type="treasurer", delivery=at_once)
    with treasurer as agent, agent.session() as session:
        agent.step("Begin the end of the month").answer(timeout=LONGEST_S)
        say(f"begins session {session.session_id}")
        try:
            read_invoices(agent)
            for number, amount in INVOICES.items():
                pay(agent, number, amount)
            close_the_books(agent)
            say("reconciles")
            reconcile(agent)
        except Cancelled as end:
            say(f"its work was ended: {end.reason}")
            agent.step("Stopped by a person", status="skipped", terminal=True)
        say("ends")


if __name__ == "__main__":
    main()
