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
from observatory.features.loops.queries import last_agent
from observatory.ledger.chain import ChainHead
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.rows import AgentRow, SessionRow, TenantRow
from observatory.pipeline.state import BatchState, EventDraft, Principal, TenantConfig, TransactionChanges
from observatory.protocol.message import Message
from observatory.protocol.tenant_config import DetectorSettings
from tests.samples import decision_log

WHO = Principal(tenant_id="tnt_1", role="agent", key_id="key_1")


class EntropyHarness:
    """Takes events and gives them numbers."""

    def __init__(self, **settings: Any) -> None:
        rules = TenantConfig(detectors=DetectorSettings(**settings))
        self.memory = BatchState(TenantRow(tenant_id="tnt_1", tenant_no=1), ChainHead.genesis(), rules)
        self.changes, self.now_ns = TransactionChanges(), 1
        self.received: list[EventDraft] = []
        self.session = SessionRow(session_no=1, session_id="ses-1", trace_id="0" * 32)

    def append(self, draft: EventDraft) -> int:
        self.received.append(draft)
        return 100 + len(self.received)

    def deliver(self, *_: Any, **__: Any) -> None:
        raise AssertionError("an alarm tells no agent")

    def names(self) -> list[str]:
        return [draft.event_type for draft in self.received]

    def take(self, body: dict[str, Any], agent_no: int = 1) -> float | None:
        message = intercept(json.dumps(body).encode())
        assert isinstance(message, Message), message
        agent = AgentRow(agent_no=agent_no, entity_id=f"agt_{agent_no}", agent_id=f"a{agent_no}")
        ctx = MessageContext(message, WHO, 1, agent=agent, session=self.session)
        assert entropy.check(ctx, self.memory, 1) is None
        if ctx.entropy is not None:
            entropy.follow(ctx, self, 7)
        return ctx.entropy

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
    assert EntropyHarness().walk(steps)[-1] == last


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
    harness = EntropyHarness()
    harness.take(step("A"))
    assert harness.take(step("A", tool_call="other")) == 1.0
    assert harness.take(step("A", status="success")) == 1.0
    assert harness.take(step("A", tool_call=None)) == 1.0
    assert harness.take(step("A")) == 0.8
    assert harness.take(step("A", tool_call="x" * 200)) == 1.0
    assert harness.take(step("A", tool_call="x" * 201)) == 1.0
    assert harness.take(step("A\n\tB!", tool_call="a\tb\nc!")) == 1.0
    assert len((harness.session.entropy_window or "").split("\n")) == 6


def test_what_has_no_cognition_is_not_scored_and_moves_no_window_s182() -> None:
    harness = EntropyHarness()
    harness.walk("AAAA")
    before = harness.session.entropy_window
    assert harness.take(decision_log(cognition=None)) is None
    assert harness.session.entropy_window == before
    assert harness.walk("A") == [(0.2, "loop")]


def test_one_alert_on_entering_one_recovery_on_leaving_s183() -> None:
    harness = EntropyHarness()
    harness.walk("AAAA")
    assert harness.names() == []
    harness.walk("A")
    assert harness.names() == ["entropy_alert"] and harness.session.alert_seq == 101
    assert harness.session.alert_count == 5
    harness.walk("AAA")
    assert harness.names() == ["entropy_alert"] and harness.session.alert_count == 8
    harness.walk("B")
    assert harness.names() == ["entropy_alert", "entropy_recovered"]
    assert harness.session.alert_seq is None
    assert (harness.session.severity, harness.session.alert_count) == ("warning", 0)
    assert harness.received[1].detail["occurrence_count"] == 8
    harness.walk("BBBB")  # from a warning into the next loop: it holds nothing back
    assert harness.names() == ["entropy_alert", "entropy_recovered", "entropy_alert"]


def test_an_alert_holds_the_seeds_fields_and_no_words_s184() -> None:
    harness = EntropyHarness()
    harness.walk("A" * 5)
    (alert,) = harness.received
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
    harness = EntropyHarness(window=10)
    harness.walk("BBAAAAAAAB")
    assert harness.names() == ["entropy_alert"]  # at 2/9, with the seventh A; the last B is not its pattern
    pattern = harness.received[-1].detail["repeated_pattern"]
    assert pattern["intent_hash"] == entropy.intent_hash("A")
    assert harness.received[-1].detail["occurrence_count"] == 7


def test_the_hash_is_the_same_in_every_process_s184() -> None:
    assert entropy.intent_hash("A") == "1a89a399ca7c5046"


def test_a_gap_is_told_once_until_the_agent_is_right_again_s185() -> None:
    harness = EntropyHarness()
    harness.walk("AB", reported=0.05)
    assert harness.names() == []  # too few steps say nothing
    harness.walk("CD", reported=0.05)
    assert harness.names() == ["entropy_discrepancy"]
    received = harness.received[0].detail
    assert (received["entropy_score"], received["reported_entropy_score"], received["gap"]) == (
        "1",
        "0.05",
        "0.95",
    )
    harness.walk("E", reported=1.0)
    harness.walk("F", reported=0.6)  # a gap of exactly 0.4 is none
    assert harness.names() == ["entropy_discrepancy"]
    harness.walk("G", reported=0.59)
    assert harness.names() == ["entropy_discrepancy"] * 2


def test_a_gap_is_each_agents_own_s185() -> None:
    harness = EntropyHarness()
    for letter in "ABCDEFGH":
        harness.take(step(letter, 0.0), agent_no=2)
        harness.take(step(letter + "x", 1.0), agent_no=3)
    assert harness.names() == ["entropy_discrepancy"]
    assert last_agent(harness.session.entropy_window) == 3
    harness.take(step("last", 0.0), agent_no=4)
    assert harness.names() == ["entropy_discrepancy"] * 2


def test_a_window_made_smaller_or_larger_goes_on_with_what_is_there_s186() -> None:
    harness = EntropyHarness(window=8)
    harness.walk("ABCDAAA")
    harness.memory.tenant_config = TenantConfig(detectors=DetectorSettings(window=3))
    assert harness.walk("A") == [(1 / 3, "warning")]
    harness.memory.tenant_config = TenantConfig(detectors=DetectorSettings(window=6))
    assert [score for score, _ in harness.walk("AAA")] == [0.25, 0.2, 1 / 6]


def test_no_agent_no_window_s180() -> None:
    assert last_agent(None) == 0
    assert last_agent("12!3,4\nx\ty\tz") == 12


def test_so_many_agents_with_an_own_figure_are_remembered_s185() -> None:
    """S185: the window's first line is bounded; the oldest leave."""
    harness = EntropyHarness()
    harness.walk("ABC")
    for number in range(10, 10 + 2 * entropy.MAX_OFF):
        harness.take(step(f"i{number}", 0.0), agent_no=number)
    head = (harness.session.entropy_window or "").partition("\n")[0].partition("!")[2].split(",")
    assert head == [str(number) for number in range(10 + entropy.MAX_OFF, 10 + 2 * entropy.MAX_OFF)]
    assert harness.names() == ["entropy_discrepancy"] * 2 * entropy.MAX_OFF


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
    harness = EntropyHarness()
    agent = AgentRow(agent_no=1, entity_id="agt_1", agent_id="a1")

    def score() -> None:
        ctx = MessageContext(message, WHO, 1, agent=agent, session=harness.session)
        entropy.check(ctx, harness.memory, 1)
        entropy.follow(ctx, harness, 7)

    assert cost_of(score) < cost_of(lambda: json.loads(body))
    source = ast.parse(Path(entropy.__file__).read_text("utf-8"))
    imported = {node.module or "" for node in ast.walk(source) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} == {"__future__", "hashlib", "typing", "observatory"}
    assert not any(name.startswith("observatory.store") for name in imported)


@given(st.text("AB", max_size=12), st.sampled_from((3, 5, 20)), st.none() | st.just(0.9))
def test_a_session_kept_in_memory_scores_as_one_read_anew(
    steps: str, window: int, received: float | None
) -> None:
    """The lines a session keeps are those of its text: a restart in between changes nothing."""
    kept, read = EntropyHarness(window=window), EntropyHarness(window=window)
    for letter in steps:
        read.session.window = None  # as a row that was just loaded
        assert kept.take(step(letter, received)) == read.take(step(letter, received))
        assert kept.session.entropy_window == read.session.entropy_window
        assert kept.session.window == (kept.session.entropy_window or "").split("\n")
    assert kept.names() == read.names()


def test_a_message_that_is_scored_and_not_archived_leaves_the_window_as_it_was() -> None:
    harness = EntropyHarness()
    harness.walk("AB")
    before = list(harness.session.window or ())
    message = intercept(json.dumps(step("C")).encode())
    assert isinstance(message, Message)
    for _ in range(2):
        ctx = MessageContext(message, WHO, 1, session=harness.session)
        entropy.check(ctx, harness.memory, 1)
        assert ctx.window == [*before, ctx.window[-1]] and ctx.window[-1] not in before
    assert harness.session.window == before
