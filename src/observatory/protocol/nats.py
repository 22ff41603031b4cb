"""The message format over NATS: the server address, subjects, and signed requests and replies.

Laws: a key is never sent over NATS or stored there; a request carries the key's public part and an HMAC with
a secret that both sides derive from the key (the gateway from the hash it stores). The signature covers the
subject, the time, the call, the reply subject and the body, so none of them can be replaced. The reply is
signed too and refers to its request: only the gateway can confirm to an agent that its message is durable.
Pure: no connection is made here.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from observatory.errors import ObservatoryError

SCHEMES = ("nats", "tls")
DEFAULT_PREFIX = "observatory"
FRESH_NS = 120 * 1_000_000_000  # allowed clock difference for requests where a replay would have an effect
KEY, TIME, CALL = "Observatory-Key", "Observatory-Time", "Observatory-Call"
REPLY, SIGNATURE = "Observatory-Reply", "Observatory-Signature"
STATUS, RETRY_AFTER = "Observatory-Status", "Observatory-Retry-After"
WAIT = (401, 429, 503)  # statuses a gateway may return before it has authenticated the request
KIND, ENCODING = "Content-Type", "Content-Encoding"
SEQ, OP = "Observatory-Seq", "Observatory-Op"
_PREFIX = re.compile(r"[a-z0-9_-]{1,32}").fullmatch
_PUBLIC = re.compile(r"[0-9A-Za-z]{1,64}").fullmatch
_SUBJECT = re.compile(r"[!-~]{1,255}").fullmatch
_NUMBER = re.compile(r"[0-9]{1,20}").fullmatch


class InvalidNatsAddress(ObservatoryError):
    """Not a NATS address; the message shows the format. It quotes nothing: the input may contain a
    password."""


class NatsAddress(NamedTuple):
    servers: tuple[str, ...]
    prefix: str
    agent_class: str = ""  # everything its agents receive is below `_INBOX.<class>`

    @property
    def shown(self) -> str:
        """Without user, password or token: the only form that may be logged or stored."""
        hosts = ",".join(
            one.rpartition("@")[2] if "@" in one else one.partition("://")[2] for one in self.servers
        )
        return f"{self.servers[0].partition('://')[0]}://{hosts}/{self.prefix}"

    def __repr__(self) -> str:
        return f"Address({self.shown})"

    @property
    def stream(self) -> str:
        return f"{self.prefix.upper()}_INGEST"

    @property
    def notice(self) -> str:
        return f"{self.prefix}.notice"

    @property
    def request(self) -> str:
        return f"{self.prefix}.request"

    @property
    def channel(self) -> str:
        return f"{self.prefix}.channel"

    @property
    def pipes(self) -> str:
        return f"{self.prefix}.pipe"

    def ingest(self, public: str) -> str:
        return f"{self.prefix}.ingest.{public}"


def is_nats(url: str) -> bool:
    return url.startswith(tuple(f"{scheme}://" for scheme in SCHEMES))


def address(url: str) -> NatsAddress:
    """`nats://[user:password@|token@]host[:port][,host…][/prefix[/class]]`, or `tls://…`."""
    scheme, _, rest = url.partition("://")
    hosts, _, path = rest.partition("/")
    if scheme not in SCHEMES or not hosts:
        raise InvalidNatsAddress("a NATS address looks like nats://host:4222 or tls://host:4222/prefix")
    prefix, slash, agent_class = path.rstrip("/").partition("/")
    if (path.rstrip("/") and not _PREFIX(prefix)) or (slash and not _PREFIX(agent_class)):
        raise InvalidNatsAddress(
            "what follows the hosts of a NATS address is the prefix of its subjects, and for agents a class: "
            "each 1 to 32 of a-z, 0-9, _ and -"
        )
    servers = tuple(_server(scheme, host.strip()) for host in hosts.split(","))
    return NatsAddress(servers, prefix or DEFAULT_PREFIX, agent_class)


def _server(scheme: str, host: str) -> str:
    try:
        parts = urlsplit(f"{scheme}://{host}")
        name, port = parts.hostname, parts.port
    except ValueError:
        name, port = None, None
    if not name or any(char in host for char in "?# "):
        raise InvalidNatsAddress(
            "a host of the NATS address is missing, or its port is not a number up to 65535"
        )
    shown = f"[{name}]" if ":" in name else name
    user = host.rpartition("@")[0]
    return f"{scheme}://{user + '@' if user else ''}{shown}:{port or 4222}"


class NatsLogin(NamedTuple):
    """One server of an address, with its credentials."""

    url: str
    user: str | None = None
    password: str | None = None
    token: str | None = None


def login(server: str) -> NatsLogin:
    """Split a server URL of `address`; credentials are percent-decoded, which nats-py does not do."""
    scheme, _, rest = server.partition("://")
    who, at, host = rest.rpartition("@")
    user, colon, password = who.partition(":")
    if not at:
        return NatsLogin(server)
    url = f"{scheme}://{host}"
    return NatsLogin(url, unquote(user), unquote(password)) if colon else NatsLogin(url, token=unquote(user))


class NatsRequest(NamedTuple):
    """A request of an agent over NATS. `reply` is the subject for the reply, `call` the called operation."""

    subject: str
    public: str
    time_ns: int
    call: str
    reply: str
    body: bytes
    kind: str = "application/json"
    encoding: str = ""

    def parts(self) -> tuple[bytes, ...]:
        texts = (
            self.subject,
            self.public,
            str(self.time_ns),
            self.call,
            self.reply,
            self.kind,
            self.encoding,
        )
        return (b"letter", *(text.encode() for text in texts), self.body)


class NatsReply(NamedTuple):
    """The gateway's reply to a request: the same as its HTTP response."""

    status: int
    body: bytes
    retry_after: str = ""


def secret_of(key_hash: bytes) -> bytes:
    """The shared signing secret, derived from the SHA-256 of the key, which is all the gateway stores."""
    return hmac.digest(key_hash, b"observatory-nats/v1", hashlib.sha256)


def sign(secret: bytes, *parts: bytes) -> str:
    """Signs the parts, each prefixed with its length, so that different lists give different texts."""
    text = b"".join(b"%d:%s," % (len(part), part) for part in parts)
    return hmac.new(secret, text, hashlib.sha256).hexdigest()


def is_signed(secret: bytes, signature: str, *parts: bytes) -> bool:
    return signature.isascii() and hmac.compare_digest(sign(secret, *parts), signature)


def nats_headers(letter: NatsRequest, secret: bytes) -> dict[str, str]:
    """The headers of a signed request."""
    headers = {
        KEY: letter.public,
        TIME: str(letter.time_ns),
        CALL: letter.call,
        KIND: letter.kind,
        SIGNATURE: sign(secret, *letter.parts()),
    }
    if letter.reply:
        headers[REPLY] = letter.reply
    if letter.encoding:
        headers[ENCODING] = letter.encoding
    return headers


def parse_request(
    subject: str, headers: Mapping[str, str] | None, body: bytes
) -> tuple[NatsRequest, str] | None:
    """The request and its claimed signature; None when the message has another format."""
    given = headers or {}
    public, time_text, signature = given.get(KEY, ""), given.get(TIME, ""), given.get(SIGNATURE, "")
    reply, call = given.get(REPLY, ""), given.get(CALL, "")
    plain = all(value.isascii() for value in given.values())
    if not plain or not _PUBLIC(public) or not _NUMBER(time_text) or len(signature) != 64:
        return None
    if (reply and not is_inbox(reply)) or len(call) > 4_096:
        return None
    kind, encoding = given.get(KIND, ""), given.get(ENCODING, "")
    return NatsRequest(subject, public, int(time_text), call, reply, body, kind, encoding), signature


def inbox(public: str, agent_class: str = "") -> str:
    """A new inbox subject for a key: NATS permissions may restrict an agent to its own, or its class's."""
    below = f"{agent_class}.{public}" if agent_class else public
    return f"_INBOX.{below}.{secrets.token_hex(11)}"


def is_inbox(text: str) -> bool:
    """Whether replies may be sent to this subject: only inboxes, so that an agent cannot use the gateway to
    publish where it may not."""
    tokens = text.split(".")
    return (
        _SUBJECT(text) is not None
        and text.startswith("_INBOX")
        and len(tokens) > 1
        and all(token and token not in ("*", ">") for token in tokens)
    )


def reply_headers(reply: NatsReply, signature: str, secret: bytes | None) -> dict[str, str]:
    """Headers of the reply to the request with that signature; unsigned when its key is unknown."""
    headers = {STATUS: str(reply.status)}
    if reply.retry_after:
        headers[RETRY_AFTER] = reply.retry_after
    if secret is not None:
        headers[SIGNATURE] = sign(secret, *_answer_parts(reply, signature))
    return headers


def read_reply(
    headers: Mapping[str, str] | None, body: bytes, signature: str, secret: bytes
) -> NatsReply | None:
    """The gateway's reply to that request. An unsigned reply is accepted only for the statuses in `WAIT`: a
    forged one can make an agent wait but never discard anything."""
    given = headers or {}
    status = given.get(STATUS, "")
    if len(status) != 3 or not status.isdecimal():
        return None
    retry_after = given.get(RETRY_AFTER, "")
    reply = NatsReply(int(status), body, retry_after if retry_after.isascii() else "")
    if SIGNATURE in given and is_signed(secret, given[SIGNATURE], *_answer_parts(reply, signature)):
        return reply
    return reply if reply.status in WAIT and SIGNATURE not in given else None


def _answer_parts(reply: NatsReply, signature: str) -> tuple[bytes, ...]:
    texts = (signature, str(reply.status), reply.retry_after)
    return (b"answer", *(text.encode() for text in texts), reply.body)
