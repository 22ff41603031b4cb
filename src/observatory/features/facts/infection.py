"""How far a fact spread: from its source along uses, causes and messages, with evidence per edge.

Rules S248–S250: strong steps stated, read or repeated the claim itself, along copies of it; weak steps only
came after: other facts a tainted step added and their users, children in the causal graph, the next step of
an agent it wrote to. Each step is one or the other. A step's weight is that of its surest path. Pure:
sessions are fed in as they are requested (`wanted`), in any order, and the caller decides how much is enough.
Weights are whole thousandths, so that steps are processed once each, from the heaviest down; sums are
computed by columns, and evidence only for the steps that are returned.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator
from itertools import chain
from typing import Final, Literal, NamedTuple

import numpy as np

from observatory.features.graph.types_spread import (
    PLACE_BITS,
    USE_KINDS,
    CrossingColumns,
    FactColumns,
    LinkColumns,
    Spread,
    SpreadStep,
    StepColumns,
)
from observatory.features.graph.types_step_table import StepTable, array_of, grouped, is_among

Kind = Literal["source", "declared", "exact", "near", "derived", "descent", "message"]
Use = tuple[int, int, float, int]  # step, kind, weight, the fact it added as a copy or 0
DERIVED, DESCENT, MESSAGE = 0.7, 0.5, 0.3
EVIDENCE: Final = 8  # edges returned per step
FULL: Final = 1_000  # a weight of 1; the smallest weight is one thousandth
STRONG: Final = FULL + 1  # heavier than any weak path


class InfectionEdge(NamedTuple):
    kind: Kind
    weight: float
    from_seq: int
    fact_id: int  # the fact that was used; 0 for descent and messages


class Infected(NamedTuple):
    seq: int
    strong: bool
    weight: float  # of the surest path to it
    evidence: list[InfectionEdge]  # surest first


class AffectedAgent(NamedTuple):
    """An affected agent."""

    strong: bool
    first: int  # its first strong step; without any, its first step
    sessions: list[int]
    steps: int
    cost: float


class Infection:
    """Feed it the sessions in `wanted` until it is empty, or call `finish` with what there is."""

    def __init__(self, fact_id: int, session_no: int) -> None:
        self.source, self.start = fact_id, fact_id >> PLACE_BITS
        self.steps = StepTable()
        self.strong: dict[int, int] = {self.start: FULL}
        self.copies: dict[int, int] = {fact_id: FULL}  # facts that make the same claim
        self.wanted: set[int] = {session_no}
        self.loaded: set[int] = set()
        self._ways: dict[int, int] = {
            self.start: STRONG
        }  # weight of every weak step reached; STRONG for strong ones
        self._ahead: set[int] = {self.start}  # reached steps whose outgoing edges were not followed yet
        self._away: set[int] = set()  # those of them that were not fed
        self._facts: list[FactColumns] = []
        self._uses: dict[int, list[Use]] = {}  # by fact
        self._used: dict[int, list[int]] = {}  # step -> its facts that were used
        self._child: dict[int, int] = {}  # the first of a step's children, usually the only one
        self._others: dict[int, list[int]] = {}
        self._addressed: dict[int, tuple[int, int]] = {}  # step -> session, recipient
        self._turns: dict[tuple[int, int], list[int]] = {}  # (session, agent) -> its steps
        self._unturned: list[StepColumns] = []  # not added to `_turns` yet: rarely needed
        self._names: dict[int, int] = {}  # key -> step
        self._spans: dict[int, int] = {}
        self._unspanned: list[StepColumns] = []  # whose spans are not added to `_spans` yet
        self._home: dict[int, int] = {}  # step -> session, for steps not fed
        self._reached: StepColumns | None = None  # cached result, until more is fed

    @property
    def weak(self) -> dict[int, int]:
        return {seq: weight for seq, weight in self._ways.items() if weight != STRONG}

    def feed(self, spread: Spread, sessions: set[int]) -> None:
        """Add everything of these sessions, then propagate: first the claim to its end, then what follows."""
        self.loaded |= sessions
        steps = spread.steps
        came = self.steps.add(steps)
        self._away.difference_update(came)
        self._names.update(zip(steps.name_key.tolist(), came, strict=True))
        self._unturned.append(steps)
        self._unspanned.append(steps)
        addressed = steps.taken((steps.recipient_no != 0) & (steps.recipient_no != steps.agent_no))
        places = zip(addressed.session_no.tolist(), addressed.recipient_no.tolist(), strict=True)
        self._addressed.update(zip(addressed.seq.tolist(), places, strict=True))
        new = set(came)
        self._link(spread.links, new)
        cross_session = spread.abroad.taken(~is_among(spread.abroad.session_no, sessions))
        self._home.update(zip(cross_session.seq.tolist(), cross_session.session_no.tolist(), strict=True))
        self._link(cross_session, new)
        self._facts.append(spread.facts)
        self._use(spread)
        self._want()
        if not self.wanted:  # all strong steps are known: nothing fed later adds to them
            self.finish()

    def finish(self) -> None:
        """Add what follows from the strong steps, as far as it was fed."""
        self._taint()
        self._want()

    def _want(self) -> None:
        home = self._home
        self.wanted = {home[seq] for seq in self._away if seq in home} - self.loaded
        self._reached = None

    def _link(self, links: LinkColumns | CrossingColumns, new: Collection[int]) -> None:
        """Edges from new steps; those of others came with them."""
        names, only, others = self._names, self._child, self._others
        for key, seq in zip(links.parent_key.tolist(), links.seq.tolist(), strict=True):
            parent = names.get(key)
            if parent is None:
                parent = self._spanned(key)
            if parent is None or parent == seq or parent not in new:
                continue
            if parent in only:
                others.setdefault(parent, []).append(seq)
            else:
                only[parent] = seq

    def _spanned(self, key: int) -> int | None:
        """Of several steps with that span, the first one. Few links use spans: indexed on demand."""
        for steps in self._unspanned:
            for span, seq in zip(steps.span_key.tolist(), steps.seq.tolist(), strict=True):
                self._spans.setdefault(span, seq)
        self._unspanned.clear()
        return self._spans.get(key)

    def _use(self, spread: Spread) -> None:
        """Add uses of facts, and propagate from copies of the claim."""
        uses, found, used = spread.uses, self._uses, self._used
        facts, numbers = uses.fact_id.tolist(), uses.seq.tolist()
        self._home.update(zip(numbers, uses.session_no.tolist(), strict=True))
        rows = zip(numbers, uses.kind.tolist(), uses.weight.tolist(), uses.copy_id.tolist(), strict=True)
        for fact_id, use in zip(facts, rows, strict=True):
            if fact_id in found:
                found[fact_id].append(use)
            else:
                found[fact_id] = [use]
                used.setdefault(fact_id >> PLACE_BITS, []).append(fact_id)
        self._claim(self.copies.keys() & set(facts))

    def _claim(self, frontier: Collection[int]) -> None:
        """Along copies of the claim: a use, and the fact it added as a copy."""
        copies, strong, uses, reached = self.copies, self.strong, self._uses, set()
        if not frontier:
            return
        heaps: list[list[int]] = [[] for _ in range(FULL + 1)]
        for fact_id in frontier:
            heaps[copies[fact_id]].append(fact_id)
        for weight in range(FULL, 0, -1):
            for fact_id in heaps[weight]:  # grows during iteration; weights only decrease along a path
                if copies[fact_id] != weight:
                    continue  # there was a surer path
                for seq, _, share, copy_id in uses.get(fact_id, ()):
                    here = int(weight * share + 0.5) or 1
                    if strong.get(seq, 0) < here:
                        strong[seq] = here
                        reached.add(seq)
                    if copy_id and copies.get(copy_id, 0) < here:
                        copies[copy_id] = here
                        heaps[here].append(copy_id)
        self._ways.update(dict.fromkeys(reached, STRONG))
        self._ahead |= reached
        self._away |= reached - self.steps.numbers

    def _taint(self) -> None:
        """From every strong step: other facts it added, its children, and agents it wrote to."""
        strong, ways, copies, steps = self.strong, self._ways, self.copies, self.steps.numbers
        only, others, used, uses, start = self._child, self._others, self._used, self._uses, self.start
        addressed = self._addressed
        heaps: list[list[int]] = [[] for _ in range(FULL + 1)]
        for seq in self._ahead:
            if seq in steps:
                heaps[strong.get(seq) or ways[seq]].append(seq)
        for weight in range(FULL, 0, -1):
            below = int(weight * DESCENT + 0.5) or 1
            beyond = heaps[below]
            for seq in heaps[weight]:
                if ways[seq] != weight and seq not in strong:
                    continue  # there was a surer path
                if seq in only:
                    child = only[seq]
                    if ways.get(child, 0) < below:
                        ways[child] = below
                        beyond.append(child)
                    for child in others.get(seq, ()):
                        if ways.get(child, 0) < below:
                            ways[child] = below
                            beyond.append(child)
                if (
                    seq in used and seq != start
                ):  # other facts of the source step do not derive from the claim
                    for fact_id in used[seq]:
                        if fact_id in copies:
                            continue
                        for user, _, share, _ in uses[fact_id]:
                            self._reach(user, int(weight * DERIVED * share + 0.5) or 1, heaps)
                if seq in addressed:
                    answer = self._answer(seq)
                    if answer is not None:
                        self._reach(answer, int(weight * MESSAGE + 0.5) or 1, heaps)
        self._away.update(seq for seq in chain(*heaps) if seq not in steps)
        self._ahead = set(self._away)

    def _reach(self, seq: int, weight: int, heaps: list[list[int]]) -> None:
        if self._ways.get(seq, 0) < weight:
            self._ways[seq] = weight
            heaps[weight].append(seq)

    def _answer(self, seq: int) -> int | None:
        """The next step, in this session, of the agent this one was addressed to."""
        for steps in self._unturned:  # each session is fed once
            pairs = zip(steps.session_no.tolist(), steps.agent_no.tolist(), strict=True)
            for pair, other in zip(pairs, steps.seq.tolist(), strict=True):
                self._turns.setdefault(pair, []).append(other)
        self._unturned.clear()
        turns = self._turns.get(self._addressed[seq], [])
        place = bisect_right(turns, seq)
        return turns[place] if place < len(turns) else None

    # --- results ---

    def reached(self) -> StepColumns:
        """All known steps it reached, in order of their numbers."""
        if self._reached is None:
            self._reached = self.steps.known(self._ways)
        return self._reached

    def infected(self) -> list[int]:
        numbers: list[int] = self.reached().seq.tolist()
        return numbers

    def step(self, seq: int) -> SpreadStep:
        return self.steps.step(seq)

    def later(self) -> dict[int, bool]:
        """Other facts that tainted steps added -> whether the step is strong."""
        facts = np.concatenate([one.fact_id for one in self._facts] or [array_of(())])
        facts = facts[is_among(facts >> PLACE_BITS, self._ways)]
        sure = is_among(facts >> PLACE_BITS, self.strong)
        later = ~sure
        later[sure] = ~is_among(facts[sure], self.copies) & (facts[sure] >> PLACE_BITS != self.start)
        return dict(zip(facts[later].tolist(), sure[later].tolist(), strict=True))

    def holders(self) -> dict[int, AffectedAgent]:
        """Affected agents, in the order of their first steps."""
        reached = self.reached()
        firsts, agents, counts = grouped(reached.agent_no)
        costs = np.bincount(agents, reached.cost, len(firsts)).tolist()
        sure = np.flatnonzero(is_among(reached.seq, self.strong))
        _, first_index = np.unique(agents[sure], return_index=True)
        first_strong = dict(
            zip(agents[sure][first_index].tolist(), reached.seq[sure][first_index].tolist(), strict=True)
        )
        sessions: list[list[int]] = [[] for _ in firsts]
        pairs, _, _ = grouped(agents, reached.session_no)
        for agent, session_no in zip(agents[pairs].tolist(), reached.session_no[pairs].tolist(), strict=True):
            sessions[agent].append(session_no)
        numbers, seqs = reached.agent_no[firsts].tolist(), reached.seq[firsts].tolist()
        found = {
            agent_no: AffectedAgent(
                place in first_strong,
                first_strong.get(place, seqs[place]),
                sessions[place],
                steps,
                costs[place],
            )
            for place, (agent_no, steps) in enumerate(zip(numbers, counts.tolist(), strict=True))
        }
        return dict(sorted(found.items(), key=lambda pair: pair[1].first))

    def spend(self, strong: bool) -> tuple[int, float]:
        """Number and cost of the known strong (or weak) steps."""
        reached = self.reached()
        costs = reached.cost[is_among(reached.seq, self.strong) == strong]
        return len(costs), float(costs.sum())

    def with_evidence(self, numbers: Collection[int]) -> list[Infected]:
        """These steps with the edges that led to them."""
        found: dict[int, set[InfectionEdge]] = {seq: set() for seq in numbers}
        if self.start in found:
            found[self.start].add(InfectionEdge("source", 1.0, self.start, self.source))
        for fact_id, uses in self._uses.items():
            self._add_use_edges(fact_id, uses, found)
        after = {seq for seq in found if seq not in self.strong}
        for seq, child in chain(self._child.items(), *(_each(*pair) for pair in self._others.items())):
            if child in after and (weight := self._weight(seq)):
                found[child].add(InfectionEdge("descent", _as_weight(weight * DESCENT), seq, 0))
        for seq in self._addressed:
            if (weight := self._weight(seq)) and (answer := self._answer(seq)) in after:
                found[answer].add(InfectionEdge("message", _as_weight(weight * MESSAGE), seq, 0))
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
        return self.strong.get(seq) or self._ways.get(seq)

    def _add_use_edges(self, fact_id: int, uses: list[Use], found: dict[int, set[InfectionEdge]]) -> None:
        origin, claim = fact_id >> PLACE_BITS, self.copies.get(fact_id)
        tainted = self._weight(origin)
        if claim is None and (tainted is None or origin == self.start):
            return
        for seq, kind, share, _ in uses:
            if seq not in found or seq == self.start:
                continue
            if claim is not None:
                found[seq].add(InfectionEdge(USE_KINDS[kind], _as_weight(claim * share), origin, fact_id))
            elif tainted is not None and seq not in self.strong:
                found[seq].add(
                    InfectionEdge("derived", _as_weight(tainted * DERIVED * share), origin, fact_id)
                )


def _each(seq: int, children: list[int]) -> Iterator[tuple[int, int]]:
    return ((seq, child) for child in children)


def _as_weight(thousandths: float) -> float:
    return (int(thousandths + 0.5) or 1) / FULL
