"""Many channels, one question: what the dispatcher asks of the database, and what it owes."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest

from observatory.bus.memory import MemoryBus
from observatory.errors import QueueFull
from observatory.features.inbox.channel import DeliveryChannel
from observatory.features.inbox.commands import ConnectedAgent
from observatory.features.inbox.worker import Dispatcher
from observatory.pipeline.ports import (
    CommitNotice,
    CommittedDelivery,
    InboxDelivery,
    KillSwitchCoverage,
    PendingFilter,
)
from observatory.pipeline.state import Command, Principal, Submission, SubmissionResult
from observatory.protocol.identity import DeliveryKey

TENANT = "tnt_default"
GATEWAY_PRINCIPAL = Principal(tenant_id=TENANT, role="admin", key_id="sys_gateway")


class Books:
    """A fake database that counts what it is asked."""

    def __init__(self) -> None:
        self.rows: dict[DeliveryKey, InboxDelivery] = {}
        self.withdrawn: set[DeliveryKey] = set()
        self.asked: list[str] = []
        self.stopped = KillSwitchCoverage()

    def put(self, number: int, agents: Sequence[int], kind: str = "message") -> None:
        for agent_no in agents:
            self.rows[number, agent_no] = InboxDelivery(
                sequence_number=number, agent_no=agent_no, kind=kind, created_ns=0
            )

    async def head(self, tenant_id: str) -> tuple[int, str]:
        return max((number for number, _ in self.rows), default=0), ""

    async def rows_of(self, tenant_id: str, table: str, **where: Any) -> list[dict[str, Any]]:
        return [{"access_version": 0}]

    async def arrivals(self, tenant_id: str, after: DeliveryKey, limit: int) -> list[CommittedDelivery]:
        self.asked.append("arrivals")
        found = [key for key in sorted(self.rows) if key > after][:limit]
        return [CommittedDelivery(*key, self.rows[key].kind, "pending", 0) for key in found]

    async def pending(self, tenant_id: str, where: PendingFilter, limit: int) -> list[InboxDelivery]:
        self.asked.append("pending")
        return [
            row for key, row in sorted(self.rows.items())
            if key[1] == where.agent_no and key[0] > where.after
        ][:limit]  # fmt: skip

    async def deliveries(
        self, tenant_id: str, keys: Sequence[DeliveryKey], content: bool
    ) -> list[InboxDelivery]:
        self.asked.append("deliveries")
        return [self.rows[key] for key in sorted(keys)]

    async def stops(self, tenant_id: str) -> KillSwitchCoverage:
        return self.stopped


class Mesh:
    """A dispatcher over the fake, with so many open channels that have caught up."""

    def __init__(self) -> None:
        self.books, self.bus = Books(), MemoryBus()
        self.queue: list[Command] = []
        self.full = False
        self.dispatcher = Dispatcher(_view(self.books), self.bus, self.submit, self.enqueue, 1e9)
        self.channels: list[DeliveryChannel] = []

    async def submit(self, tenant_id: str, items: Sequence[Submission]) -> list[SubmissionResult]:
        """What `inbox.take` answers: all but what was withdrawn."""
        self.books.asked.append("take")
        [act] = items
        assert isinstance(act, Command)
        numbers = act.read_set.rows["deliveries"]
        return [
            SubmissionResult(
                200, [k for k in self.books.rows if k[0] in numbers and k not in self.books.withdrawn]
            )
        ]

    def enqueue(self, tenant_id: str, items: Sequence[Submission]) -> None:
        if self.full:
            raise QueueFull
        self.queue += [item for item in items if isinstance(item, Command)]

    async def received(self) -> list[tuple[int, int]]:
        """What every channel has to send, after the bus has spoken."""
        self.books.asked.clear()
        self.bus.publish(CommitNotice(TENANT, max(self.books.rows)[0]))
        waiting = [asyncio.create_task(channel.next(5)) for channel in self.channels]
        done, rest = await asyncio.wait(waiting, timeout=0.3)
        for task in rest:
            task.cancel()
        found = [one for task in done for one in task.result()]
        return sorted((one.sequence_number, one.agent_no) for one in found)


class _View:
    """`rows` is a method of the port and a table of the fake."""

    def __init__(self, books: Books) -> None:
        self._books = books

    async def rows(self, tenant_id: str, table: str, **where: Any) -> list[dict[str, Any]]:
        return await self._books.rows_of(tenant_id, table, **where)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._books, name)


def _view(books: Books) -> Any:
    return _View(books)


def run(count: int, story: Callable[[Mesh], Coroutine[Any, Any, None]]) -> None:
    async def lived() -> None:
        mesh = Mesh()
        daemon = asyncio.create_task(mesh.dispatcher.run())
        async with AsyncExitStack() as stack:
            for agent_no in range(1, count + 1):
                welcome = ConnectedAgent(
                    agent_no=agent_no, agent_id="a", entity_id="agt_a", stopped=False, instructions=None
                )
                channel = await stack.enter_async_context(mesh.dispatcher.open(TENANT, welcome))
                assert await channel.next(0) == []
                mesh.channels.append(channel)
            await story(mesh)
        assert mesh.dispatcher.channels == 0
        daemon.cancel()

    asyncio.run(lived())


def test_five_hundred_channels_cost_one_question_a_commit_s100() -> None:
    """S100: and one for the content, however many it goes to."""

    async def story(mesh: Mesh) -> None:
        mesh.books.put(1, range(1, 501), "cancel")
        assert await mesh.received() == [(1, agent_no) for agent_no in range(1, 501)]
        assert mesh.books.asked.count("deliveries") == 1
        assert "pending" not in mesh.books.asked
        assert mesh.books.asked.count("arrivals") <= 3  # the commit's, and looks of its own

    run(500, story)


def test_what_is_for_agents_without_a_channel_is_not_read_s100() -> None:
    """S100."""

    async def story(mesh: Mesh) -> None:
        mesh.books.put(1, range(100, 200))
        assert await mesh.received() == []
        assert "deliveries" not in mesh.books.asked

    run(3, story)


def test_a_prompt_is_marked_before_it_is_handed_out_and_not_sent_when_withdrawn_s102() -> None:
    """S102."""

    async def story(mesh: Mesh) -> None:
        mesh.books.put(1, [1, 2], "inject")
        mesh.books.withdrawn = {(1, 2)}
        assert await mesh.received() == [(1, 1)]
        assert mesh.books.asked.count("take") == 1

    run(2, story)


def test_a_stop_rules_before_what_comes_with_it_is_handed_out_s105() -> None:
    """S105."""

    async def story(mesh: Mesh) -> None:
        mesh.books.stopped = KillSwitchCoverage(agents=frozenset({1}))
        mesh.books.put(1, [1, 2], "stop")
        mesh.books.put(2, [1, 2], "message")
        assert await mesh.received() == [(1, 1), (1, 2), (2, 2)]

    run(2, story)


@pytest.mark.parametrize("full", [False, True])
def test_a_closing_that_found_the_queue_full_is_told_later_s101(full: bool) -> None:
    """S101."""

    async def story(mesh: Mesh) -> None:
        act = Command(GATEWAY_PRINCIPAL, 0, lambda uow: SubmissionResult(200, None))
        mesh.full = full
        mesh.dispatcher.part(act)
        assert mesh.queue == ([] if full else [act])
        mesh.full = False
        for _ in range(100):
            if mesh.queue:
                break
            await asyncio.sleep(0.02)
        assert mesh.queue == [act]

    run(1, story)
