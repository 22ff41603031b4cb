"""Facts as beliefs: which forms are read, which values agree."""

from __future__ import annotations

import pytest

from observatory.features.facts.types_beliefs import belief_of, compatible, subject_key, value_in, value_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("NVDA fiscal year ends Jan 28", "date:--01-28"),
        ("NVDA's fiscal year ends on January 31.", "date:--01-31"),
        ("the capital of Australia is Sydney", "name:sydney"),
        ("retries = 5", "number:5"),
        ("max_retries: 3", "number:3"),
        ('{"max_retries": 5}', "number:5"),
        ('{"key": "region", "value": "eu-west"}', "name:eu west"),
        ('{"enabled": true}', "is:true"),
        ("budget is $26.97B", "number:26.97 billion"),
        ("The budget is 26.97 billion dollars", "number:26.97 billion"),
        ("The limit is €500", "number:500 eur"),
        ("temperature is -5 celsius", "number:-5 celsiu"),
        ("feature flag is enabled", "is:true"),
        ("deadline: 2026-03-01", "date:2026-03-01"),
        ("deadline is March 1, 2026", "date:2026-03-01"),
    ],
)
def test_plain_statements_are_read(text: str, value: str) -> None:
    """S255"""
    belief = belief_of(text)
    assert belief is not None and belief.value == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "🚀",
        "Alice is happy",
        "it is 5",
        "The build is not green",
        "The limit is probably 500",
        "The limit might be 500",
        "X = maybe 5",
        "https://foo.bar/x",
        "Note: 5 files",
        "5 = 5",
        '{"a": 1, "b": 2}',
        "{broken",
        "deadline is 2026-13-45",
        "The plan is to sell 5 of the 7 machines next week",
        "x" * 10_000 + " is 5",
    ],
)
def test_what_is_no_plain_statement_is_no_belief(text: str) -> None:
    """S255"""
    assert belief_of(text) is None


def test_a_subject_is_the_same_in_other_words() -> None:
    """S256"""
    texts = (
        "NVDA fiscal year ends Jan 28",
        "The fiscal year of NVDA ends January 28",
        "NVDA's fiscal year closes Jan 28",
    )
    keys = {belief.subject_key for text in texts if (belief := belief_of(text)) is not None}
    assert len(keys) == 1
    assert subject_key("nvda's fiscal year ends") in keys
    other = belief_of("AMD fiscal year ends Dec 28")
    assert other is not None and other.subject_key not in keys


@pytest.mark.parametrize(
    ("left", "right", "agree"),
    [
        ("Jan 28", "January 28th", True),
        ("Jan 28", "2024-01-28", True),
        ("2023-01-28", "2024-01-28", False),
        ("Jan 28", "Jan 31", False),
        ("5", "5.0", True),
        ("5", "-5", False),
        ("1,000", "1000", True),
        ("5 EUR", "5 USD", False),
        ("5%", "5 percent", True),
        ("yes", "true", True),
        ("on", "off", False),
        ("Postgres", "postgres", True),
        ("Postgres", "MySQL", False),
    ],
)
def test_values_agree_when_both_can_be_true(left: str, right: str, agree: bool) -> None:
    """S256"""
    one, other = value_of(left), value_of(right)
    assert one is not None and other is not None
    assert compatible(one, other) is agree
    assert compatible(other, one) is agree


def test_a_value_is_shown_in_the_words_of_its_fact() -> None:
    """S258"""
    for text, value in (
        ("The owner of billing is Pricing Services", "Pricing Services"),
        ("NVDA's fiscal year ends on January 28.", "January 28"),
        ('{"max_retries": 5}', "5"),
        ("The refund limit is 500 EUR", "500 EUR"),
        ("nothing of the kind", None),
    ):
        assert value_in(text) == value, text
