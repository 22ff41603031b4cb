"""What of the house those need who find what is due and hand it in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from observatory.ports import Directory, Store
from observatory.settings import Settings
from observatory.state import Principal, Submission, Verdict


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
    return [row["tenant_id"] for row in await directory.tenant_rows() if row["disabled_ns"] is None]
