"""The analyst when something is wrong: content, folds, rows, databases, sizes (rules S200, S201)."""

from __future__ import annotations

import asyncio

import pytest

from observatory.derived.seen import Batch, DerivedWrite, Finding
from observatory.errors import NotDurable
from observatory.pipeline.state import HOME_TENANT
from observatory.runtime import projector as projecting
from observatory.runtime import record_reader as reading
from observatory.runtime.projector import Projector
from observatory.runtime.record_reader import time_of
from observatory.store import committed
from tests.contract.analysis import Analyst, Counting, spoken, steps
from tests.contract.conftest import Harness, SqliteHarness
from tests.contract.test_relay import approve, new_message


class Touchy(Counting):
    """Fails on one message, or gives a row for it that no database takes."""

    def __init__(self, step_id: str, how: str) -> None:
        self._step_id, self._how = step_id, how

    async def fold(self, batch: Batch) -> tuple[list[DerivedWrite], list[Finding]]:
        if any(seen.step_id == self._step_id for seen in batch.messages):
            if self._how == "raise":
                raise ValueError("a fold that has a fault")
            if self._how == "row":
                return [
                    DerivedWrite(
                        "insight_links", [{"seq": 1, "parent_key": 1, "kind": None, "session_no": 1}]
                    )
                ], []
            raise NotDurable("the database is away")
        return await super().fold(batch)


@pytest.mark.parametrize("how", ["raise", "row"])
def test_a_message_a_fold_fails_on_is_passed_by_and_counted_s200(harness: Harness, how: str) -> None:
    for number in range(20):
        harness.send(spoken(f"{number}"))
    with Analyst(harness) as analyst:
        projector = analyst.catch_up(folds=[*analyst.folds(), Touchy("13", how)])
        progress = harness.read(analyst.derived.progress(HOME_TENANT))
        (row,) = [row for row in analyst.table("insight_session_minutes") if row["minute"] == 1]
        assert (projector.skipped, progress.skipped, row["messages"]) == (1, 1, 19)
        assert len(steps(analyst)) == 20  # the folds that did not fail lost nothing
        assert sum(row["messages"] for row in analyst.table("insight_agent_minutes")) == 20
        head, _ = harness.read(harness.store.head(HOME_TENANT))
        assert progress.seq == head


def test_several_folds_whose_rows_are_refused_pass_a_message_by_alone_s200(harness: Harness) -> None:
    harness.send(*(spoken(f"{number}") for number in range(3)))
    with Analyst(harness) as analyst:
        analyst.catch_up(
            folds=[Touchy("1", "row"), *analyst.folds(), Touchy("1", "row"), Touchy("1", "raise")]
        )
        progress = harness.read(analyst.derived.progress(HOME_TENANT))
        assert (len(steps(analyst)), progress.skipped) == (3, 1)


def test_an_analyst_that_comes_second_rests_s198(harness: Harness) -> None:
    """It does not fold again at once what another has just written, whoever had the claim."""
    harness.send(*(spoken(f"{number}") for number in range(6)))
    folded: list[int] = []

    class Watched(Counting):
        async def fold(self, batch: Batch) -> tuple[list[DerivedWrite], list[Finding]]:
            folded.append(batch.after)
            return await super().fold(batch)

    with Analyst(harness) as one, Analyst(harness) as two:
        second = two.projector(2, [Watched()])

        async def race() -> tuple[bool, bool, bool]:
            await second.round()
            (last,) = await harness.store.committed(HOME_TENANT, 3, 1)
            assert await one.derived.apply(HOME_TENANT, 2, 4, time_of(last), [], [])
            lost = await second.round(), await second.round()
            await asyncio.sleep(projecting.LOST_S + 0.05)
            return *lost, await second.round()

        assert harness.read(race()) == (True, False, True)
    assert folded == [0, 2, 4]


@pytest.mark.parametrize("room", [1, 5_000])
def test_a_page_is_bounded_by_bytes_and_never_empty(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    for number in range(8):
        harness.send(spoken(f"{number}", added_to_memory=["x" * 2_000]))
    monkeypatch.setattr(committed, "PAGE_BYTES", room)
    after, sizes = 0, []
    while rows := harness.read(harness.store.committed(HOME_TENANT, after, 500)):
        assert [row.seq for row in rows] == list(range(after + 1, after + 1 + len(rows)))
        after = rows[-1].seq
        sizes.append([len(row.raw) for row in rows if row.raw is not None])
    assert sum(map(len, sizes)) == 8
    assert all(sum(one[:-1]) < room for one in sizes)
    assert max(map(len, sizes)) == (1 if room == 1 else 2)
    assert after == harness.read(harness.store.head(HOME_TENANT))[0]


def test_a_batch_that_reads_too_much_again_ends_earlier_s201(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a person lets go of many large messages at once."""
    harness.send(new_message("first"))
    for number in range(7):
        harness.send(new_message(f"gate-{number}", hitl=True, parent="first"))
    for number in range(7):
        approve(harness, f"gate-{number}")
    with Analyst(harness) as analyst:
        analyst.catch_up()
        whole = analyst.everything()
        harness.read(analyst.derived.restart(HOME_TENANT))
        monkeypatch.setattr(reading, "AGAIN", 2)
        monkeypatch.setattr(reading, "AGAIN_BYTES", 1)
        projector = analyst.catch_up(rounds=1)
        head, _ = harness.read(harness.store.head(HOME_TENANT))
        assert 0 < harness.read(analyst.derived.progress(HOME_TENANT)).seq < head
        analyst.catch_up()
        assert analyst.everything() == whole and projector.skipped == 0
    assert {row["state"] for row in whole["insight_steps"]} == {"forwarded"}


def test_nothing_is_passed_by_while_a_database_is_away_s200(harness: Harness) -> None:
    for number in range(5):
        harness.send(spoken(f"{number}"))
    with Analyst(harness) as analyst:
        projector = analyst.projector(2, [*analyst.folds(), Touchy("3", "away")])
        for _ in range(10):
            with pytest.raises(NotDurable):
                harness.read(_until_still(projector))
        assert harness.read(analyst.derived.progress(HOME_TENANT)).skipped == 0
        analyst.catch_up()
        assert len(steps(analyst)) == 5


async def _until_still(projector: Projector) -> None:
    while await projector.round():
        pass


def test_content_that_cannot_be_read_holds_up_nothing_s200(harness: Harness) -> None:
    """Shredded by order, or written by a version that took what this one does not."""
    for number in range(3):
        harness.send(spoken(f"{number}"))
    shredded, broken = (
        ("raw = NULL", 'raw = \'{"not": "ours"}\'')
        if isinstance(harness, SqliteHarness)
        else ("raw = NULL", "raw = '\\x7b7d'::bytea")
    )
    column = "key & 1099511627775" if isinstance(harness, SqliteHarness) else "sequence_number"
    numbers = [
        row[0] for row in harness.sql(f"SELECT {column} FROM payloads WHERE 1 = :one ORDER BY 1", one=1)
    ]
    for trigger in ("payloads_only_shredding", "payloads_fixed", "payloads_only_shred"):
        harness.refuses(
            f"DROP TRIGGER IF EXISTS {trigger}" + ("" if harness.name == "sqlite" else " ON payloads")
        )
    for change, number in ((shredded, numbers[0]), (broken, numbers[1])):
        if harness.refuses(f"UPDATE payloads SET {change} WHERE {column} = {number}"):
            pytest.skip("this database cannot be harmed like that")
    with Analyst(harness) as analyst:
        analyst.catch_up()
        found = steps(analyst)
        progress = harness.read(analyst.derived.progress(HOME_TENANT))
    assert [row["tool"] for row in found] == [None, None, "serp_search"]
    assert (progress.unread, progress.skipped) == (1, 0)
