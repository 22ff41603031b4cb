"""What the windows ask of the record and of what is folded: rooms, lines, seconds, forks, alerts."""

from __future__ import annotations

from typing import Any

import pytest

from observatory.features.fleet.types_membership import Rooms, Sought
from observatory.features.fleet.types_traffic import SecondCount
from observatory.features.sessions.fold_lines import SessionLines
from observatory.pipeline.state import HOME_TENANT, Breach
from observatory.runtime.seen import Batch, Noted
from tests.contract.analysis import Analyst
from tests.contract.conftest import House
from tests.samples import decision_log

SECOND = 1_000_000_000


def said(agent: str, session: str, step: str, *parents: str, **sections: Any) -> dict[str, Any]:
    meta = {"session_id": session, "step_id": step, "parent_step_id": parents[0] if parents else None}
    return decision_log(
        meta=meta | {"parent_step_ids": list(parents[1:])}, identity={"agent_id": agent}, **sections
    )


def broken(house: House) -> None:
    house.submit(
        Breach(house.admin(), house.now(), "ada", None, "action: missing", "sha256:" + "0" * 64, None)
    )


def numbers(house: House, table: str, name: str) -> dict[str, int]:
    column = {"agents": "agent_no", "sessions": "session_no"}[table]
    rows = house.read(house.store.rows(HOME_TENANT, table))
    return {row[name]: row[column] for row in rows}


@pytest.fixture
def rooms(house: House) -> Rooms:
    store = house.store
    assert isinstance(store, Rooms)
    return store


def test_an_agents_rooms_come_by_its_own_last_message(house: House, rooms: Rooms) -> None:
    """S309: of sessions active since; those of others are none of its."""
    house.send(said("ada", "ses-a", "a1"), said("ada", "ses-b", "b1"), said("bob", "ses-a", "a2"))
    house.send(said("bob", "ses-c", "c1"))
    agents = numbers(house, "agents", "agent_id")
    found = house.read(rooms.rooms_of(HOME_TENANT, agents["ada"], 0, None, 10))
    assert [room.session["session_id"] for room in found] == ["ses-b", "ses-a"]
    assert [room.member["messages"] for room in found] == [1, 1] and [room.held for room in found] == [0, 0]
    before = found[0].member["last_seq"]
    rest = house.read(rooms.rooms_of(HOME_TENANT, agents["ada"], 0, before, 10))
    assert [room.session["session_id"] for room in rest] == ["ses-a"]
    late = house.now() + SECOND
    assert house.read(rooms.rooms_of(HOME_TENANT, agents["ada"], late, None, 10)) == []
    assert (
        house.read(rooms.paused_in(HOME_TENANT)) == {} and house.read(rooms.deciding_in(HOME_TENANT)) == set()
    )
    assert (house.read(rooms.size_bytes()) or 0) > 0


def test_sessions_are_found_by_beginning_agent_or_number(house: House, rooms: Rooms) -> None:
    """S305: newest first, page by page; an empty question would be all of them."""
    house.send(said("ada", "ses-1", "a"), said("bob", "ses-2", "b"), said("eve", "other_%", "c"))
    agents, sessions = numbers(house, "agents", "agent_id"), numbers(house, "sessions", "session_id")

    def found(begins: str, who: tuple[str, ...] = (), more: tuple[str, ...] = (), **where: Any) -> list[str]:
        sought = Sought(begins, [agents[one] for one in who], [sessions[one] for one in more])
        rows = house.read(
            rooms.sessions_found(HOME_TENANT, sought, where.get("before"), 10, where.get("severity"))
        )
        return [row["session_id"] for row in rows]

    assert found("SES-") == ["ses-2", "ses-1"] and found("other_%") == ["other_%"] and found("%") == []
    assert found("none", ("bob", "eve")) == ["other_%", "ses-2"]
    assert found("none", ("eve",), ("ses-1",)) == ["other_%", "ses-1"]
    assert found("ses-", severity="loop") == []
    newest = house.read(rooms.sessions_found(HOME_TENANT, Sought("ses-", (), ()), None, 1, None))[0]
    assert found("ses-", before=newest["last_seq"]) == ["ses-1"]


def test_what_is_not_folded_is_counted_by_second_as_what_is_folded_would_be(
    house: House, rooms: Rooms
) -> None:
    """S303: messages and violations in the second of their commit; other events count nothing."""
    house.send(said("ada", "ses-a", "a1"), said("ada", "ses-a", "a2", action={"status": "failure"}))
    broken(house)
    counted = house.read(rooms.counted_past(HOME_TENANT, 0, 1_000))
    with Analyst(house) as analyst:
        analyst.catch_up()
        last = house.now() // SECOND + 1
        folded: list[SecondCount] = house.read(analyst.derived.seconds(HOME_TENANT, last - 3_600, last))
        assert {one.second: (one.messages, one.violations) for one in folded} == {
            second: one for second, one in counted.items() if one != (0, 0)
        }
        assert (sum(one.messages for one in folded), sum(one.failures for one in folded)) == (2, 1)
        head, _ = house.read(house.store.head(HOME_TENANT))
        assert house.read(rooms.counted_past(HOME_TENANT, head, 1_000)) == {}


def test_lines_are_read_on_from_the_number_read_last(house: House) -> None:
    """S301: what did not change is not read again; goals are found by their words."""
    with Analyst(house) as analyst:
        derived = analyst.derived
        house.send(said("ada", "ses-a", "a1", cognition={"intent": "Find NVDA", "confidence_score": 0.5}))
        house.send(said("bob", "ses-b", "b1", cognition={"intent": "Write  it"}))
        analyst.catch_up()
        sessions = numbers(house, "sessions", "session_id")
        first = house.read(derived.session_lines_since(HOME_TENANT, 0, 10))
        assert [(one.session_no, one.goal) for one in first] == [
            (sessions["ses-a"], "Find NVDA"),
            (sessions["ses-b"], "Write it"),
        ]
        house.send(said("bob", "ses-a", "a2", "ses-a/a1", control={"is_terminal": True}))
        analyst.catch_up()
        (line,) = house.read(derived.session_lines_since(HOME_TENANT, first[-1].turn, 10))
        assert (line.session_no, line.goal, line.ended) == (sessions["ses-a"], "Find NVDA", 1)
        agents = numbers(house, "agents", "agent_id")
        assert line.agents == [agents["ada"], agents["bob"]] and len(line.scores) == 2
        assert house.read(derived.sessions_about(HOME_TENANT, "nvda", 10)) == [sessions["ses-a"]]
        assert house.read(derived.sessions_about(HOME_TENANT, "%", 10)) == []
        lines = house.read(derived.session_lines(HOME_TENANT, sessions.values()))
        assert lines[sessions["ses-a"]] == line and len(lines) == 2


def test_a_goal_goes_with_its_payload_whoever_ordered_it(house: House) -> None:
    """S300, ruling 39: an order of the whole house names the message, not its session."""
    with Analyst(house) as analyst:
        house.send(said("ada", "ses-a", "a1", cognition={"intent": "Find NVDA"}))
        house.send(said("ada", "ses-b", "b1", cognition={"intent": "Something else"}))
        analyst.catch_up()
        line, other = house.read(analyst.derived.session_lines_since(HOME_TENANT, 0, 10))
        head = house.read(analyst.derived.progress(HOME_TENANT)).seq
        order = Noted(
            seq=head + 1,
            event_type="payload_shredded",
            at_ns=house.now(),
            session_no=0,
            agent_id=None,
            body={"shredded_sequence_numbers": [line.goal_seq]},
        )
        fold = SessionLines(analyst.derived)
        ((put,), _) = house.read(fold.fold(Batch(HOME_TENANT, head, head + 1, [], [order])))
        (row,) = put.rows
        assert row == line._asdict() | {"goal": None, "goal_key": None, "turn": head + 1}
        assert other.goal == "Something else"


def test_children_are_read_on_and_their_parents_found(house: House) -> None:
    """S308: a step several others name, with the agents that took it on."""
    with Analyst(house) as analyst:
        derived = analyst.derived
        house.send(said("planner", "ses-a", "root"))
        house.send(*(said(f"reader-{one}", "ses-a", f"c{one}", "ses-a/root") for one in range(3)))
        analyst.catch_up()
        children = house.read(derived.children_since(HOME_TENANT, 0, 0, 10))
        assert len(children) == 3 and len({one.parent_key for one in children}) == 1
        (split,) = house.read(derived.split_at(HOME_TENANT, {children[0].parent_key})).values()
        agents = numbers(house, "agents", "agent_id")
        assert split.agent_no == agents["planner"] and split.children == 0
        assert {one.agent_no for one in children} == {agents[f"reader-{one}"] for one in range(3)}
        assert house.read(derived.children_since(HOME_TENANT, children[1].seq, 0, 10)) == children[2:]
        assert house.read(derived.children_since(HOME_TENANT, 0, children[2].at_ns, 10))[-1] == children[2]
        assert house.read(derived.children_since(HOME_TENANT, 0, house.now() + SECOND, 10)) == []


def test_alerts_and_their_ends_are_kept_by_number(house: House) -> None:
    """S311: newest first, of the kinds asked for; ends oldest first."""
    with Analyst(house) as analyst:
        derived = analyst.derived
        stuck = {"cognition": {"intent": "Find it"}, "action": {"status": "failure", "tool_call": "serp"}}
        house.send(*(said("ada", "ses-a", f"s{one}", **stuck) for one in range(5)))
        broken(house)
        house.send(*(said("ada", "ses-a", f"t{one}", cognition={"intent": f"Go {one}"}) for one in range(5)))
        analyst.catch_up()
        both = house.read(derived.alerts(HOME_TENANT, None, 10, ("entropy", "violation")))
        assert [one.kind for one in both] == ["violation", "entropy"] and both[0].seq > both[1].seq
        assert house.read(derived.alerts(HOME_TENANT, both[0].seq, 10, ("entropy", "violation"))) == both[1:]
        assert house.read(derived.alerts(HOME_TENANT, None, 10, ("entropy",))) == both[1:]
        ends = house.read(derived.alert_ends(HOME_TENANT, both[1].seq, 10, ("entropy", "violation")))
        assert [one.kind for one in ends] == ["entropy"]
        assert house.read(derived.alert_ends(HOME_TENANT, ends[-1].seq, 10, ("entropy",))) == []
        assert house.read(derived.alert_ends(HOME_TENANT, 0, 10, ("kill_switch",))) == []
