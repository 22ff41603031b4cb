"""A real gateway for flow tests: a process of its own, reached only through its public doors.

`Server` starts `observatory serve` (forked: see `terminal`) on a free port and a folder of its own, waits
until `/readyz` says so, and can be stopped, killed and started again on the same folder (and port).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx2

from tests.flows import terminal

DEADLINE_S = 30.0
COMMAND = (sys.executable, "-m", "observatory.cli")


# Many tests share a gateway and its keys: each must find what it was refused.
ALL_IN_FULL = {"OBSERVATORY_REFUSALS_IN_FULL": "10000"}


def clean_environment(**more: str) -> dict[str, str]:
    """The environment without any `OBSERVATORY_*` of the person who runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OBSERVATORY_")}
    return kept | {"NO_PROXY": "*", "PYTHONUNBUFFERED": "1"} | more


class Server:
    """One gateway process. `http(role)` gives a client that carries that role's key."""

    verb = "serve"
    verify: Any = True  # a gateway with TLS of its own: whom its clients trust, and what they show

    def __init__(
        self, folder: Path, *options: str, port: int = 0, environment: dict[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.port = port
        self.url = ""
        self._options = options
        self._environment = clean_environment(**(ALL_IN_FULL | (environment or {})))
        self._log_path = folder.parent / f"{folder.name}.log"
        self._process: terminal.Running | None = None
        self._clients: dict[str, httpx2.Client] = {}

    def start(self) -> Server:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        credentials = self.folder / "credentials.json"
        before = credentials.stat().st_mtime_ns if credentials.exists() else 0
        words = [self.verb, "--data", str(self.folder), "--port", str(self.port), *self._options]
        self._process = terminal.stay(words, self._environment, self._log_path)
        deadline = time.monotonic() + DEADLINE_S
        while not self._is_ready(credentials, before):
            if self._process.poll() is not None:
                raise AssertionError(f"the gateway ended with {self._process.returncode}:\n{self.log}")
            if time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"the gateway was not ready after {DEADLINE_S} s:\n{self.log}")
            time.sleep(0.02)
        return self

    def _is_ready(self, credentials: Path, before: int) -> bool:
        # credentials.json is written on every start, with the port that was really bound.
        if not credentials.exists() or credentials.stat().st_mtime_ns == before:
            return False
        self.url = self.credentials["url"]
        self.port = int(self.url.rpartition(":")[2])
        try:
            return self._ask_ready().status_code == 200
        except httpx2.TransportError:
            return False

    def _ask_ready(self) -> httpx2.Response:
        return httpx2.get(f"{self.url}/readyz", timeout=2, trust_env=False, verify=self.verify)

    @property
    def credentials(self) -> dict[str, str]:
        found: dict[str, str] = json.loads((self.folder / "credentials.json").read_text())
        return found

    def key(self, role: str) -> str:
        """`admin`, `operator` or `agent`; any other role gets a key of its own, made by the admin."""
        name = f"{role}_key"
        if name in self.credentials:
            return self.credentials[name]
        made = self.http("admin").post("/v1/keys", json={"role": role, "label": f"{role} of a test"})
        assert made.status_code == 201, made.text
        key: str = made.json()["key"]
        return key

    def http(self, role: str = "admin") -> httpx2.Client:
        if role not in self._clients:
            headers = {"Authorization": f"Bearer {self.key(role)}"} if role != "nobody" else {}
            self._clients[role] = httpx2.Client(
                base_url=self.url, headers=headers, timeout=30, trust_env=False, verify=self.verify
            )
        return self._clients[role]

    def send(self, message: bytes | dict[str, Any], role: str = "agent") -> httpx2.Response:
        """One message through the front door."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return self._post(body, "application/json", role)

    def send_lines(self, lines: list[bytes], role: str = "agent") -> list[dict[str, Any]]:
        """An NDJSON batch; the answers in order."""
        answer = self._post(b"\n".join(lines), "application/x-ndjson", role)
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines()]

    def _post(self, body: bytes, content_type: str, role: str) -> httpx2.Response:
        """Again when told to come later, as a good client: the house's own acts stand in the queue too."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            answer = self.http(role).post(
                "/v1/messages", content=body, headers={"content-type": content_type}
            )
            if answer.status_code != 429 or time.monotonic() > deadline:
                return answer
            time.sleep(0.05)

    @property
    def socket_url(self) -> str:
        return "ws" + self.url.removeprefix("http")

    @property
    def process(self) -> terminal.Running:
        assert self._process is not None
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> str:
        return self._log_path.read_text(errors="replace") if self._log_path.exists() else ""

    def stop(self) -> int:
        """Ask it to end, as Ctrl-C or a service manager would; its exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> int:
        """kill -9: no goodbye, nothing flushed."""
        return self._end(signal.SIGKILL)

    def _end(self, kind: signal.Signals) -> int:
        for client in self._clients.values():
            client.close()
        self._clients.clear()
        process, self._process = self._process, None
        if process is None:
            return 0
        if process.poll() is None:
            process.send_signal(kind)
        try:
            return process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"the gateway did not stop:\n{self.log}") from None

    def restart(self, *, kill: bool = False) -> Server:
        """Down and up again on the same folder and port."""
        if self._process is not None:
            self.kill() if kill else self.stop()
        return self.start()

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def observatory(
    *words: str, home: Path | None = None, timeout: float = 60, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command of the terminal as a user would; never raises for its exit code."""
    extra = dict(environment or {})
    if home is not None:
        extra["HOME"] = str(home)
    return terminal.run(list(words), clean_environment(**extra), timeout)
