"""The same end time after time, whatever is asked: a rut (rules S192, S193).

Law: pure. Looks at the last calls that ended in one way, and at the last thoughts. Whoever works through
many items brings a new name with every call; whoever is stuck says again what it has said, or only turns a
quantity up and down. How much new there may be depends on what the calls brought: least after answers, most
after failures.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from observatory.features.loops.call_fingerprint import Step
from observatory.features.loops.tokenizer import likeness, novelty

LONGER: Final = 9  # a second look at more calls: words come back after some rounds
SAME_QUESTION: Final = 0.6  # share of words
NOTHING_NEW: Final = 0.1  # share of words

Ending = Literal["failed", "empty", "answered"]


class Bounds(NamedTuple):
    """What a rut may bring at most, and how many of its calls must ask what was asked before."""

    asked: float  # mean share of what is new in the inputs
    repeated: float
    answers: float  # mean share of words that are new in the outputs


# In the middle of where nothing changes on the trajectories that were tuned on.
BOUNDS: Final[dict[Ending, Bounds]] = {
    "failed": Bounds(0.4, 0.0, 0.12),
    "empty": Bounds(0.35, 0.4, 0.12),
    "answered": Bounds(0.25, 0.6, 0.12),
}
# Of thoughts: mean share of new words at most, mean likeness to an earlier one at least.
CIRCLING: Final = (0.33, 0.4)


def ends_alike(old: Step, step: Step) -> bool:
    """Of one tool and one kind of end; the same failure of another tool too."""
    if old.status != step.status or old.is_barren != step.is_barren:
        return False
    return old.tool == step.tool or (step.status == "failure" and old.outcome == step.outcome)


def is_rut(calls: Sequence[Step]) -> bool:
    """Of calls that end alike, oldest first: do they get nowhere?"""
    first, last = calls[0], calls[-1]
    ending: Ending = "failed" if last.status == "failure" else "empty" if last.is_barren else "answered"
    bounds, count = BOUNDS[ending], len(calls) - 1
    known, named, heard, sizes = first.asked | first.text, first.named, first.output_words, first.sizes
    if ending == "answered" and _is_new(calls):
        return False
    asked = answers = measured = 0.0
    repeated = items = 0
    for number in range(1, len(calls)):
        step = calls[number]
        new = novelty(step.asked, known)
        asked += new
        answers += novelty(step.output_words, heard)
        if asked > bounds.asked * count or answers > bounds.answers * count:
            return False
        measured += novelty(step.sizes, sizes)
        items += step.named & ~(named | known) != 0
        if (
            bounds.repeated
            and new <= NOTHING_NEW
            and not step.values & ~known
            and _said_before(step, calls[:number])
        ):
            repeated += 1
        known |= step.asked | step.text
        named |= step.named
        heard |= step.output_words
        sizes |= step.sizes
    if repeated < bounds.repeated * count:
        return False
    if ending == "failed":
        if (items > count / 2 and not _holds_on(calls)) or (measured and _counts_up(calls)):
            return False  # another thing each time
        # Something has to stay: numbers alone may be items.
        return all(step.asked for step in calls) or 0 < measured <= count / 2
    if not heard or not all(step.asked for step in calls):
        return False
    if ending == "empty":  # what moves on in one direction may still come to something
        return not measured or _turns(calls)
    return not measured and all(step.input_words for step in calls)


def circles(thoughts: Sequence[Step]) -> bool:
    """Thoughts that add hardly a word, and nothing that names another item, to those before them."""
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


def _is_new(calls: Sequence[Step]) -> bool:
    """The last of them names something the others do not: the usual case, seen at once."""
    last, values = calls[-1], 0
    for step in calls[:-1]:
        values |= step.values | step.sizes | step.asked
    return (last.values | last.sizes) & ~values != 0


def _holds_on(calls: Sequence[Step]) -> bool:
    """The thing that is worked on stays, and not it alone: what is new names the call, not the thing."""
    values = named = -1
    for step in calls:
        values &= step.values
        named &= step.named
    return named != 0 and values.bit_count() >= 2


def _said_before(step: Step, calls: Sequence[Step]) -> bool:
    return any(likeness(old.asked, step.asked) >= SAME_QUESTION for old in calls)


def _counts_up(calls: Sequence[Step]) -> bool:
    """One after the other: 1, 2, 3."""
    return all(after.scale - before.scale == 1 for before, after in pairwise(calls))


def _turns(calls: Sequence[Step]) -> bool:
    """Its quantity goes up and comes down again, or the other way round."""
    ways = {after.scale > before.scale for before, after in pairwise(calls) if after.scale != before.scale}
    return len(ways) == 2
