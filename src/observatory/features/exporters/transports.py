"""The two ways to an OTLP backend, HTTP and gRPC: bytes go, and what is to be thought of the answer comes.

Law: an answer is one of three. `taken`: it has them, perhaps without some. `later`: nothing is wrong with
what was sent; the backend is away, busy, or does not let us in. `refused`: it may be what was sent. Only
what can be the fault of a record is a refusal: a wrong key or a wrong path must never cost an event. Both
ways go to addresses that `Outward` has looked at. No sentence repeats a header's value.
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
from observatory.runtime.outbound_http import CONNECT_S, Outward, Place, Unreachable
from observatory.settings import VERSION

if TYPE_CHECKING:
    import grpc

WHO: Final = "the backend"
AGENT: Final = f"observatory/{VERSION}"
METHOD: Final = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
WAIT_S: Final = 15.0
LONGEST_WAIT_S: Final = 3_600.0
MOST_BYTES: Final = 1 << 16
# What may be the fault of what was sent; all other codes are about the door, the caller or the weather.
REFUSALS: Final = frozenset({400, 413, 422, 500})
RPC_REFUSALS: Final = frozenset({"INVALID_ARGUMENT", "INTERNAL", "UNKNOWN", "ALREADY_EXISTS"})
# Said as well by a backend whose own store is away, or that is full, while it takes empty requests.
VAGUE: Final = frozenset({500, "INTERNAL", "UNKNOWN", "RESOURCE_EXHAUSTED"})
MEANT: Final = {
    401: ": it does not know the headers of this exporter",
    403: ": it does not let this exporter in",
    404: ": nothing takes logs under this URL",
    405: ": nothing takes logs under this URL",
    413: ": that was too large",
    415: ": it does not take OTLP as protobuf",
    429: ": that was too much for it",
}
# Where systems keep them in one file: gRPC reads no folder of hashed names, as OpenSSL would.
BUNDLES: Final = [
    Path("/etc/ssl/certs/ca-certificates.crt"),
    Path("/etc/pki/tls/certs/ca-bundle.crt"),
    Path("/etc/ssl/cert.pem"),
]
Kind = Literal["taken", "later", "refused"]


class Answer(NamedTuple):
    kind: Kind
    detail: str = ""
    rejected: int = 0  # of what was taken, so many were not
    after_s: float | None = None  # when to come again, if it said so
    is_vague: bool = False  # a refusal that may as well be the backend's own trouble


class Way(Protocol):
    async def send(self, body: bytes) -> Answer: ...
    async def close(self) -> None: ...


def way(outward: Outward, wire: str, url: str, headers: Mapping[str, str]) -> Way:
    return GrpcWay(outward, url, headers) if wire == "grpc" else HttpWay(outward, url, headers)


def address_of(wire: str, url: str) -> str:
    """Where logs are taken: over HTTP a URL without a path means the one OTLP has for them."""
    bare = urlsplit(url).path in ("", "/")
    return f"{url.rstrip('/')}/v1/logs" if wire == "http" and bare else url


def problem_of(outward: Outward, wire: str, url: str) -> str | None:
    """Why nothing can be sent there, or None."""
    problem = outward.check(url, WHO)
    if problem is None and wire == "grpc" and urlsplit(url).path not in ("", "/"):
        return "over gRPC a backend's URL is https://, a host and a port, without a path"
    return problem


def _hidden(text: str, headers: Mapping[str, str]) -> str:
    """What a backend says may repeat what it was told."""
    for secret in headers.values():
        for part in {secret, secret.rpartition(" ")[2]}:
            text = text.replace(part, "…") if len(part) > 3 else text
    return text


def _taken(body: bytes, headers: Mapping[str, str]) -> Answer:
    found = otlp_answers.partial(body)
    return Answer("taken", _hidden(found.message, headers), found.rejected)


class HttpWay:
    def __init__(self, outward: Outward, url: str, headers: Mapping[str, str]) -> None:
        self._outward, self._url, self._secret = outward, address_of("http", url), headers
        self._headers = {
            **headers,
            "content-type": "application/x-protobuf",
            "content-encoding": "gzip",
            "user-agent": AGENT,
        }

    async def send(self, body: bytes) -> Answer:
        packed = await asyncio.to_thread(gzip.compress, body, 1)
        try:
            heard = await self._outward.send(
                self._url, packed, self._headers, who=WHO, timeout_s=WAIT_S, most_bytes=MOST_BYTES
            )
        except Unreachable as error:
            return Answer("later", str(error))
        if 200 <= heard.code < 300:
            if heard.kind == "text/html":  # whatever it is, nobody has the events now
                return Answer("later", "a page answers under this URL, and no OTLP backend")
            return _taken(heard.body, self._secret)
        told = f"the backend answered {heard.code}{MEANT.get(heard.code, '')}"
        if heard.kind == "application/x-protobuf" and (said := otlp_answers.status(heard.body).message):
            told = f"{told} ({_hidden(said, self._secret)})"
        kind: Kind = "refused" if heard.code in REFUSALS else "later"
        after_s = _after(heard.headers.get("retry-after"))
        return Answer(kind, told, after_s=after_s, is_vague=heard.code in VAGUE)

    async def close(self) -> None:
        """Each exchange has a connection of its own."""


def _after(text: str | None) -> float | None:
    """`Retry-After`: seconds. A date is left aside: their clock is not ours."""
    if text is None or not (text.isascii() and text.strip().isdigit()):
        return None
    return min(float(text.strip()[:9]), LONGEST_WAIT_S)


class GrpcWay:
    """A channel to one checked address; after it could not be used the name is looked up anew."""

    def __init__(self, outward: Outward, url: str, headers: Mapping[str, str]) -> None:
        self._outward, self._url, self._headers = outward, url, headers
        self._channel: grpc.aio.Channel | None = None
        self._opening = asyncio.Lock()

    async def send(self, body: bytes) -> Answer:
        import grpc

        try:
            channel = await self._open()
        except Unreachable as error:
            return Answer("later", str(error))
        try:
            heard: bytes = await channel.unary_unary(METHOD)(
                body,
                timeout=WAIT_S,
                metadata=tuple(self._headers.items()),
                compression=grpc.Compression.Gzip,
            )
        except (grpc.aio.UsageError, asyncio.CancelledError):
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # It was closed for the sake of another request, and gRPC tells that as if we had been cancelled.
            return Answer("later", "the backend cannot be reached")
        except grpc.aio.AioRpcError as error:
            answer = self._told(error)
            if answer.kind == "later":
                await self.close()
            return answer
        return _taken(heard, self._headers)

    def _told(self, error: grpc.aio.AioRpcError) -> Answer:
        name = error.code().name
        found = otlp_answers.Status()
        for key, value in error.trailing_metadata() or ():
            if key == "grpc-status-details-bin" and isinstance(value, bytes):
                found = otlp_answers.status(value)
        said = found.message or otlp_answers.plain((error.details() or "").encode())
        told = f"the backend answered {name}"
        if name in ("UNAVAILABLE", "DEADLINE_EXCEEDED") and found.retry_s is None:
            # Mostly said by our own side, with addresses in it.
            return Answer("later", "the backend cannot be reached, or did not answer in time")
        # Without a time to come again it is too large or too much for good; see OTLP's table of codes.
        exhausted = name == "RESOURCE_EXHAUSTED" and found.retry_s is None
        kind: Kind = "refused" if name in RPC_REFUSALS or exhausted else "later"
        after_s = None if found.retry_s is None else min(found.retry_s, LONGEST_WAIT_S)
        told = f"{told} ({_hidden(said, self._headers)})" if said else told
        return Answer(kind, told, after_s=after_s, is_vague=name in VAGUE)

    async def _open(self) -> grpc.aio.Channel:
        async with self._opening:
            if self._channel is None:
                for place in await self._outward.addresses(self._url, who=WHO):
                    channel = _channel(place)
                    try:
                        await asyncio.wait_for(channel.channel_ready(), CONNECT_S)
                    except TimeoutError:  # the next may listen
                        await channel.close()
                        continue
                    self._channel = channel
                    return channel
                raise Unreachable("the backend cannot be reached")
            return self._channel

    async def close(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()


def _channel(place: Place) -> grpc.aio.Channel:
    """To the very address that was looked at, under the name that was asked for."""
    import grpc

    six = ":" in place.address
    target = f"ipv6:[{place.address}]:{place.port}" if six else f"ipv4:{place.address}:{place.port}"
    named = f"[{place.host}]" if ":" in place.host else place.host
    options = [
        ("grpc.default_authority", f"{named}:{place.port}"),
        ("grpc.enable_http_proxy", 0),
        ("grpc.enable_retries", 0),  # what is sent again is decided by who reads the record
        ("grpc.service_config_disable_resolution", 1),
        ("grpc.use_local_subchannel_pool", 1),  # a channel that was closed leaves no connection behind
        ("grpc.max_receive_message_length", MOST_BYTES),
        ("grpc.primary_user_agent", AGENT),
    ]
    if not place.tls:
        return grpc.aio.insecure_channel(target, options)
    options.append(("grpc.ssl_target_name_override", place.host))
    return grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(_authorities()), options)


def _authorities() -> bytes | None:
    """Whom this machine trusts; without a file that says so, whom gRPC does."""
    named = ssl.get_default_verify_paths().cafile
    for path in ([Path(named)] if named else []) + BUNDLES:
        with suppress(OSError):
            return path.read_bytes()
    return None
