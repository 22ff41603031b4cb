"""Settings for decisions taken at a deadline: which options agents may name (S1122)."""

from __future__ import annotations

from typing import Any

from observatory.features.decisions.types import DECISION_SETTINGS, merged_decision_settings
from observatory.pipeline import tenant_settings
from observatory.pipeline.state import Command, Principal


def change(who: Principal, changes: dict[str, Any], now_ns: int) -> Command:
    return tenant_settings.change_settings(who, DECISION_SETTINGS, changes, merged_decision_settings, now_ns)
