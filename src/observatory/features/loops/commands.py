"""How the detectors' settings are changed (ruling 16)."""

from __future__ import annotations

from typing import Any

import msgspec

from observatory.pipeline import tenant_settings
from observatory.pipeline.state import Act, Principal
from observatory.protocol.answers import Fault
from observatory.protocol.rulebook import DetectorSettings, InjectionSettings, LoopSettings

NAME = "detectors"
SECTIONS = ("loops", "injections")


def change(who: Principal, asked: dict[str, Any], now_ns: int) -> Act:
    return tenant_settings.change(who, NAME, asked, merged, now_ns)


def merged(before: DetectorSettings, asked: dict[str, Any]) -> tuple[DetectorSettings | None, list[Fault]]:
    """The settings as they would be; None and every fault when they cannot be."""
    for name in SECTIONS:
        if isinstance(asked.get(name), dict):  # what is left out stays and null is the default, here too
            now, first = _plain(getattr(before, name)), _plain(getattr(DetectorSettings(), name))
            given = {one: first.get(one) if value is None else value for one, value in asked[name].items()}
            asked = asked | {name: now | given}
    after, faults = tenant_settings.merged(before, asked)
    faults += _crossed(after)
    return (None, faults) if faults else (after, [])


def _plain(section: LoopSettings | InjectionSettings) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(section))
    return found


def _crossed(settings: DetectorSettings) -> list[Fault]:
    faults = []
    if settings.loop_below > settings.warning_up_to:
        faults.append(Fault(path="loop_below", problem="must not be above warning_up_to"))
    if settings.n_min > settings.window:
        faults.append(Fault(path="n_min", problem="must not be larger than the window"))
    return faults
