"""Changing a tenant's settings: a command of a person, audited with the values before and after.

Law: invalid values are refused with every fault found, and nothing is changed; a change applies from the
next message on, including messages later in the same batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, Principal, SubmissionResult, UnitOfWork
from observatory.pipeline.validation import validator_of
from observatory.protocol.responses import Fault, Invalid, faults_text
from observatory.protocol.tenant_config import DecisionSettings, DetectorSettings, RoutingSettings

Settings = TypeVar("Settings", DetectorSettings, DecisionSettings, RoutingSettings)
Merged = Callable[[Settings, dict[str, Any]], tuple[Settings | None, list[Fault]]]


def invalid_settings(faults: Iterable[Fault]) -> Invalid:
    """The response to invalid values, with all faults."""
    problems = tuple(faults)
    return Invalid(
        reason="bad_settings", detail=f"nothing was changed. {faults_text(problems)}", faults=problems
    )


def change_settings(
    who: Principal, name: str, asked: dict[str, Any], merge: Merged[Settings], now_ns: int
) -> Command:
    """`name` is the field of the tenant's configuration and of the row; `asked` is the request: omitted names
    stay unchanged, null means the default."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        memory = uow.memory
        before = getattr(memory.tenant_config, name)
        after, faults = merge(before, asked)
        if after is None:
            return SubmissionResult(422, invalid_settings(faults))
        old, new = msgspec.to_builtins(before), msgspec.to_builtins(after)
        changed = [one for one in new if new[one] != old[one]]
        if not changed:
            return SubmissionResult(200, {"changed": []})
        values = {
            "tenant_id": who.tenant_id,
            "name": name,
            "value": msgspec.json.encode(after).decode(),
            "updated_ns": uow.now_ns,
            "updated_by": who.entity_id,
        }
        memory.tenant_config = msgspec.structs.replace(memory.tenant_config, **{name: after})
        memory.tenant.rulebook_version += 1
        detail = {
            "setting": name,
            "changed": changed,
            "before": {one: plain(old[one]) for one in changed},
            "after": {one: plain(new[one]) for one in changed},
        }
        summary = f"{name.removesuffix('s')} settings changed: {', '.join(changed)}"
        event = gateway_event(who.tenant_id, "setting_changed", summary, uow.now_ns, who, detail)
        write = RowWrite("knobs", values, key=("tenant_id", "name"))
        return SubmissionResult(200, {"changed": changed}, [event], [write])

    return Command(who, now_ns, decide)


def merge_settings(before: Settings, asked: dict[str, Any]) -> tuple[Settings, list[Fault]]:
    """The settings with the valid values of `asked`, and a fault for each other one."""
    faults: list[Fault] = []
    values: dict[str, Any] = {}
    fields = {field.name: field for field in msgspec.structs.fields(before)}
    for name, value in asked.items():
        field = fields.get(name)
        if field is None:
            faults.append(Fault(path="$", problem=f"unknown setting; the settings are {', '.join(fields)}"))
            continue
        if value is None:
            values[name] = field.default
            continue
        problems = list(validator_of(field.type)(value, name, 1))
        faults += problems
        if not problems:
            values[name] = msgspec.convert(value, type=field.type)
    return msgspec.structs.replace(before, **values), faults


def plain(value: Any) -> Any:
    """A value in the form events may contain, with floats as text."""
    if isinstance(value, float):
        return decimal(value)
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


def decimal(score: float) -> str:
    """Events contain no floats (ruling 34)."""
    return f"{score:.6f}".rstrip("0").rstrip(".")


DETECTORS = "detectors"
