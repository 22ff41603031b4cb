"""The causes fold: each edge that would close a cycle becomes one finding (rule S207).

Only a step that comes after a child which named it can close a cycle, so only those are checked: first
roughly, whether the step descends from that child by what is folded, then exactly, by the session's graph.
Nothing is kept between batches. Findings depend on numbers alone, not on how messages were batched.
"""

from __future__ import annotations

from observatory.derived.seen import Batch, DerivedWrite, Finding, FoldMessage, step_key
from observatory.features.graph.causal_graph import CausalGraph
from observatory.features.graph.queries_causes import CauseReads
from observatory.features.graph.types_session import SessionPlayback, seen_of
from observatory.pipeline.ports import RecordReads

MAX_STEPS = 20_000


class CycleFold:
    name = "causes"

    def __init__(self, derived: CauseReads, past: RecordReads) -> None:
        self._derived, self._past = derived, past

    def forget(self) -> None:
        """Nothing is remembered."""

    async def fold(self, batch: Batch) -> tuple[list[DerivedWrite], list[Finding]]:
        new = {seen.seq: seen for seen in batch.messages if seen.seq > batch.after and not seen.revised}
        suspects = await self._suspects(batch, new)
        findings: list[Finding] = []
        for session_id in sorted(suspects):
            findings += await self._cycles(batch, session_id)
        return [], sorted(findings, key=lambda finding: finding.seq)

    async def _suspects(self, batch: Batch, new: dict[int, FoldMessage]) -> set[str]:
        """Sessions in which a cycle may have been closed by one of these messages."""
        tenant_id = batch.tenant_id
        own = {seen.seq: _keys(tenant_id, seen) for seen in new.values()}
        above = {seen.seq: _above(tenant_id, seen) for seen in new.values()}
        by_key = {key: seq for seq, keys in own.items() for key in keys}
        waited = [(child, seq) for child, keys in above.items() for key in keys if (seq := by_key.get(key))]
        # A step without a parent closes no cycle.
        named = {key: seq for key, seq in by_key.items() if above[seq]}
        for child, key in await self._derived.awaited(tenant_id, named):
            if child <= batch.after:
                waited.append((child, named[key]))
        sessions: set[str] = set()
        for child, parent in waited:
            if child <= parent and new[parent].session_id not in sessions:
                keys_above = _keys_above(parent, above, by_key)
                descendants = (
                    own[child] if child in own else await self._derived.descendant_keys(tenant_id, child)
                )
                if descendants is None or keys_above & set(descendants):
                    sessions.add(new[parent].session_id)
        return sessions

    async def _cycles(self, batch: Batch, session_id: str) -> list[Finding]:
        rows = await self._past.rows(batch.tenant_id, "sessions", session_id=session_id)
        assert isinstance(self._past, SessionPlayback)  # the store implements both
        played = await self._past.play(batch.tenant_id, rows[0], MAX_STEPS, batch.until + 1)
        steps = [seen_of(row, batch.tenant_id, rows[0], {}) for row in played]
        found = []
        for parent, child in CausalGraph(steps).refused:
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


def _keys(tenant_id: str, seen: FoldMessage) -> set[int]:
    """The keys by which it can be named as a parent."""
    return {step_key(tenant_id, seen.name), step_key(tenant_id, seen.span_id)}


def _above(tenant_id: str, seen: FoldMessage) -> set[int]:
    if seen.parents:
        return {step_key(tenant_id, name) for name in seen.parents}
    return {step_key(tenant_id, seen.parent_span_id)} if seen.parent_span_id is not None else set()


def _keys_above(parent: int, above: dict[int, set[int]], by_key: dict[int, int]) -> set[int]:
    """Keys on every path up from a message, as far as its batch goes and one step beyond."""
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
