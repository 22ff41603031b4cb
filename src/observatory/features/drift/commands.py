"""Reconciles drift: a person picks the true value, and the agents that hold another are notified (rule S261).

Ruling 20: nothing resolves itself. The record holds the hash of subject and value, and who was notified.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from observatory.features.relay.commands_group import combined_command, notify_agent
from observatory.features.relay.types import FactTarget, hashed
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.redaction import typed_text as typed
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, Principal, SubmissionResult, UnitOfWork
from observatory.plural import plural
from observatory.protocol.identity import mint


class TrueValue(NamedTuple):
    subject_key: int
    subject: str
    value: str
    scope: str  # session:… or cluster:…


def reconcile(
    who: Principal, ruling: TrueValue, targets: Sequence[FactTarget], prompt: str, now_ns: int
) -> Command:
    """Recorded even when no agent is left to notify."""
    name = mint("rec_", now_ns)
    acts = [(target, None, notify_agent(who, target, prompt, now_ns)) for target in targets]

    def conclude(uow: UnitOfWork, results: list[dict[str, Any]]) -> SubmissionResult:
        answer = {"reconciliation_id": name, "scope": ruling.scope, "agents": results}
        if results and not any(result["inject"]["status"] == "accepted" for result in results):
            return SubmissionResult(200, answer | {"status": "already_reconciled", "reconciliation_id": None})
        value = typed.redact_text(uow.memory, "value", ruling.value)
        row = {
            "tenant_id": who.tenant_id,
            "reconciliation_id": name,
            "subject_key": ruling.subject_key,
            "subject": ruling.subject,
            "value": value,
            "scope": ruling.scope,
            "decided_by": who.entity_id,
            "decided_ns": uow.now_ns,
        }
        notified = [
            {"agent_id": one["agent_id"], "session_id": one["session_id"], "inject": one["inject"]["status"]}
            for one in results
        ]
        detail = {
            "reconciliation_id": name,
            "scope": ruling.scope,
            "subject_hash": hashed(ruling.subject),
            "value_hash": hashed(value),
            "agents": notified,
        }
        count = plural(len(notified), "agent")
        summary = f"drift in {ruling.scope} reconciled by {who.entity_id}: {count} notified"
        event = gateway_event(who.tenant_id, "drift_reconciled", summary, uow.now_ns, who, detail)
        return SubmissionResult(
            202, answer | {"status": "reconciled"}, [event], [RowWrite("reconciliations", row)]
        )

    return combined_command(who, acts, now_ns, conclude)
