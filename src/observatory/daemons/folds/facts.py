"""Facts and their uses (rules S243–S247): every text added to a memory, and each later step that took it up.

Law: only what was within reach counts: the same session, the agent's own facts, its cluster, sessions it
spoke in lately, and agents that wrote to it, up to their letter. A step is linked to the first such fact of a
claim; near matches and mentions look among the last facts of each of these. Folding in any batch size gives
the same rows. Messages that were refused or rejected make no facts; a held one does, and is folded again when
its hold ends.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from itertools import chain
from typing import Any, Final

from observatory.daemons.folds.fact_memory import (
    MOST,
    Held,
    Reach,
    Reached,
    Scope,
    Use,
    claim_key,
    crossing,
    heard_at,
    likely,
    note,
    place_of,
    use_row,
)
from observatory.daemons.folds.fact_texts import PIECE, Both, Spoken, pieces, strings
from observatory.daemons.folds.search import shredded_by
from observatory.insight.facts import REVISED_PLACE, FactRow, fact_number
from observatory.insight.seen import Batch, Finding, Put, Seen
from observatory.projections.beliefs import belief_of
from observatory.projections.facts import (
    canonical,
    claim_of,
    cut,
    denials,
    flat,
    near,
    words_of,
)
from observatory.store.derived import DerivedReads

KNOWN: Final = 100_000  # facts remembered over all scopes, a fact in each it is of; a fact is some 3 KB
KNOWN_REACHES: Final = 50_000
KNOWN_CROSSINGS: Final = 100_000
LONGEST_SENTENCE: Final = 64  # words
MOST_SENTENCES: Final = 1_000  # of one step that are compared in sense
KINDS: Final = ("session", "agent", "cluster")
IN_TEXT: Final = 0.9
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|\n+")


class Facts:
    name = "facts"

    def __init__(self, derived: DerivedReads) -> None:
        self._derived = derived
        self._scopes: OrderedDict[tuple[str, int, int], Scope] = OrderedDict()  # tenant, kind, place
        self._reaches: dict[tuple[str, int], Reach] = {}
        self._first: dict[int, Held] = {}  # claims looked up for the batch, and those it makes
        self._before: dict[int, list[FactRow]] = {}  # what messages that are seen again had added
        self._within: dict[int, set[tuple[int, int]]] = {}
        self._crossed: set[tuple[str, int, int]] = set()  # tenant, sessions: told of already

    def forget(self) -> None:
        self._scopes.clear()
        self._reaches.clear()
        self._crossed.clear()

    async def fold(self, batch: Batch) -> tuple[list[Put], list[Finding]]:
        said = [seen for seen in batch.messages if seen.log is not None or seen.envelope is not None]
        spoken = {id(seen): strings(seen) for seen in said}
        await self._recall(batch, said)
        await self._look_up(batch.tenant_id, said, spoken)
        work = _Work(batch.tenant_id, self._scopes, self._reaches, self._first, self._before, self._crossed)
        orders = [(event.seq, gone) for event in batch.events if (gone := shredded_by(event))]
        for seen in batch.messages:
            while orders and not seen.revised and orders[0][0] < seen.seq:
                work.shred(orders.pop(0)[1])
            work.take(seen, spoken.get(id(seen), ([], [])))
        for _, gone in orders:
            work.shred(gone)
        return work.puts(), []

    async def _recall(self, batch: Batch, said: list[Seen]) -> None:
        tenant_id = batch.tenant_id
        if len(self._reaches) > KNOWN_REACHES:
            self._reaches.clear()
        if len(self._crossed) > KNOWN_CROSSINGS:
            self._crossed.clear()
        agents = {number for seen in said for number in (seen.agent_no, seen.recipient_no) if number}
        unknown = {number for number in agents if (tenant_id, number) not in self._reaches}
        if unknown:
            reaches = await self._derived.reaches(tenant_id, unknown)
            for number in unknown:
                self._reaches[tenant_id, number] = Reach(*reaches.get(number, ("", "")))
        self._within = self._could_reach(tenant_id, said)
        clusters = {place_of(seen.cluster_id): seen.cluster_id for seen in said if seen.cluster_id}
        wanted = {(tenant_id, *place) for places in self._within.values() for place in places}
        self._make_room(wanted)
        shared: dict[int, Held] = {}  # a fact is one, in whichever scopes it is
        for kind, name in enumerate(KINDS):
            places = [place for _, of, place in wanted - self._scopes.keys() if of == kind]
            if not places:
                continue
            asked = {clusters[place] if kind == 2 else place: place for place in places}
            found = await self._derived.facts_within(tenant_id, name, asked, MOST[kind])
            for shown, place in asked.items():
                rows, whole = found.get(shown, ([], True))
                facts = [shared.get(row.fact_id) or shared.setdefault(row.fact_id, Held(row)) for row in rows]
                self._scopes[tenant_id, kind, place] = Scope(facts, whole, MOST[kind])
        revised = [seen.seq for seen in batch.messages if seen.revised and seen.seq <= batch.after]
        self._before = {}
        for row in await self._derived.facts_at(tenant_id, revised) if revised else ():
            self._before.setdefault(row.seq, []).append(row)

    def _make_room(self, wanted: set[tuple[str, int, int]]) -> None:
        """What was wanted longest ago goes first; what is wanted now stays."""
        for key in wanted & self._scopes.keys():
            self._scopes.move_to_end(key)
        over = sum(len(scope.facts) + 1 for scope in self._scopes.values()) - KNOWN
        while over > 0 and (key := next(iter(self._scopes))) not in wanted:
            over -= len(self._scopes.pop(key).facts) + 1

    def _could_reach(self, tenant_id: str, said: list[Seen]) -> dict[int, set[tuple[int, int]]]:
        """Of each message the places that may be within reach when its turn comes: rather too many."""
        joined: dict[int, set[tuple[int, int]]] = {}
        for seen in said:
            joined.setdefault(seen.agent_no, set()).add((0, seen.session_no))
            if seen.recipient_no:
                joined.setdefault(seen.recipient_no, set()).add((1, seen.agent_no))
        found: dict[int, set[tuple[int, int]]] = {}
        for seen in said:
            places = set(heard_at(seen))
            if seen.agent_no:
                reach = self._reaches[tenant_id, seen.agent_no]
                places.update((0, room) for room in reach.rooms)
                places.update((1, sender) for sender in reach.mail)
                places |= joined.get(seen.agent_no, set())
            found[id(seen)] = {place for place in places if place[1]}
        return found

    async def _look_up(self, tenant_id: str, said: list[Seen], spoken: dict[int, Both]) -> None:
        """Claims that memory alone cannot answer: older than the last facts of a scope."""
        coming = sum(len(added) for _, added in spoken.values())
        wanted: set[int] = set()
        for seen in said:
            keys = {one[1] for part in spoken[id(seen)] for one in part}
            for kind, place in self._within[id(seen)] if keys else ():
                scope = self._scopes[tenant_id, kind, place]
                if not scope.whole or len(scope.facts) + coming > scope.most:
                    wanted.update(claim_key(key, kind, place) for key in keys)
        found = await self._derived.first_claims(tenant_id, wanted) if wanted else {}
        self._first.clear()
        self._first.update((key, Held(row)) for key, row in found.items())


class _Work:
    """One batch: scopes and reaches as they are when each message comes."""

    def __init__(
        self,
        tenant_id: str,
        scopes: Mapping[tuple[str, int, int], Scope],
        reaches: dict[tuple[str, int], Reach],
        first: dict[int, Held],
        before: dict[int, list[FactRow]],
        crossed: set[tuple[str, int, int]],
    ) -> None:
        self.tenant_id, self.scopes, self.reaches = tenant_id, scopes, reaches
        self.first, self.before, self.crossed = first, before, crossed
        self.facts: dict[int, list[FactRow]] = {}
        self.uses: dict[int, dict[int, tuple[Seen, Use]]] = {}
        self.claims: dict[int, int] = {}
        self.crossings: list[dict[str, Any]] = []
        self.changed: set[int] = set()
        self.cleared: set[int] = set()

    def puts(self) -> list[Put]:
        rows = [row._asdict() for step in self.facts.values() for row in step]
        uses = [
            use_row(seq, fact_id, seen, use)
            for seq, found in self.uses.items()
            for fact_id, (seen, use) in found.items()
        ]
        clear = sorted(self.cleared)
        made = [
            Put("insight_facts", rows, clear=clear),
            Put("insight_uses", uses, clear=clear),
            Put("insight_claims", [{"claim_key": k, "fact_id": v} for k, v in self.claims.items()]),
            Put("insight_crossings", self.crossings),
            Put("insight_reach", [self.reaches[self.tenant_id, no].row(no) for no in sorted(self.changed)]),
        ]
        return [put for put in made if put.rows or put.clear]

    def take(self, seen: Seen, spoken: Both) -> None:
        if seen.revised:
            self._clear(seen)
        if (seen.log is None and seen.envelope is None) or seen.state in ("refused", "rejected"):
            return
        scopes = self._reached(seen)
        read, added = spoken
        uses: dict[int, Use] = {}
        for one in read:
            held, score = self._known(seen, scopes, one)
            if held is not None:
                note(uses, held, "declared", score)
        self._mentions(scopes, list(pieces(seen)), uses)
        made: dict[int, tuple[FactRow, list[str]]] = {}  # by text
        for place, one in enumerate(added):
            self._added(seen, scopes, place, one, uses, made)
        for row, words in made.values():
            self._remember(row, words, seen)
        if made:
            self.facts[seen.seq] = [row for row, _ in made.values()]
        if uses:
            self.uses[seen.seq] = {fact_id: (seen, use) for fact_id, use in uses.items()}
            self._cross(seen.session_no, uses)
        if seen.revised:
            for kind, place in heard_at(seen):
                self.scopes[self.tenant_id, kind, place].sort()
        else:
            self._heard(seen)

    def _cross(self, session_no: int, uses: dict[int, Use]) -> None:
        """That a session used facts of others stays so, whatever becomes of the use."""
        for use in uses.values():
            pair = (self.tenant_id, use.from_no, session_no)
            if use.from_no != session_no and pair not in self.crossed:
                self.crossed.add(pair)
                self.crossings.append(crossing(use.from_no, session_no))

    def _reached(self, seen: Seen) -> list[Reached]:
        """Its own session, agent and cluster first; then rooms, then who wrote to it, up to the letter."""
        before = seen.seq - 1
        places = [(kind, place, before) for kind, place in heard_at(seen)]
        reach = self.reaches.get((self.tenant_id, seen.agent_no))
        if reach is not None:
            places += [(0, room, before) for room in reach.rooms if room != seen.session_no]
            places += [(1, sender, min(before, seq)) for sender, seq in reach.mail.items()]
        return [
            Reached(self.scopes[self.tenant_id, kind, place], until, kind, place)
            for kind, place, until in places
        ]

    def _clear(self, seen: Seen) -> None:
        self.before.setdefault(seen.seq, []).extend(self.facts.pop(seen.seq, ()))
        self.uses.pop(seen.seq, None)
        self.cleared.add(seen.seq)
        for kind, place in heard_at(seen):
            scope = self.scopes.get((self.tenant_id, kind, place))
            if scope is not None:
                scope.drop(seen.seq)

    def shred(self, numbers: list[int]) -> None:
        """What these messages said is forgotten; who had used it before is remembered by number only."""
        self.cleared.update(numbers)
        for number in numbers:
            self.facts.pop(number, None)
            self.uses.pop(number, None)
        for (tenant_id, _, _), scope in self.scopes.items():
            if tenant_id == self.tenant_id:
                scope.drop_all(set(numbers))

    def _added(
        self,
        seen: Seen,
        scopes: list[Reached],
        place: int,
        one: Spoken,
        uses: dict[int, Use],
        made: dict[int, tuple[FactRow, list[str]]],
    ) -> None:
        text, key, words = one
        if key in made:
            return
        mine = scopes[0].scope.own.get((key, seen.agent_no, seen.session_no)) if scopes else None
        if mine is not None and mine.row.seq < seen.seq:
            note(uses, mine, "exact", 1.0)
            return
        if seen.revised:  # what was there before keeps its id; whoever used it used the same words
            same = [row.fact_id for row in self.before.get(seen.seq, ()) if row.fact_key == key]
            number = same[0] if same else fact_number(seen.seq, REVISED_PLACE | place)
        else:
            number = fact_number(seen.seq, place)
        held, score = self._known(seen, scopes, one)
        if held is not None:
            note(uses, held, "exact" if held.row.fact_key == key else "near", score, number)
        kept = cut(text)
        belief = belief_of(kept)
        row = FactRow(
            number,
            seen.seq,
            seen.session_no,
            seen.agent_no,
            seen.cluster_id,
            seen.at_ns,
            key,
            belief.subject_key if belief else None,
            belief.subject if belief else None,
            belief.value if belief else None,
            kept,
        )
        made[key] = (row, words)

    def _known(self, seen: Seen, scopes: list[Reached], one: Spoken) -> tuple[Held | None, float]:
        """The first fact within reach that says the same, word for word if there is one."""
        text, key, words = one
        found = [
            held
            for scope, until, kind, place in scopes
            for held in (
                scope.keys.get(key),
                # A whole scope knows all its texts by itself.
                None if scope.whole or not self.first else self.first.get(claim_key(key, kind, place)),
            )
            if held is not None and held.row.fact_key == key and held.row.seq <= until and self._stands(held)
        ]
        if found:
            return min(found, key=lambda held: held.row.fact_id), 1.0
        if not words or len(text) > PIECE:
            return None, 0.0
        said = {part for word in set(words) for part in canonical(word)}
        claim, best, score = None, None, 0.0
        for held in likely(scopes, said):
            claim = claim or claim_of(text, words)
            agreed = near(claim, held.claim)
            if agreed > score:
                best, score = held, agreed
        return best, round(score * IN_TEXT, 3)

    def _stands(self, held: Held) -> bool:
        """Not if its step was folded again in this batch and said something else."""
        seq = held.row.seq
        return seq not in self.cleared or any(
            row.fact_id == held.row.fact_id for row in self.facts.get(seq, ())
        )

    def _mentions(self, scopes: list[Reached], texts: list[str], uses: dict[int, Use]) -> None:
        """Facts within reach that a text repeats, in words or in sense."""
        if not any(scope.anchors for scope, _, _, _ in scopes):
            return
        spoken = [(text, words_of(text)) for text in texts]
        said = {part for word in set(chain(*(words for _, words in spoken))) for part in canonical(word)}
        candidates = list(likely(scopes, said))
        if not candidates:
            return
        looked_at = 0
        for text, words in spoken:
            whole, doubts = flat(words), denials(words)
            left: list[Held] = []
            for held in candidates:
                if held.flat and held.flat in whole:
                    if doubts <= set(held.words):
                        note(uses, held, "exact", IN_TEXT)
                elif held.claim.words:
                    left.append(held)
            for sentence in _SENTENCE.split(text) if left else ():
                parts = words_of(sentence)
                if not 3 <= len(parts) <= LONGEST_SENTENCE:
                    continue
                looked_at += 1
                if looked_at > MOST_SENTENCES:
                    break
                claim = claim_of(sentence, parts)
                for held in left:
                    agreed = near(claim, held.claim)
                    if agreed:
                        note(uses, held, "near", round(agreed * IN_TEXT * IN_TEXT, 3))

    def _remember(self, row: FactRow, words: list[str], seen: Seen) -> None:
        held = Held(row, words)
        for kind, place in heard_at(seen):
            scope = self.scopes[self.tenant_id, kind, place]
            key = claim_key(row.fact_key, kind, place)
            known = scope.keys.get(row.fact_key) or self.first.get(key)
            if known is None or known.row.fact_key != row.fact_key or not self._stands(known):
                self.claims[key] = row.fact_id
                self.first[key] = held
            scope.add(held)

    def _heard(self, seen: Seen) -> None:
        if not seen.agent_no:
            return
        if seen.session_no and self.reaches[self.tenant_id, seen.agent_no].spoke(seen.session_no):
            self.changed.add(seen.agent_no)
        if seen.recipient_no and seen.recipient_no != seen.agent_no:
            self.reaches[self.tenant_id, seen.recipient_no].heard(seen.agent_no, seen.seq)
            self.changed.add(seen.recipient_no)
