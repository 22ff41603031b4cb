"""Runs test suites, in parallel where one waits while the other computes.

    python -m tools.suites "--ignore tests/windows -n 3" "tests/windows -n 3"

Each argument is the words for one pytest, after the Python that runs it where it is not this one
(".venv-crewai/bin/python tests/crewai"). The first is seen as it runs; what the others say is kept and shown
whole when they have ended. Processes on a busy machine miss a beat now and then: when all have ended, what
failed runs once more, alone. Twice is red, and so is a suite that broke off.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

# A file is one worker's; which come first says tests/conftest.py.
SHARED = ("--dist", "loadfile", "--no-loadscope-reorder")
FAILED = 1  # pytest: some tests failed; anything higher is no verdict on tests


@dataclass
class Suite:
    words: list[str]
    number: int
    """The first keeps pytest's own cache; the others have one each, or they would forget for each other."""
    kept: IO[bytes] | None = None

    def __post_init__(self) -> None:
        self.process = subprocess.Popen(
            self._command(*SHARED) if "-n" in self.words else self._command(),
            stdin=subprocess.DEVNULL,
            stdout=self.kept,
            stderr=subprocess.STDOUT if self.kept else None,
        )

    def _command(self, *more: str) -> list[str]:
        cache = [] if self.number == 0 else ["-o", f"cache_dir=.pytest_cache/{self.number}"]
        is_other = self.words[:1] and Path(self.words[0]).name == "python"
        python, words = (self.words[0], self.words[1:]) if is_other else (sys.executable, self.words)
        return [python, "-m", "pytest", *cache, *words, *more]

    def wait(self) -> int:
        code = self.process.wait()
        if self.kept is not None:
            print(f"\n{' '.join(self.words)}:", flush=True)
            self.kept.seek(0)
            sys.stdout.buffer.write(self.kept.read())
            sys.stdout.flush()
        return code

    def once_more(self) -> int:
        print(f"\n{' '.join(self.words)}: what failed, once more, one by one", flush=True)
        failed = ["--last-failed", "--last-failed-no-failures", "none"]
        return subprocess.run(
            [*alone(self._command()), *failed], stdin=subprocess.DEVNULL, check=False
        ).returncode


def alone(command: list[str]) -> list[str]:
    """Without workers."""
    if "-n" not in command:
        return command
    place = command.index("-n")
    return command[:place] + command[place + 2 :]


def main(asked: list[str]) -> int:
    with ExitStack() as files:
        suites = [
            Suite(
                shlex.split(words), number, files.enter_context(tempfile.TemporaryFile()) if number else None
            )
            for number, words in enumerate(asked)
        ]
        try:
            codes = [suite.wait() for suite in suites]
        except KeyboardInterrupt:
            # They heard it too: each stops its gateways.
            for suite in suites:
                suite.process.wait()
            return 130
        last = [
            suite.once_more() if code == FAILED else code for suite, code in zip(suites, codes, strict=True)
        ]
        return int(any(last))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
