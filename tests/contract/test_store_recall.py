"""What a lane remembers between batches is true, and what a batch changes counts within it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from observatory.errors import StatementFailed
from observatory.features.access import commands as access
from observatory.pipeline.pipeline import Batch
from observatory.pipeline.rows import Write
from observatory.pipeline.state import HOME_TENANT, Arrival, Changes, Memory, Verdict, Wants
from observatory.protocol.versions import VersionEntry
from tests.contract.conftest import SERVICE, House
from tests.samples import decision_log


def log(session: str, agent: str = "worker", **delta: Any) -> dict[str, Any]:
    body = decision_log()
    body["meta"] |= {"session_id": session, "step_id": str(uuid.uuid4()), "trace_id": str(uuid.uuid4())}
    body["identity"]["agent_id"] = agent
    body["state_delta"] |= delta
    return body


def remembering(house: House, known: Memory | None, *bodies: dict[str, Any]) -> Memory | None:
    """One batch that begins with what the batch before left, as a lane does it."""
    items: list[Arrival] = [house.arrival(body) for body in bodies]
    batch = Batch(SERVICE, HOME_TENANT, items, house.now())
    verdicts, memory = house.transact(HOME_TENANT, lambda tx: batch.run(tx, known))
    assert [verdict.code for verdict in verdicts] == [202] * len(bodies)
    return memory.settled()


def rows(house: House, session: str) -> tuple[Any, ...]:
    (found,) = house.read(house.store.rows(HOME_TENANT, "sessions", session_id=session))
    members = house.read(house.store.rows(HOME_TENANT, "members", session_no=found["session_no"]))
    return found["messages"], sorted((member["messages"], member["cost"]) for member in members)


def test_batches_that_remember_leave_the_same_rows_as_batches_that_read(house: House) -> None:
    kept, read = str(uuid.uuid4()), str(uuid.uuid4())
    known: Memory | None = None
    for cost in (0.1, 0.2, 0.3):
        known = remembering(house, known, log(kept, cumulative_session_cost=cost), log(kept, agent="other"))
    for cost in (0.1, 0.2, 0.3):
        remembering(house, None, log(read, cumulative_session_cost=cost), log(read, agent="other"))
    assert rows(house, kept) == rows(house, read)
    assert rows(house, kept)[0] == 6


def test_what_somebody_else_appended_makes_a_memory_void(house: House) -> None:
    session = str(uuid.uuid4())
    known = remembering(house, None, log(session))
    remembering(house, None, log(session))  # another gateway
    remembering(house, known, log(session))
    assert rows(house, session)[0] == 3


def test_a_batch_saves_only_what_it_touched(house: House) -> None:
    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    known = remembering(house, None, log(first))
    known = remembering(house, known, log(second))
    assert known is not None and known.changed == []
    assert {first, second} <= known.sessions.keys()


def test_two_acts_of_one_batch_see_each_other(house: House) -> None:
    who, now = house.admin(), house.now()
    acts = [
        access.put_versions(who, "t", [VersionEntry(agent_type="t", version=number, status="current")], now)
        for number in ("1.0.0", "2.0.0")
    ]
    assert [verdict.code for verdict in house.submit(*acts)] == [200, 200]
    stored = house.read(house.store.rows(HOME_TENANT, "versions", agent_type="t"))
    assert {row["version"]: row["status"] for row in stored} == {"1.0.0": "retired", "2.0.0": "current"}


def test_an_update_that_finds_no_row_is_refused_and_nothing_is_written(house: House) -> None:
    def unit(tx: Any) -> Verdict:
        memory = tx.load(HOME_TENANT, Wants(), None)
        write = Write("users", {"role": "admin"}, {"tenant_id": HOME_TENANT, "user_id": "usr_nobody"})
        tx.save(memory, Changes(writes=[write]))
        return Verdict(200, None)

    before = house.read(house.store.head(HOME_TENANT))
    with pytest.raises(StatementFailed):
        house.transact(HOME_TENANT, unit)
    assert house.read(house.store.head(HOME_TENANT)) == before
