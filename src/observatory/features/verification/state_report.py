"""What is said of a difference between a row and the record: place and values, never a payload's text."""

from __future__ import annotations

import msgspec

SHOWN = 120


class Difference(msgspec.Struct, frozen=True):
    """`record` and `row` are what each says; of texts only hashes are compared, so only hashes stand here."""

    table: str
    key: str
    column: str | None = None
    record: object = None
    row: object = None
    what: str | None = None  # instead of a column: a row too many, or one that is missing

    @property
    def sentence(self) -> str:
        place = f"{self.table} {self.key}"
        if self.what is not None:
            return f"{place}: {self.what}"
        return f"{place}: {self.column}: the record says {_short(self.record)}, the row {_short(self.row)}"


EXTRA = "no event tells of this row"
MISSING = "an event tells of this row, and it is not there"


def _short(value: object) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


class StateReport(msgspec.Struct, kw_only=True):
    """`tables`: rows compared, by table; `unproven`: what the record holds nothing of."""

    held: bool
    events: int
    tables: dict[str, int]
    difference: Difference | None = None
    sentence: str | None = None
    not_checked: list[str] = []
    seconds: float = 0.0
