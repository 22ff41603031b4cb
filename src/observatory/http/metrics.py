"""`/metrics`: the figures of this gateway in Prometheus text format. No tenant or agent names in labels.

Law: a scrape stays cheap with many tenants. Every source reports what it has in memory; the one figure
that is read from databases, the analyst's lag, is bounded (`insight_lag.py`).
"""

from __future__ import annotations

import resource
import shutil
import sys
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from observatory.http.app_state import AppState
from observatory.runtime.metrics import Measure, exposition
from observatory.settings import VERSION

RESIDENT = 1 if sys.platform == "darwin" else 1024  # the unit of `ru_maxrss`


@runtime_checkable
class ReportsSize(Protocol):
    """A store that reports its size and how busy its readers are."""

    def figures(self) -> Mapping[str, float]: ...


@runtime_checkable
class CountsReads(Protocol):
    """A store in a file that counts its queries, on the event loop or in a thread."""

    def reads(self) -> Mapping[str, int]: ...


async def render_metrics(app: AppState) -> str:
    return exposition([*_measures(app), *await app.lag.measures()])


def _measures(app: AppState) -> list[Measure]:
    return [
        *_process(app),
        *_pipeline(app),
        *_store(app),
        *app.request_metrics.measures(),
        *(measure for one in app.measured for measure in one.measures()),
        Measure("observatory_analyst_up", "gauge", "Whether the analyst is running", int(app.analyst.alive)),
        Measure(
            "observatory_analyst_restarts_total", "counter", "Restarts of the analyst", app.analyst.restarts
        ),
    ]


def _process(app: AppState) -> list[Measure]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    labels = {"version": VERSION, "database": app.store.dialect}
    up_s = (app.clock() - app.started_ns) / 1e9
    return [
        Measure("observatory_info", "gauge", "Always 1; version and database as labels", 1, labels),
        Measure("observatory_uptime_seconds", "gauge", "Seconds since this gateway started", up_s),
        Measure("observatory_stopping", "gauge", "1 while it is shutting down", int(app.stopping)),
        Measure("observatory_cpu_seconds_total", "counter", "CPU time used", used.ru_utime + used.ru_stime),
        Measure("observatory_memory_peak_bytes", "gauge", "Peak memory", used.ru_maxrss * RESIDENT),
    ]


def _pipeline(app: AppState) -> list[Measure]:
    counters = app.committer.counters
    messages, size = app.committer.waiting
    return [
        Measure("observatory_committed_total", "counter", "Submissions committed", counters.committed),
        Measure("observatory_batches_total", "counter", "Transactions committed", counters.batches),
        Measure(
            "observatory_commit_seconds_total", "counter", "Time spent in transactions", counters.commit_s
        ),
        Measure("observatory_batch_largest", "gauge", "Largest batch so far", counters.largest_batch),
        Measure(
            "observatory_batches_refused_total",
            "counter",
            "Batches retried in halves",
            counters.refused_batches,
        ),
        Measure(
            "observatory_not_durable_total",
            "counter",
            "Batches that could not be stored",
            counters.not_durable,
        ),
        Measure("observatory_queue_messages", "gauge", "Submissions waiting", messages),
        Measure("observatory_queue_bytes", "gauge", "Bytes waiting", size),
    ]


HELP = {
    "database_bytes": "Size of the database file",
    "wal_bytes": "Size of its write-ahead log",
    "derived_bytes": "Size of the derived store's file",
    "readers": "Open read connections",
    "readers_busy": "Read connections in use",
}


def _store(app: AppState) -> list[Measure]:
    figures: dict[str, float] = {}
    for store in (app.store, app.derived):
        if isinstance(store, ReportsSize):
            figures |= store.figures()
    made = [
        Measure(f"observatory_store_{name}", "gauge", HELP[name], value) for name, value in figures.items()
    ]
    for name, store in (("record", app.store), ("derived", app.derived)):
        if isinstance(store, CountsReads):
            made += [
                Measure(
                    "observatory_store_reads_total",
                    "counter",
                    "Queries to a store",
                    count,
                    {"store": name, "way": way},
                )
                for way, count in store.reads().items()
            ]
    try:
        free = shutil.disk_usage(app.settings.folder).free
    except OSError:
        return made
    return [
        *made,
        Measure("observatory_disk_free_bytes", "gauge", "Free space on the disk of the data folder", free),
    ]
