"""The steps fold: one row for each message, and one for each declared parent.

A refused message cost nothing: the pipeline counts nothing for it either. A revised message gets the row of
its new content, but keeps its computed cost: content written by a person does not change what was spent.
"""

from __future__ import annotations

from typing import Any

from observatory.derived.reads import DerivedReads
from observatory.derived.seen import Batch, DerivedWrite, Finding, Fold, FoldMessage, step_key
from observatory.features.graph.fold_causes import CycleFold
from observatory.features.graph.queries_causes import CauseReads
from observatory.pipeline.ports import RecordReads
from observatory.pipeline.step_cost import cost_of_step, tokens_of
from observatory.protocol.messages import ActionConfirmation, StatusAlert

KNOWN = 10_000  # totals remembered; beyond, all are read again
Key = tuple[str, int, int]  # tenant, session, agent


class StepFold:
    name = "steps"

    def __init__(self, derived: DerivedReads) -> None:
        self._derived = derived
        self._totals: dict[Key, float] = {}

    def forget(self) -> None:
        self._totals.clear()

    async def fold(self, batch: Batch) -> tuple[list[DerivedWrite], list[Finding]]:
        await self._recall(batch)
        revised = [seen.seq for seen in batch.messages if seen.revised]
        costs = await self._derived.costs_of(batch.tenant_id, [seq for seq in revised if seq <= batch.after])
        tenant_id, totals = batch.tenant_id, self._totals
        steps: dict[int, dict[str, Any]] = {}
        links: dict[int, list[dict[str, Any]]] = {}
        changed: dict[tuple[int, int], tuple[float, int]] = {}
        for seen in batch.messages:
            cost = costs.get(seen.seq, 0.0)
            if not seen.revised and seen.state != "refused" and seen.log is not None:
                key = (tenant_id, seen.session_no, seen.agent_no)
                found = cost_of_step(seen.log.state_delta, totals.get(key, 0.0))
                if found is not None:
                    cost, totals[key] = found.cost, found.total
                    changed[key[1:]] = (found.total, seen.seq)
            costs[seen.seq] = cost
            steps[seen.seq] = step_row(tenant_id, seen, cost)
            links[seen.seq] = link_rows(tenant_id, seen)
        puts = [
            DerivedWrite("insight_steps", list(steps.values())),
            DerivedWrite("insight_links", [row for rows in links.values() for row in rows], clear=revised),
        ]
        if changed:
            puts.append(
                DerivedWrite("insight_totals", [_total(key, value) for key, value in changed.items()])
            )
        return puts, []

    async def _recall(self, batch: Batch) -> None:
        """Loads the totals this batch's figures are compared with."""
        if len(self._totals) > KNOWN:
            self._totals.clear()
        tenant_id = batch.tenant_id
        missing = {
            (seen.session_no, seen.agent_no)
            for seen in batch.messages
            if (tenant_id, seen.session_no, seen.agent_no) not in self._totals
        }
        if not missing:
            return
        found = await self._derived.totals(
            tenant_id, {key[0] for key in missing}, {key[1] for key in missing}
        )
        for key in missing:
            self._totals[tenant_id, *key] = found[key][0] if key in found else 0.0


def _total(key: tuple[int, int], value: tuple[float, int]) -> dict[str, Any]:
    return {"session_no": key[0], "agent_no": key[1], "total": value[0], "seq": value[1]}


def step_row(tenant_id: str, seen: FoldMessage, cost: float) -> dict[str, Any]:
    status: str | None = None
    tool: str | None = None
    reported: float | None = None
    confidence: float | None = None
    tokens = terminal = 0
    log = seen.log
    if log is not None:
        status, tool = log.action.status, log.action.tool_call
        delta, control = log.state_delta, log.control
        if delta is not None:
            reported = delta.cumulative_session_cost
            tokens = 0 if seen.state == "refused" else tokens_of(delta)
        if log.cognition is not None:
            confidence = log.cognition.confidence_score
        terminal = int(control is not None and bool(control.is_terminal))
    elif seen.envelope is not None:
        payload = seen.envelope.payload
        if isinstance(payload, ActionConfirmation):
            status, tool = payload.status, payload.action_type
        elif isinstance(payload, StatusAlert):
            status = payload.severity
    return {
        "seq": seen.seq,
        "name_key": step_key(tenant_id, seen.name),
        "span_key": step_key(tenant_id, seen.span_id),
        "session_no": seen.session_no,
        "agent_no": seen.agent_no,
        "recipient_no": seen.recipient_no,
        "message_type": seen.message_type,
        "state": seen.state,
        "status": status,
        "tool": tool,
        "cost": cost,
        "reported": reported,
        "tokens": tokens,
        "confidence": confidence,
        "entropy": seen.entropy,
        "terminal": terminal,
        "cluster_id": seen.cluster_id,
        "at_ns": seen.at_ns,
    }


def link_rows(tenant_id: str, seen: FoldMessage) -> list[dict[str, Any]]:
    """Parents by name; an envelope's by its span."""
    kind = "inferred" if seen.parent_inferred else "declared"
    found = {step_key(tenant_id, name): kind for name in seen.parents}
    if not seen.parents and seen.parent_span_id is not None:
        found[step_key(tenant_id, seen.parent_span_id)] = "span"
    return [
        {"seq": seen.seq, "parent_key": key, "kind": how, "session_no": seen.session_no}
        for key, how in found.items()
    ]


def folds(derived: DerivedReads, past: RecordReads) -> list[Fold]:
    return [StepFold(derived), CycleFold(derived.queries(CauseReads), past)]
