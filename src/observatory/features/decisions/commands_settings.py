"""How far agents may name what is decided for them at a deadline, and how that is changed (S1122)."""

from __future__ import annotations

from typing import Any

from observatory.pipeline import tenant_settings
from observatory.pipeline.state import Act, Principal
from observatory.protocol.answers import Fault
from observatory.protocol.rulebook import DecisionSettings

NAME = "decisions"


def change(who: Principal, asked: dict[str, Any], now_ns: int) -> Act:
    return tenant_settings.change(who, NAME, asked, merged, now_ns)


def merged(before: DecisionSettings, asked: dict[str, Any]) -> tuple[DecisionSettings | None, list[Fault]]:
    after, faults = tenant_settings.merged(before, asked)
    return (None, faults) if faults else (after, [])
