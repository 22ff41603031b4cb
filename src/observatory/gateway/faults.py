"""The slow second look: every fault of a message that failed, each with path and rule.

Law: a fault is worded from the contract alone. No value of the payload and no name of an unknown key
ever stands in a path or a sentence, for a refused body is kept nowhere (ruling 12) and answers are
logged. The judges are made once, from the same structs the decoder uses, so both agree on what is valid;
they run over an exact parse, stop at the document's depth limit and at 100 faults, and never raise.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from sys import maxsize
from typing import Any, Final

import msgspec
from msgspec import inspect as kinds

from observatory.protocol import clock
from observatory.protocol.answers import Fault
from observatory.protocol.decision_log import DecisionLog
from observatory.protocol.document import (
    MAX_DEPTH,
    BigInteger,
    NotFinite,
    TooDeep,
    Twin,
    offences,
    text_offences,
)
from observatory.protocol.envelope import BY_TYPE, Envelope
from observatory.protocol.identity import canonical_uuid
from observatory.protocol.message import Form
from observatory.protocol.messages import Checked

MAX_FAULTS: Final = 100
ROOT: Final = "$"

# The faults of a value by one rule, given the value, its path and its level. A path is made of names of the
# contract and indices only.
Judge = Callable[[Any, str, int], Iterable[Fault]]


def form_of(value: Any) -> Form:
    """Which wire form a body means to be."""
    if isinstance(value, dict) and (
        "envelope_version" in value or ("message_type" in value and "payload" in value)
    ):
        return "envelope"
    return "decision_log"


def collect(value: Any) -> list[Fault]:
    """All faults of a parsed body, at most a hundred, in the order of the schema."""
    return list(islice(_of_message(value), MAX_FAULTS))


def sender_of(value: Any) -> tuple[str | None, str | None]:
    """Agent and capability version a faulty body names, each only when it keeps its own rule."""
    if form_of(value) == "envelope":
        return _valid_text(value, "sender", "entity_id", _ENTITY_ID), None
    return (
        _valid_text(value, "identity", "agent_id", _AGENT_ID),
        _valid_text(value, "identity", "capability_version", _CAPABILITY_VERSION),
    )


def _valid_text(value: Any, section: str, name: str, judge: Judge) -> str | None:
    for step in (section, name):
        # Of two equal keys neither can be believed.
        if not isinstance(value, dict) or isinstance(value, Twin):
            return None
        value = value.get(step)
    return None if value is None or any(judge(value, "", 1)) else str(value)


def _of_message(value: Any) -> Iterator[Fault]:
    if isinstance(value, TooDeep):
        yield Fault(ROOT, f"must not nest deeper than {MAX_DEPTH} levels")
    elif not isinstance(value, dict):
        yield Fault(ROOT, "must be a JSON object: a DecisionLog or an envelope")
        yield from (Fault(ROOT, problem) for problem in offences(value))
    elif form_of(value) == "decision_log":
        yield from _LOG(value, "", 1)
    else:
        kind = value.get("message_type")
        judge = _ENVELOPES.get(kind) if isinstance(kind, str) else None
        if judge is None:
            yield _untyped(value)
        yield from (judge or _UNTYPED)(value, "", 1)


def _untyped(value: dict[str, Any]) -> Fault:
    if "message_type" not in value:
        return Fault("message_type", "is missing: this field is required")
    return Fault("message_type", f"must be one of {', '.join(_ENVELOPES)}")


def _judge(rule: kinds.Type) -> Judge:
    """The judge of a rule. Whatever does not depend on the value is worked out here, once."""
    expects, named = "", ""
    while isinstance(rule, kinds.Metadata):
        expects = (rule.extra or {}).get("expects", expects)
        named = (rule.extra or {}).get("rule", named)
        rule = rule.type
    match rule:
        case kinds.UnionType():
            return _union(rule)
        case kinds.StructType():
            return _struct(rule)
        case kinds.ListType():
            return _list(rule)
        case kinds.DictType():
            return _of_free_object
        case kinds.StrType():
            return _text(rule, expects, named)
        case kinds.IntType() | kinds.FloatType():
            return _number(rule)
        case kinds.BoolType():
            return _plain(lambda value: isinstance(value, bool), "must be true or false")
        case kinds.LiteralType():
            allowed = frozenset(rule.values)
            sentence = f"must be one of {', '.join(map(str, rule.values))}"
            return _plain(lambda value: isinstance(value, str) and value in allowed, sentence)
        case kinds.NoneType():
            return _plain(lambda value: value is None, "must be null")
        case _:
            return _of_anything


def _plain(fits: Callable[[Any], bool], sentence: str) -> Judge:
    return lambda value, path, _: () if fits(value) else (Fault(path, sentence),)


def _of_anything(value: Any, path: str, level: int) -> Iterator[Fault]:
    return (Fault(path, problem) for problem in offences(value, level))


def _of_free_object(value: Any, path: str, level: int) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield Fault(path, "must be an object")
    yield from (Fault(path, problem) for problem in dict.fromkeys(offences(value, level)))


def _union(rule: kinds.UnionType) -> Judge:
    choices = [one for one in rule.types if not isinstance(one, kinds.NoneType)]
    # A union holds at most one kind of object (the decoder demands it): the value's own kind chooses.
    objects = [one for one in choices if _is_struct(one)]
    others = [one for one in choices if not _is_struct(one)]
    of_object, of_other = _judge((objects or choices)[0]), _judge((others or choices)[0])
    may_be_null, mixed = rule.includes_none, len(choices) > 1

    def judge(value: Any, path: str, level: int) -> Iterable[Fault]:
        if value is None and may_be_null:
            return ()
        if mixed and not isinstance(value, str | dict):
            return (Fault(path, "must be text or an object"),)
        return (of_object if isinstance(value, dict) else of_other)(value, path, level)

    return judge


def _is_struct(rule: kinds.Type) -> bool:
    while isinstance(rule, kinds.Metadata):
        rule = rule.type
    return isinstance(rule, kinds.StructType)


def _struct(rule: kinds.StructType) -> Judge:
    fields = [(field.encode_name, field.required, _judge(field.type)) for field in rule.fields]
    known = {rule.tag_field, *(name for name, _, _ in fields)}
    cross_faults = rule.cls.cross_faults if issubclass(rule.cls, Checked) else None

    def judge(value: Any, path: str, level: int) -> Iterator[Fault]:
        here, prefix = (path, path + ".") if path else (ROOT, "")
        if not isinstance(value, dict):
            yield Fault(here, "must be an object")
            return
        if isinstance(value, Twin):
            yield Fault(here, "an object must not hold the same key twice")
        broken = False
        for name, required, of_field in fields:
            if name in value:
                for fault in of_field(value[name], prefix + name, level + 1):
                    broken = True
                    yield fault
            elif required:
                broken = True
                yield Fault(prefix + name, "is missing: this field is required")
        if cross_faults is not None and not broken:
            for name, problem in cross_faults(value.get):
                yield Fault(prefix + name, problem)
        if not known.issuperset(value):
            # What unknown fields break of the document's rules; their names and places are not told.
            strange = {key: item for key, item in value.items() if key not in known}
            for problem in dict.fromkeys(offences(strange, level)):
                yield Fault(here, f"in an unknown field: {problem}")

    return judge


def _list(rule: kinds.ListType) -> Judge:
    of_item, low, high = _judge(rule.item_type), rule.min_length, rule.max_length

    def judge(value: Any, path: str, level: int) -> Iterator[Fault]:
        if not isinstance(value, list):
            yield Fault(path, "must be an array")
            return
        if low is not None and len(value) < low:
            yield Fault(path, f"must hold at least {low} items")
        if high is not None and len(value) > high:
            yield Fault(path, f"must hold at most {high} items")
        for index, item in enumerate(value):
            yield from of_item(item, f"{path}[{index}]", level + 1)

    return judge


def _text(rule: kinds.StrType, expects: str, named: str) -> Judge:
    low, high = rule.min_length or 0, maxsize if rule.max_length is None else rule.max_length
    search = re.compile(rule.pattern or "").search
    keeps = {"time": _is_time, "uuid": _is_uuid}.get(named)
    no_text = f"must be text{': ' + expects if expects else ''}"
    sentence = f"must be {expects or f'text of {low} to {rule.max_length} characters'}"

    def judge(value: Any, path: str, _: int) -> Iterable[Fault]:
        if not isinstance(value, str):
            return (Fault(path, no_text),)
        fits = low <= len(value) <= high and search(value) and (keeps is None or keeps(value))
        if fits and "\0" not in value and value.isascii():  # nearly always
            return ()
        found = [Fault(path, problem) for problem in text_offences(value)]
        return found if fits else [*found, Fault(path, sentence)]

    return judge


def _is_time(text: str) -> bool:
    try:
        clock.parse(text)
    except ValueError:
        return False
    return True


def _is_uuid(text: str) -> bool:
    canonical = canonical_uuid(text)
    return canonical is not None and canonical.strip("0-") != ""


def _number(rule: kinds.IntType | kinds.FloatType) -> Judge:
    whole = isinstance(rule, kinds.IntType)
    low, high = rule.ge, rule.le
    limits = f" from {low:g} to {high:.17g}" if low is not None and high is not None else ""
    sentence = f"must be {'an integer' if whole else 'a number'}{limits}"

    def judge(value: Any, path: str, _: int) -> Iterable[Fault]:
        if isinstance(value, BigInteger | NotFinite):
            return [Fault(path, problem) for problem in offences(value)]
        if (
            isinstance(value, bool)
            or not isinstance(value, int if whole else int | float)
            or (low is not None and value < low)
            or (high is not None and value > high)
        ):
            return (Fault(path, sentence),)
        return ()

    return judge


def _at(rule: kinds.Type, *names: str) -> kinds.Type:
    """The rule of a field, by the way to it."""
    for name in names:
        assert isinstance(rule, kinds.StructType)
        rule = next(field.type for field in rule.fields if field.encode_name == name)
    return rule


# An envelope of no known type is judged by what all types share.
_SHARED: Final = {field.name: field for field in msgspec.structs.fields(Envelope) if field.name != "payload"}
_UNTYPED_RULE: Final = kinds.type_info(
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
_LOG_RULE: Final = kinds.type_info(DecisionLog)
_LOG: Final = _judge(_LOG_RULE)
_ENVELOPES: Final = {name: _judge(kinds.type_info(cls)) for name, cls in BY_TYPE.items()}
_UNTYPED: Final = _judge(_UNTYPED_RULE)
_ENTITY_ID: Final = _judge(_at(_UNTYPED_RULE, "sender", "entity_id"))
_AGENT_ID: Final = _judge(_at(_LOG_RULE, "identity", "agent_id"))
_CAPABILITY_VERSION: Final = _judge(_at(_LOG_RULE, "identity", "capability_version"))
