"""Every pattern of the published document means the same to Python and to ECMAScript."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from observatory.protocol.rules import Title

DOCUMENT = Path(__file__).parents[3] / "schemas" / "openapi.json"


def patterns(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for name, inner in node.items():
            if name == "pattern" and isinstance(inner, str):
                yield inner
            yield from patterns(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from patterns(inner)


def test_no_pattern_lets_a_line_break_pass_at_its_end() -> None:
    """Python's `$` also matches before a final newline: a name with one would be another name."""
    found = set(patterns(msgspec.json.decode(DOCUMENT.read_bytes())))
    assert found
    assert [text for text in sorted(found) if text.endswith("$")] == []
    assert all(re.compile(text) for text in found)


@pytest.mark.parametrize("text", ["", " ", "a\n", "\n", "a\nb", "a\x00", "x" * 101])
def test_what_is_no_title_is_refused(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(text, Title)
    assert msgspec.convert("nightly report", Title) == "nightly report"
