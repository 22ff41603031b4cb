"""What the house says of itself in lines: one a record, as text or JSON, on stderr.

Law: no payload, key or other secret gets into a line, whoever wrote it. Our own sentences hold none
(style.md); of an exception only its kind and place are told, its words only where it is one of ours. What
libraries say may quote what they were given, so below a warning they are not heard at all, and of a warning
only its place is told, but for those few whose sentences are known. Control characters are escaped: nothing
that is logged can look like a line of its own.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

import msgspec

from observatory.errors import ObservatoryError
from observatory.settings import Settings

OURS = "observatory"
# Their warnings were read: they name settings, signals and counts, never what a client sent.
KNOWN = ("uvicorn", "alembic")
# Loggers whose level is read as it is set, not as it holds: unset they would be taken for the loudest.
ASKED = ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi")
MOST_FRAMES = 12
# Their words name code, not what it worked on.
PLAIN = (ObservatoryError, NameError, AttributeError, ImportError)


class Lines(logging.Formatter):
    """`time LEVEL logger: message key=value …`, for people."""

    def format(self, record: logging.LogRecord) -> str:
        parts = [when(record), record.levelname, f"{record.name}:", message(record)]
        parts += [f"{name}={value}" for name, value in fields(record).items()]
        return " ".join(clean(part) for part in parts)


class JsonLines(logging.Formatter):
    """One object a line, for whoever collects them."""

    def format(self, record: logging.LogRecord) -> str:
        told = {
            "time": when(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": clean(message(record)),
        }
        return msgspec.json.encode(told | fields(record)).decode()


def when(record: logging.LogRecord) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{whole}.{int(record.msecs):03d}Z"


def message(record: logging.LogRecord) -> str:
    """Its words, if they are ours or known to be harmless; else from where they came."""
    name = record.name.partition(".")[0]
    if name == OURS or name in KNOWN:
        try:
            return record.getMessage()
        except (TypeError, ValueError):  # a record must not cost its writer anything
            return str(record.msg)
    return f"a warning at {Path(record.pathname).name}:{record.lineno}, whose words are not logged"


def fields(record: logging.LogRecord) -> dict[str, Any]:
    told: dict[str, Any] = {}
    given = getattr(record, "fields", None)
    if isinstance(given, Mapping):
        told |= given
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        told |= {"failure": kind_of(error), "at": place_of(error)}
    return told


def kind_of(error: BaseException) -> str:
    """Its kind, and its words if they are ours or speak of code: any other's may quote what failed."""
    error = _first(error)
    name = type(error).__name__
    return clean(f"{name}: {error}") if isinstance(error, PLAIN) else name


def place_of(error: BaseException) -> str:
    """Traceback of the innermost calls, the last one last, without a line of source."""
    frames = traceback.extract_tb(_first(error).__traceback__)[-MOST_FRAMES:]
    calls = [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames]
    return f"Traceback: {' > '.join(calls)}"


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def clean(text: str) -> str:
    """Printable, on one line."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def begin(settings: Settings, stream: TextIO | None = None) -> None:
    """All loggers of the process, from here on."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if settings.log_format == "json" else Lines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(OURS).setLevel(settings.log_level.upper())
    for name in [*logging.root.manager.loggerDict, *ASKED]:
        if name.partition(".")[0] != OURS:
            logger = logging.getLogger(name)  # a library that was louder, or spoke by itself
            logger.setLevel(logging.WARNING)
            logger.handlers.clear()
            logger.propagate = True
    logging.raiseExceptions = False  # a line that cannot be written is lost, and nothing else
    logging.captureWarnings(True)
    sys.excepthook = _ended
    threading.excepthook = lambda given: _failed("a thread", given.exc_value)
    sys.unraisablehook = lambda given: _failed("a clean-up", given.exc_value)


def _ended(kind: type[BaseException], error: BaseException, trace: object) -> None:
    _failed("the process", error)


def _failed(what: str, error: BaseException | None) -> None:
    logging.getLogger(OURS).error("%s failed", what, exc_info=error)


def on_loop_failure(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What nobody waited for failed. The loop's own sentence would show the exception's words."""
    error = context.get("exception")
    _failed("something nobody waited for", error if isinstance(error, BaseException) else None)
