"""How the detectors' settings are changed: an act of an operator, audited with before and after (ruling 16).

Law: values that cannot be meant are refused with every fault found, and nothing is changed; what was changed
counts for the next message, behind it in the same batch already.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from observatory.gateway.entropy import plain
from observatory.gateway.record import notice
from observatory.protocol.answers import Fault
from observatory.protocol.rulebook import DetectorSettings
from observatory.rows import Write
from observatory.state import Act, Desk, Principal, Verdict

NAME = "detectors"
FIELDS = {field.name: field for field in msgspec.structs.fields(DetectorSettings)}


class BadSettings(msgspec.Struct, frozen=True, kw_only=True):
    """422: values that cannot be meant, every one of them."""

    detail: str
    faults: tuple[Fault, ...]
    reason: Literal["bad_settings"] = "bad_settings"
    status: Literal["refused"] = "refused"


def change(who: Principal, asked: dict[str, Any], now_ns: int) -> Act:
    """`asked` is what was sent: names left out stay, null is the default."""

    def decide(desk: Desk) -> Verdict:
        memory = desk.memory
        before = memory.rulebook.detectors
        after, faults = merged(before, asked)
        if after is None:
            told = "; ".join(f"{fault.path}: {fault.problem}" for fault in faults)
            return Verdict(422, BadSettings(detail=f"nothing was changed. {told}", faults=tuple(faults)))
        old, new = msgspec.to_builtins(before), msgspec.to_builtins(after)
        changed = [name for name in new if new[name] != old[name]]
        if not changed:
            return Verdict(200, {"changed": []})
        values = {
            "tenant_id": who.tenant_id,
            "name": NAME,
            "value": msgspec.json.encode(after).decode(),
            "updated_ns": desk.now_ns,
            "updated_by": who.entity_id,
        }
        memory.rulebook = msgspec.structs.replace(memory.rulebook, detectors=after)
        memory.tenant.rulebook_version += 1
        detail = {
            "setting": NAME,
            "changed": changed,
            "before": {name: plain(old[name]) for name in changed},
            "after": {name: plain(new[name]) for name in changed},
        }
        summary = f"detector settings changed: {', '.join(changed)}"
        event = notice(who.tenant_id, "setting_changed", summary, desk.now_ns, who, detail)
        write = Write("knobs", values, key=("tenant_id", "name"))
        return Verdict(200, {"changed": changed}, [event], [write])

    return Act(who, now_ns, decide)


def merged(before: DetectorSettings, asked: dict[str, Any]) -> tuple[DetectorSettings | None, list[Fault]]:
    """The settings as they would be; None and every fault when they cannot be."""
    faults: list[Fault] = []
    values: dict[str, Any] = {}
    for name, value in asked.items():
        field = FIELDS.get(name)
        if field is None:
            faults.append(Fault(path="$", problem=f"there is no such setting; there are {', '.join(FIELDS)}"))
            continue
        if value is None:
            values[name] = getattr(DetectorSettings(), name)
            continue
        if name == "loops" and isinstance(value, dict):  # what is left out stays, here too
            value = msgspec.to_builtins(before.loops) | value
        try:
            values[name] = msgspec.convert(value, type=field.type)
        except msgspec.ValidationError as error:
            faults.append(Fault(path=name, problem=_problem(str(error))))
    after = msgspec.structs.replace(before, **values)
    faults += _crossed(after)
    return (None, faults) if faults else (after, [])


def _crossed(settings: DetectorSettings) -> list[Fault]:
    faults = []
    if settings.loop_below > settings.warning_up_to:
        faults.append(Fault(path="loop_below", problem="must not be above warning_up_to"))
    if settings.n_min > settings.window:
        faults.append(Fault(path="n_min", problem="must not be larger than the window"))
    return faults


def _problem(text: str) -> str:
    """msgspec's sentence names the rule and the kind of value, never the value; its path is made ours."""
    rule, _, place = text.partition(" - at ")
    return f"{rule} (at {place.strip('`').removeprefix('$')})" if place.strip("`") not in ("", "$") else rule
