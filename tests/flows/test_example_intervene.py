"""`examples/intervene`: a real agent process is held, corrected, answered, stopped and ended by a script."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.flows.server import clean_environment

# What the agent says in this order, and what operator, admin and gateway say in this order.
STORY = (
    "operator pauses the agent: requested",
    "gateway the pause is acknowledged",
    "gateway the pause is confirmed",
    "operator injects: Invoice 7 is a copy of invoice 5.",
    "agent was held in step() for",
    "agent a person says: Invoice 7 is a copy of invoice 5.",
    "operator approves it",
    "agent approved: pays 1,200 for invoice 5",
    "operator edits it to 9,800 and approves it",
    "agent edited: pays 9,800 for invoice 6",
    "operator rejects it: a copy of invoice 5",
    "agent invoice 7 is not paid: rejected (a copy of invoice 5)",
    "agent does not close the books: rejected (not before Friday)",
    "admin confirms once: confirmed",
    "admin confirms twice: engaged",
    "agent was stopped for",
    "operator cancels the agent's work",
    "agent its work was cancelled: enough for today",
    "gateway has on record: pause, inject, unpause, approve, edit, reject, reject, cancel",
    "gateway the chain of",
)


@pytest.mark.req(99, 103, 133, 187, 188, 190, 192, 195, 226)
def test_the_example_is_paused_injected_approved_edited_rejected_stopped_and_ended() -> None:
    run = subprocess.run(
        [sys.executable, "examples/intervene/run.py"],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    lines = run.stdout.splitlines()
    received = [re.sub(r"^ *[\d.]+ s +(\w+) +", r"\1 ", line) for line in lines]
    assert all(re.match(r" *[\d.]+ s  (agent|operator|admin|gateway) ", line) for line in lines), run.stdout
    # What agent and operator say at the same moment may come in either order; each side's own order is kept.
    for is_agent in (True, False):
        mine = [line for line in received if line.startswith("agent ") == is_agent]
        at = -1
        for event in STORY:
            if event.startswith("agent ") == is_agent:
                places = [n for n, line in enumerate(mine) if n > at and line.startswith(event)]
                assert places, f"{event!r} is missing, or out of order:\n{run.stdout}"
                at = places[0]
    assert received[-1].endswith("is valid: True")
