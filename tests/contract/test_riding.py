"""Acts that add nothing to the record go into the transaction of whatever is written next (S32)."""

import uuid
from typing import Any

from observatory.errors import NotDurable
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import HOME_TENANT, Command, SubmissionResult, UnitOfWork
from tests.contract.conftest import OTHER_TENANT, Harness
from tests.contract.test_overlap import Play, assert_true, codes, log
from tests.contract.test_overlap import play as play  # the fixture


def keep(harness: Harness, name: str, tenant_id: str = HOME_TENANT, **changed: Any) -> Command:
    """An act that writes a row and tells nobody."""
    row = {
        "tenant_id": tenant_id,
        "name": name,
        "value": "1",
        "updated_ns": 1,
        "updated_by": "usr_1",
    } | changed

    def decide(uow: UnitOfWork) -> SubmissionResult:
        assert uow.memory.tenant.tenant_id == tenant_id
        return SubmissionResult(200, uow.memory.head.sequence_number, writes=[RowWrite("knobs", row)])

    return Command(harness.admin(tenant_id), harness.now(), decide, can_piggyback=True)


def kept(harness: Harness, tenant_id: str = HOME_TENANT) -> list[str]:
    return sorted(row["name"] for row in harness.read(harness.store.rows(tenant_id, "knobs")))


def test_what_rides_is_decided_behind_the_batch_in_its_transaction_s32(play: Play) -> None:
    harness, session = play.harness, str(uuid.uuid4())

    async def scene() -> None:
        one, two = await play.pair([log(session)], [log(session), log(session)])
        can_piggyback = play.hand_in(keep(harness, "one"))
        play.doors.open.set()
        assert codes(await one) == [202] and codes(await two) == [202, 202]
        (verdict,) = await can_piggyback
        assert verdict.code == 200
        # The first was at the door already: it rode with the second and saw both of its messages.
        assert verdict.answer == (await two)[-1].answer.sequence_number

    before = play.doors.locked
    play.run(scene)
    assert play.doors.locked == before, "it had no transaction of its own"
    assert play.doors.outcomes == [True, True], "and what was thought about ahead stood"
    assert kept(harness) == ["one"]
    assert_true(harness, session)


def test_without_a_batch_it_goes_alone_and_at_once(play: Play) -> None:
    harness = play.harness
    harness.create_tenant(OTHER_TENANT)

    async def scene() -> None:
        mine = play.hand_in(keep(harness, "mine"), keep(harness, "too"))
        other = play.hand_in(keep(harness, "other", OTHER_TENANT), tenant_id=OTHER_TENANT)
        assert codes(await mine) == [200, 200] and codes(await other) == [200]

    play.run(scene)
    assert kept(harness) == ["mine", "too"] and kept(harness, OTHER_TENANT) == ["other"]


def test_of_a_ride_that_fails_only_the_culprit_is_refused(play: Play) -> None:
    harness, session = play.harness, str(uuid.uuid4())

    async def scene() -> None:
        one, two = await play.pair([log(session)], [log(session)])
        good = play.hand_in(keep(harness, "good"))
        bad = play.hand_in(keep(harness, "bad", value=None))
        play.doors.open.set()
        assert codes(await one) == [202] and codes(await two) == [202]
        assert codes(await good) == [200] and codes(await bad) == [409]
        assert codes(await play.send(log(session))) == [202]

    play.run(scene)
    assert kept(harness) == ["good"]
    assert_true(harness, session)


def test_one_that_tells_after_all_is_run_by_itself(play: Play) -> None:
    """It broke its word: the batch behind was thought about from another head, and is thought about again."""
    harness, session = play.harness, str(uuid.uuid4())

    def decide(uow: UnitOfWork) -> SubmissionResult:
        event = gateway_event(HOME_TENANT, "policy_changed", "a word too many", uow.now_ns, harness.admin())
        return SubmissionResult(200, uow.append(event))

    async def scene() -> None:
        one, two = await play.pair([log(session)], [log(session)])
        loud = play.hand_in(Command(harness.admin(), harness.now(), decide, can_piggyback=True))
        play.doors.open.set()
        assert codes(await one) == [202] and codes(await two) == [202] and codes(await loud) == [200]
        assert codes(await play.send(log(session))) == [202]

    play.run(scene)
    assert_true(harness, session)


def test_a_batch_that_is_not_durable_leaves_its_riders_to_find_out_themselves(play: Play) -> None:
    harness, session = play.harness, str(uuid.uuid4())

    async def scene() -> None:
        play.doors.instead = NotDurable("the disk")
        play.doors.open.set()
        one, can_piggyback = play.send(log(session)), play.hand_in(keep(harness, "later"))
        assert codes(await one) == [503] and codes(await can_piggyback) == [200]
        assert codes(await play.send(log(session))) == [202]

    play.run(scene)
    assert kept(harness) == ["later"]
    assert_true(harness, session)


def test_stopping_takes_along_who_waits(play: Play) -> None:
    harness, session = play.harness, str(uuid.uuid4())
    answers, count = [], 40

    async def scene() -> None:
        play.doors.open.set()
        for number in range(count):
            answers.append(play.send(log(session)))
            answers.append(play.hand_in(keep(harness, f"{number:02}")))

    play.run(scene)
    assert [code for answer in answers for code in codes(answer.result())] == [202, 200] * count
    assert kept(harness) == [f"{number:02}" for number in range(count)]
    assert_true(harness, session)
