"""`make mesh`: the deployment of compose.yaml without Docker: PostgreSQL, NATS, gateways and a balancer.

The servers come from their wheels. Everything lies in one folder, which is made for the run and gone after
it, or stays where `--data` says. A gateway that dies is started again, as the container would be. Ctrl-C
ends all of it, the balancer first.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.gateway import Gateway, NotStarted
from bench.postgres import ask, cluster
from observatory.features.certificates import authority
from tools.balancer import Balancer

ROOT = Path(__file__).parents[1]
CONFIGURATION = ROOT / "deploy/nats.conf"
WATCH_S = 0.5


class CannotStart(Exception):
    """What is missing, and what to do."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def must_be_free(port: int) -> None:
    """Asked before anything is started; 0 means any."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise CannotStart(
                f"port {port} cannot be taken ({error.strerror}); choose another with --port"
            ) from None


@contextmanager
def postgres(folder: Path | None) -> Iterator[str]:
    """The URL of the deployment's database, created if missing."""
    with cluster(folder=folder) as server:
        if not ask(server.url, "SELECT 1 FROM pg_database WHERE datname = 'observatory'"):
            ask(server.url, "CREATE DATABASE observatory")
        yield server.url.replace("/postgres?", "/observatory?")


def certificate(folder: Path) -> dict[str, str]:
    """An authority of this run and its certificate for 127.0.0.1, as `deploy/nats.conf` names them."""
    root = authority.make_authority("Observatory mesh", days=30)
    made = authority.issue(root, "127.0.0.1", "server", ["127.0.0.1"])
    for name, content in (("nats.key", made.key_pem()), ("nats.crt", made.pem), ("ca.crt", root.pem)):
        with open(folder / name, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(content)
    return {"NATS_TLS_CERT": str(folder / "nats.crt"), "NATS_TLS_KEY": str(folder / "nats.key")}


@contextmanager
def nats(folder: Path) -> Iterator[dict[str, str]]:
    """The gateways' settings of a NATS server with JetStream and TLS, where each user has a password."""
    beside = Path(sysconfig.get_path("scripts")) / "nats-server"
    binary = str(beside) if beside.exists() else shutil.which("nats-server")
    if not binary:
        raise CannotStart("nats-server is not here; run `make setup`, or leave it out with --no-nats")
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    passwords = {f"NATS_{one}_PASSWORD": f"p{secrets.token_hex(16)}" for one in ("GATEWAY", "AGENTS")}
    where = ["--addr", "127.0.0.1", "--port", str(port), "--http_port", str(free_port())]
    with (folder / "nats.log").open("ab") as log:
        process = subprocess.Popen(
            [binary, "--config", str(CONFIGURATION), *where],
            env=os.environ | {"NATS_STORE": str(folder / "store")} | passwords | certificate(folder),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        url = f"tls://gateway:{passwords['NATS_GATEWAY_PASSWORD']}@127.0.0.1:{port}"
        yield {"bus": url, "bus_ca": str(folder / "ca.crt")}
    finally:
        process.terminate()
        process.wait(20)


def gateways(folder: Path, count: int, public_url: str, db: str, bus: dict[str, str]) -> list[Gateway]:
    """Not started. They share the database, the bus and the key of the log; each has a folder of its own.

    Whatever `OBSERVATORY_*` is set holds for all of them.
    """
    settings = {name[12:].lower(): value for name, value in os.environ.items() if name[:12] == "OBSERVATORY_"}
    settings |= {"log_key": str(folder / "log.key"), "public_url": public_url} | bus
    return [
        Gateway(folder / f"gateway-{number}", db, settings, free_port(), is_tethered=True)
        for number in range(1, count + 1)
    ]


async def watch(made: list[Gateway]) -> None:
    """Restart a process that died, on its port."""
    while True:
        await asyncio.sleep(WATCH_S)
        for one in made:
            if not one.is_running:
                print(f"  the gateway on port {one.port} ended; starting it again", flush=True)
                with contextlib.suppress(NotStarted):
                    await asyncio.to_thread(one.start)


async def balance(made: list[Gateway], port: int, announce: Callable[[], None]) -> None:
    """Until stopped by a signal. The address is announced once connections to it are accepted."""
    over, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, over.set)
    balancer = Balancer([("127.0.0.1", one.port) for one in made])
    serving = balancer.serve("127.0.0.1", port, on_listening=announce)
    tasks = [asyncio.create_task(serving), asyncio.create_task(watch(made))]
    ending = asyncio.create_task(over.wait())
    await asyncio.wait([*tasks, ending], return_when=asyncio.FIRST_COMPLETED)
    print("  stopping", flush=True)
    for task in (*tasks, ending):
        task.cancel()
    for failed in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(failed, BaseException) and not isinstance(failed, asyncio.CancelledError):
            raise failed


def run(folder: Path, is_kept: bool, count: int, port: int, with_nats: bool) -> None:
    url = f"http://127.0.0.1:{port}"
    with ExitStack() as stack:
        db = stack.enter_context(postgres(folder / "postgres" if is_kept else None))
        bus = stack.enter_context(nats(folder / "nats")) if with_nats else {}
        made = gateways(folder, count, url, db, bus)
        for one in made:
            stack.callback(one.stop)
            one.start()
        keys = json.loads((folder / "gateway-1/credentials.json").read_text())

        def announce() -> None:
            print(f"{count} gateways on one PostgreSQL{' and NATS' if bus else ''}, behind {url}")
            print(f"  gateways:   {', '.join(f'http://127.0.0.1:{one.port}' for one in made)}")
            print(f"  admin key:  {keys['admin_key']}\n  agent key:  {keys['agent_key']}")
            print(f"  files:      {folder}{'' if is_kept else ' (gone when this ends)'}")
            print("  Ctrl-C stops all of it", flush=True)

        asyncio.run(balance(made, port, announce))
        for number in (
            signal.SIGINT,
            signal.SIGTERM,
        ):  # it is stopping: a second signal must not interrupt the cleanup
            signal.signal(number, signal.SIG_IGN)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tools.mesh", description="Several gateways as one, locally."
    )
    parser.add_argument("--gateways", type=int, default=2)
    parser.add_argument("--port", type=int, default=4800, help="of the balancer; 0 takes a free one")
    parser.add_argument("--data", type=Path, help="a folder that is kept (default: one that is not)")
    parser.add_argument(
        "--no-nats", action="store_true", help="gateways notify each other through the database alone"
    )
    asked = parser.parse_args()
    if asked.gateways < 1:
        parser.error("at least one gateway is needed")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # also while it starts: what runs is ended
    folder = asked.data.resolve() if asked.data else Path(tempfile.mkdtemp(prefix="obs-mesh-"))
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        must_be_free(asked.port)
        run(folder, bool(asked.data), asked.gateways, asked.port or free_port(), not asked.no_nats)
    except (CannotStart, NotStarted) as error:
        print(f"mesh: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        pass
    finally:
        if not asked.data:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
