"""What the record says of firings and of who leads them."""

from __future__ import annotations

from typing import Any

from observatory.features.schedule.cron import Plan
from observatory.pipeline.event_writer import notice
from observatory.pipeline.state import Act, Desk, Draft, Principal, Verdict
from observatory.protocol.clock import from_ns

Row = dict[str, Any]


def fired(who: Principal, row: Row, run: Row, now_ns: int) -> Draft:
    detail = {
        "job_id": row["job_id"],
        "name": row["name"],
        "run_id": run["run_id"],
        "scheduled_for": from_ns(run["scheduled_for"]),
        "manual": bool(run["manual"]),
    }
    by = f" by {who.entity_id}" if run["manual"] else ""
    return notice(who.tenant_id, "job_fired", f"job {row['name']} fired{by}", now_ns, who, detail)


def missed(who: Principal, row: Row, plan: Plan, now_ns: int) -> Draft:
    detail = {
        "job_id": row["job_id"],
        "name": row["name"],
        "missed": plan.missed,
        "or_more": plan.is_more,
        "first_missed": None if plan.first_missed is None else from_ns(plan.first_missed),
        "misfire": row["misfire"],
        "reason": "late",
    }
    summary = f"job {row['name']} missed {plan.missed} of its times"
    return notice(who.tenant_id, "job_missed", summary, now_ns, who, detail)


def skipped(who: Principal, row: Row, run: Row, now_ns: int) -> Draft:
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
    summary = f"job {row['name']} left out one of its times: {run['reason']}"
    return notice(who.tenant_id, "job_missed", summary, now_ns, who, detail)


def resigned(who: Principal, holder: str, epoch: int, now_ns: int) -> Act:
    """Of the house, so in the home tenant's record; written before the lease is let go."""

    def decide(desk: Desk) -> Verdict:
        summary = f"gateway {holder} let the lead of the schedule go"
        detail = {"holder": holder, "epoch": epoch}
        return Verdict(200, None, [notice(who.tenant_id, "lead_resigned", summary, now_ns, who, detail)])

    return Act(who, now_ns, decide)
