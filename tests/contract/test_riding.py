"""Acts that add nothing to the record go into the transaction of whatever is written next (S32)."""

import uuid
from typing import Any

from observatory.errors import NotDurable
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import HOME_TENANT, Act, Desk, Verdict
from tests.contract.conftest import OTHER_TENANT, House
from tests.contract.test_overlap import Play, assert_true, codes, log
from tests.contract.test_overlap import play as play


def keep(house: House, name: str, tenant_id: str = HOME_TENANT, **changed: Any) -> Act:
    """An act that writes a row and tells nobody."""
    row = {
        "tenant_id": tenant_id,
        "name": name,
        "value": "1",
        "updated_ns": 1,
        "updated_by": "usr_1",
    } | changed

    def decide(desk: Desk) -> Verdict:
        assert desk.memory.tenant.tenant_id == tenant_id
        return Verdict(200, desk.memory.head.sequence_number, writes=[Write("knobs", row)])

    return Act(house.admin(tenant_id), house.now(), decide, rides=True)


def kept(house: House, tenant_id: str = HOME_TENANT) -> list[str]:
    return sorted(row["name"] for row in house.read(house.store.rows(tenant_id, "knobs")))


def test_what_rides_is_decided_behind_the_batch_in_its_transaction_s32(play: Play) -> None:
    house, session = play.house, str(uuid.uuid4())

    async def scene() -> None:
        one, two = await play.pair([log(session)], [log(session), log(session)])
        rides = play.hand_in(keep(house, "one"))
        play.doors.open.set()
        assert codes(await one) == [202] and codes(await two) == [202, 202]
        (verdict,) = await rides
        assert verdict.code == 200
        # The first was at the door already: it rode with the second and saw both of its messages.
        assert verdict.answer == (await two)[-1].answer.sequence_number

    before = play.doors.locked
    play.run(scene)
    assert play.doors.locked == before, "it had no transaction of its own"
    assert play.doors.outcomes == [True, True], "and what was thought about ahead stood"
    assert kept(house) == ["one"]
    assert_true(house, session)


def test_without_a_batch_it_goes_alone_and_at_once(play: Play) -> None:
    house = play.house
    house.create_tenant(OTHER_TENANT)

    async def scene() -> None:
        mine = play.hand_in(keep(house, "mine"), keep(house, "too"))
        other = play.hand_in(keep(house, "other", OTHER_TENANT), tenant_id=OTHER_TENANT)
        assert codes(await mine) == [200, 200] and codes(await other) == [200]

    play.run(scene)
    assert kept(house) == ["mine", "too"] and kept(house, OTHER_TENANT) == ["other"]


def test_of_a_ride_that_fails_only_the_culprit_is_refused(play: Play) -> None:
    house, session = play.house, str(uuid.uuid4())

    async def scene() -> None:
        one, two = await play.pair([log(session)], [log(session)])
        good = play.hand_in(keep(house, "good"))
        bad = play.hand_in(keep(house, "bad", value=None))
        play.doors.open.set()
        assert codes(await one) == [202] and codes(await two) == [202]
        assert codes(await good) == [200] and codes(await bad) == [409]
        assert codes(await play.send(log(session))) == [202]

    play.run(scene)
    assert kept(house) == ["good"]
    assert_true(house, session)


def test_one_that_tells_after_all_is_run_by_itself(play: Play) -> None:
    """It broke its word: the batch behind was thought about from another head, and is thought about again."""
    house, session = play.house, str(uuid.uuid4())

    def decide(desk: Desk) -> Verdict:
        event = notice(HOME_TENANT, "policy_changed", "a word too many", desk.now_ns, house.admin())
        return Verdict(200, desk.append(event))

    async def scene() -> None:
        one, two = await play.pair([log(session)], [log(session)])
        loud = play.hand_in(Act(house.admin(), house.now(), decide, rides=True))
        play.doors.open.set()
        assert codes(await one) == [202] and codes(await two) == [202] and codes(await loud) == [200]
        assert codes(await play.send(log(session))) == [202]

    play.run(scene)
    assert_true(house, session)


def test_a_batch_that_is_not_durable_leaves_its_riders_to_find_out_themselves(play: Play) -> None:
    house, session = play.house, str(uuid.uuid4())

    async def scene() -> None:
        play.doors.instead = NotDurable("the disk")
        play.doors.open.set()
        one, rides = play.send(log(session)), play.hand_in(keep(house, "later"))
        assert codes(await one) == [503] and codes(await rides) == [200]
        assert codes(await play.send(log(session))) == [202]

    play.run(scene)
    assert kept(house) == ["later"]
    assert_true(house, session)


def test_stopping_takes_along_who_waits(play: Play) -> None:
    house, session = play.house, str(uuid.uuid4())
    answers, count = [], 40

    async def scene() -> None:
        play.doors.open.set()
        for number in range(count):
            answers.append(play.send(log(session)))
            answers.append(play.hand_in(keep(house, f"{number:02}")))

    play.run(scene)
    assert [code for answer in answers for code in codes(answer.result())] == [202, 200] * count
    assert kept(house) == [f"{number:02}" for number in range(count)]
    assert_true(house, session)
