"""HTTP client: posts one batch of messages to the gateway and returns the result as a value.

Used by one thread at a time (the outbox's sender). It never raises for network or gateway failures: a batch
is `Answered` line by line, or `Unsent` with the reason and whether retrying makes sense.
Keys and payloads never appear in its reasons.
"""

import email.utils
import logging
import math
import os
import ssl
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx2
import msgspec

from observatory.sdk.answers import Answer
from observatory.sdk.credentials import SYSTEM_TRUST, Trust
from observatory.sdk.errors import NotConfigured

MAX_RETRY_AFTER_S = 600.0  # a broken header must not silence an agent for a year
THREAD_PREFIX = "observatory-"
_LOCAL = ("localhost", "127.0.0.1", "::1")


class Answered(NamedTuple):
    answers: list[Answer]
    """In order; fewer than were sent if the connection broke."""


class Unsent(NamedTuple):
    reason: str
    retry_after_s: float | None = None
    busy: bool = False
    """The gateway is reachable and asked to wait (429): nothing has to be written to disk."""
    refused: int = 0
    """The status that refused the whole body: retry with smaller batches, down to one line, to find the
    cause."""
    needs_a_person: bool = False
    key_refused: bool = False
    """The gateway is reachable and refuses this key: wrong, expired or revoked."""


class NoResponse(Exception):
    """No response arrived; carries the `Unsent` reason. The agent never sees it."""

    def __init__(self, why: Unsent) -> None:
        super().__init__(why.reason)
        self.why = why


class HttpGateway:
    """A persistent connection to `POST {url}/v1/messages`."""

    def __init__(self, url: str, key: str, timeout_s: float, trust: Trust = SYSTEM_TRUST) -> None:
        self._url, self._key, self._timeout_s, self._trust = f"{url}/v1/messages", key, timeout_s, trust
        self._files_version = files_version(trust)
        self._http = self._opened()

    def _opened(self) -> httpx2.Client:
        return httpx2.Client(
            headers={"Authorization": f"Bearer {self._key}", "Content-Type": "application/x-ndjson"},
            timeout=httpx2.Timeout(self._timeout_s, connect=min(self._timeout_s, 3.0)),
            trust_env=not is_local(self._url),
            verify=tls(self._url, self._trust),
        )

    def _renew(self) -> None:
        """Uses a certificate that was replaced on disk from the next request on."""
        version = files_version(self._trust)
        if version != self._files_version:
            fresh = self._opened()  # while the files cannot be read, the old ones stay in use
            self._http.close()
            self._http, self._files_version = fresh, version

    def send(self, lines: Sequence[bytes]) -> Answered | Unsent:
        try:
            if self._trust.cert is not None:
                self._renew()
            response = self._http.post(self._url, content=b"\n".join(lines) + b"\n")
        except httpx2.HTTPError as exc:
            tls_error = tls_error_text(exc)
            if tls_error is not None:
                return Unsent(f"{tls_error} ({self._url})", needs_a_person=True)
            return Unsent(f"{type(exc).__name__} at {self._url}")
        except NotConfigured as exc:
            return Unsent(str(exc), needs_a_person=True)
        if response.status_code == 200:
            return parse_answers(response.content)
        return unsent_for_status(response.status_code, response.headers.get("Retry-After"))

    def close(self) -> None:
        self._http.close()


def is_local(url: str) -> bool:
    """Whether the URL is on this machine; no proxy is used then."""
    return urlsplit(url).hostname in _LOCAL


def tls(url: str, trust: Trust = SYSTEM_TRUST) -> ssl.SSLContext:
    """The TLS context: the system's certificate authorities, or those of a file; none for plain HTTP, which
    saves loading them (0.1 s). Raises `NotConfigured` when a file cannot be used."""
    if not url.startswith(("https:", "wss:")):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return _context(trust, files_version(trust))


def files_version(trust: Trust) -> tuple[int, ...]:
    """Modification times; they change when one of the files is replaced."""
    versions = []
    for path in trust:
        try:
            versions.append(0 if path is None else os.stat(path).st_mtime_ns)
        except OSError:
            versions.append(-1)
    return tuple(versions)


@lru_cache(maxsize=16)
def _context(trust: Trust, version: tuple[int, ...]) -> ssl.SSLContext:
    if trust.ca is None:
        context = httpx2.create_ssl_context()
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        with _named("OBSERVATORY_CA", trust.ca, "an authority's certificate"):
            context.load_verify_locations(trust.ca)
    if trust.cert is not None:
        with _named("OBSERVATORY_CERT", trust.cert, "a certificate and its key, not encrypted"):
            context.load_cert_chain(trust.cert, trust.cert_key, lambda: b"")
    return context


@contextmanager
def _named(name: str, path: str, what: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise NotConfigured(f"{name}: {path} or its key file does not exist.") from None
    except (ssl.SSLError, OSError):
        raise NotConfigured(f"{name}: {path} cannot be used; it must hold {what}, in PEM form.") from None


def tls_error_text(error: BaseException) -> str | None:
    """The message for a failed TLS handshake; None when the error was not one."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        return None
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"the gateway's certificate is not trusted ({cause.verify_message}): "
            "name its authority with OBSERVATORY_CA (--ca)"
        )
    if "ALERT" in (cause.reason or "").upper():
        return (
            "the gateway refused the client certificate, or requires one and received none: "
            "check OBSERVATORY_CERT and OBSERVATORY_CERT_KEY (--cert, --cert-key)"
        )
    return "the server does not speak TLS; is it http:// instead of https://?"


def parse_answers(body: bytes) -> Answered | Unsent:
    """The answers of a batch, in order."""
    answers = []
    for line in body.splitlines():
        try:
            answers.append(_decode(line))
        except msgspec.MsgspecError:
            break
    return Answered(answers) if answers else Unsent("the server at this address is not a gateway")


_decode = msgspec.json.Decoder(Answer).decode


def unsent_for_status(code: int, retry_after: str | None) -> Unsent:
    """The meaning of a status that answered no line."""
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
                key_refused=True,
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
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_S) if math.isfinite(seconds) else None


# httpx2 logs each request at INFO: an agent that logs at INFO would see its own telemetry every 50 ms.
logging.getLogger("httpx2").addFilter(lambda record: not (record.threadName or "").startswith(THREAD_PREFIX))
