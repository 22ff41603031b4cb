"""Logging of the gateway and its child process: one line per record, as text or JSON, on stderr.

Law: no payload, key or other secret gets into a line, from any source. Our own messages hold none (style.md);
of an exception only its type and place are logged, its message only if it is our own exception. Messages of
libraries may quote their input, so below WARNING they are dropped, and of a warning only its place is logged,
except for the few libraries whose messages are known. Control characters are escaped: nothing that is logged
can look like a line of its own.
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
# Their warnings were reviewed: they name settings, signals and counts, never what a client sent.
KNOWN = ("uvicorn", "alembic")
# Loggers whose own level is read, not the effective one: unset they would count as the most verbose.
LEVEL_READ_DIRECTLY = ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi")
MAX_FRAMES = 12
# Their messages name code, not the data it worked on.
PLAIN = (ObservatoryError, NameError, AttributeError, ImportError)


class TextFormatter(logging.Formatter):
    """`time LEVEL logger: message key=value …`, for people."""

    def format(self, record: logging.LogRecord) -> str:
        parts = [when(record), record.levelname, f"{record.name}:", message(record)]
        parts += [f"{name}={value}" for name, value in fields(record).items()]
        return " ".join(clean(part) for part in parts)


class JsonFormatter(logging.Formatter):
    """One JSON object per line, for log collectors."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": when(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": clean(message(record)),
        }
        return msgspec.json.encode(entry | fields(record)).decode()


def when(record: logging.LogRecord) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{whole}.{int(record.msecs):03d}Z"


def message(record: logging.LogRecord) -> str:
    """The message, if it is ours or known to be harmless; else where it was logged."""
    name = record.name.partition(".")[0]
    if name == OURS or name in KNOWN:
        try:
            return record.getMessage()
        except (TypeError, ValueError):  # a bad record must not fail its writer
            return str(record.msg)
    return f"a warning at {Path(record.pathname).name}:{record.lineno}; its text is not logged"


def fields(record: logging.LogRecord) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    given = getattr(record, "fields", None)
    if isinstance(given, Mapping):
        entry |= given
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        entry |= {"failure": kind_of(error), "at": place_of(error)}
    return entry


def kind_of(error: BaseException) -> str:
    """The type, and the message if it is ours or names code: any other may quote what failed."""
    error = _first(error)
    name = type(error).__name__
    return clean(f"{name}: {error}") if isinstance(error, PLAIN) else name


def place_of(error: BaseException) -> str:
    """Traceback of the innermost calls, the last one last, without source lines."""
    frames = traceback.extract_tb(_first(error).__traceback__)[-MAX_FRAMES:]
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


def configure_logging(settings: Settings, stream: TextIO | None = None) -> None:
    """Configure all loggers of the process."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if settings.log_format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(OURS).setLevel(settings.log_level.upper())
    for name in [*logging.root.manager.loggerDict, *LEVEL_READ_DIRECTLY]:
        if name.partition(".")[0] != OURS:
            logger = logging.getLogger(name)  # a library that was more verbose, or had its own handlers
            logger.setLevel(logging.WARNING)
            logger.handlers.clear()
            logger.propagate = True
    logging.raiseExceptions = False  # a line that cannot be written is lost, and nothing else
    logging.captureWarnings(True)
    sys.excepthook = _log_uncaught
    threading.excepthook = lambda given: _failed("a thread", given.exc_value)
    sys.unraisablehook = lambda given: _failed("a clean-up", given.exc_value)


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: object) -> None:
    _failed("the process", error)


def _failed(what: str, error: BaseException | None) -> None:
    logging.getLogger(OURS).error("%s failed", what, exc_info=error)


def on_loop_failure(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log a failed background task. The loop's own message would show the exception's message."""
    error = context.get("exception")
    _failed("a background task", error if isinstance(error, BaseException) else None)
