"""Somebody outside who receives webhooks: a real HTTP server that answers by a script."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

Json = dict[str, Any]


class Arrived(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def payload(self) -> Json:
        found: Json = json.loads(self.body)
        return found


class Receiver:
    """`answer` is given what arrived and says the code; by default all is well."""

    def __init__(self) -> None:
        self.heard: list[Arrived] = []
        self.answer: Callable[[Arrived], int] = lambda arrived: 204
        self.headers: dict[str, str] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                named = {name.lower(): value for name, value in self.headers.items()}
                arrived = Arrived(self.path, named, body)
                outer.heard.append(arrived)
                received = b"" if (code := outer.answer(arrived)) == 204 else b"as you like it"
                self.send_response(code)
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(received)))
                self.end_headers()
                self.wfile.write(received)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()

    def at(self, path: str) -> list[Arrived]:
        return [one for one in list(self.heard) if one.path == path]

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
