"""Drift reconciled: a person picks the true value, the relay tells it to those who hold another (rule S261).

Law (ruling 20): nothing resolves itself. The record holds the hash of subject and value, and who was told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from observatory.features.facts.commands import Target, hashed, tell, together
from observatory.features.redaction import typed_text as typed
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Principal, Verdict
from observatory.protocol.identity import mint


class Ruling(NamedTuple):
    subject_key: int
    subject: str
    value: str
    scope: str  # session:… or cluster:…


def reconcile(who: Principal, ruling: Ruling, targets: Sequence[Target], prompt: str, now_ns: int) -> Act:
    """With nobody left to tell it is still on record that this is the true value."""
    name = mint("rec_", now_ns)
    acts = [(target, None, tell(who, target, prompt, now_ns)) for target in targets]

    def conclude(desk: Desk, results: list[dict[str, Any]]) -> Verdict:
        answer = {"reconciliation_id": name, "scope": ruling.scope, "agents": results}
        if results and not any(result["inject"]["status"] == "accepted" for result in results):
            return Verdict(200, answer | {"status": "already_reconciled", "reconciliation_id": None})
        value = typed.left(desk.memory, "value", ruling.value)
        row = {
            "tenant_id": who.tenant_id,
            "reconciliation_id": name,
            "subject_key": ruling.subject_key,
            "subject": ruling.subject,
            "value": value,
            "scope": ruling.scope,
            "decided_by": who.entity_id,
            "decided_ns": desk.now_ns,
        }
        told = [
            {"agent_id": one["agent_id"], "session_id": one["session_id"], "inject": one["inject"]["status"]}
            for one in results
        ]
        detail = {
            "reconciliation_id": name,
            "scope": ruling.scope,
            "subject_hash": hashed(ruling.subject),
            "value_hash": hashed(value),
            "agents": told,
        }
        summary = f"drift in {ruling.scope} reconciled by {who.entity_id}: {len(told)} agents told"
        event = notice(who.tenant_id, "drift_reconciled", summary, desk.now_ns, who, detail)
        return Verdict(202, answer | {"status": "reconciled"}, [event], [Write("reconciliations", row)])

    return together(who, acts, now_ns, conclude)
