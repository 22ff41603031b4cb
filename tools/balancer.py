"""A small load balancer: TCP connections, so HTTP, WebSockets and streams alike, to gateways that are ready.

It asks every gateway's `/readyz` once a second. A new connection goes to the ready one with the fewest; one
that cannot be connected to is passed over at once. A gateway that is no longer ready gets nothing new and
keeps what it has until either side ends it. For a single machine; larger deployments have a better one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

LOOK_S = 1.0
PATIENCE_S = 2.0
CHUNK = 1 << 16
Address = tuple[str, int]
NOBODY = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n%s"
)
SAID = (
    b'{"status":"refused","reason":"no_gateway",'
    b'"detail":"no gateway is ready; nothing was taken, send it again"}'
)


class Gateway:
    """One behind the balancer. Before it was first asked it counts as away."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.is_ready = False
        self.connections = 0
        self.served = 0


class Balancer:
    def __init__(self, addresses: Sequence[Address]) -> None:
        self.gateways = [Gateway(address) for address in addresses]
        self._open: set[asyncio.Task[None]] = set()

    @property
    def ready(self) -> list[Gateway]:
        return [one for one in self.gateways if one.is_ready]

    async def serve(
        self, host: str, port: int, drain_s: float = 5.0, on_listening: Callable[[], None] = lambda: None
    ) -> None:
        """Until cancelled; then nothing new is taken and what is open gets so long to end."""
        async with asyncio.TaskGroup() as group:
            looking = [group.create_task(self._look(one)) for one in self.gateways]
            server = await asyncio.start_server(self._accept, host, port, limit=CHUNK)
            on_listening()
            try:
                await server.serve_forever()
            except asyncio.CancelledError:
                server.close()
                if self._open:
                    await asyncio.wait(self._open, timeout=drain_s)
                for task in (*self._open, *looking):
                    task.cancel()
                raise

    async def _look(self, gateway: Gateway) -> None:
        while True:
            try:
                async with asyncio.timeout(PATIENCE_S):
                    gateway.is_ready = await is_ready(gateway.address)
            except (OSError, TimeoutError):
                gateway.is_ready = False
            await asyncio.sleep(LOOK_S)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self._pass_on(reader, writer)
        finally:
            self._open.discard(task)
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for gateway in sorted(self.ready, key=lambda one: (one.connections, one.served)):
            try:
                async with asyncio.timeout(PATIENCE_S):
                    theirs, to_them = await asyncio.open_connection(*gateway.address, limit=CHUNK)
            except (OSError, TimeoutError):
                gateway.is_ready = False  # nothing was sent to it yet: the next one may have it
                continue
            gateway.connections += 1
            gateway.served += 1
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(_copy(reader, to_them))
                    group.create_task(_copy(theirs, writer))
            finally:
                gateway.connections -= 1
                to_them.close()
            return
        with contextlib.suppress(OSError):
            writer.write(NOBODY % (len(SAID), SAID))
            await writer.drain()


async def is_ready(address: Address) -> bool:
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        await writer.drain()
        return (await reader.readline()).split(b" ")[1:2] == [b"200"]
    finally:
        writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One direction, to its end; the end is passed on too, so that either side may finish its sentence."""
    with contextlib.suppress(OSError):
        while part := await reader.read(CHUNK):
            writer.write(part)
            await writer.drain()
    with contextlib.suppress(OSError):
        if writer.can_write_eof():
            writer.write_eof()
