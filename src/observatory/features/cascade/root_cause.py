"""Possible root causes of a failure: a step's ancestors, ranked by signs in the record (rules S267–S268).

It ranks, it proves nothing, and no model is used. Each sign has a fixed number of points and a sentence; of
equal ones the nearer comes first. Ancestors are followed over causes, memory and messages by shortest paths.
Pure: sessions are fed in as they are requested.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping
from operator import itemgetter
from statistics import median
from typing import Final, NamedTuple

from observatory.features.cascade.cascade import Kind
from observatory.features.cascade.types_rows import LocatedStep, StepSigns, Upstream

LINKS: Final[dict[str, Kind]] = {"declared": "parent", "inferred": "inferred", "span": "span"}
USES: Final[dict[str, Kind]] = {"declared": "read", "exact": "exact", "near": "near"}
PLACE_BITS: Final = 18
LOOP: Final = 0.25  # the seed's threshold of a loop
SPIKE: Final = 5.0  # times the usual cost
NEAR_MINUTES: Final = 2  # an alert this long before a step, or in the same minute, counts as a sign
POINTS: Final = {
    "failed": 40.0,
    "refused": 35.0,
    "false_fact": 40.0,
    "first": 25.0,
    "loop": 15.0,
    "violation": 15.0,
    "rewritten": 12.0,
    "low_confidence": 10.0,
    "alert": 10.0,
    "cost": 8.0,
    "told": 6.0,
    "root": 3.0,
}
PER_HOP: Final = 0.5
FARTHEST: Final = 20  # hops that count against a candidate


class ExternalSigns(NamedTuple):
    """Signs that are not in the steps themselves."""

    false_steps: Mapping[int, str]  # step that added a fact marked false -> who marked it
    commands: Mapping[int, str]  # message an operator changed -> the command
    prompted: Collection[int]  # steps right after an operator's prompt
    troubles: Mapping[tuple[int, int], tuple[int, int]]  # (minute, agent) -> violations, alerts
    low_confidence: float


class CauseCandidate(NamedTuple):
    seq: int
    score: float
    distance: int
    reasons: tuple[tuple[str, str], ...]  # (sign, sentence)
    path: tuple[tuple[int, str], ...]  # from it to the failed step: (step, kind of the next edge)


class Ancestry:
    """Feed it the sessions in `wanted` and resolve `unknown_*` with `place`, until both are empty."""

    def __init__(self, seq: int, session_no: int) -> None:
        self.target = seq
        self.steps: dict[int, StepSigns] = {}
        self.wanted: set[int] = {session_no}
        self.loaded: set[int] = set()
        self.unknown_keys: set[int] = set()
        self.unknown_steps: set[int] = set()
        self.distance: dict[int, int] = {}
        self._onward: dict[int, tuple[int, str]] = {}
        self._links: dict[int, list[tuple[int, str]]] = {}
        self._uses: dict[int, list[tuple[int, str]]] = {}
        self._mail: dict[tuple[int, int], list[int]] = {}
        self._turns: dict[tuple[int, int], list[int]] = {}
        self._names: dict[int, int] = {}
        self._spans: dict[tuple[int, int], list[int]] = {}
        self._homes: dict[int, int] = {}
        self._gone: set[int] = set()  # keys and numbers that were requested before

    def feed(self, up: Upstream, sessions: set[int]) -> None:
        self.loaded |= sessions
        self.wanted -= sessions
        for row in sorted(up.steps, key=itemgetter(0)):
            seq = row[0]
            if seq not in self.steps:
                self.steps[seq] = row
                self._names[row[1]] = seq
                self._spans.setdefault((row[2], row[3]), []).append(seq)
                self._turns.setdefault((row[3], row[4]), []).append(seq)
                if row[5] and row[5] != row[4] and row[6] == "forwarded":
                    self._mail.setdefault((row[3], row[5]), []).append(seq)
            if row[13] is not None and row[14] is not None:
                self._links.setdefault(seq, []).append((row[13], row[14]))
        for seq, fact_id, how, _ in up.uses:
            self._uses.setdefault(seq, []).append((fact_id >> PLACE_BITS, USES.get(how, "near")))
        self._walk()

    def place(self, spots: Collection[LocatedStep]) -> None:
        """Where steps of other sessions are; unknown ones are left out."""
        for spot in spots:
            self._names.setdefault(spot.name_key, spot.seq)
            self._homes[spot.seq] = spot.session_no
        self._gone |= self.unknown_keys | self.unknown_steps
        self._walk()

    def _walk(self) -> None:
        """Breadth first from the failed step, so that every path is a shortest one."""
        self.unknown_keys, self.unknown_steps = set(), set()
        self.distance, self._onward = {self.target: 0}, {}
        level = [self.target]
        while level:
            before: list[int] = []
            for seq in level:
                for above, kind in self._above(seq):
                    if above in self.distance:
                        continue
                    if above in self.steps:
                        self.distance[above] = self.distance[seq] + 1
                        self._onward[above] = (seq, kind)
                        before.append(above)
                    elif above not in self._homes:
                        self.unknown_steps.add(above)
                    elif self._homes[above] not in self.loaded:
                        self.wanted.add(self._homes[above])
            level = before
        self.unknown_keys -= self._gone
        self.unknown_steps -= self._gone

    def _above(self, seq: int) -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        declared, session_no = False, self.steps[seq][3] if seq in self.steps else 0
        for key, how in self._links.get(seq, ()):
            kind: Kind = LINKS.get(how, "parent")
            declared = declared or how != "inferred"
            parent: int | None = None
            if how == "span":
                having = self._spans.get((key, session_no), [])
                place = bisect_left(having, seq)
                parent = having[place - 1] if place else having[0] if having else None
            else:
                parent = self._names.get(key)
                if parent is None:
                    self.unknown_keys.add(key)
            if parent is not None and parent != seq:
                found.append((parent, kind))
        found += [(above, kind) for above, kind in self._uses.get(seq, ()) if above != seq]
        if not declared and seq in self.steps:
            found += [(above, "message") for above in self._letters(seq)]
        return found

    def _letters(self, seq: int) -> list[int]:
        """Messages sent to its agent there since the agent's previous step."""
        row = self.steps[seq]
        pair = (row[3], row[4])
        turns, mail = self._turns.get(pair, []), self._mail.get(pair, [])
        place = bisect_left(turns, seq)
        last = turns[place - 1] if place else 0
        return mail[bisect_left(mail, last) : bisect_left(mail, seq)]

    def ranked(self, known: ExternalSigns, limit: int = 10) -> list[CauseCandidate]:
        costs = [self.steps[seq][9] for seq in self.distance if seq in self.steps and self.steps[seq][9] > 0]
        usual_cost = median(costs) if len(costs) >= 5 else 0.0
        failing = {seq for seq in self.distance if seq in self.steps and _failed(self.steps[seq])}
        tainted = self._below(failing)
        found: list[CauseCandidate] = []
        for seq, distance in self.distance.items():
            if seq not in self.steps:
                continue
            reasons = self._signs(seq, known, usual_cost, failing, tainted)
            if reasons:
                score = sum(POINTS[sign] for sign, _ in reasons) - PER_HOP * min(distance, FARTHEST)
                found.append(CauseCandidate(seq, round(score, 3), distance, tuple(reasons), ()))
        found.sort(key=lambda one: (-one.score, one.distance, one.seq))
        return [one._replace(path=self._path(one.seq)) for one in found[:limit]]

    def _below(self, failing: set[int]) -> set[int]:
        """Ancestors that themselves come after a failure among the ancestors."""
        children: dict[int, list[int]] = {}
        for seq in self.distance:
            for above, _ in self._above(seq):
                if above in self.distance:
                    children.setdefault(above, []).append(seq)
        found: set[int] = set()
        stack = list(failing)
        while stack:
            for child in children.get(stack.pop(), ()):
                if child not in found:
                    found.add(child)
                    stack.append(child)
        return found

    def _signs(
        self, seq: int, known: ExternalSigns, usual_cost: float, failing: set[int], tainted: set[int]
    ) -> list[tuple[str, str]]:
        row = self.steps[seq]
        _, _, _, _, agent_no, _, state, status, tool, cost, confidence, entropy, at_ns, _, _ = row
        signs: list[tuple[str, str]] = []
        if state in ("refused", "rejected"):
            signs.append(("refused", f"its message was {state}"))
        elif status == "failure":
            signs.append(("failed", f"its call of {tool} failed" if tool else "it reported a failure"))
        elif status in ("critical", "error", "rollback"):
            signs.append(("failed", f"it reported {status}"))
        if seq in failing and seq not in tainted:
            signs.append(("first", "no step upstream of it had failed before"))
        if seq in known.false_steps:
            signs.append(("false_fact", f"it added a fact that {known.false_steps[seq]} marked false"))
        if entropy is not None and entropy < LOOP:
            signs.append(("loop", f"its session was looping: entropy {entropy:.2f}"))
        minute = at_ns // 60_000_000_000
        near = [known.troubles.get((minute - back, agent_no), (0, 0)) for back in range(NEAR_MINUTES + 1)]
        if any(violations for violations, _ in near):
            signs.append(("violation", "its agent violated the schema around that time"))
        if any(alerts for _, alerts in near):
            signs.append(("alert", "a loop alert for its agent was raised around that time"))
        if seq in known.commands:
            signs.append(("rewritten", f"a person changed it: {known.commands[seq]}"))
        if seq in known.prompted:
            signs.append(("told", "a person had just sent its agent a prompt"))
        if confidence is not None and confidence < known.low_confidence:
            signs.append(("low_confidence", f"low confidence: {confidence:.2f}"))
        if usual_cost and cost > SPIKE * usual_cost:
            signs.append(("cost", f"it cost {cost / usual_cost:.0f} times the median of these steps"))
        if not signs and not self._above(seq) and seq != self.target:
            signs.append(("root", "the work started here: no earlier step is known"))
        return signs

    def _path(self, seq: int) -> tuple[tuple[int, str], ...]:
        path: list[tuple[int, str]] = []
        while seq in self._onward:
            after, kind = self._onward[seq]
            path.append((seq, kind))
            seq = after
        return (*path, (seq, ""))


def _failed(row: StepSigns) -> bool:
    return row[6] in ("refused", "rejected") or row[7] in ("failure", "critical", "error", "rollback")
