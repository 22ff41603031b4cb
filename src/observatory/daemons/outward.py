"""Asking somebody else's server: a URL a person gave is a door into our own network, unless it is watched.

Law: https only, on the ports of https; the name is resolved once, every address it has must be a public
one, and that address is connected to; no redirect is followed, no proxy of the environment used; time and
answer are bounded. What the operator of this gateway lists in `federation_allow` (`host` or `host:port`) may
be plain http and lie anywhere. No sentence quotes what was answered.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

import httpx2

from observatory.errors import ObservatoryError

PORTS: Final = frozenset({443, 8443})
WHOLE_S, CONNECT_S = 10.0, 3.0
MOST_ADDRESSES: Final = 4
MOST_BYTES: Final = 1 << 16
LONGEST: Final = 1_024
# Spelt out: `is_global` of the Pythons we run on lets several of these pass.
_NOT_PUBLIC: Final = (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
    "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "::/128", "::1/128", "64:ff9b::/96", "64:ff9b:1::/48",
    "100::/64", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "ff00::/8",
)  # fmt: skip
DENIED: Final = tuple(ip_network(text) for text in _NOT_PUBLIC)


class Unreachable(ObservatoryError):
    """Nothing was heard that could be used; the sentence says why, for people of this tenant."""


class Heard(NamedTuple):
    code: int
    kind: str
    body: bytes


def is_public(address: str) -> bool:
    found: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return not any(found.version == one.version and found in one for one in DENIED)


class Outward:
    def __init__(self, allow: Sequence[str] = ()) -> None:
        self._allow = frozenset(one.strip().lower() for one in allow)
        self._tls: ssl.SSLContext | None = None  # reading the authorities takes a while; once is enough

    def check(self, url: str) -> str | None:
        """Why this cannot be asked, or None; its addresses are looked at when it is."""
        try:
            self._parts(url)
        except Unreachable as error:
            return str(error)
        return None

    def _parts(self, url: str) -> tuple[SplitResult, str, int, bool]:
        """The URL taken apart: host, port, and whether the operator vouches for it."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise Unreachable("a peer's URL is not one") from None
        plain = url.isascii() and url.isprintable() and " " not in url and "\\" not in url
        if not host or not plain or len(url) > LONGEST or parts.scheme not in ("http", "https"):
            raise Unreachable("a peer's URL begins with https:// and a host")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise Unreachable("a peer's URL holds no credentials, no query and no fragment")
        port = port or (443 if parts.scheme == "https" else 80)
        vouched = host in self._allow or f"{host}:{port}" in self._allow
        if not vouched and parts.scheme == "http":
            raise Unreachable("a peer is asked over https, unless federation_allow lists its host")
        if not vouched and port not in PORTS:
            raise Unreachable("a peer is asked on port 443 or 8443, unless federation_allow lists its host")
        return parts, host, port, vouched

    async def get(self, url: str) -> Heard:
        return await self._ask("GET", url, None)

    async def post(self, url: str, body: bytes) -> Heard:
        return await self._ask("POST", url, body)

    async def _ask(self, method: str, url: str, body: bytes | None) -> Heard:
        parts, host, port, vouched = self._parts(url)
        try:
            async with asyncio.timeout(WHOLE_S):
                for address in await self._addresses(host, port, vouched):
                    with suppress(httpx2.ConnectError, httpx2.ConnectTimeout):  # the next may listen
                        return await self._exchange(method, parts, host, address, port, body)
                raise Unreachable("the peer cannot be reached")
        except TimeoutError:
            raise Unreachable("the peer did not answer in time") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, UnicodeError):
            raise Unreachable("the peer cannot be reached") from None

    async def _addresses(self, host: str, port: int, vouched: bool) -> list[str]:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = [str(one[4][0]) for one in found]
        if not vouched and not all(is_public(one) for one in addresses):
            raise Unreachable("the peer's address is not a public one; federation_allow may list its host")
        return addresses[:MOST_ADDRESSES]

    async def _exchange(
        self, method: str, parts: SplitResult, host: str, address: str, port: int, body: bytes | None
    ) -> Heard:
        """To the very address that was looked at, under the name that was asked for."""
        shown = f"[{address}]" if ":" in address else address
        target = f"{parts.scheme}://{shown}:{port}{parts.path or '/'}"
        named = f"[{host}]" if ":" in host else host
        headers = {"host": f"{named}:{port}", "content-type": "text/plain", "accept-encoding": "identity"}
        timeout = httpx2.Timeout(WHOLE_S, connect=CONNECT_S)
        self._tls = self._tls or httpx2.create_ssl_context(trust_env=False)
        async with (
            httpx2.AsyncClient(
                verify=self._tls, trust_env=False, follow_redirects=False, timeout=timeout
            ) as client,
            client.stream(
                method, target, content=body, headers=headers, extensions={"sni_hostname": host}
            ) as answer,
        ):
            heard = bytearray()
            async for part in answer.aiter_raw():
                heard += part
                if len(heard) > MOST_BYTES:
                    raise Unreachable("the peer answered more than a witness would")
            kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
            return Heard(answer.status_code, kind, bytes(heard))
