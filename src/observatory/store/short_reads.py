"""Short reads on the event loop's own thread, for a database in a file.

To hand a query to a thread and to wake the loop with its answer costs more than most answers, and so does
SQLAlchemy's way to the driver. A statement that is composed once and kept, and was answered at once in a
thread, is compiled to the driver's text and asked on the loop's thread from then on.

Law: the loop is never kept waiting. An answer that took `LONG_S` sends its statement back to the threads, for
longer each time; in one turn of the loop no more than `TURN_S` is spent; a lock is not waited for. Whatever
fails here is asked again in a thread, which reports it.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Executable
from sqlalchemy.dialects import sqlite as sqlalchemy_sqlite
from sqlalchemy.engine.result import result_tuple
from sqlalchemy.exc import SQLAlchemyError

QUICK_S = 0.001  # in a thread, by SQLAlchemy
PROOFS = 2  # quick answers in a row before a statement is asked here
LONG_S = 0.003
TURN_S = 0.002
REST_S, MAX_REST_S = 1.0, 60.0
FORGIVEN = 100  # quick answers after which a long one counts as the first
CACHE_KB = 2_048
DIALECT = sqlalchemy_sqlite.dialect()
Processor = Callable[[Any], Any]


class Compiled:
    """A statement as the driver takes it, and what its values and rows go through."""

    def __init__(self, statement: Any) -> None:
        made = statement.compile(dialect=DIALECT, compile_kwargs={"render_postcompile": True})
        self.sql = str(made)
        self._names = tuple(made.positiontup or ())
        places = made.binds  # one that must be given has no value of its own
        self._given = {
            name: value
            for name, value in made.params.items()
            if name not in places or not places[name].required
        }
        self._in: Mapping[str, Processor] = made._bind_processors
        columns = made._result_columns
        self._out = [
            (place, process)
            for place, column in enumerate(columns)
            if (process := column.type.dialect_impl(DIALECT).result_processor(DIALECT, None)) is not None
        ]
        self._names_out = [column.keyname for column in columns]
        self._row = result_tuple(self._names_out)

    def bound(self, values: Mapping[str, Any]) -> list[Any]:
        found = []
        for name in self._names:
            value = values[name] if name in values else self._given[name]
            process = self._in.get(name)
            found.append(value if process is None else process(value))
        return found

    def rows(self, cursor: sqlite3.Cursor) -> list[Any]:
        if not self._names_out:  # a statement in words says by itself what it selects
            self._names_out = [column[0] for column in cursor.description]
            self._row = result_tuple(self._names_out)
        if not self._out:
            return [self._row(one) for one in cursor]
        made = []
        for one in cursor:
            cells = list(one)
            for place, process in self._out:
                cells[place] = process(cells[place])
            made.append(self._row(cells))
        return made


def _plain(_: Compiled, cursor: sqlite3.Cursor) -> list[Any]:
    return cursor.fetchall()


Made = Callable[[Compiled, sqlite3.Cursor], list[Any]]


class Standing:
    """What is known of one statement."""

    def __init__(self) -> None:
        self.compiled: Compiled | None = None
        self.proofs = self.quick = 0
        self.rest_s = REST_S
        self.rests_until = 0.0


class ShortReads:
    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        file: Callable[[], int] = lambda: 0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`file` says which one it is now: a connection to another is closed."""
        self._connect, self._file, self._clock = connect, file, clock
        self._connection: sqlite3.Connection | None = None
        self._opened = 0
        self._is_closed = False
        self._statements: WeakKeyDictionary[Executable, Standing] = WeakKeyDictionary()
        self._spent, self._is_counting = 0.0, False
        self.on_loop = self.in_threads = 0  # queries so far

    def fetch(self, statement: Executable, values: Mapping[str, Any]) -> list[Any] | None:
        """The rows; None when a thread is to be asked."""
        return self._asked(statement, values, Compiled.rows) if self._is_short(statement) else None

    def fetch_each(
        self, statements: Sequence[Executable], values: Mapping[str, Any]
    ) -> list[list[Any]] | None:
        """As the driver gives them, of all or of none."""
        if not all(self._is_short(one) for one in statements):
            return None
        found = []
        for one in statements:
            if (rows := self._asked(one, values, _plain)) is None:
                return None
            found.append(rows)
        return found

    def _is_short(self, statement: Executable) -> bool:
        known = self._statements.get(statement)
        return (
            known is not None
            and known.proofs >= PROOFS
            and known.rests_until <= self._clock()
            and self._spent < TURN_S
            and not self._is_closed
        )

    def _asked(self, statement: Executable, values: Mapping[str, Any], made: Made) -> list[Any] | None:
        known, began = self._statements[statement], self._clock()
        try:
            if known.compiled is None:
                known.compiled = Compiled(statement)
            cursor = self._opening().execute(known.compiled.sql, known.compiled.bound(values))
            found = made(known.compiled, cursor)
        except (sqlite3.Error, SQLAlchemyError, KeyError, OSError):
            self._drop()
            known.proofs = 0
            return None
        self.on_loop += 1
        self._judge(known, began)
        return found

    def took(self, statement: Executable, seconds: float) -> None:
        """A thread's answer: two quick ones in a row prove a statement that is kept."""
        self.in_threads += 1
        known = self._statements.get(statement)
        if known is None:
            known = self._statements[statement] = Standing()
        known.proofs = known.proofs + 1 if seconds < QUICK_S else 0

    def _judge(self, known: Standing, began: float) -> None:
        now = self._clock()
        self._count(now - began)
        if now - began < LONG_S:
            known.quick += 1
            if known.quick >= FORGIVEN:
                known.rest_s = REST_S
            return
        known.proofs = known.quick = 0
        known.rests_until = now + known.rest_s
        known.rest_s = min(MAX_REST_S, known.rest_s * 2)

    def _count(self, seconds: float) -> None:
        """What one turn of the loop has spent here."""
        self._spent += seconds
        if not self._is_counting:
            self._is_counting = True
            asyncio.get_running_loop().call_soon(self._begin_turn)

    def _begin_turn(self) -> None:
        self._spent, self._is_counting = 0.0, False

    def _opening(self) -> sqlite3.Connection:
        file = self._file()
        if self._connection is not None and self._opened != file:
            self._drop()
        if self._connection is None:
            self._connection, self._opened = self._connect(), file
            self._connection.execute("PRAGMA busy_timeout=0")
            self._connection.execute(f"PRAGMA cache_size=-{CACHE_KB}")
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        self._is_closed = True
        self._drop()
