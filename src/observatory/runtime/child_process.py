"""The analyst's keeper: a child process that lives as long as the gateway, started again if it ends.

Law: it never holds the gateway up. What it needs is written to its stdin, never to its command line, where
everybody could read it, nor left in its environment (S1189); the end of its stdin tells it to go, even when
the gateway was killed.
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
# -P: what lies in the working folder is not taken for a module of ours.
COMMAND = (sys.executable, "-P", "-m", "observatory.runtime.analyst")
# What a process needs to run as this one does: no setting, no key, nothing that was meant for the gateway.
KEPT = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|TZ|TMPDIR|TEMP|TMP|LD_LIBRARY_PATH|MALLOC_\w+|LC_\w+"
    r"|PYTHON\w+|VIRTUAL_ENV|COVERAGE_\w+|SSL_CERT_(FILE|DIR)|PG(PASSFILE|SERVICEFILE|SSL\w+|TZ|HOST|PORT|USER)"
)
# Each thread with a heap of its own keeps what it once needed: two heaps are enough. Who starts the gateway
# may name another number.
HEAPS = {"MALLOC_ARENA_MAX": "2"}
GOODBYE_S = 1.0
LONGEST_S = 10.0
HEALTHY_S = 30.0


class Child:
    def __init__(self, words: bytes, command: Sequence[str] = COMMAND) -> None:
        self._words, self._command = words, command
        self._process: Process | None = None
        self.restarts = 0

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        pause_s = 0.25
        while True:
            started = loop.time()
            code = await self._live()
            self.restarts += 1
            pause_s = 0.25 if loop.time() - started > HEALTHY_S else min(LONGEST_S, pause_s * 2)
            log.warning("the analyst ended (%s) and is started again in %.1f s", code, pause_s)
            await asyncio.sleep(pause_s)

    async def _live(self) -> int:
        process = self._process = await begin(*self._command)
        try:
            assert process.stdin is not None
            process.stdin.write(self._words + b"\n")
            with suppress(ConnectionError):  # it ended before it was told: its code says why
                await process.stdin.drain()
            return await process.wait()
        finally:
            await asyncio.shield(_end(process))


async def begin(*command: str) -> Process:
    # A session of its own: Ctrl-C in a terminal is for the gateway, which then says goodbye.
    kept = HEAPS | {name: text for name, text in os.environ.items() if KEPT.fullmatch(name)}
    return await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=DEVNULL, start_new_session=True, env=kept
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
