"""The canonical JSON form of thoughts, as the verifier computes it: all of RFC 8785, including floats.

Part of the verifier: imports nothing of this project. Audit events contain no floats and are checked by
`verify`; a thought is an agent's own JSON and may. The form is implemented in plain Python, differently from
the writer's code, so that one mistake cannot be in both.
"""

import json
from decimal import Decimal
from typing import Any

import msgspec


def canonical_thought(raw: bytes) -> dict[str, Any] | None:
    """The object whose RFC 8785 form these bytes are; None if they are not canonical."""
    try:
        value = msgspec.json.decode(raw)
        return value if type(value) is dict and canonical_text(value).encode() == raw else None
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return None


def canonical_text(value: Any) -> str:
    """§3.2.3: names by UTF-16 unit; §3.2.2.3: every number is a double."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(f"{canonical_text(name)}:{canonical_text(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical_text, value)) + "]"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _double(float(value))
    return json.dumps(value, ensure_ascii=False)


def _double(value: float) -> str:
    """A double as ECMAScript writes it: Python's digits, but without exponent from 1e-6 to below 1e21, and
    neither "1.0" nor "1e-07"."""
    if value - value != 0:
        raise ValueError("not a JSON number")
    if value == 0:
        return "0"
    if value < 0:
        return "-" + _double(-value)
    if 1e-6 <= value < 1e21:
        return format(Decimal(repr(value)), "f").removesuffix(".0")
    mantissa, power = repr(value).split("e")
    return f"{mantissa.removesuffix('.0')}e{int(power):+d}"
