"""OTLP in over gRPC, where a setting gives it an address: the same door, another wire.

Law: nothing of a request is read before its key is known to be good and there is room for it. A refusal that
may pass is UNAVAILABLE, which every exporter tries again; one that will not is said as what it is.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from observatory.errors import GatewayStopped, NotDurable, QueueFull, StartupError
from observatory.features.otlp.counters import Signal
from observatory.features.otlp.records import NotOtlp
from observatory.features.otlp.replies import CODES, reply
from observatory.features.otlp.routes import NotStored, OtlpIn
from observatory.http.ingest import BodyError
from observatory.protocol.certificates import Certificate, NotACertificate, read, read_pem
from observatory.runtime.tls import Tls

METHODS: Final[dict[str, Signal]] = {
    "opentelemetry.proto.collector.trace.v1.TraceService": "traces",
    "opentelemetry.proto.collector.logs.v1.LogsService": "logs",
}
CALLS: Final = 64  # read at once, fewer where so many large ones would not fit; each waits for its commit
WAITING: Final = 1_024  # calls at once, with those that wait for room; beyond it gRPC refuses by itself
READ_S: Final = 30.0  # for a request to come in, once there is room for it
GRACE_S: Final = 5.0


@asynccontextmanager
async def served(
    door: OtlpIn, address: str, most_bytes: int, tls: Tls | None = None, reading_bytes: int = 256 << 20
) -> AsyncIterator[None]:
    """While inside, gRPC is answered at `address` (`host:port`); with none, nothing happens.

    With TLS it has the gateway's certificate. A client's is asked for only where one is required: gRPC knows
    no optional one.
    """
    if not address:
        yield
        return
    import grpc.aio

    limits = [("grpc.max_receive_message_length", most_bytes), ("grpc.so_reuseport", 0)]
    server = grpc.aio.server(options=limits, maximum_concurrent_rpcs=WAITING)
    room = asyncio.Semaphore(max(1, min(CALLS, reading_bytes // most_bytes)))
    server.add_generic_rpc_handlers(
        tuple(
            grpc.method_handlers_generic_handler(
                # As a stream, of which one is taken: of a single request gRPC reads all before it asks us.
                service,
                {"Export": grpc.stream_unary_rpc_method_handler(_Export(door, signal, room, tls).call)},
            )
            for service, signal in METHODS.items()
        )
    )
    try:
        if tls is None:
            taken = server.add_insecure_port(address)
        else:
            taken = server.add_secure_port(address, _credentials(tls))
    except RuntimeError:
        taken = 0
    if not taken:
        raise StartupError(f"otlp_grpc: {address} is taken, not allowed or no host:port; choose another")
    await server.start()
    try:
        yield
    finally:
        await server.stop(GRACE_S)


def _credentials(tls: Tls) -> Any:
    """The files in force, looked at with each handshake: replaced ones count for the next."""
    import grpc

    required = tls.loaded.context.verify_mode is ssl.CERT_REQUIRED
    served = tls.loaded

    def made() -> Any:
        roots = tls.loaded.authorities_pem if required else None
        pairs = [(tls.loaded.key_pem, tls.loaded.chain_pem)]
        return grpc.ssl_server_certificate_configuration(pairs, roots)

    def fetched() -> Any:
        nonlocal served
        if tls.loaded is served:
            return None  # as before
        served = tls.loaded
        return made()

    return grpc.dynamic_ssl_server_credentials(made(), fetched, required)


def _shown(context: Any, proxies: frozenset[str]) -> Certificate | None:
    """What gRPC verified in the handshake; a pinned proxy's own is nobody's, and no header is read here."""
    pem = (context.auth_context() or {}).get("x509_pem_cert")
    if not pem:
        return None
    try:
        found = read(read_pem(pem[0])[0])
        return None if found.fingerprint in proxies else found
    except NotACertificate:
        return None


class _Export:
    """One method; the bytes of a request in, the bytes of its answer out."""

    def __init__(self, door: OtlpIn, signal: Signal, room: asyncio.Semaphore, tls: Tls | None) -> None:
        self._door, self._signal, self._room = door, signal, room
        self._proxies = frozenset() if tls is None else tls.proxies

    async def call(self, requests: AsyncIterator[bytes], context: Any) -> bytes:
        import grpc

        codes = {code.value[0]: code for code in grpc.StatusCode}
        headers = {
            name.encode(): value.encode() if isinstance(value, str) else value
            for name, value in context.invocation_metadata() or ()
            if name == "authorization"
        }
        try:
            who = await self._door.admit(headers, _shown(context, self._proxies))
            async with self._room:
                async with asyncio.timeout(READ_S):
                    request = await anext(requests, b"")
                outcome = await self._door.take(who, self._signal, request, "protobuf")
        except BodyError as error:
            code, told = error.code, error.answer.detail or ""
        except NotOtlp as fault:
            code, told = 400, str(fault)
        except QueueFull as full:
            code, told = 429, str(full)
        except (GatewayStopped, NotDurable) as stopped:
            code, told = 503, str(stopped)
        except TimeoutError:
            code, told = 503, f"the request did not come within {READ_S:.0f} s"
        except NotStored as some:  # its records were counted one by one
            await context.abort(codes[CODES[503]], str(some))
            return b""
        else:
            return reply(self._signal, "protobuf", outcome.rejected, outcome.told)
        self._door.turned_away(code)
        # What passes is UNAVAILABLE: of RESOURCE_EXHAUSTED exporters let go.
        await context.abort(codes[CODES.get(503 if code == 429 else code, 13)], told)
        return b""
