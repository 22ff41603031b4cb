"""Short reads on the event loop's own thread, for a database in a file.

Passing a query to a thread and waking the loop costs more than executing most queries, and so does
SQLAlchemy's execution. A prebuilt statement that was fast in a thread is compiled to SQL and executed on the
loop's thread from then on.

Law: the loop is never blocked. A query that took `LONG_S` moves its statement back to the threads, for longer
each time; in one iteration of the loop no more than `TURN_S` is spent; locks are not waited for. A query that
fails here is executed again in a thread, which reports the error.
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
PROOFS = 2  # fast executions in a row before a statement is executed here
LONG_S = 0.003
TURN_S = 0.002
REST_S, MAX_REST_S = 1.0, 60.0
FORGIVEN = 100  # fast executions after which the rest time is reset
CACHE_KB = 2_048
DIALECT = sqlalchemy_sqlite.dialect()
Processor = Callable[[Any], Any]


class Compiled:
    """A compiled statement with the processors of its parameters and rows."""

    def __init__(self, statement: Any) -> None:
        made = statement.compile(dialect=DIALECT, compile_kwargs={"render_postcompile": True})
        self.sql = str(made)
        self._names = tuple(made.positiontup or ())
        places = made.binds  # required parameters have no value yet
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
        if not self._names_out:  # the columns of a text statement are known only now
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


class StatementTiming:
    """The timing state of one statement."""

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
        """`file` identifies the current file: a connection to a replaced one is closed."""
        self._connect, self._file, self._clock = connect, file, clock
        self._connection: sqlite3.Connection | None = None
        self._opened = 0
        self._is_closed = False
        self._statements: WeakKeyDictionary[Executable, StatementTiming] = WeakKeyDictionary()
        self._spent, self._is_counting = 0.0, False
        self.on_loop = self.in_threads = 0  # queries so far

    def fetch(self, statement: Executable, values: Mapping[str, Any]) -> list[Any] | None:
        """The rows; None when the query must be executed in a thread."""
        return self._asked(statement, values, Compiled.rows) if self._is_short(statement) else None

    def fetch_each(
        self, statements: Sequence[Executable], values: Mapping[str, Any]
    ) -> list[list[Any]] | None:
        """The plain rows of all statements, or None."""
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
        self._update_timing(known, began)
        return found

    def took(self, statement: Executable, seconds: float) -> None:
        """Report a thread's execution time: two fast ones in a row qualify a prebuilt statement."""
        self.in_threads += 1
        known = self._statements.get(statement)
        if known is None:
            known = self._statements[statement] = StatementTiming()
        known.proofs = known.proofs + 1 if seconds < QUICK_S else 0

    def _update_timing(self, known: StatementTiming, began: float) -> None:
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
        """Add to the time spent here in this iteration of the loop."""
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
