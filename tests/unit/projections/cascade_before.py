"""`features/cascade/cascade.py` before it was made faster; `test_spread_before.py` holds it against that."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import Final, Literal, NamedTuple

from observatory.features.graph.types_spread import PLACE_BITS
from tests.unit.projections.rows_before import Downstream, Row, TaintRow

Kind = Literal["origin", "parent", "span", "read", "exact", "inferred", "near", "message"]
STRONG: Final = frozenset({"parent", "span", "read", "exact"})
WEIGHTS: Final = {"parent": 1.0, "span": 1.0, "inferred": 0.5, "message": 0.3}
LINKS: Final[dict[str, Kind]] = {"declared": "parent", "inferred": "inferred", "span": "span"}
USES: Final[dict[str, Kind]] = {"declared": "read", "exact": "exact", "near": "near"}
EVIDENCE: Final = 8  # edges told of one step
LEAST: Final = 0.001  # a weight is never shown as nothing
WALK: Final = 200_000  # steps looked at for circles, in all


class Edge(NamedTuple):
    kind: Kind
    weight: float
    from_seq: int
    fact_id: int  # the fact that was used; 0 for any other kind


class Tainted(NamedTuple):
    """What was found: numbers of steps in order, and of each how many edges away and how surely."""

    depth: dict[int, int]
    weight: dict[int, float]  # of a shortest way there
    strong: frozenset[int]


class Cascade:
    """Feed it what `wanted` names until nothing is wanted, then `settle` it.

    Plain numbers in flat lists: 100,000 steps are no 100,000 objects more for the collector to walk over.
    """

    def __init__(self, seq: int, session_no: int) -> None:
        self.origin = seq
        self.steps: dict[int, Row] = {}
        self.wanted: set[int] = {session_no}
        self.loaded: set[int] = set()
        self.made: dict[int, list[int]] = {}  # step -> its facts
        self._reached: set[int] = {seq}
        # Children by link: sure ones, and those by a link the gateway inferred.
        self._sure: dict[int, list[int]] = {}
        self._guessed: dict[int, list[int]] = {}
        self._linked: list[tuple[int, int, Kind]] = []  # (parent, child, kind), all of them
        self._parents: dict[int, list[int]] | None = None  # made when a late parent asks for it
        self._declared: set[int] = set()  # steps that name a parent themselves
        self._uses: dict[int, list[tuple[int, Kind, float]]] = {}
        self._turns: dict[tuple[int, int], list[int]] = {}  # (session, agent) -> its steps
        self._names: dict[int, int] = {}  # key of a name -> step
        self._home: dict[int, int] = {}  # step -> session, of those not loaded
        self._ahead: set[tuple[int, int]] = set()  # (parent, child) known before the child itself
        # Most steps are none of these: their children are all there is to know of them.
        self._taken: set[int] = set()  # steps somebody used a fact of
        self._late: set[int] = set()  # parents that came after a child
        self._addressed: set[int] = set()  # steps that were forwarded to another agent
        self._walked = 0

    def row(self, seq: int) -> TaintRow:
        return TaintRow(*self.steps[seq])

    def feed(self, down: Downstream, sessions: set[int]) -> None:
        """Everything of these sessions; then as far as it goes."""
        self.loaded |= sessions
        self.wanted -= sessions
        self._parents = None
        steps, names, turns, reached = self.steps, self._names, self._turns, self._reached
        ahead, addressed, declared = self._ahead, self._addressed, self._declared
        again: set[int] = set()  # steps there was news of
        waiting: list[tuple[int, int, str]] = []  # a parent may come after its child
        spanned: list[tuple[int, int]] = []
        for row in sorted(down.steps, key=itemgetter(0)):
            seq = row[0]
            if seq not in steps:
                steps[seq] = row
                names[row[1]] = seq
                turns.setdefault((row[3], row[4]), []).append(seq)
                if row[5] and row[5] != row[4] and row[6] == "forwarded":
                    addressed.add(seq)
                if seq in reached:
                    again.add(seq)
            key, how = row[11], row[12]
            if key is None:
                continue
            if how == "span":
                spanned.append((key, seq))
                continue
            if how != "inferred":
                declared.add(seq)
            parent = names.get(key)
            if parent is None:
                waiting.append((key, seq, how))
            elif (parent, seq) not in ahead:
                self._link(parent, seq, LINKS.get(how, "parent"), again)
        for key, seq, how in waiting:
            parent = names.get(key)
            if parent is not None and (parent, seq) not in ahead:
                self._link(parent, seq, LINKS.get(how, "parent"), again)
        self._span(spanned, again)
        for parent, seq, session_no, how, _ in down.abroad:
            self._home[seq] = session_no
            if seq not in steps:
                self._ahead.add((parent, seq))
            self._link(parent, seq, LINKS.get(how, "parent"), again)
        for fact_id, seq in down.facts:
            self.made.setdefault(seq, []).append(fact_id)
        for fact_id, seq, how, weight, session_no in down.uses:
            self._home[seq] = session_no
            self._taken.add(fact_id >> PLACE_BITS)
            self._uses.setdefault(fact_id, []).append((seq, USES.get(how, "near"), weight))
        self._spread(again)

    def _span(self, spanned: list[tuple[int, int]], again: set[int]) -> None:
        """Of several steps with that span the last before it, in its own session."""
        wanted = {key for key, _ in spanned}
        having: dict[tuple[int, int], list[int]] = {}
        for row in self.steps.values() if wanted else ():
            if row[2] in wanted:
                having.setdefault((row[2], row[3]), []).append(row[0])
        for key, seq in spanned:
            self._declared.add(seq)
            found = sorted(having.get((key, self.steps[seq][3]), ()))
            place = bisect_left(found, seq)
            if found:
                self._link(found[place - 1] if place else found[0], seq, "span", again)

    def _link(self, parent: int, seq: int, kind: Kind, again: set[int]) -> None:
        if parent == seq:
            return
        self._linked.append((parent, seq, kind))
        (self._guessed if kind == "inferred" else self._sure).setdefault(parent, []).append(seq)
        if seq < parent:
            self._late.add(parent)
        if parent in self._reached:
            again.add(parent)

    def _spread(self, again: set[int]) -> None:
        """Whatever is reached by any edge, to know which sessions are wanted."""
        stack, reached, steps = list(again), self._reached, self.steps
        while stack:
            here = stack.pop()
            for sure in (True, False):
                for seq in self._after(here, sure):
                    if seq in reached:
                        continue
                    reached.add(seq)
                    if seq in steps:
                        stack.append(seq)
                    elif self._home[seq] not in self.loaded:
                        self.wanted.add(self._home[seq])

    def _after(self, seq: int, sure: bool) -> Sequence[int]:
        """Steps that edges of one strength lead to."""
        linked = (self._sure if sure else self._guessed).get(seq, ())
        if seq not in self._taken and seq not in self._late and (sure or seq not in self._addressed):
            return linked
        found = [child for child in linked if child > seq or not self._closes(seq, child)]
        for fact_id in self.made.get(seq, ()):
            for user, kind, _ in self._uses.get(fact_id, ()):
                if (kind in STRONG) is sure and user != seq:
                    found.append(user)
        if not sure:
            answer = self._answer(seq)
            if answer is not None:
                found.append(answer)
        return found

    def _closes(self, parent: int, child: int) -> bool:
        """Whether a parent that came after its child descends from it, by what was known when it came."""
        if self._parents is None:
            self._parents = {}
            for above, seq, _ in self._linked:
                self._parents.setdefault(seq, []).append(above)
        seen, stack = {parent}, [parent]
        while stack and self._walked < WALK:
            for above in self._parents.get(stack.pop(), ()):
                self._walked += 1
                if above == child:
                    return True
                if above < parent and above not in seen:
                    seen.add(above)
                    stack.append(above)
        return False

    def _answer(self, seq: int) -> int | None:
        """The next step there of the agent this one was addressed to, unless that names its own parents."""
        if seq not in self._addressed:
            return None
        row = self.steps[seq]
        turns = self._turns.get((row[3], row[5]), [])
        place = bisect_right(turns, seq)
        return turns[place] if place < len(turns) and turns[place] not in self._declared else None

    def settle(self) -> Tainted:
        """Every tainted step that is known. First by strong edges alone, then by all."""
        steps, sure, taken, late = self.steps, self._sure, self._taken, self._late
        depth, weight = {self.origin: 0}, {self.origin: 1.0}
        level, away = [self.origin], 0
        while level:
            away += 1
            after: list[int] = []
            for seq in level:
                best: dict[int, float] | None = None
                is_plain = seq not in taken and seq not in late
                for child in sure.get(seq, ()) if is_plain else self._after(seq, True):
                    if child not in depth and child in steps:
                        depth[child] = away
                        if seq in taken:
                            best = self._best(seq) if best is None else best
                            weight[child] = max(LEAST, round(weight[seq] * best.get(child, 0.0), 3))
                        else:  # by a declared link: as sure as this one
                            weight[child] = weight[seq]
                        after.append(child)
            level = after
        strong = frozenset(depth)
        # Of strong ones only those that have a weak way on are looked at again.
        levels: dict[int, list[int]] = {}
        for seq in strong & (self._guessed.keys() | self._taken | self._addressed):
            levels.setdefault(depth[seq], []).append(seq)
        away = 0
        while levels:
            for seq in sorted(levels.pop(away, ())):
                onward = self._after(seq, False)
                if seq not in strong:
                    onward = [*onward, *self._after(seq, True)]
                best = None
                for child in onward:
                    if child not in depth and child in steps:
                        best = self._best(seq) if best is None else best
                        depth[child] = away + 1
                        weight[child] = max(LEAST, round(weight[seq] * best.get(child, 0.0), 3))
                        levels.setdefault(away + 1, []).append(child)
            away += 1
        return Tainted(depth, weight, strong)

    def _best(self, seq: int) -> dict[int, float]:
        """Of each step after it the weight of the surest edge there; circles were left out before."""
        found: dict[int, float] = {}
        answer = self._answer(seq)
        if answer is not None:
            found[answer] = WEIGHTS["message"]
        for children, weight in ((self._guessed, WEIGHTS["inferred"]), (self._sure, WEIGHTS["parent"])):
            for child in children.get(seq, ()):
                found[child] = max(found.get(child, 0.0), weight)
        for fact_id in self.made.get(seq, ()):
            for user, _, weight in self._uses.get(fact_id, ()):
                if user != seq:
                    found[user] = max(found.get(user, 0.0), round(weight, 3))
        return found

    def evidence(self, found: Tainted, wanted: Collection[int]) -> dict[int, list[Edge]]:
        """Of some steps the edges that lead to them from tainted ones, the surest first."""
        received: dict[int, list[Edge]] = {seq: [] for seq in wanted}
        if self.origin in received:
            received[self.origin].append(Edge("origin", 1.0, self.origin, 0))
        among, tainted = set(received) - {self.origin}, found.depth
        for parent, seq, kind in self._linked:
            if seq in among and parent in tainted and (seq > parent or not self._closes(parent, seq)):
                received[seq].append(Edge(kind, WEIGHTS[kind], parent, 0))
        for fact_id, users in self._uses.items():
            source = fact_id >> PLACE_BITS
            for user, kind, weight in users if source in tainted else ():
                if user in among and user != source:
                    received[user].append(Edge(kind, round(weight, 3), source, fact_id))
        for seq in self._addressed & tainted.keys():
            answer = self._answer(seq)
            if answer in among:
                received[answer].append(Edge("message", WEIGHTS["message"], seq, 0))
        return {
            seq: sorted(edges, key=lambda one: (-one.weight, one.from_seq, one.kind))[:EVIDENCE]
            for seq, edges in received.items()
        }

    def received(self, found: Tainted) -> dict[int, int]:
        """Agent -> the first tainted step that another addressed to it and that was forwarded."""
        received: dict[int, int] = {}
        for seq in sorted(self._addressed & found.depth.keys()):
            received.setdefault(self.steps[seq][5], seq)
        return received
