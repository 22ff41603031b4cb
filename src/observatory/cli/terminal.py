"""Terminal output: results on stdout, messages and progress on stderr, colour never the only sign.

`rich` is loaded only where it draws: worker processes and pipes do without.
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
# An id that people may want to paste: a UUID, usually with a prefix of a few letters.
IS_ID = re.compile(r"([a-z]{2,5}_)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
NARROW = 12


class CommandFailed(ObservatoryError):
    """A command failed; the sentence says what to do."""

    exit_code = 1


class InvalidArguments(CommandFailed):
    """Invalid arguments; nothing was sent to the gateway."""

    exit_code = 2


def say(*lines: str) -> None:
    """Print results. They hold names that agents chose: control characters never reach the terminal."""
    for line in lines:
        print(visible(line), flush=True)


def note(line: str) -> None:
    """Print a message about the work, not its result, on stderr."""
    print(visible(line), file=sys.stderr, flush=True)


def show_json(value: Any) -> None:
    """Print the exact value as JSON; control characters are written as JSON escapes."""
    print(escaped(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()), flush=True)


def say_json(value: Any) -> None:
    """Print one object per line, otherwise as `show_json`."""
    print(escaped(msgspec.json.encode(value).decode()), flush=True)


def printable(text: str) -> str:
    """An agent's text on one line, without control or hidden characters (S1112)."""
    return visible_line(text)


def show_table(columns: Sequence[str], rows: Sequence[Sequence[object]], empty: str = "") -> None:
    """A table for people, or `empty` for an empty one; when piped, tab-separated lines for tools.

    An id is never broken: where there is no space for it the terminal wraps the line.
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
    min_width = 0
    for index, column in enumerate(columns):
        cells = [row[index] for row in texts]
        is_id = any(IS_ID(cell) for cell in cells)
        table.add_column(column, overflow="fold", no_wrap=is_id)
        widest = max(map(len, [column, *cells]))
        min_width += 2 + (widest if is_id else min(widest, NARROW))
    for row in texts:
        table.add_row(*map(Text, row))
    console = Console(highlight=False)
    if console.width < min_width:
        console = Console(highlight=False, width=min_width)
    console.print(table, soft_wrap=False, crop=False)


@contextmanager
def progress(what: str, total: int) -> Iterator[Advance]:
    """For work whose size is known: call it with each step done."""
    done = 0
    with progress_to(what) as report:

        def advance(step: int) -> None:
            nonlocal done
            done += step
            report(done, total)

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
    reported = 0

    def report(done: int, total: int) -> None:
        nonlocal reported
        tenths = done * 10 // max(total, 1)
        # Small work needs no progress.
        if total >= 20_000 and tenths > reported:
            reported = tenths
            note(f"{what}: {done:,} of {total:,}")

    return report
