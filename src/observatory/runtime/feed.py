"""The live feed: folded topics of the live channel, polled while at least one client follows them.

Every 100 ms a followed topic is polled for changes, if anything was committed since: the bus notifies of it,
and where the bus was silent for a while the record is queried. Once a second the poll includes what time
alone changes (idle, silent, a violation's end, a wait that ran out). A long poll is followed by a rest of the
same length, so that a huge graph costs at most half a core and slows no other topic.

A follower gets at most ten frames a second over all its topics, each time of the topic that waited longest,
and always the current state (rules S284–S287, S291). Quotas are separate: each tenant has its share of topics
and each principal of a tenant its own, however many sockets it opens; a topic that is not followed is dropped
for one that is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from observatory.errors import ObservatoryError, StoreError
from observatory.pipeline.ports import Bus
from observatory.runtime.feed_channel import LiveTopic, TopicSource
from observatory.runtime.feed_pace import FramePacer
from observatory.runtime.metrics import Measure, PollCounter
from observatory.runtime.wait_for_wakeup import wait_for_wakeup

log = logging.getLogger("observatory.feed")
TICK_S = 0.1
AGAIN_S = 1.0
TIMER_S = 0.001
HEARD_S = 0.25  # how long a head from the bus is trusted; later a lost notice is made up for
REST = 2  # a poll takes at most 1/REST of the time
REST_AGAIN = 20
LINGER_S = 30.0  # how long a topic without followers is kept for reconnects
PATIENCE_S = 5.0  # how long a topic may fail before its followers are disconnected
MAX_CHANNELS = 1_000
MAX_OF_TENANT = 200
MAX_OF_PRINCIPAL = 40
BIG = 1_000  # records; more are compared in a thread
Clock = Callable[[], int]


class Heads(Protocol):
    async def head(self, tenant_id: str) -> tuple[int, str]: ...


class FeedFull(ObservatoryError):
    """More topics are followed than this gateway or the caller's quota allows."""


class FollowedTopic:
    """A channel and its followers."""

    def __init__(self, channel: LiveTopic) -> None:
        self.channel = channel
        self.followers: set[Follower] = set()
        self.is_busy = self.is_expected = False
        self.due = self.again = self.left = 0.0
        self.failing_since: float | None = None

    def wake(self) -> None:
        for follower in self.followers:
            follower.wake.set()


class Follower:
    """One client: for each of its topics the last turn it received, and nothing else."""

    def __init__(
        self, kept: Sequence[FollowedTopic], clock: Clock, after: int | None, pace: FramePacer, who: str = ""
    ) -> None:
        self.wake, self.who = asyncio.Event(), who
        self._clock = clock
        self._kept = list(kept)
        self._after = after
        # None: nothing yet. The topic that was sent longest ago comes first.
        self._heard: dict[str, int | None] = {one.channel.topic: None for one in kept}
        self._resync: LiveTopic | None = None
        self._pace = pace

    async def next(self) -> bytes:
        """The next frame, once it is due. StoreError when a topic cannot be read for too long."""
        loop, pace = asyncio.get_running_loop(), self._pace
        pace.arrive(loop.time())
        while True:
            if (left := pace.due - loop.time()) > 0:
                # The loop's timers count whole milliseconds: less than one would be a busy loop.
                await asyncio.sleep(max(left, TIMER_S))
                continue  # a timer may be a moment early
            self.wake.clear()
            frame = self._next_frame()
            if frame is not None:
                pace.hand(loop.time())
                return frame
            for one in self._kept:
                if one.failing_since is not None and loop.time() - one.failing_since > PATIENCE_S:
                    raise StoreError("the archive cannot be read now")
            await self.wake.wait()

    def _next_frame(self) -> bytes | None:
        now_ns = self._clock()
        if self._resync is not None:
            channel, self._resync = self._resync, None
            return self._sent(channel, channel.snapshot(now_ns))
        for position, one in enumerate(self._kept):
            channel, heard = one.channel, self._heard[one.channel.topic]
            if channel.turn == 0 or heard == channel.turn:
                continue
            self._kept.append(self._kept.pop(position))
            if heard is None:
                return self._sent(channel, self._first(channel, now_ns))
            missed = channel.delta(heard, now_ns)
            if missed is None:
                self._resync, missed = channel, channel.resync(now_ns)
            return self._sent(channel, missed)
        return None

    def _first(self, channel: LiveTopic, now_ns: int) -> bytes:
        turn = None if self._after is None else channel.turn_at(self._after)
        missed = None if turn is None else channel.delta(turn, now_ns)
        return channel.snapshot(now_ns) if missed is None else missed

    def _sent(self, channel: LiveTopic, frame: bytes) -> bytes:
        self._heard[channel.topic] = channel.turn
        return frame


class LiveFeed:
    def __init__(
        self,
        heads: Heads,
        bus: Bus,
        clock: Clock,
        max_topics: int = MAX_CHANNELS,
        max_of_tenant: int = MAX_OF_TENANT,
        max_of_principal: int = MAX_OF_PRINCIPAL,
    ) -> None:
        self._heads, self._bus, self._clock = heads, bus, clock
        self._heard: dict[
            str, tuple[int, float]
        ] = {}  # the head of a tenant's record, and when it was learned
        self._max_topics, self._max_of_tenant = max_topics, max_of_tenant
        self._max_of_principal = max_of_principal
        self._kept: dict[tuple[str, str], FollowedTopic] = {}
        self._wanted = asyncio.Event()
        self._looks = PollCounter("feed")

    def measures(self) -> list[Measure]:
        failing = sum(one.failing_since is not None for one in self._kept.values())
        return [
            Measure("observatory_feed_topics", "gauge", "Folded topics in memory", len(self._kept)),
            Measure("observatory_feed_followers", "gauge", "Subscriptions to folded topics", self.followers),
            Measure("observatory_feed_failing", "gauge", "Topics that cannot be folded now", failing),
            *self._looks.measures(),
        ]

    @property
    def followers(self) -> int:
        return sum(len(one.followers) for one in self._kept.values())

    def clients(self, tenant_id: str) -> int:
        """Clients of one tenant, each counted once however many topics it follows."""
        mine = [kept.followers for (owner, _), kept in self._kept.items() if owner == tenant_id]
        return len(set().union(*mine))

    @asynccontextmanager
    async def follow(
        self,
        tenant_id: str,
        topics: Sequence[str],
        source_of: Callable[[str], TopicSource],
        after: int | None,
        pace: FramePacer | None = None,
        who: str = "",
    ) -> AsyncIterator[Follower]:
        """Follow topics. FeedFull when there are too many; one that is followed already costs nothing.

        `who`: the principal, the same for all its sockets.
        """
        pace = pace or FramePacer()
        await pace.wait_to_subscribe()
        self._check_share(tenant_id, topics, who)
        left = self._make_room(tenant_id, topics)
        mine = []
        for topic in topics:
            if (tenant_id, topic) not in self._kept:
                self._kept[tenant_id, topic] = FollowedTopic(LiveTopic(tenant_id, topic, source_of(topic)))
            mine.append(self._kept[tenant_id, topic])
        follower = Follower(mine, self._clock, after, pace, who)
        for one in mine:
            one.followers.add(follower)
        self._wanted.set()
        try:
            for one in left:
                await one.channel.source.close()
            yield follower
        finally:
            for one in mine:
                one.followers.discard(follower)
                one.left = asyncio.get_running_loop().time()
            self._wanted.set()

    def _check_share(self, tenant_id: str, topics: Sequence[str], who: str) -> None:
        followed = {
            topic
            for (owner, topic), kept in self._kept.items()
            if owner == tenant_id and any(one.who == who for one in kept.followers)
        }
        if who and len(followed.union(topics)) > self._max_of_principal:
            raise FeedFull("you follow the maximum number of topics; close some of them and try again")

    def _make_room(self, tenant_id: str, topics: Sequence[str]) -> list[FollowedTopic]:
        """Topics dropped for these, those left longest ago first. FeedFull when there is no room."""
        wanted = {(tenant_id, topic) for topic in topics}
        new = len(wanted - self._kept.keys())
        if not new:
            return []
        idle = sorted(
            (
                key
                for key, one in self._kept.items()
                if not one.followers and not one.is_busy and key not in wanted
            ),
            key=lambda key: self._kept[key].left,
        )
        own = sum(1 for of, _ in self._kept if of == tenant_id)
        own_idle = [key for key in idle if key[0] == tenant_id]
        over_own = max(0, own + new - self._max_of_tenant)
        if over_own > len(own_idle):
            raise FeedFull("this tenant follows the maximum number of topics; try again later")
        dropped = own_idle[:over_own]
        others = [key for key in idle if key not in dropped]
        over = max(0, len(self._kept) - len(dropped) + new - self._max_topics)
        if over > len(others):
            raise FeedFull("this gateway follows the maximum number of topics; try again later")
        return [self._kept.pop(key) for key in (*dropped, *others[:over])]

    async def run(self) -> None:
        """The worker's loop."""
        loop = asyncio.get_running_loop()
        for one in self._kept.values():
            one.is_busy = False  # whatever ended the previous run ended its polls
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen())
            while True:
                self._looks.look()
                now = loop.time()
                await self._forget(now)
                followed = [one for one in self._kept.values() if one.followers and not one.is_busy]
                for one in followed:
                    if one.due > now:
                        continue
                    is_idle = one.again > now and not one.is_expected
                    if is_idle and self._known(one.channel.tenant_id, now) == one.channel.seq:
                        one.due = now + TICK_S
                        continue
                    one.is_busy = True
                    group.create_task(self._poll(one))
                due = min((one.due for one in followed if not one.is_busy), default=now + TICK_S)
                # Without followers the next event is a new follower, or a topic to drop.
                wait_s = max(0.001, due - now) if self.followers else LINGER_S
                await wait_for_wakeup(self._wanted, wait_s)
                self._wanted.clear()

    async def _listen(self) -> None:
        async for notice in self._bus.subscribe():
            if notice.tenant_id in self._heard:
                self._hear(notice.tenant_id, notice.sequence_number)

    def _hear(self, tenant_id: str, head: int) -> None:
        before = self._heard.get(tenant_id, (0, 0.0))[0]
        self._heard[tenant_id] = max(head, before), asyncio.get_running_loop().time()

    def _known(self, tenant_id: str, now: float) -> int | None:
        """The head of the record, if it was learned just now."""
        head, at = self._heard.get(tenant_id, (0, float("-inf")))
        return head if now - at < HEARD_S else None

    async def _poll(self, kept: FollowedTopic) -> None:
        loop, channel = asyncio.get_running_loop(), kept.channel
        began, changed = loop.time(), 0
        again = began >= kept.again
        try:
            head = self._known(channel.tenant_id, began)
            if head is None:
                head, _ = await self._heads.head(channel.tenant_id)
                self._hear(channel.tenant_id, head)
            if again or kept.is_expected or head != channel.seq:
                found = await channel.source.look(head, self._clock(), again)
                if found.whole:
                    found = found._replace(items=list(found.items))
                if found.whole and isinstance(found.items, list) and len(found.items) > BIG:
                    changes = await asyncio.to_thread(channel.changes, found)
                else:
                    changes = channel.changes(found)
                changed = channel.apply(changes, head)
                kept.is_expected = found.soon
            kept.failing_since = None
        except StoreError as error:
            if kept.failing_since is None:
                log.warning("live readers wait for the database: %s", error)
            kept.failing_since = kept.failing_since or began
        except Exception:
            # One session that cannot be folded must not stop the other topics.
            if kept.failing_since is None:
                log.exception("a live topic could not be folded")
            kept.failing_since = kept.failing_since or began
        finally:
            self._rest(kept, began, loop.time() - began, again)
            if changed or channel.turn == 1 or kept.failing_since is not None:
                kept.wake()
            self._wanted.set()

    def _rest(self, kept: FollowedTopic, began: float, took: float, again: bool) -> None:
        kept.is_busy = False
        kept.due = began + max(TICK_S, REST * took)
        if kept.failing_since is not None:
            kept.again, kept.due = 0.0, began + AGAIN_S  # and then everything, not only what changed since
        elif again:
            kept.again = began + max(AGAIN_S, REST_AGAIN * took)

    async def _forget(self, now: float) -> None:
        for key, one in list(self._kept.items()):
            linger_s = 0.0 if one.channel.is_empty else LINGER_S
            if self._kept.get(key) is not one or one.followers or one.is_busy:
                continue
            if now - one.left >= linger_s:
                del self._kept[key]
                await one.channel.source.close()
        if len(self._heard) > len(self._kept):
            followed = {tenant_id for tenant_id, _ in self._kept}
            self._heard = {name: heard for name, heard in self._heard.items() if name in followed}
