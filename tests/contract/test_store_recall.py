"""What a lane remembers between batches is true, and what a batch changes counts within it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from observatory.errors import StatementFailed
from observatory.features.registry.commands_versions import change_versions
from observatory.pipeline.pipeline import PipelineBatch
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import (
    HOME_TENANT,
    BatchState,
    IncomingMessage,
    ReadSet,
    SubmissionResult,
    TransactionChanges,
)
from observatory.protocol.versions import VersionEntry
from observatory.stages import WRITE_PATH
from tests.contract.conftest import SERVICE, Harness
from tests.samples import decision_log


def log(session: str, agent: str = "worker", **delta: Any) -> dict[str, Any]:
    body = decision_log()
    body["meta"] |= {"session_id": session, "step_id": str(uuid.uuid4()), "trace_id": str(uuid.uuid4())}
    body["identity"]["agent_id"] = agent
    body["state_delta"] |= delta
    return body


def remembering(harness: Harness, known: BatchState | None, *bodies: dict[str, Any]) -> BatchState | None:
    """One batch that begins with what the batch before left, as a lane does it."""
    items: list[IncomingMessage] = [harness.arrival(body) for body in bodies]
    batch = PipelineBatch(WRITE_PATH, SERVICE, HOME_TENANT, items, harness.now())
    verdicts, memory = harness.transact(HOME_TENANT, lambda tx: batch.run(tx, known))
    assert [verdict.code for verdict in verdicts] == [202] * len(bodies)
    return memory.settled()


def rows(harness: Harness, session: str) -> tuple[Any, ...]:
    (found,) = harness.read(harness.store.rows(HOME_TENANT, "sessions", session_id=session))
    members = harness.read(harness.store.rows(HOME_TENANT, "members", session_no=found["session_no"]))
    return found["messages"], sorted((member["messages"], member["cost"]) for member in members)


def test_batches_that_remember_leave_the_same_rows_as_batches_that_read(harness: Harness) -> None:
    kept, read = str(uuid.uuid4()), str(uuid.uuid4())
    known: BatchState | None = None
    for cost in (0.1, 0.2, 0.3):
        known = remembering(harness, known, log(kept, cumulative_session_cost=cost), log(kept, agent="other"))
    for cost in (0.1, 0.2, 0.3):
        remembering(harness, None, log(read, cumulative_session_cost=cost), log(read, agent="other"))
    assert rows(harness, kept) == rows(harness, read)
    assert rows(harness, kept)[0] == 6


def test_what_somebody_else_appended_makes_a_memory_void(harness: Harness) -> None:
    session = str(uuid.uuid4())
    known = remembering(harness, None, log(session))
    remembering(harness, None, log(session))  # another gateway
    remembering(harness, known, log(session))
    assert rows(harness, session)[0] == 3


def test_a_batch_saves_only_what_it_touched(harness: Harness) -> None:
    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    known = remembering(harness, None, log(first))
    known = remembering(harness, known, log(second))
    assert known is not None and known.changed == []
    assert {first, second} <= known.sessions.keys()


def test_two_acts_of_one_batch_see_each_other(harness: Harness) -> None:
    who, now = harness.admin(), harness.now()
    acts = [
        change_versions(who, "t", [VersionEntry(agent_type="t", version=number, status="current")], now)
        for number in ("1.0.0", "2.0.0")
    ]
    assert [verdict.code for verdict in harness.submit(*acts)] == [200, 200]
    stored = harness.read(harness.store.rows(HOME_TENANT, "versions", agent_type="t"))
    assert {row["version"]: row["status"] for row in stored} == {"1.0.0": "retired", "2.0.0": "current"}


def test_an_update_that_finds_no_row_is_refused_and_nothing_is_written(harness: Harness) -> None:
    def unit(tx: Any) -> SubmissionResult:
        memory = tx.load(HOME_TENANT, ReadSet(), None)
        write = RowWrite("users", {"role": "admin"}, {"tenant_id": HOME_TENANT, "user_id": "usr_nobody"})
        tx.save(memory, TransactionChanges(writes=[write]))
        return SubmissionResult(200, None)

    before = harness.read(harness.store.head(HOME_TENANT))
    with pytest.raises(StatementFailed):
        harness.transact(HOME_TENANT, unit)
    assert harness.read(harness.store.head(HOME_TENANT)) == before
