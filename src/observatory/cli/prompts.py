"""What all commanding words share: the gateway with a person's key, the question before, the answer after.

Law: what stops, refuses or reaches many is asked about first; where nobody can be asked it takes `--yes`.
With `--json` stdout holds the gateway's answer and nothing else, a refusal too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from cyclopts import Parameter

from observatory.cli.gateway_client import Api, Gateway, GatewayRefused, api
from observatory.cli.terminal import IS_ID, CommandFailed, Misused, note, printable, say, show_json

Json = Annotated[bool, Parameter(negative=(), help="Print the gateway's answer as JSON.")]
Yes = Annotated[bool, Parameter(negative=(), help="Do not ask; needed where nobody can be asked.")]
Note = Annotated[str | None, Parameter(help="Why; it is kept in the record.")]
File = Annotated[str | None, Parameter(help="Read it from this file; - is stdin.")]
LARGEST_FILE = 32 << 20
# An id may be shortened to so many characters, so that a number is never taken for the beginning of one.
SHORTEST = 4


@contextmanager
def hand(gateway: Gateway, json: bool, role: str = "operator") -> Iterator[Api]:
    """The gateway's doors; a refusal is a sentence on stderr, and with `--json` the answer on stdout too."""
    with api(gateway, role) as door:
        try:
            yield door
        except GatewayRefused as refusal:
            if json and refusal.answer is not None:
                show_json(refusal.answer)
            raise


def tell(answer: Any, json: bool, *lines: str) -> None:
    """The answer for tools, or the lines for people."""
    if json:
        show_json(answer)
    else:
        say(*lines)


def confirm(question: str, yes: bool) -> None:
    """Ask y/N on a terminal; anything but a yes ends the command with nothing done."""
    must_be_asked(question, yes)
    if not yes and _asked(f"{question} [y/N] ").lower() not in ("y", "yes"):
        raise CommandFailed("nothing was done")


def typed(question: str, word: str, yes: bool) -> None:
    """Ask for a name to be typed whole; anything else ends the command."""
    must_be_asked(question, yes)
    if not yes and _asked(f"{question} Type {word} to go on: ") != word:
        raise CommandFailed(f"that is not {word}; nothing was stopped")


def must_be_asked(question: str, yes: bool) -> None:
    """Before the first of several steps: where nobody can be asked, not even that one is taken."""
    if not yes and not sys.stdin.isatty():
        raise Misused(f"{question} Nobody can be asked here (stdin is no terminal): give --yes to do it")


def _asked(question: str) -> str:
    print(printable(question), end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line.endswith("\n"):
        note("")
    return line.strip()


def text_of(given: str | None, file: str | None, what: str) -> str:
    """From the command line, a file or stdin: one of them."""
    if (given is None) == (file is None):
        raise Misused(f"give {what} either in quotes or with --file (- is stdin)")
    if given is not None:
        return given
    try:
        return _read(str(file), what).decode()
    except UnicodeDecodeError:
        raise Misused(f"{what} must be UTF-8 text") from None


def content_of(file: str | None) -> dict[str, Any]:
    """New content of a message: a JSON object from a file or from stdin."""
    if file is None and sys.stdin.isatty():
        raise Misused(
            "give the new content with --file, or by stdin; `observatory holds MESSAGE --content`"
            " prints the present one"
        )
    raw = _read(file or "-", "the new content")
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise Misused(f"the new content is no JSON object: {error}") from None


def _read(file: str, what: str) -> bytes:
    try:
        if file == "-":
            found = sys.stdin.buffer.read(LARGEST_FILE + 1)
        else:
            with Path(file).open("rb") as opened:
                found = opened.read(LARGEST_FILE + 1)
    except OSError as error:
        raise Misused(f"{what} cannot be read from {file}: {error.strerror}") from None
    if not found.strip():
        raise Misused(f"{what} is empty")
    if len(found) > LARGEST_FILE:
        raise Misused(f"{what} is larger than {LARGEST_FILE >> 20} MiB")
    return found


def one_of(rows: list[dict[str, Any]], text: str, names: tuple[str, ...], listing: str) -> dict[str, Any]:
    """The row that `text` means: one of these names whole, else a beginning of the last that only one has."""
    found = [row for row in rows if text in [str(row[name]) for name in names]]
    if not found and len(text) >= SHORTEST:
        found = [row for row in rows if str(row[names[-1]]).startswith(text)]
    if len(found) == 1:
        return found[0]
    if found:
        raise CommandFailed(f"{text} may mean {len(found)} of them; write more of it ({listing} shows them)")
    raise CommandFailed(f"nothing there is called {text}; {listing} shows what is")


def session_of(door: Api, text: str) -> str:
    """A session by a beginning that only one of the newest has; else the text itself, for the gateway."""
    if IS_ID(text) or len(text) < SHORTEST:
        return text
    names = [str(row["session_id"]) for row in door.ask("GET", "/v1/sessions", limit=1_000)["items"]]
    found = [name for name in names if name.startswith(text)]
    if text in names or not found:
        return text
    if len(found) > 1:
        listing = "`observatory sessions` shows them"
        raise CommandFailed(f"{text} may mean {len(found)} sessions; write more of it ({listing})")
    return found[0]


def path_of(*parts: str) -> str:
    """A path under /v1 whose parts may hold anything."""
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def when(text: str | None) -> str:
    return "" if text is None else f"{text[:10]} {text[11:19]}"


def perhaps(look: Callable[[], str], otherwise: str) -> str:
    """For a look after the deed: that it fails must not make the deed seem undone."""
    try:
        return look()
    except CommandFailed:
        return otherwise


def poll(seconds: float, look: Callable[[], bool]) -> bool:
    """Look again and again until it is so or the time is over."""
    import time

    end = time.monotonic() + seconds
    while not look():
        if time.monotonic() >= end:
            return False
        time.sleep(0.1)
    return True


def pairs_of(words: Iterable[str], example: str) -> dict[str, Any]:
    """`name=value` each; a value is JSON, or a word as it stands."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise Misused(f"{word}: give name=value, e.g. {example}")
        try:
            found[name] = msgspec.json.decode(value)
        except msgspec.MsgspecError:
            found[name] = value
    return found
