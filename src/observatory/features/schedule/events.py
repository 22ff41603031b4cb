"""Audit events of firings, missed and skipped runs, and of the leader's resignation."""

from __future__ import annotations

from typing import Any

from observatory.features.schedule.cron import FiringPlan
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.state import Command, EventDraft, Principal, SubmissionResult, UnitOfWork
from observatory.protocol.clock import from_ns

Row = dict[str, Any]


def fired(who: Principal, row: Row, run: Row, now_ns: int) -> EventDraft:
    detail = {
        "job_id": row["job_id"],
        "name": row["name"],
        "run_id": run["run_id"],
        "scheduled_for": from_ns(run["scheduled_for"]),
        "manual": bool(run["manual"]),
    }
    by = f" by {who.entity_id}" if run["manual"] else ""
    return gateway_event(who.tenant_id, "job_fired", f"job {row['name']} fired{by}", now_ns, who, detail)


def missed(who: Principal, row: Row, plan: FiringPlan, now_ns: int) -> EventDraft:
    detail = {
        "job_id": row["job_id"],
        "name": row["name"],
        "missed": plan.missed,
        "or_more": plan.is_more,
        "first_missed": None if plan.first_missed is None else from_ns(plan.first_missed),
        "misfire": row["misfire"],
        "reason": "late",
    }
    summary = f"job {row['name']} missed {plan.missed} run{'' if plan.missed == 1 else 's'}"
    return gateway_event(who.tenant_id, "job_missed", summary, now_ns, who, detail)


def skipped(who: Principal, row: Row, run: Row, now_ns: int) -> EventDraft:
    detail = {
        "job_id": row["job_id"],
        "name": row["name"],
        "run_id": run["run_id"],
        "first_missed": from_ns(run["scheduled_for"]),
        "missed": 1,
        "or_more": False,
        "misfire": row["misfire"],
        "reason": run["reason"],
    }
    summary = f"job {row['name']} skipped a run: {run['reason']}"
    return gateway_event(who.tenant_id, "job_missed", summary, now_ns, who, detail)


def resigned(who: Principal, holder: str, epoch: int, now_ns: int) -> Command:
    """The deployment's event, so it is in the home tenant's record; written before the lease is released."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        summary = f"gateway {holder} resigned the lead of the schedule"
        detail = {"holder": holder, "epoch": epoch}
        return SubmissionResult(
            200, None, [gateway_event(who.tenant_id, "lead_resigned", summary, now_ns, who, detail)]
        )

    return Command(who, now_ns, decide)
