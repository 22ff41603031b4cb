"""Several gateways on one database, for flow tests: started at the same moment, and a tenant reached by each.

They share what gateways of one house share: the database, and the key of the log with what was signed last.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from websockets.exceptions import ConnectionClosed
from websockets.sync.connection import Connection

from tests.flows.databases import ALONE
from tests.flows.server import Server


@contextmanager
def gateways(url: str, folder: Path, environment: dict[str, str], count: int = 2) -> Iterator[list[Server]]:
    """So many processes on this database, which may be empty; ended afterwards, whatever became of them."""
    shared = ALONE | {"OBSERVATORY_LOG_KEY": str(folder / "log.key")} | environment
    names = [f"gateway-{number}" for number in range(1, count + 1)]
    made = [Server(folder / name, "--db", url, environment=shared) for name in names]
    with ExitStack() as stack:
        for one in made:
            stack.callback(one.kill)
        with ThreadPoolExecutor(count) as pool:
            for _ in pool.map(lambda one: one.start(), made):
                pass
        yield made
        for one in made:
            assert one.stop() in (0, -9), one.log


def hears_the_end(socket: Connection) -> None:
    """Whatever comes before it is read."""
    with suppress(ConnectionClosed):
        while True:
            socket.recv(20)


class Elsewhere(Server):
    """The same tenant with the same keys, through another gateway."""

    def __init__(self, there: Server, gateway: Server) -> None:
        super().__init__(there.folder)
        self.url, self.port = gateway.url, gateway.port
