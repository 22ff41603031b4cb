"""Reads the files next to the log's private key for `verify`: how far each log was signed, and by which key.

Both are outside the database, so someone who can only write the database cannot change them. Nothing is
written here, and only public keys are passed on. An unreadable file is reported as not checked; a damaged
one ends the check, because it may have recorded that something is missing.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from observatory.cli.terminal import CommandFailed, note
from observatory.cli.verify.log_root import TrustedInputs
from observatory.errors import StartupError
from observatory.ledger.verify_note import Checkpoint
from observatory.runtime.log_key import Keyring, LogMark
from observatory.settings import Settings


class KeyMarks(msgspec.Struct, frozen=True):
    """`is_certain`: the folder was given for this database; else the marks may be of another deployment."""

    marks: dict[str, LogMark] = {}
    keys: tuple[bytes, ...] = ()
    is_certain: bool = True

    @property
    def expected(self) -> tuple[str, ...]:
        """Tenants whose logs were signed here, so the database must have them."""
        return tuple(self.marks) if self.is_certain else ()

    def held(self, trusted: TrustedInputs, tenant_id: str, origin: str | None) -> TrustedInputs:
        """What the caller trusts, plus the mark and keys of this tenant's log."""
        mark = self.marks.get(tenant_id)
        is_other = mark is not None and origin not in (None, mark.origin)
        if mark is None or (is_other and not self.is_certain):
            # A key without a mark has not signed this log yet, or is another deployment's.
            return trusted
        noted = Checkpoint(mark.origin, mark.size, mark.root, (), "")
        return msgspec.structs.replace(trusted, noted=noted, file_keys=self.keys)


def marks_path(settings: Settings) -> Path:
    path = settings.log_key_path
    return path.with_name(f"{path.name}.signed")


def read_marks(settings: Settings, is_certain: bool = True) -> KeyMarks:
    """Read the marks and keys: empty if there are none; CommandFailed when the marks are damaged."""
    path = marks_path(settings)
    try:
        marks = msgspec.json.decode(path.read_bytes(), type=dict[str, LogMark])
    except FileNotFoundError:
        return KeyMarks()
    except OSError as error:
        note(f"{path} cannot be read ({error.strerror}): how far the log was signed is not checked")
        return KeyMarks()
    except msgspec.DecodeError:
        raise CommandFailed(
            f"{path} records what was signed last, and is damaged; restore it from your key backup"
        ) from None
    return KeyMarks(marks, _public_keys(settings), is_certain)


def _public_keys(settings: Settings) -> tuple[bytes, ...]:
    try:
        ring = Keyring.open(settings.log_key_path, settings.log_key_passphrase)
    except StartupError as error:
        note(f"{error}: signatures are not checked against this key")
        return ()
    keys = () if ring is None else (ring.public_key, ring.previous_public_key)
    return tuple(key for key in keys if key is not None)
