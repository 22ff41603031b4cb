"""`features/facts/infection.py` before it was made faster; `test_spread_before.py` holds it against that."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import Any, Final, Literal, NamedTuple

from observatory.features.graph.types_spread import PLACE_BITS
from tests.unit.projections.rows_before import Spread, StepRow

Kind = Literal["source", "declared", "exact", "near", "derived", "descent", "message"]
DERIVED, DESCENT, MESSAGE = 0.7, 0.5, 0.3
EVIDENCE: Final = 8  # edges shown for one step
FULL: Final = 1_000  # a weight of 1; nothing weighs less than one thousandth
SESSION, AGENT, RECIPIENT, COST = (
    StepRow._fields.index(name) for name in ("session_no", "agent_no", "recipient_no", "cost")
)


class Edge(NamedTuple):
    kind: Kind
    weight: float
    from_seq: int
    fact_id: int  # the fact that was used; 0 for descent and messages


class Infected(NamedTuple):
    seq: int
    strong: bool
    weight: float  # of the surest way here
    evidence: list[Edge]  # surest first


class Holder(NamedTuple):
    """An agent and what it had to do with it."""

    strong: bool
    first: int  # its first step that holds the claim; if none does, the first of all
    sessions: list[int]
    steps: int
    cost: float


class Infection:
    """Feed it what `wanted` names until nothing is wanted, or `finish` with what there is."""

    def __init__(self, fact_id: int, session_no: int) -> None:
        self.source, self.start = fact_id, fact_id >> PLACE_BITS
        self.steps: dict[int, Any] = {}  # rows as `StepRow` has them
        self.strong: dict[int, int] = {self.start: FULL}
        self.weak: dict[int, int] = {}
        self.copies: dict[int, int] = {fact_id: FULL}  # facts that make the claim
        self.wanted: set[int] = {session_no}
        self.loaded: set[int] = set()
        self._facts: list[int] = []
        self._uses: dict[int, list[Any]] = {}  # fact -> rows
        self._used: dict[int, list[int]] = {}  # step -> its facts that somebody used
        self._child: dict[int, int] = {}  # the first of a step's children, which mostly is the only one
        self._others: dict[int, list[int]] = {}
        self._turns: dict[tuple[int, int], list[int]] | None = {}  # (session, agent) -> its steps
        self._names: dict[int, int] = {}  # key -> step
        self._spans: dict[int, int] = {}
        self._home: dict[int, int] = {}  # step -> session
        self._fresh: set[int] = set()  # steps whose ways on were not taken yet
        self._missing: set[int] = set()  # steps that were reached and not fed

    def feed(self, spread: Spread, sessions: set[int]) -> None:
        """Everything of these sessions; then as far as it goes: the claim to its end, then what follows."""
        self.loaded |= sessions
        rows, steps, spans = spread.steps, self.steps, self._spans
        new = {row[0] for row in rows}
        steps.update({row[0]: row for row in rows})
        self._names.update({row[1]: row[0] for row in rows})
        spans.update({row[2]: row[0] for row in reversed(rows) if row[2] not in spans})
        self._fresh |= new
        self._turns = None
        self._link(spread.links, new)
        self._facts += (row[0] for row in spread.facts)
        used: set[int] = set()
        for use in spread.uses:
            fact_id = use[0]
            if fact_id in self._uses:
                self._uses[fact_id].append(use)
            else:
                self._uses[fact_id] = [use]
                self._used.setdefault(fact_id >> PLACE_BITS, []).append(fact_id)
            used.add(fact_id)
            self._home[use[1]] = use[5]
        self._claim([fact_id for fact_id in used if fact_id in self.copies])
        self._want()
        if not self.wanted:  # what holds the claim is known: nothing that is fed later adds to it
            self.finish()

    def finish(self) -> None:
        """What follows from those that hold the claim, as far as it was fed."""
        self._taint()
        self._want()

    def _want(self) -> None:
        self._missing = {seq for seq in self._missing if seq not in self.steps}
        self.wanted = {self._home[seq] for seq in self._missing if seq in self._home} - self.loaded

    def _link(self, links: Iterable[Any], new: set[int]) -> None:
        """Ways on from steps that are new; those of others came with them."""
        names, spans, steps, only = self._names, self._spans, self.steps, self._child
        for parent, seq, session_no in links:
            found = names.get(parent)
            if found is None:
                found = spans.get(parent)
                if found is None:
                    continue
            if found not in new or found == seq:
                continue
            if found in only:
                self._others.setdefault(found, []).append(seq)
            else:
                only[found] = seq
            if seq not in steps:
                self._home[seq] = session_no

    def _claim(self, frontier: Collection[int]) -> None:
        """Along copies of the claim: a use, and the fact it made of it."""
        copies, strong, uses, reached = self.copies, self.strong, self._uses, set()
        heaps: list[list[int]] = [[] for _ in range(FULL + 1)]
        for fact_id in frontier:
            heaps[copies[fact_id]].append(fact_id)
        for weight in range(FULL, 0, -1):
            for fact_id in heaps[weight]:  # grows while it is walked; nothing gets heavier on its way
                if copies[fact_id] != weight:
                    continue  # there was a surer way
                for _, seq, _, share, _, _, copy_id in uses.get(fact_id, ()):
                    here = int(weight * share + 0.5) or 1
                    if strong.get(seq, 0) < here:
                        strong[seq] = here
                        reached.add(seq)
                    if copy_id and copies.get(copy_id, 0) < here:
                        copies[copy_id] = here
                        heaps[here].append(copy_id)
        self._missing |= reached - self.steps.keys()

    def _taint(self) -> None:
        """From every step that holds the claim: what else it added, its children, whom it wrote to."""
        strong, weak, copies, steps = self.strong, self.weak, self.copies, self.steps
        only, others, used, uses, start = self._child, self._others, self._used, self._uses, self.start
        heaps: list[list[int]] = [[] for _ in range(FULL + 1)]
        for seq in self._fresh:
            weight = strong.get(seq) or weak.get(seq)
            if weight is not None:
                heaps[weight].append(seq)
        for weight in range(FULL, 0, -1):
            heap = heaps[weight]
            below = int(weight * DESCENT + 0.5) or 1
            beyond = heaps[below]
            for seq in heap:
                if (strong.get(seq) or weak[seq]) != weight:
                    continue
                if seq in only:
                    child = only[seq]
                    if weak.get(child, 0) < below and child not in strong:
                        weak[child] = below
                        beyond.append(child)
                    for child in others.get(seq, ()):
                        if weak.get(child, 0) < below and child not in strong:
                            weak[child] = below
                            beyond.append(child)
                if seq in used and seq != start:  # what the source says besides is beside it, not out of it
                    for fact_id in used[seq]:
                        if fact_id in copies:
                            continue
                        for use in uses[fact_id]:
                            self._reach(use[1], int(weight * DERIVED * use[3] + 0.5) or 1, heaps)
                if seq in steps and steps[seq][RECIPIENT]:
                    answer = self._answer(seq)
                    if answer is not None:
                        self._reach(answer, int(weight * MESSAGE + 0.5) or 1, heaps)
        for heap in heaps:
            self._fresh.difference_update(heap)
            self._missing.update(seq for seq in heap if seq not in steps)

    def _reach(self, seq: int, weight: int, heaps: list[list[int]]) -> None:
        if self.weak.get(seq, 0) < weight and seq not in self.strong:
            self.weak[seq] = weight
            heaps[weight].append(seq)

    def _answer(self, seq: int) -> int | None:
        """The next step in this session of the agent this one was addressed to."""
        step = self.steps[seq]
        if not step[RECIPIENT] or step[RECIPIENT] == step[AGENT]:
            return None
        if self._turns is None:
            asked = {(row[SESSION], row[RECIPIENT]) for row in self.steps.values() if row[RECIPIENT]}
            self._turns = {pair: [] for pair in asked}
            for other in sorted(self.steps):
                row = self.steps[other]
                if (row[SESSION], row[AGENT]) in asked:
                    self._turns[row[SESSION], row[AGENT]].append(other)
        turns = self._turns.get((step[SESSION], step[RECIPIENT]), [])
        place = bisect_right(turns, seq)
        return turns[place] if place < len(turns) else None

    # --- what is told of it ---

    def infected(self) -> list[int]:
        """In order of their numbers, those whose steps are known."""
        return sorted((self.strong.keys() | self.weak.keys()) & self.steps.keys())

    def step(self, seq: int) -> StepRow:
        return StepRow(*self.steps[seq])

    def later(self) -> dict[int, bool]:
        """Other facts that tainted steps added; whether those hold the claim."""
        strong, weak, copies, start = self.strong, self.weak, self.copies, self.start
        found: dict[int, bool] = {}
        for fact_id in self._facts:
            seq = fact_id >> PLACE_BITS
            if seq in strong:
                if seq != start and fact_id not in copies:
                    found[fact_id] = True
            elif seq in weak:
                found[fact_id] = False
        return found

    def holders(self) -> dict[int, Holder]:
        """Agents, in the order of their first steps."""
        steps, strong = self.steps, self.strong
        by_agent: dict[int, list[int]] = {}
        for seq in self.infected():
            by_agent.setdefault(steps[seq][AGENT], []).append(seq)
        found: dict[int, Holder] = {}
        for agent_no, numbers in by_agent.items():
            first = next((seq for seq in numbers if seq in strong), None)
            sessions = dict.fromkeys(steps[seq][SESSION] for seq in numbers)
            found[agent_no] = Holder(
                first is not None,
                numbers[0] if first is None else first,
                list(sessions),
                len(numbers),
                sum(steps[seq][COST] for seq in numbers),
            )
        return dict(sorted(found.items(), key=lambda pair: pair[1].first))

    def spend(self, strong: bool) -> tuple[int, float]:
        """How many known steps are strong (or weak), and what they cost."""
        numbers = (self.strong if strong else self.weak).keys() & self.steps.keys()
        return len(numbers), sum(self.steps[seq][COST] for seq in numbers)

    def received(self, numbers: Collection[int]) -> list[Infected]:
        """These steps with the edges that led to them."""
        found: dict[int, set[Edge]] = {seq: set() for seq in numbers}
        if self.start in found:
            found[self.start].add(Edge("source", 1.0, self.start, self.source))
        for fact_id, rows in self._uses.items():
            self._uses_told(fact_id, rows, found)
        after = {seq for seq in found if seq not in self.strong}
        for seq, child in chain(self._child.items(), *(_each(*pair) for pair in self._others.items())):
            if child in after and (weight := self._weight(seq)):
                found[child].add(Edge("descent", _shown(weight * DESCENT), seq, 0))
        for seq, step in self.steps.items():
            if step[RECIPIENT] and (weight := self._weight(seq)) and (answer := self._answer(seq)) in after:
                found[answer].add(Edge("message", _shown(weight * MESSAGE), seq, 0))
        return [
            Infected(
                seq,
                seq in self.strong,
                (self._weight(seq) or 1) / FULL,
                sorted(edges, key=lambda one: (one.kind != "source", -one.weight, one[2:], one.kind))[
                    :EVIDENCE
                ],
            )
            for seq, edges in found.items()
        ]

    def _weight(self, seq: int) -> int | None:
        return self.strong.get(seq) or self.weak.get(seq)

    def _uses_told(self, fact_id: int, rows: list[Any], found: dict[int, set[Edge]]) -> None:
        origin, claim = fact_id >> PLACE_BITS, self.copies.get(fact_id)
        tainted = self._weight(origin)
        if claim is None and (tainted is None or origin == self.start):
            return
        for _, seq, kind, share, _, _, _ in rows:
            if seq not in found or seq == self.start:
                continue
            if claim is not None:
                found[seq].add(Edge(kind, _shown(claim * share), origin, fact_id))
            elif tainted is not None and seq not in self.strong:
                found[seq].add(Edge("derived", _shown(tainted * DERIVED * share), origin, fact_id))


def _each(seq: int, children: list[int]) -> Iterator[tuple[int, int]]:
    return ((seq, child) for child in children)


def _shown(thousandths: float) -> float:
    return (int(thousandths + 0.5) or 1) / FULL
