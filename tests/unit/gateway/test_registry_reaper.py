"""The reaper over a store and a committer made by hand: when it looks, what it hands in, what it survives."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

from observatory.errors import NotDurable
from observatory.features.registry.worker import Reaper, ReaperContext
from observatory.pipeline.agents import SECOND
from observatory.pipeline.ports import AgentBacklog, BacklogDelivery, SilentAgent
from observatory.pipeline.state import Principal, Submission, SubmissionResult
from observatory.runtime.worker_context import PeriodicTask
from observatory.settings import Settings

START = 1_000 * SECOND


class FakeGateway:
    """Enough of a house: one tenant with one silent agent, and some work that waits."""

    def __init__(
        self, agents: list[dict[str, Any]] | None = None, backlog: list[AgentBacklog] | None = None
    ) -> None:
        self.settings = Settings()
        self.now_ns = START
        self.agents, self._backlog = agents or [], backlog or []
        self.asked: list[str] = []
        self.handed_in: list[int] = []
        self.store = self.committer = self

    @property
    def clock(self) -> Callable[[], int]:
        return lambda: self.now_ns

    def gateway_principal(self, tenant_id: str) -> Principal:
        return Principal(tenant_id=tenant_id, role="admin", key_id="sys_gateway")

    async def submit(self, tenant_id: str, items: Sequence[Submission]) -> list[SubmissionResult]:
        self.handed_in.append(len(items))
        return [SubmissionResult(200, 1) for _ in items]

    async def heads(self) -> dict[str, int]:
        return {"tnt_a": 1}

    async def silent(self, tenant_id: str, before_ns: int, limit: int) -> list[SilentAgent]:
        self.asked.append(tenant_id)
        return [SilentAgent(1, "agt_1", 0)]

    async def rooms(self, tenant_id: str, agent_no: int) -> list[str]:
        return [f"room-{number}" for number in range(250)]

    async def backlog(self, tenant_id: str) -> list[AgentBacklog]:
        return self._backlog

    async def stranded(
        self, tenant_id: str, agent_no: int, address: str | None, limit: int
    ) -> list[BacklogDelivery]:
        return [BacklogDelivery(n, agent_no, 9, 1, address, n, "0" * 32) for n in range(1, 4)][:limit]

    async def rows(self, tenant_id: str, table: str, **where: Any) -> list[dict[str, Any]]:
        return self.agents if table == "agents" else []


def reaper_of(harness: FakeGateway, *dues: PeriodicTask) -> Reaper:
    return Reaper(cast(ReaperContext, harness), dues)


def agent(number: int, kind: str, evicted_ns: int | None = None) -> dict[str, Any]:
    return {
        "agent_no": number,
        "entity_id": f"agt_{number}",
        "agent_id": f"a{number}",
        "agent_type": kind,
        "cluster_id": None,
        "capabilities": None,
        "evicted_ns": evicted_ns,
    }


def test_nobody_is_evicted_before_the_gateway_has_listened_for_the_timeout() -> None:
    """S132: a gateway that was away does not evict its fleet when it returns."""
    harness = FakeGateway()
    reaper = reaper_of(harness)
    assert asyncio.run(reaper.reap(START + 89 * SECOND)) == 0 and harness.asked == []
    assert asyncio.run(reaper.reap(START + 90 * SECOND)) == 1
    assert harness.asked == ["tnt_a"]  # a disabled tenant is left alone
    assert harness.handed_in == [1, 3]  # the eviction, then its 250 rooms a hundred at a time


def test_work_is_handed_in_only_where_somebody_could_take_it() -> None:
    """S138, S139"""
    parked = [AgentBacklog(0, "type:writer", 3), AgentBacklog(0, "type:nobody", 3)]
    harness = FakeGateway([agent(1, "writer")], parked)
    assert asyncio.run(reaper_of(harness).hand_on(START)) == 3
    left = [AgentBacklog(1, None, 3), AgentBacklog(1, "type:writer", 3)]
    harness = FakeGateway([agent(1, "writer", evicted_ns=5)], left)
    # By name it waits where it is; by type it is handed in all the same, to be parked.
    assert asyncio.run(reaper_of(harness).hand_on(START)) == 3
    harness = FakeGateway([agent(9, "writer")], [AgentBacklog(0, "type:writer", 3)])
    assert asyncio.run(reaper_of(harness).hand_on(START)) == 0  # its only instance is who sent it


def test_a_due_that_cannot_be_stored_now_is_called_again_and_stops_no_other() -> None:
    """S132"""
    called: list[str] = []

    async def scenario() -> None:
        enough = asyncio.Event()

        async def fails(now_ns: int) -> None:
            called.append("fails")
            raise NotDurable("the database is away")

        async def works(now_ns: int) -> None:
            called.append("works")
            if called.count("works") >= 3:
                enough.set()

        reaper = reaper_of(FakeGateway(), PeriodicTask("one", 0.01, fails), PeriodicTask("two", 0.01, works))
        task = asyncio.create_task(reaper.run())
        await asyncio.wait_for(enough.wait(), 10)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scenario())
    assert called.count("fails") >= 2
