"""`/metrics`: what the house is doing, in Prometheus' text form. No tenant or agent names in labels.

Law: a scrape stays cheap with many tenants. Everybody is asked for what they have in memory; the one thing
that is read of databases, how far the analyst is, is bounded (`insight_lag.py`).
"""

from __future__ import annotations

import resource
import shutil
import sys
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from observatory.http.app_state import House
from observatory.runtime.metrics import Measure, exposition
from observatory.settings import VERSION

RESIDENT = 1 if sys.platform == "darwin" else 1024  # what `ru_maxrss` counts in


@runtime_checkable
class Sized(Protocol):
    """A store that knows how big it is and how busy its readers are."""

    def figures(self) -> Mapping[str, float]: ...


@runtime_checkable
class Counted(Protocol):
    """A store in a file: how many queries it was asked, on the event loop or in a thread."""

    def reads(self) -> Mapping[str, int]: ...


async def told(house: House) -> str:
    return exposition([*_of_house(house), *await house.lag.measures()])


def _of_house(house: House) -> list[Measure]:
    return [
        *_process(house),
        *_corridor(house),
        *_store(house),
        *house.doors.measures(),
        *(measure for one in house.measured for measure in one.measures()),
        Measure("observatory_analyst_up", "gauge", "Whether the analyst runs", int(house.analyst.alive)),
        Measure(
            "observatory_analyst_restarts_total", "counter", "Restarts of the analyst", house.analyst.restarts
        ),
    ]


def _process(house: House) -> list[Measure]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    labels = {"version": VERSION, "database": house.store.dialect}
    up_s = (house.clock() - house.started_ns) / 1e9
    return [
        Measure("observatory_info", "gauge", "Always 1; what runs", 1, labels),
        Measure("observatory_uptime_seconds", "gauge", "Since this gateway was built", up_s),
        Measure("observatory_stopping", "gauge", "1 once it was told to stop", int(house.stopping)),
        Measure("observatory_cpu_seconds_total", "counter", "CPU time used", used.ru_utime + used.ru_stime),
        Measure("observatory_memory_peak_bytes", "gauge", "Largest memory so far", used.ru_maxrss * RESIDENT),
    ]


def _corridor(house: House) -> list[Measure]:
    counters = house.committer.counters
    messages, size = house.committer.waiting
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
            "Batches run again in halves",
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
    "readers": "Connections that read, open now",
    "readers_busy": "Of these, in use",
}


def _store(house: House) -> list[Measure]:
    found: dict[str, float] = {}
    for store in (house.store, house.derived):
        if isinstance(store, Sized):
            found |= store.figures()
    made = [Measure(f"observatory_store_{name}", "gauge", HELP[name], value) for name, value in found.items()]
    for name, store in (("record", house.store), ("derived", house.derived)):
        if isinstance(store, Counted):
            made += [
                Measure(
                    "observatory_store_reads_total",
                    "counter",
                    "Queries asked of a store",
                    count,
                    {"store": name, "way": way},
                )
                for way, count in store.reads().items()
            ]
    try:
        free = shutil.disk_usage(house.settings.folder).free
    except OSError:
        return made
    return [
        *made,
        Measure("observatory_disk_free_bytes", "gauge", "Room left where the data folder is", free),
    ]
