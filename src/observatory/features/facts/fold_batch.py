"""One batch of the fold of facts: scopes as they are when each message comes (rules S243–S247).

Law: a step is linked to the first fact within reach that says the same; what it merely mentions is linked to
every fact within reach that says so. What is compared is compared once a text, however many added it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from observatory.features.drift.beliefs import belief_of
from observatory.features.facts.claims import claim_of, cut, near
from observatory.features.facts.fold_memory import (
    Held,
    Reached,
    Scope,
    Use,
    claim_key,
    crossing,
    heard_at,
    likely,
    note,
    use_row,
)
from observatory.features.facts.fold_texts import PIECE, Both, Said, Spoken, canonicals, pieces, said
from observatory.features.facts.types import REVISED_PLACE, Claimed, FactRow, fact_number
from observatory.runtime.seen import Put, Seen

MOST_SENTENCES: Final = 1_000  # of one step that are compared in sense
IN_TEXT: Final = 0.9


# Of each message, by `id`: kind and number of the places within its reach, and up to which number.
Within = dict[int, list[tuple[int, int, int]]]


def is_said(seen: Seen) -> bool:
    """Whether it makes facts, and uses some."""
    return (seen.log is not None or seen.envelope is not None) and seen.state not in ("refused", "rejected")


class Work:
    def __init__(
        self,
        tenant_id: str,
        scopes: Mapping[tuple[str, int, int], Scope],
        within: Within,
        first: dict[int, Claimed | None],
        before: dict[int, list[FactRow]],
        crossed: set[tuple[str, int, int]],
    ) -> None:
        self.tenant_id, self.scopes, self.within = tenant_id, scopes, within
        self.first, self.before, self.crossed = first, before, crossed
        self.facts: dict[int, list[FactRow]] = {}
        self.uses: dict[int, dict[int, tuple[Seen, Use]]] = {}
        self.claims: dict[int, int] = {}
        self.crossings: list[dict[str, Any]] = []
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
        ]
        return [put for put in made if put.rows or put.clear]

    def take(self, seen: Seen, spoken: Both | None) -> None:
        """The next message, with its texts if it says anything."""
        if seen.revised:
            self._clear(seen)
        if spoken is None:
            return
        scopes = [
            Reached(self.scopes[self.tenant_id, kind, place], until, kind, place)
            for kind, place, until in self.within[id(seen)]
        ]
        read, added = spoken
        uses: dict[int, Use] = {}
        for one in read:
            fact, score = self._known(scopes, one)
            if fact is not None:
                note(uses, fact, "declared", score)
        self._mentions(scopes, [said(text) for text in pieces(seen)], uses)
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

    def _cross(self, session_no: int, uses: dict[int, Use]) -> None:
        """That a session used facts of others stays so, whatever becomes of the use."""
        for use in uses.values():
            pair = (self.tenant_id, use.from_no, session_no)
            if use.from_no != session_no and pair not in self.crossed:
                self.crossed.add(pair)
                self.crossings.append(crossing(use.from_no, session_no))

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
            note(uses, mine.row, "exact", 1.0)
            return
        if seen.revised:  # what was there before keeps its id; whoever used it used the same words
            same = [row.fact_id for row in self.before.get(seen.seq, ()) if row.fact_key == key]
            number = same[0] if same else fact_number(seen.seq, REVISED_PLACE | place)
        else:
            number = fact_number(seen.seq, place)
        fact, score = self._known(scopes, one)
        if fact is not None:
            note(uses, fact, "exact" if fact.fact_key == key else "near", score, number)
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

    def _known(self, scopes: list[Reached], one: Spoken) -> tuple[FactRow | Claimed | None, float]:
        """The first fact within reach that says the same, word for word if there is one."""
        text, key, words = one
        same: list[tuple[FactRow | Claimed, int]] = []
        for scope, until, kind, place in scopes:
            if (held := scope.keys.get(key)) is not None:
                same.append((held.row, until))
            # A whole scope knows all its texts by itself.
            first = None if scope.whole else self.first.get(claim_key(key, kind, place))
            if first is not None and first.fact_key == key:
                same.append((first, until))
        found = [row for row, until in same if row.seq <= until and self._stands(row)]
        if found:
            return min(found, key=lambda row: row.fact_id), 1.0
        if not words or len(text) > PIECE:
            return None, 0.0
        claim, best, score = None, None, 0.0
        for held in likely(scopes, canonicals(words)):
            claim = claim or claim_of(text, words)
            agreed = near(claim, held.claim)
            if agreed > score:
                best, score = held.row, agreed
        return best, round(score * IN_TEXT, 3)

    def _stands(self, row: FactRow | Claimed) -> bool:
        """Not if its step was folded again in this batch and said something else."""
        return row.seq not in self.cleared or any(
            one.fact_id == row.fact_id for one in self.facts.get(row.seq, ())
        )

    def _mentions(self, scopes: list[Reached], spoken: list[Said], uses: dict[int, Use]) -> None:
        """Facts within reach that a text repeats, in words or in sense."""
        if not any(scope.anchors for scope, _, _, _ in scopes):
            return
        copies: dict[str, list[FactRow]] = {}  # a text is compared once, whoever added it
        texts: list[Held] = []
        for held in likely(scopes, set().union(*(one.parts for one in spoken))):
            if held.row.text not in copies:
                texts.append(held)
            copies.setdefault(held.row.text, []).append(held.row)
        looked_at = 0
        for one in spoken if texts else ():
            left: list[Held] = []
            for held in texts:
                if held.flat and held.flat in one.flat:
                    if one.denials <= set(held.words):
                        for row in copies[held.row.text]:
                            note(uses, row, "exact", IN_TEXT)
                elif held.claim.words:
                    left.append(held)
            claims = one.claims()[: MOST_SENTENCES - looked_at] if left else ()
            looked_at += len(claims)
            for claim in claims:
                for held in left:
                    agreed = near(claim, held.claim)
                    for row in copies[held.row.text] if agreed else ():
                        note(uses, row, "near", round(agreed * IN_TEXT * IN_TEXT, 3))

    def _remember(self, row: FactRow, words: list[str], seen: Seen) -> None:
        held = Held(row, words)
        for kind, place in heard_at(seen):
            scope = self.scopes[self.tenant_id, kind, place]
            key = claim_key(row.fact_key, kind, place)
            same = scope.keys.get(row.fact_key)
            known = same.row if same is not None else self.first.get(key)
            if known is None or known.fact_key != row.fact_key or not self._stands(known):
                self.claims[key] = row.fact_id
                self.first[key] = Claimed.of(row)
            scope.add(held)
