"""Runs the analyst as a child process for as long as the gateway lives, and restarts it if it ends.

Law: it never blocks the gateway. Its settings are written to its stdin, never to its command line, where
every user could read them, nor left in its environment (S1189); it exits when its stdin ends, even when the
gateway was killed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from contextlib import suppress

log = logging.getLogger("observatory.runtime")
# -P: files in the working folder are not imported as modules.
COMMAND = (sys.executable, "-P", "-m", "observatory.analyst")
# The variables a process needs to run as this one does: no setting, no key, nothing meant for the gateway.
INHERITED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|TZ|TMPDIR|TEMP|TMP|LD_LIBRARY_PATH|MALLOC_\w+|LC_\w+"
    r"|PYTHON\w+|VIRTUAL_ENV|COVERAGE_\w+|SSL_CERT_(FILE|DIR)|PG(PASSFILE|SERVICEFILE|SSL\w+|TZ|HOST|PORT|USER)"
)
# A thread with its own heap keeps the memory it once needed: two heaps are enough. The environment of the
# gateway may set another number.
HEAPS = {"MALLOC_ARENA_MAX": "2"}
GOODBYE_S = 1.0
MAX_PAUSE_S = 10.0
HEALTHY_S = 30.0


class AnalystProcess:
    def __init__(self, settings_line: bytes, command: Sequence[str] = COMMAND) -> None:
        self._settings_line, self._command = settings_line, command
        self._process: Process | None = None
        self.restarts = 0

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def run(self) -> None:
        """Run until cancelled."""
        loop = asyncio.get_running_loop()
        pause_s = 0.25
        while True:
            started = loop.time()
            code = await self._run_once()
            self.restarts += 1
            pause_s = 0.25 if loop.time() - started > HEALTHY_S else min(MAX_PAUSE_S, pause_s * 2)
            log.warning("the analyst exited (%s) and is restarted in %.1f s", code, pause_s)
            await asyncio.sleep(pause_s)

    async def _run_once(self) -> int:
        process = self._process = await start_process(*self._command)
        try:
            assert process.stdin is not None
            process.stdin.write(self._settings_line + b"\n")
            with suppress(ConnectionError):  # it exited before it read its settings: its code says why
                await process.stdin.drain()
            return await process.wait()
        finally:
            await asyncio.shield(_end(process))


async def start_process(*command: str) -> Process:
    # A process session of its own: Ctrl-C in a terminal is for the gateway, which then stops the child.
    environment = HEAPS | {name: text for name, text in os.environ.items() if INHERITED.fullmatch(name)}
    return await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=DEVNULL, start_new_session=True, env=environment
    )


async def _end(process: Process) -> None:
    if process.returncode is not None:
        return
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(GOODBYE_S):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
