"""Converts rows to the structs of the batch state and back, shared by both databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any

from sqlalchemy import Table

from observatory.pipeline.rows import (
    AgentRow,
    BreakerRow,
    DeliveryRow,
    HoldRow,
    MemberRow,
    RowWrite,
    SessionRow,
)
from observatory.store import tables
from observatory.store.lists import padded, portioned


def _columns(table: Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.c if column.name != "tenant_id")


AGENT_COLUMNS, SESSION_COLUMNS, MEMBER_COLUMNS, HOLD_COLUMNS, BREAKER_COLUMNS = map(
    _columns, (tables.agents, tables.sessions, tables.members, tables.holds, tables.breakers)
)
DELIVERY_COLUMNS = (
    "sequence_number", "agent_no", "sender_no", "session_no", "kind", "address", "message_seq", "body",
    "state", "created_ns",
)  # fmt: skip
# Columns that later messages change; the others are final when the row is created.
AGENT_CHANGES = AGENT_COLUMNS[2:]
SESSION_CHANGES = (
    "last_seq", "last_ns", "messages", "held", "agents", "cost", "spent", "rejected", "entropy",
    "entropy_window", "severity", "alert_seq", "alert_count", "loop_ns", "loop_seq", "loop_detector",
    "loop_agent_no", "loops",
)  # fmt: skip
MEMBER_CHANGES = MEMBER_COLUMNS[2:]
HOLD_CHANGES = (
    "recipient", "state", "gate", "digest", "rewrite_seq", "approvals", "ended_ns", "ended_by", "released_seq"
)  # fmt: skip
BREAKER_CHANGES = BREAKER_COLUMNS[1:]
_of_agent, _of_session, _of_member, _of_hold, _of_breaker, _of_delivery = (
    attrgetter(*columns)
    for columns in (
        AGENT_COLUMNS,
        SESSION_COLUMNS,
        MEMBER_COLUMNS,
        HOLD_COLUMNS,
        BREAKER_COLUMNS,
        DELIVERY_COLUMNS,
    )
)
# Keys of rarely used tables: rows are selected by the first column and stored under it, or under the pair.
ROW_KEYS: dict[str, tuple[str, ...]] = {
    "pulses": ("agent_no",),
    "decisions": ("decision_id",),
    "kill_switches": ("kill_id",),
    "policies": ("rule_id",),
    "budgets": ("budget_id",),
    "spend": ("budget_id",),
    "routes": ("capability",),
    "interventions": ("intervention_id",),
    "users": ("user_id",),
    "annotations": ("annotation_id",),
    "fact_marks": ("mark_id",),
    "thought_sessions": ("session_id",),
    "thought_tasks": ("task_key",),
    "thought_records": ("record_id",),
    "checkpoints": ("previous_size",),
    "holds": ("sequence_number",),
    "log_keys": ("tenant_id", "key_id"),
    "peers": ("tenant_id", "peer_id"),
    "peer_heads": ("origin",),
    "cosignatures": ("size", "name"),
    "exporters": ("tenant_id", "exporter_id"),
    "knobs": ("name",),
    "saved_views": ("owner_id", "view_id"),
    "deliveries": ("sequence_number", "agent_no"),
    "rewrites": ("message_seq", "sequence_number"),
    "instructions": ("agent_type", "version"),
    "webhook_endpoints": ("tenant_id", "endpoint_id"),
    "hooks": ("tenant_id", "hook_id"),
    "hook_calls": ("call_id",),
    "hook_deliveries": ("delivery_key",),
    "webhook_secrets": ("endpoint_id", "secret_no"),
    "webhook_deliveries": ("delivery_id",),
    "jobs": ("job_id",),
    "job_runs": ("run_id",),
    "dead_letters": ("letter_id",),
    "alert_rules": ("tenant_id", "rule_id"),
    "alert_states": ("state_key",),
    "agent_certificates": ("entity_id",),
    "grants": ("entity_id", "address"),
    "certificates": ("tenant_id", "slot"),
    "refusals": ("key_id", "kind"),
}
# Of these tables only rows that are not removed are loaded: bounds what a command reads under the lock.
LIVE_ONLY = frozenset({"saved_views", "peers", "hooks", "webhook_endpoints", "alert_rules", "exporters"})

# Valid keys and sign-ins (a sign-in is valid as long as its key); tenant and id list are added.
GOOD_KEYS = (
    "SELECT k.key_id FROM (SELECT tenant_id, key_id, user_id, revoked_ns FROM api_keys UNION ALL "
    "SELECT l.tenant_id, l.login_id, l.user_id, COALESCE(l.ended_ns, (SELECT a.revoked_ns FROM api_keys a "
    "WHERE a.tenant_id = l.tenant_id AND a.key_id = l.key_id)) FROM logins l) k LEFT JOIN users u "
    "ON u.tenant_id = k.tenant_id AND u.user_id = k.user_id "
    "WHERE k.revoked_ns IS NULL AND u.disabled_ns IS NULL"
)


def agent_of(row: Sequence[Any]) -> AgentRow:
    return AgentRow(**dict(zip(AGENT_COLUMNS, row, strict=True)))


def agent_row(tenant_id: str, agent: AgentRow) -> tuple[Any, ...]:
    return (tenant_id, *_of_agent(agent))


def session_of(row: Sequence[Any]) -> SessionRow:
    return SessionRow(**dict(zip(SESSION_COLUMNS, row, strict=True)))


def session_row(tenant_id: str, session: SessionRow) -> tuple[Any, ...]:
    return (tenant_id, *_of_session(session))


def member_of(row: Sequence[Any]) -> MemberRow:
    return MemberRow(**dict(zip(MEMBER_COLUMNS, row, strict=True)))


def member_row(tenant_id: str, member: MemberRow) -> tuple[Any, ...]:
    return (tenant_id, *_of_member(member))


def hold_of(row: Sequence[Any]) -> HoldRow:
    return HoldRow(**dict(zip(HOLD_COLUMNS, row, strict=True)))


def hold_row(tenant_id: str, hold: HoldRow) -> tuple[Any, ...]:
    return (tenant_id, *_of_hold(hold))


def breaker_of(row: Sequence[Any]) -> BreakerRow:
    return BreakerRow(**dict(zip(BREAKER_COLUMNS, row, strict=True)))


def breaker_row(tenant_id: str, breaker: BreakerRow) -> tuple[Any, ...]:
    return (tenant_id, *_of_breaker(breaker))


def delivery_row(tenant_id: str, delivery: DeliveryRow) -> tuple[Any, ...]:
    return (tenant_id, *_of_delivery(delivery))


def write_sql(write: RowWrite, mark: Callable[[int], str]) -> Iterator[tuple[str, list[Any]]]:
    """The statements of a write: one, or as many as `portioned` returns.

    Table and column names come from this code base; values are always bound.
    """
    table = tables.SMALL[write.table]
    columns = list(write.values)
    unknown = [column for column in (*columns, *(write.where or {})) if column not in table.c]
    if unknown:
        raise KeyError(f"{write.table} has no column {unknown[0]}")
    if write.where is not None:
        yield _update(write.table, write.values, write.where, mark)
        return
    rows = iter((write.values, *write.more))
    for size in portioned(1 + len(write.more)):
        values = [row[column] for row in islice(rows, size) for column in columns]
        yield _insert(write, columns, size, mark), values


def _update(
    table: str, new: dict[str, Any], where: dict[str, Any], mark: Callable[[int], str]
) -> tuple[str, list[Any]]:
    values = list(new.values())
    sets = ", ".join(f"{column}={mark(i)}" for i, column in enumerate(new, 1))
    tests = []
    for column, wanted in where.items():
        many = padded(wanted) if isinstance(wanted, list) else [wanted]
        marks = ", ".join(mark(i) for i in range(len(values) + 1, len(values) + len(many) + 1))
        tests.append(f"{column} IN ({marks})" if isinstance(wanted, list) else f"{column}={marks}")
        values += many
    return f"UPDATE {table} SET {sets} WHERE {' AND '.join(tests)}", values


def _insert(write: RowWrite, columns: list[str], rows: int, mark: Callable[[int], str]) -> str:
    marks = []
    for at in range(rows):
        first = at * len(columns) + 1
        marks.append(f"({', '.join(mark(i) for i in range(first, first + len(columns)))})")
    sql = f"INSERT INTO {write.table} ({', '.join(columns)}) VALUES {', '.join(marks)}"
    if write.key:
        sets = ", ".join(f"{column}=excluded.{column}" for column in columns if column not in write.key)
        sql += f" ON CONFLICT ({', '.join(write.key)}) DO UPDATE SET {sets}"
    return sql
