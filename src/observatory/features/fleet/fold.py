"""The traffic fold: counters by minute of agents, sessions, edges and labels (cluster, type, tool, model),
and by second of the whole tenant.

Law: each message counts once, in the minute and second it was committed; a message revised after a hold is
not counted again. Its cost is what the steps fold computed (`spent`). A causal edge runs from a parent's
agent to a child's when they differ. It counts once for each parent, when the *later* of both steps is folded
and in that step's minute, so that a parent that arrives after its child counts like any other; its latency is
the time from parent to child, or 0. A parent known only by its span counts only when it came first. An edge
by address counts when its message does; how long the delivery took is known where it was acknowledged, not
here. Rules S225, S227, S303. A link whose ends are in two sessions is stored as a crossing, whichever end
comes last; by a span there may be several (S937).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from observatory.derived.reads import DerivedReads
from observatory.derived.seen import Batch, DerivedWrite, Finding, Fold, FoldEvent, FoldMessage, step_key
from observatory.features.fleet.queries_traffic import MinuteCounterReads, StepLocation
from observatory.pipeline.ports import RecordReads
from observatory.pipeline.step_cost import StepCost, cost_of_step, tokens_of
from observatory.protocol.events import REFUSALS_COUNTED
from observatory.protocol.messages import ActionConfirmation

MINUTE, SECOND = 60_000_000_000, 1_000_000_000
KNOWN = 10_000  # totals and steps remembered; beyond, they are read again
# Figures that differ by less are the same: sums of money are not exact.
CENT = 1e-9
ALERTS = frozenset({"entropy_alert", "loop_detected"})
Key = tuple[str, int, int]  # tenant, session, agent
Sums = dict[tuple[Any, ...], list[float]]


class TrafficFold:
    name = "traffic"

    def __init__(self, derived: MinuteCounterReads, own: DerivedReads) -> None:
        self._derived, self._own = derived, own
        self._totals: dict[Key, float] = {}
        self._steps: dict[tuple[str, int], StepLocation] = {}  # by tenant and key of the step's name
        self._spanning: set[str] = set()  # tenants in which steps name parents by their spans
        self._unspanned: set[str] = set()  # and those in which none has done so yet

    def forget(self) -> None:
        self._totals.clear()
        self._steps.clear()
        self._spanning.clear()
        self._unspanned.clear()

    async def fold(self, batch: Batch) -> tuple[list[DerivedWrite], list[Finding]]:
        await self._recall(batch)
        counted = _Counted()
        for event in batch.events:
            counted.event(event)
        for seen in batch.messages:
            if not seen.revised:
                counted.message(seen, *self._spent(batch.tenant_id, seen))
        await self._count_edges(batch, counted)
        return counted.puts(), []

    # --- cost ---

    async def _recall(self, batch: Batch) -> None:
        """Loads the totals this batch's figures are compared with, as the steps fold wrote them."""
        if len(self._totals) > KNOWN:
            self._totals.clear()
        tenant_id = batch.tenant_id
        named = {(seen.session_no, seen.agent_no) for seen in batch.messages}
        missing = {key for key in named if (tenant_id, *key) not in self._totals}
        if missing:
            sessions, agents = {key[0] for key in missing}, {key[1] for key in missing}
            found = await self._own.totals(tenant_id, sessions, agents)
            for key in missing:
                self._totals[tenant_id, *key] = found[key][0] if key in found else 0.0

    def _spent(self, tenant_id: str, seen: FoldMessage) -> tuple[StepCost | None, float]:
        """What it cost, if it reports a cost, and its agent's figure before."""
        if seen.state == "refused" or seen.log is None:
            return None, 0.0
        key = (tenant_id, seen.session_no, seen.agent_no)
        before = self._totals.get(key, 0.0)
        found = cost_of_step(seen.log.state_delta, before)
        if found is not None:
            self._totals[key] = found.total
        return found, before

    # --- edges ---

    async def _count_edges(self, batch: Batch, counted: _Counted) -> None:
        tenant_id = batch.tenant_id
        if len(self._steps) > KNOWN:
            self._steps.clear()
        fresh = [seen for seen in batch.messages if not seen.revised]
        own = {seen.seq: step_key(tenant_id, seen.name) for seen in fresh}
        parents = {
            seen.seq: list(dict.fromkeys(step_key(tenant_id, name) for name in seen.parents))
            for seen in fresh
        }
        mine = set(own.values())
        parent_keys = {key for keys in parents.values() for key in keys}
        missing = [key for key in parent_keys if key not in mine and (tenant_id, key) not in self._steps]
        for key, step in (await self._derived.placed(tenant_id, missing)).items():
            self._steps[tenant_id, key] = step
        waiting = await self._derived.waiting_for(tenant_id, mine)
        await self._await_spans(tenant_id, fresh, counted)
        spans = await self._spans(tenant_id, fresh)
        again: dict[int, bool] = {}  # whether steps that were held failed, as known by now
        for seen in batch.messages:
            if seen.revised:
                again[seen.seq] = failed(seen)
                continue
            step = StepLocation(seen.seq, seen.session_no, seen.agent_no, seen.at_ns, failed(seen))
            counted.addressed(seen, step.failed)
            key = own[seen.seq]
            self._steps[tenant_id, key] = step
            how = "inferred" if seen.parent_inferred else "declared"
            for parent_key in parents[seen.seq]:
                parent = self._steps.get((tenant_id, parent_key))
                if parent is None:
                    waiting.setdefault(parent_key, []).append((step, how))
                else:
                    counted.causal(parent, step, step.at_ns)
                    counted.crossing(parent.session_no, step.session_no, parent_key, step.seq, how)
            for child, kind in waiting.pop(key, ()):
                late = child._replace(failed=again.get(child.seq, child.failed))
                counted.causal(step, late, step.at_ns)
                counted.crossing(step.session_no, child.session_no, key, child.seq, kind)
            if not seen.parents and seen.parent_span_id is not None:
                span = step_key(tenant_id, seen.parent_span_id)
                above = spans.get(span, ())
                earlier = [one for one in above if one.seq < seen.seq and one.session_no == seen.session_no]
                if earlier:
                    counted.causal(earlier[-1], step, step.at_ns)
                for one in above:  # later ones of this batch too: they are not looked for again
                    counted.crossing(one.session_no, step.session_no, span, step.seq, "span")

    async def _await_spans(self, tenant_id: str, fresh: list[FoldMessage], counted: _Counted) -> None:
        """Crossings from steps of other sessions that named a span before a step with it arrived."""
        if tenant_id not in self._spanning and tenant_id not in self._unspanned:
            known = await self._derived.names_spans(tenant_id)
            (self._spanning if known else self._unspanned).add(tenant_id)
        if tenant_id in self._spanning:
            own = {(step_key(tenant_id, seen.span_id), seen.session_no) for seen in fresh}
            children = await self._derived.waiting_for_spans(tenant_id, {key for key, _ in own})
            for key, session_no in own if children else ():
                for seq, child_no in children.get(key, ()):
                    counted.crossing(session_no, child_no, key, seq, "span")
        elif any(not seen.parents and seen.parent_span_id is not None for seen in fresh):
            self._unspanned.discard(tenant_id)
            self._spanning.add(tenant_id)

    async def _spans(self, tenant_id: str, fresh: Iterable[FoldMessage]) -> dict[int, list[StepLocation]]:
        """Steps by the keys of the spans that envelopes of this batch name as parents, in order."""
        fresh = list(fresh)
        parent_spans = {
            step_key(tenant_id, seen.parent_span_id)
            for seen in fresh
            if not seen.parents and seen.parent_span_id is not None
        }
        found: dict[int, list[StepLocation]] = {}
        if parent_spans:
            for key, step in await self._derived.spanned(tenant_id, parent_spans):
                found.setdefault(key, []).append(step)
            for seen in fresh:
                key = step_key(tenant_id, seen.span_id)
                if key in parent_spans:
                    step = StepLocation(seen.seq, seen.session_no, seen.agent_no, seen.at_ns, False)
                    found.setdefault(key, []).append(step)
        return found


class _Counted:
    """The counts one batch adds."""

    def __init__(self) -> None:
        self.agents: Sums = {}
        self.sessions: Sums = {}
        self.edges: Sums = {}
        self.labels: Sums = {}
        self.seconds: Sums = {}
        self.gaps: list[dict[str, Any]] = []
        self.crossings: set[tuple[int, int, int, int, str]] = set()

    def event(self, event: FoldEvent) -> None:
        """Violations and alarms; those that name no agent are counted under number 0."""
        key = (event.at_ns // MINUTE, event.agent_no)
        is_count = event.event_type == REFUSALS_COUNTED
        if (event.body["refused"] if is_count else event.event_type) == "schema_violation":
            violations = event.body["count"] if is_count else 1
            _add(self.agents, key, 0, 0, violations, 0, 0, 0.0)
            _add(self.seconds, (event.at_ns // SECOND,), 0, 0, violations, 0.0)
        elif event.event_type in ALERTS:
            _add(self.agents, key, 0, 0, 0, 1, 0, 0.0)

    def message(self, seen: FoldMessage, found: StepCost | None, before: float) -> None:
        minute, log = seen.at_ns // MINUTE, seen.log
        cost = 0.0 if found is None else found.cost
        delta = None if log is None else log.state_delta
        tokens = 0 if seen.state == "refused" else tokens_of(delta)
        lost = int(failed(seen))
        _add(self.agents, (minute, seen.agent_no), 1, lost, 0, 0, tokens, cost)
        _add(self.seconds, (seen.at_ns // SECOND,), 1, lost, 0, cost)
        _add(self.sessions, (minute, seen.session_no), 1, tokens, cost)
        for kind, label in labels_of(seen):
            _add(self.labels, (minute, kind, label or ""), 1, lost, tokens, cost)
        if found is not None and delta is not None and delta.cumulative_session_cost is not None:
            cost_of_step = found.cost if delta.cost is None else max(0.0, delta.cost)
            computed = before + cost_of_step
            gap = delta.cumulative_session_cost - computed
            if abs(gap) > CENT * max(1.0, abs(computed)):
                self.gaps.append(
                    {
                        "seq": seen.seq,
                        "session_no": seen.session_no,
                        "agent_no": seen.agent_no,
                        "kind": "fell" if found.fell else "differs",
                        "reported": delta.cumulative_session_cost,
                        "computed": computed,
                        "gap": gap,
                        "at_ns": seen.at_ns,
                    }
                )

    def addressed(self, seen: FoldMessage, lost: bool) -> None:
        if seen.agent_no and seen.recipient_no and seen.agent_no != seen.recipient_no:
            key = (seen.at_ns // MINUTE, seen.agent_no, seen.recipient_no, "message")
            _add(self.edges, key, 1, int(lost), 0)

    def causal(self, parent: StepLocation, child: StepLocation, at_ns: int) -> None:
        if parent.agent_no and child.agent_no and parent.agent_no != child.agent_no:
            key = (at_ns // MINUTE, parent.agent_no, child.agent_no, "causal")
            latency_ms = max(0, child.at_ns - parent.at_ns) // 1_000_000
            _add(self.edges, key, 1, int(child.failed), latency_ms)

    def crossing(self, from_no: int, session_no: int, key: int, seq: int, kind: str) -> None:
        if from_no != session_no:
            self.crossings.add((from_no, session_no, key, seq, kind))

    def puts(self) -> list[DerivedWrite]:
        made = [
            _put("insight_agent_minutes", self.agents, AGENT),
            _put("insight_session_minutes", self.sessions, SESSION),
            _put("insight_edge_minutes", self.edges, EDGE),
            _put("insight_label_minutes", self.labels, LABEL),
            _put("insight_seconds", self.seconds, ALL),
        ]
        if self.gaps:
            made.append(DerivedWrite("insight_gaps", self.gaps))
        crossed = [dict(zip(CROSSING, row, strict=True)) for row in sorted(self.crossings)]
        made.append(DerivedWrite("insight_crossings", crossed))
        return [put for put in made if put.rows]


AGENT = ("minute", "agent_no", "messages", "failures", "violations", "alerts", "tokens", "cost")
SESSION = ("minute", "session_no", "messages", "tokens", "cost")
EDGE = ("minute", "from_no", "to_no", "kind", "messages", "failures", "latency_ms")
ALL = ("second", "messages", "failures", "violations", "cost")
CROSSING = ("from_no", "session_no", "parent_key", "seq", "kind")
LABEL = ("minute", "kind", "label", "messages", "failures", "tokens", "cost")


def _add(sums: Sums, key: tuple[Any, ...], *values: float) -> None:
    known = sums.get(key)
    if known is None:
        sums[key] = list(values)
    else:
        for index, value in enumerate(values):
            known[index] += value


def _put(table: str, sums: Sums, columns: tuple[str, ...]) -> DerivedWrite:
    return DerivedWrite(
        table, [dict(zip(columns, (*key, *row), strict=True)) for key, row in sums.items()], "add"
    )


def failed(seen: FoldMessage) -> bool:
    """It reports a failure, or it was refused and not delivered."""
    if seen.state == "refused":
        return True
    if seen.log is not None:
        return seen.log.action.status == "failure"
    payload = None if seen.envelope is None else seen.envelope.payload
    return isinstance(payload, ActionConfirmation) and payload.status == "failure"


def labels_of(seen: FoldMessage) -> list[tuple[str, str | None]]:
    """From the message itself: what its agent is called by now would depend on when it is read."""
    log = seen.log
    if log is None:
        return [("cluster", None), ("type", None), ("tool", None), ("model", None)]
    return [
        ("cluster", log.meta.cluster_id),
        ("type", log.identity.agent_type),
        ("tool", log.action.tool_call),
        ("model", log.identity.model),
    ]


def folds(derived: DerivedReads, past: RecordReads) -> list[Fold]:
    return [TrafficFold(derived.queries(MinuteCounterReads), derived)]
