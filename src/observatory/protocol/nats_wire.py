"""One connection to a NATS server, made the same way by gateways and agents.

nats-py is an extra (`hypervisor-observatory[nats]`), imported when it is first needed. The client's own
reconnecting is off: whoever holds a connection makes the next one, and so knows what to say again.
`tls://` is a demand: a server that offers none is told nothing, least of all a password.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from observatory.errors import ObservatoryError
from observatory.protocol.nats import login

if TYPE_CHECKING:
    from nats.aio.client import Client

log = logging.getLogger("observatory.nats")
CONNECT_S = 3.0
LOOK_S = 0.25
PING_S = 5  # with two unanswered ones a server that says nothing more is left after 15 s
MISSING = "NATS needs the package nats-py: pip install 'hypervisor-observatory[nats]'"


class NoNats(ObservatoryError):
    """NATS cannot be reached or used; the sentence names no password."""


class Wire(NamedTuple):
    client: Client
    closed: asyncio.Event


def check_installed() -> None:
    try:
        import nats  # noqa: F401
    except ImportError as error:
        raise NoNats(MISSING) from error


@cache
def failures() -> tuple[type[BaseException], ...]:
    """What a use of the connection may raise."""
    import nats.errors

    return (nats.errors.Error, TimeoutError, asyncio.TimeoutError, OSError)


@cache
def _client() -> type[Client]:
    """nats-py's, where it is too trusting: it does as the server says about TLS whatever the address
    demands, and for ever stops reading at a header that is no text."""
    from nats.aio.client import Client

    class Wary(Client):
        async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
            server = self._current_server
            demanded = initial_connection and server is not None and server.uri.scheme == "tls"
            if demanded and not info.get("tls_required"):  # the next thing sent would be the password
                raise NoNats("the server offers no TLS, and tls:// demands it")
            await super()._process_info(info, initial_connection)

        async def _process_headers(self, headers: Any) -> dict[str, str] | None:
            try:
                return await super()._process_headers(headers)
            except (ValueError, IndexError):
                return None  # it came without any, then

    return Wary


def trusting(authority: str) -> ssl.SSLContext:
    """Only servers whose certificate ends in that file's; NoNats when it cannot be used."""
    try:
        return ssl.create_default_context(cafile=authority)
    except FileNotFoundError:
        raise NoNats(f"the authority's file {authority} does not exist") from None
    except (ssl.SSLError, OSError):
        raise NoNats(f"{authority} cannot be used: it must hold an authority's certificate, as PEM") from None


async def connect(
    server: str,
    name: str,
    on_error: Callable[[BaseException], None] | None = None,
    timeout_s: float = CONNECT_S,
    authority: str = "",
) -> Wire:
    """NoNats when it cannot be had. `authority` counts for `tls://`; without one the system's count."""
    check_installed()
    context = trusting(authority) if authority and server.startswith("tls://") else None
    closed = asyncio.Event()
    client, to = _client()(), login(server)
    is_trying = True

    async def on_closed() -> None:
        closed.set()

    async def on_trouble(error: Exception) -> None:
        if is_trying:  # else the client would try again by itself, at its own pace
            raise NoNats(why(error)) from error
        log.debug("NATS: %s", type(error).__name__)
        if on_error is not None:
            on_error(error)

    try:
        async with asyncio.timeout(timeout_s):
            await client.connect(
                [to.url],
                user=to.user,
                password=to.password,
                token=to.token,
                tls=context,
                name=name,
                allow_reconnect=False,
                connect_timeout=timeout_s,  # type: ignore[arg-type]  # waited for as seconds
                ping_interval=PING_S,
                max_outstanding_pings=2,
                closed_cb=on_closed,
                error_cb=on_trouble,
                drain_timeout=2,
            )
    except failures() as error:
        is_trying = False
        await _abandon(client)
        raise NoNats(why(error)) from error
    except (NoNats, asyncio.CancelledError):
        is_trying = False
        await _abandon(client)
        raise
    is_trying = False
    return Wire(client, closed)


async def _abandon(client: Client) -> None:
    """What a connection half made has opened."""
    try:
        async with asyncio.timeout(1):
            await client.close()
    except failures():
        pass
    _tidy(client)


def _tidy(client: Client) -> None:
    """When the client fails while it closes (it writes to a socket that is gone), it leaves its tasks behind:
    waiting for ever, or failed with nobody to hear of it."""
    mine = [getattr(client, name, None) for name in ("_flusher_task", "_reading_task", "_ping_interval_task")]
    heard = [getattr(one, "_wait_for_msgs_task", None) for one in getattr(client, "_subs", {}).values()]
    for task in (*mine, *heard):
        if task is None or task is asyncio.current_task():
            continue
        if not task.done():
            task.cancel()
        elif not task.cancelled():
            task.exception()


async def ended(wire: Wire) -> None:
    """Until the connection is gone. The client does not always say so: it may fail while it closes."""
    while not wire.closed.is_set() and not wire.client.is_closed:
        try:
            async with asyncio.timeout(LOOK_S):
                await wire.closed.wait()
        except TimeoutError:
            continue
    wire.closed.set()


async def close(wire: Wire) -> None:
    await _abandon(wire.client)


def why(error: BaseException) -> str:
    """In plain words; never the address, which may hold a password."""
    name = type(error).__name__
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens at that address"
    if name == "AuthorizationError" or "uthorization" in str(error):
        return "NATS refuses this user, password or token"
    if isinstance(error, ssl.SSLError):
        return f"the server's certificate is not trusted, or it speaks no TLS ({error.reason})"
    if is_forbidden(error):  # names a subject, and no user
        return f"the NATS user lacks a permission ({str(error).partition(': ')[2][:200]})"
    if isinstance(error, TimeoutError):
        return "NATS does not answer in time"
    if name == "gaierror":
        return "the host's name is not known"
    return f"NATS failed ({name})"


def is_forbidden(error: BaseException) -> bool:
    return "ermissions" in str(error)


class Rotation:
    """Which server comes next: the one that worked last, else the one after it."""

    def __init__(self, servers: tuple[str, ...], authority: str = "") -> None:
        self._servers, self._at, self._authority = servers, 0, authority

    async def connect(
        self, name: str, on_error: Callable[[BaseException], None] | None = None, timeout_s: float = CONNECT_S
    ) -> Wire:
        """Every server once; NoNats with the last reason when none is there."""
        reason = NoNats("no server is named")
        for _ in self._servers:
            try:
                return await connect(self._servers[self._at], name, on_error, timeout_s, self._authority)
            except NoNats as error:
                reason = error
                self._at = (self._at + 1) % len(self._servers)
        raise reason
