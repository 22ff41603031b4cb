"""`observatory mcp`: MCP over stdio, for clients that start a program and speak to it.

Only a bridge: each line goes to the gateway's `/mcp` as it is, with the key, and the response comes back as a
line. So both transports have the same tools, roles and trail. stdout carries the protocol only; messages for
people are on stderr, and in the error the client shows (rules S413–S415).
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

from observatory.cli.gateway_client import ANY, TIMEOUT, GatewayOptions, connection_error, find, trust_of
from observatory.cli.terminal import CommandFailed, note
from observatory.errors import ObservatoryError
from observatory.sdk.client import tls

MAX_LINE = 4 << 20
AT_ONCE = 8
PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR = -32700, -32600, -32603
# Since 2026-07-28 the protocol requires these values also as headers of an HTTP request.
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_plain = re.compile(r"[!-~]([ -~]*[!-~])?").fullmatch


def mcp(*, gateway: GatewayOptions = ANY) -> None:
    """Serve MCP on stdin and stdout for a client; the tools are those of the running gateway.

    The folder's operator key is used unless --key or OBSERVATORY_KEY gives another.
    """
    bridge = Bridge(gateway)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        free = threading.BoundedSemaphore(2 * AT_ONCE)  # beyond that the client waits

        def carry(line: bytes) -> None:
            try:
                bridge.carry(line)
            finally:
                free.release()

        for line in lines(0):
            free.acquire()
            pool.submit(carry, line)
    bridge.close()


def lines(handle: int) -> Iterator[bytes]:
    """Lines as they arrive; one that is too long is cut, so that it is no longer valid JSON."""
    kept = b""
    while part := os.read(handle, 65_536):
        *whole, kept = (kept + part).split(b"\n")
        yield from (line[:MAX_LINE] for line in whole if line.strip())
        kept = kept[:MAX_LINE]
    if kept.strip():
        yield kept


class Bridge:
    def __init__(self, gateway: GatewayOptions) -> None:
        self._gateway = gateway
        self._clients: dict[str, httpx2.Client] = {}
        self._version: str | None = None
        self._writing, self._opening = threading.Lock(), threading.Lock()
        self._reported: set[str] = set()

    def carry(self, line: bytes) -> None:
        """Send one message to the gateway and write the response; a failure is written as an error."""
        try:
            message = msgspec.json.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self._write(_error(None, PARSE_ERROR, f"a line must be JSON of at most {MAX_LINE >> 20} MiB"))
            return
        ident = message.get("id") if isinstance(message, dict) else None
        try:
            answer = self._post(line, message)
        except ObservatoryError as failed:
            if str(failed) not in self._reported:  # once per message, however often the client retries
                self._reported.add(str(failed))
                note(f"observatory: {failed}")
            answer = _error(ident, INTERNAL_ERROR, str(failed))
        except Exception as error:  # noqa: BLE001 a client without a response waits for ever
            note(f"observatory: the bridge failed ({type(error).__name__})")
            answer = _error(
                ident, INTERNAL_ERROR, "the bridge failed; check whether it was done before you call again"
            )
        if answer is not None and (ident is not None or not isinstance(message, dict)):
            self._write(answer)

    def _post(self, line: bytes, message: Any) -> bytes | None:
        # Looked up each time: a gateway that is started later, or elsewhere, is found.
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
            detail = "timed out; check whether it was done before you call again"
            raise CommandFailed(f"the Observatory at {url} {detail}") from None
        except UnicodeEncodeError:
            raise CommandFailed("a key is obs_ and then letters and digits; give a valid one") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise CommandFailed(connection_error(url, error)) from None
        if answer.status_code == 202:
            return None
        if answer.status_code == 421:
            raise CommandFailed(f"the gateway at {url} does not serve that host name; see its allowed_hosts")
        try:
            reply = msgspec.json.decode(answer.content)
            if reply["jsonrpc"] != "2.0":
                raise ValueError
        except (msgspec.MsgspecError, KeyError, TypeError, ValueError):
            raise CommandFailed(f"the server at {url} has no MCP endpoint; check --url") from None
        if answer.status_code == 401:
            raise CommandFailed(
                f"the Observatory at {url} does not accept this key (wrong, revoked or expired); give a good "
                "one with --key or OBSERVATORY_KEY, or the folder's own with --data"
            )
        if isinstance(message, dict) and message.get("method") == "initialize" and "result" in reply:
            self._version = reply["result"].get("protocolVersion")
        if isinstance(message, dict) and reply.get("id") is None:  # refused before the id was read
            return msgspec.json.encode(reply | {"id": message.get("id")})
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
            except BrokenPipeError:  # the client is gone; stdin will end
                return

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


def _safe(text: str) -> str:
    """As a header value; the protocol's base64 form for text that a header cannot carry."""
    if _plain(text) and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode(errors='replace')).decode()}?="


def _error(ident: Any, number: int, sentence: str) -> bytes:
    error = {"code": number, "message": sentence}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": ident, "error": error})
