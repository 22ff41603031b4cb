"""In-memory state of the facts fold: the last facts of sessions, agents and clusters, and each agent's reach.

Everything here is also in the derived store, so it can be dropped and read again at any time. A scope has its
last facts (`MAX_FACTS`), found by text, by word and by who added them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

from observatory.derived.seen import FoldMessage
from observatory.features.facts.claims import (
    EMPTY,
    LONGEST_FLAT,
    Claim,
    canonical,
    claim_of,
    flat,
    is_findable,
    key_of,
    words_of,
)
from observatory.features.facts.types import ClaimedFact, FactRow

MAX_FACTS: Final = (512, 64, 512)  # per session, agent and cluster; agents are the most numerous
CANDIDATES: Final = 64  # facts one text is compared with
ROOMS, MAIL = 8, 8
RANK: Final = {"declared": 3, "exact": 2, "near": 1}
_MASK: Final = (1 << 64) - 1
_HERE: Final = (1 << 40) - 1  # the bits that distinguish the scopes of a text


def claim_key(fact_key: int, kind: int, place: int) -> int:
    """The key of a text in a scope: kind 0 a session, 1 an agent, 2 a cluster. Callers compare what they
    find.

    Its first bits are the text's, so that all scopes of a text are on one page of the index.
    """
    mixed = (fact_key ^ (place * 0x9E3779B97F4A7C15)) & _MASK
    mixed = ((mixed ^ (mixed >> 31)) * 0xBF58476D1CE4E5B9 + kind) & _MASK
    return fact_key & ~_HERE | (mixed ^ (mixed >> 29)) & _HERE


@lru_cache(maxsize=4_096)
def place_of(cluster_id: str) -> int:
    return key_of(cluster_id)


def scopes_of(seen: FoldMessage) -> list[tuple[int, int]]:
    """The scopes in which a step's content is heard: (kind, number)."""
    places = [(0, seen.session_no), (1, seen.agent_no)]
    if seen.cluster_id:
        places.append((2, place_of(seen.cluster_id)))
    return [place for place in places if place[1]]


class IndexedFact:
    """A fact prepared for comparison."""

    __slots__ = ("claim", "flat", "need", "row")

    def __init__(self, row: FactRow, words: list[str] | None = None) -> None:
        """`words`: those of its text, if already computed."""
        self.row = row
        short = len(row.text) <= LONGEST_FLAT
        words = (words_of(row.text) if words is None else words) if short else []
        self.flat = flat(words) if short and is_findable(words, len(row.text)) else ""
        self.claim: Claim = claim_of(row.text, words) if short else EMPTY
        # Words that every text with the same claim contains: names and figures; for an exact match, all.
        self.need = self.claim.must | self.claim.names
        if not self.claim.words and self.flat:
            self.need = frozenset(part for word in words for part in canonical(word))

    @property
    def words(self) -> list[str]:
        """In their original order; stored as one string, because there are many facts."""
        return self.flat.split()

    def anchors(self, taken: dict[str, list[IndexedFact]]) -> tuple[str, ...]:
        """The words that index it: the rarest it needs; without any, its two longest."""
        if self.need:
            rarest, fewest = "", -1
            for word in self.need:
                count = len(taken[word]) if word in taken else 0
                if fewest < 0 or count < fewest or (count == fewest and word < rarest):
                    rarest, fewest = word, count
            return (rarest,)
        return tuple(sorted(self.claim.words, key=lambda word: (-len(word), word))[:2])


class FactScope:
    __slots__ = ("anchors", "counts", "facts", "keys", "most", "own", "under", "whole")

    def __init__(self, facts: Iterable[IndexedFact], whole: bool, most: int) -> None:
        self.whole, self.most = whole, most
        self.facts: deque[IndexedFact] = deque()
        self.keys: dict[int, IndexedFact] = {}  # the first fact of each text
        self.counts: dict[int, int] = {}  # number of facts per text
        self.own: dict[tuple[int, int, int], IndexedFact] = {}  # (text, agent, session)
        self.anchors: dict[str, list[IndexedFact]] = {}
        self.under: dict[int, tuple[str, ...]] = {}  # fact -> its index words
        for held in facts:
            self.add(held)

    def add(self, held: IndexedFact) -> None:
        row = held.row
        self.facts.append(held)
        self.counts[row.fact_key] = self.counts.get(row.fact_key, 0) + 1
        self.own.setdefault((row.fact_key, row.agent_no, row.session_no), held)
        if self.keys.setdefault(row.fact_key, held) is held:
            self._tie(held)
        if len(self.facts) > self.most:
            self._remove(self.facts.popleft())
            self.whole = False

    def has_room(self, coming: int) -> bool:
        """Whether it is complete, and stays so with this many more."""
        return self.whole and len(self.facts) + coming <= self.most

    def drop(self, seq: int) -> None:
        """A step's facts were replaced."""
        for held in [held for held in self.facts if held.row.seq == seq]:
            self.facts.remove(held)
            self._remove(held)

    def drop_all(self, numbers: set[int]) -> None:
        for number in {held.row.seq for held in self.facts} & numbers:
            self.drop(number)

    def sort(self) -> None:
        """Restore the order by number after late facts, as when they are read again."""
        if all(a.row.fact_id <= b.row.fact_id for a, b in pairwise(self.facts)):
            return
        facts = sorted(self.facts, key=lambda held: held.row.fact_id)
        self.__init__(facts, self.whole, self.most)  # type: ignore[misc]

    def _remove(self, held: IndexedFact) -> None:
        row = held.row
        remaining = self.counts[row.fact_key] = self.counts[row.fact_key] - 1
        own_key = (row.fact_key, row.agent_no, row.session_no)
        if self.own.get(own_key) is held:
            del self.own[own_key]
        if self.keys.get(row.fact_key) is not held:
            return
        del self.keys[row.fact_key]
        for anchor in self.under.pop(row.fact_id, ()):
            left = [other for other in self.anchors.get(anchor, ()) if other is not held]
            if left:
                self.anchors[anchor] = left
            else:
                self.anchors.pop(anchor, None)
        if not remaining:
            del self.counts[row.fact_key]
            return
        for other in self.facts:  # the next fact of the same text replaces it
            if other.row.fact_key == row.fact_key:
                self.keys[row.fact_key] = other
                self._tie(other)
                break

    def _tie(self, held: IndexedFact) -> None:
        self.under[held.row.fact_id] = anchors = held.anchors(self.anchors)
        for anchor in anchors:
            self.anchors.setdefault(anchor, []).append(held)


class AgentReach:
    """The sessions an agent last spoke in, and the agents that last wrote to it, each ordered by last
    time."""

    __slots__ = ("mail", "rooms")

    def __init__(self, rooms: str = "", mail: str = "") -> None:
        self.rooms = [int(word) for word in rooms.split(",") if word]
        pairs = (word.split(":") for word in mail.split(",") if word)
        self.mail = {int(sender): int(seq) for sender, seq in pairs}

    def spoke(self, session_no: int) -> bool:
        """Returns whether that changed anything."""
        if session_no in self.rooms:
            return False
        self.rooms = [*self.rooms, session_no][-ROOMS:]
        return True

    def heard(self, sender: int, seq: int) -> None:
        self.mail.pop(sender, None)
        self.mail[sender] = seq
        if len(self.mail) > MAIL:
            del self.mail[next(iter(self.mail))]

    def row(self, agent_no: int) -> dict[str, int | str]:
        mail = ",".join(f"{sender}:{seq}" for sender, seq in self.mail.items())
        return {"agent_no": agent_no, "rooms": ",".join(map(str, self.rooms)), "mail": mail}


class ReachableScope(NamedTuple):
    """A scope whose facts a step could know, up to a number."""

    scope: FactScope
    until: int
    kind: int
    place: int


class FactUse(NamedTuple):
    kind: str
    weight: float
    copy_id: int
    from_no: int  # the session of the fact
    from_agent: int


def add_use(
    uses: dict[int, FactUse], fact: FactRow | ClaimedFact, kind: str, weight: float, copy_id: int = 0
) -> None:
    """Of several uses of a fact the surest counts."""
    use = FactUse(kind, weight, copy_id, fact.session_no, fact.agent_no)
    before = uses.get(fact.fact_id)
    if before is not None:
        best = max(before, use, key=lambda one: (RANK[one.kind], one.weight))
        use = best._replace(copy_id=before.copy_id or copy_id)
    uses[fact.fact_id] = use


def use_row(seq: int, fact_id: int, seen: FoldMessage, use: FactUse) -> dict[str, Any]:
    return {
        "fact_id": fact_id,
        "seq": seq,
        "kind": use.kind,
        "weight": use.weight,
        "agent_no": seen.agent_no,
        "session_no": seen.session_no,
        "copy_id": use.copy_id,
        "from_no": use.from_no,
        "from_agent": use.from_agent,
    }


def crossing(from_no: int, session_no: int) -> dict[str, Any]:
    """Records that a session used facts of another one, once."""
    return {"from_no": from_no, "session_no": session_no, "parent_key": 0, "seq": 0, "kind": "use"}


def candidate_facts(scopes: list[ReachableScope], words_said: set[str]) -> list[IndexedFact]:
    """Facts that a text with these words may repeat: it contains all words they need."""
    found: dict[int, IndexedFact] = {}
    for scope, until, _, _ in scopes:
        anchors = scope.anchors
        for anchor in anchors.keys() & words_said:
            for held in anchors[anchor]:
                row = held.row
                if row.fact_id not in found and row.seq <= until and held.need <= words_said:
                    found[row.fact_id] = held
    return sorted(found.values(), key=lambda held: held.row.fact_id)[:CANDIDATES]
