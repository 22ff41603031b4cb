"""What a signed checkpoint says of a trail whose every leaf is at hand: root, signature, consistency, tail.

The key is the one that was pinned (`--vkey`), else the one that lies beside the database; without either it
is the trail's own, and that is said. Whoever pins a key asks for what it signed: a trail that shows nothing
signed, or too little, is broken. What was signed last (`log.key.signed`) and an older checkpoint that was
kept elsewhere (`--checkpoint`) must be the beginning of this very log. Without either nothing outside of the
trail says how far it reached: then a missing tail was not checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from observatory.cli.terminal import CommandFailed
from observatory.features.verification.verify_rows import StoredLog
from observatory.ledger.verify_log import Span
from observatory.ledger.verify_note import Checkpoint, Key, key_of, read_checkpoint, read_key, unsigned

LOG_CHECKS = ("log_root", "signature", "consistency", "missing_tail")


class Held(msgspec.Struct, frozen=True):
    """What the caller holds from elsewhere."""

    keys: tuple[Key, ...] = ()
    older: Checkpoint | None = None
    noted: Checkpoint | None = None  # what was signed last, as it is noted beside the key
    beside: tuple[bytes, ...] = ()  # public halves of the key there


class Claimed(msgspec.Struct, frozen=True):
    """What a trail says of its own log. `broken` is why its checkpoint cannot even be read."""

    note: bytes | None = None
    keys: tuple[Key, ...] = ()
    checkpoint: Checkpoint | None = None
    broken: str | None = None


class LogBreak(msgspec.Struct, frozen=True):
    sequence_number: int
    what: str
    sentence: str


class LogFound(msgspec.Struct, frozen=True):
    checks: dict[str, bool | None]
    first_break: LogBreak | None = None
    size: int | None = None
    pinned: bool = False
    is_by_own_key: bool = False  # by the key that lies beside the database


def held(vkeys: Sequence[str], checkpoint: Path | None) -> Held:
    """CommandFailed for a key or a file that is none: then nothing was checked."""
    keys = []
    for vkey in vkeys:
        key = read_key(vkey)
        if isinstance(key, str):
            raise CommandFailed(f"--vkey: {key}")
        keys.append(key)
    if checkpoint is None:
        return Held(tuple(keys))
    try:
        note = checkpoint.read_bytes()
    except OSError as error:
        raise CommandFailed(f"{checkpoint} cannot be read: {error.strerror or error}") from None
    # Whoever kept it vouches for it; a pinned key must have signed it nevertheless.
    older = read_checkpoint(note, keys) if keys else unsigned(note)
    if isinstance(older, str):
        raise CommandFailed(f"--checkpoint: {older}")
    return Held(tuple(keys), older)


def claimed(log: StoredLog) -> Claimed:
    """As the database tells it: its newest checkpoint, and keys under the name that checkpoint has."""
    if log.note is None:
        return Claimed()
    read = unsigned(log.note)
    if isinstance(read, str):
        return Claimed(log.note, broken=read)
    keys = [key_of(read.origin, public) for public in log.keys]
    return Claimed(log.note, tuple(key for key in keys if not isinstance(key, str)), read)


def claimed_by(note: str | None, vkeys: Sequence[str]) -> Claimed:
    """As an export's manifest or a gateway tells it."""
    if note is None:
        return Claimed()
    read = unsigned(note.encode())
    if isinstance(read, str):
        return Claimed(note.encode(), broken=read)
    keys = [read_key(vkey) for vkey in vkeys]
    return Claimed(note.encode(), tuple(key for key in keys if not isinstance(key, str)), read)


def sizes(claim: Claimed, kept: Held) -> tuple[int, ...]:
    """Of the log, whose roots are needed: the newest checkpoint's first."""
    found = [one.size for one in (claim.checkpoint, kept.older, kept.noted) if one is not None]
    return tuple(dict.fromkeys(found))


def judged(claim: Claimed, kept: Held, spans: Mapping[int, Span], last: int) -> LogFound:
    """`spans` by size, over leaves that verified; `last` is the last event there is."""
    judge = _Judge(claim, kept, spans, last)
    judge.run()
    newest = claim.checkpoint
    size = newest.size if newest else None
    return LogFound(judge.checks, judge.first_break, size, bool(kept.keys), bool(kept.beside))


class _Judge:
    def __init__(self, claim: Claimed, kept: Held, spans: Mapping[int, Span], last: int) -> None:
        self._claim, self._kept, self._spans, self._last = claim, kept, spans, last
        self.checks: dict[str, bool | None] = dict.fromkeys(LOG_CHECKS)
        self.first_break: LogBreak | None = None

    def _say(self, what: str, sentence: str | None, number: int) -> None:
        self.checks[what] = sentence is None
        if sentence is not None and self.first_break is None:
            self.first_break = LogBreak(number, what, sentence)

    def run(self) -> None:
        self._judge()
        unsaid = self.first_break is None and self.checks["log_root"] is None
        if self._kept.keys and unsaid:
            self._say("log_root", "These events cannot be held against the signed root.", 1)

    def _judge(self) -> None:
        newest = self._claim.checkpoint
        if self._claim.broken is not None:
            self._say("signature", self._claim.broken, 1)
        elif newest is None and self._kept.keys:
            self._say("signature", "A key was pinned, and nothing here is signed.", 1)
        if newest is None:
            if self._kept.older is not None:
                self._say("missing_tail", "There is no checkpoint, and one was kept elsewhere.", 1)
            return self._noted(None)
        signed = read_checkpoint(self._claim.note or b"", self._keys(newest.origin))
        self._say("signature", signed if isinstance(signed, str) else None, newest.size)
        if newest.size > self._last:
            self._short(newest.size)
        self._root("log_root", newest, "The log over these events has not the root that was signed.")
        older = self._kept.older
        if older is not None:
            self._older(older, newest)
        return self._noted(newest)

    def _keys(self, origin: str) -> Sequence[Key]:
        own = [key_of(origin, public) for public in self._kept.beside]
        return self._kept.keys or [key for key in own if not isinstance(key, str)] or self._claim.keys

    def _short(self, size: int) -> None:
        told = f"{size:,} events were signed; the record ends at event {self._last:,}."
        self._say("missing_tail", told, self._last + 1)

    def _noted(self, newest: Checkpoint | None) -> None:
        """Noted before it is kept: it may reach past the newest checkpoint, never past the record."""
        noted = self._kept.noted
        if noted is None or self.first_break is not None:
            return None
        if newest is not None and noted.origin != newest.origin:
            told = "What was signed last, as it is noted beside the key, is of another log."
            return self._say("consistency", told, 1)
        if noted.size > self._last:
            return self._short(noted.size)
        self._say("missing_tail", None, noted.size)
        told = "The log does not go on from what was signed last, as it is noted beside the key."
        return self._root("consistency", noted, told)

    def _root(self, what: str, checkpoint: Checkpoint, sentence: str) -> None:
        span = self._spans.get(checkpoint.size)
        if span is None or span.start or span.end != checkpoint.size:
            return  # a part of the trail, or one that broke before: nothing can be said of the root
        self._say(what, None if span.root() == checkpoint.root else sentence, checkpoint.size)

    def _older(self, older: Checkpoint, newest: Checkpoint) -> None:
        if older.origin != newest.origin:
            return self._say("consistency", "The checkpoint that was kept is of another log.", 1)
        if older.size > self._last:
            told = f"The checkpoint kept covers {older.size:,} events; the record ends at {self._last:,}."
            return self._say("missing_tail", told, self._last + 1)
        if self.checks["missing_tail"] is None:
            self._say("missing_tail", None, older.size)
        return self._root("consistency", older, "The log does not go on from the checkpoint that was kept.")
