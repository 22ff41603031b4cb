"""Ok, pending, firing, ok again: the state machine of a rule, and what a tenant's rules make of events."""

from __future__ import annotations

from typing import Any

import pytest

from observatory.features.alerting import evaluation as alert_judging
from observatory.features.alerting.evaluation import RuleEvaluator
from observatory.features.alerting.state import AlertState, Window, next_state
from observatory.features.alerting.types_readings import LevelReading
from observatory.features.alerting.types_rules import DEFAULTS, KINDS, AlertRule, problem_of
from observatory.protocol.clock import from_ns
from tests.alert_samples import SECOND, alert_rule

NOW = 1_800_000_000 * SECOND
Row = dict[str, Any]


def run(rule: AlertRule, *values: tuple[float, bool]) -> list[tuple[float, str]]:
    """(second, is it a breach) → (second, what was told)."""
    standing, received = AlertState(), list[tuple[float, str]]()
    for second, is_breach in values:
        standing, move = next_state(rule, standing, is_breach, NOW + int(second * SECOND))
        if move is not None:
            received.append((second, move))
    return received


def test_a_breach_is_told_once_and_its_end_once_s542() -> None:
    """S542: nothing is repeated while it lasts."""
    values = [(0, False), (1, True), (2, True), (3, True), (4, False), (5, False), (6, True)]
    assert run(alert_rule(), *values) == [(1, "raise"), (4, "resolve"), (6, "raise")]


def test_what_must_last_is_forgotten_when_it_does_not_s542() -> None:
    """S542: pending for `for_s`; an interruption begins it anew."""
    rule = alert_rule("silence", for_s=10)
    values = [(0, True), (9, True), (9.5, False), (10, True), (19, True), (20, True), (21, False)]
    assert run(rule, *values) == [(20, "raise"), (21, "resolve")]


def test_within_the_cool_down_it_is_not_told_again_and_after_it_if_it_still_is_s543() -> None:
    """S543: flapping is told once a cool-down."""
    rule = alert_rule(cooldown_s=60)
    values = [(0, True), (1, False), (2, True), (3, False), (30, True), (59, True), (60, True), (61, False)]
    assert run(rule, *values) == [(0, "raise"), (1, "resolve"), (60, "raise"), (61, "resolve")]


def test_what_began_muted_is_told_when_the_mute_ends_if_it_still_fires_s544() -> None:
    """S544: the first word reaches nobody; the second does."""
    rule = alert_rule(muted_until_ns=NOW + 10 * SECOND)
    standing, move = next_state(rule, AlertState(), True, NOW)
    assert move == "raise" and not standing.is_notified
    assert next_state(rule, standing, True, NOW + 9 * SECOND)[1] is None
    later, move = next_state(rule, standing, True, NOW + 10 * SECOND)
    assert move == "raise" and later.is_notified
    assert next_state(rule, later, True, NOW + 11 * SECOND)[1] is None


def test_a_trigger_asks_again_after_each_cool_down_s553() -> None:
    """S553: one more step, as long as it holds."""
    rule = alert_rule("queue_depth", purpose="scaling", direction="up", amount=2, cooldown_s=30)
    values = [(0, True), (10, True), (29, True), (30, True), (59, True), (60, True), (61, False)]
    assert run(rule, *values) == [(0, "raise"), (30, "raise"), (60, "raise"), (61, "resolve")]


@pytest.mark.parametrize("back_s", [3_600, 86_400])
def test_a_clock_set_back_holds_nothing_up_s542(back_s: int) -> None:
    """S542: neither a pending breach nor a cool-down waits for the old time to come again."""
    lasting = alert_rule("silence", for_s=10)
    values = [(0, True), (5 - back_s, True), (15 - back_s, True)]
    assert run(lasting, *values) == [(15 - back_s, "raise")]
    cooling = alert_rule(cooldown_s=60)
    values = [(0, True), (1, False), (2 - back_s, True)]
    assert run(cooling, *values)[-1] == (2 - back_s, "raise")


def test_a_window_forgets_what_is_older_s545() -> None:
    """S545: a window is open at its beginning and closed at its end."""
    window = Window()
    for second in range(10):
        window.add(NOW + second * SECOND)
    assert window.count(NOW + 9 * SECOND, 5) == 5
    assert window.count(NOW + 13 * SECOND, 5) == 1
    assert window.count(NOW + 14 * SECOND, 5) == 0


def test_a_window_forgets_what_a_clock_set_back_has_left_ahead_s542() -> None:
    """S542: it would stand before all that follows, and nothing would ever leave the window."""
    window = Window()
    window.add(7_200 * SECOND)
    for minute in range(5):
        window.add((3_600 + 600 * minute) * SECOND)
        assert window.count((3_600 + 600 * minute) * SECOND, 300) == 1
    window.add((6_000 + 2) * SECOND)  # written while the look was under way
    assert window.count(6_000 * SECOND, 300) == 2


def violation(at_s: float, agent: str = "writer", kind: str = "schema_violation", **more: Any) -> Row:
    body = {"event_type": kind, "agent_id": agent, "summary": "swordfish", "violation_reason": "swordfish"}
    return {"observed_timestamp": from_ns(NOW + int(at_s * SECOND)), "body": body | more}


def judge(*rules: AlertRule, cursor: int = 0) -> RuleEvaluator:
    made = RuleEvaluator("http://here", cursor)
    made.obey(rules, {}, NOW)
    return made


def moves(made: RuleEvaluator) -> list[tuple[str, str, float]]:
    return [(one.move, one.subject, one.value) for one in made.taken()]


def test_events_are_counted_for_each_subject_in_the_window_s545() -> None:
    """S545: five of one agent within a minute, not five of two, nor in two minutes."""
    made = judge(alert_rule(threshold=5))
    for number in range(1, 9):
        made.hear(number, violation(number, "writer" if number % 2 else "reader"))
    assert moves(made) == []
    made.hear(9, violation(9))
    assert moves(made) == [("raise", "agent:writer", 5)]
    made.tick(NOW + 62 * SECOND)
    assert moves(made) == [("resolve", "agent:writer", 4)], "the first fell out of the window"
    made.hear(10, violation(62))
    assert moves(made) == [], "what was counted before a resolve counts no more"


def test_what_was_before_the_rule_or_judged_before_is_not_told_s545() -> None:
    """S545: an event counts from the rule on; one that was judged only fills its window again."""
    made = judge(alert_rule(threshold=3, since_seq=5), cursor=7)
    for number in (4, 5):
        made.hear(number, violation(number))
    for number in (6, 7):
        made.hear(number, violation(number), is_new=False)
    assert moves(made) == []
    made.hear(8, violation(8))
    assert moves(made) == [("raise", "agent:writer", 3)]


def test_what_happened_while_nobody_looked_is_judged_at_its_own_time_s545() -> None:
    """S545: an hour later it is told, and resolved at once."""
    made = judge(alert_rule(threshold=2, window_s=10))
    made.hear(1, violation(0))
    made.hear(2, violation(5))
    made.tick(NOW + 3_600 * SECOND)
    assert [one[:2] for one in moves(made)] == [("raise", "agent:writer"), ("resolve", "agent:writer")]


def test_a_calm_session_resolves_its_alarm_s547() -> None:
    """S547: before the window ends; and the next alarm is a new one."""
    made = judge(alert_rule("entropy", window_s=3_600))
    made.hear(1, violation(0, kind="entropy_alert", session_id="ses-1"))
    made.tick(NOW + SECOND, frozenset({"session:ses-2"}))
    assert moves(made) == [("raise", "session:ses-1", 1)]
    made.tick(NOW + 2 * SECOND, frozenset({"session:ses-1"}))
    assert moves(made) == [("resolve", "session:ses-1", 0)]
    made.hear(2, violation(3, kind="loop_detected", session_id="ses-1"))
    assert moves(made) == [("raise", "session:ses-1", 1)]


def test_a_changed_or_removed_rule_resolves_what_it_had_open_s547() -> None:
    """S547: with its reason; the changed one begins anew."""
    rule = alert_rule()
    made = judge(rule)
    made.hear(1, violation(0))
    moves(made)
    made.obey([alert_rule(since_seq=2, threshold=2)], {}, NOW + SECOND)
    (found,) = made.taken()
    assert (found.move, found.reason, found.subject) == ("resolve", "rule_changed", "agent:writer")
    made.hear(3, violation(2))
    made.hear(4, violation(3))
    assert moves(made) == [("raise", "agent:writer", 2)]
    made.obey([], {}, NOW + 4 * SECOND)
    assert moves(made) == [("resolve", "agent:writer", 0)] and made.is_calm


def test_a_changed_rule_keeps_the_cool_down_of_its_last_word_s543() -> None:
    """S543: the acts keep to it; raised here all the same, it would be found and refused at every look."""
    made = judge(alert_rule(cooldown_s=300))
    made.hear(1, violation(0))
    made.tick(NOW + 61 * SECOND)
    assert [move for move, _, _ in moves(made)] == ["raise", "resolve"]
    made.obey([alert_rule(cooldown_s=300, since_seq=2, name="other")], {}, NOW + 62 * SECOND)
    made.hear(3, violation(63))
    assert moves(made) == [] and not made.is_calm
    made.hear(4, violation(301))
    assert moves(made) == [("raise", "agent:writer", 1)]


def test_levels_are_told_for_every_subject_and_resolved_when_it_is_gone_s548() -> None:
    """S548: what has no reading is nought."""
    made = judge(alert_rule("queue_depth", threshold=10), alert_rule("breaker", target="coder"))
    deep = {"capability:coder": LevelReading(12), "capability:writer": LevelReading(3)}
    first, second = made.rules.values()
    made.level(first, deep, NOW)
    made.level(second, {"capability:other": LevelReading(1)}, NOW)
    assert moves(made) == [("raise", "capability:coder", 12)]
    made.level(first, {}, NOW + SECOND)
    assert moves(made) == [("resolve", "capability:coder", 0)]
    made.level(second, {"capability:coder": LevelReading(1, {"state": "open"})}, NOW)
    assert moves(made) == [("raise", "capability:coder", 1)]


def test_too_little_is_told_as_well_and_a_certain_trouble_whatever_the_figure_s548() -> None:
    """S548: an empty queue for scaling down; a log that is refused."""
    idle = alert_rule(
        "queue_depth",
        compare="below",
        threshold=0.0,
        target="coder",
        purpose="scaling",
        direction="down",
        amount=1,
    )
    lag = alert_rule("checkpoint_lag", threshold=30)
    made = judge(idle, lag)
    made.level(idle, {}, NOW)
    made.level(lag, {"tenant": LevelReading(0, {"refused": "why"}, certain=True)}, NOW)
    assert moves(made) == [("raise", "capability:coder", 0), ("raise", "tenant", 0)]


def test_a_storm_opens_so_many_and_the_memory_is_bounded_s548(monkeypatch: pytest.MonkeyPatch) -> None:
    """S548: beyond the limit the next ones wait until one is resolved."""
    monkeypatch.setattr(alert_judging, "MAX_OPEN", 3)
    rule = alert_rule("silence", threshold=60)
    made = judge(rule)
    storm = {f"agent:a{number}": LevelReading(90) for number in range(5)}
    made.level(rule, storm, NOW)
    assert len(moves(made)) == 3 and made.firing == 3
    del storm["agent:a0"]
    made.level(rule, storm, NOW + SECOND)
    made.level(rule, storm, NOW + 2 * SECOND)
    received = moves(made)
    assert ("resolve", "agent:a0", 0) in received and sum(one[0] == "raise" for one in received) == 1
    monkeypatch.setattr(alert_judging, "MAX_SUBJECTS", 100)
    counted = judge(alert_rule(threshold=2))
    for number in range(1_000):
        counted.hear(number + 1, violation(0, f"agent-{number}"))
    assert len(counted._windows) == 100


def test_what_is_told_links_to_its_page_and_holds_no_sentence_of_anybody_s550() -> None:
    """S550: names and figures only; a name is quoted in the link."""
    made = judge(alert_rule(), alert_rule("entropy"), alert_rule("budget"), alert_rule("security"))
    made.hear(1, violation(0, "a/b?c"))
    made.hear(2, violation(0, kind="entropy_alert", session_id="s 1"))
    made.hear(3, violation(0, kind="budget_exceeded", scope="session", whose="s 1", spent="2.5"))
    made.hear(4, violation(0, kind="security_violation"))
    found = made.taken()
    assert [one.link for one in found] == [
        "http://here/fleet?peek=agent:a%2Fb%3Fc",
        "http://here/sessions/s%201",
        "http://here/forensics",
        "http://here/god-mode",
    ]
    assert found[2].subject == "budget:session:s 1" and found[2].figures["spent"] == "2.5"
    assert "swordfish" not in str([one.figures for one in found])


def test_chain_trouble_is_told_for_each_log_s549() -> None:
    """S549: a fork of one peer does not hide that of another, nor a broken session of thoughts."""
    made = judge(alert_rule("chain"))
    made.hear(1, violation(0, kind="peer_fork_detected", origin="a.example/log"))
    made.hear(2, violation(0, kind="peer_fork_detected", origin="b.example/log"))
    made.hear(3, violation(0, kind="chain_broken", session_id="tho-1"))
    made.hear(4, violation(0, kind="rollback_accepted"))
    subjects = [subject for _, subject, _ in moves(made)]
    assert subjects == ["log:a.example/log", "log:b.example/log", "log:thoughts/tho-1", "log:own"]


BAD: list[tuple[AlertRule, str]] = [
    (alert_rule(scope="cluster"), "violations has scope agent or tenant"),
    (alert_rule("gate_age", target="x"), "no target"),
    (alert_rule(threshold=float("nan")), "threshold must be a number"),
    (alert_rule("gate_age", threshold=-1), "threshold must be a number"),
    (alert_rule(threshold=1.5), "whole number"),
    (alert_rule(threshold=0), "whole number"),
    (alert_rule(for_s=5), "omit for_s"),
    (alert_rule(compare="below"), "compare must be above"),
    (alert_rule("silence", compare="below"), "below is only for queue_depth or burn_rate"),
    (alert_rule("queue_depth", compare="below"), "below needs a target"),
    (alert_rule("burn_rate", scope="session", threshold=0), "always holds for each session"),
    (alert_rule(direction="up", amount=1), "create a scaling trigger"),
    (alert_rule(purpose="scaling", direction="up", amount=1), "a scaling trigger watches"),
    (alert_rule("breaker", purpose="scaling"), "needs a direction"),
    (alert_rule("breaker", purpose="scaling", direction="up", amount=1), "cooldown_s must be at least 1"),
]


@pytest.mark.parametrize(("rule", "sentence"), BAD, ids=[case[1] for case in BAD])
def test_what_cannot_be_watched_is_refused_with_a_sentence_s541(rule: AlertRule, sentence: str) -> None:
    """S541: and every condition can be watched as it is offered."""
    assert sentence in (problem_of(rule) or "")


def test_every_condition_can_be_watched_as_it_is_offered_s541() -> None:
    """S541: with its own threshold and first scope; so can those of the set that is offered."""
    for name, kind in KINDS.items():
        assert problem_of(alert_rule(name, threshold=kind.threshold)) is None, name
    for one in DEFAULTS:
        assert problem_of(alert_rule(one.condition, threshold=one.threshold, for_s=one.for_s)) is None
