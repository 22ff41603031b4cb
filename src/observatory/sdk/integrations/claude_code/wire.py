"""Gateway client of a hook process: one persistent stdlib connection, requests with a hard time limit.

Rule: no call exceeds its time limit, whatever the network does: an alarm interrupts what a socket timeout
does not (a name that does not resolve, a response that trickles). It raises `Away`; the caller decides what
that means. Importing the SDK's own client would take longer than running all of this.
"""

import contextlib
import http.client
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from observatory.errors import ObservatoryError
from observatory.sdk.answers import Answer
from observatory.sdk.credentials import GatewayCredentials
from observatory.sdk.received import Received
from observatory.sdk.spool import Spool

INBOX_ITEMS = 1000
QUIET_S = 60.0  # the gateway sends a keep-alive at least every 15 s
SPOOL_BYTES = 256 << 20
BATCH_LINES, BATCH_BYTES = 500, 4 << 20


class Away(Exception):
    """No response arrived. The message says why; it contains no key and no payload."""


class NotAdmitted(Away):
    """The gateway is reachable and refuses this agent's key."""


class Hello(msgspec.Struct):
    """The gateway's state for this agent, the first event of the inbox stream."""

    entity_id: str | None = None
    paused: list[str] = []
    paused_everywhere: bool = False
    stopped: bool = False
    instructions: dict[str, Any] | None = None


class _Page(msgspec.Struct):
    items: list[Received] = []


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `Away` in the block after `seconds`, whatever it is doing. Limits may be nested."""
    if seconds <= 0:
        raise Away("there was no time left")
    if not hasattr(signal, "setitimer"):
        yield
        return

    def expire(*_: object) -> None:
        raise Away(f"the gateway did not answer within {seconds:.1f} s")

    outer_s, began = signal.getitimer(signal.ITIMER_REAL)[0], time.monotonic()
    if 0 < outer_s <= seconds:  # the outer limit ends first anyway
        yield
        return
    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if outer_s:
            left = outer_s - (time.monotonic() - began)
            signal.setitimer(signal.ITIMER_REAL, max(left, 0.001))


class HookGateway:
    def __init__(self, credentials: GatewayCredentials, agent_id: str) -> None:
        self._credentials = credentials
        self._agent_id = agent_id
        self._path = f"/v1/agents/{quote(agent_id, safe='')}"
        self._persistent: http.client.HTTPConnection | None = None

    def send(self, line: bytes, within: float, *, keep: bool = True, is_asked: bool = False) -> Answer:
        """Send it after lines earlier hooks could not send; if a tool waits for the answer, before them, so
        that a gate is not delayed by a backlog. On `Away` the line is on disk and is sent by a later hook,
        unless `keep` is False: a request no hook will wait for any more.

        It is on disk before it is sent: a hook killed here loses nothing; sent twice, it counts once.
        """
        folder = self._credentials.data / "spool"
        own = _spooled(folder, self._agent_id, self._credentials.url, line)
        older = Spool.adopt(folder, self._agent_id, self._credentials.url, SPOOL_BYTES)
        is_settled, until = not keep, time.monotonic() + within
        try:
            with time_limit(within):
                if not is_asked:
                    self._drain(older)
                answers = self._post([line])
            if len(answers) != 1:
                raise Away("the server at this address is not a gateway")
            [answer] = answers
            if not answer.is_final:
                raise _refused(answer.code)
            is_settled = True
            if is_asked and older:
                with contextlib.suppress(Away), time_limit(until - time.monotonic()):
                    self._drain(older)
        finally:
            for spool in older:
                spool.release()
            if own is not None:
                own.advance(len(line) + 1) if is_settled else own.sync()
                own.release()
        return answer

    def _drain(self, spools: Sequence[Spool]) -> None:
        for spool in spools:
            while lines := spool.peek(BATCH_LINES, BATCH_BYTES):
                answers = self._post(lines)
                settled = 0
                for line, answer in zip(lines, answers, strict=False):
                    if not answer.is_final:
                        break
                    settled += len(line) + 1
                spool.advance(settled)
                if settled < sum(len(line) + 1 for line in lines):
                    raise Away("the gateway could not take every line")

    def _post(self, lines: Sequence[bytes]) -> list[Answer]:
        body = b"\n".join(lines) + b"\n"
        status, answered = self._ask("POST", "/v1/messages", body, "application/x-ndjson")
        if status != 200:
            raise _refused(status)
        try:
            return [_decode_answer(line) for line in answered.splitlines()]
        except msgspec.MsgspecError:
            raise Away("the server at this address is not a gateway") from None

    def inbox(self, within: float) -> list[Received]:
        with time_limit(within):
            status, answered = self._ask("GET", f"{self._path}/inbox?wait=0&limit={INBOX_ITEMS}")
        if status != 200:
            raise _refused(status)
        try:
            return _decode_page(answered).items
        except msgspec.MsgspecError:
            raise Away("the server at this address is not a gateway") from None

    def acknowledge(self, ids: Sequence[str], within: float) -> None:
        """Best effort: an unacknowledged item is delivered again and recognised."""
        with contextlib.suppress(Away), time_limit(within):
            body = msgspec.json.encode({"ids": ids})
            self._ask("POST", f"{self._path}/inbox/ack", body)

    def listen(self, until: float) -> Iterator[Hello | Received]:
        """The inbox as a stream, until `Away`: it ended, or `until` (monotonic clock) has passed."""
        connection = self._connect(max(until - time.monotonic(), 0.001))
        try:
            headers = self._headers() | {"Accept": "text/event-stream"}
            connection.request("GET", f"{self._path}/inbox", headers=headers)
            response = connection.getresponse()
            if response.status != 200:
                raise _refused(response.status)
            name = ""
            while True:
                left = until - time.monotonic()
                if left <= 0:
                    raise Away("timed out")
                if connection.sock is not None:
                    connection.sock.settimeout(min(left, QUIET_S))
                line = response.readline()
                if not line:
                    raise Away("the gateway ended the stream")
                if line.startswith(b"event: "):
                    name = line[7:].strip().decode()
                elif line.startswith(b"data: "):
                    kind: Any = {"hello": Hello, "delivery": Received}.get(name)
                    if kind is not None:
                        yield msgspec.json.decode(line[6:], type=kind)
        except (OSError, http.client.HTTPException, msgspec.MsgspecError) as exc:
            raise Away(type(exc).__name__) from None
        finally:
            connection.close()

    def _ask(
        self, method: str, path: str, body: bytes | None = None, kind: str = "application/json"
    ) -> tuple[int, bytes]:
        """Within the caller's time limit. If the persistent connection was closed meanwhile, retry on a new
        one."""
        headers = self._headers() | ({} if body is None else {"Content-Type": kind})
        for is_reused in (True, False):
            if self._persistent is None or not is_reused:
                self._persistent, is_reused = self._connect(QUIET_S), False
            try:
                self._persistent.request(method, path, body, headers)
                response = self._persistent.getresponse()
                return response.status, response.read()
            except (OSError, http.client.HTTPException) as exc:
                self._persistent.close()
                self._persistent = None
                if not is_reused:
                    raise Away(f"{type(exc).__name__} at {self._credentials.url}") from None
        raise AssertionError("unreachable")

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._credentials.key}"}

    def _connect(self, timeout_s: float) -> http.client.HTTPConnection:
        parts = urlsplit(self._credentials.url)
        assert parts.hostname is not None  # checked by `find_door`
        if parts.scheme == "https":
            from observatory.sdk.client import tls  # the same TLS rules as the SDK; imported only for https

            try:
                context = tls(self._credentials.url, self._credentials.trust)
            except ObservatoryError as exc:
                raise Away(str(exc)) from None
            return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=timeout_s, context=context)
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)


def _spooled(folder: Path, name: str, url: str, line: bytes) -> Spool | None:
    """None when the disk refuses it: then it is sent or lost."""
    try:
        spool = Spool.create(folder, name, url, SPOOL_BYTES)
        spool.append([line])
    except OSError:
        return None
    return spool


def _refused(status: int) -> Away:
    if status in (401, 403):
        return NotAdmitted(f"the gateway does not accept this agent's key ({status}): check OBSERVATORY_KEY")
    if status in (404, 405, 415):
        return Away(f"no gateway at this address ({status}): check OBSERVATORY_URL")
    return Away(f"the gateway answered {status}")


_decode_answer = msgspec.json.Decoder(Answer).decode
_decode_page = msgspec.json.Decoder(_Page).decode
