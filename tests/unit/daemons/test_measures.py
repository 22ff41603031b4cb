from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observatory.runtime.metrics import Measure, PollCounter, exposition
from observatory.runtime.runner import WorkerRunner
from tests.prometheus import parsed


@settings(max_examples=50)
@given(
    st.dictionaries(st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True), st.text(), max_size=3), st.text()
)
def test_whatever_stands_in_a_label_or_a_help_is_read_back_s581(
    labels: dict[str, str], received: str
) -> None:
    """S581: quotes, backslashes and line ends are escaped, so that nothing can pretend to be a line."""
    clean = {name: value.replace("\r", "") for name, value in labels.items()}
    text = exposition([Measure("observatory_x", "gauge", f"x{received}".replace("\r", ""), 1.5, clean)])
    [family] = parsed(text).values()
    assert family.samples == {("observatory_x", tuple(clean.items())): 1.5}


def test_one_name_stands_together_under_one_head_s581() -> None:
    received = [
        Measure("observatory_a_total", "counter", "a", 1, {"of": "x"}),
        Measure("observatory_b", "gauge", "b", float("inf")),
        Measure("observatory_a_total", "counter", "a", 2, {"of": "y"}),
    ]
    assert exposition(received).splitlines() == [
        "# HELP observatory_a_total a",
        "# TYPE observatory_a_total counter",
        'observatory_a_total{of="x"} 1',
        'observatory_a_total{of="y"} 2',
        "# HELP observatory_b b",
        "# TYPE observatory_b gauge",
        "observatory_b +Inf",
    ]
    assert exposition([]) == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('# HELP a b\n# TYPE a gauge\na{x="1} 2\n', "an open quote"),
        ("# HELP a b\n# TYPE a gauge\na 1\na 2\n", "a sample twice"),
        ("# HELP a b\n# TYPE a gauge\na 1\n# HELP a b\n# TYPE a gauge\na 2\n", "a head twice"),
        ("# HELP a b\n# TYPE a summary\na 1\n", "a kind we do not use"),
        ("# HELP a b\n# TYPE a gauge\nb 1\n", "another's sample"),
        ("# HELP a b\n# TYPE a gauge\na one\n", "no number"),
    ],
)
def test_the_reader_these_tests_trust_is_strict(text: str, why: str) -> None:
    with pytest.raises((AssertionError, KeyError)):
        parsed(text)


def test_a_daemon_that_fails_is_down_until_it_is_started_again_s582() -> None:
    """S582: and counted; one that only hangs shows by its last look."""

    async def story() -> None:
        again, fail = asyncio.Event(), asyncio.Event()
        starts = 0

        async def weak() -> None:
            nonlocal starts
            starts += 1
            if starts > 1:
                again.set()
                await asyncio.Event().wait()
            await fail.wait()
            raise ValueError

        async def short() -> None:
            return None

        def up() -> dict[str, float]:
            received = runner.measures()
            return {
                f"{one.labels['worker']} {one.name.removeprefix('observatory_worker_')}": one.value
                for one in received
            }

        runner = WorkerRunner({"weak": weak, "short": short})
        async with runner:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert (up()["weak up"], up()["weak failures_total"], up()["short up"]) == (1, 0, 0)
            fail.set()
            await asyncio.sleep(0.01)
            assert (up()["weak up"], up()["weak failures_total"]) == (0, 1)
            await again.wait()
            assert (up()["weak up"], up()["weak failures_total"]) == (1, 1)

    asyncio.run(story())
    looks = PollCounter("x")
    looks.look()
    count, age = looks.measures()
    assert (count.value, count.labels) == (1, {"worker": "x"}) and 0 <= age.value < 5


def test_a_daemon_that_fails_for_hours_is_started_again_all_the_same_s582(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """S582: the pause stays at ten seconds, however often it failed."""
    real, pauses = asyncio.sleep, list[float]()

    async def short(pause_s: float) -> None:
        pauses.append(pause_s)
        await real(0)

    async def story() -> None:
        done = asyncio.Event()

        async def weak() -> None:
            if runner.failures["weak"] > 1_100:  # 2 to that power is more than a float can hold
                done.set()
                await asyncio.Event().wait()
            raise ValueError

        runner = WorkerRunner({"weak": weak})
        async with runner, asyncio.timeout(20):
            await done.wait()

    monkeypatch.setattr(asyncio, "sleep", short)
    monkeypatch.setattr("observatory.runtime.runner.log.exception", lambda *_: None)
    asyncio.run(story())
    assert pauses[:2] == [0.5, 1.0] and set(pauses[6:]) == {10.0}
