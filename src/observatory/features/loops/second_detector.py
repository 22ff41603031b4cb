"""The second loop detector of ruling 17: does an agent repeat itself in this session without anything new?

Law: pure. A step is *stale* when in substance it repeats one of the last calls or thoughts and brings nothing
new. Stale steps add to a score, fresh ones subtract, progress (a new fact, a new child, figures that advance,
a retry that succeeds) resets it. A loop is entered when the score makes enough whole rounds, and left when
progress is seen or the pattern is broken for some steps. Only the last steps count, so folding them again
gives the same result. A verdict contains no text of a payload (rules S190 to S196).
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Final, Literal

import msgspec

from observatory.features.loops.call_fingerprint import FactFingerprint, StepFingerprint
from observatory.features.loops.outcomes import (
    LIKELY,
    LOOK_BACK,
    SURE,
    again,
    figures_advance,
    same_end,
    succeeds,
)
from observatory.features.loops.repetition import LONGER, ends_alike, is_monologue, is_repetition
from observatory.features.loops.tokenizer import likeness, novelty
from observatory.protocol.tenant_config import LoopSettings

WINDOW: Final = 20  # steps
# Steps to read again so that a new watch has the state the old one would have.
REPLAY: Final = 3 * WINDOW
FACTS: Final = 32
ASKED_ALIKE: Final = 0.6  # share of common words above which two questions count as one

Detector = Literal["fingerprint", "similarity", "monologue"]
# What a fresh step subtracts: turning to another item more than a step that merely differs.
_UNLIKE: Final = -1.0
_OTHER_ITEM: Final = -2.5
_EPSILON: Final = 1e-9


class LoopVerdict(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A loop was entered or left. `reason` is a sentence without any text of the steps."""

    kind: Literal["detected", "ended"]
    detector: Detector
    period: int
    occurrences: int
    likeness_pct: int
    since_seq: int
    tool: str | None
    reason: str


class StepMark(msgspec.Struct, frozen=True, gc=False):
    """The result for one step: fresh without a detector; `lag` is how many steps ago it occurred before."""

    seq: int
    detector: Detector | None
    weight: float
    lag: int
    likeness: float
    is_progress: bool
    again: int = 0  # call and outcome, of a step that failed
    rut: int = 0  # steps with the same outcome as this one


class LoopWatch:
    """The last steps of one agent in one session. Bounded: two windows of fingerprints and a few facts."""

    __slots__ = (
        "_call_marks",
        "_calls",
        "_calm_steps",
        "_facts",
        "_run",
        "_thought_marks",
        "_thought_run",
        "_thoughts",
        "active",
    )

    def __init__(self) -> None:
        self._calls: deque[StepFingerprint] = deque(maxlen=WINDOW)
        self._thoughts: deque[StepFingerprint] = deque(maxlen=WINDOW)
        self._call_marks: deque[StepMark] = deque(maxlen=WINDOW)
        self._thought_marks: deque[StepMark] = deque(maxlen=WINDOW)
        self._facts: deque[FactFingerprint] = deque(maxlen=FACTS)
        self._calm_steps = 0
        self._run = 0  # the last calls, with no progress and no other productive work among them
        self._thought_run = 0  # the last thoughts, with neither between them
        self.active: LoopVerdict | None = None

    def __len__(self) -> int:
        """Its size: steps and facts."""
        return len(self._calls) + len(self._thoughts) + len(self._facts)

    def push(
        self, seq: int, step: StepFingerprint, rules: LoopSettings, child: bool = False
    ) -> LoopVerdict | None:
        """Adds a step; `child`: it started an agent that was not there before."""
        if not rules.on:
            return self.left("the detector was switched off")
        progress = self._learns(step) or child
        if step.tool is not None and polls(step.tool, rules):
            return self.progressed(seq) if progress else None
        if step.tool is None:
            if not step.text:
                return self.progressed(seq) if progress else None
            mark = self._thought(seq, step, rules.likeness_pct / 100, progress)
            mark = self._check_monologue(step, mark, min(rules.rounds + 1, WINDOW))
            self._thought_marks.append(mark)
            marks = self._thought_marks
            if mark.is_progress:
                self._call_marks.append(mark)
                self._run = 0
        else:
            mark = self._call(seq, step, rules.likeness_pct / 100, progress)
            if step.status == "failure":
                mark = msgspec.structs.replace(mark, again=step.call << 32 | step.outcome)
            mark = self._check_repetition(step, mark, min(rules.rounds + 1, WINDOW))
            self._call_marks.append(mark)
            marks = self._call_marks
            if mark.detector is None:  # real work between thoughts: not a monologue
                self._thought_marks.append(mark)
                self._thought_run = 0
        return self._conclude(seq, step, mark, marks, rules)

    def progressed(self, seq: int) -> LoopVerdict | None:
        """This agent's work had a new result: the score is reset, a loop is left."""
        mark = StepMark(seq, None, 0.0, 0, 0.0, True)
        self._call_marks.append(mark)
        self._thought_marks.append(mark)
        self._run = self._thought_run = 0
        return self.left("it made progress")

    def _check_repetition(self, step: StepFingerprint, mark: StepMark, enough: int) -> StepMark:
        """A call that ends like the last ones, whatever it requested."""
        other = not self._calls or self._calls[-1].tool != step.tool
        self._calls.append(step)
        if mark.is_progress:
            self._run = self._thought_run = 0
        elif mark.detector is None and not step.is_barren and other:  # other, productive work
            self._run = 1
        else:
            self._run = min(self._run + 1, WINDOW)
        if self._run < enough or not (step.is_barren or step.input_words):
            return mark
        if self.active is not None and mark.detector is not None:
            return mark
        alike = [
            old for old in islice(self._calls, len(self._calls) - self._run, None) if ends_alike(old, step)
        ]
        if len(alike) < enough or all(old.call == step.call for old in alike):
            return mark
        if is_repetition(alike[-enough:]) or (
            len(alike) > enough and is_repetition(alike[-max(LONGER, enough) :])
        ):
            return _repeating_mark(mark, "similarity", len(alike))
        return mark

    def _check_monologue(self, step: StepFingerprint, mark: StepMark, enough: int) -> StepMark:
        """A thought that adds no words to the last ones."""
        self._thoughts.append(step)
        self._thought_run = 0 if mark.is_progress else min(self._thought_run + 1, WINDOW)
        if self.active is not None and mark.detector is not None:
            return mark
        if self._thought_run >= enough and is_monologue(list(self._thoughts)[-enough:]):
            return _repeating_mark(mark, "monologue", enough)
        return mark

    def _conclude(
        self, seq: int, step: StepFingerprint, mark: StepMark, marks: deque[StepMark], rules: LoopSettings
    ) -> LoopVerdict | None:
        if self.active is not None:
            if mark.is_progress:
                return self.left("it made progress")
            self._calm_steps = 0 if mark.detector else self._calm_steps + 1
            if self._calm_steps >= rules.calm_steps:
                return self.left(
                    f"{self._calm_steps} {'step' if self._calm_steps == 1 else 'steps'} broke the pattern"
                )
            return None
        if mark.detector is None:
            return None
        found = (
            _scored_rounds(marks, rules)
            or _repeated_failure(mark, marks, rules.rounds + 1)
            or _repetition_of(mark, marks)
        )
        if found is None:
            return None
        period, occurrences, since = found
        detector = _main_detector(marks, since)
        self._calm_steps = 0
        self.active = LoopVerdict(
            kind="detected",
            detector=detector,
            period=period,
            occurrences=occurrences,
            likeness_pct=round(mark.likeness * 100),
            since_seq=since,
            tool=step.tool,
            reason=_sentence(detector, period, occurrences, step),
        )
        return self.active

    def left(self, why: str) -> LoopVerdict | None:
        """Ends the loop, if there is one; `why` becomes part of the reason."""
        was, self.active, self._calm_steps = self.active, None, 0
        if was is None:
            return None
        # Steps that led into this loop must not lead into the next one.
        self._run = self._thought_run = 0
        self._call_marks.clear()
        self._thought_marks.clear()
        return msgspec.structs.replace(was, kind="ended", reason=f"The loop ended: {why}.")

    def _learns(self, step: StepFingerprint) -> bool:
        """Whether it has a new fact, not a rewording; of a failing step only one unlike all before."""
        is_new = False
        for fact in step.facts:
            barren = fact.is_barren or step.status in ("failure", "skipped")
            best, known, marks = 0.0, False, 0
            for old in self._facts:
                known = known or old.print == fact.print
                best = max(best, likeness(old.words, fact.words))
                marks |= old.marks
            if not known:
                self._facts.append(fact)
                is_new = (
                    is_new or best < (0.3 if barren else 0.5) or (not barren and bool(fact.marks & ~marks))
                )
        return is_new

    def _thought(self, seq: int, step: StepFingerprint, like: float, progress: bool) -> StepMark:
        if progress:
            return StepMark(seq, None, 0.0, 0, 0.0, True)
        best, lag, vocabulary, marks = 0.0, 0, 0, 0
        for number, old in enumerate(reversed(self._thoughts), 1):
            if number > 8:
                break
            alike = likeness(old.text, step.text)
            if alike > best:
                best = alike
            if not lag and alike >= like / 2:
                lag = number
            vocabulary |= old.text
            marks |= old.marks
        if step.marks & ~marks and best < 0.8:  # it concerns another item
            return StepMark(seq, None, _UNLIKE, 0, best, False)
        if best >= like or (best >= like / 2 and novelty(step.text, vocabulary) <= 0.4):
            return StepMark(seq, "monologue", SURE if best >= 0.7 else LIKELY, lag, best, False)
        return StepMark(seq, None, _UNLIKE, 0, best, False)

    def _call(self, seq: int, step: StepFingerprint, like: float, progress: bool) -> StepMark:
        """Stale if it repeats an earlier call, or asks the same of the same items in other words."""
        items = words = texts = pages = marks = 0
        best, lag, near = 0.0, 0, 0
        seen = used = False
        barren = step.is_barren
        for number, old in enumerate(reversed(self._calls), 1):
            if number > LOOK_BACK:
                break
            marks |= old.marks
            if old.call == step.call:
                if not seen:
                    seen = True
                    if succeeds(step, old) or figures_advance(step, old, self._calls, number):
                        return StepMark(seq, None, 0.0, 0, 0.0, True)
                if not progress:
                    weight = again(step, old, like)
                    if weight and (barren or not step.marks & ~marks or step.marks == old.marks):
                        alike = likeness(old.text, step.text)
                        return StepMark(seq, "fingerprint", weight, near or number, alike, False)
            used = used or old.tool == step.tool
            if old.tool == step.tool or (old.is_barren and barren):
                items |= old.items
                pages |= old.pages
                words |= old.input_words
                texts |= old.text
                if old.status == step.status and same_end(old, step):
                    alike = likeness(old.text | old.input_words, step.text | step.input_words)
                    if barren and old.tool == step.tool:
                        asked = likeness(old.input_words, step.input_words)
                        if asked >= ASKED_ALIKE and alike < like:
                            alike = like
                    if not near and alike >= like * 0.7 and old.tool == step.tool and old.items == step.items:
                        near = number
                    if alike > best + 0.05 and (best < like or not lag):
                        best, lag = alike, number
        if progress:
            return StepMark(seq, None, 0.0, 0, 0.0, True)
        if step.items & ~items or (step.pages & ~pages and not step.is_past_end):
            return StepMark(seq, None, _OTHER_ITEM, 0, best, False)
        if not lag or not used:  # a tool not used before is another approach
            return StepMark(seq, None, _UNLIKE, 0, best, False)
        novel, new = novelty(step.input_words, words | texts), novelty(step.text, texts)
        if barren:
            # An empty answer is not a failure: only the same words again are the same question.
            max_novel = 0.5 if step.status == "failure" else 0.25
            reworded = novel <= max_novel and (best >= like or (best >= like / 2 and new <= 0.4))
        else:
            reworded = novel <= 0.25 and best >= like and new <= 0.4 and not step.marks & ~marks
        if step.status != "failure" and not step.input_words and not step.pages & ~pages:
            reworded = False  # other values, not other words
        if reworded:
            return StepMark(seq, "similarity", SURE if best >= 0.7 else LIKELY, near or lag, best, False)
        return StepMark(seq, None, _UNLIKE, 0, best, False)


def polls(tool: str, rules: LoopSettings) -> bool:
    """Whether it is on the allow-list: such a tool may be called any number of times."""
    return any(
        tool == word or (word[-1] == "*" and tool.startswith(word[:-1])) for word in rules.polling_tools
    )


def _scored_rounds(marks: deque[StepMark], rules: LoopSettings) -> tuple[int, int, int] | None:
    """(period, rounds, since) when the score over the window is a loop."""
    score, count, since = 0.0, 0, 0
    lags: list[int] = []
    for mark in marks:
        if mark.is_progress:
            score, count, lags = 0.0, 0, []
        elif mark.detector is None:
            score += mark.weight
            if score <= 0:
                score, count, lags = 0.0, 0, []
        else:
            if not count:
                since = mark.seq
            score += mark.weight
            lags.append(mark.lag)
            count += 1
    if not count:
        return None
    lag = sum(lags) / count
    need = rules.rounds - 1.0
    if lag > 1.2:
        need = max(need, min((rules.cycle_rounds - 1) * lag, WINDOW * 0.75))
    if score + _EPSILON < need:
        return None
    period = max(lags, key=lags.count)
    return period, count // period + 1, since


def _repeated_failure(mark: StepMark, marks: deque[StepMark], enough: int) -> tuple[int, int, int] | None:
    """The same call fails the same way time after time, whatever else is done in between."""
    if not mark.again or mark.detector != "fingerprint":
        return None
    times, since = 0, mark.seq
    for old in reversed(marks):
        if old.is_progress:
            break
        if old.again == mark.again:
            times, since = times + 1, old.seq
    return (mark.lag, times, since) if times >= enough else None


def _repeating_mark(mark: StepMark, detector: Detector, times: int) -> StepMark:
    return StepMark(
        mark.seq,
        mark.detector or detector,
        max(mark.weight, 0.0),
        mark.lag or 1,
        mark.likeness,
        False,
        mark.again,
        times,
    )


def _repetition_of(mark: StepMark, marks: deque[StepMark]) -> tuple[int, int, int] | None:
    return (1, mark.rut, marks[-min(mark.rut, len(marks))].seq) if mark.rut else None


def _main_detector(marks: deque[StepMark], since: int) -> Detector:
    """The detector that matched most of the pattern."""
    votes: dict[Detector, int] = {}
    for mark in marks:
        if mark.detector is not None and mark.seq >= since:
            votes[mark.detector] = votes.get(mark.detector, 0) + 1
    return max(votes, key=lambda name: votes[name])


def _sentence(detector: Detector, period: int, occurrences: int, step: StepFingerprint) -> str:
    if detector == "monologue":
        return f"{occurrences} thoughts in the same words, with no call and nothing new in between."
    ended = "without success" if step.is_barren else "with the same result"
    if detector == "similarity":
        return f"{occurrences} calls that ask the same in other words, {ended}, with nothing learned."
    if period == 1:
        return f"The same call {occurrences} times, {ended}, with nothing learned."
    return f"The same {period} calls in turn, {occurrences} rounds, {ended}, with nothing learned."
