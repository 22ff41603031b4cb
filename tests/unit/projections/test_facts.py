"""When two texts make the same claim: paraphrases, look-alikes, and no false edge among them."""

from __future__ import annotations

from itertools import combinations

import pytest

from observatory.features.facts.claims import (
    KEPT_CHARS,
    claim_of,
    cut,
    denies,
    key_of,
    near,
    normalise,
    words_of,
)

# Texts of one line say the same; texts of different lines do not.
CLAIMS = (
    (
        "NVDA fiscal year ends Jan 28",
        "NVDA's fiscal year ends on January 28",
        "The fiscal year of NVDA ends January 28th.",
        "NVDA Fiscal Year ends Jan 28",
        "NVDA's fiscal year closes on the 28th of January",
    ),
    ("NVDA fiscal year ends Jan 31", "NVDA's fiscal year ends on January 31"),
    ("AMD fiscal year ends Dec 28", "AMD's fiscal year ends on 28 December"),
    ("NVDA fiscal year does not end Jan 28",),
    ("NVDA fiscal quarter ends Jan 28",),
    ("NVDA fiscal year starts Jan 28", "NVDA's fiscal year begins on January 28"),
    ("NVDA calendar report appears Jan 28",),
    ("NVDA fiscal year may end Jan 28",),
    ("Revenue of NVDA in 2023 was $26.97B", "NVDA's 2023 revenue was 26.97 billion dollars"),
    ("Revenue of NVDA in 2022 was $26.97B",),
    ("Revenue of NVDA in 2023 was $26.97M",),
    ("Revenue of NVDA in 2023 was 26.97 billion EUR",),
    ("Gross revenue of NVDA in 2023 was $26.97B",),
    ("Profit of NVDA in 2023 was $26.97B",),
    ("The billing service runs on Postgres in production", "Billing service runs on Postgres in production"),
    ("The billing service runs on MySQL in production",),
    ("The billing service runs on Postgres in staging",),
    ("Alice reports to Bob in the finance team",),
    ("Bob reports to Alice in the finance team",),
    ("the supplier pays the customer within thirty days",),
    ("the customer pays the supplier within thirty days",),
    ("Server 5 serves 900 users", "server 5 is serving 900 users"),
    ("Server 900 serves 5 users",),
    ("The access token expires after 15 minutes", "Access tokens expire after 15 minutes"),
    ("The access token expires after 50 minutes",),
    ("The refresh token expires after 15 minutes",),
    ("Vendor ACME was approved on 2026-02-03",),
    ("Vendor ACME was approved on 2026-03-02",),
    ("Error rate rose above 5% on Monday", "The error rate rose above 5 percent on Monday"),
    ("Error rate fell below 5% on Monday",),
    ("Error rate rose above 5% on Tuesday",),
    ("Temperature of the cold store is -18 degrees", "The cold store temperature is -18 degrees"),
    ("Temperature of the cold store is 18 degrees",),
    ("Ticket OPS-1432 blocks the release",),
    ("Ticket OPS-1423 blocks the release",),
    ("The capital of Australia is Canberra",),
    ("The capital of Australia is Sydney",),
    ("🚀 launch of Falcon is planned for May 3",),
    ("launch of Falcon is planned for May 4",),
)  # fmt: skip
PAIRS = [
    (left, right, mine == other)
    for (mine, left), (other, right) in combinations(
        [(number, text) for number, texts in enumerate(CLAIMS) for text in texts], 2
    )
]


def same(left: str, right: str) -> bool:
    return normalise(left) == normalise(right) or near(claim_of(left), claim_of(right)) > 0


def test_no_look_alike_of_the_table_is_taken_for_the_claim() -> None:
    """S245: no false edge in more than a thousand pairs."""
    false = [(left, right) for left, right, meant in PAIRS if not meant and same(left, right)]
    assert len(PAIRS) > 1_000
    assert false == []


def test_paraphrases_of_the_table_are_found() -> None:
    """S245"""
    missed = [(left, right) for left, right, meant in PAIRS if meant and not same(left, right)]
    assert missed == []


def test_near_is_symmetric_and_a_share() -> None:
    for left, right, _ in PAIRS:
        there, back = near(claim_of(left), claim_of(right)), near(claim_of(right), claim_of(left))
        assert there == back
        assert there == 0 or 0.6 <= there <= 1


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("  NVDA Fiscal\tYear ends Jan 28. ", "nvda fiscal year ends jan 28"),
        ("“Straße”", "strasse"),
        ("ＮＶＤＡ ends", "nvda ends"),
        ("(5 %)", "5 %"),
        ("🚀", "🚀"),
        ("...", "..."),
        ("", ""),
        (" \n\t", ""),
        ("Version 1.0", "version 1.0"),
        ("-5", "-5"),
        ("- a point", "a point"),
    ],
)
def test_the_normal_form_of_a_text(text: str, plain: str) -> None:
    """S243"""
    assert normalise(text) == plain
    assert normalise(plain) == plain


def test_a_key_is_stable_and_of_the_whole_text() -> None:
    """S243"""
    assert key_of("nvda fiscal year ends jan 28") == -2890938703603965046
    long = "x" * 100_000
    assert key_of(long) != key_of(long + "y")
    assert -(2**63) <= key_of("a") < 2**63


def test_what_is_kept_of_a_text_is_cut_at_a_character() -> None:
    """S243"""
    assert cut("short") == "short"
    kept = cut("é🚀" * 10_000)
    assert len(kept.encode()) <= KEPT_CHARS
    assert kept == ("é🚀" * 10_000)[: len(kept)]
    assert "\x00" not in cut("a\x00b")


def test_a_text_too_long_to_compare_is_like_no_other() -> None:
    text = " ".join(f"word{number}" for number in range(500))
    assert near(claim_of(text), claim_of(text)) == 0


def test_to_refute_a_claim_is_not_to_repeat_it() -> None:
    """S246"""
    claim = words_of("NVDA fiscal year ends Jan 28")
    assert denies(words_of("It is wrong that NVDA fiscal year ends Jan 28"), claim)
    assert denies(words_of("NVDA fiscal year ends Jan 28 isn't so"), claim)
    assert not denies(words_of("As NVDA fiscal year ends Jan 28, Q4 is over"), claim)
    assert not denies(words_of("there is no lunch on Monday"), words_of("there is no lunch on Monday"))
