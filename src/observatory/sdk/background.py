"""Shared by all receivers of a process: one event loop on a background thread, one HTTP client per gateway.

Rule: the loop starts with the first receiver and ends with the process. After a fork the child has none; the
parent's loop is kept unused, because collecting it would touch resources both still share.
"""

import asyncio
import os
import threading

import httpx2

from observatory.sdk.client import THREAD_PREFIX, is_local, tls
from observatory.sdk.credentials import GatewayCredentials

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_inherited: list[asyncio.AbstractEventLoop] = []


def loop() -> asyncio.AbstractEventLoop:
    """The running loop; started if there is none."""
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_run, args=(_loop,), name=f"{THREAD_PREFIX}receiver", daemon=True).start()
        return _loop


def is_running(one: asyncio.AbstractEventLoop) -> bool:
    return one is _loop and not one.is_closed()


def _run(one: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(one)
    one.run_forever()


_clients: dict[tuple[object, GatewayCredentials], tuple[httpx2.AsyncClient, int]] = {}


def client(credentials: GatewayCredentials, timeout_s: float) -> httpx2.AsyncClient:
    """One client for all receivers of one gateway, per event loop (a forked child has its own)."""
    key = asyncio.get_running_loop(), credentials
    if key not in _clients:
        created = httpx2.AsyncClient(
            base_url=credentials.url,
            headers={"Authorization": f"Bearer {credentials.key}"},
            timeout=httpx2.Timeout(timeout_s, connect=min(timeout_s, 3.0)),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
            trust_env=not is_local(credentials.url),
            verify=tls(credentials.url, credentials.trust),
        )
        _clients[key] = created, 0
    shared, users = _clients[key]
    _clients[key] = shared, users + 1
    return shared


async def release(credentials: GatewayCredentials) -> None:
    """Release the client; the last user closes it."""
    key = asyncio.get_running_loop(), credentials
    shared, users = _clients[key]
    _clients[key] = shared, users - 1
    if users == 1:
        del _clients[key]
        await shared.aclose()


def _after_fork() -> None:
    global _loop, _lock
    _lock = threading.Lock()
    if _loop is not None:
        _inherited.append(_loop)
        _loop = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
