"""Group commit over a store in memory: order, bounds, culprits, and answers only after the commit."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from observatory.errors import GatewayStopped, NotDurable, QueueFull, StatementFailed
from observatory.ledger.chain import GENESIS_HASH, ChainHead
from observatory.pipeline.commit.committer import Committer
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.message_event import ServiceInfo
from observatory.pipeline.ports import CommitNotice, PreparedBatch, SqlStatement
from observatory.pipeline.rows import TenantRow
from observatory.pipeline.state import (
    BatchState,
    Command,
    IncomingMessage,
    Principal,
    ReadSet,
    Submission,
    SubmissionResult,
    TenantConfig,
    TransactionChanges,
    UnitOfWork,
)
from observatory.protocol.message import Message
from observatory.stages import WRITE_PATH
from tests.samples import decision_log
from tests.waiting import until

T = TypeVar("T")
WHO = Principal(tenant_id="tnt_1", role="agent", key_id="key_1")


class Store:
    """Keeps committed batches; fails as it is told. `poison` is refused like a row a database cannot hold."""

    lanes = 1
    mixes_tenants = True

    def __init__(self) -> None:
        self.heads: dict[str, ChainHead] = {}
        self.batches: list[tuple[str, list[str]]] = []
        self.poison: set[str] = set()
        self.error: Exception | None = None
        self.open = threading.Event()
        self.open.set()
        self.closed = False
        self.entered = threading.Semaphore(0)

    def lane(self, tenant_id: str) -> int:
        return 0

    def transact(self, lane: int, unit: Callable[[Any], T]) -> T:
        self.entered.release()
        assert self.open.wait(20)
        if self.error is not None:
            raise self.error
        return unit(self)

    def load(self, tenant_id: str, read_set: ReadSet, known: BatchState | None) -> BatchState:
        return self.look(0, tenant_id, read_set, known, False)

    def save(self, memory: BatchState, changes: TransactionChanges) -> None:
        self._keep(memory.tenant.tenant_id, memory.head, [row.step_id for row in changes.messages])

    def look(
        self, lane: int, tenant_id: str, read_set: ReadSet, known: BatchState | None, is_pending: bool
    ) -> BatchState:
        head = self.heads.get(tenant_id, ChainHead(0, GENESIS_HASH))
        memory = BatchState(TenantRow(tenant_id=tenant_id, tenant_no=1), head, TenantConfig())
        memory.recall(known, is_pending)
        return memory

    def read_more(self, lane: int, memory: BatchState, read_set: ReadSet) -> None:
        pass

    def finish(self, base: ChainHead, memory: BatchState, changes: TransactionChanges) -> PreparedBatch:
        steps = [row.step_id for row in changes.messages]
        return PreparedBatch(
            memory.tenant.tenant_id, SqlStatement("", (base, memory.head)), [SqlStatement("", steps)]
        )

    def write(self, lane: int, batch: PreparedBatch, then: Callable[[Any], None] | None = None) -> bool:
        def unit(_: object) -> bool:
            base, head = batch.head.values
            if self.heads.get(batch.tenant_id, ChainHead(0, GENESIS_HASH)) != base:
                return False
            self._keep(batch.tenant_id, head, list(batch.statements[0].values))
            if then is not None:
                then(self)
            return True

        return self.transact(lane, unit)

    def _keep(self, tenant_id: str, head: ChainHead, steps: list[str]) -> None:
        if self.poison & set(steps):
            raise StatementFailed("a row was refused")
        self.heads[tenant_id] = head
        self.batches.append((tenant_id, steps))

    def close_lane(self, lane: int) -> None:
        self.closed = True

    @property
    def steps(self) -> list[str]:
        return [step for _, batch in self.batches for step in batch]


def arrival(step: str, tenant: str = "tnt_1") -> IncomingMessage:
    raw = json.dumps(decision_log(meta={"step_id": step, "session_id": "s"})).encode()
    message = intercept(raw)
    assert isinstance(message, Message)
    who = Principal(tenant_id=tenant, role="agent", key_id="key_1")
    return IncomingMessage(message, who, 1_700_000_000_000_000_000, len(raw))


def arrivals(*steps: str) -> list[Submission]:
    return [arrival(step) for step in steps]


class Bench:
    def __init__(
        self, max_messages: int = 100, max_bytes: int = 1 << 20, batch_size: int = 10, max_wait_s: float = 0.0
    ) -> None:
        self.store, self.notices = Store(), list[CommitNotice]()
        self.now = 0.0
        self.committer = Committer(
            self.store,
            WRITE_PATH,
            ServiceInfo("observatory", "0", "test"),
            self.notices.append,
            max_messages=max_messages,
            max_bytes=max_bytes,
            batch_size=batch_size,
            max_wait_s=max_wait_s,
            elapsed=lambda: self.now,
        )

    def run(self, play: Callable[["Bench"], Awaitable[None]]) -> "Bench":
        async def whole() -> None:
            self.committer.start()
            try:
                await play(self)
            finally:
                self.store.open.set()
                await self.committer.stop()

        asyncio.run(whole())
        assert self.store.closed
        return self

    async def hold(self) -> asyncio.Future[list[SubmissionResult]]:
        """The lane is busy with one message until `store.open` is set."""
        self.store.open.clear()
        first = self.committer.enqueue("tnt_1", arrivals("held"))
        assert await asyncio.to_thread(self.store.entered.acquire, timeout=20)
        return first


def codes(verdicts: list[SubmissionResult]) -> list[int]:
    return [verdict.code for verdict in verdicts]


def test_what_waits_goes_in_one_transaction_in_order_of_arrival() -> None:
    """S20, S41: numbers are dense, and nobody is answered or told of anything before the commit."""

    async def play(bench: Bench) -> None:
        first = await bench.hold()
        more = [bench.committer.enqueue("tnt_1", arrivals(f"a{n}", f"b{n}")) for n in range(4)]
        await asyncio.sleep(0)
        assert not first.done() and not any(one.done() for one in more)
        assert bench.notices == [] and bench.store.batches == []
        bench.store.open.set()
        verdicts = [verdict for one in (first, *more) for verdict in await one]
        assert set(codes(verdicts)) == {202}
        numbers = [verdict.answer.sequence_number for verdict in verdicts]
        assert numbers == sorted(numbers)

    bench = Bench().run(play)
    assert [steps for _, steps in bench.store.batches] == [
        ["held"],
        ["a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3"],
    ]
    assert bench.notices[-1] == CommitNotice("tnt_1", bench.store.heads["tnt_1"].sequence_number)


def test_a_message_the_database_refuses_is_answered_alone_s26() -> None:
    """S26: found by halving; its neighbours are accepted, in order, and its event holds only the hash."""

    async def play(bench: Bench) -> None:
        bench.store.poison = {"p1", "p2"}
        steps = ["0", "1", "p1", "3", "4", "5", "6", "p2", "8"]
        verdicts = await bench.committer.submit("tnt_1", arrivals(*steps))
        assert codes(verdicts) == [202, 202, 422, 202, 202, 202, 202, 422, 202]
        assert verdicts[2].answer.reason == "not_storable"
        assert verdicts[2].answer.raw_payload_hash.startswith("sha256:")

    bench = Bench(batch_size=100).run(play)
    assert bench.store.steps == ["0", "1", "3", "4", "5", "6", "8"]
    assert bench.committer.counters.refused_batches > 0
    assert not bench.committer.is_store_failing


def test_nothing_durable_means_503_for_all_and_recovery_by_itself_s25() -> None:
    """S25."""

    async def play(bench: Bench) -> None:
        bench.store.error = NotDurable("the disk is full")
        verdicts = await bench.committer.submit("tnt_1", arrivals("1", "2"))
        assert codes(verdicts) == [503, 503]
        assert bench.committer.is_store_failing and bench.store.batches == []
        bench.store.error = None
        assert codes(await bench.committer.submit("tnt_1", arrivals("1", "2"))) == [202, 202]
        assert not bench.committer.is_store_failing

    assert Bench().run(play).store.steps == ["1", "2"]


@pytest.mark.parametrize("limits", [{"max_messages": 3}, {"max_bytes": 3_500}])
def test_a_full_queue_takes_nothing_s24(limits: dict[str, int]) -> None:
    """S24: bounded by count and by bytes; but an empty one takes any one parcel."""

    async def play(bench: Bench) -> None:
        first = await bench.hold()
        taken = bench.committer.enqueue("tnt_1", arrivals("1", "2", "3", "4", "5"))
        assert bench.committer.waiting[0] == 5
        with pytest.raises(QueueFull):
            bench.committer.enqueue("tnt_1", arrivals("6"))
        bench.store.open.set()
        assert codes(await first) + codes(await taken) == [202] * 6
        assert bench.committer.waiting == (0, 0)
        assert codes(await bench.committer.submit("tnt_1", arrivals("7"))) == [202]

    assert "6" not in Bench(**limits).run(play).store.steps


def test_one_transaction_holds_one_tenant_and_each_gets_its_turn() -> None:
    """S54: however much one of them sends."""

    async def play(bench: Bench) -> None:
        first = await bench.hold()
        many = [bench.committer.enqueue("tnt_1", arrivals(f"{n}")) for n in range(40)]
        other = bench.committer.enqueue("tnt_2", [arrival("other", "tnt_2")])
        bench.store.open.set()
        await asyncio.gather(first, other, *many)

    batches = Bench().run(play).store.batches
    assert {tenant for tenant, _ in batches} == {"tnt_1", "tnt_2"}
    assert [tenant for tenant, _ in batches].index("tnt_2") <= 2


def test_a_sender_that_leaves_loses_the_answer_and_never_the_message() -> None:
    """S20, S28."""

    async def play(bench: Bench) -> None:
        first = await bench.hold()
        waiting = asyncio.create_task(bench.committer.submit("tnt_1", arrivals("gone")))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        bench.store.open.set()
        await first

    assert Bench().run(play).store.steps == ["held", "gone"]


def test_stopping_commits_what_waits_and_takes_nothing_more() -> None:
    """S20."""

    async def play(bench: Bench) -> None:
        await bench.hold()
        last = bench.committer.enqueue("tnt_1", arrivals("last"))
        stopping = asyncio.create_task(bench.committer.stop())
        await asyncio.sleep(0)
        with pytest.raises(GatewayStopped):
            bench.committer.enqueue("tnt_1", arrivals("late"))
        bench.store.open.set()
        await stopping
        assert codes(await last) == [202]

    assert Bench().run(play).store.steps == ["held", "last"]
    with pytest.raises(GatewayStopped):
        Bench().committer.enqueue("tnt_1", arrivals("early"))


def test_a_defect_in_one_act_answers_500_without_its_text_and_spares_the_rest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """S26, S30: an error's text may quote a payload; only its type and place are logged."""

    def broken(uow: UnitOfWork) -> SubmissionResult:
        raise KeyError("a secret of the payload")

    async def play(bench: Bench) -> None:
        items: list[Submission] = [arrival("1"), Command(WHO, 0, broken), arrival("2")]
        assert codes(await bench.committer.submit("tnt_1", items)) == [202, 500, 202]

    assert Bench().run(play).store.steps == ["1", "2"]
    assert "KeyError" in caplog.text and "secret" not in caplog.text


def test_no_items_are_answered_at_once() -> None:
    async def play(bench: Bench) -> None:
        assert await bench.committer.submit("tnt_1", []) == []

    assert Bench().run(play).store.batches == []


async def settled(future: asyncio.Future[list[SubmissionResult]]) -> list[int]:
    async with asyncio.timeout(20):
        return codes(await future)


def test_what_waits_for_too_long_is_answered_503_while_the_database_hangs_and_never_written_s1202() -> None:
    async def play(bench: Bench) -> None:
        held = await bench.hold()
        early = bench.committer.enqueue("tnt_1", arrivals("early-1", "early-2"))
        other = bench.committer.enqueue("tnt_2", [arrival("other", "tnt_2")])
        bench.now = 4.0
        late = bench.committer.enqueue("tnt_1", arrivals("late"))
        bench.committer.expire()
        assert not early.done() and not other.done()
        bench.now = 5.5
        bench.committer.expire()
        assert await settled(early) == [503, 503] and await settled(other) == [503]
        assert early.result()[0].answer.reason == "waited_too_long"
        assert not held.done() and not late.done()
        assert bench.committer.waiting[0] == 1
        bench.store.open.set()
        assert await settled(held) == [202] and await settled(late) == [202]
        again = bench.committer.enqueue("tnt_1", arrivals("early-1"))
        assert await settled(again) == [202]

    assert Bench(max_wait_s=5.0).run(play).store.steps == ["held", "late", "early-1"]


def test_a_batch_that_was_thought_about_ahead_is_refused_as_well_s1202() -> None:
    """With many waiting the next batch is begun while the one before hangs; nothing of it is written then."""

    async def play(bench: Bench) -> None:
        held = await bench.hold()
        names = [f"ahead-{number}" for number in range(30)]
        ahead = bench.committer.enqueue("tnt_1", arrivals(*names))
        [lane] = bench.committer._lanes
        await asyncio.to_thread(until, lambda: lane.messages < 30)  # some are thought about
        bench.now = 6.0
        young = bench.committer.enqueue("tnt_1", arrivals("young"))
        bench.committer.expire()
        assert await settled(ahead) == [503] * 30
        assert not held.done()
        bench.store.open.set()
        assert await settled(held) == [202] and await settled(young) == [202]

    assert Bench(max_wait_s=5.0, batch_size=20).run(play).store.steps == ["held", "young"]


def test_an_act_waits_on_and_without_a_limit_so_does_a_message_s1202() -> None:
    async def play(bench: Bench) -> None:
        held = await bench.hold()
        act = bench.committer.enqueue("tnt_1", [Command(WHO, 0, lambda uow: SubmissionResult(200, None))])
        bench.now = 100.0
        bench.committer.expire()
        assert not act.done()
        bench.store.open.set()
        assert await settled(held) == [202] and await settled(act) == [200]

    Bench(max_wait_s=5.0).run(play)
    quiet = Bench()

    async def nothing(bench: Bench) -> None:
        held = await bench.hold()
        waits = bench.committer.enqueue("tnt_1", arrivals("waits"))
        assert bench.committer._expiry is None
        bench.now = 1e9
        bench.store.open.set()
        assert await settled(held) == [202] and await settled(waits) == [202]

    quiet.run(nothing)
