"""One connection's share: in order, again until acknowledged, bounded, and kept back while stopped."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import pytest

from observatory.errors import NotDurable
from observatory.features.inbox import channel as rules
from observatory.features.inbox.channel import DeliveryChannel, DeliveryPage
from observatory.pipeline.ports import InboxDelivery, PendingFilter

T = TypeVar("T")
SIZE = 4  # of a page


class Inbox:
    """A fake database of one agent: what is pending, by number."""

    def __init__(self) -> None:
        self.rows: dict[int, InboxDelivery] = {}
        self.reads = 0
        self.meanwhile: Callable[[], None] = lambda: None
        self.broken = False

    def put(self, *numbers: int, kind: str = "message", size: int = 0) -> list[InboxDelivery]:
        made = [
            InboxDelivery(sequence_number=number, agent_no=1, kind=kind, created_ns=0, raw=b"x" * size)
            for number in numbers
        ]
        self.rows |= {one.sequence_number: one for one in made}
        return made

    async def read(self, where: PendingFilter) -> DeliveryPage:
        self.reads += 1
        if self.broken:
            raise NotDurable("away")
        found = [
            row
            for number, row in sorted(self.rows.items())
            if number > where.after
            and (where.until is None or number <= where.until)
            and where.kind in (None, row.kind)
        ][:SIZE]
        await asyncio.sleep(0)
        self.meanwhile()
        return DeliveryPage(found, found[-1].sequence_number if len(found) == SIZE else None)


def run(story: Callable[[Inbox, DeliveryChannel], Coroutine[Any, Any, T]], redelivery_s: float = 1e9) -> T:
    async def received() -> T:
        inbox = Inbox()
        return await story(inbox, DeliveryChannel(1, inbox.read, redelivery_s))

    return asyncio.run(received())


async def everything(channel: DeliveryChannel) -> list[int]:
    found: list[int] = []
    while more := await channel.next(0):
        found += [one.sequence_number for one in more]
    return found


def test_a_channel_begins_with_all_that_is_pending_s100() -> None:
    """S100: page after page, and then what is handed over, once."""

    async def story(inbox: Inbox, channel: DeliveryChannel) -> list[int]:
        inbox.put(*range(1, 11))
        first = await everything(channel)
        for one in inbox.put(11, 12):
            channel.hand(one)
        return first + await everything(channel)

    assert run(story) == list(range(1, 13))


@pytest.mark.parametrize("pending", [0, 1, SIZE - 1, SIZE, SIZE + 1, 3 * SIZE])
@pytest.mark.parametrize("times", [1, 2])
def test_what_is_committed_while_it_catches_up_is_sent_once_and_in_order_s100(
    pending: int, times: int
) -> None:
    """S100: handed over in the middle of a read, whether that read saw it or not."""

    async def story(inbox: Inbox, channel: DeliveryChannel) -> tuple[list[int], list[int]]:
        inbox.put(*range(1, pending + 1))

        def commit() -> None:
            for _ in range(times):
                channel.hand(inbox.put(1_000 + len(inbox.rows))[0])

        inbox.meanwhile = commit
        sent = [one.sequence_number for _ in range(4) for one in await channel.next(0)]
        inbox.meanwhile = lambda: None
        return sent + await everything(channel), sorted(inbox.rows)

    sent, committed = run(story)
    assert sent == committed
    assert len(committed) > pending


def test_one_too_slow_holds_no_more_than_its_buffer_and_reads_again_s109() -> None:
    """S109."""

    async def story(inbox: Inbox, channel: DeliveryChannel) -> tuple[list[int], int, bool]:
        assert await everything(channel) == []
        for one in inbox.put(*range(1, rules.BUFFER + 500)):
            channel.hand(one)
        held = len(channel._buffer)
        return await everything(channel), held, channel.is_behind

    found, held, behind = run(story)
    assert held == rules.BUFFER
    assert found == list(range(1, rules.BUFFER + 500))
    assert not behind


def test_large_deliveries_fill_the_buffer_by_their_bytes_s109() -> None:
    """S109."""

    async def story(inbox: Inbox, channel: DeliveryChannel) -> tuple[int, list[int]]:
        await everything(channel)
        for one in inbox.put(*range(1, 11), size=rules.BUFFER_BYTES // 2):
            channel.hand(one)
        return len(channel._buffer), await everything(channel)

    assert run(story) == (2, list(range(1, 11)))


def test_a_database_that_was_away_costs_neither_order_nor_rows_s100() -> None:
    """S100: what comes during the failed read is not sent before what that read would have found."""

    async def story(inbox: Inbox, channel: DeliveryChannel) -> list[int]:
        inbox.put(*range(1, 4))
        inbox.broken = True
        with pytest.raises(NotDurable):
            await channel.next(0)
        channel.hand(inbox.put(9)[0])
        inbox.broken = False
        return await everything(channel)

    assert run(story) == [1, 2, 3, 9]


def test_messages_are_kept_back_while_stopped_and_follow_afterwards_s105() -> None:
    """S105: commands pass; nothing is lost, and what was kept back keeps its order."""

    async def story(inbox: Inbox, channel: DeliveryChannel) -> tuple[list[int], list[int], list[int]]:
        inbox.put(1)
        before = await everything(channel)
        channel.rule(True)
        for number in range(2, 12):
            channel.hand(inbox.put(number, kind="hold" if number % 5 == 0 else "message")[0])
        during = await everything(channel)
        channel.rule(False)
        return before, during, await everything(channel)

    assert run(story) == ([1], [5, 10], [2, 3, 4, 6, 7, 8, 9, 11])


def test_one_that_connects_while_stopped_finds_commands_behind_many_messages_s105() -> None:
    """S105."""

    async def story(inbox: Inbox, channel: DeliveryChannel) -> tuple[list[int], list[int]]:
        channel.rule(True)
        inbox.put(*range(1, 11))
        inbox.put(11, kind="stop")
        during = await everything(channel)
        channel.rule(False)
        return during, await everything(channel)

    assert run(story) == ([11], list(range(1, 11)))


def test_what_was_sent_a_round_ago_and_is_still_pending_is_sent_again_s109() -> None:
    """S109: neither what was acknowledged nor what was sent since the last round."""

    async def story(inbox: Inbox, channel: DeliveryChannel) -> list[list[int]]:
        inbox.put(*range(1, 7))
        rounds = [await everything(channel)]
        for fresh in (7, 8):
            await_round(channel)
            del inbox.rows[fresh - 6]
            channel.hand(inbox.put(fresh)[0])
            rounds.append(await everything(channel))
        return rounds

    first, second, third = run(story, redelivery_s=1e9)
    assert first == [1, 2, 3, 4, 5, 6]
    assert second == [7]
    assert third == [8, 3, 4, 5, 6, 7]


def await_round(channel: DeliveryChannel) -> None:
    """The clock moves: a round is over."""
    channel._round_at = 0.0


def test_one_that_never_acknowledges_is_sent_so_many_again_and_no_more_s109() -> None:
    """S109: the oldest first."""

    async def story(inbox: Inbox, channel: DeliveryChannel) -> list[int]:
        inbox.put(*range(1, 3 * rules.AGAIN))
        await everything(channel)
        channel._floor = 3 * rules.AGAIN
        await_round(channel)
        return [one.sequence_number for one in await channel.next(0)]

    assert run(story) == list(range(1, rules.AGAIN + 1))


def test_waiting_ends_with_what_arrives_with_a_change_of_access_and_with_the_house_s108() -> None:
    """S108: the door looks at its key whenever access has changed."""

    async def story(inbox: Inbox, channel: DeliveryChannel) -> list[Any]:
        async def waits(cause: Callable[[], Any]) -> list[int]:
            waiting: Awaitable[list[InboxDelivery]] = asyncio.ensure_future(channel.next(60))
            await asyncio.sleep(0)  # it waits now
            cause()
            return [one.sequence_number for one in await asyncio.wait_for(waiting, 5)]

        await everything(channel)
        return [
            await waits(lambda: channel.hand(inbox.put(1)[0])),
            await waits(lambda: channel.look(1)),
            await waits(channel.close),
        ]

    assert run(story) == [[1], [], []]
