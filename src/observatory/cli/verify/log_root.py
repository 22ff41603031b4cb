"""Checks a trail, with all its leaves, against its signed checkpoint: root, signature, consistency, tail.

The key is the pinned one (`--vkey`), else the one next to the database; without either it is the trail's own,
and the report says so. With a pinned key, a trail that has nothing signed, or too little, is broken. What was
signed last (`log.key.signed`) and an older checkpoint stored elsewhere (`--checkpoint`) must be prefixes of
this log. Without either, nothing outside of the trail proves its length: a missing tail is then not checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from observatory.cli.terminal import CommandFailed
from observatory.cli.verify.rows import StoredLog
from observatory.ledger.verify_log import TreeSpan
from observatory.ledger.verify_note import Checkpoint, Key, key_of, read_checkpoint, read_key, unsigned

LOG_CHECKS = ("log_root", "signature", "consistency", "missing_tail")


class TrustedInputs(msgspec.Struct, frozen=True):
    """What the caller trusts, from other sources."""

    keys: tuple[Key, ...] = ()
    older: Checkpoint | None = None
    noted: Checkpoint | None = None  # the mark next to the key: what was signed last
    file_keys: tuple[bytes, ...] = ()  # public keys from that key file


class LogClaim(msgspec.Struct, frozen=True):
    """What a trail claims about its own log. `broken`: why its checkpoint cannot be read."""

    note: bytes | None = None
    keys: tuple[Key, ...] = ()
    checkpoint: Checkpoint | None = None
    broken: str | None = None


class LogBreak(msgspec.Struct, frozen=True):
    sequence_number: int
    what: str
    sentence: str


class LogCheckResult(msgspec.Struct, frozen=True):
    checks: dict[str, bool | None]
    first_break: LogBreak | None = None
    size: int | None = None
    pinned: bool = False
    is_by_own_key: bool = False  # by the key next to the database


def trusted_inputs(vkeys: Sequence[str], checkpoint: Path | None) -> TrustedInputs:
    """CommandFailed for an invalid key or file: then nothing was checked."""
    keys = []
    for vkey in vkeys:
        key = read_key(vkey)
        if isinstance(key, str):
            raise CommandFailed(f"--vkey: {key}")
        keys.append(key)
    if checkpoint is None:
        return TrustedInputs(tuple(keys))
    try:
        note = checkpoint.read_bytes()
    except OSError as error:
        raise CommandFailed(f"{checkpoint} cannot be read: {error.strerror or error}") from None
    # The caller vouches for it; a pinned key must have signed it nevertheless.
    older = read_checkpoint(note, keys) if keys else unsigned(note)
    if isinstance(older, str):
        raise CommandFailed(f"--checkpoint: {older}")
    return TrustedInputs(tuple(keys), older)


def database_claim(log: StoredLog) -> LogClaim:
    """The database's claim: its newest checkpoint, and its keys under that checkpoint's name."""
    if log.note is None:
        return LogClaim()
    read = unsigned(log.note)
    if isinstance(read, str):
        return LogClaim(log.note, broken=read)
    keys = [key_of(read.origin, public) for public in log.keys]
    return LogClaim(log.note, tuple(key for key in keys if not isinstance(key, str)), read)


def export_claim(note: str | None, vkeys: Sequence[str]) -> LogClaim:
    """The claim of an export's manifest or of a gateway."""
    if note is None:
        return LogClaim()
    read = unsigned(note.encode())
    if isinstance(read, str):
        return LogClaim(note.encode(), broken=read)
    keys = [read_key(vkey) for vkey in vkeys]
    return LogClaim(note.encode(), tuple(key for key in keys if not isinstance(key, str)), read)


def needed_sizes(claim: LogClaim, trusted: TrustedInputs) -> tuple[int, ...]:
    """The sizes of the log whose roots are needed, the newest checkpoint's first."""
    needed = [one.size for one in (claim.checkpoint, trusted.older, trusted.noted) if one is not None]
    return tuple(dict.fromkeys(needed))


def check_log(
    claim: LogClaim, trusted: TrustedInputs, spans: Mapping[int, TreeSpan], last: int
) -> LogCheckResult:
    """`spans` by size, over verified leaves; `last` is the last event."""
    judge = _Judge(claim, trusted, spans, last)
    judge.run()
    newest = claim.checkpoint
    size = newest.size if newest else None
    return LogCheckResult(judge.checks, judge.first_break, size, bool(trusted.keys), bool(trusted.file_keys))


class _Judge:
    def __init__(
        self, claim: LogClaim, trusted: TrustedInputs, spans: Mapping[int, TreeSpan], last: int
    ) -> None:
        self._claim, self._trusted, self._spans, self._last = claim, trusted, spans, last
        self.checks: dict[str, bool | None] = dict.fromkeys(LOG_CHECKS)
        self.first_break: LogBreak | None = None

    def _set(self, what: str, sentence: str | None, number: int) -> None:
        self.checks[what] = sentence is None
        if sentence is not None and self.first_break is None:
            self.first_break = LogBreak(number, what, sentence)

    def run(self) -> None:
        self._judge()
        is_open = self.first_break is None and self.checks["log_root"] is None
        if self._trusted.keys and is_open:
            self._set("log_root", "These events cannot be compared with the signed root.", 1)

    def _judge(self) -> None:
        newest = self._claim.checkpoint
        if self._claim.broken is not None:
            self._set("signature", self._claim.broken, 1)
        elif newest is None and self._trusted.keys:
            self._set("signature", "A key was pinned, but nothing here is signed.", 1)
        if newest is None:
            if self._trusted.older is not None:
                self._set("missing_tail", "There is no checkpoint, but one was given with --checkpoint.", 1)
            return self._noted(None)
        signed = read_checkpoint(self._claim.note or b"", self._keys(newest.origin))
        self._set("signature", signed if isinstance(signed, str) else None, newest.size)
        if newest.size > self._last:
            self._short(newest.size)
        self._root("log_root", newest, "The log over these events does not have the signed root.")
        older = self._trusted.older
        if older is not None:
            self._older(older, newest)
        return self._noted(newest)

    def _keys(self, origin: str) -> Sequence[Key]:
        own = [key_of(origin, public) for public in self._trusted.file_keys]
        return self._trusted.keys or [key for key in own if not isinstance(key, str)] or self._claim.keys

    def _short(self, size: int) -> None:
        problem = f"{size:,} events were signed; the record ends at event {self._last:,}."
        self._set("missing_tail", problem, self._last + 1)

    def _noted(self, newest: Checkpoint | None) -> None:
        """The mark is written first: it may be past the newest checkpoint, never past the record."""
        noted = self._trusted.noted
        if noted is None or self.first_break is not None:
            return None
        if newest is not None and noted.origin != newest.origin:
            problem = "The mark of what was signed last, next to the key, is of another log."
            return self._set("consistency", problem, 1)
        if noted.size > self._last:
            return self._short(noted.size)
        self._set("missing_tail", None, noted.size)
        problem = "The log does not extend what was signed last, according to the mark next to the key."
        return self._root("consistency", noted, problem)

    def _root(self, what: str, checkpoint: Checkpoint, sentence: str) -> None:
        span = self._spans.get(checkpoint.size)
        if span is None or span.start or span.end != checkpoint.size:
            return  # a partial or already broken trail: the root cannot be checked
        self._set(what, None if span.root() == checkpoint.root else sentence, checkpoint.size)

    def _older(self, older: Checkpoint, newest: Checkpoint) -> None:
        if older.origin != newest.origin:
            return self._set("consistency", "The older checkpoint is of another log.", 1)
        if older.size > self._last:
            problem = f"The older checkpoint covers {older.size:,} events; the record ends at {self._last:,}."
            return self._set("missing_tail", problem, self._last + 1)
        if self.checks["missing_tail"] is None:
            self._set("missing_tail", None, older.size)
        return self._root("consistency", older, "The log does not extend the older checkpoint.")
