from __future__ import annotations

import asyncio
import io
import json
import logging
import sys
import threading
from collections.abc import Iterator

import msgspec
import pytest

from observatory.errors import StoreError
from observatory.runtime import logging as journal
from observatory.settings import Settings

SECRET = "obs_hunter2-never-in-a-log"


@pytest.fixture
def said() -> Iterator[io.StringIO]:
    """Logging as a gateway has it, and afterwards as it was."""
    root = logging.getLogger()
    before = root.handlers[:], root.level, logging.raiseExceptions
    hooks = sys.excepthook, threading.excepthook, sys.unraisablehook
    try:
        yield io.StringIO()
    finally:
        root.handlers[:], logging.raiseExceptions = before[0], before[2]
        root.setLevel(before[1])
        logging.getLogger("observatory").setLevel(logging.NOTSET)
        logging.captureWarnings(False)
        sys.excepthook, threading.excepthook, sys.unraisablehook = hooks


def lines(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()


def fail(words: str) -> BaseException:
    try:
        raise ValueError(words)
    except ValueError as error:
        return error


@pytest.mark.parametrize("form", ["text", "json"])
def test_every_record_is_one_line_and_no_secret_gets_into_it_s590_s591(said: io.StringIO, form: str) -> None:
    """S590, S591: in whatever place of whoever's record it stands."""
    settings = msgspec.structs.replace(Settings(), log_format=form, log_level="debug")
    journal.configure_logging(settings, said)
    ours, foreign = logging.getLogger("observatory.x"), logging.getLogger("mcp.server")
    ours.debug("first\nERROR observatory: forged\x1b[31m")
    ours.error("it failed", exc_info=fail(f"quoted {SECRET}"))
    ours.error("many", exc_info=ExceptionGroup("g", [ValueError(SECRET)]))
    ours.error("ours", exc_info=StoreError("the disk is full"))
    ours.info("answered", extra={"fields": {"endpoint": "/v1/x", "code": 200}})
    ours.info("%s %s", "too few")
    foreign.warning("bad input: %s", SECRET)
    foreign.warning(f"bad input: {SECRET}")
    foreign.error("bad", exc_info=fail(SECRET))
    foreign.info(SECRET)
    logging.getLogger("httpx2").info("GET https://x/?key=%s", SECRET)
    logging.getLogger("uvicorn.error").debug("> authorization: %s", SECRET)
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    with asyncio.Runner() as runner:
        journal.on_loop_failure(runner.get_loop(), {"message": SECRET, "exception": fail(SECRET)})
    threading.excepthook(threading.ExceptHookArgs((ValueError, fail(SECRET), None, None)))
    sys.excepthook(ValueError, fail(SECRET), None)
    text = said.getvalue()
    assert SECRET not in text and "\x1b" not in text
    assert len(lines(said)) == 13
    assert "the disk is full" in text and "ValueError" in text and "Traceback: test_journal.py" in text
    assert "Invalid HTTP request received." in text and "test_journal.py:" in text
    if form == "json":
        received = [json.loads(line) for line in lines(said)]
        assert all({"time", "level", "logger", "message"} <= line.keys() for line in received)
        assert received[0]["message"].startswith("first\\nERROR")
        assert (received[4]["endpoint"], received[4]["code"], received[4]["level"]) == ("/v1/x", 200, "info")
    else:
        assert lines(said)[0].endswith("DEBUG observatory.x: first\\nERROR observatory: forged\\x1b[31m")
        assert lines(said)[4].endswith("INFO observatory.x: answered endpoint=/v1/x code=200")


def test_a_level_is_ours_alone_s591(said: io.StringIO) -> None:
    journal.configure_logging(msgspec.structs.replace(Settings(), log_level="error"), said)
    logging.getLogger("observatory.x").warning("unheard")
    logging.getLogger("alembic").warning("heard")
    logging.getLogger("observatory.x").error("heard too")
    assert [line.rpartition(": ")[2] for line in lines(said)] == ["heard", "heard too"]
