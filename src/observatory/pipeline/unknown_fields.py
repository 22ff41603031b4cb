"""Counts the unknown fields of a valid message, by section.

Law (ruling 3): unknown fields are kept in the archived bytes and reported, but only counted: their names
are chosen by the sender and may be secrets. The shapes are read from the wire structs once.
"""

from typing import Any, Final

import msgspec
from msgspec import inspect as kinds

from observatory.protocol.decision_log import DecisionLog
from observatory.protocol.envelope import BY_TYPE
from observatory.protocol.message import Form

ROOT: Final = "$"


class _Shape(msgspec.Struct, frozen=True):
    """The member names of an object, and which of them contain objects (or arrays of objects)."""

    known: frozenset[str]
    inside: tuple[tuple[str, "_Shape"], ...]


def _shape(rule: kinds.Type) -> _Shape | None:
    match rule:
        case kinds.Metadata():
            return _shape(rule.type)
        case kinds.UnionType():
            return next((shape for one in rule.types if (shape := _shape(one))), None)
        case kinds.ListType():
            return _shape(rule.item_type)
        case kinds.StructType():
            names = [field.encode_name for field in rule.fields]
            inner = [(field.encode_name, _shape(field.type)) for field in rule.fields]
            tag = [rule.tag_field] if rule.tag_field else []
            return _Shape(frozenset(names + tag), tuple((name, one) for name, one in inner if one))
        case _:
            return None


_LOG: Final = _shape(kinds.type_info(DecisionLog))
_ENVELOPES: Final = {name: _shape(kinds.type_info(cls)) for name, cls in BY_TYPE.items()}


def count_unknown(value: dict[str, Any], form: Form) -> dict[str, int]:
    """Unknown fields of a valid message by section; `$` is the message itself."""
    counts: dict[str, int] = {}
    shape = _LOG if form == "decision_log" else _ENVELOPES[value["message_type"]]
    if shape is not None:
        _count(value, shape, ROOT, counts)
    return counts


def _count(value: Any, shape: _Shape, section: str, counts: dict[str, int]) -> None:
    if isinstance(value, list):
        for item in value:
            _count(item, shape, section, counts)
    elif isinstance(value, dict):
        unknown = len(value.keys() - shape.known)
        if unknown:
            counts[section] = counts.get(section, 0) + unknown
        for name, inner in shape.inside:
            _count(value.get(name), inner, name if section == ROOT else section, counts)
