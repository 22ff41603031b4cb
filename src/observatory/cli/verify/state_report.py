"""Report of a difference between a row and the record: key and values, never a payload's text."""

from __future__ import annotations

import msgspec

MAX_CHARACTERS = 120


class StateDifference(msgspec.Struct, frozen=True):
    """`record` and `row` are the two values; texts are compared by hash, so these are hashes for texts."""

    table: str
    key: str
    column: str | None = None
    record: object = None
    row: object = None
    what: str | None = None  # instead of a column: an extra row, or a missing one

    @property
    def sentence(self) -> str:
        name = f"{self.table} {self.key}"
        if self.what is not None:
            return f"{name}: {self.what}"
        return f"{name}: {self.column}: the record says {_short(self.record)}, the row {_short(self.row)}"


EXTRA = "no event records this row"
MISSING = "an event records this row, and it is missing"


def _short(value: object) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"


class StateReport(msgspec.Struct, kw_only=True):
    """`tables`: rows compared, by table; `not_checked`: what the record does not contain."""

    held: bool
    events: int
    tables: dict[str, int]
    difference: StateDifference | None = None
    sentence: str | None = None
    not_checked: list[str] = []
    seconds: float = 0.0
