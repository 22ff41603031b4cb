"""The process that runs the mesh: one event loop for the story's agents, and the crowd.

`python -m observatory.demo.mesh` needs OBSERVATORY_URL and OBSERVATORY_KEY; a key travels by environment,
never by argument, where every user of the machine could read it. On stdout it says one JSON line for each
incident, `{"incident", "what", "path"}`; a line on stdin names one in which an operator has done their part.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence

from observatory.demo import crowd
from observatory.demo.agents import StoryAgents
from observatory.demo.cast import cast
from observatory.demo.director import INCIDENTS, Director
from observatory.sdk import Delivery, Outbox
from observatory.sdk.credentials import find_credentials

STORY_RATE = 12.0  # of a mesh with a crowd the story itself says no more than so much a second
PULSE_S = 8.0
OPEN_AT_ONCE = 10  # channels opened at once; more would load the gateway


def announce(incident: str, what: str, path: str) -> None:
    print(json.dumps({"incident": incident, "what": what, "path": path}), flush=True)


async def host(args: argparse.Namespace, outbox: Outbox, stop: asyncio.Event) -> None:
    """Run until stopped."""
    roles = cast(args.agents)
    named, others = [r for r in roles if r.is_named], [r for r in roles if not r.is_named]
    story_rate = min(args.rate / 2, STORY_RATE) if others else args.rate
    story_agents = StoryAgents(named, outbox, story_rate, args.seed, args.pace, args.pulse)
    story_agents.owner = args.owner
    director = Director(story_agents, args.incident, announce)
    _listen_to_operator(story_agents.is_done)
    for n, name in enumerate(story_agents.roles):
        story_agents.listen(name)
        if n % OPEN_AT_ONCE == 0:
            await asyncio.sleep(0.05)
    work = [asyncio.create_task(director.direct())]
    if others:
        work.append(
            asyncio.create_task(crowd.play(crowd.gather(others, outbox), args.rate - story_rate, args.seed))
        )
    watching = asyncio.create_task(_until(stop, args.seconds, args.parent))
    await asyncio.wait([watching, *work], return_when=asyncio.FIRST_COMPLETED)
    for task in work:
        if task.done():
            task.result()  # they play for ever: it failed
        task.cancel()


def _listen_to_operator(act: Callable[[str], None]) -> None:
    """A line an incident, until stdin ends; one that cannot be watched (a file) says nothing."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        if names := os.read(0, 4096):  # short, and a line is written at once
            for name in names.decode("utf-8", "replace").split():
                act(name)
        else:
            loop.remove_reader(0)

    with contextlib.suppress(OSError, ValueError, NotImplementedError):
        loop.add_reader(0, read)


async def _until(stop: asyncio.Event, seconds: float | None, parent: int | None) -> None:
    """Wait for a stop request, the end of the time, or the end of the parent process."""
    end = None if seconds is None else asyncio.get_running_loop().time() + seconds
    while not stop.is_set():
        left = 0.5 if end is None else min(end - asyncio.get_running_loop().time(), 0.5)
        if left <= 0 or (parent is not None and os.getppid() != parent):
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), left)


async def run(args: argparse.Namespace) -> None:
    stop = asyncio.Event()
    for kind in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(kind, stop.set)
    outbox = Outbox("demo-mesh", find_credentials(args.url), Delivery())
    try:
        await host(args, outbox, stop)
    finally:
        await asyncio.to_thread(outbox.close)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m observatory.demo.mesh", description=__doc__)
    parser.add_argument("--agents", type=int, default=60)
    parser.add_argument("--rate", type=float, default=6.0, help="messages a second of the whole mesh")
    parser.add_argument("--seconds", type=float, help="end by itself after so long")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--pace", type=float, default=1.0, help="how fast the incidents follow each other")
    parser.add_argument("--incident", action="append", default=[], choices=[*INCIDENTS, "none"])
    parser.add_argument("--pulse", type=float, default=PULSE_S, help="seconds between heartbeats")
    parser.add_argument("--owner", help="id of the user whom agents ask to decide")
    parser.add_argument("--url")
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.agents < 1 or args.rate <= 0 or args.pace <= 0:
        parser.error("--agents must be at least 1, --rate and --pace more than 0")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    args = arguments(argv)
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stderr)
    # Refusals are part of the story; the gateway shows them.
    logging.getLogger("observatory.sdk").setLevel(logging.ERROR)
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    asyncio.run(run(args))
    return 0


if __name__ == "__main__":
    sys.exit(main())
