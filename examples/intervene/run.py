"""Run it: `python examples/intervene/run.py`. Starts a gateway in a temporary folder, an agent, and an
operator.

The operator is this script: plain HTTP with an operator's key (an admin's for the kill-switch), the same
calls as `observatory pause`, `approve`, `kill`, … make. Each line shows time, actor and event.
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
    """One write per line: the agent's lines come from another thread and must not be interleaved."""
    sys.stdout.write(f"{time.monotonic() - BEGUN:5.1f} s  {who:<9} {text}\n")
    sys.stdout.flush()


def until(check: Callable[[], Any], what: str) -> Any:
    """Poll until the result is true, up to `PATIENCE_S`."""
    end = time.monotonic() + PATIENCE_S
    while not (result := check()):
        if time.monotonic() > end:
            raise SystemExit(f"timed out after {PATIENCE_S} s waiting for {what}")
        time.sleep(0.02)
    return result


class Operator:
    """A person with a key. Every command is one request; the response is the new state."""

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

    def command(self, verb: str, session_id: str, **body: Any) -> Any:
        return self.post(f"/v1/sessions/{session_id}/{verb}", {"agent_id": "treasurer-1", **body})

    def gate(self, session_id: str) -> dict[str, Any]:
        """The request that waits in this session, with its content and digest."""
        path = f"/v1/holds?session_id={session_id}&gates_only=true"
        hold: dict[str, Any] = until(lambda: self.get(path)["items"], "a gate")[0]
        hold["message"] = self.get(f"/v1/messages/{hold['message_id']}")["message"]
        message = hold["message"]
        seen = f"{message['cognition']['intent']} {message['action'].get('tool_input', '')}"
        say("operator", f"sees at the gate: {seen.rstrip()}")
        return hold

    def answer(self, verb: str, hold: dict[str, Any], **body: Any) -> Any:
        """Bound to the digest: refused if the message has changed since it was read."""
        seen = {"message_id": hold["message_id"], "digest": hold["action_digest"]}
        return self.command(verb, hold["session_id"], **seen, **body)


def pause_and_inject(operator: Operator, session_id: str) -> None:
    pause = operator.command("pause", session_id, note="let me look first")
    say("operator", f"pauses the agent: {pause['confirmation']}")
    known = "requested"
    while known != "confirmed":
        known = until(partial(_news, operator, session_id, pause, known), "the pause to take effect")
        say("gateway", f"the pause is {known}")
    operator.command("inject", session_id, prompt="Invoice 7 is a copy of invoice 5.")
    say("operator", "injects: Invoice 7 is a copy of invoice 5.")
    released = operator.command("unpause", session_id)["released"]
    say("operator", f"unpauses the agent; messages held meanwhile and now forwarded: {released}")


def _news(operator: Operator, session_id: str, pause: dict[str, Any], old: str) -> str | None:
    """The new state of the pause; None while it is unchanged."""
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
    operator.answer("edit", hold, new_content=hold["message"], note="one zero too many")
    say("operator", "edits it to 9,800 and approves it")

    hold = operator.gate(session_id)
    operator.answer("reject", hold, note="a copy of invoice 5")
    say("operator", "rejects it: a copy of invoice 5")

    hold = operator.gate(session_id)
    operator.answer("reject", hold, note="not before Friday")
    say("operator", "rejects it: not before Friday")


def stop_and_release(admin: Operator) -> None:
    """Two confirmations, each with the token of the step before: the gateway does not accept one alone."""
    armed = admin.post("/v1/kill-switch", {"scope": "class", "target": "treasurer", "reason": "drill"})
    say("admin", f"arms the kill-switch for class treasurer: {armed['would_hold']['agents']} agent(s)")
    path = f"/v1/kill-switch/{armed['kill_id']}/confirm"
    half = admin.post(path, {"token": armed["token"]})
    say("admin", f"confirms once: {half['state']}")
    engaged = admin.post(path, {"token": half["token"]})
    say("admin", f"confirms twice: {engaged['state']}")
    time.sleep(1.5)  # so that the stop is visible: the agent waits
    admin.post(f"/v1/kill-switch/{armed['kill_id']}/release", {"reason": "drill is over"})
    say("admin", "releases it")


@contextmanager
def gateway(folder: Path) -> Iterator[dict[str, str]]:
    """A real gateway on a free port; its keys are in the folder."""
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
    others = {name: value for name, value in os.environ.items() if not name.startswith("OBSERVATORY_")}
    return others | {"OBSERVATORY_DATA": str(folder)}


@contextmanager
def agent(folder: Path) -> Iterator[list[str]]:
    """The agent as a separate process; its output is printed as it arrives."""
    own = folder / "treasurer"  # with its own key; it has no access to the operators' folder
    own.mkdir(mode=0o700)
    shutil.copy2(folder / "agent.json", own)
    command = [sys.executable, str(HERE / "agent.py")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment(own))
    assert process.stdout is not None
    lines_seen: list[str] = []

    def listen(lines: Iterator[str]) -> None:
        for line in lines:
            say("agent", line.strip())
            lines_seen.append(line.strip())

    reader = threading.Thread(target=listen, args=(process.stdout,))
    reader.start()
    try:
        yield lines_seen
        process.wait(PATIENCE_S)
    finally:
        process.kill()
        reader.join()
        process.stdout.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as name, gateway(Path(name)) as known:
        operator = Operator(known["url"], known["operator_key"])
        admin = Operator(known["url"], known["admin_key"])
        with agent(Path(name)) as lines:
            begun = until(lambda: [line for line in lines if line.startswith("begins")], "the agent")
            session_id = begun[0].split()[-1]
            pause_and_inject(operator, session_id)
            answer_the_gates(operator, session_id)
            until(lambda: "reconciles" in lines, "the agent to reconcile")
            stop_and_release(admin)
            until(lambda: [line for line in lines if "reconciles again" in line], "the agent to continue")
            operator.command("cancel", session_id, note="enough for today")
            say("operator", "cancels the agent's work")
            until(lambda: "ends" in lines, "the agent to end")
        done = operator.get(f"/v1/sessions/{session_id}/interventions")["items"]
        say("gateway", "has on record: " + ", ".join(row["command"] for row in done))
        checked = operator.post("/v1/audit/verify", {})
        say("gateway", f"the chain of {checked['events_verified']} events is valid: {checked['valid']}")


if __name__ == "__main__":
    main()
