"""`python -m bench.infection [--steps N] [--among N]`: how long an infection and a blast take over so many.

A derived store on SQLite in which every step hangs on the one before it and adds a fact; every third repeats
the claim, so all of them are reached, two thirds weakly. Three shapes: all in one session, in 100 sessions
that the claim reaches at once, and in 100 sessions each of which only the one before leads to. With `--among`
they lie evenly among the steps of others, so many in all. Measured is what the doors do but for naming what
is shown: reading, the closure, totals, and the first page with its evidence. The issue wants ≤ 1 s over
100,000, of either, with 1,000,000 messages.
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
from observatory.derived.seen import DerivedWrite
from observatory.features.cascade.blast_radius import blast_totals
from observatory.features.cascade.routes import cascade_of
from observatory.features.cascade.types_rows import LocatedStep
from observatory.features.facts.routes_infection import infection_of
from observatory.features.facts.types import FactRow, fact_number
from observatory.http.app_state import AppState
from observatory.pipeline.state import Principal
from observatory.stores import sqlite_derived

TENANT = "tnt_bench"
PAGE, SHOWN, SESSIONS, AGENTS = 5_000, 200, 100, 97
SOURCE = FactRow(fact_number(1, 0), 1, 1, 1, None, 1, 1, None, None, None, "the claim")
SHAPES = ("one session", "100 sessions at once", "100 sessions in a row")


def _key(number: int) -> int:
    return number * 0x9E3779B97F4A7C15 % (1 << 62)


def session_of(shape: str, seq: int, count: int, stride: int) -> int:
    number = (seq - 1) // stride + 1
    if (seq - 1) % stride:
        return SESSIONS + 1 + seq % (200 * stride)
    return {
        SHAPES[0]: 1,
        SHAPES[1]: (number - 1) % SESSIONS + 1,
        SHAPES[2]: (number - 1) // max(1, count // SESSIONS) + 1,
    }[shape]


def rows(shape: str, seq: int, count: int, stride: int) -> dict[str, list[dict[str, Any]]]:
    """At regular intervals one of the steps that the claim reaches; those between are of others."""
    number = (seq - 1) // stride + 1
    if (seq - 1) % stride:
        width = 200 * stride  # sessions of others, at once: none of them hangs on a step the claim reached
        parent = seq - width
        used = parent if seq % 3 == 0 else 0
    else:
        parent = (number - (SESSIONS if shape == SHAPES[1] else 1) - 1) * stride + 1
        used = 0
        if number % 3 == 0:
            # In a row a claim is taken from the one who said it last, else from its source.
            used = ((number - 3 if shape == SHAPES[2] and number > 3 else 1) - 1) * stride + 1
    session = session_of(shape, seq, count, stride)
    from_no = session_of(shape, used, count, stride) if used > 0 else session
    made = _rows(seq, session, parent, used, from_no)
    for above, key, child, kind in ((parent, _key(parent), seq, "declared"), (used, 0, 0, "use")):
        from_no = session_of(shape, above, count, stride) if above > 0 else session
        if from_no != session:
            row = {"from_no": from_no, "session_no": session, "parent_key": key, "seq": child, "kind": kind}
            made.setdefault("insight_crossings", []).append(row)
    return made


def _rows(seq: int, session: int, parent: int, used: int, from_no: int) -> dict[str, list[dict[str, Any]]]:
    agent = seq % AGENTS + 1
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
    made: dict[str, list[dict[str, Any]]] = {"insight_steps": [step], "insight_facts": [fact]}
    if parent > 0:
        made["insight_links"] = [
            {"seq": seq, "parent_key": _key(parent), "kind": "declared", "session_no": session}
        ]
    if used > 0:
        made["insight_uses"] = [
            {
                "fact_id": fact_number(used, 0), "seq": seq, "kind": "exact", "weight": 1.0,
                "agent_no": agent, "session_no": session, "copy_id": fact_number(seq, 0), "from_no": from_no,
                "from_agent": used % AGENTS + 1,
            }
        ]  # fmt: skip
    return made


async def fill(derived: Any, shape: str, count: int, stride: int) -> None:
    for start in range(0, count * stride, PAGE):
        until = min(start + PAGE, count * stride)
        tables: dict[str, list[dict[str, Any]]] = {}
        for seq in range(start + 1, until + 1):
            for table, found in rows(shape, seq, count, stride).items():
                tables.setdefault(table, []).extend(found)
        puts = [DerivedWrite(table, one) for table, one in tables.items()]
        await derived.apply(TENANT, start, until, 1, puts, [])


async def measure(folder: Path, shape: str, asked: argparse.Namespace) -> None:
    count, each, stride = asked.steps, asked.each, max(1, asked.among // asked.steps)
    derived = sqlite_derived(folder / f"{shape} {count} {stride}.db")
    await derived.start()
    if (await derived.progress(TENANT)).seq < count * stride:
        await fill(derived, shape, count, stride)
    app = cast(AppState, SimpleNamespace(derived=derived, settings=SimpleNamespace(orphan_wait_s=0)))
    who = Principal(tenant_id=TENANT, role="operator", key_id="key_bench")
    taken, busy = [], []
    for _ in range(each):
        mark, worked = time.perf_counter(), time.process_time()
        found, truncated = await infection_of(app, who, SOURCE)
        read = time.process_time() - worked
        infected = found.infected()
        found.holders(), found.later(), found.spend(True), found.spend(False)
        found.with_evidence(infected[:SHOWN])
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
    await blast(app, who, shape, each)
    await derived.stop()


async def blast(app: AppState, who: Principal, shape: str, each: int) -> None:
    taken, busy = [], []
    for _ in range(each):
        mark, worked = time.perf_counter(), time.process_time()
        cascade, truncated = await cascade_of(app, who, LocatedStep(1, _key(1), -_key(1), 1, 1, 1))
        found = cascade.settle()
        order = sorted(found.depth)
        blast_totals(cascade, found)
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
    parser.add_argument("--steps", type=int, default=100_000, help="number of steps (default 100,000)")
    parser.add_argument(
        "--among", type=int, default=0, help="among this many steps of others (default: none)"
    )
    parser.add_argument("--folder", type=Path, help="keep the stores there, and use what is there")
    parser.add_argument("--shape", choices=SHAPES, help="only this one")
    parser.add_argument("--each", type=int, default=3, help="how often each shape is asked for")
    asked = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)  # as the gateway does
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="infection-", dir=OUT))
    folder.mkdir(exist_ok=True)
    try:
        for shape in (asked.shape,) if asked.shape else SHAPES:
            asyncio.run(measure(folder, shape, asked))
    finally:
        if asked.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
