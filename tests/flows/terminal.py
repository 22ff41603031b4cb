"""Commands of the terminal and gateways without paying for Python's start each time.

A helper process loads the command line once and forks for every command: own process, own environment,
own stdout and stderr, real exit code, `observatory.cli.main` from its first line on. What depends on the
very start of the process (signals, `python -m`) uses `COMMAND` of `tests.flows.server` instead. Half of what
the tests cost a machine was the start of gateways.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

ENTRY = Path(__file__)
PATIENCE_S = 60.0


class Running:
    """A command that goes on, as `subprocess.Popen` would tell of it."""

    def __init__(self, pid: int, end: Path) -> None:
        self.pid, self._end = pid, end
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and self._end.exists():
            self.returncode = int(self._end.read_text())
            self._end.unlink()
            self._end.parent.rmdir()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = time.monotonic() + (PATIENCE_S if timeout is None else timeout)
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("observatory", timeout or PATIENCE_S)
            time.sleep(0.005)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Terminal:
    def __init__(self, kind: str) -> None:
        mine, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, str(ENTRY), str(theirs.fileno()), kind],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        theirs.close()
        self._socket = mine
        self._answers = mine.makefile("rb")

    def run(
        self, words: list[str], environment: dict[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as problems:
            order = {"words": words, "environment": environment, "out": out.name, "problems": problems.name}
            self._socket.settimeout(timeout)
            self._socket.sendall(json.dumps(order).encode() + b"\n")
            code = int(self._answers.readline())
            texts = [Path(file.name).read_text("utf-8") for file in (out, problems)]
        return subprocess.CompletedProcess(words, code, *texts)

    def stay(self, words: list[str], environment: dict[str, str], log: Path) -> Running:
        end = Path(tempfile.mkdtemp(prefix="obs-end-")) / "code"
        order = {"words": words, "environment": environment, "out": str(log), "problems": str(log)}
        self._socket.settimeout(PATIENCE_S)
        self._socket.sendall(json.dumps(order | {"end": str(end)}).encode() + b"\n")
        return Running(int(self._answers.readline()), end)

    def close(self) -> None:
        self._answers.close()
        self._socket.close()
        self._process.wait()


_terminals: dict[str, Terminal] = {}
_turn = threading.Lock()  # gateways may be started at once; orders and their answers go one by one


def run(words: list[str], environment: dict[str, str], timeout: float) -> subprocess.CompletedProcess[str]:
    with _answering("commands") as terminal:
        return terminal.run(words, environment, timeout)


def stay(words: list[str], environment: dict[str, str], log: Path) -> Running:
    """A gateway, or whatever else does not end by itself; what it says is added to `log`."""
    with _turn, _answering("gateways") as terminal:
        return terminal.stay(words, environment, log)


@contextmanager
def _answering(kind: str) -> Iterator[Terminal]:
    """One of its own for gateways: a command may take its time while one is started."""
    if kind not in _terminals:
        _terminals[kind] = Terminal(kind)
        atexit.register(_terminals[kind].close)
    try:
        yield _terminals[kind]
    except OSError:  # it took too long: one test's matter, the next gets a terminal that answers
        del _terminals[kind]
        raise


# --- the helper process ---


def _serve(number: int, kind: str) -> None:
    from observatory import bootstrap
    from observatory.cli import app, main
    from tests.authorities import read_once, system

    read_once()
    system()
    assert bootstrap and list(app)  # everything a command loads is loaded now
    for name in app:
        app[name]
    if kind == "gateways":
        _warm(app)
    gc.collect()
    gc.freeze()
    connection = socket.socket(fileno=number)
    for line in connection.makefile("rb"):
        order = json.loads(line)
        stays = "end" in order
        # Nobody asks how a watcher ended: the system forgets it at once.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN if stays else signal.SIG_DFL)
        pid = os.fork()
        if pid == 0:
            if stays:
                _watch(order, connection)
            _become(order, main)
        if stays:
            continue
        _, status = os.waitpid(pid, 0)
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _warm(app: Any) -> None:
    """What every gateway works out anew, once for all that are forked: putting the doors together is half of
    what a start costs. A process has one house, so the doors can be told of it later."""
    from observatory.features import parts
    from observatory.http import asgi_app as face
    from observatory.http.app import assembled
    from observatory.store.migrations.migrate import migrate
    from tests.flows import nursery

    nursery.prepare()
    deployments: list[Any] = []

    async def get_app() -> Any:
        return deployments[-1]

    doors = assembled(get_app, [part.FEATURE for part in parts("feature")])

    def received(deployment: Any, features: Any) -> Any:
        deployments.append(deployment)
        return doors

    setattr(face, "litestar_app", received)  # noqa: B010  it is not theirs to give
    app.parse_args(["serve", "--port", "0"])
    with tempfile.TemporaryDirectory() as folder:
        migrate(f"sqlite:///{folder}/observatory.db")


def _watch(order: dict[str, Any], connection: socket.socket) -> None:
    """Returns in the process that becomes the command; the one that stays behind writes down how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        connection.close()
        return
    connection.sendall(f"{pid}\n".encode())
    connection.close()
    _, status = os.waitpid(pid, 0)
    end = Path(order["end"])
    received = end.with_suffix(".part")
    received.write_text(str(os.waitstatus_to_exitcode(status)))
    received.rename(end)
    os._exit(0)


def _become(order: dict[str, Any], main: Any) -> NoReturn:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(order["environment"])
    for name, number in (("out", 1), ("problems", 2)):
        os.dup2(os.open(order[name], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), number)
    sys.argv = ["observatory", *order["words"]]
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    if order["words"][0] == "serve":
        from tests.flows import nursery

        nursery.open_for(order["environment"])
    code: object = 70  # a traceback: no command may end so
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    finally:
        if code == 70:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    sys.path[0] = str(ENTRY.resolve().parents[2])
    _serve(int(sys.argv[1]), sys.argv[2])
