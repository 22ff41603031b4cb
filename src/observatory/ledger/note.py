"""Signed notes: the text a log signs, the lines that sign it, and the checkpoint that is such a text.

C2SP `signed-note/v1.0.0`, `tlog-checkpoint/v1.0.0` and `tlog-cosignature/v1.0.1`, Ed25519 only (types
0x01 and 0x04). What a stranger sent is bounded before it is read, and refused with `BadNote`, whose
sentence quotes nothing of it. Unknown keys are ignored; a known key whose signature is wrong refuses the
whole note, and so does a note that no known key signed. A key of low order, under which messages nobody
signed would verify, is refused wherever one is made known.
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
MOST_BYTES: Final = 1 << 16
MOST_SIGNATURES: Final = 64  # the standard wants 16 accepted at least
MOST_SIZE: Final = (1 << 63) - 1
DASH: Final = "\u2014 "

# The y of every point whose order divides 8: 1, -1, 0, and the two of order 8, which solve dy⁴ + 2y² = 1.
_P: Final = 2**255 - 19
_Y8: Final = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
LOW_ORDER_Y: Final = frozenset({0, 1, _P - 1, _Y8, _P - _Y8})


class BadNote(ObservatoryError):
    """A note, a key or a checkpoint that is not to be believed; the sentence says what is wrong."""


class Signs(Protocol):
    """What can put its line under a text."""

    @property
    def name(self) -> str: ...

    def line(self, text: str) -> str: ...


def is_low_order(public_key: bytes) -> bool:
    """Whatever its spelling: the sign bit is left out and y is taken modulo p (RFC 8032 §5.1.3)."""
    return (int.from_bytes(public_key, "little") & ((1 << 255) - 1)) % _P in LOW_ORDER_Y


def key_id(name: str, public_key: bytes, kind: int = ED25519) -> bytes:
    return sha256(name.encode() + b"\n" + bytes([kind]) + public_key).digest()[:4]


def vkey(name: str, public_key: bytes, kind: int = ED25519) -> str:
    """The text by which a key is made known: `name+hex(key ID)+base64(type || key)`."""
    check_name(name)
    body = b64encode(bytes([kind]) + public_key).decode()
    return f"{name}+{key_id(name, public_key, kind).hex()}+{body}"


def check_name(name: str) -> None:
    """BadNote for what cannot name a key, and so cannot be an origin either."""
    if (
        not name
        or "+" in name
        or len(name) > 255
        or any(one.isspace() or not one.isprintable() for one in name)
    ):
        raise BadNote("a key's name is 1 to 255 printable characters without a space or a plus sign")


class Signer:
    """A private key under a name."""

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
    """A witness: it says when it saw a checkpoint, and signs that too."""

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
    """A public key under a name, as a vkey makes it known."""

    def __init__(self, name: str, public_key: bytes, kind: int = ED25519) -> None:
        check_name(name)
        if kind not in (ED25519, COSIGNATURE):
            raise BadNote("a key of this type is not known here; Ed25519 (1) and its cosignature (4) are")
        if len(public_key) != 32:
            raise BadNote("an Ed25519 key has 32 bytes")
        if is_low_order(public_key):
            raise BadNote("this key is of low order: anything would verify under it")
        self.name, self.public_key, self.kind = name, public_key, kind
        self.key_id = key_id(name, public_key, kind)
        self._key = Ed25519PublicKey.from_public_bytes(public_key)

    @classmethod
    def from_vkey(cls, text: str) -> "Verifier":
        name, _, rest = text.partition("+")
        identity, _, body = rest.partition("+")
        raw = unbase64(body) if len(body) <= 64 else None
        if raw is None or len(raw) != 33:
            raise BadNote("a verification key reads name+hash+base64; this one does not")
        found = cls(name, raw[1:], raw[0])
        if identity != found.key_id.hex():
            raise BadNote("the hash in this verification key is not that of its name and key")
        return found

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
    """When a witness saw what it signed, in seconds; None for what is no cosignature."""
    return int.from_bytes(signature[:8], "big") if len(signature) == 72 else None


class Line:
    """One signature line, taken apart; nothing of it was checked."""

    __slots__ = ("key_id", "name", "signature")

    def __init__(self, name: str, raw: bytes) -> None:
        self.name, self.key_id, self.signature = name, raw[:4], raw[4:]


def sign(text: str, signers: Iterable[Signs]) -> bytes:
    """The note: text, blank line, a line by each. BadNote for a text that could not be read back."""
    _check_text(text)
    return (text + "\n" + "".join(signer.line(text) for signer in signers)).encode()


def _check_text(text: str) -> None:
    if not text.endswith("\n"):
        raise BadNote("the text of a note ends with a line break")
    if any((one < " " and one != "\n") or one == "\x7f" or "\x80" <= one <= "\x9f" for one in text):
        raise BadNote("a note holds no control character but line breaks")


def split(note: bytes) -> tuple[str, list[Line]]:
    """Text and signature lines, unchecked; BadNote for what is no note."""
    if len(note) > MOST_BYTES:
        raise BadNote(f"a note has at most {MOST_BYTES:,} bytes")
    try:
        whole = note.decode("utf-8")
    except UnicodeDecodeError:
        raise BadNote("a note is UTF-8") from None
    _check_text(whole)
    # The last blank line separates: the text itself may hold some.
    text, blank, below = whole.rpartition("\n\n")
    if not blank or not below:
        raise BadNote("a note is a text, a blank line and at least one signature line")
    lines = below.split("\n")[:-1]
    if len(lines) > MOST_SIGNATURES:
        raise BadNote(f"a note has at most {MOST_SIGNATURES} signatures")
    return text + "\n", [_line(line) for line in lines]


def _line(line: str) -> Line:
    name, space, body = line.removeprefix(DASH).partition(" ")
    raw = unbase64(body)
    if not line.startswith(DASH) or not space or raw is None or len(raw) < 5:
        raise BadNote("a signature line reads: em dash, name, base64 of key hash and signature")
    check_name(name)
    return Line(name, raw)


def open(note: bytes, verifiers: Sequence[Verifier]) -> tuple[str, list[str]]:
    """The text, and the names of the known keys that signed it, each once; never an empty list."""
    text, lines = split(note)
    known: dict[tuple[str, bytes], Verifier] = {}
    for verifier in verifiers:
        if known.setdefault((verifier.name, verifier.key_id), verifier).public_key != verifier.public_key:
            raise BadNote("two known keys have one name and one hash; which is meant cannot be told")
    names: list[str] = []
    for line in lines:
        found = known.get((line.name, line.key_id))
        if found is None:
            continue
        if not found.verifies(text, line.signature):
            raise BadNote("a known key's signature under this note is wrong")
        if line.name not in names:
            names.append(line.name)
    if not names:
        raise BadNote("no known key signed this note")
    return text, names


def checkpoint(origin: str, size: int, root: bytes) -> str:
    """The three lines a log signs. No extension lines: there are verifiers that would stumble over them."""
    check_name(origin)
    if not 0 <= size <= MOST_SIZE or len(root) != 32:
        raise ValueError("a checkpoint has a size within 63 bits and a root of 32 bytes")
    return f"{origin}\n{size}\n{b64encode(root).decode()}\n"


def parse_checkpoint(text: str) -> tuple[str, int, bytes]:
    """(origin, size, root); what stands behind the third line is an extension and passed over."""
    lines = text.split("\n")
    if len(lines) < 4 or lines[-1] or not all(lines[:-1]):
        raise BadNote("a checkpoint is an origin, a size and a root, a line each")
    origin, number, body = lines[:3]
    return origin, read_size(number), read_hash(body)


def read_size(digits: str, what: str = "a size") -> int:
    """A number in its one spelling; BadNote for anything else."""
    plain = digits.isascii() and digits.isdigit() and len(digits) <= 19
    if not plain or (digits[0] == "0" and digits != "0") or int(digits) > MOST_SIZE:
        raise BadNote(f"{what} is a decimal number without leading zeros")
    return int(digits)


def read_hash(text: str) -> bytes:
    """A hash in its one spelling; BadNote for anything else."""
    raw = unbase64(text)
    if raw is None or len(raw) != 32:
        raise BadNote("a root or a hash of a proof is the base64 of 32 bytes")
    return raw


def unbase64(text: str) -> bytes | None:
    """Standard base64 in its one spelling, or None: padding bits that are not zero would be a second one."""
    try:
        raw = b64decode(text, validate=True)
    except (NotBase64, ValueError):
        return None
    return raw if b64encode(raw).decode() == text else None
