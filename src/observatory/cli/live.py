"""Client of `WS /v1/live`: frames from a cursor on, reconnecting as often as needed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI
from websockets.sync.client import ClientConnection, connect

from observatory.cli.duplex_tls import DuplexTlsSocket
from observatory.cli.gateway_client import connection_error
from observatory.cli.terminal import CommandFailed
from observatory.sdk.client import tls
from observatory.sdk.credentials import Trust, find_trust

MAX_PAUSE_S = 5.0
SILENCE_S = 1.0


class ShredReference(msgspec.Struct):
    """The order that shredded its bytes."""

    event: int


class Item(msgspec.Struct):
    """A message as the live channel shows it; `message` is what is or would be forwarded."""

    message_id: str
    session_id: str
    step_id: str
    sequence_number: int
    message_type: str
    state: str
    message: msgspec.Raw
    parents: tuple[str, ...] = ()
    parent_inferred: bool = False
    shredded: ShredReference | None = None


class LiveFrame(msgspec.Struct):
    type: str
    topic: str = ""
    seq: int = 0
    items: list[msgspec.Raw] = []
    problem: str = ""


_frame = msgspec.json.Decoder(LiveFrame).decode
item_of = msgspec.json.Decoder(Item).decode
plain = msgspec.json.Decoder().decode


class LiveConnection:
    """One connection. `frame` waits up to `timeout` and returns None when nothing arrived."""

    def __init__(self, connection: ClientConnection, url: str) -> None:
        self._connection = connection
        self._url = url

    def send(self, frame: dict[str, Any]) -> None:
        with self._closed_as_gone():
            self._connection.send(msgspec.json.encode(frame).decode())

    def frame(self, timeout: float | None) -> LiveFrame | None:
        try:
            with self._closed_as_gone():
                found = _frame(self._connection.recv(timeout))
        except TimeoutError:
            return None
        if found.type == "error":
            raise CommandFailed(f"the Observatory refused the subscription: {found.problem}")
        return found

    @contextmanager
    def _closed_as_gone(self) -> Iterator[None]:
        try:
            yield
        except ConnectionClosed as closed:
            raise Gone(closed.rcvd.code if closed.rcvd else 1006, self._url) from None


class Gone(CommandFailed):
    def __init__(self, code: int, url: str) -> None:
        problems = {
            4401: f"the Observatory at {url} does not accept this key; give a good one with --key",
            4403: "this key may not read; use a viewer's, an operator's or an admin's",
        }
        super().__init__(problems.get(code, f"the connection to {url} ended"))
        self.is_final = code in problems


@contextmanager
def feed(
    url: str, key: str, topics: Sequence[str], after: int | None, trust: Trust | None = None
) -> Iterator[LiveConnection]:
    address = "ws" + url.removeprefix("http") + "/v1/live"
    headers = {"Authorization": f"Bearer {key}"}
    context = tls(url, find_trust() if trust is None else trust) if url.startswith("https:") else None
    if context is not None:
        context.sslsocket_class = DuplexTlsSocket
    try:
        connection = connect(
            address,
            additional_headers=headers,
            max_size=None,
            proxy=None,
            open_timeout=5,
            close_timeout=2,
            ssl=context,
        )
    except (OSError, InvalidHandshake, InvalidURI, TimeoutError, EOFError) as error:
        raise CommandFailed(connection_error(url, error)) from None
    request: dict[str, Any] = {"op": "subscribe", "topics": list(topics)}
    with connection:
        opened = LiveConnection(connection, url)
        opened.send(request if after is None else request | {"after": after})
        yield opened


def follow(
    url: str,
    key: str,
    topics: Sequence[str],
    after: int | None,
    silent: Callable[[], None] | None = None,
    trust: Trust | None = None,
) -> Iterator[LiveFrame]:
    """Yields frames for ever; a lost connection is reopened and resumed. The first one must succeed.

    `silent` is called once if nothing arrives at first.
    """
    cursor, wait_s, was_open = after, 0.2, False
    while True:
        try:
            with feed(url, key, topics, cursor, trust) as connection:
                while True:
                    frame = connection.frame(SILENCE_S if silent else None)
                    if frame is None or frame.items:
                        if frame is None and silent:
                            silent()
                        silent = None
                    if frame is None:
                        continue
                    was_open, wait_s = True, 0.2
                    yield frame
                    cursor = frame.seq
        except CommandFailed as error:
            if not was_open or getattr(error, "is_final", False):
                raise
            time.sleep(wait_s)
            wait_s = min(wait_s * 2, MAX_PAUSE_S)
