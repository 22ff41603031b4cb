"""Short questions are asked on the event loop's thread, and the loop is never kept waiting (S1205)."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Boolean, Column, Float, LargeBinary, MetaData, Table, Text, bindparam, select, text

from observatory.store.lists import any_named
from observatory.store.short_reads import LONG_S, MAX_REST_S, QUICK_S, REST_S, TURN_S, ShortReads

THINGS = Table(
    "things",
    MetaData(),
    Column("name", Text),
    Column("is_big", Boolean),
    Column("raw", LargeBinary),
    Column("size", Float),
)
QUERY = select(THINGS).where(THINGS.c.name == bindparam("wanted"))
ROW = ("a", True, b"\x00\xff", 0.1)


class Clock:
    """Each look at it is so much later: what one answer takes."""

    def __init__(self) -> None:
        self.now, self.step = 100.0, 0.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def file_of(path: Path) -> Path:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE things (name TEXT, is_big BOOLEAN, raw BLOB, size FLOAT)")
    connection.execute("INSERT INTO things VALUES (?, ?, ?, ?)", ROW)
    connection.commit()
    connection.close()
    return path


def reads_of(path: Path, clock: Clock, file: Callable[[], int] = lambda: 0) -> ShortReads:
    return ShortReads(lambda: sqlite3.connect(path, isolation_level=None), file, clock)


def proven(reads: ShortReads, *statements: Any) -> ShortReads:
    for statement in statements or (QUERY,):
        reads.took(statement, QUICK_S / 2)
        reads.took(statement, QUICK_S / 2)
    return reads


def test_a_question_is_asked_here_once_two_quick_answers_proved_it_s1205(tmp_path: Path) -> None:
    async def run() -> None:
        reads = reads_of(file_of(tmp_path / "a.db"), Clock())
        assert reads.fetch(QUERY, {"wanted": "a"}) is None, "nothing is known of it"
        reads.took(QUERY, QUICK_S / 2)
        reads.took(QUERY, QUICK_S * 2)
        reads.took(QUERY, QUICK_S / 2)
        assert reads.fetch(QUERY, {"wanted": "a"}) is None, "two in a row, not two in all"
        reads.took(QUERY, QUICK_S / 2)
        found = reads.fetch(QUERY, {"wanted": "a"})
        assert found is not None
        assert [tuple(row) for row in found] == [ROW]
        assert found[0]._mapping["is_big"] is True
        assert reads.fetch(QUERY, {"wanted": "b"}) == []
        assert (reads.on_loop, reads.in_threads) == (2, 4)

    asyncio.run(run())


def test_rows_lists_and_statements_in_words_come_as_a_thread_gives_them_s1205(tmp_path: Path) -> None:
    async def run() -> None:
        listed = select(THINGS.c.name).where(any_named(THINGS.c.name, "wanted"))
        worded = text("SELECT name, raw FROM things WHERE name = :wanted")
        reads = proven(reads_of(file_of(tmp_path / "a.db"), Clock()), QUERY, listed, worded)
        [row] = reads.fetch(listed, {"wanted": ["b", "a"]}) or []
        assert row[0] == "a"
        [row] = reads.fetch(worded, {"wanted": "a"}) or []
        assert dict(row._mapping) == {"name": "a", "raw": b"\x00\xff"}
        assert reads.fetch_each([QUERY, worded], {"wanted": "a"}) == [[("a", 1, *ROW[2:])], [ROW[::2][:2]]]
        assert reads.fetch_each([QUERY, select(THINGS)], {"wanted": "a"}) is None, "all of them or none"

    asyncio.run(run())


def test_a_long_answer_goes_back_to_the_threads_for_longer_each_time_s1205(tmp_path: Path) -> None:
    async def run() -> None:
        clock = Clock()
        reads = reads_of(file_of(tmp_path / "a.db"), clock)
        rest_s = REST_S
        for _ in range(8):
            proven(reads)
            clock.step = LONG_S * 1.01
            assert reads.fetch(QUERY, {"wanted": "a"})
            clock.step = 0.0
            await asyncio.sleep(0)
            proven(reads)
            clock.now += rest_s - 0.1
            assert reads.fetch(QUERY, {"wanted": "a"}) is None, "it rests"
            clock.now += 0.2
            assert reads.fetch(QUERY, {"wanted": "a"})
            rest_s = min(MAX_REST_S, rest_s * 2)

    asyncio.run(run())


def test_one_turn_of_the_loop_spends_little_here_s1205(tmp_path: Path) -> None:
    async def run() -> None:
        clock = Clock()
        reads = proven(reads_of(file_of(tmp_path / "a.db"), clock))
        clock.step = TURN_S / 8
        asked = 0
        while reads.fetch(QUERY, {"wanted": "a"}) is not None:
            asked += 1
        assert 0 < asked <= 9
        await asyncio.sleep(0)
        assert reads.fetch(QUERY, {"wanted": "a"}), "the next turn may again"

    asyncio.run(run())


def test_what_fails_here_is_left_to_a_thread_and_another_file_is_opened_s1205(tmp_path: Path) -> None:
    async def run() -> None:
        path, file = tmp_path / "a.db", 1
        reads = proven(reads_of(file_of(path), Clock(), lambda: file))
        assert reads.fetch(QUERY, {"wanted": "a"})
        locked = sqlite3.connect(path, isolation_level=None)
        locked.execute("BEGIN EXCLUSIVE")
        assert reads.fetch(QUERY, {"wanted": "a"}) is None, "a lock is not waited for"
        locked.execute("ROLLBACK")
        locked.close()
        proven(reads)
        assert reads.fetch(QUERY, {"other": "a"}) is None, "a value is missing"
        path.unlink()
        file_of(path)
        sqlite3.connect(path).execute("UPDATE things SET name = 'a'").connection.commit()
        file = 2
        proven(reads)
        assert reads.fetch(QUERY, {"wanted": "a"}), "a new file in the place of the old one"
        reads.close()
        assert reads.fetch(QUERY, {"wanted": "a"}) is None

    asyncio.run(run())
