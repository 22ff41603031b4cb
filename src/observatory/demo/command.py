"""`observatory demo`: the real gateway and the simulated mesh "Atlas", as processes of their own, shown live.

Nothing here is special: the mesh uses the SDK and an agent's key, the operator's part (`operator.py`) and
this screen the operator's key, and the closing line uses the gateway's own verifier. Ctrl-C, SIGTERM and
`--seconds` all end it the same way: first the mesh, then its messages are read to the end, then the gateway.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Annotated, Any

import httpx2
from cyclopts import Parameter

from observatory.cli.gateway_client import GatewayApi, GatewayRefused, read_credentials
from observatory.cli.live import LiveConnection, feed
from observatory.cli.terminal import CommandFailed, say
from observatory.demo import operator as atlas
from observatory.demo import operator_setup as atlas_operator
from observatory.demo.receivers import DemoReceivers
from observatory.demo.screen import DemoScene, Plain, Screen
from observatory.sdk.client import tls
from observatory.sdk.credentials import Trust, find_trust
from observatory.settings import load

READY_S = 60.0
STOP_S = 15.0
# Shorter than for real agents: a silent one must show within half a minute.
LIVELY = {"OBSERVATORY_HEARTBEAT_CHECK_S": "12", "OBSERVATORY_HEARTBEAT_TIMEOUT_S": "60"}
INCIDENTS = (
    "gate", "violation", "loop", "infection", "drift", "cascade", "budget", "silence", "pause", "proof",
)  # fmt: skip
# Variables that would point the demo at a real gateway or database.
FOREIGN = ("OBSERVATORY_URL", "OBSERVATORY_KEY", "OBSERVATORY_DATA", "OBSERVATORY_DB", "OBSERVATORY_BUS")


def demo(
    *,
    data: Annotated[str, Parameter(help="Folder of the demo.")] = "~/.observatory/demo",
    port: Annotated[int | None, Parameter(help="Port, 4800 by default; 0 takes a free one.")] = None,
    agents: Annotated[int, Parameter(help="How many simulated agents; the first 60 are the story's.")] = 60,
    rate: Annotated[float, Parameter(help="Messages a second, all together.")] = 6.0,
    seconds: Annotated[float | None, Parameter(help="Stop after this many seconds.")] = None,
    seed: Annotated[int, Parameter(help="Seed of everything the agents send.")] = 7,
    pace: Annotated[
        float, Parameter(help="How fast incidents follow each other; 1 is a cycle of 4½ min.")
    ] = 1.0,
    incident: Annotated[
        list[str] | None,
        Parameter(help=f"Only this one, at once: {', '.join(INCIDENTS)}; or none. May be repeated."),
    ] = None,
) -> None:
    """Run the product with a live simulated mesh; Ctrl-C ends it."""
    if agents < 1 or rate <= 0 or pace <= 0 or (seconds is not None and seconds <= 0):
        raise CommandFailed("--agents is at least 1, --rate, --pace and --seconds are more than 0")
    if unknown := [name for name in incident or () if name not in (*INCIDENTS, "none")]:
        raise CommandFailed(f"no incident is called {unknown[0]}; there are {', '.join(INCIDENTS)}, and none")
    folder = Path(data).expanduser().absolute()
    scene = DemoScene(agents)
    with _stoppable() as stop, ExitStack() as stack:
        receivers = stack.enter_context(DemoReceivers(folder))
        gateway = stack.enter_context(_Gateway(folder, port, receivers.address))
        client = stack.enter_context(gateway.client())
        admin = stack.enter_context(gateway.client("admin_key"))
        story_agents = stack.enter_context(atlas.as_operator(admin))
        atlas.prepare(story_agents, rate)
        with suppress(GatewayRefused):  # in a folder whose setup was changed by a user: continue without
            atlas_operator.open_operator(admin, receivers)
        links = [one.ask("POST", "/v1/logins", {})["url"] for one in (client, admin)]
        say(
            f"Hypervisor Observatory is ready at {client.url}",
            f"  sign in as operator (once): {links[0]}",
            f"  sign in as admin (once):    {links[1]}",
            f"  Atlas: {agents} simulated agents, {rate:g} messages a second; Ctrl-C ends it",
        )
        atlas.show_tour(client.url)
        head = _head(client)
        live = stack.enter_context(feed(client.url, client.key, ("messages", "events"), head, client.trust))
        mesh_options = [
            "--agents",
            str(agents),
            "--rate",
            str(rate),
            "--seed",
            str(seed),
            "--pace",
            str(pace),
        ]
        mesh_options += [] if seconds is None else ["--seconds", str(seconds)]
        mesh_options += [word for name in incident or () for word in ("--incident", name)]
        stack.enter_context(atlas_operator.SetupThread(admin, receivers))
        owner = atlas.owner_of(client)
        mesh_options += [] if owner is None else ["--owner", owner]
        with _Mesh(client.url, gateway.agent_key, folder, mesh_options) as mesh:
            _watch(live, scene, mesh, gateway, stop, atlas.Announcer(story_agents))
        _drain(live, scene, client)
        _summary(scene, client)


class _Child:
    """A child process in its own session: Ctrl-C in the terminal must not end all at once. Its stdin
    ends with us."""

    def __init__(self, command: list[str], environment: dict[str, str], reads_stdout: bool = False) -> None:
        """`is_heard`: its stdout is read by us."""
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child
        self.process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if reads_stdout else self._output,
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
        for pipe in (self.process.stdin, self.process.stdout, self._output):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def last_words(self) -> str:
        self._output.seek(0)
        lines = self._output.read().decode(errors="replace").strip().splitlines()
        messages = [line.removeprefix("observatory: ") for line in lines if line.startswith("observatory: ")]
        return (messages or lines or ["it printed nothing"])[-1]


class _Gateway(_Child):
    def __init__(self, folder: Path, port: int | None, neighbours: str) -> None:
        """`neighbours`: an address that egress allows, in addition to the settings."""
        self._folder = folder
        self._before = self._stamp()
        # The database is set explicitly: a settings file must not point the demo at a real one.
        command = ["-m", "observatory.cli.child_of_stdin", "serve", "--data", str(folder)]
        command += ["--db", f"sqlite:///{folder / 'observatory.db'}", "--bus", ""]
        command += [] if port is None else ["--port", str(port)]
        allowed = ",".join((*load().egress_allow, neighbours))
        outward = {"OBSERVATORY_LOG_LEVEL": "warning", "OBSERVATORY_EGRESS_ALLOW": allowed}
        super().__init__(command, outward | LIVELY)

    def _stamp(self) -> int:
        path = self._folder / "credentials.json"
        return path.stat().st_mtime_ns if path.exists() else 0

    @property
    def credentials(self) -> dict[str, str]:
        return read_credentials(self._folder) or {}

    @property
    def trust(self) -> Trust:
        """The CA that a gateway with TLS names in its folder."""
        return find_trust(authority=self.credentials.get("ca"))

    @property
    def agent_key(self) -> str:
        return self.credentials["agent_key"]

    @contextmanager
    def client(self, key: str = "operator_key") -> Iterator[GatewayApi]:
        """The gateway's API once it is ready; its own message if it cannot start."""
        deadline = time.monotonic() + READY_S
        while not self._is_ready():
            if self.process.poll() is not None:
                raise CommandFailed(self.last_words())
            if time.monotonic() > deadline:
                raise CommandFailed(f"the gateway was not ready after {READY_S:.0f} s: {self.last_words()}")
            time.sleep(0.05)
        patience = httpx2.Timeout(300, connect=3)
        opened = GatewayApi(self.credentials["url"], self.credentials[key], patience, trust=self.trust)
        try:
            yield opened
        finally:
            opened.close()

    def _is_ready(self) -> bool:
        if self._stamp() == self._before:
            return False
        try:
            url = self.credentials["url"]
            verify = tls(url, self.trust)
            return httpx2.get(f"{url}/readyz", timeout=2, trust_env=False, verify=verify).status_code == 200
        except (httpx2.TransportError, KeyError):
            return False


class _Mesh(_Child):
    def __init__(self, url: str, key: str, folder: Path, mesh_options: list[str]) -> None:
        command = ["-m", "observatory.demo.mesh", *mesh_options, "--parent", str(os.getpid())]
        environment = {"OBSERVATORY_URL": url, "OBSERVATORY_KEY": key, "OBSERVATORY_DATA": str(folder)}
        if (authority := (read_credentials(folder) or {}).get("ca")) is not None:
            environment["OBSERVATORY_CA"] = authority
        super().__init__(command, environment, reads_stdout=True)
        self.lines: SimpleQueue[bytes] = SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def answer(self, incident: str) -> None:
        """Report that the operator's part of the incident is done."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(f"{incident}\n".encode())
            self.process.stdin.flush()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)


class _Stop:
    asked = False


@contextmanager
def _stoppable() -> Iterator[_Stop]:
    """The first Ctrl-C or SIGTERM stops cleanly; a second one at once."""
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


def _watch(
    live: LiveConnection,
    scene: DemoScene,
    mesh: _Mesh,
    gateway: _Gateway,
    stop: _Stop,
    announcer: atlas.Announcer,
) -> None:
    with Screen(scene) if sys.stdout.isatty() else Plain(scene) as screen:
        while not stop.asked and mesh.process.poll() is None:
            if gateway.process.poll() is not None:
                raise CommandFailed(f"the gateway ended: {gateway.last_words()}")
            frame = live.frame(0.2)
            if frame is not None:
                scene.add(frame)
            while not mesh.lines.empty():
                if incident := announcer.hear(mesh.lines.get()):
                    mesh.answer(incident)
            screen.draw()
    if not stop.asked and mesh.process.returncode not in (0, None):
        raise CommandFailed(f"the simulated mesh ended: {mesh.last_words()}")


def _drain(live: LiveConnection, scene: DemoScene, client: GatewayApi) -> None:
    head, deadline = _head(client), time.monotonic() + 10
    while scene.cursor < head and time.monotonic() < deadline:
        frame = live.frame(0.5)
        if frame is not None:
            scene.add(frame)


def _head(client: GatewayApi) -> int:
    newest = client.ask("GET", "/v1/audit/tenant", limit=1)["items"]
    return int(newest[0]["hash_chain"]["sequence_number"]) if newest else 0


def _summary(scene: DemoScene, client: GatewayApi) -> None:
    verdict = client.ask("POST", "/v1/audit/verify", {})
    whole = (
        f"yes, {verdict['events_verified']:,} events" if verdict["valid"] else f"NO: {verdict['first_break']}"
    )
    say(
        f"messages accepted {scene.accepted:,}, rejected {scene.rejected:,}; "
        f"sessions {len(scene.sessions):,}, agents {len(scene.seen):,}",
        f"chain verified: {whole}",
    )
    if scene.last_session:
        say(f"last session: {client.url}/v1/sessions/{scene.last_session}")
