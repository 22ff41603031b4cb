"""Alignment of two sequences: nothing lost, nothing crossed, bounded however long they are."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from observatory.features.compare import align as module
from observatory.features.compare.align import StepFeatures, align

marks = st.lists(
    st.builds(
        StepFeatures,
        st.integers(0, 6),
        st.sampled_from(["reader", "writer"]),
        st.sampled_from(["search", "write", "ask"]),
        st.frozensets(st.sampled_from(["the", "report", "rates"]), max_size=2),
    ),
    max_size=25,
)


def held(
    left: list[StepFeatures], right: list[StepFeatures], pairs: list[tuple[int | None, int | None]]
) -> None:
    assert [i for i, _ in pairs if i is not None] == list(range(len(left)))
    assert [j for _, j in pairs if j is not None] == list(range(len(right)))


@settings(max_examples=200)
@given(marks, marks)
def test_every_step_stands_once_and_in_order_s216(
    left: list[StepFeatures], right: list[StepFeatures]
) -> None:
    """S216: each side's steps appear each once, in their order."""
    held(left, right, align(left, right).pairs)


@settings(max_examples=100)
@given(marks, marks)
def test_a_narrow_band_loses_nothing_either_s218(left: list[StepFeatures], right: list[StepFeatures]) -> None:
    """S218: pairs may be missed, steps never."""
    pairs = [(0 + i, j) for i, j in module._by_similarity(left, right, 2)] if left and right else []
    assert pairs == sorted(pairs)
    held(left, right, module._filled(pairs, len(left), len(right)))


@given(marks)
def test_a_sequence_is_aligned_with_itself_s216(left: list[StepFeatures]) -> None:
    """S216: step for step."""
    assert align(left, left).pairs == [(place, place) for place in range(len(left))]


def test_ten_thousand_by_ten_thousand_is_banded_and_says_so_s218() -> None:
    """S218: no step occurs once, none equals another side's: only the band bounds the work."""
    left = [StepFeatures(n % 3, "reader", "search", frozenset({"the"})) for n in range(10_000)]
    right = [StepFeatures(n % 3 + 3, "reader", "search", frozenset({"the"})) for n in range(10_000)]
    found = align(left, right)
    assert not found.exact and found.band is not None and found.band >= 8
    held(left, right, found.pairs)
    assert sum(1 for i, j in found.pairs if i is not None and j is not None) > 9_900


def test_an_inserted_step_does_not_shift_the_rest_s216() -> None:
    """S216: what follows is paired again."""
    left = [StepFeatures(n, "reader", f"tool{n}", frozenset()) for n in range(6)]
    right = [*left[:3], StepFeatures(99, "writer", "other", frozenset()), *left[3:]]
    pairs = align(left, right).pairs
    assert pairs == [(0, 0), (1, 1), (2, 2), (None, 3), (3, 4), (4, 5), (5, 6)]
