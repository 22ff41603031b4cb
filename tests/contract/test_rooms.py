"""What the windows ask of the record and of what is folded: rooms, lines, seconds, forks, alerts."""

from __future__ import annotations

from typing import Any

import pytest

from observatory.derived.seen import Batch, FoldEvent
from observatory.features.fleet.types_traffic import SecondCount
from observatory.features.sessions.fold_lines import SessionLines
from observatory.features.sessions.types_membership import MembershipReads, SessionSearch
from observatory.pipeline.state import HOME_TENANT, RejectedBody
from tests.contract.analysis import Analyst
from tests.contract.conftest import Harness
from tests.samples import decision_log

SECOND = 1_000_000_000


def new_message(agent: str, session: str, step: str, *parents: str, **sections: Any) -> dict[str, Any]:
    meta = {"session_id": session, "step_id": step, "parent_step_id": parents[0] if parents else None}
    return decision_log(
        meta=meta | {"parent_step_ids": list(parents[1:])}, identity={"agent_id": agent}, **sections
    )


def broken(harness: Harness) -> None:
    harness.submit(
        RejectedBody(
            harness.admin(), harness.now(), "ada", None, "action: missing", "sha256:" + "0" * 64, None
        )
    )


def numbers(harness: Harness, table: str, name: str) -> dict[str, int]:
    column = {"agents": "agent_no", "sessions": "session_no"}[table]
    rows = harness.read(harness.store.rows(HOME_TENANT, table))
    return {row[name]: row[column] for row in rows}


@pytest.fixture
def rooms(harness: Harness) -> MembershipReads:
    store = harness.store
    assert isinstance(store, MembershipReads)
    return store


def test_an_agents_rooms_come_by_its_own_last_message(harness: Harness, rooms: MembershipReads) -> None:
    """S309: of sessions active since; those of others are none of its."""
    harness.send(
        new_message("ada", "ses-a", "a1"),
        new_message("ada", "ses-b", "b1"),
        new_message("bob", "ses-a", "a2"),
    )
    harness.send(new_message("bob", "ses-c", "c1"))
    agents = numbers(harness, "agents", "agent_id")
    found = harness.read(rooms.memberships_of(HOME_TENANT, agents["ada"], 0, None, 10))
    assert [room.session["session_id"] for room in found] == ["ses-b", "ses-a"]
    assert [room.member["messages"] for room in found] == [1, 1] and [room.held for room in found] == [0, 0]
    before = found[0].member["last_seq"]
    rest = harness.read(rooms.memberships_of(HOME_TENANT, agents["ada"], 0, before, 10))
    assert [room.session["session_id"] for room in rest] == ["ses-a"]
    late = harness.now() + SECOND
    assert harness.read(rooms.memberships_of(HOME_TENANT, agents["ada"], late, None, 10)) == []
    assert (
        harness.read(rooms.paused_in(HOME_TENANT)) == {}
        and harness.read(rooms.deciding_in(HOME_TENANT)) == set()
    )
    assert (harness.read(rooms.size_bytes()) or 0) > 0


def test_sessions_are_found_by_beginning_agent_or_number(harness: Harness, rooms: MembershipReads) -> None:
    """S305: newest first, page by page; an empty question would be all of them."""
    harness.send(
        new_message("ada", "ses-1", "a"), new_message("bob", "ses-2", "b"), new_message("eve", "other_%", "c")
    )
    agents, sessions = numbers(harness, "agents", "agent_id"), numbers(harness, "sessions", "session_id")

    def found(begins: str, who: tuple[str, ...] = (), more: tuple[str, ...] = (), **where: Any) -> list[str]:
        sought = SessionSearch(begins, [agents[one] for one in who], [sessions[one] for one in more])
        rows = harness.read(
            rooms.sessions_found(HOME_TENANT, sought, where.get("before"), 10, where.get("severity"))
        )
        return [row["session_id"] for row in rows]

    assert found("SES-") == ["ses-2", "ses-1"] and found("other_%") == ["other_%"] and found("%") == []
    assert found("none", ("bob", "eve")) == ["other_%", "ses-2"]
    assert found("none", ("eve",), ("ses-1",)) == ["other_%", "ses-1"]
    assert found("ses-", severity="loop") == []
    newest = harness.read(rooms.sessions_found(HOME_TENANT, SessionSearch("ses-", (), ()), None, 1, None))[0]
    assert found("ses-", before=newest["last_seq"]) == ["ses-1"]


def test_what_is_not_folded_is_counted_by_second_as_what_is_folded_would_be(
    harness: Harness, rooms: MembershipReads
) -> None:
    """S303: messages and violations in the second of their commit; other events count nothing."""
    harness.send(
        new_message("ada", "ses-a", "a1"), new_message("ada", "ses-a", "a2", action={"status": "failure"})
    )
    broken(harness)
    counted = harness.read(rooms.counts_after(HOME_TENANT, 0, 1_000))
    with Analyst(harness) as analyst:
        analyst.catch_up()
        last = harness.now() // SECOND + 1
        folded: list[SecondCount] = harness.read(analyst.derived.seconds(HOME_TENANT, last - 3_600, last))
        assert {one.second: (one.messages, one.violations) for one in folded} == {
            second: one for second, one in counted.items() if one != (0, 0)
        }
        assert (sum(one.messages for one in folded), sum(one.failures for one in folded)) == (2, 1)
        head, _ = harness.read(harness.store.head(HOME_TENANT))
        assert harness.read(rooms.counts_after(HOME_TENANT, head, 1_000)) == {}


def test_lines_are_read_on_from_the_number_read_last(harness: Harness) -> None:
    """S301: what did not change is not read again; goals are found by their words."""
    with Analyst(harness) as analyst:
        derived = analyst.derived
        harness.send(
            new_message("ada", "ses-a", "a1", cognition={"intent": "Find NVDA", "confidence_score": 0.5})
        )
        harness.send(new_message("bob", "ses-b", "b1", cognition={"intent": "Write  it"}))
        analyst.catch_up()
        sessions = numbers(harness, "sessions", "session_id")
        first = harness.read(derived.session_lines_since(HOME_TENANT, 0, 10))
        assert [(one.session_no, one.goal) for one in first] == [
            (sessions["ses-a"], "Find NVDA"),
            (sessions["ses-b"], "Write it"),
        ]
        harness.send(new_message("bob", "ses-a", "a2", "ses-a/a1", control={"is_terminal": True}))
        analyst.catch_up()
        (line,) = harness.read(derived.session_lines_since(HOME_TENANT, first[-1].turn, 10))
        assert (line.session_no, line.goal, line.ended) == (sessions["ses-a"], "Find NVDA", 1)
        agents = numbers(harness, "agents", "agent_id")
        assert line.agents == [agents["ada"], agents["bob"]] and len(line.scores) == 2
        assert harness.read(derived.sessions_about(HOME_TENANT, "nvda", 10)) == [sessions["ses-a"]]
        assert harness.read(derived.sessions_about(HOME_TENANT, "%", 10)) == []
        lines = harness.read(derived.session_lines(HOME_TENANT, sessions.values()))
        assert lines[sessions["ses-a"]] == line and len(lines) == 2


def test_a_goal_goes_with_its_payload_whoever_ordered_it(harness: Harness) -> None:
    """S300, ruling 39: an order of the whole house names the message, not its session."""
    with Analyst(harness) as analyst:
        harness.send(new_message("ada", "ses-a", "a1", cognition={"intent": "Find NVDA"}))
        harness.send(new_message("ada", "ses-b", "b1", cognition={"intent": "Something else"}))
        analyst.catch_up()
        line, other = harness.read(analyst.derived.session_lines_since(HOME_TENANT, 0, 10))
        head = harness.read(analyst.derived.progress(HOME_TENANT)).seq
        order = FoldEvent(
            seq=head + 1,
            event_type="payload_shredded",
            at_ns=harness.now(),
            session_no=0,
            agent_id=None,
            body={"shredded_sequence_numbers": [line.goal_seq]},
        )
        fold = SessionLines(analyst.derived, analyst.derived)
        ((put,), _) = harness.read(fold.fold(Batch(HOME_TENANT, head, head + 1, [], [order])))
        (row,) = put.rows
        assert row == line._asdict() | {"goal": None, "goal_key": None, "turn": head + 1}
        assert other.goal == "Something else"


def test_children_are_read_on_and_their_parents_found(harness: Harness) -> None:
    """S308: a step several others name, with the agents that took it on."""
    with Analyst(harness) as analyst:
        derived = analyst.derived
        harness.send(new_message("planner", "ses-a", "root"))
        harness.send(*(new_message(f"reader-{one}", "ses-a", f"c{one}", "ses-a/root") for one in range(3)))
        analyst.catch_up()
        children = harness.read(derived.children_since(HOME_TENANT, 0, 0, 10))
        assert len(children) == 3 and len({one.parent_key for one in children}) == 1
        (split,) = harness.read(derived.split_at(HOME_TENANT, {children[0].parent_key})).values()
        agents = numbers(harness, "agents", "agent_id")
        assert split.agent_no == agents["planner"] and split.children == 0
        assert {one.agent_no for one in children} == {agents[f"reader-{one}"] for one in range(3)}
        assert harness.read(derived.children_since(HOME_TENANT, children[1].seq, 0, 10)) == children[2:]
        assert harness.read(derived.children_since(HOME_TENANT, 0, children[2].at_ns, 10))[-1] == children[2]
        assert harness.read(derived.children_since(HOME_TENANT, 0, harness.now() + SECOND, 10)) == []


def test_alerts_and_their_ends_are_kept_by_number(harness: Harness) -> None:
    """S311: newest first, of the kinds asked for; ends oldest first."""
    with Analyst(harness) as analyst:
        derived = analyst.derived
        stuck = {"cognition": {"intent": "Find it"}, "action": {"status": "failure", "tool_call": "serp"}}
        harness.send(*(new_message("ada", "ses-a", f"s{one}", **stuck) for one in range(5)))
        broken(harness)
        harness.send(
            *(new_message("ada", "ses-a", f"t{one}", cognition={"intent": f"Go {one}"}) for one in range(5))
        )
        analyst.catch_up()
        both = harness.read(derived.alerts(HOME_TENANT, None, 10, ("entropy", "violation")))
        assert [one.kind for one in both] == ["violation", "entropy"] and both[0].seq > both[1].seq
        assert (
            harness.read(derived.alerts(HOME_TENANT, both[0].seq, 10, ("entropy", "violation"))) == both[1:]
        )
        assert harness.read(derived.alerts(HOME_TENANT, None, 10, ("entropy",))) == both[1:]
        ends = harness.read(derived.alert_ends(HOME_TENANT, both[1].seq, 10, ("entropy", "violation")))
        assert [one.kind for one in ends] == ["entropy"]
        assert harness.read(derived.alert_ends(HOME_TENANT, ends[-1].seq, 10, ("entropy",))) == []
        assert harness.read(derived.alert_ends(HOME_TENANT, 0, 10, ("kill_switch",))) == []
