"""Files of the key that signs the deployment's logs, and of what was signed last (`Marks`).

Both are outside the database and its backups, readable by their owner alone; a file that others can read is
refused. The key is PKCS#8 PEM, encrypted if a passphrase is set. During a rotation the file has two keys: the
new one first, then the previous one. `Marks` only grows: it is written and synced before a checkpoint is
served, so that a restored database cannot make this gateway sign a second history. Gateways that share the
files change them one at a time, under a lock file next to each, based on the file's content and never on
their cache.
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

MISSING = (0, 0)  # the stamp of a file that does not exist


class LogMark(msgspec.Struct, frozen=True):
    """What was signed last of one tenant's log."""

    origin: str
    size: int
    root: bytes

    @property
    def root_text(self) -> str:
        return b64encode(self.root).decode()


class MarkRollback(ObservatoryError):
    """A mark would be behind the one in the file: another gateway signed further."""


class RotationInProgress(ObservatoryError):
    """A key rotation is in progress: not every log has been signed by both keys yet."""

    def __init__(self) -> None:
        super().__init__("a rotation is in progress; wait for its checkpoint")


def write_atomically(path: Path, content: bytes, is_first: bool = False) -> None:
    """Atomic write: a temporary file is synced, renamed, and the folder synced: the old file or the new one.

    With `is_first` raises FileExistsError, without a change, when the file already exists.
    """
    # A unique temporary file, private to its owner: two processes may write at once.
    handle, name = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".new", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if is_first:
            os.link(temporary, path)
        else:
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time changes this file; the lock of a killed process is released."""
    handle = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def private_bytes(path: Path) -> bytes | None:
    """The file's content; None when it does not exist; StartupError when others can read it."""
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
    """The current key and, during a rotation, the previous one."""

    def __init__(
        self, path: Path, passphrase: str, keys: list[Ed25519PrivateKey], seen: tuple[int, int]
    ) -> None:
        self.path, self._passphrase = path, passphrase.encode()
        self._keys, self._seen = keys, seen

    @classmethod
    def open(cls, path: Path, passphrase: str) -> Keyring | None:
        """None when there is no such file; StartupError when it cannot be used."""
        seen = _stamp(path)  # taken before reading: a change meanwhile causes another read
        content = private_bytes(path)
        return None if content is None else cls(path, passphrase, _keys_in(path, content, passphrase), seen)

    @classmethod
    def make(cls, path: Path, passphrase: str) -> Keyring:
        """Create the deployment's first key. Of two gateways that start at once, both use the same key."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        ring = cls(path, passphrase, [], MISSING)
        try:
            ring._write([Ed25519PrivateKey.generate()], is_first=True)
        except FileExistsError:
            existing = cls.open(path, passphrase)
            if existing is None:
                raise StartupError(f"the log's key {path} existed and has disappeared; start again") from None
            return existing
        return ring

    def refresh(self) -> bool:
        """Read the file again if it has changed; returns whether it had."""
        seen = _stamp(self.path)
        if seen in (MISSING, self._seen):
            return False
        content = private_bytes(self.path)
        if content is not None:
            self._keys = _keys_in(self.path, content, self._passphrase.decode())
        self._seen = seen
        return True

    def _stored(self) -> list[Ed25519PrivateKey]:
        """The keys in the file now, without adopting them: `refresh` does that."""
        content = private_bytes(self.path)
        if content is None:
            raise StartupError(f"the log's key {self.path} is missing; restore it from your key backup")
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
        """For others' checkpoints, under the witness's name."""
        return Cosigner(name, self._keys[0], seen_s)

    def rotate(self) -> None:
        """Put a new key before the one in the file; raises `UnderWay` during another rotation."""
        with self._sole():
            keys = self._stored()
            if len(keys) > 1:
                raise RotationInProgress
            self._write([Ed25519PrivateKey.generate(), keys[0]])

    def settle(self) -> None:
        """End the rotation: the old private key is deleted, unless another rotation began."""
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
        """Durable first: nothing is signed with a key that a crash could lose."""
        sealed: KeySerializationEncryption = (
            BestAvailableEncryption(self._passphrase) if self._passphrase else NoEncryption()
        )
        blocks = [key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, sealed) for key in keys]
        try:
            write_atomically(self.path, b"".join(blocks), is_first)
        except FileExistsError:
            raise
        except OSError as error:
            raise self._unwritable(error) from error
        self._keys, self._seen = keys, _stamp(self.path)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return MISSING
    return (status.st_ino, status.st_mtime_ns)


def _keys_in(path: Path, content: bytes, passphrase: str) -> list[Ed25519PrivateKey]:
    blocks = BLOCK.findall(content)
    if not 1 <= len(blocks) <= 2:
        raise StartupError(f"{path} is not the PEM of a log's key; restore it from your key backup")
    keys = []
    for block in blocks:
        try:
            key = load_pem_private_key(block, passphrase.encode() or None)
        except TypeError as error:  # a passphrase without encryption, or encryption without a passphrase
            needs = "is not encrypted" if passphrase else "needs its passphrase"
            problem = f"the log's key {path} {needs}; see log_key_passphrase in docs/guides/settings.md"
            raise StartupError(problem) from error
        except ValueError as error:
            problem = f"the log's key {path} cannot be opened: it is damaged, or the passphrase is wrong"
            raise StartupError(problem) from error
        if not isinstance(key, Ed25519PrivateKey):
            raise StartupError(f"the log's key {path} is not an Ed25519 key")
        keys.append(key)
    return keys


class LogMarks:
    """What was signed last, per tenant; one file, shared by all gateways that share the key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int] | None = None
        self._known: dict[str, LogMark] = {}

    def of(self, tenant_id: str) -> LogMark | None:
        """What was signed last of one log; the file is read again only when its stamp has changed.

        If a change goes unnoticed, the log is opened with an older mark, and `advance`, which reads the file
        under the lock, refuses to continue from it.
        """
        seen = _stamp(self.path)  # taken before reading: a change meanwhile causes another read
        if seen != self._seen:
            self._known, self._seen = self.load(), seen
        return self._known.get(tenant_id)

    def load(self) -> dict[str, LogMark]:
        content = private_bytes(self.path)
        if content is None:
            return {}
        try:
            return msgspec.json.decode(content, type=dict[str, LogMark])
        except msgspec.DecodeError as error:
            raise StartupError(
                f"{self.path} records what was signed last, and is damaged; restore it, or remove it and "
                "start with --accept-rollback"
            ) from error

    def advance(self, marks: Mapping[str, LogMark]) -> None:
        """Durable when it returns. Raises `Backwards`, without writing, if any mark would go back."""
        with locked(self.path):
            known = self.load()
            for tenant_id, mark in marks.items():
                before = known.get(tenant_id)
                if before is not None and (
                    before.size > mark.size or (before.size == mark.size and before.root != mark.root)
                ):
                    raise MarkRollback("more than this checkpoint was already signed")
            write_atomically(self.path, msgspec.json.encode(known | dict(marks)))

    def reset(self, tenant_id: str, mark: LogMark) -> None:
        """After an accepted rollback: the only way to move a mark back."""
        with locked(self.path):
            write_atomically(self.path, msgspec.json.encode(self.load() | {tenant_id: mark}))
