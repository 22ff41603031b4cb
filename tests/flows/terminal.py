"""Commands of the terminal without paying for Python's start each time.

A helper process loads the command line once and forks for every command: own process, own environment,
own stdout and stderr, real exit code, `observatory.cli.main` from its first line on. What depends on the
very start of the process (signals, `python -m`) uses `COMMAND` of `tests.flows.server` instead.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, NoReturn

ENTRY = Path(__file__)


class Terminal:
    def __init__(self) -> None:
        mine, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, str(ENTRY), str(theirs.fileno())],
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

    def close(self) -> None:
        self._answers.close()
        self._socket.close()
        self._process.wait()


_terminal: Terminal | None = None


def run(words: list[str], environment: dict[str, str], timeout: float) -> subprocess.CompletedProcess[str]:
    global _terminal
    if _terminal is None:
        _terminal = Terminal()
        atexit.register(_terminal.close)
    try:
        return _terminal.run(words, environment, timeout)
    except OSError:  # it took too long: one test's matter, the next gets a terminal that answers
        _terminal = None
        raise


# --- the helper process ---


def _serve(number: int) -> None:
    from observatory import bootstrap
    from observatory.cli import app, main

    assert bootstrap and list(app)  # everything a command loads is loaded now
    for name in app:
        app[name]
    connection = socket.socket(fileno=number)
    for line in connection.makefile("rb"):
        pid = os.fork()
        if pid == 0:
            _become(json.loads(line), main)
        _, status = os.waitpid(pid, 0)
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _become(order: dict[str, Any], main: Any) -> NoReturn:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(order["environment"])
    for name, number in (("out", 1), ("problems", 2)):
        os.dup2(os.open(order[name], os.O_WRONLY), number)
    sys.argv = ["observatory", *order["words"]]
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
    _serve(int(sys.argv[1]))
