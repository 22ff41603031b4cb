"""What lies beside the log's private key, read for `verify`: how far each log was signed, and by which key.

Both lie outside the database, so whoever can only write the database cannot bend them. Nothing is written
here, and no private key leaves: only public halves are handed on. What cannot be read is not checked, and
that is said; what is damaged ends the check, because a damaged file may have said that something is missing.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from observatory.cli.terminal import CommandFailed, note
from observatory.errors import StartupError
from observatory.features.transparency.log_key import Keyring, Mark
from observatory.features.verification.verify_log_root import Held
from observatory.ledger.verify_note import Checkpoint
from observatory.settings import Settings


class Beside(msgspec.Struct, frozen=True):
    """`is_certain`: the folder was named for this database; else the marks may be of another deployment."""

    marks: dict[str, Mark] = {}
    keys: tuple[bytes, ...] = ()
    is_certain: bool = True

    @property
    def expected(self) -> tuple[str, ...]:
        """Tenants whose logs were signed here, so the database must have them."""
        return tuple(self.marks) if self.is_certain else ()

    def held(self, kept: Held, tenant_id: str, origin: str | None) -> Held:
        """What the caller holds, and what lies beside the key of this tenant's log."""
        mark = self.marks.get(tenant_id)
        is_other = mark is not None and origin not in (None, mark.origin)
        if mark is None or (is_other and not self.is_certain):
            # A key without a mark has not signed this log yet, or is another deployment's.
            return kept
        noted = Checkpoint(mark.origin, mark.size, mark.root, (), "")
        return msgspec.structs.replace(kept, noted=noted, beside=self.keys)


def marks_path(settings: Settings) -> Path:
    path = settings.log_key_path
    return path.with_name(f"{path.name}.signed")


def beside(settings: Settings, is_certain: bool = True) -> Beside:
    """Empty where nothing is; CommandFailed when the marks are damaged."""
    path = marks_path(settings)
    try:
        marks = msgspec.json.decode(path.read_bytes(), type=dict[str, Mark])
    except FileNotFoundError:
        return Beside()
    except OSError as error:
        note(f"{path} cannot be read ({error.strerror}): how far the log was signed is not checked")
        return Beside()
    except msgspec.DecodeError:
        raise CommandFailed(
            f"{path} is damaged, and it says what was signed last; restore it from where keys are kept"
        ) from None
    return Beside(marks, _public_keys(settings), is_certain)


def _public_keys(settings: Settings) -> tuple[bytes, ...]:
    try:
        ring = Keyring.open(settings.log_key_path, settings.log_key_passphrase)
    except StartupError as error:
        note(f"{error}: signatures are not checked against this key")
        return ()
    found = () if ring is None else (ring.public_key, ring.previous_public_key)
    return tuple(key for key in found if key is not None)
