"""OTLP in over gRPC, where a setting gives it an address: the same door, another wire.

Law: nothing of a request is read before its key is known to be good and there is room for it. A refusal that
may pass is UNAVAILABLE, which every exporter tries again; one that will not is said as what it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from observatory.api.ingest import BodyError
from observatory.api.otlp import NotStored, OtlpIn
from observatory.api.otlp_seen import Signal
from observatory.errors import GatewayStopped, NotDurable, QueueFull, StartupError
from observatory.protocol.otlp_records import NotOtlp
from observatory.protocol.otlp_reply import CODES, reply

METHODS: Final[dict[str, Signal]] = {
    "opentelemetry.proto.collector.trace.v1.TraceService": "traces",
    "opentelemetry.proto.collector.logs.v1.LogsService": "logs",
}
CALLS: Final = 64  # read at once; each waits for its commit
WAITING: Final = 1_024  # calls at once, with those that wait for room; beyond it gRPC refuses by itself
READ_S: Final = 30.0  # for a request to come in, once there is room for it
GRACE_S: Final = 5.0


@asynccontextmanager
async def served(door: OtlpIn, address: str, most_bytes: int) -> AsyncIterator[None]:
    """While inside, gRPC is answered at `address` (`host:port`); with none, nothing happens."""
    if not address:
        yield
        return
    import grpc.aio

    limits = [("grpc.max_receive_message_length", most_bytes), ("grpc.so_reuseport", 0)]
    server = grpc.aio.server(options=limits, maximum_concurrent_rpcs=WAITING)
    room = asyncio.Semaphore(CALLS)
    server.add_generic_rpc_handlers(
        tuple(
            grpc.method_handlers_generic_handler(
                # As a stream, of which one is taken: of a single request gRPC reads all before it asks us.
                service,
                {"Export": grpc.stream_unary_rpc_method_handler(_Export(door, signal, room).call)},
            )
            for service, signal in METHODS.items()
        )
    )
    try:
        taken = server.add_insecure_port(address)
    except RuntimeError:
        taken = 0
    if not taken:
        raise StartupError(f"otlp_grpc: {address} is taken, not allowed or no host:port; choose another")
    await server.start()
    try:
        yield
    finally:
        await server.stop(GRACE_S)


class _Export:
    """One method; the bytes of a request in, the bytes of its answer out."""

    def __init__(self, door: OtlpIn, signal: Signal, room: asyncio.Semaphore) -> None:
        self._door, self._signal, self._room = door, signal, room

    async def call(self, requests: AsyncIterator[bytes], context: Any) -> bytes:
        import grpc

        codes = {code.value[0]: code for code in grpc.StatusCode}
        headers = {
            name.encode(): value.encode() if isinstance(value, str) else value
            for name, value in context.invocation_metadata() or ()
            if name == "authorization"
        }
        try:
            who = await self._door.admit(headers)
            async with self._room:
                async with asyncio.timeout(READ_S):
                    request = await anext(requests, b"")
                outcome = await self._door.take(who, self._signal, request, "protobuf")
        except BodyError as error:
            code, told = codes[CODES.get(error.code, 13)], error.answer.detail or ""
        except NotOtlp as fault:
            code, told = codes[CODES[400]], str(fault)
        except (QueueFull, GatewayStopped, NotDurable, NotStored) as error:
            code, told = codes[CODES[503]], str(error)
        except TimeoutError:
            code, told = codes[CODES[503]], f"the request did not come within {READ_S:.0f} s"
        else:
            return reply(self._signal, "protobuf", outcome.rejected, outcome.told)
        await context.abort(code, told)
        return b""
