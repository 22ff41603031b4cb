"""Variants of a struct type, derived from the type: strict, partial and outline decoders.

Law: fields are defined once. The plain structs accept and skip unknown fields; the strict variant is a
subclass of T, at every level, that refuses them. So the fast path learns from the decoder alone that nothing
unknown was sent, and a strict decoder still returns a T. So does a glance decoder, which skips most optional
fields. The outline of T has the same keys at every level, but no values: what cannot contain an object is
kept as the bytes that were sent.
"""

import types
import typing
from collections.abc import Collection, Hashable
from functools import cache, reduce
from operator import or_
from typing import Annotated, Any, TypeVar, Union

import msgspec
from msgspec import UNSET, Raw, UnsetType

T = TypeVar("T")


def strict_decoder(tp: type[T], patterns: bool = True) -> "msgspec.json.Decoder[T]":
    """A JSON decoder for `tp` (a struct or a union of structs) that refuses unknown fields.

    Without `patterns` it does not check whether text matches its pattern; the caller must. A regular
    expression costs as much as ten fields without one, and most text recurs.
    """
    twin: type[T] = _sealed(typing.cast(Hashable, tp), patterns)
    return msgspec.json.Decoder(twin)


def glance_decoder(tp: type[T], keep: Collection[str]) -> "msgspec.json.Decoder[T]":
    """A JSON decoder for `tp` that reads few fields of many archived messages.

    Of the fields with a default it reads those named in `keep`; the others are skipped like unknown fields,
    and look as if they had not been sent. Patterns are not checked.
    """
    twin: type[T] = _sealed(typing.cast(Hashable, tp), False, frozenset(keep))
    return msgspec.json.Decoder(twin)


@cache
def _sealed(tp: Any, patterns: bool, keep: frozenset[str] | None = None) -> Any:
    if isinstance(tp, type) and issubclass(tp, msgspec.Struct):
        return _sealed_struct(tp, patterns, keep)
    origin, arguments = typing.get_origin(tp), typing.get_args(tp)
    if origin is Annotated:
        rules = arguments[1:] if patterns else tuple(_without_pattern(rule) for rule in arguments[1:])
        return Annotated[(_sealed(arguments[0], patterns, keep), *rules)]
    if origin in (Union, types.UnionType):
        return reduce(or_, (_sealed(one, patterns, keep) for one in arguments))
    if origin in (list, tuple, dict):
        return origin[tuple(_sealed(one, patterns, keep) for one in arguments)]
    return tp


def _without_pattern(rule: Any) -> Any:
    if not isinstance(rule, msgspec.Meta) or rule.pattern is None:
        return rule
    return msgspec.Meta(min_length=rule.min_length, max_length=rule.max_length)


def patterns_of(tp: Any, path: str = "") -> dict[str, str]:
    """Every pattern within `tp` by path: what a decoder without patterns leaves to the caller."""
    patterns: dict[str, str] = {}
    if isinstance(tp, type) and issubclass(tp, msgspec.Struct):
        for name, hint in typing.get_type_hints(tp, include_extras=True).items():
            patterns |= patterns_of(hint, f"{path}.{name}" if path else name)
        return patterns
    for one in typing.get_args(tp):
        if isinstance(one, msgspec.Meta):
            patterns |= {path: one.pattern} if one.pattern is not None else {}
        else:
            patterns |= patterns_of(one, path)
    return patterns


def _sealed_struct(
    cls: type[msgspec.Struct], patterns: bool, keep: frozenset[str] | None
) -> type[msgspec.Struct]:
    hints = typing.get_type_hints(cls, include_extras=True)
    config = cls.__struct_config__
    fields: list[tuple[str, type, Any]] = []
    for one in msgspec.structs.fields(cls):
        # A field with an impossible name is skipped: its own key is then an unknown one.
        name = one.encode_name if keep is None or one.required or one.name in keep else f"({one.name})"
        default = msgspec.field(default=one.default, name=name)
        if one.default_factory is not msgspec.NODEFAULT:
            default = msgspec.field(default_factory=one.default_factory, name=name)
        elif one.default is msgspec.NODEFAULT:
            default = msgspec.field(name=name)
        fields.append((one.name, _sealed(hints[one.name], patterns, keep), default))
    return msgspec.defstruct(
        cls.__name__,
        fields,
        bases=(cls,),
        module=cls.__module__,
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=keep is None,
        tag_field=config.tag_field,
        tag=config.tag,
    )


def outline_decoder(tp: type[msgspec.Struct]) -> "msgspec.json.Decoder[msgspec.Struct]":
    """A JSON decoder for the outline of `tp`, for a body that a decoder for `tp` has accepted.

    An outline contains all keys that were sent except duplicates, and encoded again it is never longer than
    the body: values are copied, and decoded text can only shrink.
    """
    return msgspec.json.Decoder(_outline(tp))


@cache
def _outline(tp: Any) -> Any:
    if isinstance(tp, type) and issubclass(tp, msgspec.Struct):
        hints = typing.get_type_hints(tp, include_extras=True)
        fields = [
            (one.name, _outline(hints[one.name]) | UnsetType, UNSET) for one in msgspec.structs.fields(tp)
        ]
        return msgspec.defstruct(tp.__name__, fields, kw_only=True, gc=False)
    origin, arguments = typing.get_origin(tp), typing.get_args(tp)
    if origin is Annotated:
        return _outline(arguments[0])
    if origin is list:
        inner = _outline(arguments[0])
        return Raw if inner is Raw else origin[inner]
    if origin in (Union, types.UnionType):
        parts = {one: _outline(one) for one in arguments if one not in (type(None), UnsetType)}
        if all(part is Raw for part in parts.values()):
            return Raw
        # In a union with an object nothing can be kept as bytes: text is decoded instead.
        return reduce(or_, (str if part is Raw else part for part in parts.values()), None)
    if tp in (str, int, float, bool) or origin is typing.Literal:
        return Raw
    raise TypeError(f"{tp} may contain keys that are not fields")
