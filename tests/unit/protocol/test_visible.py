"""Text of strangers, as people read it in terminals, Slack, e-mail; the pages' tests use the same cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from observatory.protocol.visible import escaped, visible, visible_line

CASES = json.loads((Path(__file__).parents[2] / "vectors/golden/visible.json").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["visible"].encode("unicode_escape").decode())
def test_what_cannot_be_seen_is_named_and_mixed_scripts_are_noted(case: dict[str, str]) -> None:
    """S1110: and doing it again changes nothing."""
    assert visible(case["text"]) == case["visible"] == visible(case["visible"])


def test_other_scripts_emoji_and_lines_are_left_as_they_are() -> None:
    text = "a\tb\nשלום 你好 привет мир 🚀 👩\u200d💻 ❤\ufe0f 5 µs"
    assert visible(text) == text
    assert visible_line("a\tb\r\nc") == "a b  c"


def test_json_for_a_terminal_hides_nothing_and_is_the_same_value() -> None:
    value = {"to": "bob\u202e1234", "tag": "\U000e0041", "name": "Zoë 👩\u200d💻"}
    shown = escaped(json.dumps(value, ensure_ascii=False))
    assert "bob\\u202e1234" in shown and "\\udb40\\udc41" in shown and "Zoë" in shown
    assert json.loads(shown) == value
