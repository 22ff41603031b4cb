"""The slow second look: every fault of a message that failed, each with path and rule.

Law: a fault is worded from the contract alone. No value of the payload and no name of an unknown key
ever stands in a path or a sentence, for a refused body is kept nowhere (ruling 12) and answers are
logged. The walk follows the same structs the decoder uses, so both agree on what is valid; it runs
over an exact parse, stops at the document's depth limit and at 100 faults, and never raises.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import inspect as kinds

from observatory.protocol import clock
from observatory.protocol.answers import Fault
from observatory.protocol.decision_log import DecisionLog
from observatory.protocol.document import MAX_DEPTH, BigInteger, NotFinite, TooDeep, Twin, offences
from observatory.protocol.envelope import BY_TYPE, Envelope
from observatory.protocol.identity import canonical_uuid
from observatory.protocol.message import Form
from observatory.protocol.messages import Checked

MAX_FAULTS: Final = 100
ROOT: Final = "$"

_LOG: Final = kinds.type_info(DecisionLog)
_ENVELOPES: Final = {name: kinds.type_info(cls) for name, cls in BY_TYPE.items()}
# An envelope of no known type is judged by what all types share.
_SHARED: Final = {field.name: field for field in msgspec.structs.fields(Envelope) if field.name != "payload"}
_UNTYPED: Final = kinds.type_info(
    msgspec.defstruct(
        "UntypedEnvelope",
        [
            (name, field.type) if field.required else (name, field.type, field.default)
            for name, field in _SHARED.items()
        ]
        + [("payload", dict[str, Any])],
        bases=(),
        kw_only=True,
    )
)


def form_of(value: Any) -> Form:
    """Which wire form a body means to be."""
    if isinstance(value, dict) and (
        "envelope_version" in value or {"message_type", "payload"} <= value.keys()
    ):
        return "envelope"
    return "decision_log"


def collect(value: Any) -> list[Fault]:
    """All faults of a parsed body, at most a hundred, in the order of the schema."""
    return list(islice(_of_message(value), MAX_FAULTS))


def sender_of(value: Any) -> tuple[str | None, str | None]:
    """Agent and capability version a faulty body names, each only when it keeps its own rule."""
    if form_of(value) == "envelope":
        return _valid_text(value, _UNTYPED, "sender", "entity_id"), None
    return (
        _valid_text(value, _LOG, "identity", "agent_id"),
        _valid_text(value, _LOG, "identity", "capability_version"),
    )


def _valid_text(value: Any, rule: kinds.Type, section: str, name: str) -> str | None:
    for step in (section, name):
        # Of two equal keys neither can be believed.
        if not isinstance(rule, kinds.StructType) or not isinstance(value, dict) or isinstance(value, Twin):
            return None
        rule = next(field.type for field in rule.fields if field.encode_name == step)
        value = value.get(step)
    return None if value is None or any(_walk(value, rule, "", 1)) else str(value)


def _of_message(value: Any) -> Iterator[Fault]:
    if isinstance(value, TooDeep):
        yield Fault(ROOT, f"must not nest deeper than {MAX_DEPTH} levels")
    elif not isinstance(value, dict):
        yield Fault(ROOT, "must be a JSON object: a DecisionLog or an envelope")
        yield from (Fault(ROOT, problem) for problem in offences(value))
    elif form_of(value) == "decision_log":
        yield from _walk(value, _LOG, "", 1)
    else:
        kind = value.get("message_type")
        rule = _ENVELOPES.get(kind) if isinstance(kind, str) else None
        if rule is None:
            yield _untyped(value)
        yield from _walk(value, rule or _UNTYPED, "", 1)


def _untyped(value: dict[str, Any]) -> Fault:
    if "message_type" not in value:
        return Fault("message_type", "is missing: this field is required")
    return Fault("message_type", f"must be one of {', '.join(_ENVELOPES)}")


def _walk(value: Any, rule: kinds.Type, path: str, level: int) -> Iterator[Fault]:
    """The faults of a value by its rule; `path` is made of names of the contract and indices only."""
    expects, named = "", ""
    while isinstance(rule, kinds.Metadata):
        expects = (rule.extra or {}).get("expects", expects)
        named = (rule.extra or {}).get("rule", named)
        rule = rule.type
    match rule:
        case kinds.UnionType():
            yield from _of_union(value, rule, path, level)
        case kinds.StructType():
            yield from _of_struct(value, rule, path, level)
        case kinds.ListType():
            yield from _of_list(value, rule, path, level)
        case kinds.DictType():
            if not isinstance(value, dict):
                yield Fault(path, "must be an object")
            yield from (Fault(path, problem) for problem in dict.fromkeys(offences(value, level)))
        case kinds.StrType():
            yield from _of_text(value, rule, path, expects, named)
        case kinds.IntType() | kinds.FloatType():
            yield from _of_number(value, rule, path)
        case kinds.BoolType():
            if not isinstance(value, bool):
                yield Fault(path, "must be true or false")
        case kinds.LiteralType():
            if not isinstance(value, str) or value not in rule.values:
                yield Fault(path, f"must be one of {', '.join(map(str, rule.values))}")
        case kinds.NoneType():
            if value is not None:
                yield Fault(path, "must be null")
        case _:
            yield from (Fault(path, problem) for problem in offences(value, level))


def _of_union(value: Any, rule: kinds.UnionType, path: str, level: int) -> Iterator[Fault]:
    if value is None and rule.includes_none:
        return
    choices = [one for one in rule.types if not isinstance(one, kinds.NoneType)]
    if len(choices) > 1 and not isinstance(value, str | dict):
        yield Fault(path, "must be text or an object")
        return
    # A union holds at most one kind of object (the decoder demands it): the value's own kind chooses.
    fitting = [one for one in choices if _bare(one, kinds.StructType) == isinstance(value, dict)]
    yield from _walk(value, (fitting or choices)[0], path, level)


def _bare(rule: kinds.Type, kind: type[kinds.Type]) -> bool:
    while isinstance(rule, kinds.Metadata):
        rule = rule.type
    return isinstance(rule, kind)


def _of_struct(value: Any, rule: kinds.StructType, path: str, level: int) -> Iterator[Fault]:
    here = path or ROOT
    if not isinstance(value, dict):
        yield Fault(here, "must be an object")
        return
    if isinstance(value, Twin):
        yield Fault(here, "an object must not hold the same key twice")
    broken = False
    for field in rule.fields:
        at = f"{path}.{field.encode_name}" if path else field.encode_name
        if field.encode_name in value:
            for fault in _walk(value[field.encode_name], field.type, at, level + 1):
                broken = True
                yield fault
        elif field.required:
            broken = True
            yield Fault(at, "is missing: this field is required")
    if not broken and issubclass(rule.cls, Checked):
        for name, problem in rule.cls.cross_faults(value.get):
            yield Fault(f"{path}.{name}" if path else name, problem)
    yield from (Fault(here, f"in an unknown field: {problem}") for problem in _unknown(value, rule, level))


def _unknown(value: dict[str, Any], rule: kinds.StructType, level: int) -> Iterator[str]:
    """What unknown fields break of the document's rules; their names and places are not told."""
    known = {field.encode_name for field in rule.fields} | {rule.tag_field}
    strange = {key: item for key, item in value.items() if key not in known}
    yield from dict.fromkeys(offences(strange, level))


def _of_list(value: Any, rule: kinds.ListType, path: str, level: int) -> Iterator[Fault]:
    if not isinstance(value, list):
        yield Fault(path, "must be an array")
        return
    if rule.min_length is not None and len(value) < rule.min_length:
        yield Fault(path, f"must hold at least {rule.min_length} items")
    if rule.max_length is not None and len(value) > rule.max_length:
        yield Fault(path, f"must hold at most {rule.max_length} items")
    for index, item in enumerate(value):
        yield from _walk(item, rule.item_type, f"{path}[{index}]", level + 1)


def _of_text(value: Any, rule: kinds.StrType, path: str, expects: str, named: str) -> Iterator[Fault]:
    if not isinstance(value, str):
        yield Fault(path, f"must be text{': ' + expects if expects else ''}")
        return
    yield from (Fault(path, problem) for problem in offences(value))
    if (
        (rule.pattern is not None and re.search(rule.pattern, value) is None)
        or (rule.min_length is not None and len(value) < rule.min_length)
        or (rule.max_length is not None and len(value) > rule.max_length)
        or not _keeps(value, named)
    ):
        yield Fault(path, f"must be {expects or _length(rule)}")


def _keeps(text: str, named: str) -> bool:
    if named == "time":
        try:
            clock.parse(text)
        except ValueError:
            return False
    if named == "uuid":
        canonical = canonical_uuid(text)
        return canonical is not None and canonical.strip("0-") != ""
    return True


def _length(rule: kinds.StrType) -> str:
    return f"text of {rule.min_length or 0} to {rule.max_length} characters"


def _of_number(value: Any, rule: kinds.IntType | kinds.FloatType, path: str) -> Iterator[Fault]:
    whole = isinstance(rule, kinds.IntType)
    if isinstance(value, BigInteger | NotFinite):
        yield from (Fault(path, problem) for problem in offences(value))
    elif (
        isinstance(value, bool)
        or not isinstance(value, int if whole else int | float)
        or (rule.ge is not None and value < rule.ge)
        or (rule.le is not None and value > rule.le)
    ):
        yield Fault(path, f"must be {'an integer' if whole else 'a number'}{_range(rule)}")


def _range(rule: kinds.IntType | kinds.FloatType) -> str:
    return f" from {rule.ge:g} to {rule.le:.17g}" if rule.ge is not None and rule.le is not None else ""
