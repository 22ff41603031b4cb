"""`python -m bench.infection [--steps N]`: how long an infection and a blast take over so many steps.

A derived store on SQLite in which every step hangs on the one before it and adds a fact; every third repeats
the claim, so all of them are reached, two thirds weakly. Three shapes: all in one session, in 100 sessions
that the claim reaches at once, and in 100 sessions each of which only the one before leads to. Measured is
what the doors do but for naming what is shown: reading, the closure, totals, and the first page with its
evidence. The issue wants ≤ 1 s over 100,000, of either.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import shutil
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from bench.report import OUT
from observatory.api.cascade import cascade_of, summed
from observatory.api.house import House
from observatory.api.infection import infection_of
from observatory.insight.cascade import Spot
from observatory.insight.facts import FactRow, fact_number
from observatory.insight.seen import Put
from observatory.state import Principal
from observatory.store.derived_sqlite import SqliteDerived

TENANT = "tnt_bench"
PAGE, SHOWN, SESSIONS, AGENTS = 5_000, 200, 100, 97
SOURCE = FactRow(fact_number(1, 0), 1, 1, 1, None, 1, 1, None, None, None, "the claim")
SHAPES = ("one session", "100 sessions at once", "100 sessions in a row")


def _key(number: int) -> int:
    return number * 0x9E3779B97F4A7C15 % (1 << 62)


def rows(shape: str, seq: int, count: int) -> dict[str, dict[str, Any]]:
    each = max(1, count // SESSIONS)
    session = {SHAPES[0]: 1, SHAPES[1]: (seq - 1) % SESSIONS + 1, SHAPES[2]: (seq - 1) // each + 1}[shape]
    agent = seq % AGENTS + 1
    parent = seq - (SESSIONS if shape == SHAPES[1] else 1)
    step = {
        "seq": seq, "name_key": _key(seq), "span_key": -_key(seq), "session_no": session, "agent_no": agent,
        "recipient_no": 0, "message_type": "decision_log", "state": "forwarded", "status": "success",
        "tool": "search", "cost": 0.01, "reported": None, "tokens": 100, "confidence": None, "entropy": None,
        "terminal": 0, "cluster_id": None, "at_ns": seq,
    }  # fmt: skip
    fact = {
        "fact_id": fact_number(seq, 0), "seq": seq, "session_no": session, "agent_no": agent,
        "cluster_id": None, "at_ns": seq, "fact_key": _key(seq), "subject_key": None, "subject": None,
        "value": None, "text": f"what step {seq} found",
    }  # fmt: skip
    made: dict[str, dict[str, Any]] = {"insight_steps": step, "insight_facts": fact}
    if parent > 0:
        made["insight_links"] = {
            "seq": seq, "parent_key": _key(parent), "kind": "declared", "session_no": session
        }  # fmt: skip
    if seq % 3 == 0:
        # In a row a claim is taken from the one who said it last, else from its source.
        used = seq - 3 if shape == SHAPES[2] and seq > 3 else 1
        made["insight_uses"] = {
            "fact_id": fact_number(used, 0), "seq": seq, "kind": "exact", "weight": 1.0, "agent_no": agent,
            "session_no": session, "copy_id": fact_number(seq, 0),
        }  # fmt: skip
    return made


async def fill(derived: SqliteDerived, shape: str, count: int) -> None:
    for start in range(0, count, PAGE):
        until = min(start + PAGE, count)
        tables: dict[str, list[dict[str, Any]]] = {}
        for seq in range(start + 1, until + 1):
            for table, row in rows(shape, seq, count).items():
                tables.setdefault(table, []).append(row)
        puts = [Put(table, found) for table, found in tables.items()]
        await derived.apply(TENANT, start, until, 1, puts, [])


async def measure(folder: Path, shape: str, count: int, each: int) -> None:
    derived = SqliteDerived(folder / f"{shape}.db")
    await derived.start()
    await fill(derived, shape, count)
    house = cast(House, SimpleNamespace(derived=derived, settings=SimpleNamespace(orphan_wait_s=0)))
    who = Principal(tenant_id=TENANT, role="operator", key_id="key_bench")
    taken, busy = [], []
    for _ in range(each):
        mark, worked = time.perf_counter(), time.process_time()
        found, truncated = await infection_of(house, who, SOURCE)
        read = time.process_time() - worked
        infected = found.infected()
        found.holders(), found.later(), found.spend(True), found.spend(False)
        found.told(infected[:SHOWN])
        taken.append(time.perf_counter() - mark)
        busy.append(time.process_time() - worked)
    strong, _ = found.spend(True)
    weak, _ = found.spend(False)
    whole = "truncated" if truncated else "whole"
    print(
        f"{shape:24} {len(infected):,} steps ({strong:,} strong, {weak:,} weak, {whole}): "
        f"{min(busy):.2f} s of processor (closure {read:.2f}), {min(taken):.2f} s in all",
        flush=True,
    )
    await blast(house, who, shape, each)
    await derived.stop()


async def blast(house: House, who: Principal, shape: str, each: int) -> None:
    taken, busy = [], []
    for _ in range(each):
        mark, worked = time.perf_counter(), time.process_time()
        cascade, truncated = await cascade_of(house, who, Spot(1, _key(1), -_key(1), 1, 1, 1))
        found = cascade.settle()
        order = sorted(found.depth)
        summed(cascade, found, order)
        cascade.evidence(found, order[:SHOWN])
        taken.append(time.perf_counter() - mark)
        busy.append(time.process_time() - worked)
    whole = "truncated" if truncated else "whole"
    print(
        f"{shape:24} blast: {len(order):,} steps ({len(found.strong):,} strong, {whole}): "
        f"{min(busy):.2f} s of processor, {min(taken):.2f} s in all",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.infection", description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000, help="so many steps (default 100,000)")
    parser.add_argument("--each", type=int, default=3, help="how often each shape is asked for")
    asked = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)  # as the gateway does
    folder = Path(tempfile.mkdtemp(prefix="infection-", dir=OUT))
    try:
        for shape in SHAPES:
            asyncio.run(measure(folder, shape, asked.steps, asked.each))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
