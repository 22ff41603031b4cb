"""How every `list` command prints: the gateway's rows as JSON for tools, a table for people.

A column has a name and its cells: a field of the row, or the result of a function of the row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from observatory.cli.prompts import when
from observatory.cli.terminal import show_json, show_table

Row = Mapping[str, Any]
Cell = str | Callable[[Row], object]


def show_rows(rows: Sequence[Row], json: bool, columns: Mapping[str, Cell], empty: str) -> None:
    if json:
        show_json(rows)
    else:
        cells = list(columns.values())
        show_table(list(columns), [[_cell(row, cell) for cell in cells] for row in rows], empty)


def at(field: str) -> Cell:
    """A time in readable form; empty where there is none."""
    return lambda row: when(row[field])


def _cell(row: Row, cell: Cell) -> object:
    return row[cell] if isinstance(cell, str) else cell(row)
