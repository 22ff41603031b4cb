"""Checks every checkpoint in a database against the log over its events.

Each must name the previous one, have the root of the log at its size, and be signed by a key of this log. One
pass over the stored leaves, already verified against the records; memory is constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from observatory.cli.verify.log_root import LogBreak
from observatory.cli.verify.rows import CheckpointRow, TrailReader, open_trail
from observatory.ledger.verify_log import TreeSpan
from observatory.ledger.verify_note import Key, key_of, read_checkpoint


def check_stored(url: str, tenant_id: str, last: int, publics: Sequence[bytes]) -> bool | LogBreak:
    """Whether there are checkpoints, or the first break. `last` is the last verified event."""
    trail = open_trail(url)
    try:
        return _CheckpointChain(trail, tenant_id, last, publics).check()
    finally:
        trail.close()


class _CheckpointChain:
    def __init__(self, trail: TrailReader, tenant_id: str, last: int, publics: Sequence[bytes]) -> None:
        self._trail, self._tenant_id, self._publics = trail, tenant_id, publics
        self._span, self._last = TreeSpan(), last
        self._leaves = self._all_leaves()
        self._waiting: list[bytes] = []

    def check(self) -> bool | LogBreak:
        before = 0
        for page in self._trail.checkpoints(self._tenant_id, self._last):
            for one in page:
                problem = self._problem(one, before)
                if problem is not None:
                    return LogBreak(one.size, "checkpoints", problem)
                before = one.size
        return before > 0

    def _problem(self, one: CheckpointRow, before: int) -> str | None:
        if type(one.size) is not int or one.previous_size != before:
            return f"The checkpoint over {one.size} events does not follow the one over {before:,}."
        self._reach(one.size)
        signed = read_checkpoint(one.note, self._keys(one.note)) if isinstance(one.note, bytes) else None
        if signed is None or isinstance(signed, str):
            return f"The checkpoint over {one.size:,} events is not signed by a key of this log."
        if (signed.size, signed.root) != (one.size, one.root) or self._span.root() != one.root:
            return f"The checkpoint over {one.size:,} events does not have the root of the log over them."
        return None

    def _keys(self, note: bytes) -> list[Key]:
        origin = note.split(b"\n", 1)[0].decode("utf-8", "replace")
        keys = [key_of(origin, public) for public in self._publics]
        return [key for key in keys if not isinstance(key, str)]

    def _reach(self, size: int) -> None:
        while self._span.end + len(self._waiting) < size:
            self._span.extend(self._waiting)
            self._waiting = next(self._leaves)
        count = size - self._span.end
        self._span.extend(self._waiting[:count])
        self._waiting = self._waiting[count:]

    def _all_leaves(self) -> Iterator[list[bytes]]:
        for page in self._trail.rows(self._tenant_id, 1, self._last):
            yield [row[2] for row in page]
