"""Rows ↔ the memory's structs, shared by both databases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from sqlalchemy import Table

from observatory.state import Agent, Member, Session, Write
from observatory.store import tables


def _columns(table: Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.c if column.name != "tenant_id")


AGENT_COLUMNS, SESSION_COLUMNS, MEMBER_COLUMNS = map(
    _columns, (tables.agents, tables.sessions, tables.members)
)
# What later messages change; the rest of a row is settled when it is made.
AGENT_CHANGES, SESSION_CHANGES = AGENT_COLUMNS[2:], ("last_seq", "last_ns", "messages")
MEMBER_CHANGES = MEMBER_COLUMNS[2:]
_of_agent, _of_session, _of_member = (
    attrgetter(*AGENT_COLUMNS),
    attrgetter(*SESSION_COLUMNS),
    attrgetter(*MEMBER_COLUMNS),
)

# Keys and signed-in browsers that may still act; a tenant and an id list are added.
GOOD_KEYS = (
    "SELECT k.key_id FROM (SELECT tenant_id, key_id, user_id, revoked_ns FROM api_keys UNION ALL "
    "SELECT tenant_id, login_id, user_id, ended_ns FROM logins) k LEFT JOIN users u "
    "ON u.tenant_id = k.tenant_id AND u.user_id = k.user_id "
    "WHERE k.revoked_ns IS NULL AND u.disabled_ns IS NULL"
)


def agent_of(row: Sequence[Any]) -> Agent:
    return Agent(**dict(zip(AGENT_COLUMNS, row, strict=True)))


def agent_row(tenant_id: str, agent: Agent) -> tuple[Any, ...]:
    return (tenant_id, *_of_agent(agent))


def session_of(row: Sequence[Any]) -> Session:
    return Session(**dict(zip(SESSION_COLUMNS, row, strict=True)))


def session_row(tenant_id: str, session: Session) -> tuple[Any, ...]:
    return (tenant_id, *_of_session(session))


def member_of(row: Sequence[Any]) -> Member:
    return Member(**dict(zip(MEMBER_COLUMNS, row, strict=True)))


def member_row(tenant_id: str, member: Member) -> tuple[Any, ...]:
    return (tenant_id, *_of_member(member))


def write_sql(write: Write, mark: Callable[[int], str]) -> tuple[str, list[Any]]:
    """One statement for a rare row. Names come from our own code; values are always bound."""
    table = tables.SMALL[write.table]
    columns = list(write.values)
    unknown = [column for column in (*columns, *(write.where or {})) if column not in table.c]
    if unknown:
        raise KeyError(f"{write.table} has no column {unknown[0]}")
    values = list(write.values.values())
    if write.where is not None:
        sets = ", ".join(f"{column}={mark(i)}" for i, column in enumerate(columns, 1))
        tests = " AND ".join(f"{column}={mark(i)}" for i, column in enumerate(write.where, len(columns) + 1))
        return f"UPDATE {write.table} SET {sets} WHERE {tests}", values + list(write.where.values())
    marks = ", ".join(mark(i) for i in range(1, len(columns) + 1))
    sql = f"INSERT INTO {write.table} ({', '.join(columns)}) VALUES ({marks})"
    if write.key:
        sets = ", ".join(f"{column}=excluded.{column}" for column in columns if column not in write.key)
        sql += f" ON CONFLICT ({', '.join(write.key)}) DO UPDATE SET {sets}"
    return sql, values
