"""The two transports to an OTLP backend, HTTP and gRPC: send bytes, and classify the response.

A response is one of three. `taken`: accepted, possibly without some records. `later`: the data is fine; the
backend is down, busy, or denies access. `refused`: the data may be at fault. Only what a record can cause
counts as a refusal: a wrong key or a wrong path must never cost an event. Both transports only use addresses
that `Outward` has checked. No message repeats a header's value.
"""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol
from urllib.parse import urlsplit

from observatory.features.exporters import otlp_answers
from observatory.runtime.outbound_http import CONNECT_S, ConnectAddress, OutboundError, OutboundHttp
from observatory.settings import VERSION

if TYPE_CHECKING:
    import grpc

WHO: Final = "the backend"
AGENT: Final = f"observatory/{VERSION}"
METHOD: Final = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
WAIT_S: Final = 15.0
LONGEST_WAIT_S: Final = 3_600.0
MAX_BYTES: Final = 1 << 16  # of a response
# Codes that the data may have caused; all others concern the endpoint, the caller or the network.
REFUSALS: Final = frozenset({400, 413, 422, 500})
RPC_REFUSALS: Final = frozenset({"INVALID_ARGUMENT", "INTERNAL", "UNKNOWN", "ALREADY_EXISTS"})
# Also returned by a backend whose storage is down or full, while it accepts empty requests.
VAGUE: Final = frozenset({500, "INTERNAL", "UNKNOWN", "RESOURCE_EXHAUSTED"})
HINTS: Final = {
    401: ": check the headers of this exporter",
    403: ": access denied for this exporter",
    404: ": this URL accepts no logs",
    405: ": this URL accepts no logs",
    413: ": the request is too large",
    415: ": OTLP as protobuf is not supported",
    429: ": rate limited",
}
# Certificate bundles as one file: unlike OpenSSL, gRPC reads no directory of hashed names.
BUNDLES: Final = [
    Path("/etc/ssl/certs/ca-certificates.crt"),
    Path("/etc/pki/tls/certs/ca-bundle.crt"),
    Path("/etc/ssl/cert.pem"),
]
Kind = Literal["taken", "later", "refused"]


class ExportResult(NamedTuple):
    kind: Kind
    detail: str = ""
    rejected: int = 0  # number of records the backend did not accept
    after_s: float | None = None  # when to retry, if the backend says so
    is_vague: bool = False  # a refusal that may also be a problem of the backend


class ExportTransport(Protocol):
    async def send(self, body: bytes) -> ExportResult: ...
    async def close(self) -> None: ...


def open_transport(outward: OutboundHttp, wire: str, url: str, headers: Mapping[str, str]) -> ExportTransport:
    return (
        GrpcExportTransport(outward, url, headers)
        if wire == "grpc"
        else HttpExportTransport(outward, url, headers)
    )


def address_of(wire: str, url: str) -> str:
    """The URL for logs: over HTTP, a URL without a path gets OTLP's default path."""
    bare = urlsplit(url).path in ("", "/")
    return f"{url.rstrip('/')}/v1/logs" if wire == "http" and bare else url


def problem_of(outward: OutboundHttp, wire: str, url: str) -> str | None:
    """Why this URL is invalid, or None."""
    problem = outward.check(url, WHO)
    if problem is None and wire == "grpc" and urlsplit(url).path not in ("", "/"):
        return "a gRPC URL must be https://, a host and a port, without a path"
    return problem


def _hidden(text: str, headers: Mapping[str, str]) -> str:
    """Removes header values: a backend's response may repeat them."""
    for secret in headers.values():
        for part in {secret, secret.rpartition(" ")[2]}:
            text = text.replace(part, "…") if len(part) > 3 else text
    return text


def _taken(body: bytes, headers: Mapping[str, str]) -> ExportResult:
    found = otlp_answers.partial(body)
    return ExportResult("taken", _hidden(found.message, headers), found.rejected)


class HttpExportTransport:
    def __init__(self, outward: OutboundHttp, url: str, headers: Mapping[str, str]) -> None:
        self._outward, self._url, self._secret = outward, address_of("http", url), headers
        self._headers = {
            **headers,
            "content-type": "application/x-protobuf",
            "content-encoding": "gzip",
            "user-agent": AGENT,
        }

    async def send(self, body: bytes) -> ExportResult:
        packed = await asyncio.to_thread(gzip.compress, body, 1)
        try:
            response = await self._outward.send(
                self._url, packed, self._headers, who=WHO, timeout_s=WAIT_S, most_bytes=MAX_BYTES
            )
        except OutboundError as error:
            return ExportResult("later", str(error))
        if 200 <= response.code < 300:
            if response.kind == "text/html":  # not an OTLP backend: the events were not accepted
                return ExportResult("later", "this URL returns a web page; it is no OTLP backend")
            return _taken(response.body, self._secret)
        detail = f"the backend answered {response.code}{HINTS.get(response.code, '')}"
        if response.kind == "application/x-protobuf" and (
            message := otlp_answers.status(response.body).message
        ):
            detail = f"{detail} ({_hidden(message, self._secret)})"
        kind: Kind = "refused" if response.code in REFUSALS else "later"
        after_s = _after(response.headers.get("retry-after"))
        return ExportResult(kind, detail, after_s=after_s, is_vague=response.code in VAGUE)

    async def close(self) -> None:
        """Each request has its own connection."""


def _after(text: str | None) -> float | None:
    """`Retry-After` in seconds. A date is ignored: the clocks may differ."""
    if text is None or not (text.isascii() and text.strip().isdigit()):
        return None
    return min(float(text.strip()[:9]), LONGEST_WAIT_S)


class GrpcExportTransport:
    """A channel to one checked address; after a failure the name is resolved again."""

    def __init__(self, outward: OutboundHttp, url: str, headers: Mapping[str, str]) -> None:
        self._outward, self._url, self._headers = outward, url, headers
        self._channel: grpc.aio.Channel | None = None
        self._opening = asyncio.Lock()

    async def send(self, body: bytes) -> ExportResult:
        import grpc

        try:
            channel = await self._open()
        except OutboundError as error:
            return ExportResult("later", str(error))
        try:
            response: bytes = await channel.unary_unary(METHOD)(
                body,
                timeout=WAIT_S,
                metadata=tuple(self._headers.items()),
                compression=grpc.Compression.Gzip,
            )
        except (grpc.aio.UsageError, asyncio.CancelledError):
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Another request closed the channel, which gRPC reports as a cancellation.
            return ExportResult("later", "the backend cannot be reached")
        except grpc.aio.AioRpcError as error:
            answer = self._classified(error)
            if answer.kind == "later":
                await self.close()
            return answer
        return _taken(response, self._headers)

    def _classified(self, error: grpc.aio.AioRpcError) -> ExportResult:
        name = error.code().name
        found = otlp_answers.RpcStatus()
        for key, value in error.trailing_metadata() or ():
            if key == "grpc-status-details-bin" and isinstance(value, bytes):
                found = otlp_answers.status(value)
        message = found.message or otlp_answers.plain((error.details() or "").encode())
        detail = f"the backend answered {name}"
        if name in ("UNAVAILABLE", "DEADLINE_EXCEEDED") and found.retry_s is None:
            # Usually the local gRPC library's message, which contains addresses.
            return ExportResult("later", "the backend cannot be reached, or timed out")
        # Without a retry delay it is too large for good; see OTLP's table of codes.
        exhausted = name == "RESOURCE_EXHAUSTED" and found.retry_s is None
        kind: Kind = "refused" if name in RPC_REFUSALS or exhausted else "later"
        after_s = None if found.retry_s is None else min(found.retry_s, LONGEST_WAIT_S)
        detail = f"{detail} ({_hidden(message, self._headers)})" if message else detail
        return ExportResult(kind, detail, after_s=after_s, is_vague=name in VAGUE)

    async def _open(self) -> grpc.aio.Channel:
        async with self._opening:
            if self._channel is None:
                for place in await self._outward.addresses(self._url, who=WHO):
                    channel = _channel(place)
                    try:
                        await asyncio.wait_for(channel.channel_ready(), CONNECT_S)
                    except TimeoutError:  # try the next address
                        await channel.close()
                        continue
                    self._channel = channel
                    return channel
                raise OutboundError("the backend cannot be reached")
            return self._channel

    async def close(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()


def _channel(place: ConnectAddress) -> grpc.aio.Channel:
    """To the very address that was checked, under the requested host name."""
    import grpc

    is_ipv6 = ":" in place.address
    target = f"ipv6:[{place.address}]:{place.port}" if is_ipv6 else f"ipv4:{place.address}:{place.port}"
    named = f"[{place.host}]" if ":" in place.host else place.host
    options = [
        ("grpc.default_authority", f"{named}:{place.port}"),
        ("grpc.enable_http_proxy", 0),
        ("grpc.enable_retries", 0),  # the worker decides about retries
        ("grpc.service_config_disable_resolution", 1),
        ("grpc.use_local_subchannel_pool", 1),  # a closed channel leaves no connection open
        ("grpc.max_receive_message_length", MAX_BYTES),
        ("grpc.primary_user_agent", AGENT),
    ]
    if not place.tls:
        return grpc.aio.insecure_channel(target, options)
    options.append(("grpc.ssl_target_name_override", place.host))
    return grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(_authorities()), options)


def _authorities() -> bytes | None:
    """The machine's trusted authorities; None for gRPC's own."""
    named = ssl.get_default_verify_paths().cafile
    for path in ([Path(named)] if named else []) + BUNDLES:
        with suppress(OSError):
            return path.read_bytes()
    return None
