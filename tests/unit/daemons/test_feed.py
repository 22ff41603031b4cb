"""The feed's own law: present state by version, told once for all, ten frames a second."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from observatory.bus.memory import MemoryBus
from observatory.errors import NotDurable, StoreError
from observatory.pipeline.ports import CommitNotice
from observatory.runtime import feed as module
from observatory.runtime.feed import FeedFull, Follower, LiveFeed
from observatory.runtime.feed_channel import Record
from observatory.runtime.feed_pace import FramePacer
from tests.unit.daemons.following import TENANT, Board, Client


class Heads:
    def __init__(self) -> None:
        self.number, self.asked = 1, 0

    async def head(self, tenant_id: str) -> tuple[int, str]:
        self.asked += 1
        return self.number, ""


class Bench:
    """A feed that runs, with boards for topics."""

    def __init__(self, most: int = 100, most_of_tenant: int = 100, most_of_principal: int = 100) -> None:
        self.heads = Heads()
        self.bus = MemoryBus()
        self.feed = LiveFeed(self.heads, self.bus, lambda: 0, most, most_of_tenant, most_of_principal)
        self.boards: dict[str, Board] = {}

    def board(self, topic: str) -> Board:
        return self.boards.setdefault(topic, Board())

    def follow(
        self,
        *topics: str,
        after: int | None = None,
        tenant: str = TENANT,
        pace: FramePacer | None = None,
        who: str = "",
    ) -> Any:
        return self.feed.follow(tenant, topics, self.board, after, pace, who)

    def commit(self, **state: int) -> None:
        self.commit_untold(**state)
        self.bus.publish(CommitNotice(TENANT, self.heads.number))

    def commit_untold(self, **state: int) -> None:
        """The bus may lose anything."""
        self.heads.number += 1
        for board in self.boards.values():
            board.state |= state


async def running(bench: Bench, body: Any) -> None:
    task = asyncio.create_task(bench.feed.run())
    try:
        await asyncio.wait_for(body(bench), 20)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def taken(follower: Follower, client: Client) -> Record:
    return client.take(await follower.next())


def test_what_the_bus_tells_is_not_asked_for_and_what_it_lost_is_found_s291(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A topic that nothing was committed for is left alone: neither it nor the record is asked."""
    monkeypatch.setattr(module, "AGAIN_S", 3_600.0)
    monkeypatch.setattr(module, "HEARD_S", 3_600.0)

    async def body(bench: Bench) -> None:
        async with bench.follow("fleet", "waiting") as one:
            client = Client()
            await taken(one, client)
            await taken(one, client)
            asked, looks = bench.heads.asked, bench.board("fleet").looks
            for number in range(3):
                await asyncio.sleep(3 * module.TICK_S)
                assert bench.board("fleet").looks == looks + number
                bench.commit(a=number)
                await taken(one, client)
                await taken(one, client)
            assert bench.heads.asked == asked
            bench.commit_untold(a=10)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(one.next(), 3 * module.TICK_S)
            monkeypatch.setattr(module, "HEARD_S", 0.25)
            await taken(one, client)
            assert client.records["node", "a"]["value"] == 10
            assert bench.heads.asked > asked

    asyncio.run(running(Bench(), body))


def test_two_followers_are_told_the_same_and_asked_for_once_s291() -> None:
    async def body(bench: Bench) -> None:
        async with bench.follow("fleet") as one, bench.follow("fleet") as two:
            first, second = Client(), Client()
            await taken(one, first)
            await taken(two, second)
            looks = bench.board("fleet").looks
            for number in range(3):
                bench.commit(a=number)
                assert await taken(one, first) == await taken(two, second)
            assert bench.board("fleet").looks <= looks + 4
            assert first.kinds == ["snapshot", "delta", "delta", "delta"] == second.kinds

    asyncio.run(running(Bench(), body))


def test_one_who_stops_costs_nothing_and_then_hears_the_present_s286() -> None:
    async def body(bench: Bench) -> None:
        async with bench.follow("fleet") as slow, bench.follow("fleet") as quick:
            late, client = Client(), Client()
            await taken(slow, late)
            await taken(quick, client)
            for number in range(5):
                bench.commit(a=number, **{f"n{number}": number})
                await taken(quick, client)
            told_of = await taken(slow, late)
            assert len(told_of["items"]) == 6 and late.records == client.records  # once each, not 10 times

    asyncio.run(running(Bench(), body))


def test_at_most_ten_frames_a_second_over_all_topics_and_none_starves_s286() -> None:
    async def body(bench: Bench) -> None:
        topics = ("fleet", "sessions", "session:dag:x")
        async with bench.follow(*topics) as follower:
            loop, seen = asyncio.get_running_loop(), []
            times: list[float] = []
            while len(times) < 14:
                bench.commit(a=len(times))
                seen.append(msgspec.json.decode(await follower.next())["topic"])
                times.append(loop.time())
        assert all(late - early >= 0.99 for early, late in zip(times, times[10:], strict=False))
        assert {seen.count(topic) >= 3 for topic in topics} == {True}

    asyncio.run(running(Bench(), body))


def test_one_who_comes_back_soon_is_told_what_changed_s287() -> None:
    async def body(bench: Bench) -> None:
        client = Client()
        async with bench.follow("fleet") as follower:
            bench.board("fleet").state |= {"a": 1, "b": 1}
            await taken(follower, client)
            bench.commit(b=2)
            await taken(follower, client)
        async with bench.follow("fleet", after=client.seq) as follower:
            assert (await taken(follower, client))["type"] == "delta"
            bench.commit(c=3)
            await taken(follower, client)
            assert {record["value"] for record in client.records.values()} == {1, 2, 3}
        async with bench.follow("fleet", after=1) as follower:  # before this channel knew anything
            assert (await taken(follower, client))["type"] == "snapshot"

    asyncio.run(running(Bench(), body))


@pytest.mark.parametrize("error", [NotDurable("away"), ValueError("a session nobody can fold")])
def test_one_topic_that_fails_sends_its_followers_away_and_spares_the_others_s292(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.2)
    monkeypatch.setattr(module, "AGAIN_S", 0.1)

    async def body(bench: Bench) -> None:
        bench.board("sessions").error = error
        async with bench.follow("sessions") as broken, bench.follow("fleet") as whole:
            client = Client()
            await taken(whole, client)
            with pytest.raises(StoreError):
                await broken.next()
            bench.commit(a=1)
            await taken(whole, client)
            bench.board("sessions").error = None
            await asyncio.sleep(0.5)  # it is looked at again by itself
            assert (await taken(broken, Client()))["type"] == "snapshot"

    asyncio.run(running(Bench(), body))


def test_nobody_is_looked_for_when_nobody_follows_and_memory_is_let_go_s291(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LINGER_S", 0.1)

    async def body(bench: Bench) -> None:
        async with bench.follow("fleet") as follower:
            await follower.next()
        looks = bench.board("fleet").looks
        for _ in range(500):
            if bench.board("fleet").closed:
                break
            await asyncio.sleep(0.02)
        assert bench.board("fleet").closed == 1
        assert bench.board("fleet").looks <= looks + 1 and bench.feed.followers == 0

    asyncio.run(running(Bench(), body))


def test_more_topics_than_the_gateway_folds_are_refused_s292() -> None:
    async def body(bench: Bench) -> None:
        async with bench.follow("fleet", "sessions"):
            with pytest.raises(FeedFull):
                async with bench.follow("session:dag:x"):
                    pass
            async with bench.follow("fleet"):
                pass

    asyncio.run(running(Bench(most=2), body))


def test_a_topic_nobody_follows_makes_room_the_one_left_first_before_others_s292() -> None:
    async def body(bench: Bench) -> None:
        for topic in ("session:dag:old", "session:dag:new"):
            bench.board(topic).state["a"] = 1
            async with bench.follow(topic) as follower:
                await follower.next()
        async with bench.follow("fleet"):
            assert (bench.board("session:dag:old").closed, bench.board("session:dag:new").closed) == (1, 0)
            async with bench.follow("sessions"):
                assert bench.board("session:dag:new").closed == 1
                with pytest.raises(FeedFull, match="gateway"):
                    async with bench.follow("session:dag:x"):
                        pass

    asyncio.run(running(Bench(most=2), body))


def test_one_tenant_takes_no_other_tenant_s_place_s292() -> None:
    async def body(bench: Bench) -> None:
        async with bench.follow("fleet", "sessions"):
            with pytest.raises(FeedFull, match="tenant"):
                async with bench.follow("session:dag:x"):
                    pass
            async with bench.follow("fleet", "sessions", tenant="tnt_other") as other:
                await other.next()
            # What it left itself makes room, and of the others nothing.
            bench.board("session:dag:y").state["a"] = 1
        async with bench.follow("session:dag:y", "session:dag:z") as follower:
            await follower.next()

    asyncio.run(running(Bench(most=4, most_of_tenant=2), body))


def test_one_principal_takes_no_place_of_the_others_of_its_tenant_s1203() -> None:
    """However many sockets it opens; what it follows already it may follow once more."""

    async def body(bench: Bench) -> None:
        async with (
            bench.follow("session:dag:1", "session:dag:2", who="greedy"),
            bench.follow("session:dag:3", who="greedy"),
        ):
            with pytest.raises(FeedFull, match="you follow"):
                async with bench.follow("session:dag:4", who="greedy"):
                    pass
            async with bench.follow("session:dag:2", "session:dag:3", who="greedy"):
                pass
            async with bench.follow("fleet", "sessions", "session:dag:1", who="other") as other:
                await other.next()
            async with bench.follow("session:dag:9", who="greedy", tenant="tnt_other"):
                pass  # whoever has that name elsewhere is another
        async with bench.follow("session:dag:4", who="greedy"):
            pass

    asyncio.run(running(Bench(most_of_principal=3), body))


def test_sessions_that_do_not_exist_are_not_kept_s287_s292() -> None:
    """However often one socket asks for others: nothing lingers that has nothing to tell."""

    async def body(bench: Bench) -> None:
        for number in range(30):
            async with bench.follow(*(f"session:dag:{number}-{n}" for n in range(4))) as follower:
                if number % 2:
                    await follower.next()
        async with bench.follow("fleet", tenant="tnt_other") as other:
            await other.next()
            for _ in range(200):
                if len(bench.feed._kept) == 1:
                    break
                await asyncio.sleep(0.02)
            assert list(bench.feed._kept) == [("tnt_other", "fleet")]

    asyncio.run(running(Bench(most=8, most_of_tenant=6), body))


def test_ten_frames_a_second_however_often_one_socket_asks_anew_s286() -> None:
    async def body(bench: Bench) -> None:
        loop, pace, times = asyncio.get_running_loop(), FramePacer(), []
        for number in range(13):
            async with bench.follow("fleet", pace=pace) as follower:
                bench.commit(a=number)
                await follower.next()
                times.append(loop.time())
        assert all(late - early >= 0.99 for early, late in zip(times, times[10:], strict=False))
        # Who asks again before its turn is not heard, and costs nothing.
        looks, asked = bench.board("fleet").looks, 0
        until = loop.time() + 0.5
        while loop.time() < until:
            task = asyncio.create_task(bench.follow("session:dag:x", pace=pace).__aenter__())
            await asyncio.sleep(0.002)
            asked += task.done()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert asked <= 6 and bench.board("fleet").looks <= looks + 1

    asyncio.run(running(Bench(), body))


def test_a_source_with_more_on_its_way_is_asked_at_the_next_tick_s291(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether or not anything is committed: what it reads beside the looks waits for no message."""
    monkeypatch.setattr(module, "AGAIN_S", 3_600.0)
    monkeypatch.setattr(module, "HEARD_S", 3_600.0)

    async def body(bench: Bench) -> None:
        async with bench.follow("fleet") as one:
            await one.next()
            bench.commit(a=1)
            bench.board("fleet").soon = True
            await one.next()
            bench.board("fleet").state["a"] = 2  # found without a message
            await asyncio.wait_for(one.next(), 5 * module.TICK_S)
            bench.board("fleet").soon = False
            await asyncio.sleep(3 * module.TICK_S)
            looks = bench.board("fleet").looks
            await asyncio.sleep(3 * module.TICK_S)
            assert bench.board("fleet").looks == looks

    asyncio.run(running(Bench(), body))
