"""The entropy stage by itself: the seed's table, its edges, and what an agent says of itself."""

from __future__ import annotations

import ast
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observatory.features.loops import stage as entropy
from observatory.ledger.chain import Head
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.message_context import Passage
from observatory.pipeline.rows import Agent, Session, Tenant
from observatory.pipeline.state import Changes, Draft, Memory, Principal, Rulebook
from observatory.protocol.message import Message
from observatory.protocol.rulebook import DetectorSettings
from tests.samples import decision_log

WHO = Principal(tenant_id="tnt_1", role="agent", key_id="key_1")


class Desk:
    """Takes events and gives them numbers."""

    def __init__(self, **settings: Any) -> None:
        rules = Rulebook(detectors=DetectorSettings(**settings))
        self.memory = Memory(Tenant(tenant_id="tnt_1", tenant_no=1), Head.genesis(), rules)
        self.changes, self.now_ns = Changes(), 1
        self.told: list[Draft] = []
        self.session = Session(session_no=1, session_id="ses-1", trace_id="0" * 32)

    def append(self, draft: Draft) -> int:
        self.told.append(draft)
        return 100 + len(self.told)

    def tell(self, *_: Any, **__: Any) -> None:
        raise AssertionError("an alarm tells no agent")

    def names(self) -> list[str]:
        return [draft.event_type for draft in self.told]

    def take(self, body: dict[str, Any], agent_no: int = 1) -> float | None:
        message = intercept(json.dumps(body).encode())
        assert isinstance(message, Message), message
        agent = Agent(agent_no=agent_no, entity_id=f"agt_{agent_no}", agent_id=f"a{agent_no}")
        passage = Passage(message, WHO, 1, agent=agent, session=self.session)
        assert entropy.check(passage, self.memory, 1) is None
        if passage.entropy is not None:
            entropy.follow(passage, self, 7)
        return passage.entropy

    def walk(self, steps: str, reported: float | None = None) -> list[tuple[float, str]]:
        """Each letter is a step with that intent."""
        return [(self.take(step(letter, reported)) or 0.0, self.session.severity) for letter in steps]


def step(intent: str, reported: float | None = None, **action: Any) -> dict[str, Any]:
    return decision_log(
        cognition={"intent": intent, "entropy_score": reported},
        action={"tool_call": "fetch", "status": "failure", **action},
    )


TABLE = [
    ("A", (1.0, "normal")),
    ("AA", (0.5, "normal")),  # two like steps are no pattern
    ("AAA", (1 / 3, "warning")),
    ("AAAA", (0.25, "warning")),  # 0.25 is still a warning
    ("AAAAA", (0.2, "loop")),
    ("AAAAAA", (0.2, "loop")),
    ("AAAB", (0.5, "warning")),  # and 0.5 is one
    ("AABBC", (0.6, "normal")),
    ("ABABA", (0.4, "warning")),
    ("ABCDE", (1.0, "normal")),
    ("ZZZZZABCDE", (1.0, "normal")),  # what left the window counts no more
]


@pytest.mark.parametrize(("steps", "last"), TABLE)
def test_the_seeds_table_s180_s181(steps: str, last: tuple[float, str]) -> None:
    assert Desk().walk(steps)[-1] == last


@pytest.mark.parametrize(
    ("settings", "score", "steps", "severity"),
    [
        ({}, 0.2499999, 5, "loop"),
        ({}, 0.25, 5, "warning"),
        ({}, 0.5, 5, "warning"),
        ({}, 0.5000001, 5, "normal"),
        ({}, 0.1, 2, "normal"),
        ({"n_min": 2}, 0.1, 2, "loop"),
        ({"loop_below": 0.0}, 0.0, 5, "warning"),
    ],
)
def test_both_ends_of_a_warning_belong_to_it_s181(
    settings: dict[str, Any], score: float, steps: int, severity: str
) -> None:
    assert DetectorSettings(**settings).severity(score, steps) == severity


def test_all_three_make_the_tuple_s180() -> None:
    desk = Desk()
    desk.take(step("A"))
    assert desk.take(step("A", tool_call="other")) == 1.0
    assert desk.take(step("A", status="success")) == 1.0
    assert desk.take(step("A", tool_call=None)) == 1.0
    assert desk.take(step("A")) == 0.8
    assert desk.take(step("A", tool_call="x" * 200)) == 1.0
    assert desk.take(step("A", tool_call="x" * 201)) == 1.0
    assert desk.take(step("A\n\tB!", tool_call="a\tb\nc!")) == 1.0
    assert len((desk.session.entropy_window or "").split("\n")) == 6


def test_what_has_no_cognition_is_not_scored_and_moves_no_window_s182() -> None:
    desk = Desk()
    desk.walk("AAAA")
    before = desk.session.entropy_window
    assert desk.take(decision_log(cognition=None)) is None
    assert desk.session.entropy_window == before
    assert desk.walk("A") == [(0.2, "loop")]


def test_one_alert_on_entering_one_recovery_on_leaving_s183() -> None:
    desk = Desk()
    desk.walk("AAAA")
    assert desk.names() == []
    desk.walk("A")
    assert desk.names() == ["entropy_alert"] and desk.session.alert_seq == 101
    assert desk.session.alert_count == 5
    desk.walk("AAA")
    assert desk.names() == ["entropy_alert"] and desk.session.alert_count == 8
    desk.walk("B")
    assert desk.names() == ["entropy_alert", "entropy_recovered"]
    assert desk.session.alert_seq is None
    assert (desk.session.severity, desk.session.alert_count) == ("warning", 0)
    assert desk.told[1].detail["occurrence_count"] == 8
    desk.walk("BBBB")  # from a warning into the next loop: it holds nothing back
    assert desk.names() == ["entropy_alert", "entropy_recovered", "entropy_alert"]


def test_an_alert_holds_the_seeds_fields_and_no_words_s184() -> None:
    desk = Desk()
    desk.walk("A" * 5)
    (alert,) = desk.told
    assert alert.severity == 17
    assert alert.detail == {
        "session_id": "ses-1",
        "agent_id": "researcher-alpha-9",
        "step_id": "",
        "message_sequence_number": 7,
        "entropy_score": "0.2",
        "window_size": 5,
        "repeated_pattern": {
            "intent_hash": entropy.intent_hash("A"),
            "tool_call": "fetch",
            "action_status": "failure",
        },
        "occurrence_count": 5,
        "detector": "ratio",
        "loop_below": "0.25",
    }


def test_a_wider_window_names_what_came_most_often_s184() -> None:
    desk = Desk(window=10)
    desk.walk("BBAAAAAAAB")
    assert desk.names() == ["entropy_alert"]  # at 2/9, with the seventh A; the last B is not its pattern
    pattern = desk.told[-1].detail["repeated_pattern"]
    assert pattern["intent_hash"] == entropy.intent_hash("A")
    assert desk.told[-1].detail["occurrence_count"] == 7


def test_the_hash_is_the_same_in_every_process_s184() -> None:
    assert entropy.intent_hash("A") == "1a89a399ca7c5046"


def test_a_gap_is_told_once_until_the_agent_is_right_again_s185() -> None:
    desk = Desk()
    desk.walk("AB", reported=0.05)
    assert desk.names() == []  # too few steps say nothing
    desk.walk("CD", reported=0.05)
    assert desk.names() == ["entropy_discrepancy"]
    told = desk.told[0].detail
    assert (told["entropy_score"], told["reported_entropy_score"], told["gap"]) == ("1", "0.05", "0.95")
    desk.walk("E", reported=1.0)
    desk.walk("F", reported=0.6)  # a gap of exactly 0.4 is none
    assert desk.names() == ["entropy_discrepancy"]
    desk.walk("G", reported=0.59)
    assert desk.names() == ["entropy_discrepancy"] * 2


def test_a_gap_is_each_agents_own_s185() -> None:
    desk = Desk()
    for letter in "ABCDEFGH":
        desk.take(step(letter, 0.0), agent_no=2)
        desk.take(step(letter + "x", 1.0), agent_no=3)
    assert desk.names() == ["entropy_discrepancy"]
    assert entropy.last_agent(desk.session.entropy_window) == 3
    desk.take(step("last", 0.0), agent_no=4)
    assert desk.names() == ["entropy_discrepancy"] * 2


def test_a_window_made_smaller_or_larger_goes_on_with_what_is_there_s186() -> None:
    desk = Desk(window=8)
    desk.walk("ABCDAAA")
    desk.memory.rulebook = Rulebook(detectors=DetectorSettings(window=3))
    assert desk.walk("A") == [(1 / 3, "warning")]
    desk.memory.rulebook = Rulebook(detectors=DetectorSettings(window=6))
    assert [score for score, _ in desk.walk("AAA")] == [0.25, 0.2, 1 / 6]


def test_no_agent_no_window_s180() -> None:
    assert entropy.last_agent(None) == 0
    assert entropy.last_agent("12!3,4\nx\ty\tz") == 12


def test_so_many_agents_with_an_own_figure_are_remembered_s185() -> None:
    """S185: the window's first line is bounded; the oldest leave."""
    desk = Desk()
    desk.walk("ABC")
    for number in range(10, 10 + 2 * entropy.MOST_OFF):
        desk.take(step(f"i{number}", 0.0), agent_no=number)
    head = (desk.session.entropy_window or "").partition("\n")[0].partition("!")[2].split(",")
    assert head == [str(number) for number in range(10 + entropy.MOST_OFF, 10 + 2 * entropy.MOST_OFF)]
    assert desk.names() == ["entropy_discrepancy"] * 2 * entropy.MOST_OFF


def cost_of(work: Callable[[], object]) -> float:
    """The least of several rounds: what else the machine does only ever adds."""
    rounds = []
    for _ in range(7):
        began = time.process_time()
        for _ in range(500):
            work()
        rounds.append(time.process_time() - began)
    return min(rounds)


@pytest.mark.req(84)
def test_scoring_costs_no_more_than_reading_the_message_and_knows_no_language() -> None:
    """A ratio, never a time: a message of 1 kB is read in a few µs, and scored in as many."""
    body = json.dumps(step("look for the invoice", tool_call="search") | {"notes": "x" * 600}).encode()
    message = intercept(json.dumps(step("look for the invoice", tool_call="search")).encode())
    assert isinstance(message, Message)
    desk = Desk()
    agent = Agent(agent_no=1, entity_id="agt_1", agent_id="a1")

    def score() -> None:
        passage = Passage(message, WHO, 1, agent=agent, session=desk.session)
        entropy.check(passage, desk.memory, 1)
        entropy.follow(passage, desk, 7)

    assert cost_of(score) < cost_of(lambda: json.loads(body))
    source = ast.parse(Path(entropy.__file__).read_text("utf-8"))
    imported = {node.module or "" for node in ast.walk(source) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} == {"__future__", "hashlib", "typing", "observatory"}
    assert not any(name.startswith("observatory.store") for name in imported)


@given(st.text("AB", max_size=12), st.sampled_from((3, 5, 20)), st.none() | st.just(0.9))
def test_a_session_kept_in_memory_scores_as_one_read_anew(
    steps: str, window: int, told: float | None
) -> None:
    """The lines a session keeps are those of its text: a restart in between changes nothing."""
    kept, read = Desk(window=window), Desk(window=window)
    for letter in steps:
        read.session.window = None  # as a row that was just loaded
        assert kept.take(step(letter, told)) == read.take(step(letter, told))
        assert kept.session.entropy_window == read.session.entropy_window
        assert kept.session.window == (kept.session.entropy_window or "").split("\n")
    assert kept.names() == read.names()


def test_a_message_that_is_scored_and_not_archived_leaves_the_window_as_it_was() -> None:
    desk = Desk()
    desk.walk("AB")
    before = list(desk.session.window or ())
    message = intercept(json.dumps(step("C")).encode())
    assert isinstance(message, Message)
    for _ in range(2):
        passage = Passage(message, WHO, 1, session=desk.session)
        entropy.check(passage, desk.memory, 1)
        assert passage.window == [*before, passage.window[-1]] and passage.window[-1] not in before
    assert desk.session.window == before
