"""`observatory mcp`: the MCP door over stdio, for clients that start a program and speak to it.

A bridge and nothing more: each line goes to the gateway's `/mcp` as it came, with the key, and the answer
comes back as a line. So both ways have the same tools, roles and trail. stdout carries the protocol alone;
what a person should know is on stderr, and in the error the client shows (rules S413–S415).
"""

from __future__ import annotations

import base64
import os
import re
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import msgspec

from observatory.cli.gateway_client import ANY, TIMEOUT, Gateway, find, trust_of, unanswered
from observatory.cli.terminal import CommandFailed, note
from observatory.errors import ObservatoryError
from observatory.sdk.client import tls

LONGEST = 4 << 20
AT_ONCE = 8
PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR = -32700, -32600, -32603
# What the protocol wants said again in the headers of a request over HTTP, since 2026-07-28.
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_plain = re.compile(r"[!-~]([ -~]*[!-~])?").fullmatch


def mcp(*, gateway: Gateway = ANY) -> None:
    """Speak MCP on stdin and stdout for a client; the tools are those of the running gateway.

    The folder's operator key is used unless --key or OBSERVATORY_KEY gives another.
    """
    bridge = Bridge(gateway)
    with ThreadPoolExecutor(AT_ONCE) as hands:
        free = threading.BoundedSemaphore(2 * AT_ONCE)  # beyond, the client waits

        def carry(line: bytes) -> None:
            try:
                bridge.carry(line)
            finally:
                free.release()

        for line in lines(0):
            free.acquire()
            hands.submit(carry, line)
    bridge.close()


def lines(handle: int) -> Iterator[bytes]:
    """Lines as they come; of one that is too long its beginning, cut where it can no longer be JSON."""
    kept = b""
    while part := os.read(handle, 65_536):
        *whole, kept = (kept + part).split(b"\n")
        yield from (line[:LONGEST] for line in whole if line.strip())
        kept = kept[:LONGEST]
    if kept.strip():
        yield kept


class Bridge:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._clients: dict[str, httpx2.Client] = {}
        self._version: str | None = None
        self._writing, self._opening = threading.Lock(), threading.Lock()
        self._told: set[str] = set()

    def carry(self, line: bytes) -> None:
        """One message to the gateway and its answer back; whatever fails is answered as an error."""
        try:
            message = msgspec.json.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self._write(_error(None, PARSE_ERROR, f"a line must be JSON of at most {LONGEST >> 20} MiB"))
            return
        ident = message.get("id") if isinstance(message, dict) else None
        try:
            answer = self._asked(line, message)
        except ObservatoryError as failed:
            if str(failed) not in self._told:  # once a sentence, however often the client tries
                self._told.add(str(failed))
                note(f"observatory: {failed}")
            answer = _error(ident, INTERNAL_ERROR, str(failed))
        except Exception as error:  # noqa: BLE001 a client that is not answered waits for ever
            note(f"observatory: the bridge failed ({type(error).__name__})")
            answer = _error(
                ident, INTERNAL_ERROR, "the bridge failed; look whether it was done before you call again"
            )
        if answer is not None and (ident is not None or not isinstance(message, dict)):
            self._write(answer)

    def _asked(self, line: bytes, message: Any) -> bytes | None:
        # Looked up anew each time: a gateway that is started later, or elsewhere, is found.
        url, key = find(self._gateway, "operator")
        headers = {
            "authorization": f"Bearer {key}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            **self._headers(message),
        }
        try:
            answer = self._client(url).post(f"{url}/mcp", content=line, headers=headers)
        except httpx2.TimeoutException:
            told = "does not answer in time; look whether it was done before you call again"
            raise CommandFailed(f"the Observatory at {url} {told}") from None
        except UnicodeEncodeError:
            raise CommandFailed("a key is obs_ and then letters and digits; give a good one") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise CommandFailed(unanswered(url, error)) from None
        if answer.status_code == 202:
            return None
        if answer.status_code == 421:
            raise CommandFailed(f"the gateway at {url} does not serve that name; see allowed_hosts there")
        try:
            told = msgspec.json.decode(answer.content)
            if told["jsonrpc"] != "2.0":
                raise ValueError
        except (msgspec.MsgspecError, KeyError, TypeError, ValueError):
            raise CommandFailed(f"what answers at {url} has no MCP door; check --url") from None
        if answer.status_code == 401:
            raise CommandFailed(
                f"the Observatory at {url} does not accept this key (wrong, revoked or expired); give a good "
                "one with --key or OBSERVATORY_KEY, or the folder's own with --data"
            )
        if isinstance(message, dict) and message.get("method") == "initialize" and "result" in told:
            self._version = told["result"].get("protocolVersion")
        if isinstance(message, dict) and told.get("id") is None:  # refused before the id was read
            return msgspec.json.encode(told | {"id": message.get("id")})
        return answer.content.replace(b"\n", b"")

    def _client(self, url: str) -> httpx2.Client:
        with self._opening:
            if url not in self._clients:
                verify = tls(url, trust_of(self._gateway, url))
                self._clients[url] = httpx2.Client(timeout=TIMEOUT, trust_env=False, verify=verify)
            return self._clients[url]

    def _headers(self, message: Any) -> dict[str, str]:
        if not isinstance(message, dict) or message.get("method") == "initialize":
            return {}
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        version = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
        if not isinstance(version, str):
            return {"mcp-protocol-version": self._version} if self._version else {}
        method = str(message.get("method"))
        found = {"mcp-protocol-version": _safe(version), "mcp-method": _safe(method)}
        name = params.get(NAMED_BY.get(method, ""))
        return found | ({"mcp-name": _safe(name)} if isinstance(name, str) else {})

    def _write(self, line: bytes) -> None:
        with self._writing:
            try:
                sys.stdout.buffer.write(line + b"\n")
                sys.stdout.buffer.flush()
            except BrokenPipeError:  # the client is gone; stdin will say so
                return

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


def _safe(text: str) -> str:
    """As a header can carry it; the protocol's own spelling for what it cannot."""
    if _plain(text) and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode(errors='replace')).decode()}?="


def _error(ident: Any, number: int, sentence: str) -> bytes:
    error = {"code": number, "message": sentence}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": ident, "error": error})
