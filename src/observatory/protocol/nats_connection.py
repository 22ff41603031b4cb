"""A connection to a NATS server, made the same way by gateways and agents.

nats-py is an extra (`hypervisor-observatory[nats]`), imported on first use. The client's own reconnecting is
off: the owner of a connection makes the next one, and so knows what to send again. `tls://` requires TLS: to
a server that does not offer it nothing is sent, least of all a password.
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
PING_S = 5  # after two unanswered pings a silent server is disconnected, within 15 s
MISSING = "NATS needs the package nats-py: pip install 'hypervisor-observatory[nats]'"


class NatsUnavailable(ObservatoryError):
    """NATS cannot be reached or used; the message contains no password."""


class NatsConnection(NamedTuple):
    client: Client
    closed: asyncio.Event


def check_installed() -> None:
    try:
        import nats  # noqa: F401
    except ImportError as error:
        raise NatsUnavailable(MISSING) from error


@cache
def failures() -> tuple[type[BaseException], ...]:
    """The exceptions using the connection may raise."""
    import nats.errors

    return (nats.errors.Error, TimeoutError, asyncio.TimeoutError, OSError)


@cache
def _client() -> type[Client]:
    """nats-py's client with two fixes: the original lets the server decide about TLS even if the address
    requires it, and stops reading for good at a header that is not text."""
    from nats.aio.client import Client

    class StrictClient(Client):
        async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
            server = self._current_server
            requires_tls = initial_connection and server is not None and server.uri.scheme == "tls"
            if requires_tls and not info.get("tls_required"):  # the next thing sent would be the password
                raise NatsUnavailable("the server offers no TLS, and tls:// requires it")
            await super()._process_info(info, initial_connection)

        async def _process_headers(self, headers: Any) -> dict[str, str] | None:
            try:
                return await super()._process_headers(headers)
            except (ValueError, IndexError):
                return None  # treat it as a message without headers

    return StrictClient


def ssl_context_for(authority: str) -> ssl.SSLContext:
    """Trust only certificates issued by the authority in that file; NoNats when it cannot be used."""
    try:
        return ssl.create_default_context(cafile=authority)
    except FileNotFoundError:
        raise NatsUnavailable(f"the CA file {authority} does not exist") from None
    except (ssl.SSLError, OSError):
        raise NatsUnavailable(
            f"{authority} cannot be used: it must contain a CA certificate in PEM form"
        ) from None


async def connect(
    server: str,
    name: str,
    on_error: Callable[[BaseException], None] | None = None,
    timeout_s: float = CONNECT_S,
    authority: str = "",
) -> NatsConnection:
    """Raises NoNats on failure. `authority` is used for `tls://`; without one the system's CAs are."""
    check_installed()
    context = ssl_context_for(authority) if authority and server.startswith("tls://") else None
    closed = asyncio.Event()
    client, to = _client()(), login(server)
    is_trying = True

    async def on_closed() -> None:
        closed.set()

    async def on_trouble(error: Exception) -> None:
        if is_trying:  # otherwise the client would retry by itself
            raise NatsUnavailable(reason_of(error)) from error
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
        raise NatsUnavailable(reason_of(error)) from error
    except (NatsUnavailable, asyncio.CancelledError):
        is_trying = False
        await _abandon(client)
        raise
    is_trying = False
    return NatsConnection(client, closed)


async def _abandon(client: Client) -> None:
    """Close what an incomplete connection has opened."""
    try:
        async with asyncio.timeout(1):
            await client.close()
    except failures():
        pass
    _clean_up_tasks(client)


def _clean_up_tasks(client: Client) -> None:
    """A client that fails while closing (writing to a closed socket) leaves its tasks: waiting forever,
    or failed with an exception that is never retrieved."""
    own = [getattr(client, name, None) for name in ("_flusher_task", "_reading_task", "_ping_interval_task")]
    subscriptions = [
        getattr(one, "_wait_for_msgs_task", None) for one in getattr(client, "_subs", {}).values()
    ]
    for task in (*own, *subscriptions):
        if task is None or task is asyncio.current_task():
            continue
        if not task.done():
            task.cancel()
        elif not task.cancelled():
            task.exception()


async def wait_disconnected(wire: NatsConnection) -> None:
    """Wait until the connection is closed. Polls too: the client may fail to report it."""
    while not wire.closed.is_set() and not wire.client.is_closed:
        try:
            async with asyncio.timeout(LOOK_S):
                await wire.closed.wait()
        except TimeoutError:
            continue
    wire.closed.set()


async def close(wire: NatsConnection) -> None:
    await _abandon(wire.client)


def reason_of(error: BaseException) -> str:
    """The reason as a sentence; never the address, which may contain a password."""
    name = type(error).__name__
    if isinstance(error, ConnectionRefusedError):
        return "connection refused: no server listens at that address"
    if name == "AuthorizationError" or "uthorization" in str(error):
        return "NATS refused this user, password or token"
    if isinstance(error, ssl.SSLError):
        return f"the server's certificate is not trusted, or it does not support TLS ({error.reason})"
    if is_forbidden(error):  # names a subject, and no user
        return f"the NATS user lacks a permission ({str(error).partition(': ')[2][:200]})"
    if isinstance(error, TimeoutError):
        return "the connection to NATS timed out"
    if name == "gaierror":
        return "the host name cannot be resolved"
    return f"NATS failed ({name})"


def is_forbidden(error: BaseException) -> bool:
    return "ermissions" in str(error)


class ServerRotation:
    """Selects the next server: the one that worked last, otherwise the one after it."""

    def __init__(self, servers: tuple[str, ...], authority: str = "") -> None:
        self._servers, self._at, self._authority = servers, 0, authority

    async def connect(
        self, name: str, on_error: Callable[[BaseException], None] | None = None, timeout_s: float = CONNECT_S
    ) -> NatsConnection:
        """Try every server once; NoNats with the last reason when all fail."""
        reason = NatsUnavailable("no server is configured")
        for _ in self._servers:
            try:
                return await connect(self._servers[self._at], name, on_error, timeout_s, self._authority)
            except NatsUnavailable as error:
                reason = error
                self._at = (self._at + 1) % len(self._servers)
        raise reason
