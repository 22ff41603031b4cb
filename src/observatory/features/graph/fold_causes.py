"""Circles: an edge that would close one is told of once, with the number that made it known (rule S207).

Only a step that comes after a child which named it can close a circle, so only those are looked at: first
roughly, whether the step descends from that child by what is folded, then exactly, by the session's graph.
It keeps nothing between batches. What is found depends on numbers alone, not on how they were batched.
"""

from __future__ import annotations

from observatory.features.graph.causal_graph import Weave
from observatory.features.graph.fold import key_of
from observatory.features.loops.types import Past
from observatory.features.sessions.types import Playback, seen_of
from observatory.runtime.seen import Batch, Finding, Put, Seen
from observatory.store.derived import DerivedReads

MOST_STEPS = 20_000


class Causes:
    name = "causes"

    def __init__(self, derived: DerivedReads, past: Past) -> None:
        self._derived, self._past = derived, past

    def forget(self) -> None:
        """Nothing is remembered."""

    async def fold(self, batch: Batch) -> tuple[list[Put], list[Finding]]:
        new = {seen.seq: seen for seen in batch.messages if seen.seq > batch.after and not seen.revised}
        suspects = await self._suspects(batch, new)
        findings: list[Finding] = []
        for session_id in sorted(suspects):
            findings += await self._circles(batch, session_id)
        return [], sorted(findings, key=lambda finding: finding.seq)

    async def _suspects(self, batch: Batch, new: dict[int, Seen]) -> set[str]:
        """Sessions in which a circle may have been closed by one of these messages."""
        tenant_id = batch.tenant_id
        own = {seen.seq: _keys(tenant_id, seen) for seen in new.values()}
        above = {seen.seq: _above(tenant_id, seen) for seen in new.values()}
        by_key = {key: seq for seq, keys in own.items() for key in keys}
        waited = [(child, seq) for child, keys in above.items() for key in keys if (seq := by_key.get(key))]
        # Who has no parent closes nothing.
        named = {key: seq for key, seq in by_key.items() if above[seq]}
        for child, key in await self._derived.awaited(tenant_id, named):
            if child <= batch.after:
                waited.append((child, named[key]))
        found: set[str] = set()
        for child, parent in waited:
            if child <= parent and new[parent].session_id not in found:
                ways = _ways(parent, above, by_key)
                brood = own[child] if child in own else await self._derived.brood(tenant_id, child)
                if brood is None or ways & set(brood):
                    found.add(new[parent].session_id)
        return found

    async def _circles(self, batch: Batch, session_id: str) -> list[Finding]:
        rows = await self._past.rows(batch.tenant_id, "sessions", session_id=session_id)
        assert isinstance(self._past, Playback)  # the store is both
        played = await self._past.play(batch.tenant_id, rows[0], MOST_STEPS, batch.until + 1)
        steps = [seen_of(row, batch.tenant_id, rows[0], {}) for row in played]
        found = []
        for parent, child in Weave(steps).refused:
            known = steps[max(parent, child)]
            if known.seq > batch.after:
                body = {
                    "message_sequence_number": steps[child].seq,
                    "message_id": steps[child].message_id,
                    "refused_parent": steps[parent].message_id,
                }
                found.append(
                    Finding(
                        kind="cycle",
                        seq=known.seq,
                        session_id=session_id,
                        agent_id=steps[child].agent_id,
                        at_ns=known.at_ns,
                        body=body,
                    )
                )
        return found


def _keys(tenant_id: str, seen: Seen) -> set[int]:
    """By what it can be named as a parent."""
    return {key_of(tenant_id, seen.name), key_of(tenant_id, seen.span_id)}


def _above(tenant_id: str, seen: Seen) -> set[int]:
    if seen.parents:
        return {key_of(tenant_id, name) for name in seen.parents}
    return {key_of(tenant_id, seen.parent_span_id)} if seen.parent_span_id is not None else set()


def _ways(parent: int, above: dict[int, set[int]], by_key: dict[int, int]) -> set[int]:
    """Keys on every way up from a message, as far as its batch goes and one step beyond."""
    found: set[int] = set()
    left, seen = [parent], {parent}
    while left:
        for key in above[left.pop()]:
            found.add(key)
            step = by_key.get(key)
            if step is not None and step not in seen:
                seen.add(step)
                left.append(step)
    return found
