"""The mesh: who plays in it, and the processes that host them.

`run` starts a few processes that host many agents each; `python -m observatory.demo.mesh --role newsroom`
is one such process, without `--role` it is the supervisor. The key travels by environment, never by
argument, where every user of the machine could read it.
"""

import argparse
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from observatory.demo.plays import Crew, looper, newsroom, sloppy
from observatory.sdk import Agent, Delivery, Outbox
from observatory.sdk.credentials import find_door

CLUSTERS = ("aws-eu-central-1-mesh-04", "gcp-us-east1-mesh-01", "azure-southeastasia-mesh-02")
PLAYS: dict[str, Callable[[Crew, Random], Iterator[None]]] = {
    "newsroom": newsroom,
    "looper": looper,
    "sloppy": sloppy,
}
HOSTS = {"newsroom": 4, "looper": 1, "sloppy": 1}  # at most so many processes a part
STOP_S = 10.0


class Role(NamedTuple):
    """One simulated agent."""

    agent_id: str
    agent_type: str
    part: str
    crew: int
    cluster: str
    version: str
    model: str
    provider: str


class _Kind(NamedTuple):
    name: str
    agent_type: str
    part: str
    cluster: int
    version: str
    model: str
    provider: str


_PLANNER = _Kind("planner", "planner", "newsroom", 0, "1.4.0", "claude-opus-4", "anthropic")
_RESEARCHER = _Kind("researcher", "web_researcher", "newsroom", 0, "v2.1.0-stable", "gpt-4.1-mini", "openai")
_WRITER = _Kind("writer", "writer", "newsroom", 1, "3.0.2", "claude-sonnet-4", "anthropic")
_REVIEWER = _Kind("reviewer", "reviewer", "newsroom", 1, "1.1.0", "gemini-2.5-pro", "google")
_DEPLOYER = _Kind("deployer", "deployer", "newsroom", 2, "0.9.1", "mistral-small", "mistral")
_CRAWLER = _Kind("crawler", "crawler", "looper", 2, "1.0.3", "llama-3.3-70b", "self-hosted")
_SCRAPER = _Kind("scraper", "scraper", "sloppy", 2, "0.3.0", "llama-3.1-8b", "self-hosted")
# So ordered that the first few already tell the whole story.
_CREW = (
    _PLANNER, _RESEARCHER, _CRAWLER, _SCRAPER, _WRITER, _REVIEWER,
    _DEPLOYER, _RESEARCHER, _RESEARCHER, _RESEARCHER, _WRITER, _REVIEWER,
)  # fmt: skip


def cast(agents: int) -> list[Role]:
    """The first `agents` roles; always the same ones, twelve to a crew, crews moving round the clusters."""
    counts: dict[str, int] = {}
    roles = []
    for n in range(agents):
        crew, kind = n // len(_CREW), _CREW[n % len(_CREW)]
        number = counts[kind.name] = counts.get(kind.name, 0) + 1
        cluster = CLUSTERS[(kind.cluster + crew) % len(CLUSTERS)]
        about = (kind.version, kind.model, kind.provider)
        roles.append(Role(f"{kind.name}-{number}", kind.agent_type, kind.part, crew, cluster, *about))
    return roles


def run(
    url: str,
    key: str,
    agents: int = 12,
    rate: float = 5.0,
    seconds: float | None = None,
    seed: int = 7,
    *,
    data: str | os.PathLike[str] | None = None,
    stop: threading.Event | None = None,
) -> int:
    """Play until `seconds` have passed, `stop` is set, or SIGINT/SIGTERM comes; 0 if all went well.

    `rate` is messages a second of the whole mesh. In another than the main thread only `stop` is heard.
    """
    stop = stop or threading.Event()
    roles = cast(agents)
    environment = os.environ | {"OBSERVATORY_URL": url, "OBSERVATORY_KEY": key}
    if data is not None:
        environment["OBSERVATORY_DATA"] = str(Path(data).expanduser())
    restore = _stop_on_signals(stop)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for part, most in HOSTS.items():
            crews = len({role.crew for role in roles if role.part == part})
            hosts = min(most, crews)
            for n in range(hosts):
                arguments = ["--role", part, "--share", f"{n}/{hosts}", "--parent", str(os.getpid())]
                arguments += ["--agents", str(agents), "--rate", str(rate), "--seed", str(seed)]
                arguments += ["--seconds", str(seconds)] if seconds is not None else []
                command = [sys.executable, "-m", "observatory.demo.mesh", *arguments]
                processes.append(subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL))
        while not stop.is_set() and any(process.poll() is None for process in processes):
            stop.wait(0.2)
    finally:
        clean = _end(processes)
        restore()
    return 0 if clean else 1


def _end(processes: list[subprocess.Popen[bytes]]) -> bool:
    """Stop those still playing; True if all ended well."""
    stopped = [process for process in processes if process.poll() is None]
    for process in stopped:
        process.terminate()
    deadline = time.monotonic() + STOP_S
    for process in processes:
        try:
            process.wait(max(deadline - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            process.kill()
    # One that was still starting has no handler yet and had said nothing: our signal ends it outright.
    fine = {process.pid: (0, -signal.SIGTERM) for process in stopped}
    return all(process.wait() in fine.get(process.pid, (0,)) for process in processes)


def _stop_on_signals(stop: threading.Event) -> Callable[[], None]:
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    kinds = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(kind, lambda *_: stop.set()) for kind in kinds]

    def restore() -> None:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)

    return restore


def perform(
    part: str,
    roles: Sequence[Role],
    outbox: Outbox,
    rate: float,
    stop: threading.Event,
    seconds: float | None = None,
    seed: int = 7,
    parent: int | None = None,
) -> int:
    """Play one part's crews in this process, `rate` messages a second; returns how many were said."""
    plays: list[Iterator[None]] = []
    weights: list[int] = []
    for number in sorted({role.crew for role in roles}):
        crew: Crew = {}
        members = [role for role in roles if role.crew == number]
        for role in members:
            agent = Agent(
                role.agent_id,
                agent_type=role.agent_type,
                version=role.version,
                cluster=role.cluster,
                model=role.model,
                provider=role.provider,
                outbox=outbox,
                # One thread plays them all: one that waited would stop the rest. They are held all the same.
                control=False,
            )
            crew.setdefault(role.agent_id.rsplit("-", 1)[0], []).append(agent)
        plays.append(PLAYS[part](crew, Random(f"{seed}/{part}/{number}")))
        weights.append(len(members))
    rng, said = Random(f"{seed}/{part}"), 0
    started = due = time.monotonic()
    while plays and not (seconds is not None and due - started >= seconds):
        if stop.wait(max(due - time.monotonic(), 0.0)) or (parent is not None and os.getppid() != parent):
            break
        next(rng.choices(plays, weights)[0])
        said += 1
        due = max(due + 1 / rate, time.monotonic() - 1.0)  # after a stall make up for a second at most
    return said


def main(argv: Sequence[str] | None = None) -> int:
    """The supervisor, or with `--role` one host process."""
    parser = argparse.ArgumentParser(prog="python -m observatory.demo.mesh", description=__doc__)
    parser.add_argument("--role", choices=sorted(PLAYS), help="host this part in this process")
    parser.add_argument("--share", default="0/1", help="which of how many hosts of this part, e.g. 0/4")
    parser.add_argument("--agents", type=int, default=12)
    parser.add_argument("--rate", type=float, default=5.0, help="messages a second of the whole mesh")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--url")
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.agents < 1 or args.rate <= 0:
        parser.error("--agents must be at least 1 and --rate more than 0")
    door = find_door(args.url)
    if args.role is None:
        return run(door.url, door.key, args.agents, args.rate, args.seconds, args.seed)
    share, hosts = (int(number) for number in args.share.split("/"))
    everyone = cast(args.agents)
    mine = [role for role in everyone if role.part == args.role and role.crew % hosts == share]
    if not mine:
        parser.error(f"with --agents {args.agents} nobody plays {args.role}")
    if args.role == "sloppy":  # its refusals are the point; the gateway shows them
        logging.getLogger("observatory.sdk").setLevel(logging.ERROR)
    stop = threading.Event()
    _stop_on_signals(stop)
    outbox = Outbox(f"demo-{args.role}-{share}", door, Delivery())
    rate = args.rate * len(mine) / len(everyone)
    perform(args.role, mine, outbox, rate, stop, args.seconds, args.seed, args.parent)
    outbox.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
