"""An operator at the terminal, for flow tests: commands, their answers and refusals, and what they act on."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import uuid
from typing import Any

from tests.flows.server import COMMAND, Server, clean_environment, observatory
from tests.samples import decision_log


def of(server: Server, *words: str) -> subprocess.CompletedProcess[str]:
    return observatory(*words, "--data", str(server.folder))


def done(server: Server, *words: str) -> str:
    run = of(server, *words)
    assert run.returncode == 0, run
    return run.stdout


def answer(server: Server, *words: str) -> Any:
    return json.loads(done(server, *words, "--json"))


def refused(server: Server, *words: str, code: int = 1) -> str:
    """The one sentence on stderr, with nothing on stdout."""
    run = of(server, *words)
    assert (run.returncode, run.stdout) == (code, ""), run
    (sentence,) = run.stderr.splitlines()
    assert sentence.startswith("observatory: ")
    return sentence


def held(
    server: Server, agent: str, *, session: str | None = None, tool: str = "pay", tool_input: str = "{}"
) -> dict[str, Any]:
    """A message of this agent that waits at a gate; the row of `observatory holds`."""
    session = session or str(uuid.uuid4())
    log = decision_log(
        meta={
            "trace_id": session,
            "session_id": session,
            "step_id": str(uuid.uuid4()),
            "parent_step_id": None,
        },
        identity={"agent_id": agent, "agent_type": f"type-of-{agent}"},
        action={"tool_call": tool, "tool_input": tool_input},
        control={"hitl_required": True},
    )
    sent = server.send(log)
    assert sent.status_code == 202 and sent.json()["state"] == "held", sent.text
    rows = answer(server, "holds", "--session", session)
    (row,) = [row for row in rows if row["message_id"] == sent.json()["message_id"]]
    return dict(row)


def state_of(server: Server, row: dict[str, Any]) -> str:
    found: str = server.http("operator").get(f"/v1/messages/{row['message_id']}").json()["state"]
    return found


def typing(server: Server, words: list[str], *answers: str, columns: int = 200) -> tuple[int, str]:
    """A person at a terminal, who answers each question; the exit code and all that was shown."""
    mine, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *words, "--data", str(server.folder)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=clean_environment(COLUMNS=str(columns)),
    )
    os.close(theirs)
    shown, left = "", list(answers)
    while True:
        try:
            part = os.read(mine, 4096).decode()
        except OSError:  # the terminal closes with its last process
            break
        shown += part
        if left and shown.rstrip(" ").endswith(("[y/N]", "to continue:")) and part.endswith(" "):
            os.write(mine, left.pop(0).encode() + b"\n")
    os.close(mine)
    return process.wait(60), shown.replace("\r\n", "\n")
