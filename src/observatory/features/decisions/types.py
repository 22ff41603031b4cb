"""A tenant's settings for decisions, merged with the defaults."""

from __future__ import annotations

from typing import Any

from observatory.pipeline import tenant_settings
from observatory.protocol.responses import Fault
from observatory.protocol.tenant_config import DecisionSettings

DECISION_SETTINGS = "decisions"


def merged_decision_settings(
    before: DecisionSettings, changes: dict[str, Any]
) -> tuple[DecisionSettings | None, list[Fault]]:
    after, faults = tenant_settings.merge_settings(before, changes)
    return (None, faults) if faults else (after, [])
