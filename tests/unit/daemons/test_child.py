"""The keeper of a child process: told on stdin, started again when it ends, gone when nobody wants it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from observatory.runtime import child_process as child
from observatory.runtime.child_process import AnalystProcess
from tests.waiting import until

# Writes down what it was told, then waits for the end of its stdin.
OBEDIENT = (
    "import sys, pathlib; words = sys.stdin.readline(); file = pathlib.Path(sys.argv[1]); "
    "file.open('a').write(words); sys.stdin.read()"
)
STUBBORN = (
    "import sys, pathlib, time; words = sys.stdin.readline(); file = pathlib.Path(sys.argv[1]); "
    "file.open('a').write(words); time.sleep(600)"
)
HEAPS = "import os, sys, pathlib; pathlib.Path(sys.argv[1]).write_text(os.environ['MALLOC_ARENA_MAX'])"
SHORT = "import sys, pathlib; pathlib.Path(sys.argv[1]).open('a').write(sys.stdin.readline())"


def keeper(program: str, file: Path) -> AnalystProcess:
    return AnalystProcess(b"the words", (sys.executable, "-c", program, str(file)))


async def until_told(file: Path, times: int = 1) -> None:
    def look() -> bool:
        return file.exists() and file.read_text().count("the words\n") >= times

    await asyncio.to_thread(until, look)


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_it_is_told_on_stdin_and_goes_when_that_ends_s203(tmp_path: Path) -> None:
    async def run() -> tuple[bool, bool, int]:
        kept = keeper(OBEDIENT, tmp_path / "told")
        task = asyncio.create_task(kept.run())
        await until_told(tmp_path / "told")
        before = kept.alive
        await ended(task)
        return before, kept.alive, kept.restarts

    assert asyncio.run(run()) == (True, False, 0)


@pytest.mark.parametrize("named", [None, "7"])
def test_it_has_two_heaps_or_as_many_as_are_named_s1206(
    named: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    if named is not None:
        monkeypatch.setenv("MALLOC_ARENA_MAX", named)
    file = tmp_path / "heaps"

    async def run() -> None:
        process = await child.start_process(sys.executable, "-c", HEAPS, str(file))
        await process.wait()

    asyncio.run(run())
    assert file.read_text() == (named or "2")


def test_one_that_does_not_go_is_ended_s203(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> bool:
        kept = keeper(STUBBORN, tmp_path / "told")
        task = asyncio.create_task(kept.run())
        await until_told(tmp_path / "told")
        await ended(task)
        return kept.alive

    monkeypatch.setattr(child, "GOODBYE_S", 0.05)
    assert asyncio.run(run()) is False


def test_one_that_ends_is_started_again_s203(tmp_path: Path) -> None:
    async def run() -> int:
        kept = keeper(SHORT, tmp_path / "told")
        task = asyncio.create_task(kept.run())
        await until_told(tmp_path / "told", times=2)
        await ended(task)
        return kept.restarts

    assert asyncio.run(run()) >= 1
