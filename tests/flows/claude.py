"""The real Claude Code in a test: the program that the Agent SDK's wheel brings, its hooks, a scripted model.

It runs in a home and a project of its own with an environment made from nothing, so that no key, setting or
session of whoever runs the tests is read, and it talks to the scripted model alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import claude_agent_sdk

from observatory.sdk.integrations.claude_code import settings
from observatory.sdk.integrations.claude_code.hook import HookOptions
from tests.flows.scripted_model import Script, ScriptedModel
from tests.flows.server import Server
from tests.waiting import PATIENCE_S, until

CLI = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
HOOK = f"{sys.executable} -P -m observatory.sdk.integrations.claude_code"
MODEL = "claude-sonnet-4-5"
Json = dict[str, Any]


class Project:
    """A folder with our hooks, an operator at the gateway, and the sessions Claude Code has there."""

    def __init__(self, server: Server, folder: Path, options: HookOptions | None = None) -> None:
        self.server = server
        self.folder = folder / f"project-{uuid.uuid4().hex[:8]}"
        self.home = folder / f"home-{uuid.uuid4().hex[:8]}"
        self.data = self.home / "observatory"
        self.agent = f"claude-code-{self.folder.name}"
        (self.folder / ".claude").mkdir(parents=True)
        self.data.mkdir(parents=True)
        self.know_gateway(server.url)
        self.install(options or HookOptions())
        self.models: list[ScriptedModel] = []
        self.session_id = str(uuid.uuid4())
        """Of the next run; known before, so that a scripted turn can command it."""

    def know_gateway(self, url: str) -> None:
        known = {"url": url, "agent_key": self.server.key("agent")}
        (self.data / "agent.json").write_text(json.dumps(known))

    def install(self, options: HookOptions) -> None:
        patient = options._replace(box_s=PATIENCE_S)  # this machine may be busy with other tests
        made = settings.installed({}, HOOK, patient)
        (self.folder / ".claude" / "settings.json").write_text(json.dumps(made))

    def environment(self, model: ScriptedModel | None = None) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        return kept | {
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.home / ".claude"),
            "ANTHROPIC_BASE_URL": model.url if model is not None else "http://127.0.0.1:9",
            "ANTHROPIC_API_KEY": "sk-ant-of-a-test",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "NO_PROXY": "*",
            "OBSERVATORY_DATA": str(self.data),
        }

    def start(self, *turns: Script, tools: str = "Bash,Write,Read,Agent") -> Running:
        """`claude -p` at work on a prompt, with these turns of the model."""
        model = ScriptedModel(*turns)
        self.models.append(model)
        session_id = self.session_id
        words = [str(CLI), "-p", "do it", "--output-format", "json", "--model", MODEL]
        words += ["--session-id", session_id, "--allowedTools", tools]
        process = subprocess.Popen(
            words,
            cwd=self.folder,
            env=self.environment(model),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return Running(process, model, session_id)

    def event(self, name: str, session_id: str, **members: Any) -> Json:
        """A hook's input as Claude Code writes it."""
        common = {"session_id": session_id, "transcript_path": "", "cwd": str(self.folder)}
        return common | {"hook_event_name": name, "permission_mode": "default"} | members

    def hook(self, event: Json | str, *options: str) -> Ended:
        """One hook by hand, as Claude Code would start it."""
        return self.begin(event, *options).end()

    def begin(self, event: Json | str, *options: str) -> Begun:
        box = () if any(one.startswith("--box") for one in options) else (f"--box={PATIENCE_S:g}",)
        process = subprocess.Popen(
            [*HOOK.split(), *options, *box],
            env=self.environment() | {"CLAUDE_PROJECT_DIR": str(self.folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        process.stdin.write(event if isinstance(event, str) else json.dumps(event))
        process.stdin.close()
        process.stdin = None
        return Begun(process)

    def close(self) -> None:
        for model in self.models:
            model.close()

    # The operator.

    def do(self, command: str, session_id: str, **body: Any) -> Json:
        received = {"agent_id": self.agent} | body
        answer = self.server.http("operator").post(f"/v1/sessions/{session_id}/{command}", json=received)
        assert answer.status_code < 300, answer.text
        return dict(answer.json())

    def steps(self, session_id: str | None = None) -> list[Json]:
        query: Json = {"agent_id": self.agent, "after": 0, "limit": 1000}
        items = self.server.http("admin").get("/v1/messages", params=query).json()["items"]
        found = [item for item in items if session_id in (None, item["session_id"])]
        return [item["message"] | {"state": item["state"]} for item in found]

    def holds(self) -> list[Json]:
        items = self.server.http("operator").get("/v1/holds", params={"limit": 1000}).json()["items"]
        return [item for item in items if item["agent_id"] == self.agent]

    def held(self, command: str) -> Json:
        """The request for this command, once it waits for a person."""

        def look() -> Json | None:
            holds = self.holds()  # first: what they hold is archived by then
            asked = {step["meta"]["step_id"]: step for step in self.steps()}
            for hold in holds:
                if command in (asked[hold["step_id"]]["action"].get("tool_input") or ""):
                    return hold | {"content": asked[hold["step_id"]]}
            return None

        found = until(look)
        assert found is not None
        return found

    def rule(self, effect: str, tool: str) -> None:
        rule = {"effect": effect, "match": {"sender": [self.agent], "tool": [tool]}}
        made = self.server.http("admin").post("/v1/policies", json=rule)
        assert made.status_code < 300, made.text


class Running:
    def __init__(self, process: subprocess.Popen[str], model: ScriptedModel, session_id: str) -> None:
        self.process, self.model, self.session_id = process, model, session_id

    def result(self) -> Json:
        """What it printed at its end."""
        out, err = self.process.communicate(timeout=PATIENCE_S * 2)
        assert out.startswith("{"), f"{out}\n{err}"
        return dict(json.loads(out))

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


class Ended(NamedTuple):
    code: int
    answer: Json
    complaint: str

    @property
    def received(self) -> Json:
        """What the hook answers for its event."""
        return dict(self.answer.get("hookSpecificOutput") or {})


class Begun(NamedTuple):
    process: subprocess.Popen[str]

    def end(self) -> Ended:
        out, err = self.process.communicate(timeout=PATIENCE_S * 2)
        return Ended(self.process.returncode, json.loads(out) if out else {}, err)


def bash(command: str, description: str = "") -> tuple[str, Json]:
    return "Bash", {"command": command, "description": description or f"Run {command}"}


class Line:
    """A line to the gateway: a port that nobody listens on, that never answers, or that forwards."""

    def __init__(self, server: Server) -> None:
        self._to = ("127.0.0.1", server.port)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.cut()

    def cut(self) -> None:
        self._socket.close()

    def hang(self) -> None:
        """Whoever calls is let in and hears nothing."""
        self.cut()
        self._socket = socket.create_server(("127.0.0.1", self.port))

    def mend(self) -> None:
        self.cut()
        self._socket = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._socket.accept()
                far = socket.create_connection(self._to)
                for a, b in ((near, far), (far, near)):
                    threading.Thread(target=_pump, args=(a, b), daemon=True).start()


def _pump(a: socket.socket, b: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := a.recv(65536):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
