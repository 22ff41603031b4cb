"""The alarm daemon over a fake derived store: in order, once, and on from where it was."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from unittest.mock import Mock

import pytest

from observatory.derived.ports import FoldProgress, StoredFinding
from observatory.errors import NotDurable
from observatory.features.loops import worker as module
from observatory.features.loops.worker import FindingsWorker
from observatory.pipeline.state import Principal, Submission, SubmissionResult


def finding(number: int) -> StoredFinding:
    return StoredFinding(number, "loop_detected", number, "ses-1", "a", 5, {})


class Derived:
    def __init__(self) -> None:
        self.all: list[StoredFinding] = []
        self.asked: list[int] = []
        self.folded = 0

    async def progress(self, tenant_id: str) -> FoldProgress:
        return FoldProgress(self.folded, 1, 0, 0)

    async def findings(self, tenant_id: str, after: int, limit: int) -> Sequence[StoredFinding]:
        self.asked.append(after)
        return [one for one in self.all if one.finding_id > after][:limit]


class Harness:
    """Store and committer in one."""

    def __init__(self, cursor: int | None = None) -> None:
        self.store: Any = self
        self.committer: Any = self
        self.hooks: Any = Mock()
        self.settings: Any = None
        self.cursor = cursor
        self.submitted = 0
        self.reads = 0
        self.head = 1

    def clock(self) -> int:
        return 1

    def gateway_principal(self, tenant_id: str) -> Principal:
        return Principal(tenant_id=tenant_id, role="admin", key_id="sys_gateway")

    async def heads(self) -> dict[str, int]:
        return {"tnt_1": self.head}

    async def rows(self, tenant_id: str, table: str, **where: Any) -> list[dict[str, Any]]:
        self.reads += 1
        return [] if self.cursor is None else [{"value": str(self.cursor)}]

    async def submit(self, tenant_id: str, items: Sequence[Submission]) -> list[SubmissionResult]:
        self.submitted += len(items)
        return [SubmissionResult(200, 1) for _ in items]


def test_it_begins_where_the_acts_left_off_and_reads_that_once_s189() -> None:
    async def play() -> None:
        harness, derived = Harness(cursor=4), Derived()
        derived.all = [finding(number) for number in (3, 4, 5, 6)]
        alarms = FindingsWorker(harness, derived)
        assert await alarms.look(1) == 2
        assert await alarms.look(1) == 0
        derived.all.append(finding(9))
        assert await alarms.look(1) == 1
        assert derived.asked == [4, 6, 6] and harness.submitted == 3 and harness.reads == 1

    asyncio.run(play())


def test_a_record_folded_to_its_end_is_not_asked_about_until_it_moves_s313() -> None:
    async def play() -> None:
        harness, derived = Harness(), Derived()
        alarms = FindingsWorker(harness, derived)
        await alarms.look(1)
        await alarms.look(1)
        assert derived.asked == [0, 0], "the analyst was not there yet"
        derived.folded = 1
        await alarms.look(1)
        await alarms.look(1)
        assert derived.asked == [0, 0, 0]
        harness.head = 2
        derived.all = [finding(1)]
        assert await alarms.look(1) == 1

    asyncio.run(play())


def test_a_commit_that_fails_is_tried_again_from_the_same_place_s189() -> None:
    class Failing(Harness):
        async def submit(self, tenant_id: str, items: Sequence[Submission]) -> list[SubmissionResult]:
            raise OSError

    async def play() -> None:
        derived = Derived()
        derived.all = [finding(1)]
        alarms = FindingsWorker(Failing(), derived)
        for _ in range(2):
            try:
                await alarms.look(1)
            except OSError:
                continue
        assert derived.asked == [0, 0]

    asyncio.run(play())


def test_a_slow_or_failing_derived_store_holds_up_no_deadline_s189(monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon of its own, which goes on by itself; the house's clock waits for none of it."""
    monkeypatch.setattr(module, "EVERY_S", 0.001)

    class Away(Derived):
        async def findings(self, tenant_id: str, after: int, limit: int) -> Sequence[StoredFinding]:
            found = await super().findings(tenant_id, after, limit)
            if len(self.asked) < 3:
                raise NotDurable("away")
            return found

    async def play() -> None:
        harness, derived = Harness(), Away()
        derived.all = [finding(1)]
        task = asyncio.create_task(FindingsWorker(harness, derived).run())
        async with asyncio.timeout(10):
            while not harness.submitted:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        task.cancel()
        assert harness.submitted == 1 and derived.asked[:3] == [0, 0, 0]

    asyncio.run(play())
