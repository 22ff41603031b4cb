"""Cost grids, burn rates and budget outlooks for the cost pages, from sums of whole minutes (S235–S241).

Pure. A grid has a bounded number of rows, the most expensive, and one for all others, so that every column
adds up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from observatory.features.costs.types_burn import LONG_MIN, MINUTE_NS, SHORT_MIN, burn
from observatory.features.fleet.types_traffic import Key
from observatory.protocol.clock import from_ns

Row = dict[str, Any]
Bucket = Literal["minute", "hour"]
WIDTH: dict[str, int] = {"minute": 1, "hour": 60}
# Maximum number of columns (three hours of minutes, a week of hours), and the default.
MAX_COLUMNS: dict[str, int] = {"minute": 180, "hour": 168}
DEFAULT_COLUMNS: dict[str, int] = {"minute": 60, "hour": 24}
DIGITS = 6


def money(amount: float) -> float:
    """For display: a millionth is exact enough, and sums do not end in 0000004."""
    return round(amount, DIGITS) + 0.0


def grid(
    names: Mapping[Key, str | None],
    cells: Iterable[tuple[Key, int, float]],
    columns: Sequence[int],
    sums: Mapping[int, float],
    width: int,
) -> Row:
    """`names` in row order; `columns` are bucket numbers; `sums` are the totals of each bucket."""
    place = {column: number for number, column in enumerate(columns)}
    values = {key: [0.0] * len(columns) for key in names}
    for key, column, cost in cells:
        if key in values and column in place:
            values[key][place[column]] += cost
    totals = [sums.get(column, 0.0) for column in columns]
    others = [
        max(0.0, total - sum(row[number] for row in values.values())) for number, total in enumerate(totals)
    ]
    return {
        "columns": [from_ns(column * width * MINUTE_NS) for column in columns],
        "rows": [_line(names[key], row) for key, row in values.items()],
        "others": [money(cost) for cost in others],
        "totals": [money(total) for total in totals],
        "max": money(max((cost for row in values.values() for cost in row), default=0.0)),
        "total": money(sum(totals)),
    }


def _line(name: str | None, row: Sequence[float]) -> Row:
    return {"id": name, "total": money(sum(row)), "values": [money(cost) for cost in row]}


def rates(by_minute: Mapping[int, float], now_ns: int) -> Row:
    return {
        "per_min_5m": money(burn(by_minute, now_ns, SHORT_MIN)),
        "per_min_1h": money(burn(by_minute, now_ns, LONG_MIN)),
    }


def time_to(cap: float | None, spent: float, per_min: float) -> float | None:
    """Seconds until a cap at this rate: 0 when it is reached, None without a cap or while nothing is
    spent."""
    if cap is None:
        return None
    if spent >= cap:
        return 0.0
    return round((cap - spent) / per_min * 60, 1) if per_min > 0 else None


def outlook(budget: Mapping[str, Any], by_minute: Mapping[int, float], now_ns: int) -> Row:
    """One budget with its rates, and when each of its caps is reached at the current rate."""
    fast = burn(by_minute, now_ns, SHORT_MIN)
    soft_s, hard_s = (time_to(budget[cap], budget["spent"], fast) for cap in ("soft", "hard"))
    return {
        **{name: budget[name] for name in ("budget_id", "scope", "target", "period", "soft", "hard")},
        "whose": budget["spender"] if budget["target"] == "*" else budget["target"],
        "spent": money(budget["spent"]),
        "remaining": budget["remaining"],
        "share": budget["share"],
        "resets_at": budget["resets_at"],
        **rates(by_minute, now_ns),
        "soft_in_s": soft_s,
        "hard_in_s": hard_s,
        "soft_at": _when(soft_s, now_ns),
        "hard_at": _when(hard_s, now_ns),
    }


def _when(seconds: float | None, now_ns: int) -> str | None:
    # A cap that is years away is never reached: times end in 2261.
    if seconds is None or seconds > 10 * 365 * 86_400:
        return None
    return from_ns(now_ns + int(seconds * 1_000_000_000))


def urgency(row: Mapping[str, Any]) -> tuple[float, float]:
    """The budget whose cap is reached first comes first; idle ones by how much of them is used."""
    times = [seconds for seconds in (row["hard_in_s"], row["soft_in_s"]) if seconds is not None]
    return (min(times) if times else float("inf"), -row["share"])
