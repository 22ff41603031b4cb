"""The benches' gateway, forked as those of the tests are (see `terminal`): a start costs a tenth.

To whoever freezes and kills it, it is the same process with the same locks.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import psutil

from bench.gateway import START_S, Gateway, NotStarted
from tests.flows.server import DEADLINE_S, clean_environment
from tests.flows.terminal import Running, stay
from tests.waiting import until


class Forked(Gateway):
    _running: Running | None = None

    def start(self, before_exec: Callable[[], None] | None = None) -> Forked:
        assert before_exec is None, "it is not executed: take bench.gateway's"
        self.folder.mkdir(parents=True, exist_ok=True)
        words = ["serve", "--data", str(self.folder), "--port", str(self.port)]
        words += ["--db", self.db] if self.db else []
        settings = {f"OBSERVATORY_{name.upper()}": value for name, value in self._settings.items()}
        self._log.touch()
        said = len(self.log())
        self._running = stay(words, clean_environment(**settings), self._log)
        self.process = psutil.Process(self._running.pid)
        until(lambda: self._is_ready(said), START_S)
        found = json.loads((self.folder / "credentials.json").read_text())
        self.key, self.reader_key = found["agent_key"], found["operator_key"]
        self.port = int(found["url"].rsplit(":", 1)[1])
        return self

    @property
    def _log(self) -> Path:
        return self.folder / "server.log"

    def _is_ready(self, said: int) -> bool:
        if not self.is_running:
            raise NotStarted(f"the server did not start:\n{self.log()[-2_000:]}")
        return "is ready at" in self.log()[said:]

    @property
    def pid(self) -> int:
        assert self._running is not None
        return self._running.pid

    @property
    def is_running(self) -> bool:
        return self._running is not None and self._running.poll() is None

    def kill(self) -> None:
        if self._running is not None:
            self._running.kill()
            self._running.wait(DEADLINE_S)
            self._running = None

    def stop(self) -> None:
        if self._running is None:
            return
        self._running.send_signal(15)
        try:
            self._running.wait(DEADLINE_S)
        finally:
            self.kill()

    def __enter__(self) -> Forked:
        return self if self._running is not None else self.start()
