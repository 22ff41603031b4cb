"""Authentication of HTTP requests: keys, browser cookies, permissions, Host and Origin.

A key is looked up by its public part and compared by hash in constant time. For ingest and open sockets the
result is cached for two seconds (cleared at once when access changes here); the pipeline checks again
under the lock, so a revoked key sends nothing more. Every other request looks the key up again. Cookies count
only for same-origin requests.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.cookies import CookieError, SimpleCookie
from typing import Any, Literal, Protocol

import msgspec

from observatory.pipeline.state import Principal
from observatory.protocol.certificates import Certificate
from observatory.protocol.credentials import digest, public_id
from observatory.settings import Settings

Permission = Literal["read", "verify", "export", "approve", "operate", "send", "admin"]
PERMISSIONS: dict[str, frozenset[Permission]] = {
    "viewer": frozenset({"read"}),
    "auditor": frozenset({"read", "verify", "export"}),
    "approver": frozenset({"read", "approve", "send"}),
    "operator": frozenset({"read", "verify", "approve", "operate", "send"}),
    "admin": frozenset({"read", "verify", "export", "approve", "operate", "send", "admin"}),
    "agent": frozenset({"send"}),
}
COOKIE = "observatory"
VOUCHED = "Vouched"
CACHE_S = 2.0
CACHE_SIZE = 4_096
NOTED_NS = 60 * 1_000_000_000  # how stale the recorded last use of a sign-in may be
Headers = Mapping[bytes, bytes]


class KeyDirectory(Protocol):
    async def principal_by_key(self, public_id: str) -> tuple[Principal, bytes] | None: ...
    async def login_by_token(self, token_hash: bytes) -> dict[str, Any] | None: ...


def allows(principal: Principal, permission: Permission) -> bool:
    """The role grants, a key's scopes can only narrow."""
    granted = permission in PERMISSIONS[principal.role]
    return granted and (not principal.scopes or permission in principal.scopes)


class Auth:
    def __init__(self, directory: KeyDirectory, settings: Settings) -> None:
        self._directory = directory
        self._cache: OrderedDict[bytes, tuple[float, Principal]] = OrderedDict()
        self._hashes: OrderedDict[str, tuple[float, bytes]] = OrderedDict()
        self._vouched: dict[str, tuple[str, bytes]] = {}
        self._lookups: dict[bytes, asyncio.Task[Principal | None]] = {}
        self._age = 0
        self.patience_s = settings.header_s  # for the first frame of a socket that sends its key there
        names = {"localhost", settings.host, *settings.allowed_hosts}
        self._named = frozenset(name.lower() for name in names)
        self._hosts = self._named
        # Called with a principal that proved a certificate.
        self.on_certificate: Callable[[Principal], None] = lambda who: None
        self._cookie = cookie_name(settings.are_cookies_secure)
        self._idle_ns = settings.idle_minutes * 60 * 1_000_000_000
        self._noted: OrderedDict[str, int] = OrderedDict()  # when a sign-in's use was last recorded
        # Called now and then while a sign-in is used.
        self.on_use: Callable[[Principal], None] = lambda who: None
        self._origins = frozenset(origin.lower().rstrip("/") for origin in settings.allowed_origins)

    def forget(self) -> None:
        """Clear the caches; called after every change of access made here."""
        self._cache.clear()
        self._hashes.clear()
        self._lookups.clear()  # later callers must not wait for an earlier lookup
        self._age += 1

    def serve(self, names: Iterable[str]) -> None:
        """Also accept the hosts that our own certificate names: no foreign page reaches us under one."""
        self._hosts = self._named | {name.lower() for name in names}

    async def identify(
        self, headers: Headers, may_be_cached: bool = True, certificate: Certificate | None = None
    ) -> Principal | None:
        """The principal of a request by key, else by cookie; None when neither is good.

        `certificate` is what the connection proved; it authenticates no caller, it is only attached to one.
        """
        principal = await self._principal_of(headers, may_be_cached)
        if principal is None or certificate is None:
            return principal
        who = msgspec.structs.replace(principal, certificate=certificate)
        self.on_certificate(who)
        return who

    async def _principal_of(self, headers: Headers, may_be_cached: bool) -> Principal | None:
        bearer = headers.get(b"authorization")
        if bearer is not None:
            scheme, _, text = bearer.decode("latin-1").partition(" ")
            if scheme == VOUCHED:
                found = self._vouched.get(text)
                return None if found is None else await self._by_hash(*found, may_be_cached)
            return await self.by_key(text.strip(), may_be_cached) if scheme.lower() == "bearer" else None
        token = cookie_of(headers, self._cookie)
        return await self.by_cookie(token, may_be_cached) if token else None

    async def by_key(self, key: str, may_be_cached: bool = True) -> Principal | None:
        public = public_id(key)
        return None if public is None else await self._by_hash(public, digest(key), may_be_cached)

    async def _by_hash(self, public: str, key_hash: bytes, may_be_cached: bool) -> Principal | None:
        if not may_be_cached:
            return await self._look_up(public, key_hash)
        cached = self._cache.get(key_hash)
        if cached is not None and cached[0] > time.monotonic():
            return cached[1]
        # One lookup for all its sockets: the cached result of a key expires for all of them at the same time.
        lookup = self._lookups.get(key_hash)
        if lookup is None:
            lookup = self._lookups[key_hash] = asyncio.create_task(self._look_up(public, key_hash))
            lookup.add_done_callback(partial(self._forget_lookup, key_hash))
        return await asyncio.shield(lookup)

    def _forget_lookup(self, key_hash: bytes, lookup: asyncio.Task[Principal | None]) -> None:
        if self._lookups.get(key_hash) is lookup:
            del self._lookups[key_hash]

    async def _look_up(self, public: str, key_hash: bytes) -> Principal | None:
        age = self._age
        found = await self._directory.principal_by_key(public)
        if found is None or not hmac.compare_digest(found[1], key_hash):
            self._cache.pop(key_hash, None)
            return None
        if age != self._age:  # access changed while this was being looked up
            return found[0]
        self._keep(key_hash, found[0])
        return found[0]

    def _keep(self, proof: bytes, who: Principal) -> None:
        expires_ns = who.expires_ns
        left_s = CACHE_S if expires_ns is None else (expires_ns - time.time_ns()) / 1_000_000_000
        self._cache[proof] = (time.monotonic() + min(CACHE_S, left_s), who)
        if len(self._cache) > CACHE_SIZE:
            self._cache.popitem(last=False)

    async def hash_of(self, public: str) -> bytes | None:
        """The stored hash of a key, by its public part: what its holder's signatures are checked with."""
        cached = self._hashes.get(public)
        if cached is not None and cached[0] > time.monotonic():
            return cached[1]
        age, found = self._age, await self._directory.principal_by_key(public)
        if found is None:
            self._hashes.pop(public, None)
            return None
        if age == self._age:
            self._hashes[public] = (time.monotonic() + CACHE_S, found[1])
            if len(self._hashes) > CACHE_SIZE:
                self._hashes.popitem(last=False)
        return found[1]

    @contextmanager
    def vouched(self, public: str, key_hash: bytes) -> Iterator[bytes]:
        """An Authorization header for a caller who proved to hold this key without sending it.

        Valid in this process only, and as long as the block lasts; the key itself is checked each time it
        is used, as any other is.
        """
        token = secrets.token_urlsafe(32)
        self._vouched[token] = (public, key_hash)
        try:
            yield f"{VOUCHED} {token}".encode()
        finally:
            del self._vouched[token]

    async def by_cookie(self, token: str, may_be_cached: bool = False) -> Principal | None:
        key_hash = digest(token)
        cache_key = b"cookie " + key_hash  # a key in a cookie grants nothing
        cached = self._cache.get(cache_key)
        if may_be_cached and cached is not None and cached[0] > time.monotonic():
            return cached[1]
        age = self._age
        row = await self._directory.login_by_token(key_hash)
        found = _principal(row, "cookie")
        if row is None or found is None or not self.is_login_valid(row):
            self._cache.pop(cache_key, None)
            return None
        self._note(row, found)
        if age == self._age:
            self._keep(cache_key, found)
        return found

    def is_login_valid(self, row: dict[str, Any]) -> bool:
        """Whether a link or sign-in has neither expired nor been idle for too long."""
        now_ns, idle_ns = time.time_ns(), 0 if row["kind"] == "link" else self._idle_ns
        is_idle = idle_ns and now_ns - self._last_use_ns(row) > idle_ns
        return row["expires_ns"] > now_ns and not is_idle

    def _last_use_ns(self, row: dict[str, Any]) -> int:
        seen_ns: int = row["seen_ns"] or row["created_ns"]
        return max(seen_ns, self._noted.get(row["login_id"], 0))

    def _note(self, row: dict[str, Any], who: Principal) -> None:
        """Record a use, as often as the idle limit needs and no more often."""
        now_ns = time.time_ns()
        if now_ns - self._last_use_ns(row) <= min(NOTED_NS, self._idle_ns // 4 or NOTED_NS):
            return
        self._noted[row["login_id"]] = now_ns
        self._noted.move_to_end(row["login_id"])
        if len(self._noted) > CACHE_SIZE:
            self._noted.popitem(last=False)
        self.on_use(who)

    async def by_link(self, token: str) -> tuple[Principal, dict[str, Any]] | None:
        row = await self._directory.login_by_token(digest(token))
        principal = _principal(row, "link")
        return (principal, row) if principal is not None and row is not None else None

    def is_host_allowed(self, headers: Headers) -> bool:
        """Against DNS rebinding: a name must be one of the gateway's; an address cannot be rebound."""
        name = _host_name(headers.get(b"host", b"").decode("latin-1"))
        return name in self._hosts or _is_address(name)

    def is_origin_allowed(self, headers: Headers) -> bool:
        """For cookie requests that change something, and for WebSockets: same origin, or one allowed."""
        origin = headers.get(b"origin", b"").decode("latin-1").lower()
        if origin in self._origins:
            return True
        site = headers.get(b"sec-fetch-site")
        if site is not None:
            return site in (b"same-origin", b"none")
        return not origin or origin.partition("://")[2] == headers.get(b"host", b"").decode("latin-1").lower()


def _principal(row: dict[str, Any] | None, kind: str) -> Principal | None:
    if row is None or row["kind"] != kind:
        return None
    return Principal(
        tenant_id=row["tenant_id"],
        role=row["role"],
        key_id=row["login_id"],
        user_id=row["user_id"],
        access_version=row["access_version"],
        expires_ns=row["expires_ns"],
    )


def cookie_name(is_secure: bool) -> str:
    """Over TLS the prefix keeps a sibling host from setting our cookie; no other name counts there."""
    return f"__Host-{COOKIE}" if is_secure else COOKIE


def cookie_of(headers: Headers, name: str) -> str | None:
    try:
        jar = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1"))
    except CookieError:
        return None
    return jar[name].value if name in jar else None


def _host_name(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower() if ":" in host else host.lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
