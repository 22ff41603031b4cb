"""Shared by all commands that change something: the API client, confirmation prompts, input and output.

Law: what stops, refuses or reaches many needs a confirmation; without a terminal it needs `--yes`.
With `--json` stdout holds the gateway's response and nothing else, a refusal too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from cyclopts import Parameter

from observatory.cli.gateway_client import GatewayApi, GatewayOptions, GatewayRefused, api
from observatory.cli.terminal import IS_ID, CommandFailed, InvalidArguments, note, printable, say, show_json

Json = Annotated[bool, Parameter(negative=(), help="Print the gateway's answer as JSON.")]
Yes = Annotated[bool, Parameter(negative=(), help="Do not ask; required when stdin is not a TTY.")]
Note = Annotated[str | None, Parameter(help="Reason; it is stored in the record.")]
File = Annotated[str | None, Parameter(help="Read it from this file; - is stdin.")]
MAX_FILE_BYTES = 32 << 20
# An id may be shortened to this many characters: fewer could be a number.
MIN_ID_PREFIX = 4


@contextmanager
def api_session(gateway: GatewayOptions, json: bool, role: str = "operator") -> Iterator[GatewayApi]:
    """The gateway's API; a refusal is a sentence on stderr, and with `--json` also JSON on stdout."""
    with api(gateway, role) as client:
        try:
            yield client
        except GatewayRefused as refusal:
            if json and refusal.answer is not None:
                show_json(refusal.answer)
            raise


def print_result(answer: Any, json: bool, *lines: str) -> None:
    """Print the response as JSON for tools, or the lines for people."""
    if json:
        show_json(answer)
    else:
        say(*lines)


def confirm(question: str, yes: bool) -> None:
    """Ask y/N on a terminal; anything but a yes ends the command with nothing done."""
    require_confirmation(question, yes)
    if not yes and _prompt(f"{question} [y/N] ").lower() not in ("y", "yes"):
        raise CommandFailed("nothing was done")


def confirm_by_typing(question: str, word: str, yes: bool) -> None:
    """Ask for a name to be typed in full; anything else ends the command."""
    require_confirmation(question, yes)
    if not yes and _prompt(f"{question} Type {word} to continue:  ") != word:
        raise CommandFailed(f"that is not {word}; nothing was stopped")


def require_confirmation(question: str, yes: bool) -> None:
    """Check before the first of several steps: without a terminal, not even that one is taken."""
    if not yes and not sys.stdin.isatty():
        raise InvalidArguments(f"{question} stdin is not a TTY; use --yes")


def _prompt(question: str) -> str:
    print(printable(question), end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line.endswith("\n"):
        note("")
    return line.strip()


def text_of(given: str | None, file: str | None, what: str) -> str:
    """Text from the command line, a file or stdin: exactly one of them."""
    if (given is None) == (file is None):
        raise InvalidArguments(f"give {what} either in quotes or with --file (- is stdin)")
    if given is not None:
        return given
    try:
        return _read(str(file), what).decode()
    except UnicodeDecodeError:
        raise InvalidArguments(f"{what} must be UTF-8 text") from None


def content_of(file: str | None) -> dict[str, Any]:
    """New content of a message: a JSON object from a file or from stdin."""
    if file is None and sys.stdin.isatty():
        raise InvalidArguments(
            "give the new content with --file, or by stdin; `observatory holds MESSAGE --content`"
            " prints the present one"
        )
    raw = _read(file or "-", "the new content")
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise InvalidArguments(f"the new content is not a JSON object: {error}") from None


def _read(file: str, what: str) -> bytes:
    try:
        if file == "-":
            found = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        else:
            with Path(file).open("rb") as opened:
                found = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InvalidArguments(f"{what} cannot be read from {file}: {error.strerror}") from None
    if not found.strip():
        raise InvalidArguments(f"{what} is empty")
    if len(found) > MAX_FILE_BYTES:
        raise InvalidArguments(f"{what} is larger than {MAX_FILE_BYTES >> 20} MiB")
    return found


def one_of(rows: list[dict[str, Any]], text: str, names: tuple[str, ...], listing: str) -> dict[str, Any]:
    """The row that `text` names: one of these names in full, else a unique prefix of the last."""
    found = [row for row in rows if text in [str(row[name]) for name in names]]
    if not found and len(text) >= MIN_ID_PREFIX:
        found = [row for row in rows if str(row[names[-1]]).startswith(text)]
    if len(found) == 1:
        return found[0]
    if found:
        raise CommandFailed(
            f"{text} is ambiguous: {len(found)} match; give more characters ({listing} shows them)"
        )
    raise CommandFailed(f"{text} not found; {listing} shows what there is")


def session_of(client: GatewayApi, text: str) -> str:
    """The session with this prefix, if only one of the newest has it; else the text itself."""
    if IS_ID(text) or len(text) < MIN_ID_PREFIX:
        return text
    names = [str(row["session_id"]) for row in client.ask("GET", "/v1/sessions", limit=1_000)["items"]]
    found = [name for name in names if name.startswith(text)]
    if text in names or not found:
        return text
    if len(found) > 1:
        listing = "`observatory sessions` shows them"
        raise CommandFailed(
            f"{text} is ambiguous: {len(found)} sessions match; give more characters ({listing})"
        )
    return found[0]


def path_of(*parts: str) -> str:
    """A path under /v1, with every part escaped."""
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def when(text: str | None) -> str:
    return "" if text is None else f"{text[:10]} {text[11:19]}"


def result_or(look: Callable[[], str], otherwise: str) -> str:
    """For a read after a command: its failure must not make the command seem failed."""
    try:
        return look()
    except CommandFailed:
        return otherwise


def poll(seconds: float, look: Callable[[], bool]) -> bool:
    """Poll until `look` returns true or the time is over."""

    end = time.monotonic() + seconds
    while not look():
        if time.monotonic() >= end:
            return False
        time.sleep(0.1)
    return True


def pairs_of(words: Iterable[str], example: str) -> dict[str, Any]:
    """Parse `name=value` pairs; a value is JSON, or plain text."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise InvalidArguments(f"{word}: give name=value, e.g. {example}")
        try:
            found[name] = msgspec.json.decode(value)
        except msgspec.MsgspecError:
            found[name] = value
    return found


JsonOutput = Annotated[bool, Parameter(negative=(), help="Print JSON.")]


Limit = Annotated[int, Parameter(help="Show at most this many, the newest.")]
