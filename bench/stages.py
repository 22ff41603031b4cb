"""What each part of the server's path costs a message, in one process without a loop or a second thread.

The real functions over a real SQLite file: the difference to the server's CPU a message is the price of
HTTP, threads and the interpreter lock. `profile` runs the same path under cProfile.
"""

from __future__ import annotations

import asyncio
import cProfile
import dataclasses
import pstats
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from bench.messages import Mesh
from bench.report import Report
from observatory.bootstrap import running_gateway
from observatory.http.ingest import line_of
from observatory.pipeline import message_event as event
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.message_event import ServiceInfo
from observatory.pipeline.pipeline import PipelineBatch
from observatory.pipeline.state import HOME_TENANT, IncomingMessage, Principal, Submission, SubmissionResult
from observatory.pipeline.write_path import WritePath
from observatory.protocol.message import Message
from observatory.settings import Settings
from observatory.stages import WRITE_PATH
from observatory.stores import sqlite_record

BATCH = 400
SERVICE = ServiceInfo("observatory", "0.1.0", "bench")
WHO = Principal(tenant_id=HOME_TENANT, role="agent", key_id="sys_bench")


class Clock:
    """Seconds spent by name; what ran inside a named part is taken off the part around it."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        self._laps: dict[str, list[float]] = defaultdict(list)
        self._inner = [0.0]

    def lap(self) -> None:
        """One batch is over."""
        for name, spent in self.spent.items():
            self._laps[name].append(spent)
        self.spent.clear()

    def medians(self) -> dict[str, float]:
        """A batch's seconds by name; the median, so that a moment's noise does not count."""
        return {name: median(laps) for name, laps in self._laps.items()}

    def time(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            self._inner.append(0.0)
            began = time.perf_counter()
            try:
                return call(*given, **named)
            finally:
                took = time.perf_counter() - began
                self.spent[name] += took - self._inner.pop()
                self._inner[-1] += took

        return timed


class TimedTransaction:
    def __init__(self, transaction: Any, clock: Clock) -> None:
        self.load = clock.time("load (rows the batch names)", transaction.load)
        self.save = clock.time("save (rows to SQLite)", transaction.save)
        self.read_more = transaction.read_more


def furnished(folder: Path) -> Any:
    """A database after its first start, and its store."""

    async def first_start() -> None:
        async with running_gateway(Settings(data=str(folder))):
            pass

    folder.mkdir(parents=True)
    asyncio.run(first_start())
    return sqlite_record(folder / "observatory.db")


def arrivals(bodies: list[bytes]) -> list[Submission]:
    made: list[Submission] = []
    for body in bodies:
        message = intercept(body)
        assert isinstance(message, Message)
        made.append(IncomingMessage(message, WHO, time.time_ns(), len(body)))
    return made


def encode(verdicts: list[SubmissionResult]) -> bytes:
    return b"\n".join([line_of(verdict) for verdict in verdicts])


def walk(store: Any, bodies: list[bytes], clock: Clock | None, path: WritePath = WRITE_PATH) -> None:
    """One batch from bytes to answers, as the server does it."""
    timed = clock.time if clock else lambda name, call: call
    items = timed("intercept (bytes to message)", arrivals)(bodies)
    batch = PipelineBatch(path, SERVICE, HOME_TENANT, items, time.time_ns())
    read_set = timed("wants (rows to load)", batch.read_set)
    batch.read_set = read_set  # type: ignore[method-assign]
    run = timed("deliver (drafts, rows, folds)", batch.run)

    def unit(transaction: Any) -> list[SubmissionResult]:
        verdicts: list[SubmissionResult] = run(
            TimedTransaction(transaction, clock) if clock else transaction, None
        )[0]
        return verdicts

    verdicts = timed("commit (BEGIN, COMMIT, fsync)", store.transact)(0, unit)
    assert all(verdict.code == 202 for verdict in verdicts)
    timed("answer (encode lines)", encode)(verdicts)


def stages(report: Report, folder: Path) -> None:
    count = 8_000 if report.quick else 40_000
    store, mesh, clock = furnished(folder / "stages"), Mesh(200), Clock()
    for _ in range(5):
        walk(store, mesh.logs(BATCH), None)
    saved = vars(event)["link_text"]
    timed = tuple(clock.time(f"stage {_name(stage)}", stage) for stage in WRITE_PATH.stages)
    path = dataclasses.replace(WRITE_PATH, stages=timed)
    vars(event)["link_text"] = clock.time("link (canonical bytes, hashes)", saved)
    try:
        for _ in range(count // BATCH):
            walk(store, mesh.logs(BATCH), clock, path)
            clock.lap()
    finally:
        vars(event)["link_text"] = saved
        store.close_lane(0)
        asyncio.run(store.stop())
    parts = {name: spent / BATCH * 1e6 for name, spent in clock.medians().items()}
    total = sum(parts.values())
    for name, spent in parts.items():
        report.say(f"  {name:<34}{spent:7.1f} µs a message")
    report.say(f"  {'all':<34}{total:7.1f} µs a message, {1e6 / total:,.0f} msg/s in one thread")
    report.details["stages_us"] = parts


def _name(stage: Any) -> str:
    return f"{stage.__module__.rpartition('.')[2]}.{stage.__name__}"


def profile(folder: Path) -> None:
    store, mesh = furnished(folder / "profile"), Mesh(200)
    batches = [mesh.logs(BATCH) for _ in range(30)]
    profiler = cProfile.Profile()
    profiler.enable()
    for bodies in batches:
        walk(store, bodies, None)
    profiler.disable()
    store.close_lane(0)
    asyncio.run(store.stop())
    print(f"{30 * BATCH:,} messages, by own time:")
    pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
