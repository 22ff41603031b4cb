"""The gateway as a hook's process reaches it: one kept connection of the standard library, requests in a box.

Law: nothing here outlasts its box, whatever the network does: an alarm ends what a socket's timeout would not
(a name that does not resolve, an answer that drips). It says `Away`; the caller decides what that means. The
SDK's own client would take longer to import than all of this to run.
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
from observatory.sdk.credentials import Door
from observatory.sdk.received import Received
from observatory.sdk.spool import Spool

INBOX_ITEMS = 1000
QUIET_S = 60.0  # the gateway says at least every 15 s that it is still there
SPOOL_BYTES = 256 << 20
BATCH_LINES, BATCH_BYTES = 500, 4 << 20


class Away(Exception):
    """No answer came. The sentence says why; it holds no key and no payload."""


class NotAdmitted(Away):
    """The gateway is there and does not take our key."""


class Hello(msgspec.Struct):
    """How things stand, by the gateway's own word."""

    entity_id: str | None = None
    paused: list[str] = []
    paused_everywhere: bool = False
    stopped: bool = False
    instructions: dict[str, Any] | None = None


class _Page(msgspec.Struct):
    items: list[Received] = []


@contextlib.contextmanager
def boxed(seconds: float) -> Iterator[None]:
    """Leave the block with `Away` after so long, whatever it is doing. A box may stand in a box."""
    if seconds <= 0:
        raise Away("there was no time left")
    if not hasattr(signal, "setitimer"):
        yield
        return

    def over(*_: object) -> None:
        raise Away(f"the gateway did not answer within {seconds:.1f} s")

    outer_s, began = signal.getitimer(signal.ITIMER_REAL)[0], time.monotonic()
    if 0 < outer_s <= seconds:  # the outer one ends first anyway
        yield
        return
    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if outer_s:
            left = outer_s - (time.monotonic() - began)
            signal.setitimer(signal.ITIMER_REAL, max(left, 0.001))


class Wire:
    def __init__(self, door: Door, agent_id: str) -> None:
        self._door = door
        self._agent_id = agent_id
        self._path = f"/v1/agents/{quote(agent_id, safe='')}"
        self._kept: http.client.HTTPConnection | None = None

    def say(self, line: bytes, within: float, *, keep: bool = True, is_asked: bool = False) -> Answer:
        """Send it after what earlier hooks could not send, or, if a tool waits for the answer, before: of a
        gate that only sees how much is left to send nobody would be asked. `Away`: it is on disk and goes out
        with a later one, unless it is not to be kept: a request nobody will wait for any more.

        On disk before it leaves: a hook that is killed here loses nothing; sent twice, it counts once.
        """
        folder = self._door.data / "spool"
        own = _spooled(folder, self._agent_id, self._door.url, line)
        older = Spool.adopt(folder, self._agent_id, self._door.url, SPOOL_BYTES)
        is_settled, until = not keep, time.monotonic() + within
        try:
            with boxed(within):
                if not is_asked:
                    self._drain(older)
                answers = self._post([line])
            if len(answers) != 1:
                raise Away("what answers there is not a gateway")
            [answer] = answers
            if not answer.is_final:
                raise _refused(answer.code)
            is_settled = True
            if is_asked and older:
                with contextlib.suppress(Away), boxed(until - time.monotonic()):
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
            raise Away("what answers there is not a gateway") from None

    def inbox(self, within: float) -> list[Received]:
        with boxed(within):
            status, answered = self._ask("GET", f"{self._path}/inbox?wait=0&limit={INBOX_ITEMS}")
        if status != 200:
            raise _refused(status)
        try:
            return _decode_page(answered).items
        except msgspec.MsgspecError:
            raise Away("what answers there is not a gateway") from None

    def acknowledge(self, ids: Sequence[str], within: float) -> None:
        """Best effort: what is not acknowledged comes again and is known."""
        with contextlib.suppress(Away), boxed(within):
            body = msgspec.json.encode({"ids": ids})
            self._ask("POST", f"{self._path}/inbox/ack", body)

    def listen(self, until: float) -> Iterator[Hello | Received]:
        """The inbox as a stream, until `Away`: it ended, or it is `until` (of the monotonic clock)."""
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
                    raise Away("the time to wait is over")
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
        """Within the box of the caller. A kept connection may have been closed meanwhile: once more, anew."""
        headers = self._headers() | ({} if body is None else {"Content-Type": kind})
        for is_kept in (True, False):
            if self._kept is None or not is_kept:
                self._kept, is_kept = self._connect(QUIET_S), False
            try:
                self._kept.request(method, path, body, headers)
                response = self._kept.getresponse()
                return response.status, response.read()
            except (OSError, http.client.HTTPException) as exc:
                self._kept.close()
                self._kept = None
                if not is_kept:
                    raise Away(f"{type(exc).__name__} at {self._door.url}") from None
        raise AssertionError("unreachable")

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._door.key}"}

    def _connect(self, timeout_s: float) -> http.client.HTTPConnection:
        parts = urlsplit(self._door.url)
        assert parts.hostname is not None  # `find_door` has looked
        if parts.scheme == "https":
            from observatory.sdk.client import tls  # one rule about whom to trust; worth its import here

            try:
                context = tls(self._door.url, self._door.trust)
            except ObservatoryError as exc:
                raise Away(str(exc)) from None
            return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=timeout_s, context=context)
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)


def _spooled(folder: Path, name: str, url: str, line: bytes) -> Spool | None:
    """None when the disk takes nothing: then it is sent or lost."""
    try:
        spool = Spool.create(folder, name, url, SPOOL_BYTES)
        spool.append([line])
    except OSError:
        return None
    return spool


def _refused(status: int) -> Away:
    if status in (401, 403):
        return NotAdmitted(f"the gateway does not take this agent's key ({status}): check OBSERVATORY_KEY")
    if status in (404, 405, 415):
        return Away(f"no gateway at this address ({status}): check OBSERVATORY_URL")
    return Away(f"the gateway answered {status}")


_decode_answer = msgspec.json.Decoder(Answer).decode
_decode_page = msgspec.json.Decoder(_Page).decode
