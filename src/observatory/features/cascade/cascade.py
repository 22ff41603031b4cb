"""Forward propagation: how far a step's output spread over causes, memory and messages, with evidence per
edge.

Rules S262–S264: an edge is strong when it was declared (a named parent, an envelope's span, a fact read from
memory) or when the exact text recurs; weak when it is a guess: a parent the gateway inferred, a similar text,
the addressed agent's next step when that step names no parent. A step is strong when strong edges alone reach
it. A link that would close a cycle is ignored. Pure: sessions are fed in as they are requested (`wanted`),
and the caller decides how much is enough.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np

from observatory.features.graph.types_spread import (
    FORWARDED,
    INFERRED,
    NEAR,
    PLACE_BITS,
    SPAN,
    FactColumns,
    Ints,
    LinkColumns,
    Spread,
    SpreadStep,
    StepColumns,
)
from observatory.features.graph.types_step_table import StepTable, array_of, is_among

Kind = Literal["origin", "parent", "span", "read", "exact", "inferred", "near", "message"]
Link = tuple[int, int, int]  # parent, child, kind
WEIGHTS: Final = {"parent": 1.0, "span": 1.0, "inferred": 0.5, "message": 0.3}
LINKS: Final[tuple[Kind, ...]] = ("parent", "inferred", "span")
USES: Final[tuple[Kind, ...]] = ("read", "exact", "near")
EVIDENCE: Final = 8  # edges returned per step
LEAST: Final = 0.001  # the smallest weight shown
WALK: Final = 200_000  # steps visited in the search for cycles, in total


class CascadeLink(NamedTuple):
    kind: Kind
    weight: float
    from_seq: int
    fact_id: int  # the fact that was used; 0 for any other kind


class BlastRadius(NamedTuple):
    """The result: step numbers in order, and of each its distance in edges and its weight."""

    depth: dict[int, int]
    weight: dict[int, float]  # of a shortest path
    strong: frozenset[int]


class ForwardWalk:
    """Feed it the sessions in `wanted` until it is empty, then call `settle`."""

    def __init__(self, seq: int, session_no: int) -> None:
        self.origin = seq
        self.steps = StepTable()
        self.wanted: set[int] = {session_no}
        self.loaded: set[int] = set()
        self._facts: list[FactColumns] = []  # of all these steps
        self._reached: set[int] = {seq}
        # Children by link: declared ones, and inferred ones. Usually there is one.
        self._sure: dict[int, Sequence[int]] = {}
        self._guessed: dict[int, Sequence[int]] = {}
        self._linked: list[Ints] = []  # all links: parent, child and kind, a row each
        self._parents: dict[int, list[int]] | None = None  # built when a late parent needs it
        self._declared: set[int] = set()  # steps that declare a parent
        self._uses: dict[int, list[tuple[int, int, float]]] = {}  # by fact: step, kind, weight
        self._used: dict[int, list[int]] = {}  # step -> its facts that were used
        self._turns: dict[tuple[int, int], list[int]] = {}  # (session, agent) -> its steps
        self._unturned: list[tuple[StepColumns, LinkColumns]] = []  # not added to `_turns` yet: rarely needed
        self._names: dict[int, int] = {}  # key of a name -> step
        self._home: dict[int, int] = {}  # step -> session, for steps not loaded
        self._homes: set[int] = set()  # all those sessions
        self._again: set[int] = set()  # steps to continue from
        self._ahead: set[tuple[int, int]] = set()  # (parent, child) pairs known before the child is loaded
        # Most steps are in none of these sets: only their children matter.
        self._special: set[int] = set()  # steps in any of these sets, or with inferred children
        self._given: set[int] = set()  # steps a fact of which was certainly used
        self._hinted: set[int] = set()  # steps a fact of which was possibly used
        self._late: set[int] = set()  # parents that arrived after a child
        self._addressed: dict[int, tuple[int, int]] = {}  # forwarded to another agent: session, recipient
        self._walked = 0

    def row(self, seq: int) -> SpreadStep:
        return self.steps.step(seq)

    def feed(self, down: Spread, sessions: set[int]) -> None:
        """Add everything of these sessions, then propagate as far as possible."""
        self.loaded |= sessions
        self.wanted -= sessions
        self._parents = None
        steps = down.steps
        came = self.steps.add(steps)
        again = self._again  # including steps with new links; each step arrives once
        again |= self._reached.intersection(came)
        self._names.update(zip(steps.name_key.tolist(), came, strict=True))
        self._unturned.append((steps, down.links))
        is_addressed = (steps.recipient_no != 0) & (steps.recipient_no != steps.agent_no)
        addressed = steps.taken(is_addressed & (steps.state == FORWARDED))
        whom = zip(addressed.session_no.tolist(), addressed.recipient_no.tolist(), strict=True)
        self._addressed.update(zip(addressed.seq.tolist(), whom, strict=True))
        self._special.update(addressed.seq.tolist())
        self._link([*self._own(down.links, steps), *self._abroad(down, sessions)], again)
        self._facts.append(down.facts)
        self._use(down)
        if self.wanted or not self._homes <= self.loaded:  # else no further session could be wanted
            self._spread(again)
            again.clear()

    def _own(self, links: LinkColumns, steps: StepColumns) -> Iterator[Ints]:
        """Links of these steps: first to earlier parents, then to late ones, then by span."""
        names = self._names
        parents = np.array([names.get(key, 0) for key in links.parent_key.tolist()], np.int64)
        found = np.stack((parents, links.seq, links.kind))[:, (parents != 0) & (links.kind != SPAN)]
        if self._ahead:
            pairs = zip(found[0].tolist(), found[1].tolist(), strict=True)
            found = found[:, [pair not in self._ahead for pair in pairs]]
        late = found[0] > found[1]
        if late.any():  # a parent may come after its child, in the same load
            late &= np.isin(found[0], steps.seq)
        yield found[:, ~late]
        yield found[:, late]
        spanned = links.taken(links.kind == SPAN)
        if len(spanned):
            yield self._spans(spanned, steps)

    def _spans(self, spanned: LinkColumns, steps: StepColumns) -> Ints:
        """Of several steps with that span, the last before it in its own session, which is loaded whole."""
        having: dict[tuple[int, int], list[int]] = {}
        those = steps.taken(np.isin(steps.span_key, spanned.parent_key))
        keys = zip(those.span_key.tolist(), those.session_no.tolist(), strict=True)
        for key, seq in zip(keys, those.seq.tolist(), strict=True):
            having.setdefault(key, []).append(seq)
        made: list[Link] = []
        for seq, span, session_no, _ in spanned.rows():
            found = having.get((span, session_no), ())
            place = bisect_left(found, seq)
            if found and seq in self.steps:
                made.append((found[place - 1] if place else found[0], seq, SPAN))
        return np.array(made, np.int64).reshape(-1, 3).T

    def _abroad(self, down: Spread, sessions: set[int]) -> Iterator[Ints]:
        """Children in other sessions, by name: a span belongs to its own session."""
        cross_session = down.abroad.taken(
            (down.abroad.kind != SPAN) & ~is_among(down.abroad.session_no, sessions)
        )
        made: list[Link] = []
        for _, session_no, key, seq, kind in cross_session.rows():
            parent = self._names.get(key)
            if parent is None:
                continue
            self._home[seq] = session_no
            self._homes.add(session_no)
            if seq not in self.steps:
                self._ahead.add((parent, seq))
            made.append((parent, seq, kind))
        if made:
            yield np.array(made, np.int64).T

    def _link(self, parts: list[Ints], again: set[int]) -> None:
        reached = self._reached
        for part in parts:
            part = part[:, part[0] != part[1]]
            self._linked.append(part)
            late, guessed = part[1] < part[0], part[2] == INFERRED
            self._late.update(part[0][late].tolist())
            self._special.update(part[0][late | guessed].tolist())
            for children, some in ((self._sure, part[:, ~guessed]), (self._guessed, part[:, guessed])):
                parents: list[int] = some[0].tolist()
                for parent, seq in zip(parents, some[1].tolist(), strict=True):
                    known = children.get(parent)
                    if known is None:
                        children[parent] = (seq,)
                    elif isinstance(known, list):
                        known.append(seq)
                    else:
                        children[parent] = [*known, seq]
                again |= reached.intersection(parents)

    def _use(self, down: Spread) -> None:
        uses, found, used = down.uses, self._uses, self._used
        facts, numbers = uses.fact_id.tolist(), uses.seq.tolist()
        homes = uses.session_no.tolist()
        self._home.update(zip(numbers, homes, strict=True))
        self._homes.update(homes)
        sources = uses.fact_id >> PLACE_BITS
        self._given.update(sources[uses.kind != NEAR].tolist())
        self._hinted.update(sources[uses.kind == NEAR].tolist())
        self._special.update(sources.tolist())
        rows = zip(numbers, uses.kind.tolist(), uses.weight.tolist(), strict=True)
        for fact_id, use in zip(facts, rows, strict=True):
            if fact_id in found:
                found[fact_id].append(use)
            else:
                found[fact_id] = [use]
                used.setdefault(fact_id >> PLACE_BITS, []).append(fact_id)

    def _spread(self, again: set[int]) -> None:
        """Everything reachable by any edge, to find the sessions that are wanted."""
        stack, reached, steps = list(again), self._reached, self.steps.numbers
        sure, special = self._sure, self._special
        next_steps: Iterable[Sequence[int]]
        while stack:
            current = stack.pop()
            if current in special:
                next_steps = (self._after(current, True), self._after(current, False))
            elif current in sure:
                next_steps = (sure[current],)
            else:
                continue
            for found in next_steps:
                for seq in found:
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
        used = seq in (self._given if sure else self._hinted)
        if not used and seq not in self._late and (sure or seq not in self._addressed):
            return linked
        found = [child for child in linked if child > seq or not self._closes(seq, child)]
        for fact_id in self._used.get(seq, ()) if used else ():
            for user, kind, _ in self._uses[fact_id]:
                if (kind != NEAR) is sure and user != seq:
                    found.append(user)
        if not sure:
            answer = self._answer(seq)
            if answer is not None:
                found.append(answer)
        return found

    def _closes(self, parent: int, child: int) -> bool:
        """Whether a parent that arrived after its child descends from it, by the links known then."""
        if self._parents is None:
            self._parents = {}
            for part in self._linked:
                for above, seq in zip(part[0].tolist(), part[1].tolist(), strict=True):
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
        """The addressed agent's next step there, unless that step declares its own parents."""
        if seq not in self._addressed:
            return None
        for steps, links in self._unturned:
            self._declared.update(links.seq[links.kind != INFERRED].tolist())
            pairs = zip(steps.session_no.tolist(), steps.agent_no.tolist(), strict=True)
            for pair, number in zip(pairs, steps.seq.tolist(), strict=True):
                self._turns.setdefault(pair, []).append(number)
        self._unturned.clear()
        turns = self._turns.get(self._addressed[seq], [])
        place = bisect_right(turns, seq)
        return turns[place] if place < len(turns) and turns[place] not in self._declared else None

    def settle(self) -> BlastRadius:
        """Every known tainted step. First by strong edges alone, then by all."""
        steps, sure, given, late = self.steps.numbers, self._sure, self._given, self._late
        guessed, addressed = self._guessed, self._addressed
        depth, weight = {self.origin: 0}, {self.origin: 1.0}
        level, away = [self.origin], 0
        while level:
            away += 1
            after: list[int] = []
            for seq in level:
                current, is_late = weight[seq], seq in late
                for child in sure.get(seq, ()):
                    if child in depth or child not in steps:
                        continue
                    if not is_late or child > seq or not self._closes(seq, child):
                        depth[child], weight[child] = away, current  # a declared link keeps the weight
                        after.append(child)
                if seq not in given:
                    continue
                users = [use for fact_id in self._used[seq] for use in self._uses[fact_id]]
                is_alone = len(users) == 1 and not (is_late or seq in guessed or seq in addressed)
                shares: dict[int, float] | None = None
                for child, kind, share in users:
                    if kind == NEAR or child == seq or child in depth or child not in steps:
                        continue
                    if shares is None:
                        shares = {child: round(share, 3)} if is_alone else self._best(seq)
                    depth[child], weight[child] = away, max(LEAST, round(current * shares[child], 3))
                    after.append(child)
            level = after
        strong = frozenset(depth)
        # Of strong steps, only those with weak outgoing edges are visited again.
        levels: dict[int, list[int]] = {}
        for seq in strong & (self._guessed.keys() | self._hinted | self._addressed.keys()):
            levels.setdefault(depth[seq], []).append(seq)
        away = 0
        while levels:
            for seq in sorted(levels.pop(away, ())):
                next_steps = self._after(seq, False)
                if seq not in strong:
                    next_steps = [*next_steps, *self._after(seq, True)]
                shares = None
                for child in next_steps:
                    if child not in depth and child in steps:
                        shares = self._best(seq) if shares is None else shares
                        depth[child] = away + 1
                        weight[child] = max(LEAST, round(weight[seq] * shares.get(child, 0.0), 3))
                        levels.setdefault(away + 1, []).append(child)
            away += 1
        return BlastRadius(depth, weight, strong)

    def _best(self, seq: int) -> dict[int, float]:
        """For each next step the weight of the surest edge to it; cycles were left out before."""
        found: dict[int, float] = {}
        answer = self._answer(seq)
        if answer is not None:
            found[answer] = WEIGHTS["message"]
        for children, weight in ((self._guessed, WEIGHTS["inferred"]), (self._sure, WEIGHTS["parent"])):
            for child in children.get(seq, ()):
                found[child] = max(found.get(child, 0.0), weight)
        for fact_id in self._used.get(seq, ()):
            for user, _, weight in self._uses[fact_id]:
                if user != seq:
                    found[user] = max(found.get(user, 0.0), round(weight, 3))
        return found

    def evidence(self, found: BlastRadius, wanted: Collection[int]) -> dict[int, list[CascadeLink]]:
        """For some steps, the edges that lead to them from tainted ones, the surest first."""
        result: dict[int, list[CascadeLink]] = {seq: [] for seq in wanted}
        if self.origin in result:
            result[self.origin].append(CascadeLink("origin", 1.0, self.origin, 0))
        asked, tainted = set(result) - {self.origin}, found.depth
        numbers = array_of(asked)
        for part in self._linked:
            for parent, seq, kind in part[:, np.isin(part[1], numbers)].T.tolist():
                if parent in tainted and (seq > parent or not self._closes(parent, seq)):
                    how = LINKS[kind]
                    result[seq].append(CascadeLink(how, WEIGHTS[how], parent, 0))
        for fact_id, users in self._uses.items():
            source = fact_id >> PLACE_BITS
            for user, kind, weight in users if source in tainted else ():
                if user in asked and user != source:
                    result[user].append(CascadeLink(USES[kind], round(weight, 3), source, fact_id))
        for seq in self._addressed.keys() & tainted.keys():
            answer = self._answer(seq)
            if answer in asked:
                result[answer].append(CascadeLink("message", WEIGHTS["message"], seq, 0))
        return {
            seq: sorted(edges, key=lambda one: (-one.weight, one.from_seq, one.kind))[:EVIDENCE]
            for seq, edges in result.items()
        }

    def received(self, found: BlastRadius) -> dict[int, int]:
        """Agent -> the first tainted step that another agent addressed to it and that was forwarded."""
        result: dict[int, int] = {}
        for seq in sorted(self._addressed.keys() & found.depth.keys()):
            result.setdefault(self._addressed[seq][1], seq)
        return result

    def facts(self, found: BlastRadius) -> list[int]:
        """Facts that tainted steps added, in order."""
        facts = np.concatenate([one.fact_id for one in self._facts] or [array_of(())])
        result: list[int] = np.sort(facts[is_among(facts >> PLACE_BITS, found.depth)]).tolist()
        return result
