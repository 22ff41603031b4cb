"""One batch of the facts fold: matches each message against the scopes as of then (rules S243–S247).

A step that adds or reads a fact is linked to the first fact within reach with the same claim; a mention is
linked to every fact within reach that it repeats. Each text is compared once, however many agents added it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from observatory.derived.seen import DerivedWrite, FoldMessage
from observatory.features.facts.claims import claim_of, cut, near
from observatory.features.facts.fold_memory import (
    FactScope,
    FactUse,
    IndexedFact,
    ReachableScope,
    add_use,
    candidate_facts,
    claim_key,
    crossing,
    scopes_of,
    use_row,
)
from observatory.features.facts.fold_texts import (
    PIECE,
    MemoryText,
    MemoryTexts,
    PreparedText,
    canonicals,
    other_texts,
    prepared_text,
)
from observatory.features.facts.types import REVISED_PLACE, ClaimedFact, FactRow, fact_number
from observatory.features.facts.types_beliefs import belief_of

MAX_SENTENCES: Final = 1_000  # of one step whose claims are compared
IN_TEXT: Final = 0.9


# For each message, by `id`: kind and number of the scopes within its reach, and up to which number.
Within = dict[int, list[tuple[int, int, int]]]


def has_facts(seen: FoldMessage) -> bool:
    """Whether the message makes and uses facts."""
    return (seen.log is not None or seen.envelope is not None) and seen.state not in ("refused", "rejected")


class FactBatch:
    def __init__(
        self,
        tenant_id: str,
        scopes: Mapping[tuple[str, int, int], FactScope],
        within: Within,
        first: dict[int, ClaimedFact | None],
        before: dict[int, list[FactRow]],
        crossed: set[tuple[str, int, int]],
    ) -> None:
        self.tenant_id, self.scopes, self.within = tenant_id, scopes, within
        self.first, self.before, self.crossed = first, before, crossed
        self.facts: dict[int, list[FactRow]] = {}
        self.uses: dict[int, dict[int, tuple[FoldMessage, FactUse]]] = {}
        self.claims: dict[int, int] = {}
        self.crossings: list[dict[str, Any]] = []
        self.cleared: set[int] = set()

    def puts(self) -> list[DerivedWrite]:
        rows = [row._asdict() for step in self.facts.values() for row in step]
        uses = [
            use_row(seq, fact_id, seen, use)
            for seq, found in self.uses.items()
            for fact_id, (seen, use) in found.items()
        ]
        clear = sorted(self.cleared)
        made = [
            DerivedWrite("insight_facts", rows, clear=clear),
            DerivedWrite("insight_uses", uses, clear=clear),
            DerivedWrite("insight_claims", [{"claim_key": k, "fact_id": v} for k, v in self.claims.items()]),
            DerivedWrite("insight_crossings", self.crossings),
        ]
        return [put for put in made if put.rows or put.clear]

    def take(self, seen: FoldMessage, texts: MemoryTexts | None) -> None:
        """The next message, with its texts if it has any."""
        if seen.revised:
            self._clear(seen)
        if texts is None:
            return
        scopes = [
            ReachableScope(self.scopes[self.tenant_id, kind, place], until, kind, place)
            for kind, place, until in self.within[id(seen)]
        ]
        read, added = texts
        uses: dict[int, FactUse] = {}
        for one in read:
            fact, score = self._known(scopes, one)
            if fact is not None:
                add_use(uses, fact, "declared", score)
        self._mentions(scopes, [prepared_text(text) for text in other_texts(seen)], uses)
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
            for kind, place in scopes_of(seen):
                self.scopes[self.tenant_id, kind, place].sort()

    def _cross(self, session_no: int, uses: dict[int, FactUse]) -> None:
        """Record that a session used facts of others; it stays recorded, whatever becomes of the use."""
        for use in uses.values():
            pair = (self.tenant_id, use.from_no, session_no)
            if use.from_no != session_no and pair not in self.crossed:
                self.crossed.add(pair)
                self.crossings.append(crossing(use.from_no, session_no))

    def _clear(self, seen: FoldMessage) -> None:
        self.before.setdefault(seen.seq, []).extend(self.facts.pop(seen.seq, ()))
        self.uses.pop(seen.seq, None)
        self.cleared.add(seen.seq)
        for kind, place in scopes_of(seen):
            scope = self.scopes.get((self.tenant_id, kind, place))
            if scope is not None:
                scope.drop(seen.seq)

    def shred(self, numbers: list[int]) -> None:
        """Forget the content of these messages; earlier uses remain by number only."""
        self.cleared.update(numbers)
        for number in numbers:
            self.facts.pop(number, None)
            self.uses.pop(number, None)
        for (tenant_id, _, _), scope in self.scopes.items():
            if tenant_id == self.tenant_id:
                scope.drop_all(set(numbers))

    def _added(
        self,
        seen: FoldMessage,
        scopes: list[ReachableScope],
        place: int,
        one: MemoryText,
        uses: dict[int, FactUse],
        made: dict[int, tuple[FactRow, list[str]]],
    ) -> None:
        text, key, words = one
        if key in made:
            return
        own_fact = scopes[0].scope.own.get((key, seen.agent_no, seen.session_no)) if scopes else None
        if own_fact is not None and own_fact.row.seq < seen.seq:
            add_use(uses, own_fact.row, "exact", 1.0)
            return
        if seen.revised:  # an unchanged fact keeps its id, because its uses are of the same text
            same = [row.fact_id for row in self.before.get(seen.seq, ()) if row.fact_key == key]
            number = same[0] if same else fact_number(seen.seq, REVISED_PLACE | place)
        else:
            number = fact_number(seen.seq, place)
        fact, score = self._known(scopes, one)
        if fact is not None:
            add_use(uses, fact, "exact" if fact.fact_key == key else "near", score, number)
        stored = cut(text)
        belief = belief_of(stored)
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
            stored,
        )
        made[key] = (row, words)

    def _known(
        self, scopes: list[ReachableScope], one: MemoryText
    ) -> tuple[FactRow | ClaimedFact | None, float]:
        """The first fact within reach with the same claim, an equal text before a near one."""
        text, key, words = one
        same: list[tuple[FactRow | ClaimedFact, int]] = []
        for scope, until, kind, place in scopes:
            if (held := scope.keys.get(key)) is not None:
                same.append((held.row, until))
            # A complete scope has all its texts in memory.
            first = None if scope.whole else self.first.get(claim_key(key, kind, place))
            if first is not None and first.fact_key == key:
                same.append((first, until))
        found = [row for row, until in same if row.seq <= until and self._stands(row)]
        if found:
            return min(found, key=lambda row: row.fact_id), 1.0
        if not words or len(text) > PIECE:
            return None, 0.0
        claim, best, score = None, None, 0.0
        for held in candidate_facts(scopes, canonicals(words)):
            claim = claim or claim_of(text, words)
            share = near(claim, held.claim)
            if share > score:
                best, score = held.row, share
        return best, round(score * IN_TEXT, 3)

    def _stands(self, row: FactRow | ClaimedFact) -> bool:
        """False if its step was folded again in this batch with other content."""
        return row.seq not in self.cleared or any(
            one.fact_id == row.fact_id for one in self.facts.get(row.seq, ())
        )

    def _mentions(
        self, scopes: list[ReachableScope], pieces_said: list[PreparedText], uses: dict[int, FactUse]
    ) -> None:
        """Facts within reach that a text repeats, exactly or nearly."""
        if not any(scope.anchors for scope, _, _, _ in scopes):
            return
        copies: dict[str, list[FactRow]] = {}  # facts by text: each text is compared once
        texts: list[IndexedFact] = []
        for held in candidate_facts(scopes, set().union(*(one.parts for one in pieces_said))):
            if held.row.text not in copies:
                texts.append(held)
            copies.setdefault(held.row.text, []).append(held.row)
        compared = 0
        for one in pieces_said if texts else ():
            inexact: list[IndexedFact] = []
            for held in texts:
                if held.flat and held.flat in one.flat:
                    if one.denials <= set(held.words):
                        for row in copies[held.row.text]:
                            add_use(uses, row, "exact", IN_TEXT)
                elif held.claim.words:
                    inexact.append(held)
            claims = one.claims()[: MAX_SENTENCES - compared] if inexact else ()
            compared += len(claims)
            for claim in claims:
                for held in inexact:
                    share = near(claim, held.claim)
                    for row in copies[held.row.text] if share else ():
                        add_use(uses, row, "near", round(share * IN_TEXT * IN_TEXT, 3))

    def _remember(self, row: FactRow, words: list[str], seen: FoldMessage) -> None:
        held = IndexedFact(row, words)
        for kind, place in scopes_of(seen):
            scope = self.scopes[self.tenant_id, kind, place]
            key = claim_key(row.fact_key, kind, place)
            same = scope.keys.get(row.fact_key)
            known = same.row if same is not None else self.first.get(key)
            if known is None or known.fact_key != row.fact_key or not self._stands(known):
                self.claims[key] = row.fact_id
                self.first[key] = ClaimedFact.of(row)
            scope.add(held)
