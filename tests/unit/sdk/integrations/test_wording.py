"""What frameworks say, within the protocol's limits; frameworks that are missing or have changed (S900)."""

import sys
from typing import Any

import pytest

from observatory.sdk import Approval, NotSupported
from observatory.sdk.integrations import wording
from observatory.sdk.integrations.framework import need


@pytest.mark.parametrize(
    ("value", "received"),
    [
        ("short", "short"),
        ({"a": [1]}, '{"a":[1]}'),
        ("nul\x00 and \ud800", "nul\ufffd and \ufffd"),
        (None, ""),
        ("x" * 5000, "x" * 1976 + "… (3,024 more)"),
    ],
)
def test_a_summary_is_a_bounded_text_s900(value: Any, received: str) -> None:
    assert wording.clip(value) == received
    assert len(received) <= wording.SUMMARY_CHARS


def test_an_input_is_sent_whole_or_named_by_its_hash_s900() -> None:
    given = {"path": "a"}
    assert wording.bounded_input(given) is given
    assert wording.bounded_input(None) is None
    assert wording.bounded_input({"text": "a\x00b"}) == '{"text":"a\ufffdb"}'
    huge = wording.bounded_input({"text": "x" * 300_000})
    assert huge["too_large"] == 300_011 and len(huge["sha256"]) == 64 and len(huge["begins"]) <= 2000
    assert wording.bounded_input({"text": "y" * 300_000})["sha256"] != huge["sha256"]
    hostile: list[Any] = []
    hostile.append(hostile)
    assert isinstance(wording.bounded_input(hostile), (str, list))


@pytest.mark.parametrize("thread", ["a/b", "", "x" * 300, "tab\t", "\ud800"])
def test_a_thread_whose_name_no_session_can_have_gets_one_made_of_it_s900(thread: str) -> None:
    name = wording.session_name(thread)
    assert len(name) == 36 and name == wording.session_name(thread)
    assert wording.session_name("user 42") == "user 42" and wording.session_name(7) == "7"


def test_tokens_that_were_not_told_are_not_zero_s900() -> None:
    assert wording.tokens(None, None) is None
    assert wording.tokens(3, None, 4) == 7
    assert wording.tokens(0) == 0
    assert wording.tokens(-1, "7", True) is None


def test_a_refusal_says_who_and_why_s900() -> None:
    received = wording.refusal("pay", Approval(False, "rejected", "too much", "usr_1"))
    assert received.startswith("pay was not run: a person rejected it (usr_1): too much.")
    assert "it was refused (ancestor_rejected)" in wording.refusal(
        "pay", Approval(False, "ancestor_rejected")
    )


def test_a_framework_that_is_missing_or_has_changed_is_refused_in_words_s900(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    need("msgspec", "msgspec>=0.19", "msgspec:Struct", "msgspec.json:Encoder.encode")
    with pytest.raises(NotSupported, match=r"not_there is not installed.*pip install 'not_there>=1'"):
        need("not_there", "not_there>=1", "not_there.hooks:Hook")
    with pytest.raises(NotSupported, match=r"msgspec [\d.]+ has no msgspec.json.Encoder.gone.*no hook was"):
        need("msgspec", "msgspec>=0.19", "msgspec.json:Encoder.gone")
    with pytest.raises(NotSupported, match=r"has no msgspec.moved.Hook"):
        need("msgspec", "msgspec>=0.19", "msgspec.moved:Hook")
    assert "not_there" not in sys.modules


class Sealed:
    """As a row of a database that is closed: it cannot even say what it is."""

    def __str__(self) -> str:
        raise LookupError("no words")

    __repr__ = __str__


class SealedError(Exception):
    def __str__(self) -> str:
        raise LookupError("no words")


def test_what_cannot_be_written_is_told_by_its_kind_and_nothing_raises_s900() -> None:
    assert wording.clip({"row": Sealed()}) == "(dict, which cannot be written)"
    assert wording.bounded_input({"row": Sealed()}) == "(dict, which cannot be written)"
    assert wording.failure(SealedError()) == "SealedError"
