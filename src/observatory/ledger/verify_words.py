"""What agents say, as the verifier reads it: all of RFC 8785, floats included.

Of the verifier's family: imports nothing of ours. Audit events hold no floats and are judged by `verify`; a
thought is an agent's own JSON and may. Here the form is written out in plain Python, by other means than the
writer's, so that one slip cannot hide in both.
"""

import json
from decimal import Decimal
from typing import Any

import msgspec


def canonical_words(raw: bytes) -> dict[str, Any] | None:
    """The object these bytes are the RFC 8785 form of; None if they are not."""
    try:
        found = msgspec.json.decode(raw)
        return found if type(found) is dict and written(found).encode() == raw else None
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return None


def written(value: Any) -> str:
    """§3.2.3: names by UTF-16 unit; §3.2.2.3: every number is a double."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(f"{written(name)}:{written(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _double(float(value))
    return json.dumps(value, ensure_ascii=False)


def _double(value: float) -> str:
    """ECMAScript's digits are Python's, but it writes out what lies from 1e-6 to below 1e21, and has neither
    "1.0" nor "1e-07"."""
    if value - value != 0:
        raise ValueError("no number of JSON")
    if value == 0:
        return "0"
    if value < 0:
        return "-" + _double(-value)
    if 1e-6 <= value < 1e21:
        return format(Decimal(repr(value)), "f").removesuffix(".0")
    mantissa, power = repr(value).split("e")
    return f"{mantissa.removesuffix('.0')}e{int(power):+d}"
