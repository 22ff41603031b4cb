"""The words spoken over NATS: an address, subjects, and letters that are signed.

Laws: a key never crosses NATS and never rests there; a letter carries the key's public part and an HMAC by
a secret that both sides derive from the key (the gateway from the hash it stores). What is signed names the
subject, the time, what is asked, where the answer goes and the body, so none of it can be exchanged. The
answer is signed too and names the letter it answers: nobody else can tell an agent that its message is
durable. Pure: no connection is made here.
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
FRESH_NS = 120 * 1_000_000_000  # how far apart clocks may be where a repeat would do something twice
KEY, TIME, CALL = "Observatory-Key", "Observatory-Time", "Observatory-Call"
REPLY, SIGNATURE = "Observatory-Reply", "Observatory-Signature"
STATUS, AGAIN = "Observatory-Status", "Observatory-Retry-After"
WAIT = (401, 429, 503)  # what a gateway may have to say before it knows who asks
KIND, ENCODING = "Content-Type", "Content-Encoding"
SEQ, OP = "Observatory-Seq", "Observatory-Op"
_PREFIX = re.compile(r"[a-z0-9_-]{1,32}").fullmatch
_PUBLIC = re.compile(r"[0-9A-Za-z]{1,64}").fullmatch
_SUBJECT = re.compile(r"[!-~]{1,255}").fullmatch
_NUMBER = re.compile(r"[0-9]{1,20}").fullmatch


class BadAddress(ObservatoryError):
    """Not an address of NATS; the sentence says what is. It quotes nothing, for it may hold a password."""


class Address(NamedTuple):
    servers: tuple[str, ...]
    prefix: str
    agent_class: str = ""  # all that its agents hear comes below `_INBOX.<class>`

    @property
    def shown(self) -> str:
        """Without user, password or token: the only form that may be logged or kept."""
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


def address(url: str) -> Address:
    """`nats://[user:password@|token@]host[:port][,host…][/prefix[/class]]`, or `tls://…`."""
    scheme, _, rest = url.partition("://")
    hosts, _, path = rest.partition("/")
    if scheme not in SCHEMES or not hosts:
        raise BadAddress("an address of NATS looks like nats://host:4222 or tls://host:4222/prefix")
    prefix, slash, agent_class = path.rstrip("/").partition("/")
    if (path.rstrip("/") and not _PREFIX(prefix)) or (slash and not _PREFIX(agent_class)):
        raise BadAddress(
            "what follows the hosts of a NATS address is the prefix of its subjects, and for agents a class: "
            "each 1 to 32 of a-z, 0-9, _ and -"
        )
    servers = tuple(_server(scheme, host.strip()) for host in hosts.split(","))
    return Address(servers, prefix or DEFAULT_PREFIX, agent_class)


def _server(scheme: str, host: str) -> str:
    try:
        parts = urlsplit(f"{scheme}://{host}")
        name, port = parts.hostname, parts.port
    except ValueError:
        name, port = None, None
    if not name or any(char in host for char in "?# "):
        raise BadAddress("a host of the NATS address is missing, or its port is not a number up to 65535")
    shown = f"[{name}]" if ":" in name else name
    user = host.rpartition("@")[0]
    return f"{scheme}://{user + '@' if user else ''}{shown}:{port or 4222}"


class Login(NamedTuple):
    """One server of an address, and what it wants to see of us."""

    url: str
    user: str | None = None
    password: str | None = None
    token: str | None = None


def login(server: str) -> Login:
    """As `address` gives it; what was percent-encoded is plain here, for nats-py would send it as it is."""
    scheme, _, rest = server.partition("://")
    who, at, host = rest.rpartition("@")
    user, colon, password = who.partition(":")
    if not at:
        return Login(server)
    url = f"{scheme}://{host}"
    return Login(url, unquote(user), unquote(password)) if colon else Login(url, token=unquote(user))


class Letter(NamedTuple):
    """What an agent says or asks by NATS. `reply` is where the answer goes, `call` what is asked."""

    subject: str
    public: str
    time_ns: int
    call: str
    reply: str
    body: bytes
    kind: str = "application/json"
    encoding: str = ""

    def parts(self) -> tuple[bytes, ...]:
        words = (
            self.subject,
            self.public,
            str(self.time_ns),
            self.call,
            self.reply,
            self.kind,
            self.encoding,
        )
        return (b"letter", *(word.encode() for word in words), self.body)


class Reply(NamedTuple):
    """The gateway's word on a letter: what HTTP would have answered."""

    status: int
    body: bytes
    retry_after: str = ""


def secret_of(key_hash: bytes) -> bytes:
    """What both sides sign with; from the SHA-256 of the key, which is all the gateway stores."""
    return hmac.digest(key_hash, b"observatory-nats/v1", hashlib.sha256)


def sign(secret: bytes, *parts: bytes) -> str:
    """Each part with its length before it, so that no two lists of parts read alike."""
    text = b"".join(b"%d:%s," % (len(part), part) for part in parts)
    return hmac.new(secret, text, hashlib.sha256).hexdigest()


def is_signed(secret: bytes, signature: str, *parts: bytes) -> bool:
    return signature.isascii() and hmac.compare_digest(sign(secret, *parts), signature)


def sealed(letter: Letter, secret: bytes) -> dict[str, str]:
    """The headers it travels with."""
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


def opened(subject: str, headers: Mapping[str, str] | None, body: bytes) -> tuple[Letter, str] | None:
    """The letter and its signature as claimed; None when this is none of ours."""
    given = headers or {}
    public, time_text, signature = given.get(KEY, ""), given.get(TIME, ""), given.get(SIGNATURE, "")
    reply, call = given.get(REPLY, ""), given.get(CALL, "")
    plain = all(value.isascii() for value in given.values())
    if not plain or not _PUBLIC(public) or not _NUMBER(time_text) or len(signature) != 64:
        return None
    if (reply and not is_inbox(reply)) or len(call) > 4_096:
        return None
    kind, encoding = given.get(KIND, ""), given.get(ENCODING, "")
    return Letter(subject, public, int(time_text), call, reply, body, kind, encoding), signature


def inbox(public: str, agent_class: str = "") -> str:
    """A new one of a key's holder: NATS may let each hear below its own, or its class's, and nowhere else."""
    below = f"{agent_class}.{public}" if agent_class else public
    return f"_INBOX.{below}.{secrets.token_hex(11)}"


def is_inbox(text: str) -> bool:
    """Where answers may go. Nowhere else: a gateway must not be made to speak where its asker may not."""
    tokens = text.split(".")
    return (
        _SUBJECT(text) is not None
        and text.startswith("_INBOX")
        and len(tokens) > 1
        and all(token and token not in ("*", ">") for token in tokens)
    )


def answered(reply: Reply, signature: str, secret: bytes | None) -> dict[str, str]:
    """Headers of the answer to the letter of that signature; unsigned when its key is unknown."""
    headers = {STATUS: str(reply.status)}
    if reply.retry_after:
        headers[AGAIN] = reply.retry_after
    if secret is not None:
        headers[SIGNATURE] = sign(secret, *_answer_parts(reply, signature))
    return headers


def read_answer(
    headers: Mapping[str, str] | None, body: bytes, signature: str, secret: bytes
) -> Reply | None:
    """What the gateway answered to that letter. Without its signature only that the key is refused, or that
    nothing can be done now, is believed: it can make an agent wait but never forget."""
    given = headers or {}
    status = given.get(STATUS, "")
    if len(status) != 3 or not status.isdecimal():
        return None
    retry_after = given.get(AGAIN, "")
    reply = Reply(int(status), body, retry_after if retry_after.isascii() else "")
    if SIGNATURE in given and is_signed(secret, given[SIGNATURE], *_answer_parts(reply, signature)):
        return reply
    return reply if reply.status in WAIT and SIGNATURE not in given else None


def _answer_parts(reply: Reply, signature: str) -> tuple[bytes, ...]:
    words = (signature, str(reply.status), reply.retry_after)
    return (b"answer", *(word.encode() for word in words), reply.body)
