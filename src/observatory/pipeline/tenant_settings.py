"""How a tenant's settings are changed: an act of a person, audited with before and after.

Law: values that cannot be meant are refused with every fault found, and nothing is changed; what was changed
counts for the next message, behind it in the same batch already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from observatory.features.loops.stage import plain
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Principal, Verdict
from observatory.pipeline.validation import judge_of
from observatory.protocol.answers import Fault, Invalid, listed
from observatory.protocol.rulebook import DecisionSettings, DetectorSettings, RoutingSettings

Settings = TypeVar("Settings", DetectorSettings, DecisionSettings, RoutingSettings)
Merged = Callable[[Settings, dict[str, Any]], tuple[Settings | None, list[Fault]]]


def bad_settings(faults: Iterable[Fault]) -> Invalid:
    """Values that cannot be meant, every one of them."""
    found = tuple(faults)
    return Invalid(reason="bad_settings", detail=f"nothing was changed. {listed(found)}", faults=found)


def change(who: Principal, name: str, asked: dict[str, Any], merge: Merged[Settings], now_ns: int) -> Act:
    """`name` is the field of the rulebook and the row; `asked` is what was sent: names left out stay, null is
    the default."""

    def decide(desk: Desk) -> Verdict:
        memory = desk.memory
        before = getattr(memory.rulebook, name)
        after, faults = merge(before, asked)
        if after is None:
            return Verdict(422, bad_settings(faults))
        old, new = msgspec.to_builtins(before), msgspec.to_builtins(after)
        changed = [one for one in new if new[one] != old[one]]
        if not changed:
            return Verdict(200, {"changed": []})
        values = {
            "tenant_id": who.tenant_id,
            "name": name,
            "value": msgspec.json.encode(after).decode(),
            "updated_ns": desk.now_ns,
            "updated_by": who.entity_id,
        }
        memory.rulebook = msgspec.structs.replace(memory.rulebook, **{name: after})
        memory.tenant.rulebook_version += 1
        detail = {
            "setting": name,
            "changed": changed,
            "before": {one: plain(old[one]) for one in changed},
            "after": {one: plain(new[one]) for one in changed},
        }
        summary = f"{name.removesuffix('s')} settings changed: {', '.join(changed)}"
        event = notice(who.tenant_id, "setting_changed", summary, desk.now_ns, who, detail)
        write = Write("knobs", values, key=("tenant_id", "name"))
        return Verdict(200, {"changed": changed}, [event], [write])

    return Act(who, now_ns, decide)


def merged(before: Settings, asked: dict[str, Any]) -> tuple[Settings, list[Fault]]:
    """The settings with what of `asked` can be meant, and a fault for everything else."""
    faults: list[Fault] = []
    values: dict[str, Any] = {}
    fields = {field.name: field for field in msgspec.structs.fields(before)}
    for name, value in asked.items():
        field = fields.get(name)
        if field is None:
            faults.append(Fault(path="$", problem=f"there is no such setting; there are {', '.join(fields)}"))
            continue
        if value is None:
            values[name] = field.default
            continue
        found = list(judge_of(field.type)(value, name, 1))
        faults += found
        if not found:
            values[name] = msgspec.convert(value, type=field.type)
    return msgspec.structs.replace(before, **values), faults
