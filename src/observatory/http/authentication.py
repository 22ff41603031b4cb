"""Who stands at the door: keys, browser cookies, permissions, Host and Origin.

A key is looked up by its public part and compared by hash in constant time. For ingest and open sockets what
was found is kept for two seconds (forgotten at once when access changes here); the corridor checks again
under the lock, so a revoked key sends nothing more. Every other request looks anew. Cookies count only for
same-origin requests.
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
NOTED_NS = 60 * 1_000_000_000  # how stale the last use of a sign-in may be on record
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
        self._asking: dict[bytes, asyncio.Task[Principal | None]] = {}
        self._age = 0
        self.patience_s = settings.header_s  # for the first frame of a socket that shows its key there
        names = {"localhost", settings.host, *settings.allowed_hosts}
        self._named = frozenset(name.lower() for name in names)
        self._hosts = self._named
        self.shown: Callable[[Principal], None] = lambda who: None  # told of who proved to hold a certificate
        self._cookie = cookie_name(settings.are_cookies_secure)
        self._idle_ns = settings.idle_minutes * 60 * 1_000_000_000
        self._noted: OrderedDict[str, int] = OrderedDict()  # when a sign-in's use was last put on record
        self.used: Callable[[Principal], None] = lambda who: (
            None
        )  # told, now and then, that a sign-in is used
        self._origins = frozenset(origin.lower().rstrip("/") for origin in settings.allowed_origins)

    def forget(self) -> None:
        """Called after every change of access made here."""
        self._cache.clear()
        self._hashes.clear()
        self._asking.clear()  # whoever comes now waits for no answer of before
        self._age += 1

    def serve(self, names: Iterable[str]) -> None:
        """Hosts that our own certificate names: no stranger's page reaches us under one."""
        self._hosts = self._named | {name.lower() for name in names}

    async def identify(
        self, headers: Headers, may_be_cached: bool = True, certificate: Certificate | None = None
    ) -> Principal | None:
        """The principal of a request by key, else by cookie; None when neither is good.

        `certificate` is what the connection proved; it makes nobody known, it only stays with who is.
        """
        found = await self._found(headers, may_be_cached)
        if found is None or certificate is None:
            return found
        who = msgspec.structs.replace(found, certificate=certificate)
        self.shown(who)
        return who

    async def _found(self, headers: Headers, may_be_cached: bool) -> Principal | None:
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

    async def _by_hash(self, public: str, wanted: bytes, may_be_cached: bool) -> Principal | None:
        if not may_be_cached:
            return await self._look_up(public, wanted)
        cached = self._cache.get(wanted)
        if cached is not None and cached[0] > time.monotonic():
            return cached[1]
        # Once for all who hold it: what is remembered of a key lapses for all its sockets at the same time.
        asked = self._asking.get(wanted)
        if asked is None:
            asked = self._asking[wanted] = asyncio.create_task(self._look_up(public, wanted))
            asked.add_done_callback(partial(self._answered, wanted))
        return await asyncio.shield(asked)

    def _answered(self, wanted: bytes, asked: asyncio.Task[Principal | None]) -> None:
        if self._asking.get(wanted) is asked:
            del self._asking[wanted]

    async def _look_up(self, public: str, wanted: bytes) -> Principal | None:
        age = self._age
        found = await self._directory.principal_by_key(public)
        if found is None or not hmac.compare_digest(found[1], wanted):
            self._cache.pop(wanted, None)
            return None
        if age != self._age:  # access changed while this was being looked up
            return found[0]
        self._keep(wanted, found[0])
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

        Known in this process only, and as long as the block lasts; the key itself is looked at each time it
        is used, as any other is.
        """
        token = secrets.token_urlsafe(32)
        self._vouched[token] = (public, key_hash)
        try:
            yield f"{VOUCHED} {token}".encode()
        finally:
            del self._vouched[token]

    async def by_cookie(self, token: str, may_be_cached: bool = False) -> Principal | None:
        wanted = digest(token)
        kept = b"cookie " + wanted  # a key in a cookie opens nothing
        cached = self._cache.get(kept)
        if may_be_cached and cached is not None and cached[0] > time.monotonic():
            return cached[1]
        age = self._age
        row = await self._directory.login_by_token(wanted)
        found = _principal(row, "cookie")
        if row is None or found is None or not self.is_unspent(row):
            self._cache.pop(kept, None)
            return None
        self._note(row, found)
        if age == self._age:
            self._keep(kept, found)
        return found

    def is_unspent(self, row: dict[str, Any]) -> bool:
        """Whether neither the hours of a link or sign-in are over, nor it was left alone for too long."""
        now_ns, idle_ns = time.time_ns(), 0 if row["kind"] == "link" else self._idle_ns
        is_idle = idle_ns and now_ns - self._last_use_ns(row) > idle_ns
        return row["expires_ns"] > now_ns and not is_idle

    def _last_use_ns(self, row: dict[str, Any]) -> int:
        seen_ns: int = row["seen_ns"] or row["created_ns"]
        return max(seen_ns, self._noted.get(row["login_id"], 0))

    def _note(self, row: dict[str, Any], who: Principal) -> None:
        """Often enough for the idle limit to hold, no oftener."""
        now_ns = time.time_ns()
        if now_ns - self._last_use_ns(row) <= min(NOTED_NS, self._idle_ns // 4 or NOTED_NS):
            return
        self._noted[row["login_id"]] = now_ns
        self._noted.move_to_end(row["login_id"])
        if len(self._noted) > CACHE_SIZE:
            self._noted.popitem(last=False)
        self.used(who)

    async def by_link(self, token: str) -> tuple[Principal, dict[str, Any]] | None:
        row = await self._directory.login_by_token(digest(token))
        principal = _principal(row, "link")
        return (principal, row) if principal is not None and row is not None else None

    def host_is_ours(self, headers: Headers) -> bool:
        """Against DNS rebinding: a name must be ours; an address cannot be rebound."""
        name = _host_name(headers.get(b"host", b"").decode("latin-1"))
        return name in self._hosts or _is_address(name)

    def origin_is_ours(self, headers: Headers) -> bool:
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
    """Over TLS the prefix keeps a neighbour's host from setting one of ours; no other name counts there."""
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
