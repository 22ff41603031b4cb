"""Periods of budgets, and what is spent in the current one."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from observatory.protocol.tenant_config import Budget, Period

SECOND = 1_000_000_000


DAY = 86_400 * SECOND


def current_spend(budget: Budget, row: dict[str, Any] | None, now_ns: int) -> tuple[float, int, int | None]:
    """(spent, start of the period, number of the warning) as of now: a new period starts at zero."""
    start = 0 if budget.period == "none" else period_start(budget.period, now_ns)
    if row is None or row["period_ns"] < start:
        return 0.0, start, None
    return row["spent"], row["period_ns"], row["soft_seq"]


@lru_cache(maxsize=16)
def period_start(period: Period, now_ns: int) -> int:
    """When the current period began, in UTC; 0 for a lifetime budget. A batch shares its time."""
    if period == "none":
        return 0
    if period == "daily":
        return now_ns - now_ns % DAY
    moment = datetime.fromtimestamp(now_ns // SECOND, UTC)
    return int(datetime(moment.year, moment.month, 1, tzinfo=UTC).timestamp()) * SECOND
