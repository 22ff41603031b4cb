"""Calls and thoughts that vary and come to the same: when that is a rut, and when it is work."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observatory.features.loops.call_fingerprint import StepFingerprint, fingerprint
from observatory.features.loops.second_detector import WINDOW, LoopVerdict, LoopWatch
from observatory.protocol.tenant_config import LoopSettings

RULES = LoopSettings()


def call(
    tool: str, given_: Any, output: str, status: str = "success", intent: str = "Get on with it"
) -> StepFingerprint:
    asked = given_ if isinstance(given_, str) else json.dumps(given_)
    return fingerprint(intent, None, tool, asked, output, status, None)


def thought(text: str) -> StepFingerprint:
    return fingerprint(text, None, None, None, None, "success", None)


def run(steps: list[StepFingerprint], rules: LoopSettings = RULES) -> list[LoopVerdict]:
    watch = LoopWatch()
    said = [watch.push(number, one, rules) for number, one in enumerate(steps)]
    return [verdict for verdict in said if verdict is not None]


NAMES = ("anna", "bo", "cem", "dora", "emil", "finn", "gus", "hana")
COLOURS = ("red", "blue", "green", "white", "black", "grey", "pink", "brown")
RUTS = {
    "a quantity turned up": [
        call("submit", {"job": "merge", "queue": "batch", "gb": 2**n}, "queue is closed", "failure")
        for n in range(3, 11)
    ],
    "a file read here and there": [
        call("read", {"file": "a.bin", "range": span}, "nothing to show")
        for span in ("0-512", "512-900", "0-99", "400-800", "50-60", "9-12", "100-200")
    ],
    "one question in many words": [
        call("search", {"q": words}, "no results")
        for words in (
            "Kern invoice March",
            "March invoice Kern",
            "invoice of Kern, March",
            "KERN invoice",
            "invoice (March) Kern",
            "Kern March",
            "the invoice Kern",
        )
    ],
    "a form that lacks the same field": [
        call("create", {"body": body}, "422: country is required", "failure")
        for body in (
            '{"name":"Ada","city":"Rome"}',
            '{"city": "Rome", "name": "Ada"}',
            '{"name":"Ada B","city":"Rome"}',
            '{"name":"Ada","city":"Roma"}',
            '{"name":"Ada","town":"Rome"}',
            '{"name":"ADA","city":"ROME"}',
        )
    ],
    "a question that is not answered": [
        call("ask_user", question, answer)
        for question, answer in (
            ("Which date shall I book?", "soon"),
            ("What date should I book?", "well, soon"),
            ("Which date, please?", "soon"),
            ("Which date shall I book?", "well, soon"),
            ("The date, please: which?", "soon"),
            ("What date shall I book, please?", "soon"),
        )
    ],
}
WORK = {
    "one text to many": [
        call("send", {"to": name, "text": "Are you coming to the party at the lake on Friday?"}, "delivered")
        for name in NAMES
    ],
    "every pair of a table": [
        call("count", {"table": table, "column": column}, "0 rows")
        for table in ("orders", "users", "items")
        for column in ("total", "name", "city")
    ],
    "year after year": [
        call("stats", {"country": "DE", "year": year}, "no data", "failure") for year in range(2010, 2019)
    ],
    "many addresses that are gone": [
        call("bash", f"curl -sI https://shop.example/p/{name}", "404", "failure") for name in NAMES
    ],
    "many machines that are down": [
        call("bash", f"ssh web{n} systemctl is-active nginx", "inactive", "failure") for n in range(8)
    ],
    "answers that are new": [
        call("ask_user", f"And the {what}?", f"it is {answer}")
        for what, answer in zip(NAMES, COLOURS, strict=True)
    ],
    "chunks one after the other": [
        call("log", {"file": "a.log", "start": n * 100, "end": n * 100 + 100}, "0 errors") for n in range(9)
    ],
}


@pytest.mark.parametrize("steps", RUTS.values(), ids=RUTS.keys())
def test_s192_whoever_varies_what_it_asks_and_gets_the_same_is_in_a_loop(
    steps: list[StepFingerprint],
) -> None:
    said = run(steps)
    assert [verdict.kind for verdict in said] == ["detected"]
    assert said[0].occurrences >= 3


@pytest.mark.parametrize("steps", WORK.values(), ids=WORK.keys())
def test_s193_another_item_each_time_is_work_even_if_every_end_is_the_same(
    steps: list[StepFingerprint],
) -> None:
    assert run(steps) == []


def test_s192_thoughts_that_add_no_words_are_a_monologue_however_they_are_put() -> None:
    said = run(
        [
            thought("I have to understand the request of the customer before I answer"),
            thought("Before answering I should really understand the customer request"),
            thought("First understand, then answer: what does the customer mean?"),
            thought("I should understand the request before giving an answer"),
            thought("What the customer means by the request must be understood first"),
            thought("The request of the customer must be understood before the answer"),
            thought("I must understand what the customer means before I answer"),
        ]
    )
    assert [verdict.detector for verdict in said] == ["monologue"]


def test_s194_a_rut_is_left_by_progress_and_by_other_work() -> None:
    rut = RUTS["a quantity turned up"]
    found = call("submit", {"job": "merge", "queue": "night", "gb": 8}, "accepted as job 7")
    other = [call(f"tool_{name}", {"path": name}, f"read {name}") for name in NAMES[:3]]
    assert [verdict.kind for verdict in run([*rut, *other, found])] == ["detected", "ended"]


def test_s195_more_rounds_asked_for_are_more_calls_in_a_rut() -> None:
    steps = RUTS["a quantity turned up"]
    assert run(steps, LoopSettings(rounds=7)) and not run(steps, LoopSettings(rounds=8))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from("aaaaabwt"), max_size=120))
def test_s196_a_new_watch_over_the_last_steps_sees_the_same_rut(letters: list[str]) -> None:
    steps = []
    for number, one in enumerate(letters):
        if one == "t":
            steps.append(thought(f"thinking of the queue {number % 3}"))
        elif one == "w":
            steps.append(call("write", {"path": f"{number}.txt"}, f"wrote {number} lines"))
        else:
            given_ = {"job": "merge", "queue": one, "gb": number % 7}
            steps.append(call("submit", given_, "queue is closed", "failure"))
    old, new = LoopWatch(), LoopWatch()
    for number, step in enumerate(steps):
        old.push(number, step, RULES)
    for number, step in list(enumerate(steps))[-3 * WINDOW :]:
        new.push(number, step, RULES)
    assert (old.active is None) == (new.active is None)
