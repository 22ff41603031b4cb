"""`python -m bench.loops`: precision, recall and F1 of the loop detector by family, and its cost.

A trajectory counts as found when the detector enters a loop for any of its agents; the seed's ratio alone is
scored beside it. Three parts: `tuning`, which the detector's author looks at, `opened`, which was untouched
until it had been scored once, and `untouched`, which nobody who touches the detector may open: whoever tunes
runs with `--tuning`, which leaves it unread.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.report import Figure, Report
from bench.trajectories.format import Step, Trajectory, opened, untouched
from bench.trajectories.tuning import tuning
from observatory.features.loops import call_fingerprint as fingerprint
from observatory.features.loops import tokenizer as wording
from observatory.features.loops.second_detector import LoopVerdict, LoopWatch
from observatory.protocol.tenant_config import LoopSettings

RATIO_WINDOW, RATIO_LOOP = 5, 0.25
TUNING_ONLY = "--tuning"
F1_ASKED, PRECISION_ASKED, MICROSECONDS_ASKED = 0.90, 0.95, 30.0


class Score(NamedTuple):
    hits: int
    misses: int
    false_alarms: int

    @property
    def precision(self) -> float:
        named = self.hits + self.false_alarms
        return self.hits / named if named else 1.0

    @property
    def recall(self) -> float:
        real = self.hits + self.misses
        return self.hits / real if real else 1.0

    @property
    def f1(self) -> float:
        both = 2 * self.hits + self.false_alarms + self.misses
        return 2 * self.hits / both if both else 1.0


def prints(step: Step) -> fingerprint.StepFingerprint:
    return fingerprint.fingerprint(
        step.intent,
        step.reasoning,
        step.tool,
        step.tool_input,
        step.output,
        step.status,
        step.added_to_memory,
    )


def verdicts(one: Trajectory) -> list[tuple[int, str, LoopVerdict]]:
    """What the detector says while the steps come in: (number of the step, agent, verdict)."""
    base = LoopSettings()
    rules = LoopSettings(polling_tools=base.polling_tools + tuple(one.polling_tools))
    watches: dict[str, LoopWatch] = {}
    said = []
    for number, step in enumerate(one.steps):
        watch = watches.setdefault(step.agent, LoopWatch())
        verdict = watch.push(number, prints(step), rules, bool(step.children))
        if verdict is not None:
            said.append((number, step.agent, verdict))
    return said


def detector(one: Trajectory) -> bool:
    return any(verdict.kind == "detected" for _, _, verdict in verdicts(one))


def ratio(one: Trajectory) -> bool:
    """The seed's rule: of the session's last five (intent, tool, status) fewer than a quarter differ."""
    window: deque[tuple[str | None, str | None, str]] = deque(maxlen=RATIO_WINDOW)
    for step in one.steps:
        if step.intent is None:
            continue
        window.append((step.intent, step.tool, step.status))
        if len(window) >= 3 and len(set(window)) / len(window) < RATIO_LOOP:
            return True
    return False


def scored(
    trajectories: Sequence[Trajectory], finds: Callable[[Trajectory], bool]
) -> tuple[Score, Counter[str]]:
    """The score, and how many of each family were judged rightly."""
    hits = misses = alarms = 0
    right: Counter[str] = Counter()
    for one in trajectories:
        found, real = finds(one), one.label == "loop"
        right[one.family] += found == real
        hits += found and real
        misses += real and not found
        alarms += found and not real
    return Score(hits, misses, alarms), right


def microseconds(trajectories: Sequence[Trajectory], rounds: int = 5) -> float:
    """Of one message: its prints made and pushed. The best of some rounds: the machine is shared."""
    rules, best = LoopSettings(), float("inf")
    for _ in range(rounds):
        spent, count = 0.0, 0
        for one in trajectories:
            watch = LoopWatch()
            wording.clear_cache()  # nothing is remembered from the round before
            began = time.process_time()
            for number, step in enumerate(one.steps):
                watch.push(number, prints(step), rules)
            spent += time.process_time() - began
            count += len(one.steps)
        best = min(best, spent / count * 1e6)
    return best


def heavy() -> Trajectory:
    """The worst that comes: 100 KB in every field, another one each time."""
    filler = " ".join(f"word{number} /path/{number}.txt 2026-11-15T10:00:00Z" for number in range(2_500))
    steps = [
        Step(
            agent="agt_heavy",
            intent=f"{number} {filler}",
            reasoning=[f"{filler} {number}"] * 8,
            tool="write_file",
            tool_input='{"path": "' + str(number) + '", "content": "' + filler + '"}',
            output=f"{number} {filler}",
            status="success",
            added_to_memory=[f"{number} {filler}"] * 8,
        )
        for number in range(60)
    ]
    return Trajectory(name="heavy", family="heavy", label="normal", steps=steps)


def received(report: Report, part: str, trajectories: list[Trajectory], show_families: bool = True) -> None:
    mine, right = scored(trajectories, detector)
    seeds, seeds_right = scored(trajectories, ratio)
    report.say(
        f"  {part}: {len(trajectories)} trajectories, rightly judged by the detector | by the seed's ratio"
    )
    families = Counter((one.label, one.family) for one in trajectories)
    for (label, family), count in sorted(families.items()):
        if show_families:
            report.say(
                f"    {label:6} {family:32} {right[family]:3}/{count:<3} | {seeds_right[family]:3}/{count}"
            )
    for name, score in (("detector", mine), ("seed's ratio alone", seeds)):
        report.say(
            f"    {name:20} precision {score.precision:.3f}  recall {score.recall:.3f}  F1 {score.f1:.3f}"
            f"  ({score.hits} found, {score.misses} missed, {score.false_alarms} false alarms)"
        )
    report.details[f"loops {part}"] = {
        "detector": mine._asdict(),
        "ratio": seeds._asdict(),
        "families": {family: f"{right[family]}/{count}" for (_, family), count in families.items()},
    }
    report.add(
        Figure(f"loops, {part}: F1", "%", mine.f1 * 100, F1_ASKED * 100, note=f"(ratio alone {seeds.f1:.2f})")
    )
    report.add(Figure(f"loops, {part}: precision", "%", mine.precision * 100, PRECISION_ASKED * 100))


def loops(report: Report, folder: Path) -> None:
    """`folder` is not needed: nothing is written."""
    tuned = tuning()
    received(report, "tuning", tuned)
    received(report, "opened", opened())
    fresh = [] if TUNING_ONLY in sys.argv else untouched()
    if fresh:
        received(report, "untouched", fresh)
    else:
        report.say("  untouched: not there, or not asked for")
    report.add(Figure("loops: a message", "µs", microseconds(tuned), MICROSECONDS_ASKED, is_limit=True))
    report.add(Figure("loops: a message of 100 KB fields", "µs", microseconds([heavy()])))


def wrong(trajectories: Sequence[Trajectory]) -> None:
    """Which ones were misjudged: for tuning, so never of the untouched part."""
    for one in trajectories:
        said = verdicts(one)
        if any(verdict.kind == "detected" for _, _, verdict in said) != (one.label == "loop"):
            print(f"  {one.label:6} {one.name}: {said or 'nothing said'} of {len(one.steps)} steps")


def main() -> None:
    if "--wrong" in sys.argv:
        return wrong(tuning() + opened())
    report = Report(quick=False)
    loops(report, Path())
    report.say("\n" + report.table())


if __name__ == "__main__":
    main()
