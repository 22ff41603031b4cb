"""Outbound HTTP requests to URLs that users configure, with a guard against SSRF.

Law: https only, on the ports of https; the name is resolved once, every address it has must be a public one,
and that address is connected to; no redirect is followed, no proxy of the environment used; time and response
size are bounded. What the operator of this gateway lists in `egress_allow` (`host` or `host:port`) may be
plain http and lie anywhere. No error message quotes the response.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

import httpx2

from observatory.errors import ObservatoryError, StartupError
from observatory.protocol.certificates import InvalidCertificate, read_pem

PORTS: Final = frozenset({443, 8443})
WHOLE_S, CONNECT_S = 10.0, 3.0
MAX_ADDRESSES: Final = 4
MAX_RESPONSE_BYTES: Final = 1 << 16
MAX_URL: Final = 1_024
# Names resolved at once, on their own threads: a name server that hangs blocks no other thread.
RESOLVERS: Final = 64
HEARD: Final = ("retry-after", "content-type")
_HOST: Final = re.compile(r"[a-z0-9_.-]+|[0-9a-f:.]+")
# Listed here: `is_global` of the Python versions we support accepts several of these.
_NOT_PUBLIC: Final = (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
    "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "::/96", "64:ff9b::/96", "64:ff9b:1::/48",
    "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/9",
    "ff00::/8",
)  # fmt: skip
DENIED: Final = tuple(ip_network(text) for text in _NOT_PUBLIC)
Resolve = Callable[[str, int], Sequence[str]]


class OutboundError(ObservatoryError):
    """No usable response; the message says why, for users of this tenant."""


class NotPublic(OutboundError):
    """The host has an address that is not public: in our own network, or nowhere."""


class OutboundResponse(NamedTuple):
    code: int
    kind: str
    body: bytes
    headers: Mapping[str, str] = {}  # only those in `HEARD`, names in lower case


class ConnectAddress(NamedTuple):
    """Where to connect to: a checked address, and the host name it belongs to."""

    address: str
    port: int
    tls: bool
    host: str


class _Ask(NamedTuple):
    method: str
    body: bytes | None
    headers: Mapping[str, str]
    who: str
    timeout_s: float
    most_bytes: int
    is_cut: bool  # whether the beginning of a longer response is enough


def is_public(address: str) -> bool:
    found: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return not any(found.version == one.version and found in one for one in DENIED)


def is_whole(host: str) -> bool:
    """Whether it is an address as it is usually written, or a name with a dot that does not end in a number.

    `localhost`, `2130706433`, `0x7f.1` and `127.1` are neither: what they mean depends on the resolver.
    """
    with suppress(ValueError):
        ip_address(host)
        return True
    labels = host.removesuffix(".").split(".")
    return len(labels) > 1 and all(labels) and not labels[-1][0].isdigit()


def resolve(host: str, port: int) -> Sequence[str]:
    """Every address this name has now; OSError or UnicodeError when it has none."""
    return [str(one[4][0]) for one in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class OutboundHttp:
    def __init__(self, allow: Sequence[str] = (), resolve: Resolve = resolve, authority: str = "") -> None:
        """`authority`: a PEM file of further authorities, for peers that have one of their own."""
        self._further = _read(authority)
        self._allow = frozenset(one.strip().lower() for one in allow)
        self._tls: ssl.SSLContext | None = None  # loading the authorities takes a while; once is enough
        self._plain = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # for http: trusts no authority
        self._resolve = resolve
        self._threads = ThreadPoolExecutor(RESOLVERS, thread_name_prefix="names")

    def check(self, url: str, who: str = "the peer", query: bool = False) -> str | None:
        """Why this URL is refused, or None; its addresses are checked when it is requested."""
        try:
            self._parts(url, who, query)
        except OutboundError as error:
            return str(error)
        return None

    def _parts(
        self, url: str, who: str = "the peer", query: bool = False, ports: frozenset[int] = PORTS
    ) -> tuple[SplitResult, str, int, bool]:
        """The parsed URL, its host and port, and whether the operator allows it."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise OutboundError(f"{who}'s URL is not valid") from None
        is_plain = url.isascii() and url.isprintable() and " " not in url and "\\" not in url
        is_known = parts.scheme in ("http", "https") and _HOST.fullmatch(host) is not None and port != 0
        if not is_plain or not is_known or len(url) > MAX_URL:
            raise OutboundError(f"{who}'s URL must begin with https:// and a host")
        if "@" in parts.netloc or parts.fragment or (parts.query and not query):
            what = "no credentials and no fragment" if query else "no credentials, no query and no fragment"
            raise OutboundError(f"{who}'s URL must hold {what}")
        port = port or (443 if parts.scheme == "https" else 80)
        is_allowed = host in self._allow or f"{host}:{port}" in self._allow
        if not is_allowed and parts.scheme == "http":
            raise OutboundError(f"{who} must use https, unless egress_allow lists its host")
        if not is_allowed and not is_whole(host):
            raise NotPublic(f"{who}'s host is not an unambiguous name or address")
        if not is_allowed and port not in ports:
            named = " or ".join(str(one) for one in sorted(ports))
            raise OutboundError(f"{who} must use port {named}, unless egress_allow lists its host")
        return parts, host, port, is_allowed

    async def get(self, url: str) -> OutboundResponse:
        return await self._ask(url, _Ask("GET", None, _PLAIN, "the peer", WHOLE_S, MAX_RESPONSE_BYTES, False))

    async def post(self, url: str, body: bytes) -> OutboundResponse:
        return await self._ask(
            url, _Ask("POST", body, _PLAIN, "the peer", WHOLE_S, MAX_RESPONSE_BYTES, False)
        )

    async def send(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        who: str = "the receiver",
        timeout_s: float = 15.0,
        most_bytes: int = MAX_RESPONSE_BYTES,
    ) -> OutboundResponse:
        """POST; the status code is the result. Only the start of the body that arrived in time is kept."""
        return await self._ask(url, _Ask("POST", body, headers, who, timeout_s, most_bytes, True))

    async def address(
        self,
        url: str,
        *,
        who: str = "the receiver",
        ports: frozenset[int] = PORTS,
        query: bool = False,
        timeout_s: float = CONNECT_S,
    ) -> ConnectAddress:
        """For callers that connect by other means: the first of the addresses, all of which were checked."""
        return (await self.addresses(url, who=who, ports=ports, query=query, timeout_s=timeout_s))[0]

    async def addresses(
        self,
        url: str,
        *,
        who: str = "the receiver",
        ports: frozenset[int] = PORTS,
        query: bool = False,
        timeout_s: float = CONNECT_S,
    ) -> list[ConnectAddress]:
        """All of them, in the order in which they are tried."""
        parts, host, port, is_allowed = self._parts(url, who, query, ports)
        try:
            async with asyncio.timeout(timeout_s):
                found = await self._addresses(host, port, is_allowed, who)
        except TimeoutError:
            raise OutboundError(f"{who} did not answer in time") from None
        except (OSError, UnicodeError):
            raise OutboundError(f"{who} cannot be reached") from None
        return [ConnectAddress(one, port, parts.scheme == "https", host) for one in found]

    async def _ask(self, url: str, ask: _Ask) -> OutboundResponse:
        parts, host, port, is_allowed = self._parts(url, ask.who, ask.is_cut)
        try:
            async with asyncio.timeout(ask.timeout_s) as limit:
                for address in await self._addresses(host, port, is_allowed, ask.who):
                    with suppress(httpx2.ConnectError, httpx2.ConnectTimeout):  # the next address may accept
                        return await self._exchange(
                            ask, parts, ConnectAddress(address, port, False, host), limit
                        )
                raise OutboundError(f"{ask.who} cannot be reached")
        except TimeoutError:
            raise OutboundError(f"{ask.who} did not answer in time") from None
        except httpx2.TimeoutException:
            raise OutboundError(f"{ask.who} did not answer in time") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, UnicodeError):
            raise OutboundError(f"{ask.who} cannot be reached") from None

    async def _addresses(self, host: str, port: int, is_allowed: bool, who: str) -> list[str]:
        loop = asyncio.get_running_loop()
        found = list(await loop.run_in_executor(self._threads, self._resolve, host, port))
        if not found:
            raise OutboundError(f"{who} cannot be reached")
        if not is_allowed and not all(is_public(one) for one in found):
            raise NotPublic(f"{who}'s address is not a public one; egress_allow may list its host")
        return found[:MAX_ADDRESSES]

    async def _exchange(
        self, ask: _Ask, parts: SplitResult, place: ConnectAddress, limit: asyncio.Timeout
    ) -> OutboundResponse:
        """Send to the very address that was checked, under the name that was requested."""
        query = f"?{parts.query}" if parts.query else ""
        target = f"{parts.scheme}://{_shown(place.address)}:{place.port}{parts.path or '/'}{query}"
        headers = {"accept-encoding": "identity", **ask.headers, "host": f"{_shown(place.host)}:{place.port}"}
        timeout = httpx2.Timeout(ask.timeout_s, connect=CONNECT_S)
        if parts.scheme == "https" and self._tls is None:
            self._tls = httpx2.create_ssl_context(trust_env=False)
            if self._further:
                self._tls.load_verify_locations(cadata=self._further)
        async with (
            httpx2.AsyncClient(
                verify=self._tls or self._plain, trust_env=False, follow_redirects=False, timeout=timeout
            ) as client,
            client.stream(
                ask.method,
                target,
                content=ask.body,
                headers=headers,
                extensions={"sni_hostname": place.host},
            ) as answer,
        ):
            body = await (_beginning if ask.is_cut else _whole)(ask, answer, limit)
            kept = {name: answer.headers[name][:200] for name in HEARD if name in answer.headers}
            kind = kept.get("content-type", "").partition(";")[0].strip().lower()
            return OutboundResponse(answer.status_code, kind, body, kept)


def _read(path: str) -> bytes:
    """The authorities in a file, as DER; StartupError when it cannot be used."""
    if not path:
        return b""
    try:
        return b"".join(read_pem(Path(path).expanduser().read_bytes()))
    except OSError as error:
        raise StartupError(f"egress_ca: the file {path} cannot be read ({error.strerror})") from error
    except InvalidCertificate as error:
        raise StartupError(f"egress_ca: {error}") from error


_PLAIN: Final = {"content-type": "text/plain"}


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


async def _whole(ask: _Ask, answer: Any, _: asyncio.Timeout) -> bytes:
    heard = bytearray()
    async for part in answer.aiter_raw():
        heard += part
        if len(heard) > ask.most_bytes:
            raise OutboundError(f"{ask.who} sent a response that is too long")
    return bytes(heard)


async def _beginning(ask: _Ask, answer: Any, limit: asyncio.Timeout) -> bytes:
    """A server that drips, breaks off or never ends has still answered: its status code is known."""
    heard = bytearray()
    ends = limit.when()
    assert ends is not None
    with suppress(TimeoutError, httpx2.HTTPError, OSError):
        # A little before the whole exchange times out.
        async with asyncio.timeout_at(ends - min(0.5, ask.timeout_s / 10)):
            async for part in answer.aiter_raw():
                heard += part
                if len(heard) >= ask.most_bytes:
                    break
    return bytes(heard[: ask.most_bytes])
