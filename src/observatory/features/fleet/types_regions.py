"""Places of regions on the map, as events store them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

REGIONS = "regions"


def read_back(place: Mapping[str, Any]) -> dict[str, Any]:
    """A place as an event stores it, with its coordinates converted back to numbers."""
    return {name: float(value) if name in ("lat", "lon") else value for name, value in place.items()}
