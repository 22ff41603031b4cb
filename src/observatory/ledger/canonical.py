"""The two canonical JSON forms of the trail, and the text form of a hash.

`av_json` is the seed's form ("av-json/1": ASCII escapes, keys by code point, Python's float repr) and feeds
`event_hash`. `jcs` is RFC 8785 and is what is stored, served and hashed as `record_hash`. Audit events hold
no floats and no integer beyond 2^53-1 (ruling 34); within that subset msgspec's sorted encoder writes
RFC 8785 bytes, and everything outside it is refused with ValueError, never written differently. The content
of a thought is an agent's own JSON, where floats such as 0.8 are normal: `jcs_of_words` writes all of
RFC 8785. Error messages name the rule, never a value: what is hashed may be secret.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from hashlib import sha256
from json import JSONEncoder
from typing import Any

import msgspec

MAX_SAFE_INTEGER = 2**53 - 1  # RFC 8785 §3.2.2.3: numbers are IEEE 754 doubles; beyond this they lose digits

_seed_form = JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_sorted = msgspec.json.Encoder(order="sorted")
_FOUR_BYTE_LEADS = (b"\xf0", b"\xf1", b"\xf2", b"\xf3", b"\xf4")


def av_json(value: Any) -> bytes:
    """The seed's bytes of a value; ValueError for NaN and infinities, which are not JSON."""
    return _seed_form.encode(value).encode("ascii")


def jcs(value: Any) -> bytes:
    """The RFC 8785 bytes of a mapping or list without floats; ValueError outside the subset."""
    try:
        check_subset((value,))
        return encode_checked(value)
    except RecursionError:
        raise ValueError("an audit record is nested too deeply") from None


def sha256_text(data: bytes) -> str:
    return "sha256:" + sha256(data).hexdigest()


def check_subset(values: Iterable[Any]) -> None:
    """Refuse values msgspec would encode in its own way: floats, bytes, dates, enums, big integers."""
    for value in values:
        kind = type(value)
        if kind is str or value is None:  # nearly always, so first
            continue
        if kind is int:
            if not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
                raise ValueError("an audit record must not contain an integer beyond 2^53-1")
        elif kind is dict:
            check_subset(value.values())
        elif kind is list or kind is tuple:
            check_subset(value)
        elif kind is float:
            raise ValueError("an audit record must not contain floats; use a decimal string")
        elif kind is not bool:
            raise ValueError("an audit record must contain plain JSON values only")


def encode_checked(value: Any) -> bytes:
    """`jcs` for a value whose members already passed `check_subset`."""
    try:
        encoded = _sorted.encode(value)
    except TypeError:
        raise ValueError("an audit record's keys must be plain strings") from None
    # msgspec sorts keys by code point, RFC 8785 §3.2.3 by UTF-16 unit: they differ only for astral
    # characters.
    if not encoded.isascii() and any(lead in encoded for lead in _FOUR_BYTE_LEADS):
        return msgspec.json.encode(_in_utf16_order(value))
    return encoded


def _in_utf16_order(value: Any) -> Any:
    if isinstance(value, Mapping):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return {name: _in_utf16_order(value[name]) for name in names}
    if isinstance(value, list | tuple):
        return [_in_utf16_order(item) for item in value]
    return value


def jcs_with_floats(value: Any) -> bytes:
    """The RFC 8785 bytes of any plain JSON; ValueError for other values and numbers no double represents."""
    try:
        return _written(value).encode()
    except RecursionError:
        raise ValueError("the value is nested too deeply") from None


def _written(value: Any) -> str:
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return msgspec.json.encode(value).decode()
    if kind is int or kind is float:
        return _number(value)
    if kind is list or kind is tuple:
        return "[" + ",".join(map(_written, value)) + "]"
    if kind is not dict or any(type(name) is not str for name in value):
        raise ValueError("only plain JSON values with plain string keys are allowed")
    names = sorted(value, key=lambda name: name.encode("utf-16-be"))
    return "{" + ",".join(f"{_written(name)}:{_written(value[name])}" for name in names) + "}"


def _number(value: int | float) -> str:
    """A double as written by ECMAScript (RFC 8785 §3.2.2.3): the shortest digits that round-trip."""
    if type(value) is int and -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
        return str(value)
    try:
        sign, digits, exponent = Decimal(repr(float(value))).as_tuple()
    except OverflowError:
        raise ValueError("a number is beyond the range of a double") from None
    if not isinstance(exponent, int):
        raise ValueError("a number is not finite")
    text = "".join(map(str, digits)).rstrip("0") or "0"
    point = len(digits) + exponent  # number of digits before the decimal point
    if text == "0":
        written = "0"
    elif len(text) <= point <= 21:
        written = text + "0" * (point - len(text))
    elif 0 < point <= 21:
        written = f"{text[:point]}.{text[point:]}"
    elif -6 < point <= 0:
        written = f"0.{'0' * -point}{text}"
    else:
        written = f"{text[0]}{'.' if text[1:] else ''}{text[1:]}e{point - 1:+d}"
    written = f"-{written}" if sign and text != "0" else written
    if type(value) is int and written != str(value):
        raise ValueError("an integer has more digits than a double can represent")
    return written
