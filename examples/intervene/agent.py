"""An agent that pays invoices and can be paused, corrected, answered and stopped by people.

Control needs only three things here: it asks before it pays, it reads the prompts people inject, and it
handles cancellation. The SDK does all the waiting.
"""

import time

from observatory.sdk import Agent, Cancelled, Delivery, Denied

INVOICES = {5: 1_200, 6: 98_000, 7: 1_200}
MAX_WAIT_S = 600  # time for a person who plays the operator by hand
WORK_S = 0.2  # stands for the real work


def say(text: str) -> None:
    print(text, flush=True)


def read_invoices(agent: Agent) -> None:
    """Work in small steps. A pause holds the agent in `step`; an injected prompt is returned by `prompts`."""
    end = time.monotonic() + MAX_WAIT_S
    while time.monotonic() < end:
        begun = time.monotonic()
        agent.step("Read the next invoice", tool_call="read_invoice", status="success")
        if time.monotonic() - begun > 0.3:
            say(f"was held in step() for {time.monotonic() - begun:.1f} s, now continues")
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
        timeout=MAX_WAIT_S,
    )
    if not approval:
        say(f"invoice {number} is not paid: {approval.verdict} ({approval.note})")
        return
    order = approval.tool_input  # use what was approved: a person may have edited it
    say(f"{approval.verdict}: pays {order['amount']:,} for invoice {order['invoice']}")
    agent.step(f"Paid invoice {order['invoice']}", tool_call="pay", tool_input=order, cost=0.01)


def close_the_books(agent: Agent) -> None:
    """The same question as a step: a refusal is an exception."""
    try:
        say("asks: may I close the books of October?")
        step = agent.step(
            "Close the books",
            tool_call="close_books",
            tool_input={"month": "October"},
            status="pending",
            hitl_required=True,
            timeout=MAX_WAIT_S,
        )
        say(f"closes the books of {step.verdict.tool_input['month']}")
    except Denied as no:
        say(f"does not close the books: {no.reason} ({no.note})")


def reconcile(agent: Agent) -> None:
    """Until a person cancels it. An engaged kill-switch holds it in `step` as a pause does."""
    end = time.monotonic() + MAX_WAIT_S
    while time.monotonic() < end:
        begun = time.monotonic()
        agent.step("Reconcile the accounts", tool_call="reconcile", status="success")
        if time.monotonic() - begun > 0.3:
            say(f"was stopped for {time.monotonic() - begun:.1f} s, now reconciles again")
        time.sleep(WORK_S)


def main() -> None:
    at_once = Delivery(linger_s=0)  # send each step at once instead of in batches
    treasurer = Agent("treasurer-1", agent_type="treasurer", delivery=at_once)
    with treasurer as agent, agent.session() as session:
        agent.step("Begin the end of the month").answer(timeout=MAX_WAIT_S)
        say(f"begins session {session.session_id}")
        try:
            read_invoices(agent)
            for number, amount in INVOICES.items():
                pay(agent, number, amount)
            close_the_books(agent)
            say("reconciles")
            reconcile(agent)
        except Cancelled as end:
            say(f"its work was cancelled: {end.reason}")
            agent.step("Stopped by a person", status="skipped", terminal=True)
        say("ends")


if __name__ == "__main__":
    main()
