"""What the findings worker reads from the derived store: findings, in the order of their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from observatory.derived.ports import FoldProgress, StoredFinding


class FindingReads(Protocol):
    async def findings(self, tenant_id: str, after: int, limit: int) -> Sequence[StoredFinding]:
        """After a finding's number, in order. NotDurable when nothing can be read."""

    async def progress(self, tenant_id: str) -> FoldProgress:
        """Up to where the record is folded: all findings up to there exist."""
