"""What the loops fold reads from the record: last messages of a session or an agent in it, and settings."""

from __future__ import annotations

from typing import Any

import msgspec

from observatory.pipeline import tenant_settings
from observatory.protocol.responses import Fault
from observatory.protocol.tenant_config import DetectorSettings, InjectionSettings, LoopSettings


def merged_detectors(
    before: DetectorSettings, changes: dict[str, Any]
) -> tuple[DetectorSettings | None, list[Fault]]:
    """The settings after the change; None and every fault when they are invalid."""
    for name in SECTIONS:
        if isinstance(changes.get(name), dict):  # omitted members stay, null is the default
            now, first = (
                plain_settings(getattr(before, name)),
                plain_settings(getattr(DetectorSettings(), name)),
            )
            given = {one: first.get(one) if value is None else value for one, value in changes[name].items()}
            changes = changes | {name: now | given}
    after, faults = tenant_settings.merge_settings(before, changes)
    faults += crossed_bounds(after)
    return (None, faults) if faults else (after, [])


SECTIONS = ("loops", "injections")


def plain_settings(section: LoopSettings | InjectionSettings) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(section))
    return found


def crossed_bounds(settings: DetectorSettings) -> list[Fault]:
    faults = []
    if settings.loop_below > settings.warning_up_to:
        faults.append(Fault(path="loop_below", problem="must not be above warning_up_to"))
    if settings.n_min > settings.window:
        faults.append(Fault(path="n_min", problem="must not be larger than the window"))
    return faults


class Loop(msgspec.Struct, frozen=True):
    """An open loop: its agent, its start, the event that recorded it, and its detector."""

    agent_no: int
    ns: int
    seq: int
    detector: str
