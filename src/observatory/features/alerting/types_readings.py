"""A reading of a level that alert rules compare with their threshold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class LevelReading(NamedTuple):
    """A level. `certain`: it is a breach whatever the value is."""

    value: float
    figures: Mapping[str, str] = {}
    certain: bool = False


LevelReadings = dict[str, LevelReading]
