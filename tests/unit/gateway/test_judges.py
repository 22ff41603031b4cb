"""Judges of operators' requests: the same verdict as the decoder, for every body a route takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from litestar.routes import HTTPRoute
from msgspec import inspect as kinds

from observatory.features import parts
from observatory.http.app import litestar_app
from observatory.http.bodies import shape_of
from observatory.pipeline.validation import faults_of

AGENTS_OWN = {
    "NewAgent",
    "HeartbeatBody",
    "Leaving",
    "AckIds",
}  # newer agents may say more to an older gateway
# Without U+0000: the decoder takes it, `document.offences` refuses it before any type is judged (ruling 4).
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3)
SCALARS = st.none() | st.booleans() | st.integers(-2, 2_000) | st.floats(-2, 2) | TEXT
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
)


def shapes() -> list[Any]:
    found = {}
    for route in litestar_app(None, [part.FEATURE for part in parts("feature")]).routes:
        for handler in route.route_handlers if isinstance(route, HTTPRoute) else ():
            shape = shape_of(handler)
            if isinstance(shape, type) and issubclass(shape, msgspec.Struct):
                found[shape.__name__] = shape
    return list(found.values())


def rules_of(rule: kinds.Type, extra: dict[str, Any]) -> Iterator[tuple[kinds.Type, dict[str, Any]]]:
    while isinstance(rule, kinds.Metadata):
        extra, rule = extra | (rule.extra or {}), rule.type
    yield rule, extra
    for inner in (
        *getattr(rule, "types", ()),
        *(field.type for field in getattr(rule, "fields", ())),
        *filter(None, (getattr(rule, name, None) for name in ("item_type", "key_type", "value_type"))),
    ):
        yield from rules_of(inner, extra if isinstance(rule, kinds.UnionType) else {})


KNOWN = (
    kinds.UnionType | kinds.StructType | kinds.ListType | kinds.VarTupleType | kinds.DictType | kinds.StrType
    | kinds.IntType | kinds.FloatType | kinds.BoolType | kinds.LiteralType | kinds.NoneType | kinds.AnyType
)  # fmt: skip


@pytest.mark.parametrize("shape", shapes(), ids=lambda shape: shape.__name__)
def test_every_rule_of_a_request_has_a_judge_and_a_sentence_s1240(shape: Any) -> None:
    """S1240: a pattern is not shown to people, a limit always is."""
    for rule, extra in rules_of(kinds.type_info(shape), {}):
        assert isinstance(rule, KNOWN), rule
        if isinstance(rule, kinds.StrType):
            assert rule.pattern is None or "expects" in extra, rule
        if isinstance(rule, kinds.IntType | kinds.FloatType):
            assert (rule.gt, rule.lt, rule.multiple_of) == (None, None, None)
        if isinstance(rule, kinds.LiteralType):
            assert all(isinstance(value, str) for value in rule.values)


@pytest.mark.parametrize("shape", shapes(), ids=lambda shape: shape.__name__)
def test_operators_requests_take_no_unknown_member_s1241(shape: Any) -> None:
    """S1241: what agents send may hold more than this gateway knows."""
    assert shape.__struct_config__.forbid_unknown_fields == (shape.__name__ not in AGENTS_OWN)


@pytest.mark.parametrize("shape", shapes(), ids=lambda shape: shape.__name__)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_no_judge_faults_is_what_the_decoder_takes_s1240(shape: Any, data: st.DataObject) -> None:
    """S1240: both ways, over bodies of known members with any values."""
    names = [field.encode_name for field in msgspec.structs.fields(shape)]
    body = data.draw(st.dictionaries(st.sampled_from(names), VALUES))
    faults = faults_of(shape, body)
    try:
        msgspec.json.decode(msgspec.json.encode(body), type=shape)
    except msgspec.ValidationError:
        assert faults
    else:
        assert not faults
