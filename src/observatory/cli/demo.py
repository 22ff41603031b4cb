"""`observatory demo`: the real gateway and a simulated mesh, as processes of their own, shown live.

Nothing here is special: the mesh uses the SDK and a key, this screen the live channel and a key, and the
closing line asks the gateway's own verifier. Ctrl-C, SIGTERM and `--seconds` all end it the same way:
first the mesh, then what it said is read to the end, then the gateway.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Annotated, Any

import httpx2
from cyclopts import Parameter

from observatory.cli.door import Api, read_credentials
from observatory.cli.live import Feed, feed
from observatory.cli.screen import Plain, Scene, Screen
from observatory.cli.terminal import CommandFailed, say

READY_S = 60.0
STOP_S = 15.0
# What would lead the demo to someone's real gateway or database.
FOREIGN = ("OBSERVATORY_URL", "OBSERVATORY_KEY", "OBSERVATORY_DATA", "OBSERVATORY_DB", "OBSERVATORY_BUS")


def demo(
    *,
    data: Annotated[str, Parameter(help="Folder of the demo.")] = "~/.observatory/demo",
    port: Annotated[int | None, Parameter(help="Port, 4800 by default; 0 takes a free one.")] = None,
    agents: Annotated[int, Parameter(help="How many simulated agents.")] = 12,
    rate: Annotated[float, Parameter(help="Messages a second, all together.")] = 5.0,
    seconds: Annotated[float | None, Parameter(help="End by itself after so long.")] = None,
    seed: int = 7,
) -> None:
    """Run the product with a live simulated mesh; Ctrl-C ends it."""
    if agents < 1 or rate <= 0 or (seconds is not None and seconds <= 0):
        raise CommandFailed("--agents is at least 1, --rate and --seconds are more than 0")
    folder = Path(data).expanduser().absolute()
    scene = Scene(agents)
    with _stoppable() as stop, ExitStack() as stack:
        gateway = stack.enter_context(_Gateway(folder, port))
        door = stack.enter_context(gateway.door())
        link = door.ask("POST", "/v1/logins", {})["url"]
        say(
            f"Hypervisor Observatory is ready at {door.url}",
            f"  sign in (one click, once):  {link}",
            f"  {agents} simulated agents, {rate:g} messages a second; Ctrl-C ends it",
        )
        head = _head(door)
        live = stack.enter_context(feed(door.url, door.key, ("messages", "events"), head))
        with _Mesh(door.url, gateway.agent_key, folder, agents, rate, seconds, seed) as mesh:
            _watch(live, scene, mesh, gateway, stop)
        _drain(live, scene, door)
        _summary(scene, door)


class _Child:
    """A process that hears only us: Ctrl-C in the terminal must not end all at once."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child
        self.process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            env={name: value for name, value in os.environ.items() if name not in FOREIGN} | environment,
            start_new_session=True,
        )

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._output.close()

    def last_words(self) -> str:
        self._output.seek(0)
        lines = self._output.read().decode(errors="replace").strip().splitlines()
        told = [line.removeprefix("observatory: ") for line in lines if line.startswith("observatory: ")]
        return (told or lines or ["it said nothing"])[-1]


class _Gateway(_Child):
    def __init__(self, folder: Path, port: int | None) -> None:
        self._folder = folder
        self._before = self._stamp()
        # The database is named outright: a settings file must not lead the demo to a real one.
        command = ["-m", "observatory.cli", "serve", "--data", str(folder)]
        command += ["--db", f"sqlite:///{folder / 'observatory.db'}", "--bus", ""]
        command += [] if port is None else ["--port", str(port)]
        super().__init__(command, {"OBSERVATORY_LOG_LEVEL": "warning"})

    def _stamp(self) -> int:
        path = self._folder / "credentials.json"
        return path.stat().st_mtime_ns if path.exists() else 0

    @property
    def credentials(self) -> dict[str, str]:
        return read_credentials(self._folder) or {}

    @property
    def agent_key(self) -> str:
        return self.credentials["agent_key"]

    @contextmanager
    def door(self) -> Iterator[Api]:
        """The gateway's doors once it is ready; its own sentence if it cannot start."""
        deadline = time.monotonic() + READY_S
        while not self._is_ready():
            if self.process.poll() is not None:
                raise CommandFailed(self.last_words())
            if time.monotonic() > deadline:
                raise CommandFailed(f"the gateway was not ready after {READY_S:.0f} s: {self.last_words()}")
            time.sleep(0.05)
        opened = Api(
            self.credentials["url"], self.credentials["operator_key"], httpx2.Timeout(300, connect=3)
        )
        try:
            yield opened
        finally:
            opened.close()

    def _is_ready(self) -> bool:
        if self._stamp() == self._before:
            return False
        try:
            url = self.credentials["url"]
            return httpx2.get(f"{url}/readyz", timeout=2, trust_env=False).status_code == 200
        except (httpx2.TransportError, KeyError):
            return False


class _Mesh(_Child):
    def __init__(
        self, url: str, key: str, folder: Path, agents: int, rate: float, seconds: float | None, seed: int
    ) -> None:
        command = [
            "-m",
            "observatory.demo.mesh",
            "--agents",
            str(agents),
            "--rate",
            str(rate),
            "--seed",
            str(seed),
        ]
        command += [] if seconds is None else ["--seconds", str(seconds)]
        environment = {"OBSERVATORY_URL": url, "OBSERVATORY_KEY": key, "OBSERVATORY_DATA": str(folder)}
        super().__init__(command, environment)


class _Stop:
    asked = False


@contextmanager
def _stoppable() -> Iterator[_Stop]:
    """The first Ctrl-C or SIGTERM asks for a clean end; a second one insists."""
    stop = _Stop()

    def ask(*_: object) -> None:
        if stop.asked:
            raise KeyboardInterrupt
        stop.asked = True

    kinds = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(kind, ask) for kind in kinds]
    try:
        yield stop
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)


def _watch(live: Feed, scene: Scene, mesh: _Mesh, gateway: _Gateway, stop: _Stop) -> None:
    with Screen(scene) if sys.stdout.isatty() else Plain(scene) as screen:
        while not stop.asked and mesh.process.poll() is None:
            if gateway.process.poll() is not None:
                raise CommandFailed(f"the gateway ended: {gateway.last_words()}")
            frame = live.frame(0.2)
            if frame is not None:
                scene.add(frame)
            screen.draw()
    if not stop.asked and mesh.process.returncode not in (0, None):
        raise CommandFailed(f"the simulated mesh ended: {mesh.last_words()}")


def _drain(live: Feed, scene: Scene, door: Api) -> None:
    head, deadline = _head(door), time.monotonic() + 10
    while scene.cursor < head and time.monotonic() < deadline:
        frame = live.frame(0.5)
        if frame is not None:
            scene.add(frame)


def _head(door: Api) -> int:
    newest = door.ask("GET", "/v1/audit/tenant", limit=1)["items"]
    return int(newest[0]["hash_chain"]["sequence_number"]) if newest else 0


def _summary(scene: Scene, door: Api) -> None:
    verdict = door.ask("POST", "/v1/audit/verify", {})
    whole = (
        f"yes, {verdict['events_verified']:,} events" if verdict["valid"] else f"NO: {verdict['first_break']}"
    )
    say(
        f"messages accepted {scene.accepted:,}, rejected {scene.rejected:,}; "
        f"sessions {len(scene.sessions):,}, agents {len(scene.seen):,}",
        f"chain verified: {whole}",
    )
    if scene.last_session:
        say(f"last session: {door.url}/v1/sessions/{scene.last_session}")
