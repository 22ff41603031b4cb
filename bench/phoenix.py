"""Arize Phoenix as a child process in an environment of its own, as its manual starts it, on SQLite.

Made by uv into `.peers/` (not in git): its dependencies and ours want different versions. It is asked
only through its own API, and calls no other host: its telemetry and external resources are off.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

VERSION = "20.26.0"
PACKAGE = f"arize-phoenix=={VERSION}"
PLACE = Path(__file__).resolve().parent.parent / ".peers"
START_S = 120
COUNT = '{"query":"{projects{edges{node{recordCount}}}}"}'


class NoPeer(Exception):
    """The peer cannot be installed or started here; why, in the message."""


def installed(place: Path = PLACE) -> Path:
    """Its command; installed first if it is not there at this very version."""
    command, mark = place / "bin" / "phoenix", place / "installed"
    if command.exists() and mark.exists() and mark.read_text() == PACKAGE:
        return command
    uv = Path(sys.executable).parent / "uv"
    found = str(uv) if uv.exists() else shutil.which("uv")
    if found is None:
        raise NoPeer("uv is not there; run `make setup` first")
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    clean |= {"UV_PYTHON_DOWNLOADS": "never", "UV_SYSTEM_CERTS": "1"}
    shutil.rmtree(place, ignore_errors=True)
    for words in (
        ("venv", "--quiet", "--python", sys.executable, str(place)),
        ("pip", "install", "--quiet", "--python", str(place / "bin" / "python"), PACKAGE),
    ):
        ran = subprocess.run([found, *words], env=clean, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise NoPeer(f"{PACKAGE} cannot be installed; uv says:\n{ran.stderr.strip()[-2_000:]}")
    mark.write_text(PACKAGE)
    return command


class Phoenix:
    """One folder, any number of starts."""

    answers_when_stored = False
    key = ""

    def __init__(self, folder: Path, command: Path) -> None:
        self.folder, self._command = folder, command
        self.port, self._grpc = _free(), _free()
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> Phoenix:
        self.folder.mkdir(parents=True, exist_ok=True)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PHOENIX_")}
        clean.pop("PYTHONPATH", None)
        settings = {
            "PHOENIX_WORKING_DIR": str(self.folder),
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(self.port),
            "PHOENIX_GRPC_PORT": str(self._grpc),
            "PHOENIX_TELEMETRY_ENABLED": "false",
            "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
        }
        with (self.folder / "server.log").open("ab") as log:
            self._child = subprocess.Popen(
                [str(self._command), "serve"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=clean | settings,
            )
        deadline = time.monotonic() + START_S
        while not self._is_healthy():
            ended = self._child.poll()
            if ended is not None or time.monotonic() > deadline:
                self.kill()
                why = f"not ready after {START_S} s" if ended is None else f"it ended with {ended}"
                raise NoPeer(f"Phoenix did not start: {why}\n{self.log()[-2_000:]}")
            time.sleep(0.2)
        return self

    def _is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def log(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")

    def stored(self) -> int:
        """How many spans it says it has, of all projects."""
        asked = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/graphql",
            data=COUNT.encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            said: dict[str, Any] = json.loads(answer.read())
        return sum(one["node"]["recordCount"] for one in said["data"]["projects"]["edges"])

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """As its operator would; killed when it takes more than 60 s."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._child is None:
            return
        self._child.send_signal(how)
        try:
            self._child.wait(60)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._child = None

    def __enter__(self) -> Phoenix:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


def _free() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
