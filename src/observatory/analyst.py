"""The analyst: a separate process next to the gateway that folds the record into the derived store.

The composition root of the child process. It reads its settings from the first line of stdin and exits when
stdin ends, within a second whatever it is doing: everything it wrote is whole. It runs at lower priority than
the gateway (nice 10), writes nothing to stdout, and its lines on stderr hold no payloads.
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

from observatory.derived.sqlite import derived_path_of
from observatory.errors import ObservatoryError
from observatory.runtime import logging as journal
from observatory.runtime.projector import Projector
from observatory.settings import Settings
from observatory.stores import all_folds, postgres_derived, postgres_record, sqlite_derived, sqlite_record

log = logging.getLogger("observatory.analyst")
NICE = 10
GRACE_S = 0.75
POLL_S = 1.0  # where the database notifies of commits
# Messages per transaction, when that many wait. A page of an index is written once in each, however many of
# them touch it, and in a file that costs more than the folding; a database server writes other things
# meanwhile.
PAGE_IN_FILE = 2_000
# Of each reader: folds read what was written lately, and the writer has that in its own cache.
READ_CACHE_KB = 4_096


async def analyse(settings: Settings) -> None:
    """Run until cancelled."""
    async with AsyncExitStack() as stack:
        if settings.is_postgres:
            store = postgres_record(settings.database_url, lanes=1, readers=2)
            await store.start()
            stack.push_async_callback(store.stop)
            derived = postgres_derived(store, settings.database_url)
            await derived.start()
            stack.push_async_callback(derived.stop)
            projector = Projector(store, derived, all_folds(derived, store), look_s=POLL_S)
            group = await stack.enter_async_context(asyncio.TaskGroup())
            group.create_task(store.listen(projector.heard))
            await projector.run()
        else:
            path = Path(settings.database_url.removeprefix("sqlite:///"))
            lite = sqlite_record(path)
            await lite.start()
            stack.push_async_callback(lite.stop)
            own = sqlite_derived(derived_path_of(path), READ_CACHE_KB)
            await own.start()
            stack.push_async_callback(own.stop)
            folds = all_folds(own, lite)
            # Waiting for a disk takes no core from the gateway; the work of a database server is not seen
            # from here.
            await Projector(lite, own, folds, page=PAGE_IN_FILE, busy=time.process_time).run()


async def _until_stdin_ends(settings: Settings) -> None:
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
    settings_line = sys.stdin.buffer.readline()
    if not settings_line.strip():
        return 0  # the gateway was gone before it sent the settings
    settings = msgspec.json.decode(settings_line, type=Settings)
    # As in the gateway: rows form no cycles, and scanning them for cycles cost a third of all folding.
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    journal.configure_logging(settings)
    try:
        asyncio.run(_until_stdin_ends(settings))
    except asyncio.CancelledError:
        pass
    except ObservatoryError as error:
        log.warning("the analyst cannot work now: %s", error)
        return 1
    except Exception as error:  # noqa: BLE001  a driver's message may quote a row: only the place is logged
        log.error("the analyst failed: %s", _place(error))
        return 1
    return 0


def _place(error: BaseException) -> str:
    """Type and line of what failed, without its message."""
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
