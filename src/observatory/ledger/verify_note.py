"""Signed notes and checkpoints as the verifier reads them: C2SP signed-note, tlog-checkpoint, tlog-proof.

Part of the verifier: imports nothing of this project except other verifier modules, and `cryptography` for
Ed25519 only. Signatures of unknown keys are ignored; one of a known key must be valid, or the whole note is
refused. Low-order keys, under which unsigned messages would verify, and keys in non-canonical encoding are
refused. A failure is returned as a sentence (`str`), never raised, and quotes nothing of the note.
"""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NamedTuple

from observatory.ledger.verify_log import MAX_HASHES, MAX_LEAVES, inclusion_holds, leaf_hash

MAX_BYTES: Final = 64 * 1024  # of a note; a checkpoint has a few hundred
MAX_SIGNATURES: Final = 64  # the standard asks for at least 16
PROOF_FORMAT: Final = "c2sp.org/tlog-proof@v1"
_ED25519: Final = 1
_DASH: Final = "\u2014 "
_P: Final = 2**255 - 19
# y of the points whose order divides 8, and the second spellings of 0 and 1: with either sign 14 encodings.
_Y8: Final = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
_LOW_ORDER: Final = frozenset((0, 1, _P - 1, _P, _P + 1, _Y8, _P - _Y8))


class Key(NamedTuple):
    """A verification key: `name+id+key`, as a log publishes it and an auditor pins it."""

    name: str
    key_id: bytes
    public: bytes

    @property
    def vkey(self) -> str:
        return f"{self.name}+{self.key_id.hex()}+{b64encode(bytes([_ED25519]) + self.public).decode()}"


class Checkpoint(NamedTuple):
    """The size and root a log signed. `signed_by` are the known keys with a valid signature."""

    origin: str
    size: int
    root: bytes
    signed_by: tuple[Key, ...]
    text: str


class ProvenLeaf(NamedTuple):
    """A leaf proven by a `.tlog-proof`."""

    leaf_index: int
    checkpoint: Checkpoint


def read_key(vkey: str) -> Key | str:
    """The key of a vkey, or a sentence that says why it is invalid."""
    name, _, rest = vkey.strip().partition("+")
    key_text, _, data = rest.partition("+")
    raw = from_base64(data)
    if not _is_name(name) or raw is None or len(raw) != 33 or raw[0] != _ED25519:
        return "The verification key is not name+id+key of an Ed25519 key."
    key_id = sha256(name.encode() + b"\n" + raw).digest()[:4]
    if key_text != key_id.hex():
        return "The verification key's id is not that of its name and key."
    y = int.from_bytes(raw[1:], "little") & ((1 << 255) - 1)
    if y in _LOW_ORDER:
        return "The verification key is of low order: anyone can sign for it."
    if y >= _P:
        return "The verification key is not in its canonical spelling."
    return Key(name, key_id, raw[1:])


def key_of(name: str, public: bytes) -> Key | str:
    """The key with this name and these 32 bytes, with the same checks as a vkey."""
    raw = bytes([_ED25519]) + public
    key_id = sha256(name.encode() + b"\n" + raw).hexdigest()[:8]
    return read_key(f"{name}+{key_id}+{b64encode(raw).decode()}")


def read_checkpoint(note: bytes, keys: Sequence[Key]) -> Checkpoint | str:
    """The checkpoint of a note that at least one of the keys signed, and none incorrectly."""
    parts = _parts(note)
    if isinstance(parts, str):
        return parts
    text, signatures = parts
    good: list[Key] = []
    for name, key_id, signature in signatures:
        for key in keys:
            if (key.name, key.key_id) != (name, key_id):
                continue
            if not signature_holds(key.public, signature, text.encode()):
                return "The checkpoint's signature is not that of the key it names."
            good.append(key)
    if not good:
        return _unsigned({name for name, _, _ in signatures}, keys)
    return _checkpoint(text, tuple(dict.fromkeys(good)))


def unsigned(note: bytes) -> Checkpoint | str:
    """The content of a note, whether its signatures are valid or not: to be compared, not to be trusted."""
    parts = _parts(note)
    return parts if isinstance(parts, str) else _checkpoint(parts[0], ())


def _unsigned(names: set[str], keys: Sequence[Key]) -> str:
    if names & {key.name for key in keys}:
        return "The checkpoint is signed by another key of the same name, not by the known one."
    return "The checkpoint has no signature of the known key."


def _checkpoint(text: str, good: tuple[Key, ...]) -> Checkpoint | str:
    lines = text.split("\n")
    # Extension lines would be signed as well, but this project writes none.
    if len(lines) != 4 or lines[3]:
        return "The signed text is not the three lines of a checkpoint."
    origin, size, root = lines[0], _decimal(lines[1]), from_base64(lines[2])
    if not origin or size is None or root is None or len(root) != 32:
        return "The signed text is not the three lines of a checkpoint."
    if good and all(key.name != origin for key in good):
        return "The checkpoint belongs to another log than its key."
    return Checkpoint(origin, size, root, good, text)


def read_proof(proof: bytes, leaf: bytes, keys: Sequence[Key]) -> ProvenLeaf | str:
    """A `.tlog-proof` for this leaf (its data, not its hash), checked down to the signature."""
    head, separator, note = proof.partition(b"\n\n")
    if len(proof) > MAX_BYTES or not separator:
        return "This is not a .tlog-proof: it has no checkpoint."
    try:
        lines = head.decode("ascii").split("\n")
    except UnicodeDecodeError:
        return "This is not a .tlog-proof."
    if lines[0] != PROOF_FORMAT:
        return f"This is not a .tlog-proof of the format {PROOF_FORMAT}."
    rest = lines[2:] if lines[1:] and lines[1].startswith("extra ") else lines[1:]
    index = _decimal(rest[0].removeprefix("index ")) if rest and rest[0].startswith("index ") else None
    hashes = [from_base64(line) for line in rest[1:]]
    if index is None or len(hashes) > MAX_HASHES:
        return "The .tlog-proof does not name its leaf."
    checkpoint = read_checkpoint(note, keys)
    if isinstance(checkpoint, str):
        return checkpoint
    if not inclusion_holds(leaf_hash(leaf), index, checkpoint.size, hashes, checkpoint.root):
        return "The proof does not lead from this leaf to the signed root."
    return ProvenLeaf(index, checkpoint)


def signature_holds(public: bytes, signature: bytes, message: bytes) -> bool:
    """Ed25519 as verified by OpenSSL: s below the order, R compared byte for byte, no cofactor."""
    # Imported here: a worker that checks only rows and roots starts without it.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _parts(note: bytes) -> tuple[str, list[tuple[str, bytes, bytes]]] | str:
    """The text, and (name, key id, signature) of each line after the last blank one."""
    if len(note) > MAX_BYTES:
        return "The checkpoint is too large."
    try:
        whole = note.decode("utf-8")
    except UnicodeDecodeError:
        return "The checkpoint is not a signed note."
    text, separator, tail = whole.rpartition("\n\n")
    lines = tail.split("\n")
    if not separator or lines[-1] or any(ord(letter) < 32 and letter != "\n" for letter in whole):
        return "The checkpoint is not a signed note."
    if not 0 < len(lines) - 1 <= MAX_SIGNATURES:
        return "The checkpoint has no signature, or too many."
    signatures = []
    for line in lines[:-1]:
        name, _, data = line.removeprefix(_DASH).partition(" ")
        raw = from_base64(data)
        if not line.startswith(_DASH) or not _is_name(name) or raw is None or len(raw) < 5:
            return "The checkpoint has a line that is not a signature."
        signatures.append((name, raw[:4], raw[4:]))
    return text + "\n", signatures


def _is_name(name: str) -> bool:
    return bool(name) and "+" not in name and not any(map(str.isspace, name))


def _decimal(text: str) -> int | None:
    """A number in canonical spelling: no sign, no leading zero, not beyond 2^63-1."""
    if not (text.isascii() and text.isdigit() and len(text) <= 19) or (text[0] == "0" and text != "0"):
        return None
    return int(text) if int(text) <= MAX_LEAVES else None


def from_base64(text: str) -> bytes | None:
    """Decodes canonical standard base64: RFC 4648 §3.5 requires that unused bits are zero."""
    try:
        raw = b64decode(text.encode("ascii"), validate=True)
    except (NotBase64, UnicodeEncodeError, ValueError):
        return None
    return raw if b64encode(raw).decode("ascii") == text else None
