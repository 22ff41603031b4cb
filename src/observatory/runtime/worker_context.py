"""What workers need of the gateway to find due work and submit it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from observatory.pipeline.ports import Directory, Store
from observatory.pipeline.state import Principal, Submission, SubmissionResult
from observatory.settings import Settings

# A quiet tenant is checked this often all the same: no mistake here may last.
AGAIN_S = 30.0


class Submits(Protocol):
    async def submit(self, tenant_id: str, items: Sequence[Submission]) -> list[SubmissionResult]: ...


class WorkerContext(Protocol):
    @property
    def settings(self) -> Settings: ...
    @property
    def store(self) -> Store: ...
    @property
    def committer(self) -> Submits: ...
    def gateway_principal(self, tenant_id: str) -> Principal: ...


async def active_tenants(directory: Directory) -> list[str]:
    """Ids of the tenants that workers serve: those that are not disabled."""
    return list(await directory.heads())


class TenantWatch:
    """Which tenants a periodic worker must check, so that many quiet tenants stay cheap.

    What can come due is written by commands, and every command moves the head of its tenant's record: where
    nothing was pending, not even for a later time, nothing is pending until the head moves.
    """

    def __init__(self, directory: Directory, clock: Callable[[], float] = time.monotonic) -> None:
        self._directory, self._clock = directory, clock
        self._quiet: dict[str, tuple[int, float]] = {}

    async def awake(self) -> list[tuple[str, int]]:
        """Tenants that are not disabled and may have something waiting, with the head to `rest` at."""
        now = self._clock()
        heads = await self._directory.heads()
        for tenant_id in self._quiet.keys() - heads.keys():
            del self._quiet[tenant_id]
        return [
            (tenant_id, head)
            for tenant_id, head in heads.items()
            if (quiet := self._quiet.get(tenant_id)) is None or quiet[0] != head or quiet[1] <= now
        ]

    def wake(self, tenant_id: str) -> None:
        """Something is pending that no command moved the head for."""
        self._quiet.pop(tenant_id, None)

    def rest(self, tenant_id: str, head: int) -> None:
        """Nothing was pending, as read after `awake` returned this head."""
        self._quiet[tenant_id] = (head, self._clock() + AGAIN_S)


class PeriodicTask(msgspec.Struct, frozen=True):
    """Periodic work: called with the present time every `every_s` seconds."""

    name: str
    every_s: float
    call: Callable[[int], Awaitable[object]]
