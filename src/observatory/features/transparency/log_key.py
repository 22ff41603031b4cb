"""The key that signs the house's logs, and beside it what was signed last.

Both lie outside the database and its backups, readable by their owner alone; a file others can read is
refused. The key is PKCS#8 PEM, under a passphrase if one is set. While a rotation is under way the file
holds two: the new one first, then the one it follows. `Marks` only ever grows: it is written, synced and
put in place before a checkpoint is shown to anybody, so that no restored database can make this gateway
sign a second history. Gateways that share the files change them one at a time, under a lock beside each,
and by what the file holds then, never by what they remember of it.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import tempfile
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from observatory.errors import ObservatoryError, StartupError
from observatory.ledger.note import Cosigner, Signer

BLOCK = re.compile(rb"-----BEGIN [A-Z ]+-----.+?-----END [A-Z ]+-----\n?", re.DOTALL)

NOWHERE = (0, 0)  # the stamp of a file that is not there


class Mark(msgspec.Struct, frozen=True):
    """What was signed last of one tenant's log."""

    origin: str
    size: int
    root: bytes

    @property
    def root_text(self) -> str:
        return b64encode(self.root).decode()


class Backwards(ObservatoryError):
    """A mark would fall behind what stands in the file: somebody else signed further."""


class UnderWay(ObservatoryError):
    """One key follows another, and not every log has been signed by both yet."""

    def __init__(self) -> None:
        super().__init__("a rotation is under way; wait for its checkpoint")


def put(path: Path, content: bytes, is_first: bool = False) -> None:
    """Written beside, synced, put in its place, the folder synced: always the old file or the new one.

    With `is_first` FileExistsError, and nothing is changed, when there is one already.
    """
    # A file of its own, its maker's alone whatever lies there: two may write at once.
    handle, name = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".new", dir=path.parent)
    beside = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if is_first:
            os.link(beside, path)
        else:
            beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time changes this file; whoever is killed lets go."""
    handle = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def private_bytes(path: Path) -> bytes | None:
    """None when it is not there; refused when others can read it."""
    try:
        mode = path.stat().st_mode
        if mode & 0o077:
            raise StartupError(
                f"{path} can be read by others ({stat.S_IMODE(mode):04o}); run: chmod 600 {path}"
            )
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StartupError(f"{path} cannot be read: {error.strerror}") from error


class Keyring:
    """The key in force and, while a rotation is under way, the one before it."""

    def __init__(
        self, path: Path, passphrase: str, keys: list[Ed25519PrivateKey], seen: tuple[int, int]
    ) -> None:
        self.path, self._passphrase = path, passphrase.encode()
        self._keys, self._seen = keys, seen

    @classmethod
    def open(cls, path: Path, passphrase: str) -> Keyring | None:
        """None when there is no such file; StartupError with a sentence when it cannot be used."""
        seen = _stamp(path)  # before it is read: what is put there meanwhile is read anew
        content = private_bytes(path)
        return None if content is None else cls(path, passphrase, _keys_in(path, content, passphrase), seen)

    @classmethod
    def make(cls, path: Path, passphrase: str) -> Keyring:
        """The first key of a house. Of two that start at once one makes it, and both have that one."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        made = cls(path, passphrase, [], NOWHERE)
        try:
            made._write([Ed25519PrivateKey.generate()], is_first=True)
        except FileExistsError:
            found = cls.open(path, passphrase)
            if found is None:
                raise StartupError(f"the log's key {path} was there and is gone; start again") from None
            return found
        return made

    def refresh(self) -> bool:
        """Read the file again if somebody changed it; whether it was."""
        seen = _stamp(self.path)
        if seen in (NOWHERE, self._seen):
            return False
        content = private_bytes(self.path)
        if content is not None:
            self._keys = _keys_in(self.path, content, self._passphrase.decode())
        self._seen = seen
        return True

    def _stored(self) -> list[Ed25519PrivateKey]:
        """What the file holds now, without taking it over: `refresh` does, and says so."""
        content = private_bytes(self.path)
        if content is None:
            raise StartupError(f"the log's key {self.path} is gone; restore it from where keys are kept")
        return _keys_in(self.path, content, self._passphrase.decode())

    @property
    def public_key(self) -> bytes:
        return self._keys[0].public_key().public_bytes_raw()

    @property
    def previous_public_key(self) -> bytes | None:
        return self._keys[1].public_key().public_bytes_raw() if len(self._keys) > 1 else None

    def signers(self, origin: str, both: bool) -> list[Signer]:
        return [Signer(origin, key) for key in (self._keys if both else self._keys[:1])]

    def cosigner(self, name: str, seen_s: int) -> Cosigner:
        """For others' checkpoints, under the name of a witness."""
        return Cosigner(name, self._keys[0], seen_s)

    def rotate(self) -> None:
        """A new key in front of the one in the file; `UnderWay` while that one follows another itself."""
        with self._sole():
            keys = self._stored()
            if len(keys) > 1:
                raise UnderWay
            self._write([Ed25519PrivateKey.generate(), keys[0]])

    def settle(self) -> None:
        """The rotation is over: the old private key is gone for good, unless another rotation began."""
        with self._sole():
            keys = self._stored()
            if len(keys) > 1 and keys[0].public_key().public_bytes_raw() == self.public_key:
                self._write(keys[:1])

    @contextmanager
    def _sole(self) -> Iterator[None]:
        with ExitStack() as stack:
            try:
                stack.enter_context(locked(self.path))
            except OSError as error:
                raise self._unwritable(error) from error
            yield

    def _unwritable(self, error: OSError) -> StartupError:
        return StartupError(f"the log's key {self.path} cannot be written: {error.strerror}")

    def _write(self, keys: list[Ed25519PrivateKey], is_first: bool = False) -> None:
        """On disk first: nothing is signed by a key that a crash could lose."""
        sealed: KeySerializationEncryption = (
            BestAvailableEncryption(self._passphrase) if self._passphrase else NoEncryption()
        )
        blocks = [key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, sealed) for key in keys]
        try:
            put(self.path, b"".join(blocks), is_first)
        except FileExistsError:
            raise
        except OSError as error:
            raise self._unwritable(error) from error
        self._keys, self._seen = keys, _stamp(self.path)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return NOWHERE
    return (found.st_ino, found.st_mtime_ns)


def _keys_in(path: Path, content: bytes, passphrase: str) -> list[Ed25519PrivateKey]:
    blocks = BLOCK.findall(content)
    if not 1 <= len(blocks) <= 2:
        raise StartupError(f"{path} is not the PEM of a log's key; restore it from where keys are kept")
    keys = []
    for block in blocks:
        try:
            key = load_pem_private_key(block, passphrase.encode() or None)
        except TypeError as error:  # one of passphrase and encryption is there without the other
            needs = "is not under a passphrase" if passphrase else "needs its passphrase"
            told = f"the log's key {path} {needs}; see log_key_passphrase in docs/guides/settings.md"
            raise StartupError(told) from error
        except ValueError as error:
            told = f"the log's key {path} cannot be opened: it is damaged, or its passphrase is another"
            raise StartupError(told) from error
        if not isinstance(key, Ed25519PrivateKey):
            raise StartupError(f"the log's key {path} is not an Ed25519 key")
        keys.append(key)
    return keys


class Marks:
    """What was signed last, per tenant; one file, shared by all who share the key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int] | None = None
        self._known: dict[str, Mark] = {}

    def of(self, tenant_id: str) -> Mark | None:
        """What was signed last of one log; the file is read again only when it is another one.

        Should that ever go unnoticed the log is opened by an older mark, and `advance`, which reads anew
        under the lock, refuses to go on from it.
        """
        seen = _stamp(self.path)  # before it is read: what is put there meanwhile is read anew
        if seen != self._seen:
            self._known, self._seen = self.load(), seen
        return self._known.get(tenant_id)

    def load(self) -> dict[str, Mark]:
        content = private_bytes(self.path)
        if content is None:
            return {}
        try:
            return msgspec.json.decode(content, type=dict[str, Mark])
        except msgspec.DecodeError as error:
            raise StartupError(
                f"{self.path} is damaged, and it says what was signed last; restore it, or remove it and "
                "start with --accept-rollback"
            ) from error

    def advance(self, marks: Mapping[str, Mark]) -> None:
        """Durable when it returns. `Backwards`, and nothing is written, if any would go back."""
        with locked(self.path):
            known = self.load()
            for tenant_id, mark in marks.items():
                before = known.get(tenant_id)
                if before is not None and (
                    before.size > mark.size or (before.size == mark.size and before.root != mark.root)
                ):
                    raise Backwards("what was signed last reaches further than this checkpoint")
            put(self.path, msgspec.json.encode(known | dict(marks)))

    def reset(self, tenant_id: str, mark: Mark) -> None:
        """After a rollback was accepted: the one way back."""
        with locked(self.path):
            put(self.path, msgspec.json.encode(self.load() | {tenant_id: mark}))
