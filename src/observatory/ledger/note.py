"""Signed notes and checkpoints: writing, parsing, signing and verifying them.

C2SP `signed-note/v1.0.0`, `tlog-checkpoint/v1.0.0` and `tlog-cosignature/v1.0.1`, Ed25519 only (types
0x01 and 0x04). Untrusted input is bounded before it is parsed, and refused with `BadNote`, whose message
quotes nothing of it. Unknown keys are ignored; a note is refused if a known key's signature is wrong or if no
known key signed it. Keys of low order, under which unsigned messages would verify, are refused wherever a key
is accepted.
"""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final, Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from observatory.errors import ObservatoryError

ED25519: Final = 0x01
COSIGNATURE: Final = 0x04
MAX_BYTES: Final = 1 << 16
MAX_SIGNATURES: Final = 64  # the standard requires accepting at least 16
MAX_SIZE: Final = (1 << 63) - 1
DASH: Final = "\u2014 "

# The y of every point whose order divides 8: 1, -1, 0, and the two of order 8, which solve dy⁴ + 2y² = 1.
_P: Final = 2**255 - 19
_Y8: Final = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
LOW_ORDER_Y: Final = frozenset({0, 1, _P - 1, _Y8, _P - _Y8})


class BadNote(ObservatoryError):
    """A note, a key or a checkpoint that cannot be trusted; the message says what is wrong."""


class SupportsSigning(Protocol):
    """Anything that can sign a note: it returns its signature line for a text."""

    @property
    def name(self) -> str: ...

    def line(self, text: str) -> str: ...


def is_low_order(public_key: bytes) -> bool:
    """In any encoding: the sign bit is ignored and y is taken modulo p (RFC 8032 §5.1.3)."""
    return (int.from_bytes(public_key, "little") & ((1 << 255) - 1)) % _P in LOW_ORDER_Y


def key_id(name: str, public_key: bytes, kind: int = ED25519) -> bytes:
    return sha256(name.encode() + b"\n" + bytes([kind]) + public_key).digest()[:4]


def vkey(name: str, public_key: bytes, kind: int = ED25519) -> str:
    """The text form of a verification key: `name+hex(key ID)+base64(type || key)`."""
    check_name(name)
    body = b64encode(bytes([kind]) + public_key).decode()
    return f"{name}+{key_id(name, public_key, kind).hex()}+{body}"


def check_name(name: str) -> None:
    """BadNote for an invalid key name, which is also invalid as an origin."""
    if (
        not name
        or "+" in name
        or len(name) > 255
        or any(one.isspace() or not one.isprintable() for one in name)
    ):
        raise BadNote("a key's name is 1 to 255 printable characters without a space or a plus sign")


class Signer:
    """A private key with a name."""

    kind = ED25519

    def __init__(self, name: str, private_key: Ed25519PrivateKey | bytes) -> None:
        check_name(name)
        self.name = name
        if isinstance(private_key, bytes):
            private_key = Ed25519PrivateKey.from_private_bytes(private_key)
        self._key = private_key
        self.public_key = self._key.public_key().public_bytes_raw()
        self.key_id = key_id(name, self.public_key, self.kind)

    @property
    def vkey(self) -> str:
        return vkey(self.name, self.public_key, self.kind)

    def line(self, text: str) -> str:
        return self._line(self._key.sign(text.encode()))

    def _line(self, signature: bytes) -> str:
        return f"{DASH}{self.name} {b64encode(self.key_id + signature).decode()}\n"


class Cosigner(Signer):
    """A witness: its signature includes the time it saw the checkpoint."""

    kind = COSIGNATURE

    def __init__(self, name: str, private_key: Ed25519PrivateKey | bytes, seen_s: int) -> None:
        super().__init__(name, private_key)
        self.seen_s = seen_s

    def line(self, text: str) -> str:
        signature = self._key.sign(_cosigned(text, self.seen_s))
        return self._line(self.seen_s.to_bytes(8, "big") + signature)


def _cosigned(text: str, seen_s: int) -> bytes:
    return f"cosignature/v1\ntime {seen_s}\n{text}".encode()


class Verifier:
    """A public key with a name, as in a vkey."""

    def __init__(self, name: str, public_key: bytes, kind: int = ED25519) -> None:
        check_name(name)
        if kind not in (ED25519, COSIGNATURE):
            raise BadNote("unknown key type; supported are Ed25519 (1) and its cosignature (4)")
        if len(public_key) != 32:
            raise BadNote("an Ed25519 key has 32 bytes")
        if is_low_order(public_key):
            raise BadNote("this key is of low order: any signature would verify under it")
        self.name, self.public_key, self.kind = name, public_key, kind
        self.key_id = key_id(name, public_key, kind)
        self._key = Ed25519PublicKey.from_public_bytes(public_key)

    @classmethod
    def from_vkey(cls, text: str) -> "Verifier":
        name, _, rest = text.partition("+")
        identity, _, body = rest.partition("+")
        raw = unbase64(body) if len(body) <= 64 else None
        if raw is None or len(raw) != 33:
            raise BadNote("a verification key has the form name+hash+base64; this one does not")
        verifier = cls(name, raw[1:], raw[0])
        if identity != verifier.key_id.hex():
            raise BadNote("the hash in this verification key is not that of its name and key")
        return verifier

    def verifies(self, text: str, signature: bytes) -> bool:
        message = text.encode()
        if self.kind == COSIGNATURE:
            seen = seen_at(signature)
            if seen is None:
                return False
            message, signature = _cosigned(text, seen), signature[8:]
        try:
            self._key.verify(signature, message)
        except InvalidSignature:
            return False
        return True


def seen_at(signature: bytes) -> int | None:
    """When a witness saw what it signed, in seconds; None if this is not a cosignature."""
    return int.from_bytes(signature[:8], "big") if len(signature) == 72 else None


class SignatureLine:
    """One parsed signature line; nothing of it was verified."""

    __slots__ = ("key_id", "name", "signature")

    def __init__(self, name: str, raw: bytes) -> None:
        self.name, self.key_id, self.signature = name, raw[:4], raw[4:]


def sign(text: str, signers: Iterable[SupportsSigning]) -> bytes:
    """The note: text, blank line, a line per signer. BadNote for a text that could not be parsed again."""
    _check_text(text)
    return (text + "\n" + "".join(signer.line(text) for signer in signers)).encode()


def _check_text(text: str) -> None:
    if not text.endswith("\n"):
        raise BadNote("the text of a note must end with a line break")
    if any((one < " " and one != "\n") or one == "\x7f" or "\x80" <= one <= "\x9f" for one in text):
        raise BadNote("a note must not contain control characters except line breaks")


def split(note: bytes) -> tuple[str, list[SignatureLine]]:
    """Text and signature lines, unverified; BadNote for anything that is not a note."""
    if len(note) > MAX_BYTES:
        raise BadNote(f"a note has at most {MAX_BYTES:,} bytes")
    try:
        whole = note.decode("utf-8")
    except UnicodeDecodeError:
        raise BadNote("a note must be UTF-8") from None
    _check_text(whole)
    # The last blank line separates: the text itself may contain some.
    text, blank, below = whole.rpartition("\n\n")
    if not blank or not below:
        raise BadNote("a note is a text, a blank line and at least one signature line")
    lines = below.split("\n")[:-1]
    if len(lines) > MAX_SIGNATURES:
        raise BadNote(f"a note has at most {MAX_SIGNATURES} signatures")
    return text + "\n", [_line(line) for line in lines]


def _line(line: str) -> SignatureLine:
    name, space, body = line.removeprefix(DASH).partition(" ")
    raw = unbase64(body)
    if not line.startswith(DASH) or not space or raw is None or len(raw) < 5:
        raise BadNote("a signature line must be: em dash, name, base64 of key hash and signature")
    check_name(name)
    return SignatureLine(name, raw)


def open(note: bytes, verifiers: Sequence[Verifier]) -> tuple[str, list[str]]:
    """The text, and the names of the known keys that signed it, without duplicates; never empty."""
    text, lines = split(note)
    known: dict[tuple[str, bytes], Verifier] = {}
    for verifier in verifiers:
        if known.setdefault((verifier.name, verifier.key_id), verifier).public_key != verifier.public_key:
            raise BadNote("two known keys have the same name and hash; they cannot be distinguished")
    names: list[str] = []
    for line in lines:
        signer = known.get((line.name, line.key_id))
        if signer is None:
            continue
        if not signer.verifies(text, line.signature):
            raise BadNote("a known key's signature under this note is wrong")
        if line.name not in names:
            names.append(line.name)
    if not names:
        raise BadNote("no known key signed this note")
    return text, names


def checkpoint(origin: str, size: int, root: bytes) -> str:
    """The three lines a log signs. No extension lines: some verifiers do not support them."""
    check_name(origin)
    if not 0 <= size <= MAX_SIZE or len(root) != 32:
        raise ValueError("a checkpoint must have a size within 63 bits and a root of 32 bytes")
    return f"{origin}\n{size}\n{b64encode(root).decode()}\n"


def parse_checkpoint(text: str) -> tuple[str, int, bytes]:
    """(origin, size, root); lines after the third are extensions and ignored."""
    lines = text.split("\n")
    if len(lines) < 4 or lines[-1] or not all(lines[:-1]):
        raise BadNote("a checkpoint must have an origin, a size and a root, one per line")
    origin, number, body = lines[:3]
    return origin, read_size(number), read_hash(body)


def read_size(digits: str, what: str = "a size") -> int:
    """A number in canonical spelling; BadNote for anything else."""
    plain = digits.isascii() and digits.isdigit() and len(digits) <= 19
    if not plain or (digits[0] == "0" and digits != "0") or int(digits) > MAX_SIZE:
        raise BadNote(f"{what} must be a decimal number without leading zeros")
    return int(digits)


def read_hash(text: str) -> bytes:
    """A hash in canonical base64; BadNote for anything else."""
    raw = unbase64(text)
    if raw is None or len(raw) != 32:
        raise BadNote("a root or a hash in a proof must be the base64 of 32 bytes")
    return raw


def unbase64(text: str) -> bytes | None:
    """Decodes canonical standard base64, else None: non-zero padding bits would be a second spelling."""
    try:
        raw = b64decode(text, validate=True)
    except (NotBase64, ValueError):
        return None
    return raw if b64encode(raw).decode() == text else None
