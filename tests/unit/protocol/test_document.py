"""The rules any JSON document keeps, by the cheap look and by the exact one."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observatory.protocol.document import MAX_DEPTH, has_no_duplicate_keys, offences, parse

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON, st.booleans())
def test_a_document_that_keeps_the_rules_is_clean_and_whole(value: Any, ascii_only: bool) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only).encode()
    document = parse(raw)
    assert document is not None
    assert document.clean
    assert document.value == value


@given(JSON)
def test_the_cheap_look_finds_nothing_in_a_document_without_twins(value: Any) -> None:
    assert has_no_duplicate_keys(json.dumps(value, ensure_ascii=False).encode())


@given(JSON, st.sampled_from(["a", "", 'q"', "\\", "é", "a\\u0062"]), JSON, JSON)
def test_no_twin_key_is_missed_by_either_look(around: Any, key: str, one: Any, two: Any) -> None:
    for first in (json.dumps(key), json.dumps(key, ensure_ascii=False), _escaped(key)):
        pair = f"{{{first}:{json.dumps(one)}, {json.dumps(key)} : {json.dumps(two)}}}"
        raw = f'[{json.dumps(around)}, {{"in": [{pair}]}}]'.encode()
        document = parse(raw)
        assert document is not None
        assert not document.clean
        assert not has_no_duplicate_keys(raw)


def _escaped(text: str) -> str:
    return '"' + "".join(f"\\u{ord(char):04x}" for char in text) + '"'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a":1,"a":2}', "same key twice"),
        ('{"a":1,"\\u0061":2}', "same key twice"),
        ('{"a":"\\u0000"}', "U+0000"),
        ('{"\\u0000":1}', "U+0000"),
        ('["\\ud800"]', "lone surrogate"),
        ('["\\udc00\\ud800"]', "lone surrogate"),
        ("9007199254740992", "2^53"),
        ("-9007199254740992", "2^53"),
        ("1" * 5000, "2^53"),
        ("NaN", "finite"),
        ("-Infinity", "finite"),
        ("1e999", "finite"),
        ("[" * 65 + "]" * 65, "64 levels"),
        ("[" * 500_000 + "]" * 500_000, "64 levels"),
        ('{"a":' * 2000 + "1" + "}" * 2000, "64 levels"),
    ],
)
def test_each_broken_rule_is_named(text: str, problem: str) -> None:
    document = parse(text.encode())
    assert document is not None
    assert not document.clean
    assert any(problem in sentence for sentence in offences(document.value))


@pytest.mark.parametrize(
    "text", ["9007199254740991", "-9007199254740991", "1e300", '"\\ud83d\\ude00"', '"\\\\u0000"']
)
def test_the_edges_of_the_rules_are_inside(text: str) -> None:
    document = parse(text.encode())
    assert document is not None
    assert document.clean


def test_sixty_four_levels_are_allowed() -> None:
    document = parse(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    assert document is not None
    assert document.clean


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b" ",
        b"{",
        b"nope",
        b"{'a':1}",
        b'{"a":1,}',
        b"\xff",
        b'"\xed\xa0\x80"',
        b"\xef\xbb\xbf{}",
        b'"\n"',
        b'"\x00"',
        b"01",
        b"1.",
        b"{}{}",
        "{}".encode("utf-16"),
    ],
)
def test_what_is_no_json_has_no_document(raw: bytes) -> None:
    assert parse(raw) is None


@given(st.binary())
def test_any_bytes_are_parsed_without_an_exception(raw: bytes) -> None:
    parse(raw)
