"""The analyst: a process of its own beside the gateway, which folds the record into the derived store.

The composition root of the child. It reads its settings from the first line of stdin and goes when stdin
ends, within a second whatever it is doing: everything it wrote is whole. It gives way to the gateway (nice
10), says nothing on stdout, and what it says on stderr is a sentence without payloads.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
import time
import traceback
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import msgspec

from observatory.errors import ObservatoryError
from observatory.runtime import logging as journal
from observatory.runtime.folds import all_folds
from observatory.runtime.projector import Projector
from observatory.settings import Settings
from observatory.store.derived_sqlite import SqliteDerived, beside
from observatory.store.sqlite import SqliteStore

log = logging.getLogger("observatory.runtime.analyst")
NICE = 10
GRACE_S = 0.75
POLL_S = 1.0  # where commits are told of
# Messages of one transaction, when so many wait. A page of an index is written once in each, however many of
# them touch it, and in a file that costs more than the folding; a server has other things to write meanwhile.
PAGE_IN_FILE = 2_000
# Of each reader: folds ask for what was written lately, and the writer has that in a cache of its own.
READ_CACHE_KB = 4_096


async def analyse(settings: Settings) -> None:
    """Until cancelled."""
    async with AsyncExitStack() as stack:
        if settings.is_postgres:
            from observatory.store.derived_postgres import PostgresDerived
            from observatory.store.postgres import PostgresStore

            store = PostgresStore(settings.database_url, lanes=1, readers=2)
            await store.start()
            stack.push_async_callback(store.stop)
            derived = PostgresDerived(store, settings.database_url)
            await derived.start()
            stack.push_async_callback(derived.stop)
            projector = Projector(store, derived, all_folds(derived, store), look_s=POLL_S)
            group = await stack.enter_async_context(asyncio.TaskGroup())
            group.create_task(store.listen(projector.heard))
            await projector.run()
        else:
            path = Path(settings.database_url.removeprefix("sqlite:///"))
            lite = SqliteStore(path)
            await lite.start()
            stack.push_async_callback(lite.stop)
            own = SqliteDerived(beside(path), READ_CACHE_KB)
            await own.start()
            stack.push_async_callback(own.stop)
            folds = all_folds(own, lite)
            # To wait for a disk keeps no core from the gateway; what a server does is not seen from here.
            await Projector(lite, own, folds, page=PAGE_IN_FILE, busy=time.process_time).run()


async def _until_told(settings: Settings) -> None:
    loop, work = asyncio.get_running_loop(), asyncio.current_task()
    assert work is not None

    def watch() -> None:
        while sys.stdin.buffer.read(4096):
            pass
        threading.Timer(GRACE_S, os._exit, (0,)).start()  # a fold may be in the middle of something long
        loop.call_soon_threadsafe(work.cancel)

    threading.Thread(target=watch, daemon=True).start()
    loop.add_signal_handler(signal.SIGTERM, work.cancel)
    await analyse(settings)


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0o077)
    with suppress(OSError):
        os.nice(NICE)
    words = sys.stdin.buffer.readline()
    if not words.strip():
        return 0  # the gateway was gone before it could say anything
    settings = msgspec.json.decode(words, type=Settings)
    # As in the gateway: rows make no circles, and looking for some among them cost a third of all folding.
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    journal.begin(settings)
    try:
        asyncio.run(_until_told(settings))
    except asyncio.CancelledError:
        pass
    except ObservatoryError as error:
        log.warning("the analyst cannot work now: %s", error)
        return 1
    except Exception as error:  # noqa: BLE001  a driver's words may quote a row: only the place is told
        log.error("the analyst failed: %s", _place(error))
        return 1
    return 0


def _place(error: BaseException) -> str:
    """Kind and line of what failed, without its words."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
