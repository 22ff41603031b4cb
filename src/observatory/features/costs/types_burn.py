"""Burn rate: the average cost per minute over a window."""

from __future__ import annotations

from collections.abc import Mapping

MINUTE_NS = 60_000_000_000


# Burn rates are averages over these.
SHORT_MIN, LONG_MIN = 5, 60


def burn(by_minute: Mapping[int, float], now_ns: int, minutes: int) -> float:
    """Average per minute over the last `minutes`; the first, partial minute counts by its share."""
    this, passed = now_ns // MINUTE_NS, now_ns % MINUTE_NS / MINUTE_NS
    spent = sum(by_minute.get(this - back, 0.0) for back in range(minutes))
    return (spent + by_minute.get(this - minutes, 0.0) * (1 - passed)) / minutes
