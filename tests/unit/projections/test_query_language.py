"""The query language: what is read out of a line, and that nothing typed can break it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observatory.features.search.query_language import LATEST_NS, SearchQuery, parse
from observatory.features.search.types_query import Clause
from observatory.store.search_postgres import match as tsquery
from observatory.store.search_query import Term
from observatory.store.search_sqlite import match as fts5

NOW_NS = 1_794_787_200_000_000_000  # 2026-11-16T00:00:00Z
HOUR_NS = 3_600_000_000_000


def received(query: SearchQuery) -> dict[str, Any]:
    """Only what was found."""
    found = {
        "every": [[_text(term) for term in group] for group in query.wanted.every],
        "none": [_text(term) for term in query.wanted.none],
        "phrases": [_text(term) for term in query.phrases],
        "meaning": list(query.meaning),
        "clauses": [
            (one.field, ("not " if one.negated else "") + one.op, *one.values) for one in query.clauses
        ],
        "since": query.since_ns,
        "until": query.until_ns,
        "warnings": len(query.warnings),
        "lost": query.lost,
    }
    return {name: value for name, value in found.items() if value}


def _text(term: Term) -> str:
    return term.text + ("*" if term.prefix else "")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", {}),
        ("   ", {}),
        ("plain words", {"every": [["plain"], ["words"]]}),
        ('"exact words"', {"every": [["exact words"]], "phrases": ["exact words"]}),
        ("“exact words”", {"every": [["exact words"]], "phrases": ["exact words"]}),
        ("a OR b c", {"every": [["a", "b"], ["c"]]}),
        ("a | b", {"every": [["a", "b"]]}),
        ('"a b" OR c', {"every": [["a b", "c"]]}),
        ("a AND b", {"every": [["a"], ["b"]]}),
        ("a -b NOT c", {"every": [["a"]], "none": ["b", "c"]}),
        ('-"b c"', {"none": ["b c"]}),
        ("proj*", {"every": [["proj*"]]}),
        ("foo-bar.txt", {"every": [["foo bar txt"]]}),
        ("well-known", {"every": [["well known"]]}),
        ("~refund", {"meaning": ["refund"]}),
        ('~"money back" x', {"every": [["x"]], "meaning": ["money back"]}),
        ("agent:x", {"clauses": [("agent", "in", "x")]}),
        ("AGENT:x,y", {"clauses": [("agent", "in", "x", "y")]}),
        ('agent:"x y"', {"clauses": [("agent", "in", "x y")]}),
        ("-agent:x", {"clauses": [("agent", "not in", "x")]}),
        ("type:text state:held", {"clauses": [("type", "in", "text"), ("state", "in", "held")]}),
        ("status:failure tool:z", {"clauses": [("status", "in", "failure"), ("tool", "in", "z")]}),
        ("session:s cluster:c", {"clauses": [("session", "in", "s"), ("cluster", "in", "c")]}),
        ("entropy:<0.3", {"clauses": [("entropy", "<", 0.3)]}),
        ("cost:>1 confidence:<=.5", {"clauses": [("cost", ">", 1.0), ("confidence", "<=", 0.5)]}),
        ("cost:$2", {"clauses": [("cost", ">=", 2.0), ("cost", "<=", 2.0)]}),
        ("tokens:>1000.5", {"clauses": [("tokens", ">", 1000)]}),
        ("tokens:<1000.5", {"clauses": [("tokens", "<", 1001)]}),
        ("cost:1..3", {"clauses": [("cost", ">=", 1.0), ("cost", "<=", 3.0)]}),
        ("-cost:>5", {"clauses": [("cost", "not >", 5.0)]}),
        ("since:1h", {"since": NOW_NS - HOUR_NS}),
        ("since:90min until:30m", {"since": NOW_NS - HOUR_NS * 3 // 2, "until": NOW_NS - HOUR_NS // 2}),
        ("since:2026-11-15", {"since": NOW_NS - 24 * HOUR_NS}),
        ("until:2026-11-15T23:00:00+00:00", {"until": NOW_NS - HOUR_NS}),
        ("until:2026-11-16T00:00+01:00", {"until": NOW_NS - HOUR_NS}),
        ("since:yesterday until:today", {"since": NOW_NS - 24 * HOUR_NS, "until": NOW_NS}),
        # Odd and hostile: read as well as can be, and said so.
        ("since:tomorrowish", {"warnings": 1, "lost": True}),
        ("since:1h since:2h", {"since": NOW_NS - HOUR_NS, "warnings": 1}),
        ("-since:1h", {"warnings": 1, "lost": True}),
        ("since:99999999999999999999d", {"warnings": 1, "lost": True}),
        ("until:9999-12-31", {"until": LATEST_NS}),
        ("since:0001-01-01", {}),
        ("entropy:low", {"warnings": 1, "lost": True}),
        ("entropy:<nan cost:>inf", {"warnings": 2, "lost": True}),
        ("cost:>1e999", {"warnings": 1, "lost": True}),
        ("cost:>1_000", {"warnings": 1, "lost": True}),
        ("cost:>٣", {"warnings": 1, "lost": True}),
        ("tokens:>1e300", {"clauses": [("tokens", ">", (1 << 63) - 1)]}),
        ("cost:", {"warnings": 1, "lost": True}),
        ("agent:", {"warnings": 1, "lost": True}),
        ("agent:,,,", {"warnings": 1, "lost": True}),
        ("type:nonsense", {"clauses": [("type", "in", "nonsense")], "warnings": 1}),
        ("colour:red", {"every": [["colour red"]], "warnings": 1}),
        ("https://x.y/z", {"every": [["https x y z"]]}),
        ("🙂🙂", {"warnings": 1, "lost": True}),
        ("🙂 hello", {"every": [["hello"]], "warnings": 1}),
        ("~🙂", {"warnings": 1, "lost": True}),
        ('"unclosed phrase', {"every": [["unclosed phrase"]], "phrases": ["unclosed phrase"], "warnings": 1}),
        ('""', {"lost": False}),
        ("OR OR a OR", {"every": [["a"]], "warnings": 2}),
        ("(a OR b) c", {"every": [["a", "b"], ["c"]], "warnings": 1}),
        ("((((", {"warnings": 1, "lost": True}),
        ("-", {"warnings": 1, "lost": True}),
        ("~", {"warnings": 1, "lost": True}),
        ("*", {"warnings": 1, "lost": True}),
        ('" OR 1=1 --', {"every": [["or 1 1"]], "phrases": ["or 1 1"], "warnings": 1}),
        ("'; DROP TABLE x_words; --", {"every": [["drop"], ["table"], ["x words"]], "warnings": 2}),
        ("x' UNION SELECT * FROM payloads", {
            "every": [["x"], ["union"], ["select"], ["from"], ["payloads"]], "warnings": 1}),
        ('a" NEAR("b" c', {"every": [["a"], ["near b"], ["c"]], "warnings": 1}),
        ("body:secret {body}: ^x a+b", {"every": [["body secret"], ["body"], ["x"], ["a b"]], "warnings": 1}),
        ("a & !b <-> c:*", {"every": [["a"], ["c*"]], "none": ["b"], "warnings": 2}),
        ("a\0b", {"every": [["a"], ["b"]]}),
        ("\ud800 x", {"every": [["x"]], "warnings": 1}),
        ("ÀÉÎ ﬁn ＡＢＣ", {"every": [["aei"], ["fin"], ["abc"]]}),
        ("日本語", {"every": [["日 本 語"]]}),
        ("мир שלום", {"every": [["мир"], ["שלום"]]}),
        ("%_\\ %s {0} $1", {"every": [["s"], ["0"], ["1"]], "warnings": 1}),
        ("x" * 100, {"every": [["x" * 64]]}),
    ],
)  # fmt: skip
def test_a_line_is_read_as_well_as_can_be_s272(line: str, expected: dict[str, Any]) -> None:
    """S272, S273: words, phrases, meaning, filters and times; what cannot be read is told, never refused."""
    found = received(parse(line, NOW_NS))
    assert found == {name: value for name, value in expected.items() if value}


def test_a_flood_is_cut_and_said_so_s272() -> None:
    """S272: so many characters, so many words."""
    long = parse("x " * 5_000, NOW_NS)
    assert len(long.wanted.every) == 32 and len(long.warnings) == 2
    assert len(parse("agent: " * 500, NOW_NS).warnings) == 1


@settings(deadline=None)
@given(st.text(max_size=200))
def test_nothing_typed_breaks_it_or_leaves_it_as_a_statement_s272(line: str) -> None:
    """S272: whatever it is; words come out as letters and digits, in quotes."""
    query = parse(line, NOW_NS)
    for term in (*query.wanted.none, *(term for group in query.wanted.every for term in group)):
        assert term.words and all(word.isalnum() for word in term.words), term
    if query.wanted.every:
        allowed = set("() &|!<->:*'")
        assert all(letter.isalnum() or letter in allowed for letter in tsquery(query.wanted))
        plain = fts5(query.wanted).replace(" AND ", "").replace(" OR ", "").replace(" NOT ", "")
        assert all(letter.isalnum() or letter in '"()* ' for letter in plain)
    msgspec.json.encode(query)
    assert all(isinstance(one, Clause) for one in query.clauses)


@pytest.mark.parametrize(
    ("line", "marked"),
    [
        ('refund "never closed', ['"']),
        ("agent:a cost:dear since:1h", ["cost:dear"]),
        ("since:soon words", ["since:soon"]),
        ("type:telegram", ["type:telegram"]),
        ("a OR", ["OR"]),
        ("a NOT", ["NOT"]),
        ("(a OR b)", ["(a", "b)"]),
        ("ünïcödé 𝔘𝔫𝔦 cost:x", ["cost:x"]),
        ("colour:red", ["colour:red"]),
        ("agent: rest", ["agent:"]),
        ("plain ~meaning since:1h", []),
    ],
)
def test_what_is_not_read_is_pointed_at_s660(line: str, marked: list[str]) -> None:
    """S660: each problem names its characters, and nothing else."""
    problems = parse(line, NOW_NS).problems
    assert [line[one.start : one.end] for one in problems] == marked
    assert {one.sentence for one in problems} <= set(parse(line, NOW_NS).warnings)


def test_an_open_quote_alone_loses_nothing_s660() -> None:
    """S660: whoever has just typed a quote still sees the newest."""
    assert not parse('"', NOW_NS).lost
    assert parse('"a b', NOW_NS).phrases == (Term(("a", "b")),)


@given(st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_a_problem_always_lies_inside_the_question_s660(line: str) -> None:
    """S660: whatever is typed."""
    for one in parse(line, NOW_NS).problems:
        assert 0 <= one.start < one.end <= len(line)
