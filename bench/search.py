"""`python -m bench.search [--million] [--count N] [--postgres]`: how fast search is filled and asked.

A derived store on SQLite, or on a PostgreSQL from its wheel, with synthetic messages: words as rare and
common as in speech (Zipf) over 30,000, a few hundred agents, tools and sessions. Questions go through what
the endpoint does except for reading the page's messages from the archive. The issue wants p95 ≤ 300 ms for
hybrid search over 1,000,000. Processor times are of this process: a PostgreSQL's own are not among them.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import resource
import shutil
import tempfile
import time
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from bench.postgres import running
from bench.report import OUT
from observatory.derived.seen import DerivedWrite
from observatory.features.search.find import facets, find
from observatory.features.search.query_language import parse
from observatory.features.search.types_query import Mode
from observatory.features.search.words import plain
from observatory.http.app_state import AppState
from observatory.store.embedding import bits_of, embedder
from observatory.store.migrations.migrate import migrate
from observatory.stores import postgres_derived, postgres_record, sqlite_derived

TENANT = "tnt_bench"
PAGE = 500
SYLLABLES = "ba ce di fo gu ha je ki lo mu na pe qui ro su ta ve wi xo yu zan tor mil ser pan"
REAL = """refund invoice budget customer server outage memory region report planner search database revenue
project contract payment shipment delivery model training token agent session failure retry approve reject"""


class Speech:
    """Texts of some 60 words."""

    def __init__(self, seed: int = 7) -> None:
        self._dice = random.Random(seed)
        made = {
            "".join(self._dice.choices(SYLLABLES.split(), k=self._dice.randint(2, 4))) for _ in range(60_000)
        }
        self.words = REAL.split() + sorted(made)[:30_000]
        self._weights = list(accumulate(1 / (rank + 3) for rank in range(len(self.words))))

    def text(self) -> str:
        return " ".join(
            self._dice.choices(self.words, cum_weights=self._weights, k=self._dice.randint(30, 90))
        )

    def some(self, count: int, low: int, high: int) -> str:
        return " ".join(self._dice.choices(self.words[low:high], k=count))


def rows(seq: int, at_ns: int, text: str, dice: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    step = {
        "seq": seq, "name_key": seq, "span_key": -seq, "session_no": seq // 50 + 1,
        "agent_no": dice.randint(1, 300), "recipient_no": 0, "message_type": "decision_log",
        "state": "forwarded", "status": "failure" if dice.random() < 0.05 else "success",
        "tool": f"tool-{dice.randint(1, 40)}",
        "cost": 0.01, "reported": None, "tokens": 100, "confidence": 0.9, "entropy": 0.5, "terminal": 0,
        "cluster_id": "eu", "at_ns": at_ns,
    }  # fmt: skip
    body = plain(text)
    return step, {"seq": seq, "meant": len(body), "body": body}


async def fill(derived: Any, speech: Speech, count: int) -> None:
    dice = random.Random(3)
    model = embedder()
    assert model is not None
    spent = {"words": 0.0, "embed": 0.0, "write": 0.0}
    received, began_ns = 0, time.time_ns() - count * 1_000_000
    for start in range(0, count, PAGE):
        texts = [speech.text() for _ in range(min(PAGE, count - start))]
        mark = time.process_time()
        made = [
            rows(start + n + 1, began_ns + (start + n) * 1_000_000, text, dice)
            for n, text in enumerate(texts)
        ]
        spent["words"] += time.process_time() - mark
        mark = time.process_time()
        signs = bits_of(model.embed([document["body"] for _, document in made]))
        spent["embed"] += time.process_time() - mark
        mark = time.process_time()
        vectors = [
            {"seq": one["seq"], "turn": one["seq"], "bits": bits}
            for (one, _), bits in zip(made, signs, strict=True)
        ]
        puts = [
            DerivedWrite("insight_steps", [one for one, _ in made]),
            DerivedWrite("insight_documents", [one for _, one in made]),
            DerivedWrite("insight_vectors", vectors),
        ]
        await derived.apply(TENANT, start, start + len(texts), began_ns, puts, [])
        spent["write"] += time.process_time() - mark
        if start // 100_000 > received:
            received = start // 100_000
            print(f"  {start:,} …", flush=True)
    each = {name: seconds / count * 1e6 for name, seconds in spent.items()}
    parts = ", ".join(f"{name} {value:.0f}" for name, value in each.items())
    total = sum(each.values())
    print(f"indexed {count:,}: {total:.0f} µs of processor a message ({parts}; the step's row included)")


def questions(speech: Speech, kind: str, dice: random.Random) -> str:
    rare, usual, common = speech.some(1, 8_000, 30_000), speech.some(1, 100, 2_000), speech.some(1, 0, 12)
    return {
        "one rare word": rare,
        "two usual words": f"{usual} {speech.some(1, 100, 500)}",
        "a word in every third": common,
        "common, filtered": f"{common} status:failure tool:tool-{dice.randint(1, 40)}",
        "words, last tenth": f"{usual} since:2026-01-01",
        "meaning only": f'~"{speech.some(5, 0, 400)}"',
        "phrase and meaning": f'"{common} {speech.some(1, 0, 12)}" ~{usual}',
        "filters only": f"status:failure tool:tool-{dice.randint(1, 40)}",
    }[kind]


KINDS = (
    "one rare word", "two usual words", "a word in every third", "common, filtered", "words, last tenth",
    "meaning only", "phrase and meaning", "filters only",
)  # fmt: skip


async def ask(app: AppState, q: str, mode: Mode, as_of: int) -> tuple[float, float, int]:
    mark, worked = time.perf_counter(), time.process_time()
    found = await find(app, TENANT, parse(q, time.time_ns()), mode, as_of)
    await facets(app, TENANT, found.faces.values())
    return time.perf_counter() - mark, time.process_time() - worked, len(found.hits)


class Door:
    """Questions take turns by gateway; this one stands for it."""


async def _no_rows(*_: object, **__: object) -> list[Any]:
    return []


async def on_sqlite(folder: Path, count: int, each: int) -> None:
    derived = sqlite_derived(folder / "derived.db")
    await derived.start()
    await measure(derived, count, each)
    size = _size(folder)
    print(f"derived.db: {size / 1e6:,.0f} MB, {size / count:,.0f} bytes a message")
    await derived.stop()


async def on_postgres(url: str, count: int, each: int) -> None:
    store = postgres_record(url)
    await store.start()
    derived = postgres_derived(store, url)
    await derived.start()
    await measure(derived, count, each)
    await derived.stop()
    await store.stop()


async def measure(derived: Any, count: int, each: int) -> None:
    speech, dice = Speech(), random.Random(5)
    if (await derived.progress(TENANT)).seq < count:
        await fill(derived, speech, count)
    store = SimpleNamespace(rows=_no_rows)
    app = cast(AppState, SimpleNamespace(derived=derived, store=store, committer=Door()))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    first, _, _ = await ask(app, '~"warm up"', "hybrid", count)
    print(f"first question (vectors are read): {first:.2f} s")
    every: list[float] = []
    busy_all: list[float] = []
    for kind in KINDS:
        taken, worked, hits = [], [], 0
        for _ in range(each):
            seconds, busy, found = await ask(app, questions(speech, kind, dice), "hybrid", count)
            taken.append(seconds)
            worked.append(busy)
            hits += found
        every += taken
        busy_all += worked
        print(
            f"  {kind:24} p50 {_at(taken, 0.5):6.0f} ms  p95 {_at(taken, 0.95):6.0f} ms  "
            f"processor {_at(worked, 0.5):5.0f} ms  hits {hits / each:7.0f}"
        )
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"processor time: p50 {_at(busy_all, 0.5):.0f} ms, p95 {_at(busy_all, 0.95):.0f} ms")
    middle, high = _at(every, 0.5), _at(every, 0.95)
    print(f"hybrid over {count:,}: p50 {middle:.0f} ms, p95 {high:.0f} ms (≤ 300 wanted at 1,000,000)")
    print(f"memory: {after / 1024:.0f} MB at most, {before / 1024:.0f} before the first question")


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


def _at(taken: list[float], part: float) -> float:
    return sorted(taken)[min(len(taken) - 1, int(len(taken) * part))] * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.search", description=__doc__)
    parser.add_argument("--million", action="store_true", help="over 1,000,000 messages")
    parser.add_argument("--count", type=int, default=100_000, help="number of messages (default 100,000)")
    parser.add_argument("--folder", type=Path, help="keep the store there, and use what is there")
    parser.add_argument("--each", type=int, default=20, help="questions of each kind")
    parser.add_argument("--postgres", action="store_true", help="on PostgreSQL")
    asked = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    count = 1_000_000 if asked.million else asked.count
    if asked.postgres:
        with running() as url:
            migrate(url)
            asyncio.run(on_postgres(url, count, asked.each))
        return
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="search-", dir=OUT))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        asyncio.run(on_sqlite(folder, count, asked.each))
    finally:
        if asked.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
