"""How commands speak: results on stdout, sentences and progress on stderr, colour never the only sign.

`rich` is loaded only where it draws: workers and pipes do without.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from observatory.errors import ObservatoryError
from observatory.protocol.visible import escaped, visible, visible_line

Advance = Callable[[int], None]
# An id that somebody may want to paste: a UUID, mostly behind a few letters that say of what.
IS_ID = re.compile(r"([a-z]{2,5}_)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
NARROW = 12


class CommandFailed(ObservatoryError):
    """A command cannot do what it was asked; the sentence says what to do."""

    exit_code = 1


class Misused(CommandFailed):
    """The words of the command cannot be meant so; nothing was asked of the gateway."""

    exit_code = 2


def say(*lines: str) -> None:
    """Results. Names that agents chose are in them: nothing that acts or hides reaches the terminal."""
    for line in lines:
        print(visible(line), flush=True)


def note(line: str) -> None:
    """About the work, not its result: stderr."""
    print(visible(line), file=sys.stderr, flush=True)


def show_json(value: Any) -> None:
    """The value, exactly; what a terminal would obey or hide is written as an escape of JSON."""
    print(escaped(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()), flush=True)


def say_json(value: Any) -> None:
    """One object on a line, as `show_json` otherwise."""
    print(escaped(msgspec.json.encode(value).decode()), flush=True)


def printable(text: str) -> str:
    """A line in which an agent's text can neither act nor hide (S1112)."""
    return visible_line(text)


def show_table(columns: Sequence[str], rows: Sequence[Sequence[object]], empty: str = "") -> None:
    """A table for people, or the words for an empty one; when piped, tab-separated lines for tools.

    An id is never broken: where there is no room for it the terminal wraps the line.
    """
    texts = [["" if cell is None else printable(str(cell)) for cell in row] for row in rows]
    if not texts and empty:
        note(empty)
    if not sys.stdout.isatty():
        say("\t".join(columns), *("\t".join(row) for row in texts))
        return
    if texts or not empty:
        _draw(columns, texts)


def _draw(columns: Sequence[str], texts: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    least = 0
    for place, column in enumerate(columns):
        cells = [row[place] for row in texts]
        is_id = any(IS_ID(cell) for cell in cells)
        table.add_column(column, overflow="fold", no_wrap=is_id)
        widest = max(map(len, [column, *cells]))
        least += 2 + (widest if is_id else min(widest, NARROW))
    for row in texts:
        table.add_row(*map(Text, row))
    console = Console(highlight=False)
    if console.width < least:
        console = Console(highlight=False, width=least)
    console.print(table, soft_wrap=False, crop=False)


@contextmanager
def progress(what: str, total: int) -> Iterator[Advance]:
    """For work whose size is known: call it with each step done."""
    done = 0
    with progress_to(what) as tell:

        def advance(step: int) -> None:
            nonlocal done
            done += step
            tell(done, total)

        yield advance


@contextmanager
def progress_to(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal; elsewhere a plain line at every tenth of the way. Always on stderr."""
    if not sys.stderr.isatty():
        yield _plain(what)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _plain(what: str) -> Callable[[int, int], None]:
    told = 0

    def tell(done: int, total: int) -> None:
        nonlocal told
        tenths = done * 10 // max(total, 1)
        # Small work needs no reports.
        if total >= 20_000 and tenths > told:
            told = tenths
            note(f"{what}: {done:,} of {total:,}")

    return tell
