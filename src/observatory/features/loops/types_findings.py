"""What the alarm daemon asks of the derived store: findings, in the order of their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from observatory.runtime.derived import Progress, StoredFinding


class Findings(Protocol):
    async def findings(self, tenant_id: str, after: int, limit: int) -> Sequence[StoredFinding]:
        """Past a finding's number, in order. NotDurable when nothing can be read."""

    async def progress(self, tenant_id: str) -> Progress:
        """How far it is folded: what follows from that much of the record is found."""
