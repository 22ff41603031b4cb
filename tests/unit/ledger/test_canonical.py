"""The two canonical forms (ruling 33, 34; RFC 8785) against the libraries and vectors that define them."""

import datetime
import enum
import json
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from observatory.ledger.canonical import MAX_SAFE_INTEGER, av_json, jcs, jcs_with_floats, sha256_text
from observatory.ledger.verify_canonical import canonical_text, canonical_thought

JCS_VECTORS = Path(__file__).parents[4] / "shared/vectors/jcs/testdata"

# Control characters, DEL, line separators, the end of the BMP and astral characters are where encoders part.
awkward = st.sampled_from(
    '\x00\x08\x0c\x1f\x7f\x80"\\/\u2028\u2029\ud7ff\ue000\ufb33\uffff\U00010000\U0001f600'
)
texts = st.text(st.one_of(awkward, st.characters(exclude_categories=["Cs"])), max_size=12)
scalars = st.one_of(st.none(), st.booleans(), st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER), texts)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=5)
)
mappings = st.dictionaries(texts, values, max_size=6)


@settings(max_examples=200)
@given(mappings)
def test_jcs_writes_the_bytes_of_the_reference_library(mapping: dict[str, Any]) -> None:
    assert jcs(mapping) == rfc8785.dumps(mapping)


@settings(max_examples=100)
@given(mappings)
def test_both_forms_say_the_same_after_a_round_trip(mapping: dict[str, Any]) -> None:
    assert json.loads(jcs(mapping)) == json.loads(av_json(mapping)) == mapping
    assert av_json(json.loads(jcs(mapping))) == av_json(mapping)


def test_keys_are_sorted_by_utf16_units_and_not_by_code_point() -> None:
    assert jcs({"\U0001f600": 1, "\ufb33": 2}) == '{"\U0001f600":1,"\ufb33":2}'.encode()
    assert jcs([{"\U0001f600": 1, "\ufb33": 2}]) == '[{"\U0001f600":1,"\ufb33":2}]'.encode()


@pytest.mark.parametrize("name", ["arrays", "french", "structures", "unicode", "weird"])
def test_jcs_agrees_with_the_official_vectors_without_floats(name: str) -> None:
    if not JCS_VECTORS.exists():
        pytest.skip("the shared JCS vectors are not beside this checkout")
    given_text = (JCS_VECTORS / "input" / f"{name}.json").read_text("utf-8")
    value = json.loads(
        given_text, parse_float=lambda text: int(float(text)) if float(text).is_integer() else text
    )
    assert jcs(value) == (JCS_VECTORS / "output" / f"{name}.json").read_bytes()


class Colour(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    "value",
    [
        0.5,
        1.0,
        float("nan"),
        2**53,
        -(2**53),
        b"bytes",
        datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        Colour.RED,
        "\ud800",
        {1: "a"},
        {"deep": [{"er": 0.1}]},
    ],
    ids=repr,
)
def test_jcs_refuses_what_is_outside_the_subset(value: Any) -> None:
    with pytest.raises(ValueError):
        jcs({"value": value})


def test_jcs_refuses_nesting_without_end() -> None:
    endless: dict[str, Any] = {}
    endless["again"] = endless
    with pytest.raises(ValueError, match="deeply"):
        jcs(endless)


def test_a_refusal_names_the_rule_and_never_the_value() -> None:
    with pytest.raises(ValueError) as refusal:
        jcs({"secret_key": 12345.75})
    assert "12345" not in str(refusal.value) and "secret_key" not in str(refusal.value)


def test_the_seed_form_sorts_escapes_and_leaves_no_space() -> None:
    assert (
        av_json({"b": "é\u2028\x7f", "a": [1, None, 0.5]})
        == b'{"a":[1,null,0.5],"b":"\\u00e9\\u2028\\u007f"}'
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_the_seed_form_refuses_what_is_not_json(value: float) -> None:
    with pytest.raises(ValueError):
        av_json({"value": value})


def test_a_hash_is_spelled_with_its_algorithm_in_lower_hex() -> None:
    assert sha256_text(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER))
def test_every_double_is_written_as_rfc_8785_asks_by_writer_and_verifier_s819(number: float) -> None:
    """S819: a foreign encoder agrees, and what was written is read as the same."""
    text = jcs_with_floats([number])
    assert text == rfc8785.dumps([number]) == canonical_text([number]).encode()
    assert jcs_with_floats(json.loads(text)) == text


@given(values)
def test_within_the_subset_words_are_written_as_events_are_s819(value: Any) -> None:
    assert jcs_with_floats(value) == jcs(value) == canonical_text(value).encode()


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.8, "0.8"),
        (56.0, "56"),
        (-0.0, "0"),
        (1e20, "100000000000000000000"),
        (123456789012345678901.0, "123456789012345680000"),
        (1e21, "1e+21"),
        (1e-6, "0.000001"),
        (-1.5e-7, "-1.5e-7"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
    ],
)
def test_numbers_of_words_are_ecmascripts_s819(number: float, text: str) -> None:
    assert jcs_with_floats({"n": number}) == f'{{"n":{text}}}'.encode()
    assert canonical_thought(f'{{"n":{text}}}'.encode()) is not None


@pytest.mark.parametrize(
    "text", ["1.0", "1e5", "1E+21", "-0", "0.10", "1e-07", "9007199254740993", "1e999", "NaN"]
)
def test_another_spelling_of_a_number_is_not_the_canonical_one_s819(text: str) -> None:
    assert canonical_thought(f'{{"n":{text}}}'.encode()) is None


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 2**53 + 1, 10**400, b"bytes", "\ud800", {1: "a"}, Colour.RED]
)
def test_words_that_are_no_plain_json_are_refused_s819(value: Any) -> None:
    with pytest.raises(ValueError):
        jcs_with_floats({"value": value})
