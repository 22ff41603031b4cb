"""One word for how a session stands, and the budget nearest to its cap."""

from __future__ import annotations

from typing import Any

import pytest

from observatory.features.sessions.types_status import Cap, Caps, status_of


def session(**more: Any) -> dict[str, Any]:
    row = {"session_id": "ses-1", "held": 0, "severity": "normal", "loop_ns": None, "spent": 0.0}
    return row | more


@pytest.mark.parametrize(
    ("row", "facts", "word"),
    [
        ({}, {}, "running"),
        ({}, {"stuck": True}, "stuck"),
        ({}, {"stuck": True, "deciding": True}, "waiting"),
        ({"held": 1}, {"stuck": True}, "waiting"),
        ({"held": 1, "loop_ns": 5}, {}, "looping"),
        ({"severity": "loop"}, {"deciding": True}, "looping"),
        ({"severity": "warning"}, {}, "running"),
        ({"severity": "loop"}, {"paused": 1}, "paused"),
        ({"severity": "loop"}, {"ended": True, "paused": 1}, "ended"),
        ({"held": 1}, {"ended": True}, "waiting"),
        ({"held": 1}, {"ended": True, "paused": 2}, "paused"),
    ],
)
def test_the_first_rule_that_holds_gives_the_word_s302(
    row: dict[str, Any], facts: dict[str, Any], word: str
) -> None:
    known: dict[str, Any] = {"ended": False, "paused": 0, "deciding": False, "stuck": False}
    assert status_of(session(**row), **(known | facts)) == word


AGENT = {"agent_id": "ada", "entity_id": "agt_1", "cluster_id": "eu", "cost": 4.0}
CAPS = [
    Cap("b-tenant", "tenant", "tnt_x", None, 100.0, 30.0),
    Cap("b-each", "session", "*", 5.0, None, 0.0),
    Cap("b-other", "session", "ses-2", None, 1.0, 1.0),
    Cap("b-agent", "agent", "agt_1", None, 10.0, 1.0),
    Cap("b-agents", "agent", "*", None, 20.0, 0.0),
    Cap("b-cluster", "cluster", "eu", None, 8.0, 2.0),
]


@pytest.mark.parametrize(
    ("spent", "crew", "whose", "share"),
    [
        (0.0, [], "b-tenant", 0.3),
        (2.0, [], "b-each", 0.4),
        (0.0, [AGENT], "b-tenant", 0.3),
        (0.0, [AGENT | {"cost": 9.0}], "b-agents", 0.45),
        (-3.0, [AGENT], "b-tenant", 0.3),
    ],
)
def test_of_all_that_bind_it_the_one_used_up_most_is_told_s304(
    spent: float, crew: list[dict[str, Any]], whose: str, share: float
) -> None:
    found = Caps(CAPS).tightest(session(spent=spent), crew)
    assert found is not None and (found["budget_id"], found["share"]) == (whose, share)


def test_a_cluster_binds_by_its_agents_and_a_cap_of_nothing_is_used_up() -> None:
    found = Caps(CAPS[-1:]).tightest(session(), [AGENT])
    assert found is not None and found["budget_id"] == "b-cluster"
    assert Caps(CAPS[-1:]).tightest(session(), []) is None and Caps(()).tightest(session(), [AGENT]) is None
    zero = Caps([Cap("b", "tenant", "t", None, 0.0, 0.0)]).tightest(session(), [])
    assert zero is not None and zero["share"] == 1.0


def test_what_many_share_is_rounded_to_a_hundredth_of_the_cap() -> None:
    caps = Caps([Cap("b", "tenant", "t", None, 3.0, 1.0)])
    exact, rounded = caps.tightest(session(), []), caps.tightest(session(), [], 2)
    assert exact is not None and rounded is not None
    assert (exact["share"], exact["spent"]) == (0.333333, 1.0)
    assert (rounded["share"], rounded["spent"]) == (0.33, 0.99)
