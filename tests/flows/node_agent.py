"""A Node process with an agent of the TypeScript SDK, led by a test: it runs what it is told in JavaScript.

`agent.run("return (await agent.step('x')).step_id")` waits for the result; `agent.aside(…)` gives a future.
What is thrown there is raised here as `Thrown`.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import threading
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.flows.server import Server, clean_environment
from tests.waiting import PATIENCE_S
from tools import windows

DRIVER = Path(__file__).with_name("node_agent.mjs")


class Thrown(Exception):
    """An error of JavaScript, by its name."""

    def __init__(self, received: dict[str, Any]) -> None:
        super().__init__(f"{received.get('name')}: {received.get('message')}")
        self.name: str = received.get("name") or ""
        self.reason: str | None = received.get("reason")
        self.note: str | None = received.get("note")
        self.faults: list[dict[str, str]] = received.get("faults") or []


class NodeAgent:
    """Ends with its block: asked to close, and killed if it does not."""

    def __init__(
        self,
        server: Server,
        name: str,
        home: Path,
        environment: dict[str, str] | None = None,
        **options: Any,
    ) -> None:
        self.name = name
        node, _ = windows.node()
        self.credentials = {"url": server.url, "key": server.key("agent"), "data": str(home)}
        words = [
            str(node),
            str(DRIVER),
            str(windows.build_sdk() / "node.js"),
            name,
            json.dumps(self.credentials | options),
        ]
        self.process = subprocess.Popen(
            words,
            env=clean_environment(**(environment or {})),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._ids = itertools.count()
        self._asked: dict[int, Future[Any]] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def aside(self, js: str) -> Future[Any]:
        number: int = next(self._ids)
        done: Future[Any] = Future()
        self._asked[number] = done
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"id": number, "js": js}) + "\n")
        self.process.stdin.flush()
        return done

    def run(self, js: str, timeout: float = PATIENCE_S) -> Any:
        return self.aside(js).result(timeout)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            received = json.loads(line)
            done = self._asked.pop(received["id"])
            done.set_exception(Thrown(received["error"])) if "error" in received else done.set_result(
                received["value"]
            )
        for left in self._asked.values():
            left.set_exception(EOFError("the Node process has ended"))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def end(self) -> int:
        """Nothing more is said to it: it ends by itself, as a program does whose work is done."""
        assert self.process.stdin is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            return self.process.wait(PATIENCE_S)
        finally:
            self.kill()

    def __enter__(self) -> NodeAgent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end() if kind is None else self.kill()
