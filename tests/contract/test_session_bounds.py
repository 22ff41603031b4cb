"""What reading sessions may cost: bytes, sessions at once, payloads of last words and of alarms."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from observatory.features.archive import queries_content as contents
from observatory.features.graph import live_topic as live_dag
from observatory.features.graph import queries_session as graphs
from observatory.features.loops import routes as entropy
from observatory.features.loops.stage import intent_hash
from observatory.features.sessions.queries_rows import LastMessage, stuck_sessions
from observatory.pipeline.state import HOME_TENANT
from tests.contract.conftest import Harness
from tests.contract.test_live_replay import doors
from tests.contract.test_session_reads import log, played, session_of


def test_a_session_is_cut_by_steps_and_by_bytes_s204(harness: Harness) -> None:
    """S204: the newest that fit, the very newest whatever its size; told by lengths, without reading them."""
    text = {"cognition": {"intent": "x" * 3_000}}
    verdicts = harness.send(*(log("ses-1", f"n{n}", **text) for n in range(5)), log("ses-2", "a", **text))
    numbers = [verdict.answer.sequence_number for verdict in verdicts][:5]
    session = session_of(harness, "ses-1")

    def cut(limit: int, most_bytes: int, before: int | None = None) -> int | None:
        return harness.read(harness.store.cut(HOME_TENANT, session, limit, most_bytes, before))

    lengths = harness.read(harness.store.lengths(HOME_TENANT, [*numbers, 999_999]))
    assert lengths == {row.seq: len(row.raw or b"") for row in played(harness, "ses-1")}
    total = sum(lengths.values())
    assert cut(5, total) is None and cut(5, total - 1) == numbers[1]
    assert cut(3, total) == numbers[2] and cut(3, 1) == numbers[4]
    assert cut(5, total, numbers[1]) is None and cut(5, 1, numbers[3]) == numbers[2]
    by_number = {event.sequence_number: bytes(event.record) for event in harness.trail_of()}
    found = harness.read(harness.store.records(HOME_TENANT, [*numbers, 999_999]))
    assert found == {number: by_number[number] for number in numbers}


def test_doors_and_live_readers_read_no_more_than_so_many_bytes_s204_s290(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.send(*(log("ses-1", f"n{n}", cognition={"intent": "x" * 3_000}) for n in range(5)))
    here, session = doors(harness), session_of(harness, "ses-1")
    whole = harness.read(graphs.load(here, HOME_TENANT, session))
    assert not whole.truncated and len(whole.graph.steps()) == 5
    most = sum(len(row.raw or b"") for row in played(harness, "ses-1", limit=2)) + 1
    monkeypatch.setattr(graphs, "MAX_BYTES", most)
    monkeypatch.setattr(live_dag, "MAX_BYTES", most)
    monkeypatch.setattr(live_dag, "SLACK_BYTES", most)
    part = harness.read(graphs.load(here, HOME_TENANT, session))
    assert part.truncated and [step.step_id for step in part.graph.steps()] == ["n3", "n4"]
    source = live_dag.DagSource(here, HOME_TENANT, "ses-1")

    def shown() -> tuple[set[str], bool]:
        records = [dict(one) for one in harness.read(source.look(1, harness.now(), True)).items]
        (summary,) = (one for one in records if one["kind"] == "summary")
        return {one["id"] for one in records if one["kind"] == "step"}, summary["truncated"]

    assert shown() == ({"ses-1/n3", "ses-1/n4"}, True)
    for number in range(5, 9):  # and as it grows it is begun anew
        harness.send(log("ses-1", f"n{number}", cognition={"intent": "x" * 3_000}))
        steps, truncated = shown()
        assert f"ses-1/n{number}" in steps and len(steps) <= 5 and truncated


def test_two_sessions_are_read_whole_at_a_time_s204(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.send(log("ses-1", "a"))
    here, session, now, most = doors(harness), session_of(harness, "ses-1"), 0, 0
    newest = graphs.newest

    async def counted(*asked: Any) -> Any:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        try:
            return await newest(*asked)
        finally:
            now -= 1

    async def all_at_once() -> None:
        await asyncio.gather(*(graphs.load(here, HOME_TENANT, session) for _ in range(6)))

    monkeypatch.setattr(graphs, "newest", counted)
    harness.read(all_at_once())
    assert most == 2


class Reading:
    """Which payloads are read, and how often anybody asks."""

    def __init__(self, harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
        self.numbers: list[int] = []
        self.times = 0
        read = harness.store.contents

        async def counted(tenant_id: str, numbers: Any) -> Any:
            self.times += 1
            self.numbers += numbers
            return await read(tenant_id, numbers)

        monkeypatch.setattr(harness.store, "contents", counted)


def test_of_a_session_that_has_ended_nobody_else_is_read_s294_s295(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending = {"tool_call": "wait", "status": "pending"}
    two = [{"identity": {"agent_id": name}} for name in ("one", "two")]
    verdicts = harness.send(
        log("ended", "a", **two[0], action=pending),
        log("ended", "b", **two[1], control={"is_terminal": True}),
        log("going", "a", **two[0], action=pending),
        log("going", "b", **two[1]),
    )
    first, last, waits, goes = (verdict.answer.sequence_number for verdict in verdicts)
    here, rows = doors(harness), [session_of(harness, name) for name in ("ended", "going")]
    later = harness.now() + 10_000 * 1_000_000_000
    monkeypatch.setattr(here, "clock", lambda: later)
    reading, known = Reading(harness, monkeypatch), dict[int, LastMessage]()

    def standing() -> dict[int, str]:
        found = harness.read(stuck_sessions(here, HOME_TENANT, rows, known))
        return {number: stuck.reason for number, stuck in found.items()}

    assert standing() == {rows[1]["session_no"]: "pending"}
    assert sorted(reading.numbers) == [last, waits, goes] and first not in known
    assert standing() == {rows[1]["session_no"]: "pending"}
    assert len(reading.numbers) == 3  # once
    assert all(len(word.raw or b"") < 100 for word in known.values())
    monkeypatch.setattr(contents, "MAX_BYTES", 1)
    known.clear()
    assert standing() == {} and len(reading.numbers) == 3


def test_payloads_are_read_in_portions_and_no_more_than_the_most() -> None:
    lengths = {1: 4, 2: 4, 3: 20, 4: 1, 5: 9, 6: 1}
    assert list(contents.byte_portions([1, 2, 3, 4, 5, 6], lengths, 8, 38)) == [[1, 2], [3], [4], [5]]
    assert list(contents.byte_portions([], lengths, 8, 38)) == []


def test_of_an_alarm_the_message_it_names_is_read_all_together_s183(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    intents = ("Again", "Again", "Once")
    sent = harness.send(*(log("s", f"n{n}", cognition={"intent": text}) for n, text in enumerate(intents)))
    numbers = [verdict.answer.sequence_number for verdict in sent]

    def event(place: int, number: int) -> dict[str, Any]:
        pattern = {"intent_hash": intent_hash("Again"), "tool_call": "t", "action_status": "failure"}
        about = {"session_id": "s", "agent_id": "a", "message_sequence_number": number}
        body = {"event_type": "entropy_alert", "repeated_pattern": pattern, **about}
        return {"body": body, "observed_timestamp": "", "hash_chain": {"sequence_number": place}}

    reading = Reading(harness, monkeypatch)
    events = [event(place, number) for place, number in enumerate((numbers[1], numbers[2], numbers[0]))]
    received = harness.read(entropy._items_of(doors(harness), HOME_TENANT, events))
    assert [one["repeated_pattern"]["intent"] for one in received] == ["Again"] * 3
    assert reading.times == 1 and sorted(reading.numbers) == numbers
    monkeypatch.setattr(entropy, "WINDOWS", 0)
    received = harness.read(entropy._items_of(doors(harness), HOME_TENANT, events))
    assert [one["repeated_pattern"]["intent"] for one in received] == ["Again", None, "Again"]
