"""Validators built from types: they return every fault of a parsed value, each with its path.

Law: the text of a fault comes from the contract alone. No value and no name of an unknown member ever appears
in a path or a message. Where an object's keys are chosen by the sender, a member is named by its index, from
0. The validators are built once, from the same structs a decoder uses, for messages and operators' requests.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from sys import maxsize
from typing import Any, Final

from msgspec import inspect as kinds

from observatory.protocol import clock
from observatory.protocol.document import (
    MAX_DEPTH,
    BigInteger,
    DuplicateKeys,
    NotFinite,
    TooDeep,
    offences,
    text_offences,
)
from observatory.protocol.identity import canonical_uuid
from observatory.protocol.messages import Checked
from observatory.protocol.responses import Fault

MAX_FAULTS: Final = 100
ROOT: Final = "$"

# Returns the faults of a value by one rule, given the value, its path and its level. A path contains only
# names of the contract and indices.
Validator = Callable[[Any, str, int], Iterable[Fault]]


@cache
def validator_of(tp: Any) -> Validator:
    return validator_of_rule(kinds.type_info(tp))


def faults_of(tp: Any, value: Any) -> tuple[Fault, ...]:
    """All faults of a parsed document as a value of this type, at most a hundred."""
    if isinstance(value, TooDeep):
        return (Fault(ROOT, f"must not nest deeper than {MAX_DEPTH} levels"),)
    faults = islice(validator_of(tp)(value, "", 1), MAX_FAULTS)
    return tuple(fault if fault.path else Fault(ROOT, fault.problem) for fault in faults)


def expected(tp: Any) -> str:
    """What a value of this type must be, as the text of a fault."""
    return next((fault.problem for fault in validator_of(tp)(object(), ROOT, 1)), "is not accepted")


def validator_of_rule(rule: kinds.Type) -> Validator:
    """The validator of a rule. Everything that does not depend on the value is computed here, once."""
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
        case kinds.ListType() | kinds.VarTupleType():
            return _list(rule)
        case kinds.DictType():
            return _free_object if _is_free(rule) else _table(rule)
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
            return _anything


def _plain(fits: Callable[[Any], bool], sentence: str) -> Validator:
    return lambda value, path, _: () if fits(value) else (Fault(path, sentence),)


def _anything(value: Any, path: str, level: int) -> Iterator[Fault]:
    return (Fault(path, problem) for problem in offences(value, level))


def _free_object(value: Any, path: str, level: int) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield Fault(path, "must be an object")
    yield from (Fault(path, problem) for problem in dict.fromkeys(offences(value, level)))


def _is_free(rule: kinds.DictType) -> bool:
    """Whether any key and any value is accepted, in any number."""
    is_plain = isinstance(rule.key_type, kinds.StrType) and isinstance(rule.value_type, kinds.AnyType)
    return is_plain and rule.min_length is None and rule.max_length is None


def _table(rule: kinds.DictType) -> Validator:
    """An object whose keys are chosen by the sender: a member is named by its index."""
    of_key, of_value = validator_of_rule(rule.key_type), validator_of_rule(rule.value_type)
    low, high = rule.min_length, rule.max_length

    def judge(value: Any, path: str, level: int) -> Iterator[Fault]:
        if not isinstance(value, dict):
            yield Fault(path, "must be an object")
            return
        if isinstance(value, DuplicateKeys):
            yield Fault(path, "an object must not hold the same key twice")
        yield from _counted(len(value), path, low, high, "members")
        for index, (key, item) in enumerate(value.items()):
            place = f"{path}[{index}]"
            yield from (Fault(place, f"its name {fault.problem}") for fault in of_key(key, place, level + 1))
            yield from of_value(item, place, level + 1)

    return judge


def _counted(size: int, path: str, low: int | None, high: int | None, noun: str) -> Iterator[Fault]:
    if low is not None and size < low:
        yield Fault(path, f"must hold at least {low} {noun}")
    if high is not None and size > high:
        yield Fault(path, f"must hold at most {high} {noun}")


# Kinds of JSON values, by the rules that accept them: their Python types, and their name in a message.
_KINDS: Final[tuple[tuple[tuple[type[kinds.Type], ...], tuple[type, ...], str], ...]] = (
    ((kinds.StrType, kinds.LiteralType), (str,), "text"),
    ((kinds.IntType, kinds.FloatType), (int, float, BigInteger, NotFinite), "a number"),
    ((kinds.StructType, kinds.DictType), (dict,), "an object"),
    ((kinds.ListType, kinds.VarTupleType), (list,), "an array"),
    ((kinds.BoolType,), (bool,), "true or false"),
)


def _union(rule: kinds.UnionType) -> Validator:
    """A union has at most one rule per kind (the decoder requires it): the value's kind selects the rule."""
    choices = [one for one in rule.types if not isinstance(one, kinds.NoneType)]
    may_be_null = rule.includes_none
    if len(choices) == 1:
        only = validator_of_rule(choices[0])
        return lambda value, path, level: () if value is None and may_be_null else only(value, path, level)
    by_kind = [(*_kind_of(one), validator_of_rule(one)) for one in choices]
    sentence = f"must be {' or '.join(noun for _, noun, _ in by_kind)}"

    def judge(value: Any, path: str, level: int) -> Iterable[Fault]:
        if value is None and may_be_null:
            return ()
        for types, _, of_kind in by_kind:
            if isinstance(value, types) and not (isinstance(value, bool) and bool not in types):
                return of_kind(value, path, level)
        return (Fault(path, sentence),)

    return judge


def _kind_of(rule: kinds.Type) -> tuple[tuple[type, ...], str]:
    while isinstance(rule, kinds.Metadata):
        rule = rule.type
    for rules, types, noun in _KINDS:
        if isinstance(rule, rules):
            if isinstance(rule, kinds.LiteralType):
                noun = f"one of {', '.join(map(str, rule.values))}"
            return types, noun
    raise TypeError(f"no kind of JSON value is known for {type(rule).__name__}")


def _struct(rule: kinds.StructType) -> Validator:
    fields = [(field.encode_name, field.required, validator_of_rule(field.type)) for field in rule.fields]
    known = {rule.tag_field, *(name for name, _, _ in fields)}
    cross_faults = rule.cls.cross_faults if issubclass(rule.cls, Checked) else None
    is_closed = rule.cls.__struct_config__.forbid_unknown_fields
    unknown_member = f"has an unknown member; the members are {', '.join(name for name, _, _ in fields)}"

    def judge(value: Any, path: str, level: int) -> Iterator[Fault]:
        here, prefix = (path, path + ".") if path else (ROOT, "")
        if not isinstance(value, dict):
            yield Fault(here, "must be an object")
            return
        if isinstance(value, DuplicateKeys):
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
            if is_closed:
                yield Fault(here, unknown_member)
            # Document rules broken in unknown fields; their names and positions are not reported.
            unknown = {key: item for key, item in value.items() if key not in known}
            for problem in dict.fromkeys(offences(unknown, level)):
                yield Fault(here, f"in an unknown field: {problem}")

    return judge


def _list(rule: kinds.ListType | kinds.VarTupleType) -> Validator:
    of_item, low, high = validator_of_rule(rule.item_type), rule.min_length, rule.max_length

    def judge(value: Any, path: str, level: int) -> Iterator[Fault]:
        if not isinstance(value, list):
            yield Fault(path, "must be an array")
            return
        yield from _counted(len(value), path, low, high, "items")
        for index, item in enumerate(value):
            yield from of_item(item, f"{path}[{index}]", level + 1)

    return judge


def _text(rule: kinds.StrType, expects: str, named: str) -> Validator:
    low, high = rule.min_length or 0, maxsize if rule.max_length is None else rule.max_length
    search = re.compile(rule.pattern or "").search
    keeps = {"time": _is_time, "uuid": _is_uuid}.get(named)
    no_text = f"must be text{': ' + expects if expects else ''}"
    sentence = f"must be {expects or _size_of(rule)}"

    def judge(value: Any, path: str, _: int) -> Iterable[Fault]:
        if not isinstance(value, str):
            return (Fault(path, no_text),)
        fits = low <= len(value) <= high and search(value) and (keeps is None or keeps(value))
        if fits and "\0" not in value and value.isascii():  # nearly always
            return ()
        faults = [Fault(path, problem) for problem in text_offences(value)]
        return faults if fits else [*faults, Fault(path, sentence)]

    return judge


def _size_of(rule: kinds.StrType) -> str:
    if rule.max_length is None:
        return f"text of at least {rule.min_length or 0} characters"
    return f"text of {rule.min_length or 0} to {rule.max_length} characters"


def _is_time(text: str) -> bool:
    try:
        clock.parse(text)
    except ValueError:
        return False
    return True


def _is_uuid(text: str) -> bool:
    canonical = canonical_uuid(text)
    return canonical is not None and canonical.strip("0-") != ""


def _number(rule: kinds.IntType | kinds.FloatType) -> Validator:
    whole = isinstance(rule, kinds.IntType)
    low, high = rule.ge, rule.le
    sentence = f"must be {'an integer' if whole else 'a number'}{_limits(low, high)}"

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


def _limits(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f" from {_figure(low)} to {_figure(high)}"
    if low is not None:
        return f" of at least {_figure(low)}"
    return "" if high is None else f" of at most {_figure(high)}"


def _figure(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)
