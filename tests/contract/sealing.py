"""A sealer over the contract's house: the real one, looking when it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from observatory.bus.memory import MemoryBus
from observatory.features.transparency.types_log import StoredCheckpoint
from observatory.features.transparency.worker import Sealer
from observatory.ledger import merkle, note
from observatory.pipeline.state import HOME_TENANT, Principal, Submission, SubmissionResult
from observatory.runtime.log_key import Keyring, LogMarks
from observatory.runtime.worker_context import WorkerContext
from observatory.settings import Settings
from tests.contract.conftest import Harness
from tests.samples import decision_log

NAME = "log.example/v1/log"


class Keeper:
    """The contract's house as a sealer sees one."""

    def __init__(self, harness: Harness, log_name: str = NAME) -> None:
        self._harness, self.store = harness, harness.store
        self.settings = Settings(log_name=log_name)
        self.committer = self
        self._lane = asyncio.Lock()  # one batch at a time, as in a lane

    async def submit(self, tenant_id: str, items: Sequence[Submission]) -> list[SubmissionResult]:
        async with self._lane:
            return await asyncio.to_thread(self._harness.submit, *items, tenant_id=tenant_id)

    def gateway_principal(self, tenant_id: str) -> Principal:
        return Principal(tenant_id=tenant_id, role="admin", key_id="sys_gateway")


class LogSealer:
    """A folder with a key, and a sealer on it; `again` is the process killed and started anew."""

    def __init__(self, harness: Harness, folder: Path, log_name: str = NAME) -> None:
        self.harness, self.path, self._name = harness, folder / "log.key", log_name
        self.sealer = self.again()

    def again(self, accepts: bool = False) -> Sealer:
        ring = Keyring.open(self.path, "")
        if ring is None:
            ring = Keyring.make(self.path, "")
        return self.start(ring, accepts)

    def start(self, ring: Keyring | None, accepts: bool = False) -> Sealer:
        marks = LogMarks(self.path.with_name("log.key.signed"))
        home = cast(WorkerContext, Keeper(self.harness, self._name))
        self.sealer = Sealer(home, MemoryBus(), self.harness.store, ring, marks, accepts)
        return self.sealer

    def look(self) -> None:
        """Until nothing more waits; twice, as what is told of in the record on opening a log waits too."""
        for _ in range(2):
            while self.harness.read(self.sealer.look()):
                pass

    def checkpoint(self, tenant_id: str = HOME_TENANT) -> StoredCheckpoint | None:
        return self.harness.read(self.harness.store.checkpoint(tenant_id))

    def sealed(self, tenant_id: str = HOME_TENANT) -> StoredCheckpoint:
        self.look()
        found = self.checkpoint(tenant_id)
        assert found is not None
        return found


def log_sealer_of(harness: Harness, folder: Path) -> LogSealer:
    (folder / "keys").mkdir()
    return LogSealer(harness, folder / "keys")


def say(harness: Harness, count: int = 1, tenant_id: str = HOME_TENANT) -> None:
    harness.send(*(decision_log() for _ in range(count)), tenant_id=tenant_id)


def true_root(harness: Harness, size: int, tenant_id: str = HOME_TENANT) -> bytes:
    return merkle.root([event.leaf_hash for event in harness.trail_of(tenant_id)[:size]])


def verifier(log_sealer: LogSealer, tenant_id: str = HOME_TENANT) -> note.Verifier:
    ring = log_sealer.sealer.keyring
    assert ring is not None
    return note.Verifier(f"{NAME}/{tenant_id}", ring.public_key)
