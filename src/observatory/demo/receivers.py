"""Servers next to the demo's gateway: webhook receivers, working and failing, and a witness of its log.

One small server in the demo's own process, on this machine alone; the gateway is allowed to ask this address
and no other. The witness is a real one (C2SP `tlog-witness/v1.0.0`): it has a key of its own and only ever
continues from what it cosigned last, which it keeps next to that key.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec

from observatory.ledger import note, witness
from observatory.ledger.note import BadNote, Cosigner, Verifier
from observatory.ledger.witness import WitnessHead

NAME = "notary.example/atlas"
WITNESS_PATH = "/witness/add-checkpoint"
LARGEST = 1 << 20
MAX_KNOWN = 10_000  # remembered deliveries, to recognise retries


class _Kept(msgspec.Struct):
    """What was cosigned last."""

    vkey: str
    size: int
    root: bytes


class Witness:
    """The witness of one log, whose key its operator configures."""

    def __init__(self, folder: Path) -> None:
        self._key_path, self._path = folder / "witness.key", folder / "witness.json"
        self._lock = threading.Lock()
        self.vkey: str | None = None
        """Of the log it cosigns."""

    @cached_property
    def _key(self) -> bytes:
        """Made when it is first needed: by then the folder is known to be the demo's."""
        if not self._key_path.exists():
            _write(self._key_path, os.urandom(32))
        return self._key_path.read_bytes()

    @property
    def own_vkey(self) -> str:
        return Cosigner(NAME, self._key, 0).vkey

    def cosign(self, body: bytes) -> tuple[int, bytes, str]:
        """Code, body and its type, as the protocol says; a code alone is explained by it."""
        with self._lock:
            if self.vkey is None:
                return 404, b"", "text/plain"
            try:
                offer = witness.read(body)
                text, shown = _shown(offer.note, Verifier.from_vkey(self.vkey))
            except BadNote as error:
                return 403, str(error).encode(), "text/plain"
            known = self._known()
            code = witness.judge_offer(known, offer.old, shown, offer.proof)
            if code == 409:
                return 409, f"{known.size if known else 0}\n".encode(), witness.SIZE_TYPE
            if code != 200:
                return code, b"", "text/plain"
            kept = _Kept(self.vkey, shown.size, shown.root)
            _write(self._path, msgspec.json.encode(kept))  # kept first: it never goes back
            return 200, Cosigner(NAME, self._key, int(time.time())).line(text).encode(), "text/plain"

    def _known(self) -> WitnessHead | None:
        """Of a log by another key, in a folder that was emptied, nothing is known."""
        if not self._path.exists():
            return None
        kept = msgspec.json.decode(self._path.read_bytes(), type=_Kept)
        return WitnessHead(kept.size, kept.root) if kept.vkey == self.vkey else None


def _shown(signed: bytes, key: Verifier) -> tuple[str, WitnessHead]:
    """A checkpoint of this key's own log; BadNote if it is none."""
    text, _ = note.open(signed, [key])
    origin, size, root = note.parse_checkpoint(text)
    if origin != key.name:
        raise BadNote("this checkpoint is of another log than its key")
    return text, WitnessHead(size, root)


def _write(path: Path, content: bytes) -> None:
    part = path.with_suffix(".part")
    # Private from the first byte: one of them is a key.
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        os.fsync(file.fileno())
    part.replace(path)


class DemoReceivers:
    """`with DemoReceivers(folder) as receivers:` they serve at `receivers.url` until the block ends."""

    def __init__(self, folder: Path) -> None:
        self.witness = Witness(folder)
        self._tried: dict[str, None] = {}
        self._server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"receivers": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(1.0,), daemon=True)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def __enter__(self) -> DemoReceivers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, delivery_id: str, body: bytes) -> tuple[int, bytes, str]:
        match path:
            case "/desk":
                return 204, b"", "text/plain"
            case "/risk":  # slow to wake: what it gets for the first time it does not take
                is_known = delivery_id in self._tried
                self._tried[delivery_id] = None
                while len(self._tried) > MAX_KNOWN:
                    del self._tried[next(iter(self._tried))]
                return (204, b"", "text/plain") if is_known else (500, b"still starting", "text/plain")
            case "/archive":
                return 500, b"disk full on archive-01", "text/plain"
            case str() if path == WITNESS_PATH:
                return self.witness.cosign(body)
        return 404, b"", "text/plain"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who asked went away, as a gateway that stops does: nothing for the demo's screen."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    receivers: DemoReceivers
    protocol_version = "HTTP/1.1"
    timeout = 30  # of a line on which nothing comes

    def do_POST(self) -> None:
        length = self.headers.get("content-length") or "0"
        if not (length.isascii() and length.isdigit() and int(length) <= LARGEST):
            self.close_connection = True
            self._respond(413, b"", "text/plain")
            return
        body = self.rfile.read(int(length))
        self._respond(*self.receivers.answer(self.path, self.headers.get("webhook-id", ""), body))

    def _respond(self, code: int, body: bytes, kind: str) -> None:
        self.send_response(code)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """What was sent here is in the gateway's log of deliveries."""
