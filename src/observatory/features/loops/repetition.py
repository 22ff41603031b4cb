"""Repetition: the same end time after time, whatever is requested (rules S192, S193).

Law: pure. Compares the last calls that ended in one way, and the last thoughts. An agent that works through
many items has a new name in every call; an agent that is stuck repeats itself, or only varies a quantity. How
much may be new depends on what the calls returned: least after answers, most after failures.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from observatory.features.loops.call_fingerprint import StepFingerprint
from observatory.features.loops.tokenizer import likeness, novelty

LONGER: Final = 9  # a second check over more calls: words recur after some rounds
SAME_QUESTION: Final = 0.6  # share of words
NOTHING_NEW: Final = 0.1  # share of words

Ending = Literal["failed", "empty", "answered"]


class RepetitionBounds(NamedTuple):
    """The upper bounds of novelty, and how many of the calls must repeat an earlier question."""

    asked: float  # mean share of what is new in the inputs
    repeated: float
    answers: float  # mean share of words that are new in the outputs


# The middle of the range in which results are stable on the tuning trajectories.
BOUNDS: Final[dict[Ending, RepetitionBounds]] = {
    "failed": RepetitionBounds(0.4, 0.0, 0.12),
    "empty": RepetitionBounds(0.35, 0.4, 0.12),
    "answered": RepetitionBounds(0.25, 0.6, 0.12),
}
# For thoughts: maximum mean share of new words, minimum mean likeness to an earlier one.
CIRCLING: Final = (0.33, 0.4)


def ends_alike(old: StepFingerprint, step: StepFingerprint) -> bool:
    """For one tool and one kind of end; the same failure of another tool too."""
    if old.status != step.status or old.is_barren != step.is_barren:
        return False
    return old.tool == step.tool or (step.status == "failure" and old.outcome == step.outcome)


def is_repetition(calls: Sequence[StepFingerprint]) -> bool:
    """Whether calls that end alike, oldest first, make no progress."""
    first, last = calls[0], calls[-1]
    ending: Ending = "failed" if last.status == "failure" else "empty" if last.is_barren else "answered"
    bounds, count = BOUNDS[ending], len(calls) - 1
    known, named, outputs, sizes = first.asked | first.text, first.named, first.output_words, first.sizes
    if ending == "answered" and _is_new(calls):
        return False
    asked = answers = measured = 0.0
    repeated = items = 0
    for number in range(1, len(calls)):
        step = calls[number]
        new = novelty(step.asked, known)
        asked += new
        answers += novelty(step.output_words, outputs)
        if asked > bounds.asked * count or answers > bounds.answers * count:
            return False
        measured += novelty(step.sizes, sizes)
        items += step.named & ~(named | known) != 0
        if (
            bounds.repeated
            and new <= NOTHING_NEW
            and not step.values & ~known
            and _asked_before(step, calls[:number])
        ):
            repeated += 1
        known |= step.asked | step.text
        named |= step.named
        outputs |= step.output_words
        sizes |= step.sizes
    if repeated < bounds.repeated * count:
        return False
    if ending == "failed":
        if (items > count / 2 and not _same_subject(calls)) or (measured and _counts_up(calls)):
            return False  # another item each time
        # Something has to stay the same: numbers alone may be items.
        return all(step.asked for step in calls) or 0 < measured <= count / 2
    if not outputs or not all(step.asked for step in calls):
        return False
    if ending == "empty":  # a quantity that moves in one direction may still lead somewhere
        return not measured or _goes_back(calls)
    return not measured and all(step.input_words for step in calls)


def is_monologue(thoughts: Sequence[StepFingerprint]) -> bool:
    """Thoughts that add almost no words, and no name of another item, to those before them."""
    known, marks = thoughts[0].text, thoughts[0].marks
    new = like = 0.0
    count = len(thoughts) - 1
    most = CIRCLING[0] * count
    for number in range(1, len(thoughts)):
        step = thoughts[number]
        if step.marks & ~marks:
            return False
        new += novelty(step.text, known)
        if new > most:
            return False
        like += max(likeness(old.text, step.text) for old in thoughts[:number])
        known |= step.text
    return like >= CIRCLING[1] * count


def _is_new(calls: Sequence[StepFingerprint]) -> bool:
    """Whether the last call names something the others do not: the usual case, cheap to detect."""
    last, values = calls[-1], 0
    for step in calls[:-1]:
        values |= step.values | step.sizes | step.asked
    return (last.values | last.sizes) & ~values != 0


def _same_subject(calls: Sequence[StepFingerprint]) -> bool:
    """Whether the subject stays, and not only it: what is new names the call, not the subject."""
    values = named = -1
    for step in calls:
        values &= step.values
        named &= step.named
    return named != 0 and values.bit_count() >= 2


def _asked_before(step: StepFingerprint, calls: Sequence[StepFingerprint]) -> bool:
    return any(likeness(old.asked, step.asked) >= SAME_QUESTION for old in calls)


def _counts_up(calls: Sequence[StepFingerprint]) -> bool:
    """Consecutive numbers: 1, 2, 3."""
    return all(after.scale - before.scale == 1 for before, after in pairwise(calls))


def _goes_back(calls: Sequence[StepFingerprint]) -> bool:
    """Whether its quantity goes up and down again, or the reverse."""
    ways = {after.scale > before.scale for before, after in pairwise(calls) if after.scale != before.scale}
    return len(ways) == 2
