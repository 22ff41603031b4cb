"""`python -m bench.log [--quick]`: the signed log: appending, proofs over a million events, lag at full load.

The million is written as rows of the real tables, with records of the usual length, and sealed by the
real tree: what is measured is reading proofs out of it, not making messages. On the commit path the log
costs an event its leaf and nothing else: checkpoints are made behind it; what that takes is told beside
it.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sqlite3
import tempfile
import threading
import time
from hashlib import sha256
from pathlib import Path

from bench.gateway import Gateway
from bench.load import Client
from bench.rates import WARM_UP, measure, ndjson
from bench.report import OUT, Figure, Report
from observatory.features.transparency.log_tree import LogTree
from observatory.ledger import merkle, note, tiles
from observatory.store.migrations.migrate import migrate_sqlite
from observatory.stores import sqlite_record

TENANT, ORIGIN = "tnt_default", "log.example/tnt_default"
KEY = note.Signer(ORIGIN, bytes(range(32)))
MILLION, RECORD, STEP = 1_000_000, 1_100, 10_000


def log(report: Report, folder: Path) -> None:
    append(report)
    leaf(report)
    size = MILLION // 10 if report.quick else MILLION
    path = folder / "log" / "observatory.db"
    began = time.monotonic()
    filled(path, size)
    report.say(f"  {size:,} events and their log were written in {time.monotonic() - began:.0f} s")
    asyncio.run(proofs(report, path, size))
    shutil.rmtree(path.parent)
    lag(report, folder)


def append(report: Report) -> None:
    leaves = [sha256(number.to_bytes(4, "big")).digest() for number in range(200_000)]
    edge = tiles.TileEdge()
    began = time.perf_counter()
    edge.extend(leaves)
    edge.root()
    report.add(Figure("tree append", "leaves/s", len(leaves) / (time.perf_counter() - began), 300_000))


def leaf(report: Report) -> None:
    """All that the log adds to a message on its way to the commit."""
    count, event_hash = 50_000, "sha256:" + "ab" * 32
    began = time.process_time()
    for number in range(count):
        merkle.leaf_hash(merkle.leaf_data(TENANT, number, event_hash, event_hash))
    took = (time.process_time() - began) / count * 1e6
    report.add(Figure("the log on the commit path", "µs a message", took, 10, is_limit=True))


def _record(number: int) -> bytes:
    text = f'{{"audit_event_id":"evt_{number}","hash_chain":{{"event_hash":"sha256:{number:064x}"}},"pad":"'
    return (text + "x" * (RECORD - len(text) - 2) + '"}').encode()


def _leaf(number: int, record: bytes) -> bytes:
    text = merkle.leaf_data(TENANT, number, f"sha256:{number:064x}", "sha256:" + sha256(record).hexdigest())
    return merkle.leaf_hash(text)


def filled(path: Path, size: int) -> None:
    migrate_sqlite(path)
    rows = sqlite3.connect(path)
    rows.execute("PRAGMA synchronous=0")
    rows.execute("INSERT INTO tenants VALUES (?, 'Default', 1, NULL)", (TENANT,))
    rows.execute("INSERT INTO chain_heads VALUES (?, 1, ?, '', 0, 0, 0, 0)", (TENANT, size))
    edge = tiles.TileEdge()
    for first in range(1, size + 1, STEP):
        records = [(number, _record(number)) for number in range(first, min(first + STEP, size + 1))]
        leaves = [_leaf(number, record) for number, record in records]
        rows.executemany(
            "INSERT INTO audit_log VALUES (?, 1, ?, 9, ?, NULL, NULL, ?, ?)",
            [
                (1 << 40 | number, number, 1 << 40, record, one)
                for (number, record), one in zip(records, leaves, strict=True)
            ],
        )
        nodes = edge.extend(leaves)
        rows.executemany("INSERT INTO log_nodes VALUES (?, ?, ?, ?)", [(TENANT, *node) for node in nodes])
    signed = note.sign(note.checkpoint(ORIGIN, size, edge.root()), [KEY])
    rows.execute("INSERT INTO checkpoints VALUES (?, ?, 0, ?, ?, 1)", (TENANT, size, edge.root(), signed))
    rows.commit()
    rows.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    rows.close()


async def proofs(report: Report, path: Path, size: int) -> None:
    """Event, checkpoint and hashes read from the database, the proof checked: as the door does it."""
    store = sqlite_record(path)
    await store.start()
    try:
        tree, chance, spent, cpu = LogTree(store), random.Random(1), [], time.process_time()
        for _ in range(200 if report.quick else 2_000):
            number = chance.randrange(size) + 1
            began = time.perf_counter()
            event, found = await store.event(TENANT, number), await store.checkpoint(TENANT)
            assert event is not None and found is not None
            hashes = await tree.inclusion(TENANT, number - 1, found.size)
            one = _leaf(number, event.record)
            assert merkle.verify_inclusion(one, number - 1, found.size, hashes, found.root)
            spent.append((time.perf_counter() - began) * 1e3)
        cpu = (time.process_time() - cpu) / len(spent) * 1e3
        spent.sort()
        p50, p99 = spent[len(spent) // 2], spent[int(len(spent) * 0.99)]
        report.say(
            f"  inclusion proofs of random events: p50 {p50:.2f} ms, p99 {p99:.2f} ms; CPU {cpu:.2f} ms each"
        )
        report.add(Figure(f"inclusion proof at {size:,}, p99", "ms", p99, 5, is_limit=True))
        await _behind(report, LogTree(store), size)
    finally:
        await store.stop()


async def _behind(report: Report, tree: LogTree, size: int) -> None:
    """What sealing a thousand events takes, the write aside: read, hash, sign."""
    edge, count = tiles.TileEdge(), 0
    began = time.process_time()
    while count < min(50_000, size):
        edge.extend(await tree.leaves(TENANT, count, 1_000))
        count += 1_000
        note.sign(note.checkpoint(ORIGIN, count, edge.root()), [KEY])
    took = (time.process_time() - began) / count * 1e6
    report.say(f"  sealing a thousand at a time: {took:.1f} µs of CPU an event, behind the commit")


def lag(report: Report, folder: Path) -> None:
    """The age of the oldest unsigned event, asked ten times a second while messages come as they can."""
    messages = 20_000 if report.quick else 60_000
    with Gateway(folder / "lag", settings={"insight": "false"}) as gateway, Client() as client:
        measure(gateway, client, ndjson(gateway, WARM_UP))
        ages, over = [0.0], threading.Event()

        def watch() -> None:
            while not over.wait(0.1):
                ages.append(gateway.metrics()["observatory_log_unsigned_age_seconds"])

        watcher = threading.Thread(target=watch)
        watcher.start()
        found = measure(gateway, client, ndjson(gateway, messages))
        over.set()
        watcher.join()
        rows = sqlite3.connect(folder / "lag" / "observatory.db")
        kept, largest = rows.execute("SELECT count(*), max(size - previous_size) FROM checkpoints").fetchone()
        rows.close()
    report.say(f"  {found.line}")
    report.say(f"  {kept} checkpoints, the largest step {largest:,} events; ages seen {len(ages) - 1}")
    report.add(Figure("checkpoint lag at full load", "s", max(ages), 1, is_limit=True))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the events")
    report = Report(parser.parse_args().quick)
    OUT.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=OUT))
    try:
        log(report, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report.say("\n" + report.table())


if __name__ == "__main__":
    main()
