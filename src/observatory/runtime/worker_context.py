"""What of the house those need who find what is due and hand it in."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from observatory.pipeline.ports import Directory, Store
from observatory.pipeline.state import Principal, Submission, Verdict
from observatory.settings import Settings

# A tenant that is left alone is looked at so often all the same: no mistake here may last.
AGAIN_S = 30.0


class Submits(Protocol):
    async def submit(self, tenant_id: str, items: Sequence[Submission]) -> list[Verdict]: ...


class Home(Protocol):
    @property
    def settings(self) -> Settings: ...
    @property
    def store(self) -> Store: ...
    @property
    def committer(self) -> Submits: ...
    def principal_of_house(self, tenant_id: str) -> Principal: ...


async def tenants(directory: Directory) -> list[str]:
    """Ids of the tenants for whom anything is done: those that are not disabled."""
    return list(await directory.heads())


class Watch:
    """Which tenants one who looks by the clock need look at, so that a house of many quiet ones stays cheap.

    What can come due is written by acts, and every act moves the head of its tenant's record: where nothing
    waited, not even for its time, nothing waits until the head moves.
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
        """Something came up that no act told of."""
        self._quiet.pop(tenant_id, None)

    def rest(self, tenant_id: str, head: int) -> None:
        """Nothing waited there, as read after `awake` told this head."""
        self._quiet[tenant_id] = (head, self._clock() + AGAIN_S)
