"""Circles found by the analyst: once, with the number that made them known, in any batches."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.analysis import Analyst
from tests.contract.conftest import Harness
from tests.samples import decision_log, envelope


def log(step: str, *parents: str) -> dict[str, Any]:
    meta = {"step_id": step, "session_id": "s", "parent_step_id": None, "parent_step_ids": list(parents)}
    return decision_log(meta=meta)


def circles(analyst: Analyst) -> list[tuple[int, int]]:
    """(number that made it known, number of the step whose parent was refused)."""
    found = analyst.harness.read(analyst.derived.findings("tnt_default", 0, 100))
    return [(one.seq, one.body["message_sequence_number"]) for one in found if one.kind == "cycle"]


@pytest.mark.parametrize("page", [1, 2, 500])
def test_a_circle_is_found_once_and_a_late_parent_is_none_s207(harness: Harness, page: int) -> None:
    """S207: a late parent that closes nothing is no finding; whole and folded bit by bit it is the same."""
    sent = harness.send(
        log("late-child", "late"),
        log("a", "c"),
        log("b", "a"),
        log("late", "b"),
        log("c", "b"),
        log("own", "own"),
        log("d", "c"),
    )
    number = {verdict.answer.step_id: verdict.answer.sequence_number for verdict in sent}
    with Analyst(harness) as analyst:
        analyst.catch_up(page=page)
        expected = [(number["c"], number["a"]), (number["own"], number["own"])]
        assert circles(analyst) == expected
        (more,) = harness.send(log("e", "d"))
        assert more.code == 202
        analyst.catch_up(page=page)
        assert circles(analyst) == expected


@pytest.mark.parametrize("page", [1, 500])
def test_a_circle_of_spans_is_found_too_s207(harness: Harness, page: int) -> None:
    """S207: envelopes that name each other's span."""
    spans = {"metadata": {"session_id": "s"}}
    one = envelope("text", span_id="a" * 16, parent_span_id="b" * 16, **spans)
    other = envelope("text", span_id="b" * 16, parent_span_id="a" * 16, **spans)
    first, second = (verdict.answer.sequence_number for verdict in harness.send(one, other))
    with Analyst(harness) as analyst:
        analyst.catch_up(page=page)
        assert circles(analyst) == [(second, first)]
