"""What the long fault runs share: a gateway to kill, a word for a broken promise, a table, a command line."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from bench.evidence import Evidence, PostgresEvidence, SqliteEvidence
from bench.gateway import Gateway
from bench.postgres import database
from bench.report import OUT


class Lost(Exception):
    """A promise was broken; the sentence says which."""


class Tabled(Protocol):
    """What came of a run."""

    def table(self) -> str: ...


def table(counts: dict[str, int], seconds: dict[str, str]) -> str:
    rows = {name: f"{value:>10,}" for name, value in counts.items()}
    rows |= {name: f"{value:>8} s" for name, value in seconds.items()}
    return "\n".join(f"{name:<52}{value}" for name, value in rows.items())


@contextlib.contextmanager
def arena(kind: str, folder: Path, made: type[Gateway] = Gateway) -> Iterator[tuple[Gateway, Evidence]]:
    """A gateway on an empty database of that kind, and the outsider's view of it."""
    if kind == "sqlite":
        gateway = made(folder)
        try:
            yield gateway, SqliteEvidence(folder / "observatory.db")
        finally:
            gateway.kill()
        return
    with database() as url:
        gateway = made(folder, db=url)
        try:
            yield gateway, PostgresEvidence(url)
        finally:
            gateway.kill()


def words(module: str, doc: str | None, cycles: int) -> argparse.ArgumentParser:
    """The options of every long run."""
    received = (doc or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=received)
    parser.add_argument("--cycles", type=int, default=cycles)
    parser.add_argument("--db", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    return parser


def conduct(name: str, asked: argparse.Namespace, run: Callable[[Gateway, Evidence], Tabled]) -> None:
    """One run in a folder of its own, which is kept when a promise was broken."""
    print(f"seed {asked.seed}", flush=True)
    OUT.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=OUT))
    try:
        with arena(asked.db, folder) as (gateway, evidence):
            outcome = run(gateway, evidence)
    except Lost as lost:
        print(f"\nFAILED: {lost}\nthe folder is kept: {folder}", file=sys.stderr)
        sys.exit(1)
    print("\n" + outcome.table())
    shutil.rmtree(folder, ignore_errors=True)


def tell(text: str) -> None:
    """As it happens."""
    print(text, flush=True)
