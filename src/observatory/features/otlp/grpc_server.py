"""OTLP over gRPC, served if a setting gives it an address: the same handling as over HTTP.

Law: nothing of a request is read before its key is verified and there is capacity for it. A refusal that may
pass is UNAVAILABLE, which every exporter retries; a permanent one has its own code.
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
from observatory.features.otlp.routes import NotStored, OtlpIngest
from observatory.http.ingest import BodyError
from observatory.protocol.certificates import Certificate, InvalidCertificate, read, read_pem
from observatory.runtime.tls import Tls

METHODS: Final[dict[str, Signal]] = {
    "opentelemetry.proto.collector.trace.v1.TraceService": "traces",
    "opentelemetry.proto.collector.logs.v1.LogsService": "logs",
}
CALLS: Final = (
    64  # requests read at once, fewer if that many large ones would not fit; each waits for its commit
)
WAITING: Final = 1_024  # concurrent calls, including those waiting for capacity; gRPC refuses further ones
READ_S: Final = 30.0  # time for a request to arrive, once there is capacity for it
GRACE_S: Final = 5.0


@asynccontextmanager
async def served(
    ingest: OtlpIngest, address: str, most_bytes: int, tls: Tls | None = None, reading_bytes: int = 256 << 20
) -> AsyncIterator[None]:
    """Serves gRPC at `address` (`host:port`) inside the context; does nothing without an address.

    With TLS it uses the gateway's certificate. A client certificate is requested only where one is required:
    gRPC has no optional one.
    """
    if not address:
        yield
        return
    import grpc.aio

    limits = [("grpc.max_receive_message_length", most_bytes), ("grpc.so_reuseport", 0)]
    server = grpc.aio.server(options=limits, maximum_concurrent_rpcs=WAITING)
    capacity = asyncio.Semaphore(max(1, min(CALLS, reading_bytes // most_bytes)))
    server.add_generic_rpc_handlers(
        tuple(
            grpc.method_handlers_generic_handler(
                # As a stream of one: gRPC would read a single request whole before calling the handler.
                service,
                {"Export": grpc.stream_unary_rpc_method_handler(_Export(ingest, signal, capacity, tls).call)},
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
        raise StartupError(
            f"otlp_grpc: cannot listen on {address}: in use, not allowed or not host:port; choose another"
        )
    await server.start()
    try:
        yield
    finally:
        await server.stop(GRACE_S)


def _credentials(tls: Tls) -> Any:
    """The current files, checked at each handshake: replaced ones are used from the next on."""
    import grpc

    required = tls.loaded.context.verify_mode is ssl.CERT_REQUIRED
    served = tls.loaded

    def configuration() -> Any:
        roots = tls.loaded.authorities_pem if required else None
        pairs = [(tls.loaded.key_pem, tls.loaded.chain_pem)]
        return grpc.ssl_server_certificate_configuration(pairs, roots)

    def reloaded() -> Any:
        nonlocal served
        if tls.loaded is served:
            return None  # unchanged
        served = tls.loaded
        return configuration()

    return grpc.dynamic_ssl_server_credentials(configuration(), reloaded, required)


def _client_certificate(context: Any, proxies: frozenset[str]) -> Certificate | None:
    """The certificate gRPC verified in the handshake; a pinned proxy's own and headers are ignored."""
    pem = (context.auth_context() or {}).get("x509_pem_cert")
    if not pem:
        return None
    try:
        found = read(read_pem(pem[0])[0])
        return None if found.fingerprint in proxies else found
    except InvalidCertificate:
        return None


class _Export:
    """One method: takes the bytes of a request, returns the bytes of its response."""

    def __init__(
        self, ingest: OtlpIngest, signal: Signal, capacity: asyncio.Semaphore, tls: Tls | None
    ) -> None:
        self._ingest, self._signal, self._capacity = ingest, signal, capacity
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
            principal = await self._ingest.admit(headers, _client_certificate(context, self._proxies))
            async with self._capacity:
                async with asyncio.timeout(READ_S):
                    request = await anext(requests, b"")
                outcome = await self._ingest.take(principal, self._signal, request, "protobuf")
        except BodyError as error:
            code, detail = error.code, error.answer.detail or ""
        except NotOtlp as fault:
            code, detail = 400, str(fault)
        except QueueFull as full:
            code, detail = 429, str(full)
        except (GatewayStopped, NotDurable) as stopped:
            code, detail = 503, str(stopped)
        except TimeoutError:
            code, detail = 503, f"the request did not arrive within {READ_S:.0f} s"
        except NotStored as some:  # its records are already counted one by one
            await context.abort(codes[CODES[503]], str(some))
            return b""
        else:
            return reply(self._signal, "protobuf", outcome.rejected, outcome.detail)
        self._ingest.turned_away(code)
        # Temporary refusals are UNAVAILABLE: on RESOURCE_EXHAUSTED exporters drop the data.
        await context.abort(codes[CODES.get(503 if code == 429 else code, 13)], detail)
        return b""
