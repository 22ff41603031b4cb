"""The real gateway as a child process: started, measured from outside, stopped or killed.

Knows nothing of what is sent to it. CPU and memory are the kernel's figures for that process (psutil);
counters come from its own `/metrics`.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

START_S = 60
COMMAND = (sys.executable, "-m", "observatory.cli")
TETHERED = (sys.executable, "-m", "observatory.cli.child_of_stdin")


class NotStarted(Exception):
    """The server ended, or said nothing, before it was ready; its own words are in the message."""


class Gateway:
    """One folder, any number of starts."""

    def __init__(
        self,
        folder: Path,
        db: str | None = None,
        settings: Mapping[str, str] | None = None,
        port: int = 0,
        is_tethered: bool = False,
    ) -> None:
        """`is_tethered`: it ends with this process, however that ends."""
        self.folder, self.db, self.port = folder, db, port
        self._settings = dict(settings or {})
        self._command = TETHERED if is_tethered else COMMAND
        self._child: subprocess.Popen[bytes] | None = None
        self.process: psutil.Process | None = None
        self.key = self.reader_key = ""

    def start(self, before_exec: Callable[[], None] | None = None) -> Gateway:
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [*self._command, "serve", "--data", str(self.folder), "--port", str(self.port)]
        command += ["--db", self.db] if self.db else []
        clean = {name: value for name, value in os.environ.items() if not name.startswith("OBSERVATORY_")}
        with (self.folder / "server.log").open("ab") as log:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE if self._command is TETHERED else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=clean | {f"OBSERVATORY_{name.upper()}": value for name, value in self._settings.items()},
                preexec_fn=before_exec,
            )
        self.process = psutil.Process(self._child.pid)
        self._wait_ready()
        found = json.loads((self.folder / "credentials.json").read_text())
        self.key, self.reader_key = found["agent_key"], found["operator_key"]
        # With a public URL of its own, which is the balancer's, a gateway gets its port beforehand.
        self.port = self.port or int(found["url"].rsplit(":", 1)[1])
        return self

    def _wait_ready(self) -> None:
        assert self._child is not None and self._child.stdout is not None
        pipe, deadline, said = self._child.stdout.fileno(), time.monotonic() + START_S, b""
        while b"is ready at" not in said:
            if time.monotonic() > deadline:
                self.kill()
                raise NotStarted(f"the server was not ready after {START_S} s")
            if not select.select([pipe], [], [], 0.5)[0]:
                continue
            part = os.read(pipe, 65_536)
            if not part:
                self._child.wait()
                raise NotStarted(f"the server did not start:\n{self.log()[-2_000:]}")
            said += part

    def log(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def freeze(self) -> None:
        """SIGSTOP, and wait until the kernel says it stands."""
        assert self.process is not None
        os.kill(self.pid, signal.SIGSTOP)
        while self.process.status() != psutil.STATUS_STOPPED:
            time.sleep(0.0005)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL: no handler, no flush, no goodbye."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            for pipe in (self._child.stdin, self._child.stdout):
                if pipe is not None:
                    pipe.close()
            self._child = None

    def stop(self) -> None:
        """A clean stop; killed when it takes more than 30 s."""
        if self._child is None:
            return
        self._child.terminate()
        try:
            self._child.wait(30)
        finally:
            self.kill()

    def __enter__(self) -> Gateway:
        return self if self._child is not None else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def get(self, path: str) -> tuple[int, bytes]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", headers={"Authorization": f"Bearer {self.reader_key}"}
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def metrics(self) -> dict[str, float]:
        code, text = self.get("/metrics")
        if code != 200:
            raise RuntimeError(f"/metrics answered {code}")
        pairs = [line.rsplit(" ", 1) for line in text.decode().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in pairs}

    def cpu_s(self) -> float:
        """User and system time so far, all threads."""
        assert self.process is not None
        times: Any = self.process.cpu_times()
        return float(times.user + times.system)

    def rss_mb(self) -> float:
        """Resident memory as the kernel counts it, shared pages included."""
        assert self.process is not None
        return float(self.process.memory_info().rss) / 1e6
