"""Compares the outcomes of two steps: same end, success after a failure, figures that advance (S190, S193).

Law: pure, bounded, knows nothing of rounds.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from observatory.features.loops.call_fingerprint import StepFingerprint
from observatory.features.loops.tokenizer import likeness

LOOK_BACK: Final = 16  # calls a step is compared with
# Weaker evidence adds up more slowly: six steps instead of five.
SURE: Final = 1.0
LIKELY: Final = 0.8


def same_end(old: StepFingerprint, step: StepFingerprint) -> bool:
    """For calls in other words: both returned the same, or both nothing, in similar or few words."""
    if old.outcome == step.outcome:
        return True
    if not (step.is_barren and old.is_barren):
        return False
    few = (old.output_words | step.output_words).bit_count() <= 8
    return few or likeness(old.output_words, step.output_words) >= 0.4


def succeeds(step: StepFingerprint, old: StepFingerprint) -> bool:
    return old.status == "failure" and step.status == "success" and not step.is_barren


def again(step: StepFingerprint, old: StepFingerprint, like: float) -> float:
    """How likely it is that the same call ended the same way."""
    if old.outcome == step.outcome:
        return SURE
    if old.status != step.status and "success" in (old.status, step.status):
        return 0.0
    alike = likeness(old.output_words, step.output_words)
    if step.is_barren and old.is_barren:
        # Another file, another test case: another failure, unless nearly every word is the same.
        if alike >= (0.6 if step.output_names & ~old.output_names else 0.3):
            return SURE
        if step.output_names & ~old.output_names:
            return 0.0
        return LIKELY if likeness(old.text, step.text) >= like else 0.0
    return LIKELY if alike >= 0.6 and old.numbers == step.numbers else 0.0


def figures_advance(
    step: StepFingerprint, old: StepFingerprint, calls: deque[StepFingerprint], number: int
) -> bool:
    """The figures returned by the same call change in one direction over three calls; a mere count of
    failures does not count."""
    if old.numbers == step.numbers or len(old.numbers) != len(step.numbers):
        return False
    before = None
    for back in range(number + 1, min(len(calls), LOOK_BACK) + 1):
        if calls[-back].call == step.call:
            before = calls[-back]
            break
    if before is None or len(before.numbers) != len(step.numbers):
        return False
    for first, second, third in zip(before.numbers, old.numbers, step.numbers, strict=True):
        if first > second > third:
            return True
        if first < second < third and not (
            step.status == "failure" and third - second == second - first == 1
        ):
            return True
    return False
