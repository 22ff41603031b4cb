"""Analysts of forked gateways, forked as these are: what an analyst loads is three times what a gateway's
start costs otherwise.

Before a gateway has threads or a loop it forks its nursery, which has loaded all an analyst needs and forks
one when asked. The gateway becomes its parent (`PR_SET_CHILD_SUBREAPER`: a process whose parent ends goes to
the nearest ancestor that takes it), so it is waited for, killed and found as one that was executed: own
session, settings on stdin, `observatory.analyst.main` from its first line on. What is to be seen of
its command line, and everything where the system is another, takes `EXECUTED`.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn

EXECUTED = {"ANALYST": "executed"}
PR_SET_CHILD_SUBREAPER = 36


def prepare() -> None:
    """In the process that all gateways are forked from: what every analyst loads."""
    from observatory import analyst

    assert analyst


def open_for(environment: Mapping[str, str]) -> None:
    """In a gateway that is about to begin: from now on its analyst comes from here."""
    is_wanted = environment.get("OBSERVATORY_INSIGHT", "true") == "true" and "ANALYST" not in environment
    if not is_wanted or not sys.platform.startswith("linux"):
        return
    from observatory.runtime import child_process as child

    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        ours.close()
        os.setsid()
        _rear(theirs)
    theirs.close()

    async def begin(*_: str) -> Forked:
        return Forked(ours)

    setattr(child, "begin", begin)  # noqa: B010  a process of theirs, by another way


class Forked:
    """An analyst as `asyncio.subprocess.Process` would tell of it, as far as its keeper asks."""

    def __init__(self, nursery: socket.socket) -> None:
        reads, writes = os.pipe()
        socket.send_fds(nursery, [b"an analyst"], [reads])
        self.pid = int(nursery.recv(16))
        os.close(reads)
        self.returncode: int | None = None
        self.stdin: Forked | None = self
        self._pipe: int | None = writes
        self._over = asyncio.get_running_loop().create_future()
        self._handle = os.pidfd_open(self.pid)
        asyncio.get_running_loop().add_reader(self._handle, self._ended)

    def _ended(self) -> None:
        asyncio.get_running_loop().remove_reader(self._handle)
        os.close(self._handle)
        self.close()
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._over.set_result(self.returncode)

    async def wait(self) -> int:
        code: int = await asyncio.shield(self._over)
        return code

    def kill(self) -> None:
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)

    def write(self, words: bytes) -> None:
        """A line of settings: less than a pipe takes at once."""
        assert self._pipe is not None
        with suppress(BrokenPipeError):  # it ended before it was told: its code says why
            os.write(self._pipe, words)

    async def drain(self) -> None:
        pass

    def close(self) -> None:
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None


def _rear(orders: socket.socket) -> NoReturn:
    """Until its gateway is gone."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        word, fds, _, _ = socket.recv_fds(orders, 16, 1)
        if not word:
            os._exit(0)
        received, tell = os.pipe()
        between = os.fork()
        if between == 0:
            pid = os.fork()
            if pid == 0:
                for number in (received, tell, orders.fileno()):
                    os.close(number)
                _become(fds[0])
            os.write(tell, str(pid).encode())
            os._exit(0)
        os.close(fds[0])
        os.waitpid(between, 0)  # from here on it is the gateway's child
        orders.send(os.read(received, 16))
        os.close(received)
        os.close(tell)


def _become(stdin: int) -> NoReturn:
    from observatory.analyst import main

    os.setsid()
    os.dup2(stdin, 0)
    os.close(stdin)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    code: Any = 1
    try:
        code = main()
    finally:
        sys.stderr.flush()
        os._exit(code)
