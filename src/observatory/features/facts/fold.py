"""The facts fold (rules S243–S247): every text added to a memory, and each later step that used it.

Only facts within reach count: those of the same session, the agent's own, its cluster's, those of sessions it
recently spoke in, and those of agents that wrote to it, up to their message. A step is linked to the first
such fact of a claim; near matches and mentions search the last facts of each scope. Folding in any batch size
gives the same rows. Refused and rejected messages make no facts; a held one does, and is folded again when
its hold ends.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Final

from observatory.derived.reads import DerivedReads
from observatory.derived.seen import Batch, DerivedWrite, Finding, Fold, FoldMessage, shredded_by
from observatory.features.facts.fold_batch import FactBatch, Within, has_facts
from observatory.features.facts.fold_memory import (
    MAX_FACTS,
    AgentReach,
    FactScope,
    IndexedFact,
    claim_key,
    place_of,
    scopes_of,
)
from observatory.features.facts.fold_texts import MemoryTexts, memory_texts
from observatory.features.facts.queries import FactQueries
from observatory.features.facts.types import ClaimedFact, FactRow
from observatory.pipeline.ports import RecordReads
from observatory.runtime.fold_memory import IdleKeys

KNOWN: Final = (
    20_000  # facts in memory over all scopes, counted in each of its scopes; a fact takes about 2 KB
)
KNOWN_REACHES: Final = 10_000
KNOWN_CROSSINGS: Final = 30_000
KNOWN_CLAIMS: Final = 30_000
KINDS: Final = ("session", "agent", "cluster")


class FactFold:
    name = "facts"

    def __init__(self, derived: FactQueries) -> None:
        self._derived = derived
        self._scopes: OrderedDict[tuple[str, int, int], FactScope] = OrderedDict()  # tenant, kind, place
        self._idle = IdleKeys[tuple[str, int, int]]()
        self._reaches: dict[tuple[str, int], AgentReach] = {}
        # Where claims were first made, per tenant by key, read or new. None: nowhere.
        self._first: dict[str, dict[int, ClaimedFact | None]] = {}
        self._added_keys: dict[str, set[int]] = {}  # per tenant: texts that were added anywhere
        self._before: dict[int, list[FactRow]] = {}  # facts of messages that are folded again
        self._crossed: set[tuple[str, int, int]] = set()  # tenant, sessions: crossings written already

    def forget(self) -> None:
        self._scopes.clear()
        self._reaches.clear()
        self._first.clear()
        self._added_keys.clear()
        self._crossed.clear()

    async def fold(self, batch: Batch) -> tuple[list[DerivedWrite], list[Finding]]:
        tenant_id = batch.tenant_id
        folded = [seen for seen in batch.messages if has_facts(seen)]
        texts_of = {id(seen): memory_texts(seen) for seen in folded}
        await self._meet(tenant_id, folded)
        within, changed = self._walk(tenant_id, folded)
        await self._recall(batch, folded, within)
        await self._look_up(tenant_id, folded, texts_of, within)
        first = self._first[tenant_id]
        work = FactBatch(tenant_id, self._scopes, within, first, self._before, self._crossed)
        orders = [(event.seq, gone) for event in batch.events if (gone := shredded_by(event))]
        for seen in batch.messages:
            while orders and not seen.revised and orders[0][0] < seen.seq:
                work.shred(orders.pop(0)[1])
            work.take(seen, texts_of.get(id(seen)))
        for _, gone in orders:
            work.shred(gone)
        if work.cleared:  # the first claim may be gone, so another one is first
            del self._first[tenant_id]
        reaches = [self._reaches[tenant_id, number].row(number) for number in sorted(changed)]
        return [*work.puts(), DerivedWrite("insight_reach", reaches)] if reaches else work.puts(), []

    async def _meet(self, tenant_id: str, folded: list[FoldMessage]) -> None:
        """Load what senders and recipients could have heard so far."""
        if len(self._reaches) > KNOWN_REACHES:
            self._reaches.clear()
        agents = {number for seen in folded for number in (seen.agent_no, seen.recipient_no) if number}
        unknown = {number for number in agents if (tenant_id, number) not in self._reaches}
        if unknown:
            reaches = await self._derived.reaches(tenant_id, unknown)
            for number in unknown:
                self._reaches[tenant_id, number] = AgentReach(*reaches.get(number, ("", "")))

    def _walk(self, tenant_id: str, folded: list[FoldMessage]) -> tuple[Within, set[int]]:
        """For each message the scopes within its reach, and the agents whose reach grows by it.

        Its own session, agent and cluster first; then recent sessions, then agents that wrote to it, up to
        their message.
        """
        within: Within = {}
        changed: set[int] = set()
        for seen in folded:
            before = seen.seq - 1
            places = within[id(seen)] = [(kind, place, before) for kind, place in scopes_of(seen)]
            if not seen.agent_no:
                continue
            own_reach = self._reaches[tenant_id, seen.agent_no]
            places += [(0, room, before) for room in own_reach.rooms if room != seen.session_no]
            places += [(1, sender, min(before, seq)) for sender, seq in own_reach.mail.items()]
            if seen.revised:
                continue
            if seen.session_no and own_reach.spoke(seen.session_no):
                changed.add(seen.agent_no)
            if seen.recipient_no and seen.recipient_no != seen.agent_no:
                self._reaches[tenant_id, seen.recipient_no].heard(seen.agent_no, seen.seq)
                changed.add(seen.recipient_no)
        return within, changed

    async def _recall(self, batch: Batch, folded: list[FoldMessage], within: Within) -> None:
        tenant_id = batch.tenant_id
        if len(self._crossed) > KNOWN_CROSSINGS:
            self._crossed.clear()
        clusters = {place_of(seen.cluster_id): seen.cluster_id for seen in folded if seen.cluster_id}
        needed = {(tenant_id, kind, place) for places in within.values() for kind, place, _ in places}
        self._make_room(needed)
        shared: dict[int, IndexedFact] = {}  # one object per fact, shared by its scopes
        for kind, name in enumerate(KINDS):
            places = [place for _, of, place in needed - self._scopes.keys() if of == kind]
            if not places:
                continue
            asked = {clusters[place] if kind == 2 else place: place for place in places}
            found = await self._derived.facts_within(tenant_id, name, asked, MAX_FACTS[kind])
            for shown, place in asked.items():
                rows, whole = found.get(shown, ([], True))
                facts = [
                    shared.get(row.fact_id) or shared.setdefault(row.fact_id, IndexedFact(row))
                    for row in rows
                ]
                self._scopes[tenant_id, kind, place] = FactScope(facts, whole, MAX_FACTS[kind])
        revised = [seen.seq for seen in batch.messages if seen.revised and seen.seq <= batch.after]
        self._before = {}
        for row in await self._derived.facts_at(tenant_id, revised) if revised else ():
            self._before.setdefault(row.seq, []).append(row)

    def _make_room(self, needed: set[tuple[str, int, int]]) -> None:
        """Evict what was used longest ago; what is used now stays."""
        self._idle.want(*needed)
        for idle in self._idle.over(self._scopes):
            del self._scopes[idle]
        for key in needed & self._scopes.keys():
            self._scopes.move_to_end(key)
        over = sum(len(scope.facts) + 1 for scope in self._scopes.values()) - KNOWN
        while over > 0 and (key := next(iter(self._scopes))) not in needed:
            over -= len(self._scopes.pop(key).facts) + 1

    async def _look_up(
        self, tenant_id: str, folded: list[FoldMessage], texts_of: dict[int, MemoryTexts], within: Within
    ) -> None:
        """Read claims that memory alone cannot answer: older than the last facts of a scope."""
        for known in (self._first, self._added_keys):
            if sum(map(len, known.values())) > KNOWN_CLAIMS:
                known.clear()
        first = self._first.setdefault(tenant_id, {})
        incoming: Counter[tuple[int, int]] = Counter()
        for seen in folded:
            for place in scopes_of(seen):
                incoming[place] += len(texts_of[id(seen)][1])
        asked: list[tuple[set[int], list[tuple[int, int]]]] = []  # texts, and scopes that may not have them
        for seen in folded:
            texts = {one[1] for part in texts_of[id(seen)] for one in part}
            doubtful = [
                (kind, place)
                for kind, place, _ in (within[id(seen)] if texts else ())
                if not self._scopes[tenant_id, kind, place].has_room(incoming[kind, place])
            ]
            if doubtful:
                asked.append((texts, doubtful))
        # Most texts are new everywhere and need no further read.
        added_keys = self._added_keys.setdefault(tenant_id, set())
        added_keys |= await self._derived.ever_added(
            tenant_id, set().union(*(texts for texts, _ in asked)) - added_keys
        )
        needed = {
            claim_key(text, *place)
            for texts, places in asked
            for text in texts & added_keys
            for place in places
        } - first.keys()
        first.update(dict.fromkeys(needed))
        first.update(await self._derived.first_claims(tenant_id, needed))


def folds(derived: DerivedReads, past: RecordReads) -> list[Fold]:
    return [FactFold(derived.queries(FactQueries))]
