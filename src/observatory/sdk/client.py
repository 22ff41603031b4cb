"""One request to the gateway, and what came of it as a value.

Used by one thread at a time (the outbox's sender). It never raises for what the network or the gateway
does: a batch is `Answered` line by line, or `Unsent` with the reason and whether trying again makes sense.
Keys and payloads never appear in its reasons.
"""

import email.utils
import logging
import math
import ssl
import time
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx2
import msgspec

LONGEST_RETRY_AFTER_S = 600.0  # a broken header must not silence an agent for a year
THREAD_PREFIX = "observatory-"
_LOCAL = ("localhost", "127.0.0.1", "::1")


class Fault(msgspec.Struct, frozen=True):
    path: str = ""
    problem: str = ""


class Answer(msgspec.Struct, frozen=True):
    """The gateway's word on one message (ruling 10)."""

    code: int
    status: str = ""
    message_id: str | None = None
    session_id: str | None = None
    step_id: str | None = None
    sequence_number: int | None = None
    state: str | None = None
    warnings: list[Any] = []
    reason: str = ""
    faults: list[Fault] = []
    raw_payload_hash: str | None = None
    detail: str | None = None
    """Why, in a sentence, and what can be done about it."""
    cap: str | None = None
    """The budget that refused it."""
    rule_id: str | None = None
    """The policy that refused it."""

    @property
    def accepted(self) -> bool:
        return 200 <= self.code < 300

    @property
    def is_final(self) -> bool:
        """False when the gateway could not judge the line now and it must be sent again."""
        return self.code < 500 and self.code not in (401, 408, 425, 429)


class Answered(NamedTuple):
    answers: list[Answer]
    """In order; fewer than were sent if the connection broke on the way."""


class Unsent(NamedTuple):
    reason: str
    retry_after_s: float | None = None
    busy: bool = False
    """The gateway is there and asked for patience (429): nothing need go to disk."""
    refused: int = 0
    """The status that judged the body itself: a smaller batch, at last one line, shows which."""
    needs_a_person: bool = False
    barred: bool = False
    """The gateway is there and does not take this key: wrong, expired or revoked."""


class Gateway:
    """A kept connection to `POST {url}/v1/messages`."""

    def __init__(self, url: str, key: str, timeout_s: float) -> None:
        self._url = f"{url}/v1/messages"
        self._http = httpx2.Client(
            headers={"Authorization": f"Bearer {key}", "Content-Type": "application/x-ndjson"},
            timeout=httpx2.Timeout(timeout_s, connect=min(timeout_s, 3.0)),
            trust_env=not is_local(url),
            verify=tls(url),
        )

    def send(self, lines: Sequence[bytes]) -> Answered | Unsent:
        try:
            response = self._http.post(self._url, content=b"\n".join(lines) + b"\n")
        except httpx2.HTTPError as exc:
            return Unsent(f"{type(exc).__name__} at {self._url}")
        if response.status_code == 200:
            return _read(response.content)
        return unsent(response.status_code, response.headers.get("Retry-After"))

    def close(self) -> None:
        self._http.close()


def is_local(url: str) -> bool:
    """A proxy has no business on this machine."""
    return urlsplit(url).hostname in _LOCAL


def tls(url: str) -> ssl.SSLContext:
    """Whom to trust: the system's authorities; for plain HTTP nobody, which spares loading them (0.1 s)."""
    return _authorities() if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@cache
def _authorities() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


def _read(body: bytes) -> Answered | Unsent:
    answers = []
    for line in body.splitlines():
        try:
            answers.append(_decode(line))
        except msgspec.MsgspecError:
            break
    return Answered(answers) if answers else Unsent("what answers there is not a gateway")


_decode = msgspec.json.Decoder(Answer).decode


def unsent(code: int, retry_after: str | None) -> Unsent:
    """What an answer means that judged no line."""
    later = _retry_after_s(retry_after)
    match code:
        case 400 | 413 | 422:
            return Unsent(f"the request was refused with {code}", refused=code)
        case 401 | 403:
            return Unsent(
                f"the gateway refuses this key ({code}): check OBSERVATORY_KEY, or make a new agent key with "
                "`observatory keys`",
                retry_after_s=later,
                needs_a_person=True,
                barred=True,
            )
        case 404 | 405 | 415:
            return Unsent(f"no gateway at this address ({code}): check OBSERVATORY_URL", needs_a_person=True)
        case _:
            return Unsent(f"the gateway answered {code}", retry_after_s=later, busy=code == 429)


def _retry_after_s(value: str | None) -> float | None:
    """RFC 9110 §10.2.3: seconds or a date."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return None
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER_S) if math.isfinite(seconds) else None


# httpx2 logs each request at INFO: an agent that logs at INFO would see its own telemetry every 50 ms.
logging.getLogger("httpx2").addFilter(lambda record: not (record.threadName or "").startswith(THREAD_PREFIX))
