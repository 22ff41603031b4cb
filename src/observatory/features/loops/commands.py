"""Changes the detectors' settings (ruling 16)."""

from __future__ import annotations

from typing import Any

from observatory.features.loops.types import merged_detectors
from observatory.pipeline import tenant_settings
from observatory.pipeline.state import Command, Principal
from observatory.pipeline.tenant_settings import DETECTORS


def change(principal: Principal, changes: dict[str, Any], now_ns: int) -> Command:
    return tenant_settings.change_settings(principal, DETECTORS, changes, merged_detectors, now_ns)
