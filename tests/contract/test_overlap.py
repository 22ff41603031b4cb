"""A batch is thought about while the one before is written: whatever becomes of that one, the record is true.

The committer itself over both databases. `Doors` lets a test stand between thinking and writing.
"""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from observatory.errors import NotDurable, StatementFailed
from observatory.features.access import commands as access
from observatory.features.registry.commands_versions import change_versions
from observatory.ledger.chain import verify_chain
from observatory.pipeline.commit import lane
from observatory.pipeline.commit.committer import Committer
from observatory.pipeline.pipeline import PipelineBatch
from observatory.pipeline.ports import PreparedBatch
from observatory.pipeline.state import HOME_TENANT, BatchState, ReadSet, Submission, SubmissionResult
from observatory.protocol.versions import VersionEntry
from observatory.stages import WRITE_PATH
from tests.contract.conftest import OTHER_TENANT, SERVICE, Harness
from tests.samples import decision_log

WAIT_S = 5
Answer = asyncio.Future[list[SubmissionResult]]


def log(session: str, agent: str = "worker", step: str | None = None) -> dict[str, Any]:
    body = decision_log()
    step = step or str(uuid.uuid4())
    body["meta"] |= {"session_id": session, "step_id": step, "trace_id": str(uuid.uuid4())}
    body["identity"]["agent_id"] = agent
    return body


class Doors:
    """The store with doors: `write` waits before its own, and `before` and `instead` happen there once."""

    def __init__(self, harness: Harness) -> None:
        self._harness, self._store = harness, harness.store
        self.open = threading.Event()
        self.at_door = threading.Semaphore(0)
        self.looked = threading.Semaphore(0)
        self.followed = 0
        self.locked = 0  # transactions of batches that were not thought about ahead
        self.outcomes: list[bool] = []
        self.before: Callable[[], None] | None = None
        self.instead: Exception | None = None
        self.refuse_look = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def look(
        self, number: int, tenant_id: str, read_set: ReadSet, known: BatchState | None, is_pending: bool
    ) -> BatchState | None:
        if self.refuse_look:
            raise NotDurable("nothing can be read")
        self.followed += is_pending
        try:
            return self._store.look(number, tenant_id, read_set, known, is_pending)
        finally:
            self.looked.release()

    def transact(self, number: int, unit: Callable[[Any], Any]) -> Any:
        self.locked += 1
        return self._store.transact(number, unit)

    def write(self, number: int, batch: PreparedBatch, then: Callable[[Any], None] | None = None) -> bool:
        self.at_door.release()
        assert self.open.wait(WAIT_S)
        before, self.before = self.before, None
        if before is not None:
            before()
        error, self.instead = self.instead, None
        if error is not None:
            raise error
        self.outcomes.append(self._store.write(number, batch, then))
        return self.outcomes[-1]


class Play:
    """A committer at work on the house, and the doors between its threads."""

    def __init__(self, harness: Harness) -> None:
        self.harness, self.doors = harness, Doors(harness)
        self.committer = Committer(
            self.doors,
            WRITE_PATH,
            SERVICE,
            lambda notice: None,
            max_messages=1000,
            max_bytes=1 << 24,
            batch_size=100,
        )

    def run(self, scene: Callable[[], Awaitable[None]]) -> None:
        async def whole() -> None:
            self.committer.start()
            try:
                await scene()
            finally:
                self.doors.open.set()
                await self.committer.stop()

        self.harness.read(whole())

    def send(self, *bodies: dict[str, Any], tenant_id: str = HOME_TENANT) -> Answer:
        return self.hand_in(*(self.harness.arrival(body, tenant_id) for body in bodies), tenant_id=tenant_id)

    def hand_in(self, *items: Submission, tenant_id: str = HOME_TENANT) -> Answer:
        return self.committer.enqueue(tenant_id, items)

    def all_taken(self) -> bool:
        """Nothing waits any more: what came was thought about."""
        deadline = time.monotonic() + WAIT_S
        while self.committer.waiting[0] and time.monotonic() < deadline:
            time.sleep(0.001)
        return not self.committer.waiting[0]

    async def pair(self, first: list[dict[str, Any]], second: list[dict[str, Any]]) -> tuple[Answer, Answer]:
        """`first` stands at the door to be written and `second` has been thought about."""
        one = self.send(*first)
        assert await asyncio.to_thread(self.doors.at_door.acquire, timeout=WAIT_S)
        assert await asyncio.to_thread(self.doors.looked.acquire, timeout=WAIT_S)
        two = self.send(*second)
        assert await asyncio.to_thread(self.doors.looked.acquire, timeout=WAIT_S)
        return one, two


@pytest.fixture
def play(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> Play:
    monkeypatch.setattr(lane, "MIN_BATCH", 1)
    harness.send(log(str(uuid.uuid4())))  # its version is noted: the first to send it writes a rare row
    return Play(harness)


def codes(verdicts: list[SubmissionResult]) -> list[int]:
    return [verdict.code for verdict in verdicts]


def numbers(*answers: list[SubmissionResult]) -> list[int]:
    return [verdict.answer.sequence_number for answer in answers for verdict in answer if verdict.code == 202]


def assert_true(harness: Harness, *sessions: str) -> None:
    """The chain is dense and unbroken, no step is there twice, and the counters are those of the messages."""
    events = [msgspec.json.decode(event.record) for event in harness.trail_of()]
    assert verify_chain(events) == (True, None)
    assert [event["hash_chain"]["sequence_number"] for event in events] == list(range(1, len(events) + 1))
    head = harness.read(harness.store.head(HOME_TENANT))
    assert head == (len(events), events[-1]["hash_chain"]["event_hash"])
    assert harness.sql("SELECT dedupe FROM messages GROUP BY dedupe HAVING count(*) > 1") == []
    for session in sessions:
        (row,) = harness.read(harness.store.rows(HOME_TENANT, "sessions", session_id=session))
        sent = harness.sql(f"SELECT count(*) FROM messages WHERE session_no = {row['session_no']}")[0][0]
        members = harness.read(harness.store.rows(HOME_TENANT, "members", session_no=row["session_no"]))
        assert row["messages"] == sent == sum(member["messages"] for member in members)
    if harness.read(harness.store.head(OTHER_TENANT))[0]:
        return
    agents = harness.read(harness.store.rows(HOME_TENANT, "agents"))
    assert sum(agent["messages"] for agent in agents) == harness.sql("SELECT count(*) FROM messages")[0][0]


def test_a_batch_is_thought_about_while_the_one_before_is_written(play: Play) -> None:
    """S20: its answer waits for its own commit, and so does the first one's."""
    session = str(uuid.uuid4())

    async def scene() -> None:
        one, two = await play.pair([log(session), log(session)], [log(session), log(session, "other")])
        assert not one.done() and not two.done()
        play.doors.open.set()
        found = numbers(await one, await two)
        assert found == sorted(found) and len(set(found)) == 4

    play.run(scene)
    assert play.doors.followed == 1 and play.doors.outcomes == [True, True]
    assert_true(play.harness, session)


@pytest.mark.parametrize(
    ("error", "first"),
    [(StatementFailed("a row"), 202), (NotDurable("the disk"), 503), (KeyError("a defect"), 202)],
)
def test_a_batch_that_fails_takes_what_was_foreseen_from_it_along(
    play: Play, error: Exception, first: int
) -> None:
    """S25, S26: both are run again under the lock, the first one first; only what is not durable is 503."""
    session = str(uuid.uuid4())

    async def scene() -> None:
        one, two = await play.pair([log(session), log(session)], [log(session), log(session, "other")])
        play.doors.instead = error
        play.doors.open.set()
        assert codes(await one) == [first] * 2
        assert codes(await two) == [202, 202]
        found = numbers(await one, await two)
        assert found == sorted(found)
        third = await play.send(log(session))
        assert codes(third) == [202]

    play.run(scene)
    assert play.doors.outcomes[-1:] == [True], "foresight is taken up again"
    assert_true(play.harness, session)


def test_a_culprit_is_found_and_spares_the_batch_behind_it(play: Play) -> None:
    """S26: a row no database can hold, met only when it is written."""
    session = str(uuid.uuid4())
    poison = play.harness.arrival(log(session))
    poison.received_ns = 1 << 70  # beyond what a column holds

    async def scene() -> None:
        one = play.hand_in(play.harness.arrival(log(session)), poison, play.harness.arrival(log(session)))
        two = play.send(log(session))
        play.doors.open.set()
        assert codes(await one) == [202, 422, 202]
        assert codes(await two) == [202]

    play.run(scene)
    assert_true(play.harness, session)


@pytest.mark.parametrize("followers", [0, 1])
def test_a_head_moved_by_somebody_else_makes_it_think_again(play: Play, followers: int) -> None:
    """S41: another gateway appends to the same session between the thinking and the writing."""
    harness, session = play.harness, str(uuid.uuid4())

    def foreign() -> None:
        other = harness.build()
        batch = PipelineBatch(
            WRITE_PATH, SERVICE, HOME_TENANT, [harness.arrival(log(session, "stranger"))], harness.now()
        )
        verdicts, _ = other.transact(other.lane(HOME_TENANT), lambda tx: batch.run(tx, None))
        assert codes(verdicts) == [202]
        other.close_lane(other.lane(HOME_TENANT))

    async def scene() -> None:
        first = [log(session), log(session)]
        if followers:
            one, two = await play.pair(first, [log(session)])
        else:
            one = play.send(*first)
            assert await asyncio.to_thread(play.doors.at_door.acquire, timeout=WAIT_S)
        play.doors.before = foreign
        play.doors.open.set()
        assert codes(await one) == [202, 202]
        if followers:
            assert codes(await two) == [202]
        assert codes(await play.send(log(session))) == [202], "under the lock for a while"

    play.run(scene)
    assert play.doors.outcomes == [False]
    assert_true(harness, session)
    assert harness.sql("SELECT count(*) FROM messages") == [(5 + followers,)]


def test_an_act_counts_for_the_message_behind_it(play: Play) -> None:
    """S50: nothing is thought about past a rare row; the retired version is refused at once."""
    harness, session = play.harness, str(uuid.uuid4())
    body, behind = log(session), log(session)
    version, kind = body["identity"]["capability_version"], body["identity"]["agent_type"]
    entry = VersionEntry(agent_type=kind, version=version, status="retired")

    async def scene() -> None:
        one = play.send(body)
        assert await asyncio.to_thread(play.doors.at_door.acquire, timeout=WAIT_S)
        act = play.hand_in(change_versions(harness.admin(), kind, [entry], harness.now()))
        two = play.send(behind)
        play.doors.open.set()
        assert codes(await one) == [202] and codes(await act) == [200]
        three = play.send(log(session))
        assert codes(await two) == [422] and codes(await three) == [422]

    play.run(scene)
    assert_true(harness, session)


def test_a_revoked_key_is_gone_for_the_batch_behind(play: Play) -> None:
    """S12"""
    harness, session = play.harness, str(uuid.uuid4())
    row: dict[str, Any] = {"tenant_id": HOME_TENANT, "role": "admin", "scopes": "[]", "user_id": None}
    row |= {"agent_id": None, "label": "", "created_ns": 1, "created_by": "usr_1"}
    row |= {"key_id": "key_admin", "public_id": "p", "key_hash": b"h"}
    harness.submit(access.create_key(harness.admin(), row, harness.now()))

    async def scene() -> None:
        one = play.send(log(session))
        assert await asyncio.to_thread(play.doors.at_door.acquire, timeout=WAIT_S)
        act = play.hand_in(access.revoke_key(harness.admin(), "key_admin", harness.now()))
        two = play.send(log(session))
        play.doors.open.set()
        assert codes(await one) == [202] and codes(await act) == [200]
        assert codes(await two) == [401]

    play.run(scene)
    assert_true(harness, session)


@pytest.mark.parametrize("fails", [False, True])
def test_a_repeat_in_the_batch_behind_is_answered_as_the_first(play: Play, fails: bool) -> None:
    """S21: the step it repeats cannot be read yet; if the first is run again, by its new answer."""
    session = str(uuid.uuid4())
    same = log(session)

    async def scene() -> None:
        again = [play.harness.arrival(same) for _ in range(2)]
        one = play.hand_in(again[0])
        assert await asyncio.to_thread(play.doors.at_door.acquire, timeout=WAIT_S)
        assert await asyncio.to_thread(play.doors.looked.acquire, timeout=WAIT_S)
        two = play.hand_in(again[1])
        assert await asyncio.to_thread(play.doors.looked.acquire, timeout=WAIT_S)
        assert not two.done()
        play.doors.instead = StatementFailed("a row") if fails else None
        play.doors.open.set()
        assert (await one)[0].answer == (await two)[0].answer
        assert codes(await two) == [202]
        assert (await play.send(same))[0].answer == (await one)[0].answer

    play.run(scene)
    assert play.doors.followed == 1
    assert play.harness.sql("SELECT count(*) FROM messages") == [(2,)]
    assert_true(play.harness, session)


def test_what_comes_while_a_batch_is_written_joins_the_one_behind(play: Play) -> None:
    session = str(uuid.uuid4())
    same = log(session)

    async def scene() -> None:
        one, two = await play.pair([log(session)], [same])
        rest = [play.send(log(session, "other"), same) for _ in range(3)]
        assert await asyncio.to_thread(play.all_taken)
        play.doors.open.set()
        found = [await answer for answer in (one, two, *rest)]
        assert {code for answer in found for code in codes(answer)} == {202}
        assert {answer[1].answer.sequence_number for answer in found[2:]} == {
            found[1][0].answer.sequence_number
        }

    play.run(scene)
    assert play.doors.outcomes == [True, True], "one transaction for all that came meanwhile"
    assert_true(play.harness, session)


def test_tenants_do_not_foresee_each_other(play: Play) -> None:
    harness, session = play.harness, str(uuid.uuid4())
    harness.create_tenant(OTHER_TENANT)

    async def scene() -> None:
        one = play.send(log(session))
        assert await asyncio.to_thread(play.doors.at_door.acquire, timeout=WAIT_S)
        two = play.send(log(session), tenant_id=OTHER_TENANT)
        unborn = play.send(log(session), tenant_id="tnt_unborn")
        play.doors.open.set()
        assert codes(await one) == codes(await two) == [202]
        assert codes(await unborn)[0] >= 400

    play.run(scene)
    assert play.doors.followed == 0
    assert harness.read(harness.store.head(OTHER_TENANT))[0] > 1
    assert_true(harness, session)


def test_what_cannot_be_read_ahead_is_run_under_the_lock(play: Play) -> None:
    session = str(uuid.uuid4())
    play.doors.refuse_look = True

    async def scene() -> None:
        answers = [play.send(log(session)) for _ in range(5)]
        assert [codes(await answer) for answer in answers] == [[202]] * 5

    play.run(scene)
    assert play.doors.outcomes == []
    assert_true(play.harness, session)


@pytest.mark.parametrize("kept", [20_000, 3])
def test_many_batches_leave_what_one_by_one_would(
    play: Play, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    """However much may be kept between them; every third message is a repeat."""
    monkeypatch.setattr("observatory.pipeline.state.MAX_CACHED_ROWS", kept)
    monkeypatch.setattr(lane, "CHUNK_SIZE", 7)
    sessions = [str(uuid.uuid4()) for _ in range(5)]
    bodies = [log(sessions[n % 5], f"agent-{n % 3}") for n in range(120)]
    for n in range(5, 120, 3):
        bodies[n] = bodies[n - 5]
    play.doors.open.set()

    async def scene() -> None:
        answers = []
        for n in range(0, 120, 4):
            answers.append(play.send(*bodies[n : n + 4]))
            await asyncio.sleep(0)
        verdicts = [verdict for answer in answers for verdict in await answer]
        assert set(codes(verdicts)) == {202}
        for n in range(5, 120, 3):
            assert verdicts[n].answer == verdicts[n - 5].answer

    play.run(scene)
    assert all(play.doors.outcomes)
    assert_true(play.harness, *sessions)
