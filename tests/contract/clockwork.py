"""The contract's house as the scheduler sees one, its clock moved by hand; and jobs for its schedule."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import msgspec

from observatory.features.schedule import commands as jobs
from observatory.features.schedule import commands_firing as firing
from observatory.features.schedule.worker import Scheduler
from observatory.pipeline.state import HOME_TENANT, Command, Principal, Submission, SubmissionResult
from observatory.runtime.leader import Leader
from observatory.runtime.wall_clock import WallClock
from observatory.settings import Settings
from tests.contract.conftest import Harness
from tests.job_samples import SPEC

MINUTE = 60 * 10**9
HOUR = 60 * MINUTE
START = 1_900_000_000 * 10**9 // HOUR * HOUR  # a full hour


class Clockwork:
    """One gateway: a scheduler of its own over the house's database. At the step `cut` it is killed."""

    def __init__(self, harness: Harness, lease_s: float = 15.0) -> None:
        self.harness, self.store, self.settings = harness, harness.store, Settings()
        self.committer = self
        self.now_ns = START
        self.elapsed = 0.0  # of its own monotonic clock
        self.leader = Leader(harness.store, firing.LEASE, lease_s, clock=lambda: self.elapsed)
        self.steady_ns: int | None = None  # of the clock that nobody sets; None while the two agree
        self.wall = WallClock(self.clock, lambda: self.now_ns if self.steady_ns is None else self.steady_ns)
        self.scheduler = Scheduler(self, harness.store, self.leader, self.wall)
        self.calls: list[str] = []
        self.cut: str | None = None

    def clock(self) -> int:
        return self.now_ns

    def gateway_principal(self, tenant_id: str) -> Principal:
        return Principal(tenant_id=tenant_id, role="admin", key_id="sys_gateway")

    async def submit(self, tenant_id: str, items: Sequence[Submission]) -> list[SubmissionResult]:
        kind = "act" if isinstance(items[0], Command) else "message"
        self.calls.append(kind)
        if self.cut == f"before {kind} {self.calls.count(kind)}":
            raise Killed
        verdicts = await asyncio.to_thread(self.at_its_time, *items, tenant_id=tenant_id)
        if self.cut == f"after {kind} {self.calls.count(kind)}":
            raise Killed
        return verdicts

    def at_its_time(self, *items: Submission, tenant_id: str = HOME_TENANT) -> list[SubmissionResult]:
        self.harness.wait(self.now_ns - self.harness.now() - 1_000_000)
        return self.harness.submit(*items, tenant_id=tenant_id)

    def look(self, now_ns: int | None = None) -> None:
        self.now_ns = now_ns or self.now_ns
        self.elapsed += 100.0
        self.calls.clear()
        self.harness.read(self.scheduler.look(self.now_ns))

    def make(self, **given: Any) -> dict[str, Any]:
        spec = msgspec.structs.replace(SPEC, **given)
        (verdict,) = self.at_its_time(jobs.create(self.harness.admin(), spec, self.now_ns))
        assert verdict.code == 201, verdict
        row: dict[str, Any] = verdict.answer
        return row

    def job(self, job_id: str) -> dict[str, Any]:
        (row,) = self.harness.read(self.store.rows(HOME_TENANT, "jobs", job_id=job_id))
        return row

    def runs(self) -> list[dict[str, Any]]:
        rows = self.harness.read(self.store.rows(HOME_TENANT, "job_runs"))
        return sorted(rows, key=lambda row: (row["job_id"], row["scheduled_for"]))

    def times(self) -> list[int]:
        """Minutes after the start for which there is a run."""
        return [(run["scheduled_for"] - START) // MINUTE for run in self.runs()]

    def sent(self) -> list[dict[str, Any]]:
        """What was forwarded in the name of the clock."""
        found = []
        for event in self.harness.trail_of():
            body = json.loads(event.record)
            sender = body["attributes"].get("av.sender.entity_id")
            if body["body"]["event_type"] == "message_delivered" and sender == firing.SENDER:
                found.append(body)
        return found

    def received(self, event_type: str) -> list[dict[str, Any]]:
        bodies = [json.loads(event.record)["body"] for event in self.harness.trail_of()]
        return [body for body in bodies if body["event_type"] == event_type]


class Killed(Exception):
    """The process is gone: nothing it knew is left."""
