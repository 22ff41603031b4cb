"""Replay equals live (S287): the record folded in any batches gives the same records, on both databases."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from observatory.derived.live_rows import LiveRowReads
from observatory.derived.ports import FoldProgress
from observatory.features import parts
from observatory.features.sessions.live_topic import SessionsSource
from observatory.http.app_state import AppState as Doors
from observatory.http.live_topics import FoldedTopics
from observatory.pipeline.state import HOME_TENANT
from observatory.runtime.feed_channel import Key, LiveTopic, Record, SourceChanges
from observatory.settings import Settings
from tests.contract.conftest import Harness
from tests.samples import decision_log

SESSIONS = ("ses-a", "ses-b", "ses-c")


TOPICS = FoldedTopics([part.FEATURE for part in parts("feature")])


class Nothing:
    """A derived store nothing was folded into."""

    async def progress(self, *_: Any) -> FoldProgress:
        return FoldProgress()

    async def agent_minutes(self, *_: Any) -> list[Any]:
        return []

    edge_sums = seconds = children_since = session_lines_since = agent_minutes

    def queries(self, kind: type[Any]) -> Any:
        return self


def doors(harness: Harness) -> Doors:
    made = SimpleNamespace(
        store=harness.store, settings=Settings(), derived=Nothing(), clock=lambda: harness.now()
    )
    return cast(Doors, made)


def story(seed: int, length: int = 40) -> list[dict[str, Any]]:
    """Forks, joins, parents that come late or never, loops, several agents in several sessions."""
    dice = random.Random(seed)
    received = []
    for number in range(length):
        session = dice.choice(SESSIONS)
        parents = [f"s{dice.randrange(max(1, number + 3))}" for _ in range(dice.randrange(3))]
        received.append(
            decision_log(
                meta={
                    "session_id": session,
                    "step_id": f"s{number}",
                    "parent_step_id": parents[0] if parents else None,
                    "parent_step_ids": parents[1:],
                },
                identity={"agent_id": f"agent-{dice.randrange(4)}"},
                cognition={"intent": dice.choice(["Find it", "Write it"]), "confidence_score": dice.random()},
                action={"status": dice.choice(["success", "failure"]), "tool_call": dice.choice("ab")},
                control={"hitl_required": dice.random() < 0.1, "is_terminal": False},
            )
        )
    return received


def look(harness: Harness, channel: LiveTopic, now_ns: int, again: bool) -> None:
    async def ask() -> None:
        head, _ = await harness.store.head(HOME_TENANT)
        channel.fold(await channel.source.look(head, now_ns, again), head)

    harness.read(ask())


class Client:
    """Upserts what it is told, in the order of the guide."""

    def __init__(self) -> None:
        self.turn, self.records = 0, cast(dict[Key, Record], {})

    def take(self, channel: LiveTopic) -> None:
        received, self.turn = channel.since(self.turn), channel.turn
        assert received is not None
        for item in msgspec.json.decode(b"[" + received + b"]"):
            del item["version"]
            if item.get("removed"):
                self.records.pop((item["kind"], item["id"]), None)
            else:
                self.records[item["kind"], item["id"]] = item


def steady(records: Mapping[Key, Record]) -> dict[Key, Record]:
    """Without the pulse, which is read beside the looks and told by the next one."""
    return {key: record for key, record in records.items() if key[0] != "throughput"}


def opened(harness: Harness, topic: str) -> LiveTopic:
    return LiveTopic(HOME_TENANT, topic, TOPICS.source_of(doors(harness), HOME_TENANT, topic))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_is_folded_in_any_batches_is_what_a_fresh_reader_sees_s287(harness: Harness, seed: int) -> None:
    dice, left = random.Random(seed), story(seed)
    topics = ("fleet", "sessions", *(f"session:dag:{session}" for session in SESSIONS))
    channels = [opened(harness, topic) for topic in topics]
    clients = [Client() for _ in topics]
    while left:
        size = dice.randint(1, 7)
        batch, left = left[:size], left[size:]
        harness.send(*batch)
        for channel, client in zip(channels, clients, strict=True):
            look(harness, channel, harness.now(), dice.random() < 0.3 or not channel.turn)
            if dice.random() < 0.5:  # whoever reads now and then misses nothing
                client.take(channel)
    now_ns = harness.now() + 60_000_000_000  # what waited for a parent has waited long enough
    for channel, topic, client in zip(channels, topics, clients, strict=True):
        look(harness, channel, now_ns, True)
        fresh = opened(harness, topic)
        look(harness, fresh, now_ns, True)
        client.take(channel)
        found = [steady(one) for one in (client.records, channel.records(), fresh.records())]
        assert found[0] == found[1] == found[2], topic
        assert len(client.records) >= 3
        harness.read(channel.source.close())
        harness.read(fresh.source.close())


def test_a_span_of_messages_names_its_sessions_and_agents_s288(harness: Harness) -> None:
    """By number: what was touched before or after the span only counts if it is also in it."""
    assert isinstance(harness.store, LiveRowReads)
    store: Any = harness.store
    harness.send(*story(5, 10))
    head, _ = harness.read(store.head(HOME_TENANT))
    harness.send(
        decision_log(meta={"session_id": "ses-new", "step_id": "n1"}, identity={"agent_id": "newcomer"})
    )
    after, _ = harness.read(store.head(HOME_TENANT))
    sessions = harness.read(store.sessions_touched(HOME_TENANT, head, after))
    agents = harness.read(store.agents_touched(HOME_TENANT, head, after))
    assert [row["session_id"] for row in sessions] == ["ses-new"]
    assert [row["agent_id"] for row in agents] == ["newcomer"]
    assert harness.read(store.sessions_touched(HOME_TENANT, after, after)) == []
    everyone, pulses = harness.read(store.everyone(HOME_TENANT))
    by_number = {row["agent_no"]: row for row in harness.read(store.rows(HOME_TENANT, "agents"))}
    assert {row["agent_no"]: row for row in everyone} == by_number and pulses == []
    lately = harness.read(store.sessions_lately(HOME_TENANT, 3))
    assert lately == harness.read(store.sessions_page(HOME_TENANT, None, 3))


@pytest.mark.parametrize("topic", ["sessions", "fleet"])
def test_a_page_that_takes_long_keeps_no_message_waiting_s291(
    harness: Harness, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it tells comes when it is there, and never puts an older word above a newer one."""
    channel = opened(harness, topic)
    harness.send(*story(7, 10))
    look(harness, channel, harness.now(), True)
    gate, name = asyncio.Event(), "sessions_lately" if topic == "sessions" else "everyone"
    read = getattr(harness.store, name)

    async def slowly(*given: Any) -> Any:
        found = await read(*given)
        await gate.wait()
        return found

    monkeypatch.setattr(harness.store, name, slowly)

    async def looked(again: bool) -> SourceChanges:
        head, _ = await harness.store.head(HOME_TENANT)
        found = await channel.source.look(head, harness.now(), again)
        channel.fold(found, head)
        return found

    harness.send(
        decision_log(meta={"session_id": "ses-a", "step_id": "x1"}, identity={"agent_id": "agent-1"})
    )
    first = harness.read(looked(True))
    harness.send(
        decision_log(meta={"session_id": "ses-a", "step_id": "x2"}, identity={"agent_id": "agent-1"})
    )
    second = harness.read(looked(False))
    assert first.soon and second.soon and not gate.is_set()
    newest = dict(channel.records())
    gate.set()
    while harness.read(looked(False)).soon:
        pass
    kind, name = ("session", "ses-a") if topic == "sessions" else ("node", "agent-1")
    assert channel.records()[kind, name] == newest[kind, name]
    fresh = opened(harness, topic)
    monkeypatch.undo()
    look(harness, fresh, harness.now(), True)
    assert steady(channel.records()) == steady(fresh.records())
    harness.read(channel.source.close())
    harness.read(fresh.source.close())


def test_a_session_that_is_silent_longest_leaves_the_page_s289(harness: Harness) -> None:
    source = SessionsSource(doors(harness), HOME_TENANT, shown=2)
    channel = LiveTopic(HOME_TENANT, "sessions", source)

    def received() -> set[str]:
        return {name for _, name in channel.records()}

    for number, again in enumerate((True, False, True, False, True)):
        harness.send(decision_log(meta={"session_id": f"ses-{number}", "step_id": f"p{number}"}))
        look(harness, channel, harness.now(), again)
        assert received() == {f"ses-{one}" for one in (number - 1, number) if one >= 0}
    harness.send(decision_log(meta={"session_id": "ses-0", "step_id": "again"}))
    look(harness, channel, harness.now(), True)
    look(harness, channel, harness.now(), True)
    assert received() == {"ses-0", "ses-4"}
    harness.read(source.close())
