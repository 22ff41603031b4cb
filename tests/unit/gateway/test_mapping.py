"""What a mapping makes of a body, whatever expression and body are."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from observatory.features.hooks import mapping
from observatory.features.hooks.expressions import (
    BadExpression,
    EvaluationFailed,
    TooExpensive,
    compiled,
    search,
)
from observatory.features.hooks.mapping import IgnoredCall, MappedMessage
from observatory.features.hooks.types_mapping import HookMapping
from observatory.protocol.responses import Fault

BODY = {"action": "opened", "number": 7, "repo": {"name": "atlas"}, "labels": [{"name": "bug"}], "zero": 0}
FULL = {
    "intent": {"expression": "join(' ', ['review', action])"},
    "target": {"cluster": {"expression": "repo.name"}},
    "payload": "{pull_request: number, labels: labels[].name}",
    "session": "number",
    "when": "contains(['opened', 'reopened'], action)",
    "delivery_id": "join('-', [repo.name, to_string(number)])",
}
LEAST = {"intent": "look", "target": {"agent": "watcher"}}


def read(given: dict[str, Any]) -> HookMapping:
    return msgspec.convert(given, HookMapping)


def test_a_body_becomes_intent_target_payload_session_and_id_s524() -> None:
    """S524: every member; a text as it stands or found; the whole body where no payload is named."""
    full = read(FULL)
    assert mapping.check(full) == []
    assert mapping.apply(full, BODY, "github") == MappedMessage(
        "review opened", "cluster", "atlas", {"pull_request": 7, "labels": ["bug"]}, "7", "atlas-7"
    )
    assert mapping.apply(full, BODY | {"action": "closed"}, "github") == IgnoredCall()
    assert mapping.apply(read(LEAST), BODY, "github") == MappedMessage(
        "look", "agent", "watcher", BODY, None, None
    )
    assert mapping.apply(read(LEAST | {"payload": "number"}), BODY, "github") == MappedMessage(
        "look", "agent", "watcher", {"value": 7}, None, None
    )
    assert isinstance(mapping.apply(read(LEAST | {"when": "zero"}), BODY, "slack"), MappedMessage), (
        "0 is no falsehood"
    )


@pytest.mark.parametrize(("scheme", "found"), [("stripe", "evt_1"), ("slack", "Ev1"), ("github", None)])
def test_senders_that_name_deliveries_in_the_body_are_known_s526(scheme: str, found: str | None) -> None:
    """S526: where the scheme names none, as its senders do."""
    made = mapping.apply(read(LEAST), {"id": "evt_1", "event_id": "Ev1"}, scheme)
    assert isinstance(made, MappedMessage) and made.delivery_id == found


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"intent": {"expression": "nothing"}}, "intent"),
        ({"intent": {"expression": "labels"}}, "intent"),
        ({"target": {"agent": {"expression": "number"}}}, "target.agent"),
        ({"target": {"agent": {"expression": "join('', ['a', to_string(`\"\\n\"`)])"}}}, "target.agent"),
        ({"payload": "nothing"}, "payload"),
        ({"payload": "&action"}, "payload"),
        ({"payload": "abs(action)"}, "payload"),
        ({"payload": "`" + "[" * 400 + "]" * 400 + "`"}, "payload"),
        ({"payload": "no_such_function(@)"}, "payload"),
        ({"payload": "to_number('99999999999999999999')"}, "payload"),
        ({"session": "labels"}, "session"),
        ({"delivery_id": "repo"}, "delivery_id"),
        ({"when": "sum(labels)"}, "when"),
    ],
)
def test_what_does_not_fit_is_a_fault_of_its_place_s524(given: dict[str, Any], path: str) -> None:
    """S524: the member is named, and nothing of the body."""
    found = mapping.apply(read(LEAST | given), BODY, "standard")
    assert isinstance(found, Fault) and found.path == path
    assert "opened" not in found.problem and "atlas" not in found.problem


def test_a_number_nobody_writes_out_is_a_fault_s524() -> None:
    """S524: Python itself would not."""
    far = read(LEAST | {"session": "sum([to_number(far), to_number(far)])"})
    found = mapping.apply(far, {"far": "9" * 4_300}, "standard")
    assert isinstance(found, Fault) and found.path == "session"


@pytest.mark.parametrize(
    "given",
    [
        {"payload": "a["},
        {"when": "list[?conatins(@, 'x')]"},
        {"payload": "(" * 500},
        {"when": "@" + " | @" * 200},
        {"target": {}},
        {"target": {"agent": "a", "cluster": "b"}},
    ],
)
def test_a_mapping_that_can_never_work_is_told_at_once_s524(given: dict[str, Any]) -> None:
    """S524: before any body comes."""
    assert len(mapping.check(read(LEAST | given))) == 1


BIG = {
    "list": ["word"] * 5_000,
    "text": "z" * 100_000,
    "objects": [{"n": n, "s": "x" * 50} for n in range(2_000)],
}
HOSTILE = {
    "doubling by reference": " | ".join(["[@,@]"] * 50),
    "doubling by flattening": " | ".join(["[@,@][]"] * 25),
    "doubling, then written": " | ".join(["[@,@]"] * 40) + " | to_string(@)",
    "doubling, then compared": " | ".join(["[@,@]"] * 30) + " | [0] == [1]",
    "doubling, then searched": " | ".join(["[@,@]"] * 30) + " | contains(@, [@])",
    "doubling of objects": " | ".join(["{a: @, b: @}"] * 60),
    "a long word joined often": "join(text, list)",
    "every with every": "list[*].[[@,@,@],[@,@,@],[@,@,@]][][]",
    "mapped again and again": "map(&to_string(@), [@,@,@,@,@,@,@,@,@,@,@,@])",
    "a crowd made of each": "objects[*].[" + ",".join(["`1`"] * 15) + "][]",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_an_expression_that_would_not_end_ends_s524(text: str) -> None:
    """S524: by the number of steps, the same for the same body, and in a blink."""
    compiled(text)
    began = time.process_time()
    for _ in range(2):
        with pytest.raises(TooExpensive):
            search(text, BIG)
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("objects[?n > `1990`].n | length(@)", 9),
        ("max_by(objects, &n).n", 1_999),
        ("sort_by(objects, &n)[-1].s | length(@)", 50),
        ("length(to_string(objects))", 134_891),
        ("length(join(',', list))", 24_999),
        ("objects[0] == objects[0]", True),
        ("list[0:3]", ["word"] * 3),
        ("objects[].n | [5]", 5),
    ],
)
def test_honest_work_over_a_large_body_is_done_s524(text: str, found: Any) -> None:
    """S524: the meter counts, it does not change what is found."""
    assert search(text, BIG) == found


def test_a_fault_of_the_expression_is_told_apart_s524() -> None:
    with pytest.raises(BadExpression, match="character 3"):
        compiled("a[")
    with pytest.raises(EvaluationFailed):
        search("abs(text)", BIG)
