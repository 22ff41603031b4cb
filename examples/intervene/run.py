"""Run it: `python examples/intervene/run.py`. A gateway in a folder of its own, an agent, and an operator.

The operator is this script: plain HTTP with an operator's key (an admin's for the kill-switch), the same
calls as `observatory pause`, `approve`, `kill`, … make. Every line says when, who and what.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2

HERE = Path(__file__).parent
PATIENCE_S = 30
BEGUN = time.monotonic()


def say(who: str, text: str) -> None:
    """One write a line: the agent's come from a thread of their own and must not fall into another."""
    sys.stdout.write(f"{time.monotonic() - BEGUN:5.1f} s  {who:<9} {text}\n")
    sys.stdout.flush()


def until(look: Callable[[], Any], what: str) -> Any:
    """Look until there is something, but not for ever."""
    end = time.monotonic() + PATIENCE_S
    while not (found := look()):
        if time.monotonic() > end:
            raise SystemExit(f"waited {PATIENCE_S} s in vain for {what}")
        time.sleep(0.02)
    return found


class Operator:
    """A person with a key. Every command is one request; its answer says what is now so."""

    def __init__(self, url: str, key: str) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        self._http = httpx2.Client(base_url=url, headers=headers, timeout=30, trust_env=False)

    def get(self, path: str) -> Any:
        return self._http.get(path).raise_for_status().json()

    def post(self, path: str, body: dict[str, Any]) -> Any:
        answer = self._http.post(path, json=body)
        if answer.status_code >= 400:
            raise SystemExit(f"{path} was refused: {answer.text}")
        return answer.json()

    def command(self, word: str, session_id: str, **body: Any) -> Any:
        return self.post(f"/v1/sessions/{session_id}/{word}", {"agent_id": "treasurer-1", **body})

    def gate(self, session_id: str) -> dict[str, Any]:
        """What waits for an answer in this session, with its content and the digest of what was seen."""
        path = f"/v1/holds?session_id={session_id}&gates_only=true"
        hold: dict[str, Any] = until(lambda: self.get(path)["items"], "a gate")[0]
        hold["message"] = self.get(f"/v1/messages/{hold['message_id']}")["message"]
        message = hold["message"]
        seen = f"{message['cognition']['intent']} {message['action'].get('tool_input', '')}"
        say("operator", f"sees at the gate: {seen.rstrip()}")
        return hold

    def answer(self, word: str, hold: dict[str, Any], **body: Any) -> Any:
        """Bound to the digest: had the message changed since it was seen, this would be refused."""
        seen = {"message_id": hold["message_id"], "digest": hold["action_digest"]}
        return self.command(word, hold["session_id"], **seen, **body)


def pause_and_inject(operator: Operator, session_id: str) -> None:
    pause = operator.command("pause", session_id, note="let me look first")
    say("operator", f"pauses the agent: {pause['confirmation']}")
    known = "requested"
    while known != "confirmed":
        known = until(partial(_news, operator, session_id, pause, known), "the pause to take hold")
        say("gateway", f"the pause is {known}")
    operator.command("inject", session_id, prompt="Invoice 7 is a copy of invoice 5.")
    say("operator", "injects: Invoice 7 is a copy of invoice 5.")
    released = operator.command("unpause", session_id)["released"]
    say("operator", f"unpauses the agent; messages held meanwhile and now forwarded: {released}")


def _news(operator: Operator, session_id: str, pause: dict[str, Any], old: str) -> str | None:
    """How far the pause has come since; None while it is where it was."""
    rows = operator.get(f"/v1/sessions/{session_id}/interventions")["items"]
    (now,) = [row["confirmation"] for row in rows if row["intervention_id"] == pause["intervention_id"]]
    return None if now == old else str(now)


def answer_the_gates(operator: Operator, session_id: str) -> None:
    hold = operator.gate(session_id)
    operator.answer("approve", hold, note="fine")
    say("operator", "approves it")

    hold = operator.gate(session_id)
    action = hold["message"]["action"]
    action["tool_input"] = json.dumps(json.loads(action["tool_input"]) | {"amount": 9_800})
    operator.answer("edit", hold, new_content=hold["message"], note="one nought too many")
    say("operator", "edits it to 9,800 and lets it pass")

    hold = operator.gate(session_id)
    operator.answer("reject", hold, note="a copy of invoice 5")
    say("operator", "rejects it: a copy of invoice 5")

    hold = operator.gate(session_id)
    operator.answer("reject", hold, note="not before Friday")
    say("operator", "rejects it: not before Friday")


def stop_and_release(admin: Operator) -> None:
    """Two confirmations, each with the token of the step before: the gateway does not take one alone."""
    armed = admin.post("/v1/kill-switch", {"scope": "class", "target": "treasurer", "reason": "drill"})
    say("admin", f"arms the kill-switch for class treasurer: {armed['would_hold']['agents']} agent(s)")
    path = f"/v1/kill-switch/{armed['kill_id']}/confirm"
    half = admin.post(path, {"token": armed["token"]})
    say("admin", f"confirms once: {half['state']}")
    engaged = admin.post(path, {"token": half["token"]})
    say("admin", f"confirms twice: {engaged['state']}")
    time.sleep(1.5)  # so that there is something to see: the agent stands still
    admin.post(f"/v1/kill-switch/{armed['kill_id']}/release", {"reason": "drill is over"})
    say("admin", "releases it")


@contextmanager
def gateway(folder: Path) -> Iterator[dict[str, str]]:
    """A real one, on a free port; its keys are in the folder."""
    command = [sys.executable, "-m", "observatory.cli", "serve", "--data", str(folder), "--port", "0"]
    with (folder / "gateway.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=_environment(folder))
    try:
        known = until(lambda: process.poll() is not None or _credentials(folder), "the gateway")
        if process.poll() is not None:
            raise SystemExit(f"the gateway did not start: {(folder / 'gateway.log').read_text()}")
        say("gateway", f"is ready at {known['url']}")
        yield known
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def _credentials(folder: Path) -> dict[str, str] | None:
    try:
        known: dict[str, str] = json.loads((folder / "credentials.json").read_text())
        return known if httpx2.get(f"{known['url']}/readyz", trust_env=False).status_code == 200 else None
    except (OSError, ValueError, httpx2.TransportError):
        return None


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OBSERVATORY_")}
    return kept | {"OBSERVATORY_DATA": str(folder)}


@contextmanager
def agent(folder: Path) -> Iterator[list[str]]:
    """The agent as a process of its own; what it prints is told as it comes."""
    own = folder / "treasurer"  # with its own key; the folder of those who govern it is not named to it
    own.mkdir(mode=0o700)
    shutil.copy2(folder / "agent.json", own)
    command = [sys.executable, str(HERE / "agent.py")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment(own))
    assert process.stdout is not None
    told: list[str] = []

    def listen(lines: Iterator[str]) -> None:
        for line in lines:
            say("agent", line.strip())
            told.append(line.strip())

    ear = threading.Thread(target=listen, args=(process.stdout,))
    ear.start()
    try:
        yield told
        process.wait(PATIENCE_S)
    finally:
        process.kill()
        ear.join()
        process.stdout.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as name, gateway(Path(name)) as known:
        operator = Operator(known["url"], known["operator_key"])
        admin = Operator(known["url"], known["admin_key"])
        with agent(Path(name)) as told:
            begun = until(lambda: [line for line in told if line.startswith("begins")], "the agent")
            session_id = begun[0].split()[-1]
            pause_and_inject(operator, session_id)
            answer_the_gates(operator, session_id)
            until(lambda: "reconciles" in told, "the agent to reconcile")
            stop_and_release(admin)
            until(lambda: [line for line in told if "reconciles again" in line], "the agent to go on")
            operator.command("cancel", session_id, note="enough for today")
            say("operator", "cancels the agent's work")
            until(lambda: "ends" in told, "the agent to end")
        done = operator.get(f"/v1/sessions/{session_id}/interventions")["items"]
        say("gateway", "has on record: " + ", ".join(row["command"] for row in done))
        checked = operator.post("/v1/audit/verify", {})
        say("gateway", f"the chain of {checked['events_verified']} events is valid: {checked['valid']}")


if __name__ == "__main__":
    main()
