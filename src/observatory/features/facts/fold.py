"""Facts and their uses (rules S243–S247): every text added to a memory, and each later step that took it up.

Law: only what was within reach counts: the same session, the agent's own facts, its cluster, sessions it
spoke in lately, and agents that wrote to it, up to their letter. A step is linked to the first such fact of a
claim; near matches and mentions look among the last facts of each of these. Folding in any batch size gives
the same rows. Messages that were refused or rejected make no facts; a held one does, and is folded again when
its hold ends.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Final

from observatory.features.facts.fold_batch import Within, Work, is_said
from observatory.features.facts.fold_memory import MOST, Held, Reach, Scope, claim_key, heard_at, place_of
from observatory.features.facts.fold_texts import Both, strings
from observatory.features.facts.types import Claimed, FactRow
from observatory.features.search.fold import shredded_by
from observatory.runtime.fold_memory import Idle
from observatory.runtime.seen import Batch, Finding, Put, Seen
from observatory.store.derived import DerivedReads

KNOWN: Final = 20_000  # facts remembered over all scopes, a fact in each it is of; a fact is some 2 KB
KNOWN_REACHES: Final = 10_000
KNOWN_CROSSINGS: Final = 30_000
KNOWN_CLAIMS: Final = 30_000
KINDS: Final = ("session", "agent", "cluster")


class Facts:
    name = "facts"

    def __init__(self, derived: DerivedReads) -> None:
        self._derived = derived
        self._scopes: OrderedDict[tuple[str, int, int], Scope] = OrderedDict()  # tenant, kind, place
        self._idle = Idle[tuple[str, int, int]]()
        self._reaches: dict[tuple[str, int], Reach] = {}
        # Where claims were first made, of each tenant by key: what was looked up, or made. None: nowhere.
        self._first: dict[str, dict[int, Claimed | None]] = {}
        self._told: dict[str, set[int]] = {}  # of each tenant texts that somebody added, somewhere
        self._before: dict[int, list[FactRow]] = {}  # what messages that are seen again had added
        self._crossed: set[tuple[str, int, int]] = set()  # tenant, sessions: told of already

    def forget(self) -> None:
        self._scopes.clear()
        self._reaches.clear()
        self._first.clear()
        self._told.clear()
        self._crossed.clear()

    async def fold(self, batch: Batch) -> tuple[list[Put], list[Finding]]:
        tenant_id = batch.tenant_id
        said = [seen for seen in batch.messages if is_said(seen)]
        spoken = {id(seen): strings(seen) for seen in said}
        await self._meet(tenant_id, said)
        within, changed = self._walk(tenant_id, said)
        await self._recall(batch, said, within)
        await self._look_up(tenant_id, said, spoken, within)
        first = self._first[tenant_id]
        work = Work(tenant_id, self._scopes, within, first, self._before, self._crossed)
        orders = [(event.seq, gone) for event in batch.events if (gone := shredded_by(event))]
        for seen in batch.messages:
            while orders and not seen.revised and orders[0][0] < seen.seq:
                work.shred(orders.pop(0)[1])
            work.take(seen, spoken.get(id(seen)))
        for _, gone in orders:
            work.shred(gone)
        if work.cleared:  # what was first may be gone: another one is
            del self._first[tenant_id]
        reaches = [self._reaches[tenant_id, number].row(number) for number in sorted(changed)]
        return [*work.puts(), Put("insight_reach", reaches)] if reaches else work.puts(), []

    async def _meet(self, tenant_id: str, said: list[Seen]) -> None:
        """What those who speak or are spoken to could have heard so far."""
        if len(self._reaches) > KNOWN_REACHES:
            self._reaches.clear()
        agents = {number for seen in said for number in (seen.agent_no, seen.recipient_no) if number}
        unknown = {number for number in agents if (tenant_id, number) not in self._reaches}
        if unknown:
            reaches = await self._derived.reaches(tenant_id, unknown)
            for number in unknown:
                self._reaches[tenant_id, number] = Reach(*reaches.get(number, ("", "")))

    def _walk(self, tenant_id: str, said: list[Seen]) -> tuple[Within, set[int]]:
        """Of each message the places within its reach when its turn comes; and who can hear more by them.

        Its own session, agent and cluster first; then rooms, then who wrote to it, up to the letter.
        """
        within: Within = {}
        changed: set[int] = set()
        for seen in said:
            before = seen.seq - 1
            places = within[id(seen)] = [(kind, place, before) for kind, place in heard_at(seen)]
            if not seen.agent_no:
                continue
            mine = self._reaches[tenant_id, seen.agent_no]
            places += [(0, room, before) for room in mine.rooms if room != seen.session_no]
            places += [(1, sender, min(before, seq)) for sender, seq in mine.mail.items()]
            if seen.revised:
                continue
            if seen.session_no and mine.spoke(seen.session_no):
                changed.add(seen.agent_no)
            if seen.recipient_no and seen.recipient_no != seen.agent_no:
                self._reaches[tenant_id, seen.recipient_no].heard(seen.agent_no, seen.seq)
                changed.add(seen.recipient_no)
        return within, changed

    async def _recall(self, batch: Batch, said: list[Seen], within: Within) -> None:
        tenant_id = batch.tenant_id
        if len(self._crossed) > KNOWN_CROSSINGS:
            self._crossed.clear()
        clusters = {place_of(seen.cluster_id): seen.cluster_id for seen in said if seen.cluster_id}
        wanted = {(tenant_id, kind, place) for places in within.values() for kind, place, _ in places}
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
        self._idle.want(*wanted)
        for idle in self._idle.over(self._scopes):
            del self._scopes[idle]
        for key in wanted & self._scopes.keys():
            self._scopes.move_to_end(key)
        over = sum(len(scope.facts) + 1 for scope in self._scopes.values()) - KNOWN
        while over > 0 and (key := next(iter(self._scopes))) not in wanted:
            over -= len(self._scopes.pop(key).facts) + 1

    async def _look_up(
        self, tenant_id: str, said: list[Seen], spoken: dict[int, Both], within: Within
    ) -> None:
        """Claims that memory alone cannot answer: older than the last facts of a scope."""
        for known in (self._first, self._told):
            if sum(map(len, known.values())) > KNOWN_CLAIMS:
                known.clear()
        first = self._first.setdefault(tenant_id, {})
        coming: Counter[tuple[int, int]] = Counter()
        for seen in said:
            for place in heard_at(seen):
                coming[place] += len(spoken[id(seen)][1])
        asked: list[tuple[set[int], list[tuple[int, int]]]] = []  # texts, and places that may not know them
        for seen in said:
            texts = {one[1] for part in spoken[id(seen)] for one in part}
            doubtful = [
                (kind, place)
                for kind, place, _ in (within[id(seen)] if texts else ())
                if not self._scopes[tenant_id, kind, place].has_room(coming[kind, place])
            ]
            if doubtful:
                asked.append((texts, doubtful))
        # Most texts are new everywhere: then no place needs to be asked for them.
        told = self._told.setdefault(tenant_id, set())
        told |= await self._derived.ever_added(tenant_id, set().union(*(texts for texts, _ in asked)) - told)
        wanted = {
            claim_key(text, *place) for texts, places in asked for text in texts & told for place in places
        } - first.keys()
        first.update(dict.fromkeys(wanted))
        first.update(await self._derived.first_claims(tenant_id, wanted))
