"""Ranking and quoting: pure, the same on every database."""

from __future__ import annotations

import time

import pytest

from observatory.features.search.ranking import Scored, bm25, counted, fuse, holds, matches, snippet
from observatory.features.search.types_query import SimilarDocument
from observatory.features.search.words import plain, words_of
from observatory.store.search_query import Term, WordQuery


def wanted(*words: str) -> WordQuery:
    return WordQuery(tuple((Term(tuple(word.split())),) for word in words))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, World_2", "hello world 2"),
        ("Ünïcödé ﬁne ＡＢＣ", "unicode fine abc"),
        ("日本 go", "日 本 go"),
        ("a\0b\ud800c", "a b c"),
        ("", ""),
        ("🙂", ""),
        ("x" * 70, "x" * 64),
    ],
)
def test_words_have_one_spelling_s270(text: str, expected: str) -> None:
    """S270: without case, accents and signs; cut where no word is so long."""
    assert plain(text) == expected


def test_a_document_is_ranked_by_how_often_and_how_rare_s275() -> None:
    """S275: more often, rarer words, shorter documents come first; the newer among equals."""
    assert [one.seq for one in bm25(wanted("a"), [(1, "a b c"), (2, "a b a"), (3, "a b c")])] == [2, 3, 1]
    either = WordQuery(((Term(("a",)), Term(("z",))),))
    found = [(1, "a x y"), (2, "a x y"), (3, "z x y"), (4, "a x y")]
    assert bm25(either, found)[0].seq == 3 and bm25(either, found)[0].terms == ("z",)
    assert [one.seq for one in bm25(wanted("a"), [(1, "a"), (2, "a " + "b " * 50)])] == [1, 2]
    assert bm25(wanted("a"), []) == []


def test_ranks_are_added_s275() -> None:
    """S275: what both found comes before what one found; the newer first among equals."""
    text = [Scored(1, 9.0, ("a",)), Scored(2, 8.0, ("a",))]
    alike = [SimilarDocument(3, 0.9, ""), SimilarDocument(2, 0.5, "")]
    hits = fuse(text, alike)
    assert [hit.seq for hit in hits] == [2, 3, 1]
    assert (hits[0].text_rank, hits[0].like_rank, hits[0].likeness) == (2, 2, 0.5)
    assert (hits[1].text_rank, hits[1].terms) == (None, ())


def test_phrases_and_exclusions_bind_s274() -> None:
    """S274: whole words only."""
    assert holds([Term(("a", "b"))], [], "x a b")
    assert not holds([Term(("a", "b"))], [], "x a bc")
    assert holds([Term(("a", "b"), True)], [], "x a bc")
    assert not holds([], [Term(("x",))], "x")
    assert holds([], [], "")


def test_a_quote_shows_the_words_as_they_were_written_s278() -> None:
    """S278: around the match, with its place; the beginning where nothing matched."""
    text = "Bla " * 60 + "the CAFÉ's “Project X” is late " + "bla " * 60
    found = snippet([("intent", "nothing"), ("reasoning", text)], [Term(("project", "x")), Term(("cafe",))])
    assert found["part"] == "reasoning" and len(found["text"]) < 260
    assert [found["text"][a:b] for a, b in found["matches"]] == ["CAFÉ", "Project X"]
    bare = snippet([("intent", "nothing"), ("reasoning", text)], [])
    assert bare == {"part": "intent", "text": "nothing", "matches": []}
    assert snippet([], []) == {"part": "", "text": "", "matches": []}
    assert matches("日本語", [Term(("本", "語"))]) == [(1, 3)]
    assert matches("projects", [Term(("project",), True)]) == [(0, 8)]
    assert matches("cafe\u0301 x", [Term(("cafe",))]) == [(0, 5)]
    assert words_of("cafe\u0301 x") == ["cafe", "x"]


def test_a_facet_counts_most_first_s279() -> None:
    """S279: values nobody has are not counted."""
    assert counted(["a", "b", None, "b"], 5) == [{"value": "b", "count": 2}, {"value": "a", "count": 1}]
    assert len(counted(range(10), 3)) == 3


def test_many_terms_are_looked_up_in_a_text_read_once_s278() -> None:
    """S278: words, beginnings and runs; of terms at one place the first counts; 64 terms cost little."""
    text = "Alpha beta alphabet beta gamma, alpha beta"
    assert [text[a:b] for a, b in matches(text, [Term(("alpha", "beta")), Term(("alph",), True)])] == [
        "Alpha beta",
        "alphabet",
        "alpha beta",
    ]
    assert [text[a:b] for a, b in matches(text, [Term(("beta", "gam"), True)])] == ["beta gamma"]
    assert matches(text, [Term(("lpha",)), Term(("beta", "alpha")), Term(("gamma", "alpha", "b"))]) == []
    long = "word number filler text " * 700
    terms = [Term((f"none{number}",)) for number in range(64)]
    taken = []
    for asked in (terms[:1], terms):
        start = time.process_time()
        for _ in range(5):
            assert matches(long, asked) == []
        taken.append(time.process_time() - start)
    assert taken[1] < 3 * taken[0] + 0.05
